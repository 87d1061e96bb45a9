"""Elementwise functions with parameters other than tensors, by SciPy's functions."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import ml_dtypes
import numpy as np

from candelabra_conformance.references.pointwise_gamma import lgamma
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]
special: Final[Any] = import_module("scipy.special")  # it has no types


def _floating(x: Array) -> Array:
    return x.astype(np.float64) if x.dtype.kind in "biu" else x


@reference("logit")
def logit(input: Array, eps: float | None) -> Array:
    """Call SciPy's function on the clipped input."""
    whole = _floating(input)
    return np.asarray(special.logit(whole if eps is None else np.clip(whole, eps, 1 - eps)))


@reference("nan_to_num", as_given=True)
def nan_to_num(input: Array, nan: float | None, posinf: float | None, neginf: float | None) -> Array:
    """Call NumPy's function; infinities become by default the largest and the least number of the dtype."""
    if input.dtype.kind in "biu":
        return input
    finfo: Any = ml_dtypes.finfo  # NumPy's does not support bfloat16
    limits = finfo(input.dtype)
    high, low = (float(limits.max) if posinf is None else posinf), (float(limits.min) if neginf is None else neginf)
    wide = input.astype(np.complex128 if input.dtype.kind == "c" else np.float64)
    return np.asarray(np.nan_to_num(wide, nan=0.0 if nan is None else nan, posinf=high, neginf=low))


@reference("mvlgamma")
def mvlgamma(input: Array, p: int) -> Array:
    """Return the sum of the logarithms of ``gamma(input - j / 2)``."""
    whole = _floating(input)
    total = p * (p - 1) / 4 * np.log(np.pi)
    return np.asarray(sum(lgamma(whole - j / 2) for j in range(p)) + total)


@reference("polygamma_of", "Tensor.polygamma", "Tensor.polygamma_")
def polygamma(input: Array, n: int) -> Array:
    """Call SciPy's function."""
    return np.asarray(special.polygamma(n, _floating(input)))


@reference("polygamma")
def polygamma_of(n: int, input: Array) -> Array:
    """Call SciPy's function, whose order is first too."""
    return polygamma(input, n)


@reference("frexp")
def frexp(input: Array) -> tuple[Array, ...]:
    """Call NumPy's function."""
    mantissa, exponent = np.frexp(input)
    return np.asarray(mantissa), np.asarray(exponent)
