"""The larger and the smaller of two."""

from __future__ import annotations

import math

import candelabra as cd
import pytest

INF, NAN = math.inf, math.nan


def test_the_first_of_equals_gets_the_gradient_of_fmax_and_fmin() -> None:
    """And the number that is beside a NaN."""
    for function in (cd.fmax, cd.fmin):
        x = cd.tensor([1.0, NAN, 2.0], requires_grad=True)
        y = cd.tensor([1.0, 5.0, NAN], requires_grad=True)
        function(x, y).sum().backward()
        assert x.grad.tolist() == [1.0, 0.0, 1.0]
        assert y.grad.tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("form", ["clamp_min", "clamp_max", "copysign", "clamp_min_", "clamp_max_", "copysign_"])
def test_a_number_beside_bfloat16_leaves_it_bfloat16(form: str) -> None:
    """The result's memory too: what reads it sees two bytes an element."""
    x = cd.tensor([1.5, -2.0, 0.25], dtype=cd.bfloat16)
    bound = cd.tensor(0.5, dtype=cd.bfloat16)
    got = getattr(x.clone(), form)(0.5)
    assert got.dtype is cd.bfloat16
    assert got.numpy().dtype.itemsize == 2
    assert got.tolist() == getattr(x.clone(), form)(bound).tolist()


def test_clamp_takes_numbers_and_tensors_as_bounds() -> None:
    """Mixed, broadcast, by keyword and in place; a floating bound makes integers floating; clip is its other name."""
    x = cd.tensor([[1, 5, 9]])
    assert cd.clamp(x, 2, cd.tensor([[8], [4]])).tolist() == [[2, 5, 8], [2, 4, 4]]
    assert x.clip(max=4.5).tolist() == [[1.0, 4.5, 4.5]]
    assert cd.clamp_min(x, cd.tensor([6])).tolist() == [[6, 6, 9]]
    assert x.clone().clamp_(min=cd.tensor(3), max=7).tolist() == [[3, 5, 7]]
    assert x.clone().clamp_max_(4).tolist() == [[1, 4, 4]]
    out = cd.empty(1, 3, dtype=cd.int64)
    assert cd.clip(x, 2, 6, out=out) is out
    assert out.tolist() == [[2, 5, 6]]
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max' must not be None"):
        cd.clamp(x)
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
        cd.clamp(cd.tensor(1j), 0)


def test_bounds_get_the_gradient_of_what_they_replace() -> None:
    """An element on its bound keeps its own."""
    x = cd.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    low, high = cd.tensor(2.0, requires_grad=True), cd.tensor([3.0], requires_grad=True)
    x.clamp(low, high).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 1.0, 0.0]
    assert low.grad.item() == 1.0
    assert high.grad.tolist() == [1.0]
