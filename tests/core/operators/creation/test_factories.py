"""The keywords that all factories share."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import pytest

FACTORIES: dict[str, tuple[Any, ...]] = {
    "zeros": (2,), "ones": (2,), "full": ((2,), 3), "arange": (2,), "linspace": (0, 1, 2), "logspace": (0, 1, 2),
    "range": (0, 1), "rand": (2,), "randn": (2,), "randint": (3, (2,)), "randperm": (2,), "empty": (2,),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTORIES)
def test_factories_write_into_out(name: str) -> None:
    """``out=`` determines the dtype, is resized, and must agree with ``dtype=``."""
    make, arguments = getattr(cd, name), FACTORIES[name]
    out = cd.empty(0, dtype=cd.float64)
    assert make(*arguments, out=out) is out
    assert out.shape == (2,)
    with pytest.raises(RuntimeError, match="does not match dtype of out parameter"):
        make(*arguments, out=out, dtype=cd.int32)
    made = make(*arguments, layout=cd.strided, pin_memory=False, device="cpu", dtype=cd.float32, requires_grad=True)
    assert made.requires_grad
    assert made.is_leaf


def test_only_floating_tensors_may_require_grad() -> None:
    """Every factory raises for an integer dtype, whether it is explicit or inferred."""
    x = cd.ones(2, dtype=cd.int32)
    for make in (
        lambda: cd.zeros(2, dtype=cd.int64, requires_grad=True),
        lambda: cd.arange(3, requires_grad=True),
        lambda: cd.full((2,), 1, requires_grad=True),
        lambda: x.new_ones(2, requires_grad=True),
        lambda: cd.zeros_like(x, requires_grad=True, memory_format=cd.preserve_format),
        lambda: cd.frombuffer(bytearray(4), dtype=cd.int32, requires_grad=True),
    ):
        with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require"):
            make()
    assert cd.frombuffer(bytearray(8), dtype=cd.float32, requires_grad=True).is_leaf
    assert x.new_full((2,), 1, dtype=cd.float32, requires_grad=True).requires_grad


@pytest.mark.parametrize(
    "call",
    [
        lambda x: cd.tensor([1.0], out=x),
        lambda x: cd.tensor([1.0], layout=cd.strided),
        lambda x: x.new_zeros(2, out=x),
        lambda x: x.new_tensor([1], memory_format=cd.contiguous_format),
        lambda x: cd.frombuffer(bytearray(4), dtype=cd.int32, pin_memory=True),
    ],
)
def test_a_factory_takes_the_keywords_that_its_declaration_names(call: Any) -> None:
    """``tensor`` and ``x.new_zeros`` have no ``out=``, as in PyTorch."""
    with pytest.raises(TypeError, match="got an unexpected keyword argument"):
        call(cd.ones(2))


def test_a_set_of_factories_picks_the_one_that_infers_the_dtype() -> None:
    """The member that infers dtype or device is chosen if these are omitted; the documentation lists both."""
    assert cd.full((2,), True).dtype is cd.bool
    assert cd.full((2,), True, dtype=cd.float32, device="cpu").tolist() == [1.0, 1.0]
    assert cd.full((2,), cd.tensor(2)).tolist() == [2, 2]
    assert cd.full(size=(2,), fill_value=2j).dtype is cd.complex64
    assert cd.eye(2, dtype=cd.int32).tolist() == [[1, 0], [0, 1]]
    x = cd.ones(1, dtype=cd.float64)
    assert x.new_full((2,), 3).dtype is cd.float64
    assert x.new_full((2,), cd.tensor(3), device="cpu").tolist() == [3, 3]
    assert cd.explain("full", (2,), 1, dtype=cd.float32, device="cpu").operator == "full"
    with pytest.raises(TypeError, match="size must be an int or a tuple of ints, but found str: '2'"):
        cd.full("2", 1, dtype=cd.float32, device="cpu")
    assert "``fill_value``, a number or a 0-d tensor" in (cd.full.__doc__ or "")
    assert cd.arange.__name__ == "arange"


@pytest.mark.parametrize(("value", "dtype"), [
    (300, cd.int8), (-129, cd.int8), (-256, cd.uint8), (2**63, cd.int64), (math.nan, cd.int32), (math.inf, cd.uint8),
    (1j, cd.float32), (1 + 1j, cd.int16), (1j, cd.bool),
])  # fmt: skip
@pytest.mark.parametrize("fill", [
    lambda value, d: cd.full((2,), value, dtype=d),
    lambda value, d: cd.full((0,), value, dtype=d, device="cpu"),
    lambda value, d: cd.ones(3).new_full((2,), value, dtype=d),
    lambda value, d: cd.full_like(cd.ones(2, dtype=d), value),
], ids=["full", "full on a device", "new_full", "full_like"])  # fmt: skip
def test_values_out_of_the_range_of_the_dtype_are_refused(fill: Any, value: Any, dtype: cd.dtype) -> None:
    """As in ``fill_``: nothing wraps and no imaginary part is dropped."""
    with pytest.raises(RuntimeError, match=rf"value cannot be converted to type {dtype.c_name} without overflow"):
        fill(value, dtype)


def test_values_in_the_range_of_the_dtype_are_truncated() -> None:
    """Negative numbers count back from the largest unsigned one, as in PyTorch."""
    assert cd.full((1,), 2.9, dtype=cd.int8).tolist() == [2]
    assert cd.full((1,), -1, dtype=cd.uint8).tolist() == [255]
    assert cd.full((1,), 3 + 0j, dtype=cd.float32).tolist() == [3.0]
    assert cd.full_like(cd.ones(1, dtype=cd.bool), -2).tolist() == [True]
