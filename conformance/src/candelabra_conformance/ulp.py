"""Errors in units in the last place (ULP): the number of representable numbers between two values.

The unit is the distance between neighbouring numbers of the dtype at the expected value; for values below the smallest
normal number it is that of the subnormal numbers. Source: the definition of J.-M. Muller, "On the definition of ulp(x)"
(2005), with the exponent of the expected value.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from candelabra.dtypes import COMPLEX, FLOATING, dtype

from candelabra_conformance.numpy_dtypes import host_dtype

Array = np.ndarray[Any, Any]
EXPONENTS: Final[dict[str, tuple[int, int, int]]] = {
    "float16": (10, -14, 15), "bfloat16": (7, -126, 127), "float32": (23, -126, 127), "float64": (52, -1022, 1023),
}  # fmt: skip
"""The number of fraction bits, the exponent of the smallest normal number, and the largest exponent."""


def ulp_of(values: Any, d: dtype) -> Array:
    """Return one unit in the last place of a real floating dtype at each of ``values``, as float64.

    Infinities and NaN have the largest exponent.
    """
    fraction, least, most = EXPONENTS[d.to_real().name]
    _, exponents = np.frexp(np.abs(np.asarray(values, np.float64)))
    exponents = np.where(np.equal(values, 0), least, exponents.astype(np.int64) - 1)  # frexp gives 0 the exponent 0
    exponents = np.where(np.isfinite(values), np.clip(exponents, least, most), most)
    unit: Array = np.ldexp(1.0, exponents - fraction)
    return unit


def ulp_error(actual: Any, want: Any, d: dtype) -> Array:
    """Return the error of each element of ``actual`` in units in the last place of ``d`` at ``want``, as float64.

    ``want`` may have a higher precision than ``d``; the error may then have a fraction. For complex numbers it is the
    larger error of the real and the imaginary part. Two NaNs, and equal infinities, have no error. The error of NaN
    instead of a number is infinite, as is that of an infinity, unless the number is so large that it nearly rounds to
    infinity. For integers and bools it is the difference.
    """
    computed, expected = np.asarray(actual), np.asarray(want)
    if d.category == COMPLEX:
        parts = [ulp_error(getattr(computed, p), getattr(expected, p), d.to_real()) for p in ("real", "imag")]
        return np.asarray(np.maximum(*parts))
    if d.category < FLOATING:
        return _integer_error(computed, expected)
    if np.iscomplexobj(computed) or np.iscomplexobj(expected):
        raise TypeError(f"ulp_error(): complex numbers cannot be measured in units of {d}")
    return _floating_error(computed.astype(np.float64), expected.astype(np.float64), d)


def _floating_error(computed: Array, expected: Array, d: dtype) -> Array:
    with np.errstate(all="ignore"):
        unit = ulp_of(expected, d)
        # Both are halved so that the number after the largest exists in float64 too; a subnormal would lose its last
        # bit.
        top = 2.0 ** EXPONENTS[d.name][2]
        large = (np.abs(expected) >= top) | np.isinf(expected)
        near = (_halved(computed, top) - _halved(expected, top)) / (unit / 2)
        error = np.abs(np.where(large & (np.isinf(computed) ^ np.isinf(expected)), near, (computed - expected) / unit))
        overflown = expected.astype(host_dtype(d)).astype(np.float64)
        same = (
            (computed == expected)
            | (np.isnan(computed) & np.isnan(expected))
            | (np.isinf(overflown) & (computed == overflown))
        )
    return np.asarray(np.where(same, 0.0, np.where(np.isnan(error), np.inf, error)))


def _halved(values: Array, top: float) -> Array:
    """Return half of each value. Infinities and larger values become half the number that would follow the largest."""
    return np.where(np.isnan(values), np.nan, np.clip(values / 2, -top, top))


def _integer_error(computed: Array, expected: Array) -> Array:
    if computed.dtype == expected.dtype and computed.dtype.kind in "iu":
        # The difference of two int64 may need a uint64, and the wrapped difference is its correct value.
        greater, less = np.maximum(computed, expected), np.minimum(computed, expected)
        with np.errstate(over="ignore"):
            return np.asarray((greater.astype(np.uint64) - less.astype(np.uint64)).astype(np.float64))
    difference: Array = np.abs(computed.astype(np.float64) - expected.astype(np.float64))
    return difference
