"""Equality, closeness, and complex numbers from their components, by NumPy's functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


@reference("isclose", as_given=True)
def isclose(x: Array, y: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Call NumPy's function, for half precision and integers in the widest precision that they promote to."""
    x, y = (v if v.dtype.kind in "fc" and v.dtype.itemsize > 2 else v.astype(np.float64) for v in (x, y))
    return np.isclose(x, y, rtol, atol, equal_nan)


@reference("allclose", as_given=True)
def allclose(x: Array, y: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Return whether all elements are close."""
    return bool(np.all(isclose(x, y, rtol, atol, equal_nan)))


@reference("equal", as_given=True)
def equal(x: Array, y: Array) -> bool:
    """Call NumPy's function."""
    return bool(np.array_equal(x, y))


@reference("complex", extended=True)
def complex_numbers(real: Array, imag: Array) -> Any:
    """Write the components into an array."""
    shape = np.broadcast_shapes(real.shape, imag.shape)
    out = np.empty(shape, np.result_type(real.dtype, np.complex64))
    out.real, out.imag = real, imag  # not a sum, since 1j * inf contains NaN
    return out


@reference("polar", extended=True)
def polar(size: Array, angle: Array) -> Any:
    """Return the complex numbers with these moduli and angles."""
    return complex_numbers(size * np.cos(angle), size * np.sin(angle))
