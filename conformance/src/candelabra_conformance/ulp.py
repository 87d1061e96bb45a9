"""Errors in units in the last place (ULP): how many representable numbers lie between two values.

The unit is the distance of neighbouring numbers of the dtype at the value that was wanted; below the smallest normal
number it is that of the subnormal ones. Source: the definition of J.-M. Muller, "On the definition of ulp(x)" (2005),
with the exponent of the wanted value.
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
"""Bits of the fraction, the exponent of the smallest normal number, the largest exponent."""


def ulp_of(values: Any, d: dtype) -> Array:
    """One unit in the last place of a real floating dtype at each of ``values``, as float64.

    Infinities and NaN count as the largest exponent.
    """
    fraction, least, most = EXPONENTS[d.to_real().name]
    _, exponents = np.frexp(np.abs(np.asarray(values, np.float64)))
    exponents = np.where(np.equal(values, 0), least, exponents.astype(np.int64) - 1)  # frexp gives 0 the exponent 0
    exponents = np.where(np.isfinite(values), np.clip(exponents, least, most), most)
    unit: Array = np.ldexp(1.0, exponents - fraction)
    return unit


def ulp_error(actual: Any, want: Any, d: dtype) -> Array:
    """The error of each element of ``actual`` in units in the last place of ``d`` at ``want``, as float64.

    ``want`` may have a higher precision than ``d``; a fraction of a unit then shows. The greater of the parts counts of
    a complex number. Two NaNs, and equal infinities, have no error; a NaN for a number has an infinite one, and so has
    an infinity for a number, unless that number is so large that it nearly rounds to it. Of integers and bools it is
    the difference.
    """
    found, wanted = np.asarray(actual), np.asarray(want)
    if d.category == COMPLEX:
        parts = [ulp_error(getattr(found, p), getattr(wanted, p), d.to_real()) for p in ("real", "imag")]
        return np.asarray(np.maximum(*parts))
    if d.category < FLOATING:
        return _integer_error(found, wanted)
    if np.iscomplexobj(found) or np.iscomplexobj(wanted):
        raise TypeError(f"ulp_error(): complex numbers cannot be measured in units of {d}")
    return _floating_error(found.astype(np.float64), wanted.astype(np.float64), d)


def _floating_error(found: Array, wanted: Array, d: dtype) -> Array:
    with np.errstate(all="ignore"):
        unit = ulp_of(wanted, d)
        # Halved, so that the number after the largest exists in float64 too; a subnormal's half would be lost.
        top = 2.0 ** EXPONENTS[d.name][2]
        large = (np.abs(wanted) >= top) | np.isinf(wanted)
        near = (_halved(found, top) - _halved(wanted, top)) / (unit / 2)
        error = np.abs(np.where(large & (np.isinf(found) ^ np.isinf(wanted)), near, (found - wanted) / unit))
        overflown = wanted.astype(host_dtype(d)).astype(np.float64)
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted)) | (np.isinf(overflown) & (found == overflown))
    return np.asarray(np.where(same, 0.0, np.where(np.isnan(error), np.inf, error)))


def _halved(values: Array, top: float) -> Array:
    """Half of each; infinities, and what is beyond, are the number that would follow the largest."""
    return np.where(np.isnan(values), np.nan, np.clip(values / 2, -top, top))


def _integer_error(found: Array, wanted: Array) -> Array:
    if found.dtype == wanted.dtype and found.dtype.kind in "iu":
        # The difference of two int64 may be as large as a uint64, which is what the wrapped difference is.
        greater, less = np.maximum(found, wanted), np.minimum(found, wanted)
        with np.errstate(over="ignore"):
            return np.asarray((greater.astype(np.uint64) - less.astype(np.uint64)).astype(np.float64))
    difference: Array = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
    return difference
