"""Counts and histograms by NumPy's functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


@reference("bincount")
def bincount(input: Array, weights: Array | None, minlength: int) -> Array:
    """Add float64 weights, or count as NumPy does."""
    return np.asarray(np.bincount(input.astype(np.int64), weights, minlength))


@reference("histc")
def histc(input: Array, bins: int, min: float, max: float) -> Array:
    """Count between the extrema if the limits are equal, and widen these by 1 if they are equal too."""
    flat = input.reshape(-1).astype(np.float64)
    low, high = (flat.min(), flat.max()) if min == max and flat.size else (min, max)
    if low == high:
        low, high = low - 1, high + 1
    return np.asarray(np.histogram(flat[np.isfinite(flat)], bins, (low, high))[0], input.dtype)


def _finite(input: Array, weight: Array | None) -> tuple[Array, Array | None]:
    flat = input.reshape(-1).astype(np.float64)
    kept = np.isfinite(flat)
    return flat[kept], None if weight is None else weight.reshape(-1)[kept]


@reference("histogram_bins")
def histogram_bins(input: Array, bins: int, range: Any, weight: Array | None, density: bool) -> tuple[Array, Array]:
    """Count the finite values."""
    flat, weights = _finite(input, weight)
    return np.histogram(flat, bins, range, density, weights)


@reference("histogram_edges")
def histogram_edges(input: Array, bins: Array, weight: Array | None, density: bool) -> tuple[Array, Array]:
    """Count the finite values."""
    flat, weights = _finite(input, weight)
    return np.histogram(flat, bins.astype(np.float64), None, density, weights)


@reference("histogramdd")
def histogramdd(
    input: Array, bins: Any, range: Any = None, weight: Array | None = None, density: bool = False
) -> tuple[Array, tuple[Array, ...]]:
    """Count with limits in pairs."""
    rows = input.reshape(-1, input.shape[-1])
    limits = None if range is None else list(zip(range[::2], range[1::2], strict=True))
    weights = None if weight is None else weight.reshape(-1)
    hist, edges = np.histogramdd(rows, bins, limits, density, weights)
    return np.asarray(hist, input.dtype), tuple(np.asarray(e, input.dtype) for e in edges)
