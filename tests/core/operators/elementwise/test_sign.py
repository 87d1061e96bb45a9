"""Absolute values and signs."""

from __future__ import annotations

import math

import candelabra as cd
import pytest

INF, NAN = math.inf, math.nan


def test_copysign_takes_numbers_and_integers() -> None:
    """Integers become floating; the derivative is a ratio of signs, 0 at 0."""
    assert cd.copysign(cd.tensor([1, -2]), -1).tolist() == [-1.0, -2.0]
    x = cd.tensor([0.0, 3.0, -3.0], requires_grad=True)
    x.copysign(-1.0).sum().backward()
    assert x.grad.tolist() == [0.0, -1.0, 1.0]


def test_signbit_is_set_below_zero_and_at_minus_zero() -> None:
    """In every real dtype; complex ones are refused."""
    assert cd.signbit(cd.tensor([0.0, -0.0, -1.0, 1.0])).tolist() == [False, True, True, False]
    assert cd.tensor([-0.0, 1.0], dtype=cd.bfloat16).signbit().tolist() == [True, False]
    assert cd.signbit(cd.tensor([-1, 1])).tolist() == [True, False]
    assert cd.signbit(cd.tensor([True, False])).tolist() == [False, False]
    with pytest.raises(NotImplementedError, match='"signbit" not implemented'):
        cd.signbit(cd.tensor(1j))


def test_heaviside_is_a_step() -> None:
    """``values`` at 0; NaN is below; the dtypes must agree."""
    x = cd.tensor([-1.0, 0.0, -0.0, 2.0, NAN])
    assert cd.heaviside(x, cd.tensor(0.5)).tolist() == [0.0, 0.5, 0.5, 1.0, 0.0]
    assert cd.tensor([0, 3]).heaviside(cd.tensor([7])).tolist() == [7, 1]
    with pytest.raises(RuntimeError, match="heaviside is not yet implemented for tensors with different dtypes"):
        cd.heaviside(x, cd.tensor(1))


def test_abs_in_place_refuses_complex_tensors() -> None:
    """Its result is real."""
    with pytest.raises(RuntimeError, match="In-place abs is not supported for complex tensors"):
        cd.tensor([1j]).abs_()


def test_bools_have_a_sign_and_a_square() -> None:
    """The sign and the conjugate are bool, in place too; the square is int64."""
    x = cd.tensor([True, False])
    assert x.sign().dtype is cd.bool
    assert x.sgn().tolist() == [True, False]
    assert x.sign_().conj_physical_().tolist() == [True, False]
    assert x.square().dtype is cd.int64
