"""Small calls stay with the owner's kernels, and large ones go to C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from candelabra.backend import declared
from candelabra.dtypes import float32
from candelabra.library import OPERATORS
from candelabra_clike.kernels import table
from candelabra_cpu.kernels import table as owned
from candelabra_cpu.numpy_kernels import UFUNCS
from candelabra_native import thresholds
from candelabra_native.kernels import contributed, wrapped
from candelabra_native.small_calls import is_small
from candelabra_native.thresholds import FAMILIES, families, threshold


def _function(name: str, own: Any) -> Any:
    record = OPERATORS.get(name) or OPERATORS[name.removesuffix("_")]

    def native(*arguments: Any) -> Any:
        raise AssertionError("a small call reached C")

    return wrapped(name, record, native, own, float32)


def test_every_kernel_has_a_family_and_every_family_a_kernel() -> None:
    """The table of sizes covers the kernels of C, and nothing else."""
    names = {name.removesuffix("_") for name in table(lambda index: None)}  # type: ignore[arg-type, return-value]
    assert names <= set(families())
    assert set(families().values()) == set(FAMILIES)
    assert set(thresholds.OPERATORS) <= set(families())
    assert set(thresholds.WORK) <= set(families())


def test_an_operator_has_the_size_of_its_family_or_its_own() -> None:
    """The in-place form has the size of the other form."""
    assert threshold("add") == threshold("add_") == FAMILIES["arithmetic"]
    assert threshold("hypot") == thresholds.OPERATORS["hypot"] != FAMILIES["arithmetic"]
    assert threshold("sort") is None


def test_kernels_that_are_never_faster_serve_only_where_the_owner_has_none() -> None:
    """Sorting is left to NumPy."""
    own = declared(owned())
    assert "sort" not in contributed(own)
    assert "sort" in contributed({name: kernel for name, kernel in own.items() if name != "sort"})


@pytest.mark.parametrize("other", [np.float32([4.0, 5.0]), 2.0], ids=["array", "number"])
def test_a_small_call_of_a_ufunc_gives_what_the_owner_gives(other: Any) -> None:
    """The generated function calls the ufunc itself, or the owner's kernel, for an array and for a number."""
    own = declared(owned())["mul"].for_dtype(float32)
    assert own in UFUNCS
    x = np.float32([1.0, 3.0])
    out = _function("mul", own)(x, other)
    assert out.dtype == np.float32
    assert np.array_equal(out, x * np.float32(other))


def test_a_small_call_never_returns_an_array_scalar() -> None:
    """NumPy returns a scalar for an array without dims."""
    own = declared(owned())["mul"].for_dtype(float32)
    assert isinstance(_function("mul", own)(np.array(3, np.float32), 2.0), np.ndarray)


def test_what_a_ufunc_raises_is_served_by_the_owners_kernel() -> None:
    """A Python integer outside the dtype's range wraps around, which NumPy refuses."""
    own = declared(owned())["add"].for_dtype(float32)
    assert _function("add", own)(np.uint8([1, 2]), 300).tolist() == [45, 46]


def test_a_small_call_in_place_writes_to_its_first_array() -> None:
    """The in-place form of a ufunc writes where the owner's kernel writes."""
    own = declared(owned())["add_"]
    assert own in UFUNCS
    x = np.float32([1.0, 2.0])
    assert _function("add_", own)(x, x) is x
    assert x.tolist() == [2.0, 4.0]


def test_the_size_of_a_product_is_its_multiply_adds() -> None:
    """Two small matrices may have many."""
    record = OPERATORS["matmul"]
    condition = is_small("matmul", record.schema.parameters, 1000, rows=False)
    a, b = np.zeros((9, 10)), np.zeros((10, 11))
    assert eval(condition, {"input": a, "other": b})  # 990
    assert not eval(condition, {"input": a, "other": np.zeros((10, 12))})
