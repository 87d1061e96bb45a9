"""Small calls stay with the owner's kernels, and large ones go to C."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.backend import declared, operator_of
from candelabra.dtypes import complex64, float32, float64, int64
from candelabra.library import OPERATORS, own_kernels
from candelabra_clike.kernels import table
from candelabra_cpu.kernels import table as owned
from candelabra_cpu.numpy_kernels import UFUNCS
from candelabra_native import kernels, thresholds
from candelabra_native.kernels import contributed
from candelabra_native.small_calls import IN_CONDITIONS, is_small
from candelabra_native.thresholds import FAMILIES, families, threshold

OWN = declared(owned())


@pytest.fixture
def contribution(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Return the contributed function of an operator over the owner's kernel, whose kernel in C must not be reached."""

    def native(*arguments: Any) -> Any:
        raise AssertionError("a small call reached C")

    def function(name: str) -> Any:
        monkeypatch.setattr(kernels, "table", lambda engines: {name: native})
        return contributed(OWN)[name].for_dtype(float32)

    return function


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


def test_float64_has_sizes_of_its_own() -> None:
    """NumPy's vectors of float64 are as fast as those of C: it serves more calls."""
    assert set(thresholds.DOUBLE) <= set(families())
    assert threshold("asin", float64) == threshold("asin_", float64) == thresholds.DOUBLE["asin"]
    assert threshold("asin", float32) == threshold("asin") == thresholds.OPERATORS["asin"]
    assert contributed(OWN)["pow"].for_dtype(float64) is None
    assert contributed(OWN)["asin"].for_dtype(float64) is not None


def test_every_kernel_with_a_size_serves_calls_of_that_size() -> None:
    """The condition of a small call depends on the call, also where no parameter is an array or a shape."""
    for name in contributed(OWN):
        least, operator = threshold(name), operator_of(name)
        if least:
            assert is_small(OPERATORS[operator], least, name != operator) != "True", name


def test_ranges_are_counted_by_the_elements_of_their_result() -> None:
    """Long ones go to C, with the same bits as short ones, which stay with the owner."""
    for name in ("arange", "linspace"):
        condition = is_small(OPERATORS[name], thresholds.OPERATORS[name] or 0, False)
        assert eval(condition, {"length": 100, "steps": 100})
        assert not eval(condition, {"length": 1 << 13, "steps": 1 << 13})
    for d in (float32, float64, int64):
        found = cd.linspace(-1.3, 600.0, 9001, dtype=d), cd.arange(3, 27_003, 3, dtype=d)
        with own_kernels():
            expected = cd.linspace(-1.3, 600.0, 9001, dtype=d), cd.arange(3, 27_003, 3, dtype=d)
        assert all(map(cd.equal, found, expected))


def test_the_kernel_in_c_is_loaded_by_its_first_large_call_or_when_a_graph_is_compiled() -> None:
    """A program of small tensors imports no kernel in C."""
    for call in (lambda f: f(np.ones(1 << 17, "f4"), np.ones(1 << 17, "f4")), lambda f: f.load()):
        add = contributed(OWN)["add"].for_dtype(float32)
        add(np.ones(3, "f4"), np.ones(3, "f4"))
        assert not hasattr(add, "in_c")
        assert add.is_small
        assert add.load
        call(add)
        assert add.in_c
        assert add.is_small
        assert add.load is None


def test_kernels_that_are_never_faster_serve_only_where_the_owner_has_none() -> None:
    """Sorting is left to NumPy, except for calls of every size, by which the conformance suite tests the kernel."""
    without = {name: kernel for name, kernel in OWN.items() if name != "sort"}
    assert contributed(OWN)["sort"].for_dtype(float32) is None
    assert contributed(without)["sort"].for_dtype(float32) is not None
    assert contributed(OWN, every_size=True)["sort"].for_dtype(float32) is not None


@pytest.mark.parametrize("other", [np.float32([4.0, 5.0]), 2.0], ids=["array", "number"])
def test_a_small_call_of_a_ufunc_gives_what_the_owner_gives(contribution: Callable[[str], Any], other: Any) -> None:
    """The generated function calls the ufunc itself, or the owner's kernel, for an array and for a number."""
    assert OWN["mul"].for_dtype(float32) in UFUNCS
    x = np.float32([1.0, 3.0])
    out = contribution("mul")(x, other)
    assert out.dtype == np.float32
    assert np.array_equal(out, x * np.float32(other))


def test_a_small_call_never_returns_an_array_scalar(contribution: Callable[[str], Any]) -> None:
    """NumPy returns a scalar for an array without dims."""
    assert isinstance(contribution("mul")(np.array(3, np.float32), 2.0), np.ndarray)


def test_what_a_ufunc_raises_is_served_by_the_owners_kernel(contribution: Callable[[str], Any]) -> None:
    """A Python integer outside the dtype's range wraps around, which NumPy refuses."""
    assert contribution("add")(np.uint8([1, 2]), 300).tolist() == [45, 46]


def test_a_small_call_in_place_writes_to_its_first_array(contribution: Callable[[str], Any]) -> None:
    """The in-place form of a ufunc writes where the owner's kernel writes."""
    assert OWN["add_"] in UFUNCS
    x = np.float32([1.0, 2.0])
    assert contribution("add_")(x, x) is x
    assert x.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("name", ["mul", "maximum"])
def test_a_call_whose_result_is_large_is_not_small(name: str) -> None:
    """Two arrays that are both broadcast have a result with more elements than either."""
    condition = is_small(OPERATORS[name], 1000, inplace=False)
    column, row, x = np.zeros((40, 1)), np.zeros(50), np.zeros((40, 20))

    def small(a: Any, b: Any) -> bool:
        return bool(eval(condition, dict(IN_CONDITIONS), {"input": a, "other": b}))

    assert not small(column, row)
    assert small(column, row[:20])
    assert small(x, x)
    assert small(x, row[:20])
    assert not small(np.zeros((40, 50)), row)
    assert small(np.zeros((0, 5000)), np.zeros((1, 5000)))
    if name == "mul":
        assert small(column, 2.0)
        assert not small(np.zeros(1000), 2.0)
        assert small(2.0, column)
    assert eval(is_small(OPERATORS[name], 1000, inplace=True), dict(IN_CONDITIONS), {"input": x, "other": column})


def test_a_choice_between_numbers_is_small() -> None:
    """With a mask, both operands may be numbers."""
    condition = is_small(OPERATORS["where"], 1000, inplace=False)
    assert eval(condition, dict(IN_CONDITIONS), {"condition": np.ones(3, bool), "input": 1.0, "other": 2.0})


def test_the_size_of_a_product_is_its_multiply_adds() -> None:
    """Two small matrices may have many."""
    condition = is_small(OPERATORS["matmul"], 1000, inplace=False)
    a, b = np.zeros((9, 10)), np.zeros((10, 11))
    assert eval(condition, {"input": a, "other": b})  # 990
    assert not eval(condition, {"input": a, "other": np.zeros((10, 12))})


# -- kernels that are imported late -----------------------------------------------------------------------------------
FIRST = """
import sys
import candelabra as cd
x = cd.ones(3, 3)
((x @ x + x).sum() * 2).item()
print(sorted(name for name in sys.modules if name.startswith(("candelabra_clike.", "candelabra_native.wrapping"))))
big = cd.ones(400, 400)
(big + big).sum().item()
print("candelabra_native.wrapping" in sys.modules)
"""


def test_a_program_of_small_tensors_imports_no_kernel_in_c() -> None:
    """Registration needs the index of kernels only; the first large call imports its kernel."""
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    small, large = done.stdout.splitlines()
    imported = {name.split(".")[1] for name in eval(small)}
    assert imported <= {"_index", "kernels", "processor", "tables"}
    assert "wrapping" not in small
    assert large == "True"


def test_a_function_takes_over_the_code_of_the_kernel_that_is_imported_late() -> None:
    """So later calls have no frame more, also those of a caller that has kept the function."""
    function = contributed(OWN)["add"].for_dtype(float32)
    small, large = np.ones(3, np.float32), np.ones(FAMILIES["arithmetic"], np.float32)
    before = function.__code__
    assert function(small, small).tolist() == [2, 2, 2]
    assert function.__code__ is before
    assert (function(large, large) == 2).all()
    assert function.__code__ is not before
    assert "engine" in function.__globals__
    assert function(small, small).tolist() == [2, 2, 2]


def test_a_dtype_without_a_kernel_in_c_is_declined_once_that_is_known() -> None:
    """Until then the owner's kernel is called for each size; an explanation settles it first."""
    late = contributed(OWN)["logcumsumexp"]
    function = late.for_dtype(complex64)
    for size in (3, 1 << 10, 1 << 10, 3):  # the first large call finds that there is none
        assert np.allclose(function(np.zeros(size, np.complex64), 0), np.log(np.arange(1, size + 1)))
    late.settle(complex64)
    assert late.for_dtype(complex64) is None
    late.settle(float32)
    assert late.for_dtype(float32) is not None


def test_an_explanation_names_the_kernel_that_serves() -> None:
    """The contributed kernel is not named for a dtype that it turns out to decline."""
    code = "import candelabra as cd; print(cd.explain('logcumsumexp', cd.ones(3, dtype=cd.complex64), 0).reason)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "kernel 'logcumsumexp' of backend 'cpu'\n"
