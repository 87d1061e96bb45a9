"""Maximum, minimum, clamp and comparisons."""

from __future__ import annotations

import math

import candelabra as cd
import pytest

INF, NAN = math.inf, math.nan


def test_the_first_of_equals_gets_the_gradient_of_fmax_and_fmin() -> None:
    """The operand that is not NaN gets it too."""
    for function in (cd.fmax, cd.fmin):
        x = cd.tensor([1.0, NAN, 2.0], requires_grad=True)
        y = cd.tensor([1.0, 5.0, NAN], requires_grad=True)
        function(x, y).sum().backward()
        assert x.grad.tolist() == [1.0, 0.0, 1.0]
        assert y.grad.tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("form", ["clamp_min", "clamp_max", "copysign", "clamp_min_", "clamp_max_", "copysign_"])
def test_a_number_combined_with_bfloat16_leaves_it_bfloat16(form: str) -> None:
    """The memory of the result has two bytes per element, too."""
    x = cd.tensor([1.5, -2.0, 0.25], dtype=cd.bfloat16)
    bound = cd.tensor(0.5, dtype=cd.bfloat16)
    got = getattr(x.clone(), form)(0.5)
    assert got.dtype is cd.bfloat16
    assert got.numpy().dtype.itemsize == 2
    assert got.tolist() == getattr(x.clone(), form)(bound).tolist()


def test_clamp_takes_numbers_and_tensors_as_bounds() -> None:
    """Bounds may be mixed, broadcast, passed by keyword and used in place; a floating bound promotes integers."""
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
    """An element equal to its bound keeps its gradient."""
    x = cd.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    low, high = cd.tensor(2.0, requires_grad=True), cd.tensor([3.0], requires_grad=True)
    x.clamp(low, high).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 1.0, 0.0]
    assert low.grad.item() == 1.0
    assert high.grad.tolist() == [1.0]


def test_equal_looks_at_shape_and_values() -> None:
    """Shapes must agree, dtypes may differ, NaN is not equal to NaN."""
    assert cd.equal(cd.ones(2), cd.ones(2, dtype=cd.float64))
    assert not cd.ones(2).equal(cd.ones(3))
    assert not cd.equal(cd.ones(2), cd.ones(2, 1))
    assert not cd.equal(cd.tensor(math.nan), cd.tensor(math.nan))
    assert cd.equal(cd.ones(0), cd.zeros(0))
    with pytest.raises(TypeError, match=r"equal\(\): argument 'other' \(position 2\) must be Tensor, not int"):
        cd.equal(cd.ones(2), 1)


def test_isclose_is_relative_to_the_second() -> None:
    """Tolerances are added; an infinity is close only to itself; NaN is close only with equal_nan."""
    a = cd.tensor([1.0, math.inf, math.inf, math.nan, 100.0])
    b = cd.tensor([1.0 + 1e-6, math.inf, -math.inf, math.nan, 101.0])
    assert cd.isclose(a, b).tolist() == [True, True, False, False, False]
    assert a.isclose(b, rtol=0.1, equal_nan=True).tolist() == [True, True, False, True, True]
    assert cd.isclose(a, b, rtol=0, atol=0).tolist() == [False, True, False, False, False]
    assert cd.isclose(cd.tensor([1, 2]), cd.tensor([1, 3]), rtol=0.5).tolist() == [True, True]
    assert cd.isclose(cd.tensor(True), cd.tensor(True)).item() is True
    assert cd.allclose(cd.ones(0), cd.zeros(0))
    assert not cd.allclose(a, b)
    with pytest.raises(RuntimeError, match="Float did not match Double"):
        cd.isclose(a, b.double())
    with pytest.raises(RuntimeError, match="rtol must be greater than or equal to zero, but got -1"):
        cd.isclose(a, b, rtol=-1)
    with pytest.raises(RuntimeError, match="atol must be greater than or equal to zero, but got -1"):
        cd.allclose(a, b, atol=-1)
