"""Faults of integers, bools and complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.backend import Kernel

from candelabra_conformance.mutants.mutant import breaks

INTEGERS, SIGNED, UNSIGNED = "iu", "i", "u"


def _dtype(*values: Any) -> Any:
    return next(v.dtype for v in values if isinstance(v, np.ndarray))


@breaks("add", "mul", only=INTEGERS, caught_by="*/special/*int*")
def overflow_saturates(right: Kernel, x: Any, y: Any) -> Any:
    """A result beyond the dtype's range saturates instead of wrapping around."""
    out, d = right(x, y), _dtype(x, y)
    exact = (
        (np.asarray(x, object) + np.asarray(y, object))
        if right(np.array(2, d), np.array(3, d)) == 5
        else (np.asarray(x, object) * np.asarray(y, object))
    )
    info = np.iinfo(d)
    clipped = np.asarray([min(max(int(v), info.min), info.max) for v in np.ravel(exact)], d)
    return clipped.reshape(out.shape)


@breaks("floor_divide", only=SIGNED, caught_by="floor_divide/*/int*")
def floor_division_cuts(right: Kernel, x: Any, y: Any) -> Any:
    """An integer quotient is rounded to 0 instead of down."""
    out = right(x, y)
    inexact = np.asarray(out * y != x) & ((np.asarray(x) < 0) != (np.asarray(y) < 0))
    return np.where(inexact, out + 1, out).astype(out.dtype)


@breaks("remainder", caught_by="remainder/*")
def remainder_has_the_dividends_sign(right: Kernel, x: Any, y: Any) -> Any:
    """The remainder is that of C, with the sign of the dividend."""
    out = right(x, y)
    return (
        np.where(np.isfinite(out), np.fmod(x, np.where(np.asarray(y) == 0, 1, y)), out).astype(out.dtype)
        if out.dtype.kind in "if"
        else out
    )


@breaks("bitwise_right_shift", only=SIGNED, caught_by="bitwise_right_shift/*/int*")
def negative_numbers_shift_in_zeros(right: Kernel, x: Any, y: Any) -> Any:
    """A shift to the right of a negative number does not keep the sign."""
    d = _dtype(x, y)
    unsigned = np.dtype(f"u{d.name}")
    return right(np.asarray(x, d).view(unsigned), np.asarray(y, d).view(unsigned)).view(d)


@breaks("lt", "gt", "maximum", only=UNSIGNED, caught_by="*/*/uint*")
def unsigned_numbers_compare_as_signed(right: Kernel, x: Any, y: Any) -> Any:
    """The upper half of an unsigned dtype compares as negative."""
    d = _dtype(x, y)
    signed = np.dtype(d.name[1:])
    out = right(*(np.asarray(a).astype(d).view(signed) for a in (x, y)))
    return out if out.dtype == bool else out.view(d)


@breaks("cast", only=UNSIGNED, caught_by="cast/*/uint*")
def unsigned_numbers_cast_as_signed(right: Kernel, x: Any, dtype: Any) -> Any:
    """The upper half of uint8 is cast to negative floats and integers."""
    return right(x.view(np.int8), dtype) if x.dtype == np.uint8 and dtype.name != "uint8" else right(x, dtype)


@breaks("add", "sub", "sum", only=INTEGERS, caught_by="*/special/int64* */special/uint64* */value/int64*")
def large_integers_go_through_floats(right: Kernel, *args: Any) -> Any:
    """64-bit integers are computed in float64, which has 53 bits."""
    out = right(*args)
    if out.dtype.itemsize < 8 or out.dtype.kind not in INTEGERS:
        return out
    rounded = out.astype(np.float64)
    inside = np.abs(rounded) < 2.0**63
    return np.where(inside, np.where(inside, rounded, 0).astype(out.dtype), out)


@breaks("pow", only=INTEGERS, caught_by="pow/*/*int*")
def powers_of_integers_go_through_floats(right: Kernel, x: Any, y: Any) -> Any:
    """An integer power is computed in float32 and rounded."""
    out = right(x, y)
    rounded = np.power(np.asarray(x, np.float32), np.asarray(y, np.float32))
    fits = np.isfinite(rounded) & (np.abs(rounded) < 2.0**31)
    return np.where(fits, np.where(fits, rounded, 0).astype(np.int64).astype(out.dtype), out)


@breaks("abs", "neg", only=SIGNED, caught_by="*/special/int*")
def the_least_integer_saturates(right: Kernel, x: Any) -> Any:
    """The negative of the least integer is the greatest, instead of itself."""
    return np.where(x == np.iinfo(x.dtype).min, np.asarray(np.iinfo(x.dtype).max, x.dtype), right(x))


@breaks("bitwise_not", only="b", caught_by="bitwise_not/*/bool*")
def not_of_a_bool_flips_all_bits(right: Kernel, x: Any) -> Any:
    """The complement of True is 254, which is true."""
    return np.ones_like(x)


@breaks("sum", "prod", only="b", caught_by="sum/*/bool* prod/*/bool*")
def bools_count_as_255(right: Kernel, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """True has all its bits set and is summed as 255."""
    return right(x.astype(np.uint8) * np.uint8(255), dim, keepdim, dtype).astype(right(x, dim, keepdim, dtype).dtype)


@breaks("add", only="b", caught_by="add/*/bool*")
def true_and_true_is_false(right: Kernel, x: Any, y: Any) -> Any:
    """Bools are added in one bit."""
    return np.logical_xor(x, y)


@breaks("mul", only="c", caught_by="mul/value/complex*")
def complex_products_lose_a_sign(right: Kernel, x: Any, y: Any) -> Any:
    """The product of imaginary parts is added to the real part."""
    out = np.array(right(x, y))
    out.real = np.real(x) * np.real(y) + np.imag(x) * np.imag(y)
    return out


@breaks("vdot", "linalg_vecdot", only="c", caught_by="*/value/complex*")
def inner_products_do_not_conjugate(right: Kernel, x: Any, *rest: Any) -> Any:
    """The first factor is not conjugated."""
    return right(x.conj(), *rest)


@breaks("matmul", only="c", caught_by="matmul/value/complex*")
def complex_matrices_are_conjugated(right: Kernel, x: Any, y: Any) -> Any:
    """The second factor is conjugated, as in a product with an adjoint."""
    return right(x, y.conj())


@breaks("eq", only="c", caught_by="eq/*/complex*")
def complex_numbers_compare_by_real_part(right: Kernel, x: Any, y: Any) -> Any:
    """The imaginary part is ignored."""
    return right(np.asarray(np.real(x), _dtype(x, y)), np.asarray(np.real(y), _dtype(x, y)))


@breaks("sqrt", only="c", caught_by="sqrt/*/complex*")
def complex_roots_take_the_wrong_branch(right: Kernel, x: Any) -> Any:
    """The root below the real axis has a positive imaginary part."""
    out = right(x)
    return np.where(x.imag < 0, out.conj(), out)


@breaks("gcd", "lcm", only=SIGNED, caught_by="*/*/int*")
def divisors_keep_signs(right: Kernel, x: Any, y: Any) -> Any:
    """Common divisors and multiples have the sign of the first number."""
    out = right(x, y)
    return np.where(np.broadcast_to(np.asarray(x) < 0, out.shape), -out, out).astype(out.dtype)
