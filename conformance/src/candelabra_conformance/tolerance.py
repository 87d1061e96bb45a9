"""The largest permitted error of a result, which is derived and not tuned.

A value computed in a dtype with unit roundoff eps differs from the exact one for two reasons: the result is rounded
(eps times the value), and each step of the computation has the effect of a change of the inputs by some eps (backward
error; Higham, Accuracy and Stability of Numerical Algorithms, 2002, ch. 1). The conditioning, which is the effect of a
change of the inputs on the result, is measured: the oracle runs on inputs that are perturbed by one eps each, and the
change of its answer is the *sensitivity*. A pairwise sum of n terms takes log2(n) steps (ibid., ch. 4).

    bound = SAFETY * (eps * |want| + (1 + log2(n)) * sensitivity) + tiny

``SAFETY`` is the only free parameter of the suite, and is the same for every operator, dtype and device.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from candelabra.dtypes import dtype

from candelabra_conformance.numpy_dtypes import host_dtype
from candelabra_conformance.transport import Array

SAFETY: Final = 8.0
DIGITS: Final = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
"""The number of stored bits of the significand (IEEE 754-2019, table 3.5; bfloat16 is the upper half of a float32)."""
EXPONENT: Final = {"float16": -14, "bfloat16": -126, "float32": -126, "float64": -1022}
"""The exponent of the smallest normal number."""


CORRECTLY_ROUNDED: Final = frozenset(
    {"add", "sub", "mul", "div", "sqrt", "cast", "floor", "ceil", "trunc", "nextafter"}
)
"""The operators whose result in a real floating dtype is the exact result, rounded once to nearest (IEEE 754-2019,
5.3.1 and 5.4.1).

The oracle's float64 result rounded to a narrower dtype is the same: float64 has more than twice its digits plus two
(Figueroa, When is double rounding innocuous?, 1995).
"""


def _component_dtype(d: dtype) -> str:
    return d.to_real().name if d.is_complex else d.name


def eps(d: dtype) -> float:
    """Return the distance from 1 to the next number; for a complex dtype, that of its components; 0 for integers."""
    name = _component_dtype(d)
    return 2.0 ** -DIGITS[name] if name in DIGITS else 0.0


def tiny(d: dtype) -> float:
    """Return the smallest positive number, which is subnormal; 0 for integers."""
    name = _component_dtype(d)
    return 2.0 ** (EXPONENT[name] - DIGITS[name]) if name in DIGITS else 0.0


def smallest_normal(d: dtype) -> float:
    """Return the smallest positive number with all digits, for a complex dtype that of its components; 0 for
    integers."""
    name = _component_dtype(d)
    return 2.0 ** EXPONENT[name] if name in DIGITS else 0.0


def unit_in_last_place(want: Array, d: dtype) -> Array:
    """Return the distance between neighbouring numbers of the dtype around each value, as float64."""
    size = np.abs(np.asarray(want, dtype=np.complex128 if np.iscomplexobj(want) else np.float64))
    name = _component_dtype(d)
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.where((size > 0) & np.isfinite(size), size, 1.0)))
    exponent = np.where((size > 0) & np.isfinite(size), exponent, EXPONENT[name])
    units: Array = np.exp2(np.maximum(exponent, EXPONENT[name]) - DIGITS[name])
    return units


def bound(want: Array, sensitivity: Array | float, length: int, d: dtype) -> Array:
    """Return the largest permitted error of each element, as float64."""
    steps = 1.0 + np.log2(max(length, 1))
    with np.errstate(all="ignore"):
        allowed: Array = SAFETY * (eps(d) * np.abs(want) + steps * np.asarray(sensitivity)) + SAFETY * tiny(d)
    return allowed


def rounded(want: Array, d: dtype) -> Array:
    """Return the exact values rounded correctly to the dtype. Overflow gives infinity."""
    with np.errstate(all="ignore"):
        converted: Array = np.asarray(want).astype(host_dtype(d))
    return converted


def wide(values: Array) -> Array:
    """Return the same values as float64 or complex128; integers and bools do not change."""
    kind = values.dtype.kind
    if kind in "biu":
        return values
    with np.errstate(invalid="ignore"):  # signaling NaN in memory that was not written yet
        return values.astype(np.complex128 if kind == "c" else np.float64)


def representable(want: Array, d: dtype) -> bool:
    """Return whether every value is representable in the dtype."""
    back: Any = wide(rounded(want, d))
    return bool(np.array_equal(back, want, equal_nan=True))
