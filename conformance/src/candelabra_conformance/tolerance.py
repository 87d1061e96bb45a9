"""How far from the truth a result may lie, derived and not tuned.

A value computed in a dtype with unit roundoff eps differs from the exact one for two reasons: the result is rounded
(eps times the value), and each step on the way acts as if the inputs had been changed by some eps (backward error;
Higham, Accuracy and Stability of Numerical Algorithms, 2002, ch. 1). How much a change of the inputs changes the
result, the conditioning, is found by changing them: the oracle is run on inputs perturbed by one eps each, and how far
its answer moves is the *spread*. A sum of n terms in pairs takes log2(n) steps (ibid., ch. 4).

    bound = SAFETY * (eps * |want| + (1 + log2(n)) * spread) + tiny

``SAFETY`` is the one free number of the suite, the same for every operator, dtype and device.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from candelabra.dtypes import dtype

from candelabra_conformance.numpy_dtypes import host_dtype
from candelabra_conformance.transport import Array

SAFETY: Final = 8.0
DIGITS: Final = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
"""Stored bits of the significand (IEEE 754-2019, table 3.5; bfloat16 is the upper half of a float32)."""
EXPONENT: Final = {"float16": -14, "bfloat16": -126, "float32": -126, "float64": -1022}
"""The exponent of the smallest normal number."""


CORRECTLY_ROUNDED: Final = frozenset(
    {"add", "sub", "mul", "div", "sqrt", "cast", "floor", "ceil", "trunc", "nextafter"}
)
"""Operators whose result in a real floating dtype is the exact one, rounded once to the nearest (IEEE 754-2019, 5.3.1
and 5.4.1).

The oracle's float64 rounded to a narrower dtype is that: it has more than twice its digits and two (Figueroa, When is
double rounding innocuous?, 1995).
"""


def _parts(d: dtype) -> str:
    return d.to_real().name if d.is_complex else d.name


def eps(d: dtype) -> float:
    """The distance from 1 to the next number; of a complex dtype that of its parts. 0 for integers."""
    name = _parts(d)
    return 2.0 ** -DIGITS[name] if name in DIGITS else 0.0


def tiny(d: dtype) -> float:
    """The smallest positive number, subnormal; 0 for integers."""
    name = _parts(d)
    return 2.0 ** (EXPONENT[name] - DIGITS[name]) if name in DIGITS else 0.0


def unit_in_last_place(want: Array, d: dtype) -> Array:
    """The distance between neighbouring numbers of the dtype around each value (float64)."""
    size = np.abs(np.asarray(want, dtype=np.complex128 if np.iscomplexobj(want) else np.float64))
    name = _parts(d)
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.where((size > 0) & np.isfinite(size), size, 1.0)))
    exponent = np.where((size > 0) & np.isfinite(size), exponent, EXPONENT[name])
    units: Array = np.exp2(np.maximum(exponent, EXPONENT[name]) - DIGITS[name])
    return units


def bound(want: Array, spread: Array | float, length: int, d: dtype) -> Array:
    """The largest permitted error of each element, as float64."""
    steps = 1.0 + np.log2(max(length, 1))
    with np.errstate(all="ignore"):
        allowed: Array = SAFETY * (eps(d) * np.abs(want) + steps * np.asarray(spread)) + SAFETY * tiny(d)
    return allowed


def rounded(want: Array, d: dtype) -> Array:
    """The exact values in the dtype: what a correctly rounded result is. Overflow gives infinity."""
    with np.errstate(all="ignore"):
        converted: Array = np.asarray(want).astype(host_dtype(d))
    return converted


def wide(values: Array) -> Array:
    """float64 or complex128 of the same values; integers and bools as they are."""
    kind = values.dtype.kind
    if kind in "biu":
        return values
    return values.astype(np.complex128 if kind == "c" else np.float64)


def representable(want: Array, d: dtype) -> bool:
    """Whether every value is a number of the dtype."""
    back: Any = wide(rounded(want, d))
    return bool(np.array_equal(back, want, equal_nan=True))
