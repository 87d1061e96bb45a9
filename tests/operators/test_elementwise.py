"""Element by element: parts of floating-point numbers, integers, logarithms, bounds, and questions about tensors."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.operator.record import OPERATORS

INF, NAN = math.inf, math.nan
SPECIAL = [0.0, -0.0, 1.5, -2.75, INF, -INF, NAN, 1e-40]


def same(got: Any, want: Any) -> None:
    """The same dtype, shape, values and signs, NaN equal to NaN."""
    array = got.detach().numpy()
    want = np.asarray(want)
    assert array.dtype == want.dtype
    np.testing.assert_array_equal(array, want)
    if want.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(array) & ~np.isnan(array), np.signbit(want) & ~np.isnan(want))


# -- parts of numbers -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["copysign", "fmax", "fmin", "nextafter", "hypot"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_two_floats_give_what_numpy_gives(name: str, dtype: str) -> None:
    """At all pairs of special values."""
    x = np.array(SPECIAL, dtype)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x[:, None], x[None, :])
    got = getattr(cd, name)(cd.tensor(x)[:, None], cd.tensor(x)[None, :])
    if name == "nextafter":  # of equal numbers C gives the second one, NumPy's float16 the first: 0.0 and -0.0
        want = np.where(x[:, None] == x[None, :], x[None, :], want)
    if name in ("fmax", "fmin"):  # which of 0.0 and -0.0 is the larger is nobody's promise
        got, want = got + 0.0, want + 0.0
    same(got, want)


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


def test_the_first_of_equals_gets_the_gradient_of_fmax_and_fmin() -> None:
    """And the number that is beside a NaN."""
    for function in (cd.fmax, cd.fmin):
        x = cd.tensor([1.0, NAN, 2.0], requires_grad=True)
        y = cd.tensor([1.0, 5.0, NAN], requires_grad=True)
        function(x, y).sum().backward()
        assert x.grad.tolist() == [1.0, 0.0, 1.0]
        assert y.grad.tolist() == [0.0, 1.0, 0.0]


def test_heaviside_is_a_step() -> None:
    """``values`` at 0; NaN is below; the dtypes must agree."""
    x = cd.tensor([-1.0, 0.0, -0.0, 2.0, NAN])
    assert cd.heaviside(x, cd.tensor(0.5)).tolist() == [0.0, 0.5, 0.5, 1.0, 0.0]
    assert cd.tensor([0, 3]).heaviside(cd.tensor([7])).tolist() == [7, 1]
    with pytest.raises(RuntimeError, match="heaviside is not yet implemented for tensors with different dtypes"):
        cd.heaviside(x, cd.tensor(1))


def test_frexp_takes_numbers_apart() -> None:
    """Mantissa and int32 exponent; ldexp puts them together; ``out=`` takes a pair."""
    x = cd.tensor([0.0, 1.0, -12.5, 1e-40, 3e38])
    mantissa, exponent = cd.frexp(x)
    assert exponent.dtype is cd.int32
    assert mantissa.tolist()[:3] == [0.0, 0.5, -0.78125]
    assert exponent.tolist()[:3] == [0, 1, 4]
    parts = x.frexp()
    assert cd.ldexp(parts.mantissa[:4], parts.exponent[:4]).tolist() == x[:4].tolist()
    out = (cd.empty(0), cd.empty(0, dtype=cd.int32))
    assert cd.frexp(x, out=out)[1].tolist() == exponent.tolist()
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        cd.frexp(cd.tensor([1]))


def test_ldexp_scales_by_powers_of_two() -> None:
    """Integers become floating; a half stays one beside integers; in place they may not be cast back."""
    assert cd.ldexp(cd.tensor([3, 5]), cd.tensor([1, -1])).tolist() == [6.0, 2.5]
    assert cd.ldexp(cd.ones(2).half(), cd.tensor([1, 2])).dtype is cd.float16
    x = cd.tensor([1.0, 2.0])
    assert x.ldexp_(cd.tensor([2, 3])) is x
    assert x.tolist() == [4.0, 16.0]
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        cd.tensor([1]).ldexp_(cd.tensor([2]))


def test_frac_keeps_the_sign() -> None:
    """``input - trunc(input)``."""
    assert cd.tensor([1.25, -2.75]).frac().tolist() == [0.25, -0.75]
    x = cd.tensor([1.25, -2.75], requires_grad=True)
    x.frac().sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("dtype", [cd.float16, cd.bfloat16, cd.float32, cd.float64])
def test_nan_to_num_replaces_what_is_not_finite(dtype: Any) -> None:
    """By 0 and the dtype's limits, or what is asked for; the body agrees with the kernel."""
    x = cd.tensor([NAN, INF, -INF, 1.5], dtype=dtype)
    limits = cd.finfo(dtype)
    assert x.nan_to_num().tolist() == [0.0, limits.max, limits.min, 1.5]
    assert cd.nan_to_num(x, 1.0, posinf=2.0, neginf=-2.0).tolist() == [1.0, 2.0, -2.0, 1.5]
    body = OPERATORS["nan_to_num"].body
    assert body(x, None, 2.0, None).tolist() == cd.nan_to_num(x, posinf=2.0).tolist()
    assert x.nan_to_num_(nan=3.0) is x
    assert x.tolist() == [3.0, limits.max, limits.min, 1.5]


def test_nan_to_num_of_integers_and_complex_numbers() -> None:
    """Integers come back as a copy; of complex numbers each part is mended."""
    whole = cd.tensor([1, 2])
    assert whole.nan_to_num().tolist() == [1, 2]
    assert whole.nan_to_num().data_ptr() != whole.data_ptr()
    z = cd.tensor([complex(NAN, 2.0), complex(1.0, INF)], dtype=cd.complex64)
    want = [2j, complex(1.0, 7.0)]
    assert z.nan_to_num(posinf=7.0).tolist() == want
    assert OPERATORS["nan_to_num"].body(z, None, 7.0, None).tolist() == want
    assert OPERATORS["nan_to_num"].body(whole, None, None, None).tolist() == [1, 2]


def test_which_infinity_and_which_is_real() -> None:
    """Real dtypes have no imaginary part; complex ones have no sign."""
    x = cd.tensor([INF, -INF, NAN, 0.0])
    assert x.isposinf().tolist() == [True, False, False, False]
    assert x.isneginf().tolist() == [False, True, False, False]
    assert cd.isreal(x).tolist() == [True] * 4
    assert cd.isreal(cd.tensor([1 + 0j, 1j])).tolist() == [True, False]
    assert cd.isposinf(cd.tensor([1, 2])).tolist() == [False, False]
    for function in (cd.isposinf, cd.isneginf):
        with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
            function(cd.tensor(1j))


# -- integers ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["gcd", "lcm"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_divisors_and_multiples_are_numpys(name: str, dtype: str) -> None:
    """Of all pairs, zeros and negative numbers too; the bodies agree with the kernels."""
    x = np.array([0, 1, 2, 6, 4, 11] if dtype == "uint8" else [0, 1, -2, 6, -4, 11], dtype)
    a, b = cd.tensor(x)[:, None], cd.tensor(x)[None, :]
    want = getattr(np, name)(x[:, None], x[None, :])
    same(getattr(cd, name)(a, b), want)
    same(OPERATORS[name].body(a, b), want)
    same(getattr(cd.tensor(x), name + "_")(cd.tensor(x[::-1].copy())), getattr(np, name)(x, x[::-1]))
    with pytest.raises(NotImplementedError, match=f"\"{name}\" not implemented for 'Bool': it takes integer dtypes"):
        getattr(cd, name)(cd.tensor(True), cd.tensor(True))
    with pytest.raises(NotImplementedError, match=f"\"{name}\" not implemented for 'Float'"):
        getattr(cd, name)(cd.ones(2), cd.ones(2))


# -- logarithms, degrees, powers --------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_sums_of_exponentials_are_numpys(name: str) -> None:
    """Far from where the exponentials overflow, and at infinities; the body agrees with the kernel."""
    values = np.array([0.0, 1.0, -3.5, 1000.0, -1000.0, INF, -INF])
    with np.errstate(all="ignore"):
        want = getattr(np, name)(values[:, None], values[None, :])
    x, y = cd.tensor(values)[:, None], cd.tensor(values)[None, :]
    np.testing.assert_allclose(getattr(cd, name)(x, y).numpy(), want, rtol=1e-13)
    np.testing.assert_allclose(OPERATORS[name].body(x, y).numpy(), want, rtol=1e-13)
    np.testing.assert_allclose(getattr(cd, name)(x.float(), y.float()).numpy(), want, rtol=1e-6, atol=1e-30)


def test_sums_of_complex_exponentials() -> None:
    """``logaddexp`` takes them; infinite real parts do not make NaN."""
    x, y = np.array([1 + 1j, 500 - 2j, 0.5j]), np.array([2 - 1j, 499 + 1j, -3 + 0j])
    want = np.log(np.exp(x - 500) + np.exp(y - 500)) + 500
    for function in (cd.logaddexp, OPERATORS["logaddexp"].body):
        np.testing.assert_allclose(function(cd.tensor(x), cd.tensor(y)).numpy().real[1:2], want.real[1:2], rtol=1e-12)
        small = function(cd.tensor(x[[0, 2]]), cd.tensor(y[[0, 2]])).numpy()
        np.testing.assert_allclose(small, np.log(np.exp(x[[0, 2]]) + np.exp(y[[0, 2]])), rtol=1e-12)
        assert function(cd.tensor([complex(INF, 0)]), cd.tensor([complex(INF, 0)])).tolist() == [complex(INF, 0)]


def test_degrees_and_radians() -> None:
    """There and back; integers become floating."""
    assert cd.deg2rad(cd.tensor([180, 90])).tolist() == pytest.approx([math.pi, math.pi / 2])
    x = cd.tensor([0.5, -2.0])
    assert x.rad2deg().tolist() == pytest.approx(np.rad2deg([0.5, -2.0]).tolist())
    assert x.deg2rad_().rad2deg_().tolist() == pytest.approx([0.5, -2.0])


def test_float_power_is_double() -> None:
    """Whatever goes in; in place the tensor must be float64 already."""
    got = cd.float_power(cd.tensor([2, 3]), 2)
    assert got.dtype is cd.float64
    assert got.tolist() == [4.0, 9.0]
    assert cd.float_power(2, cd.tensor([3, 4], dtype=cd.int8)).tolist() == [8.0, 16.0]
    assert cd.float_power(cd.tensor([2.0]), 1j).dtype is cd.complex128
    x = cd.tensor([2.0], dtype=cd.float64)
    assert x.float_power_(3) is x
    assert x.tolist() == [8.0]
    with pytest.raises(RuntimeError, match="has dtype Float but the operation's result requires dtype Double"):
        cd.ones(2).float_power_(2)
    with pytest.raises(TypeError, match="at least one argument must be a Tensor"):
        cd.float_power(2, 3)


def test_rsub_subtracts_from_the_other() -> None:
    """``other - alpha * input``; the input is a tensor."""
    assert cd.rsub(cd.tensor([1.0, 2.0]), 5, alpha=2).tolist() == [3.0, 1.0]
    with pytest.raises(TypeError, match=r"argument 'input' .* must be Tensor, not int"):
        cd.rsub(2, cd.ones(1))


@pytest.mark.parametrize(
    "name", ["floor_divide", "remainder", "fmod", "pow", "bitwise_left_shift", "bitwise_right_shift"]
)
def test_bools_are_no_numbers_to_divide_raise_or_shift(name: str) -> None:
    """Two bools are refused; beside a number they are integers."""
    yes = cd.tensor([True])
    with pytest.raises(NotImplementedError, match=f"\"{name}\" not implemented for 'Bool'"):
        getattr(cd, name)(yes, yes)
    got = getattr(cd, name)(yes, 1)
    assert got.dtype is cd.int64
    assert got.tolist() == [{"floor_divide": 1, "pow": 1, "bitwise_left_shift": 2}.get(name, 0)]


@pytest.mark.parametrize("form", ["clamp_min", "clamp_max", "copysign", "clamp_min_", "clamp_max_", "copysign_"])
def test_a_number_beside_bfloat16_leaves_it_bfloat16(form: str) -> None:
    """The result's memory too: what reads it sees two bytes an element."""
    x = cd.tensor([1.5, -2.0, 0.25], dtype=cd.bfloat16)
    bound = cd.tensor(0.5, dtype=cd.bfloat16)
    got = getattr(x.clone(), form)(0.5)
    assert got.dtype is cd.bfloat16
    assert got.numpy().dtype.itemsize == 2
    assert got.tolist() == getattr(x.clone(), form)(bound).tolist()
