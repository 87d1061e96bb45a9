"""Sums, differences, products and combined operators."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest


def test_rsub_subtracts_from_the_other() -> None:
    """The result is ``other - alpha * input``; the input must be a tensor."""
    assert cd.rsub(cd.tensor([1.0, 2.0]), 5, alpha=2).tolist() == [3.0, 1.0]
    with pytest.raises(TypeError, match=r"argument 'input' .* must be Tensor, not int"):
        cd.rsub(2, cd.ones(1))


def test_integers_take_no_broken_multiples_and_no_quotients() -> None:
    """``alpha`` must be an integer for integers, and ``addcdiv`` refuses them."""
    x = cd.tensor([1, 2])
    assert cd.add(x, x, alpha=3).tolist() == [4, 8]
    for function in (cd.add, cd.sub, cd.Tensor.add_, cd.Tensor.subtract_):
        with pytest.raises(RuntimeError, match="argument alpha must not be a floating point number"):
            function(x, x, alpha=1.5)
    with pytest.raises(NotImplementedError, match="\"addcdiv\" not implemented for 'Long'"):
        cd.addcdiv(x, x, x)


def test_lerp_ends_exactly_at_its_ends() -> None:
    """Weight 0 gives the start and weight 1 the end exactly; half types are rounded once."""
    start, end = cd.tensor([1e8, -1.0]), cd.tensor([1.0, 1e-8])
    assert start.lerp(end, 0.0).tolist() == start.tolist()
    assert start.lerp(end, 1.0).tolist() == end.tolist()
    assert cd.lerp(start, end, cd.tensor([1.0, 0.0])).tolist() == [1.0, -1.0]
    half = cd.lerp(cd.ones(3).bfloat16(), cd.full((3,), 2.0).bfloat16(), 0.25)
    assert half.dtype is cd.bfloat16
    assert half.tolist() == [1.25] * 3
    with pytest.raises(NotImplementedError, match="\"lerp\" not implemented for 'Long'"):
        cd.lerp(cd.tensor(1), cd.tensor(2), 1)


def test_products_and_quotients_are_added_with_one_rounding_of_halves() -> None:
    """``addcmul`` and ``addcdiv`` in float16 equal the rounded float32 result."""
    rng = np.random.default_rng(42)
    x, a, b = (cd.tensor(rng.uniform(0.5, 2, (4, 5))).half() for _ in range(3))
    for function in (cd.addcmul, cd.addcdiv):
        want = function(x.float(), a.float(), b.float(), value=-0.75).half()
        assert function(x, a, b, value=-0.75).tolist() == want.tolist()
    assert cd.addcmul(cd.tensor([1, 2]), cd.tensor([2]), cd.tensor([3]), value=2).tolist() == [13, 14]


def test_a_factor_is_converted_to_the_dtype_of_integers_and_bools() -> None:
    """As in PyTorch, ``addcmul`` truncates 1.5 to 1 for integers; for bools every number except 0 is True."""
    whole = cd.tensor([5, -7], dtype=cd.int32)
    assert cd.addcmul(whole, whole, whole, value=1.5).tolist() == [30, 42]
    assert cd.addcmul(whole, whole, whole, value=-1.5).tolist() == [-20, -56]
    x, a, b = (cd.tensor(v) for v in ([True, False, False], [True, True, False], [True, True, True]))
    for value, want in ((-1, [True, True, False]), (1.5, [True, True, False]), (0, [True, False, False])):
        assert cd.addcmul(x, a, b, value=value).tolist() == want


def test_positive_is_the_tensor_itself() -> None:
    """``+x`` and ``positive(x)`` return the tensor, with and without a graph, and refuse bools."""
    x = cd.ones(2, requires_grad=True)
    assert cd.positive(x) is x
    assert +x is x
    assert +(y := x * 2) is y
    out = cd.empty(2)
    assert cd.positive(cd.ones(2), out=out) is out
    with pytest.raises(RuntimeError, match=r"The `\+` operator, on a bool tensor is not supported"):
        cd.positive(cd.tensor([True]))


def test_copysign_takes_numbers_and_integers() -> None:
    """Integers are promoted to floats; the derivative is a ratio of signs, and 0 at 0."""
    assert cd.copysign(cd.tensor([1, -2]), -1).tolist() == [-1.0, -2.0]
    x = cd.tensor([0.0, 3.0, -3.0], requires_grad=True)
    x.copysign(-1.0).sum().backward()
    assert x.grad.tolist() == [0.0, -1.0, 1.0]


def test_signbit_is_set_below_zero_and_at_minus_zero() -> None:
    """Every real dtype is supported; complex ones are refused."""
    assert cd.signbit(cd.tensor([0.0, -0.0, -1.0, 1.0])).tolist() == [False, True, True, False]
    assert cd.tensor([-0.0, 1.0], dtype=cd.bfloat16).signbit().tolist() == [True, False]
    assert cd.signbit(cd.tensor([-1, 1])).tolist() == [True, False]
    assert cd.signbit(cd.tensor([True, False])).tolist() == [False, False]
    with pytest.raises(NotImplementedError, match='"signbit" not implemented'):
        cd.signbit(cd.tensor(1j))


def test_heaviside_is_a_step() -> None:
    """The result at 0 is ``values``; NaN gives 0; the dtypes must agree."""
    x = cd.tensor([-1.0, 0.0, -0.0, 2.0, float("nan")])
    assert cd.heaviside(x, cd.tensor(0.5)).tolist() == [0.0, 0.5, 0.5, 1.0, 0.0]
    assert cd.tensor([0, 3]).heaviside(cd.tensor([7])).tolist() == [7, 1]
    with pytest.raises(RuntimeError, match="heaviside is not yet implemented for tensors with different dtypes"):
        cd.heaviside(x, cd.tensor(1))


def test_abs_in_place_refuses_complex_tensors() -> None:
    """The result is real and does not fit the tensor."""
    with pytest.raises(RuntimeError, match="In-place abs is not supported for complex tensors"):
        cd.tensor([1j]).abs_()


def test_bools_have_a_sign_and_a_square() -> None:
    """The sign and the conjugate of bools are bools, in place too; the square is int64."""
    x = cd.tensor([True, False])
    assert x.sign().dtype is cd.bool
    assert x.sgn().tolist() == [True, False]
    assert x.sign_().conj_physical_().tolist() == [True, False]
    assert x.square().dtype is cd.int64
