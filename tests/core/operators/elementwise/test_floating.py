"""The representation of floating-point numbers: mantissa, exponent, adjacent numbers, NaN and infinities."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._records.registry import OPERATORS

INF, NAN = math.inf, math.nan
SPECIAL = [0.0, -0.0, 1.5, -2.75, INF, -INF, NAN, 1e-40]


def same(got: Any, want: Any) -> None:
    """Assert the same dtype, shape, values and signs, with NaN equal to NaN."""
    array = got.detach().numpy()
    want = np.asarray(want)
    assert array.dtype == want.dtype
    np.testing.assert_array_equal(array, want)
    if want.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(array) & ~np.isnan(array), np.signbit(want) & ~np.isnan(want))


@pytest.mark.parametrize("name", ["copysign", "fmax", "fmin", "nextafter", "hypot"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_two_floats_give_what_numpy_gives(name: str, dtype: str) -> None:
    """All pairs of special values agree."""
    x = np.array(SPECIAL, dtype)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x[:, None], x[None, :])
    got = getattr(cd, name)(cd.tensor(x)[:, None], cd.tensor(x)[None, :])
    if name == "nextafter":  # For equal numbers C returns the second one, NumPy's float16 the first: 0.0 and -0.0.
        want = np.where(x[:, None] == x[None, :], x[None, :], want)
    if name in ("fmax", "fmin"):  # It is unspecified which of 0.0 and -0.0 is larger.
        got, want = got + 0.0, want + 0.0
    same(got, want)


def test_frexp_returns_mantissa_and_exponent() -> None:
    """frexp returns a mantissa and an int32 exponent; ldexp inverts it; ``out=`` takes a pair."""
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
    """Integers are promoted to floats; a half type is kept with integers; an in-place result must fit the dtype."""
    assert cd.ldexp(cd.tensor([3, 5]), cd.tensor([1, -1])).tolist() == [6.0, 2.5]
    assert cd.ldexp(cd.ones(2).half(), cd.tensor([1, 2])).dtype is cd.float16
    x = cd.tensor([1.0, 2.0])
    assert x.ldexp_(cd.tensor([2, 3])) is x
    assert x.tolist() == [4.0, 16.0]
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        cd.tensor([1]).ldexp_(cd.tensor([2]))


@pytest.mark.parametrize("dtype", [cd.float16, cd.bfloat16, cd.float32, cd.float64])
def test_nan_to_num_replaces_what_is_not_finite(dtype: Any) -> None:
    """The replacements are 0 and the dtype's limits by default; the body agrees with the kernel."""
    x = cd.tensor([NAN, INF, -INF, 1.5], dtype=dtype)
    limits = cd.finfo(dtype)
    assert x.nan_to_num().tolist() == [0.0, limits.max, limits.min, 1.5]
    assert cd.nan_to_num(x, 1.0, posinf=2.0, neginf=-2.0).tolist() == [1.0, 2.0, -2.0, 1.5]
    body = OPERATORS["nan_to_num"].body
    assert body(x, None, 2.0, None).tolist() == cd.nan_to_num(x, posinf=2.0).tolist()
    assert x.nan_to_num_(nan=3.0) is x
    assert x.tolist() == [3.0, limits.max, limits.min, 1.5]


def test_nan_to_num_of_integers_and_complex_numbers() -> None:
    """Integers are copied; the parts of complex numbers are replaced separately."""
    whole = cd.tensor([1, 2])
    assert whole.nan_to_num().tolist() == [1, 2]
    assert whole.nan_to_num().data_ptr() != whole.data_ptr()
    z = cd.tensor([complex(NAN, 2.0), complex(1.0, INF)], dtype=cd.complex64)
    want = [2j, complex(1.0, 7.0)]
    assert z.nan_to_num(posinf=7.0).tolist() == want
    assert OPERATORS["nan_to_num"].body(z, None, 7.0, None).tolist() == want
    assert OPERATORS["nan_to_num"].body(whole, None, None, None).tolist() == [1, 2]


def test_which_infinity_and_which_is_real() -> None:
    """A real dtype has no imaginary part; isposinf and isneginf refuse complex dtypes."""
    x = cd.tensor([INF, -INF, NAN, 0.0])
    assert x.isposinf().tolist() == [True, False, False, False]
    assert x.isneginf().tolist() == [False, True, False, False]
    assert cd.isreal(x).tolist() == [True] * 4
    assert cd.isreal(cd.tensor([1 + 0j, 1j])).tolist() == [True, False]
    assert cd.isposinf(cd.tensor([1, 2])).tolist() == [False, False]
    for function in (cd.isposinf, cd.isneginf):
        with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
            function(cd.tensor(1j))
