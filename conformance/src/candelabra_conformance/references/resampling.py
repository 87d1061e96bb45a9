"""References of interpolation: matrices from the definition of each filter, as functions of the distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference, references

Array = np.ndarray[Any, Any]


@reference("resample", extended=True)
def resample(x: Array, dim: int, start: Array, weight: Array) -> Any:
    """Sum row by row."""
    moved = np.moveaxis(x, dim, 0)
    rows = []
    for first, row in zip(start, weight, strict=True):
        read = [w * moved[first + k] for k, w in enumerate(row) if w]
        rows.append(sum(read, np.zeros(moved.shape[1:], x.dtype)))
    return np.moveaxis(np.stack(rows), 0, dim).astype(x.dtype)


@reference("resample_adjoint", extended=True)
def resample_adjoint(g: Array, dim: int, start: Array, weight: Array, size: int) -> Any:
    """Add each row to the elements that it reads."""
    moved = np.moveaxis(g, dim, 0)
    out = np.zeros((size, *moved.shape[1:]), g.dtype)
    for first, row, values in zip(start, weight, moved, strict=True):
        for k, w in enumerate(row):
            if w:
                out[first + k] += w * values
    return np.moveaxis(out, 0, dim)


# -- filters ----------------------------------------------------------------------------------------------------------
def triangle(d: Array) -> Array:
    """The linear filter."""
    return np.asarray(np.clip(1 - abs(d), 0, None))


def cubic(a: float) -> Callable[[Array], Array]:
    """Keys' filter, as polynomials in the distance."""

    def weights(d: Array) -> Array:
        d = abs(d)
        near = (a + 2) * d**3 - (a + 3) * d**2 + 1
        far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
        return np.where(d < 1, near, np.where(d < 2, far, 0))

    return weights


def lanczos(d: Array) -> Array:
    """Sinc times a wider sinc."""
    return np.where(abs(d) < 3, np.sinc(d) * np.sinc(d / 3), 0)


SMOOTHING: dict[str, tuple[Callable[[Array], Array], int]] = {
    "bilinear": (triangle, 1), "bicubic": (cubic(-0.5), 2), "lanczos": (lanczos, 3),
}  # fmt: skip


def centres(size: int, count: int, factor: float | None, align_corners: bool) -> Array:
    """Return the positions of the results in elements of the input."""
    if align_corners:
        return np.linspace(0, size - 1, count) if count > 1 else np.zeros(1)
    step = size / count if factor is None else 1 / factor
    return (np.arange(count) + 0.5) * step - 0.5


def matrix(mode: str, size: int, count: int, factor: float | None, align_corners: bool, antialias: bool) -> Array:
    """Return the weights of each element (columns) in each result (rows)."""
    at, columns = centres(size, count, factor, align_corners), np.arange(size)
    step = size / count if factor is None else 1 / factor
    if mode == "nearest":
        return np.asarray(columns == np.minimum(np.floor(np.arange(count) * step), size - 1)[:, None])
    if mode == "nearest-exact":
        return np.asarray(columns == np.minimum(np.floor(at + 0.5), size - 1)[:, None])
    if antialias:
        filter, radius = SMOOTHING[mode]
        stretch = max(step, 1)
        distance = (columns - at[:, None]) / stretch
        weights = np.where(abs(distance) < radius, filter(distance), 0)
        return np.asarray(weights / weights.sum(1, keepdims=True))
    # Elements beyond the ends are those at the ends: pad the columns, and add the padding's weights to them.
    filter = cubic(-0.75) if mode == "bicubic" else triangle
    wide = filter(np.arange(-3, size + 3) - at[:, None])
    weights = wide[:, 3:-3].copy()
    weights[:, 0] += wide[:, :3].sum(1)
    weights[:, -1] += wide[:, -3:].sum(1)
    return weights


@reference("nn.functional.interpolate")
def interpolate(
    x: Array, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Any:  # fmt: skip
    """Multiply each spatial dim by a matrix."""
    rank = x.ndim - 2
    out = x.astype(np.float64)
    for dim in range(rank):
        n = x.shape[2 + dim]
        given = size if scale_factor is None else scale_factor
        value = given[dim] if isinstance(given, (tuple, list)) else given
        count = value if scale_factor is None else int(n * value)
        if mode == "area":
            parts = [range(j * n // count, -(-(j + 1) * n // count)) for j in range(count)]
            out = np.stack([out.take(list(part), 2 + dim).mean(2 + dim) for part in parts], 2 + dim)
            continue
        factor = None if scale_factor is None or recompute_scale_factor else value
        weights = matrix(mode, n, count, factor, bool(align_corners), antialias)
        out = np.moveaxis(np.tensordot(weights, out, (1, 2 + dim)), 0, 2 + dim)
    return out.astype(x.dtype)


def upsampled(mode: str, align_corners: bool | None) -> Callable[..., Any]:
    """Return a deprecated name."""

    def function(x: Array, size: Any = None, scale_factor: Any = None) -> Any:
        return interpolate(x, size, scale_factor, mode, align_corners)

    return function


references(
    {
        "nn.functional.upsample": upsampled("nearest", None),
        "nn.functional.upsample_nearest": upsampled("nearest", None),
        "nn.functional.upsample_bilinear": upsampled("bilinear", True),
    }
)
