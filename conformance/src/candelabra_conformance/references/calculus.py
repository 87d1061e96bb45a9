"""Differences, derivatives and integrals by NumPy's functions, and cumulative sums of trapezoids."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


@reference("diff", extended=True)
def diff(input: Array, n: int, dim: int, prepend: Array | None, append: Array | None) -> Array:
    """Call NumPy's function; there are no differences of a higher order than the number of elements."""
    joined = [part for part in (prepend, input, append) if part is not None]
    whole = np.concatenate(joined, dim)
    return np.diff(whole, n, dim) if n else input


def _areas(y: Array, x: Array | None, dx: float | None, dim: int) -> Array:
    """Return the areas of the trapezoids, along the last dim."""
    y = np.moveaxis(y, dim, -1)
    widths: Any = 1 if dx is None else dx
    if x is not None:
        if x.ndim > 1:
            rank = max(x.ndim, y.ndim)
            x = np.moveaxis(x.reshape((1,) * (rank - x.ndim) + x.shape), dim - y.ndim, -1)
        widths = np.diff(x)
    return np.asarray((y[..., 1:] + y[..., :-1]) * widths / np.longdouble(2))


@reference("trapezoid", extended=True)
def trapezoid(y: Array, x: Array | None, dx: float | None, dim: int) -> Array:
    """Return the sum of the trapezoids."""
    return np.asarray(_areas(y, x, dx, dim).sum(-1))


@reference("cumulative_trapezoid", extended=True)
def cumulative_trapezoid(y: Array, x: Array | None, dx: float | None, dim: int) -> Array:
    """Return the cumulative sums of the trapezoids."""
    return np.moveaxis(np.cumsum(_areas(y, x, dx, dim), -1), -1, dim - y.ndim)


@reference("gradient")
def gradient(input: Array, *, spacing: Any = 1, dim: Any = None, edge_order: Any = 1) -> tuple[Array, ...]:
    """Call NumPy's function, with spacings by position."""
    spacings = spacing if isinstance(spacing, (list, tuple)) else (spacing,)
    found = np.gradient(input, *spacings, axis=dim, edge_order=edge_order)
    return tuple(found) if isinstance(found, (list, tuple)) else (found,)
