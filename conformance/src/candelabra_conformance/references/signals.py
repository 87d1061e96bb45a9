"""Short-time Fourier transforms window by window, and images sampled point by point."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from candelabra_conformance.references.fourier import complex_to_complex, complex_to_real, real_to_complex
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]
MODES = {"reflect": "reflect", "constant": "constant", "replicate": "edge", "circular": "wrap"}
"""NumPy's names of the padding modes."""


# -- short-time Fourier transforms ------------------------------------------------------------------------------------
def _weights(window: Array | None, length: int, n: int, like: Array) -> Array:
    """Return the window in the middle of ``n`` points."""
    found = np.ones(length, like.real.dtype) if window is None else window
    left = (n - length) // 2
    return np.pad(found, (left, n - length - left))


@reference("stft", extended=True)
def stft(
    input: Array, n_fft: int, hop_length: int | None, win_length: int | None, window: Array | None, center: bool,
    pad_mode: str, normalized: bool, onesided: bool | None, return_complex: bool | None, align_to_window: bool | None,
) -> Array:  # fmt: skip
    """Return the transform of each window."""
    hop, length = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    lead = [(0, 0)] * (input.ndim - 1)
    x = np.pad(input, [*lead, (n_fft // 2,) * 2], mode=MODES[pad_mode]) if center else input  # type: ignore[call-overload]
    if align_to_window:
        x = np.pad(x, [*lead, ((n_fft - length) // 2,) * 2])
    weights = _weights(window, length, n_fft, input)
    starts = range(0, x.shape[-1] - n_fft + 1, hop)
    pieces = np.stack([x[..., s : s + n_fft] * weights for s in starts], -2)
    dim, norm = (pieces.ndim - 1,), "ortho" if normalized else "backward"
    if pieces.dtype.kind == "c" or onesided is False:
        found = complex_to_complex(pieces, dim, norm, True)
    else:
        found = real_to_complex(pieces, dim, norm, True)
    found = np.swapaxes(found, -1, -2)
    return np.stack([found.real, found.imag], -1) if return_complex is False else found


@reference("istft", extended=True)
def istft(
    input: Array, n_fft: int, hop_length: int | None, win_length: int | None, window: Array | None, center: bool,
    normalized: bool, onesided: bool | None, length: int | None, return_complex: bool,
) -> Array:  # fmt: skip
    """Add the inverse transform of each window at its position, and divide by the sum of the squared weights."""
    hop, size = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    x, norm = np.swapaxes(input, -1, -2), "ortho" if normalized else "backward"
    if return_complex:
        pieces = complex_to_complex(x, (x.ndim - 1,), norm, False)
    else:
        pieces = complex_to_real(x[..., : n_fft // 2 + 1], (x.ndim - 1,), norm, n_fft)
    weights = _weights(window, size, n_fft, input)
    count = pieces.shape[-2]
    total = n_fft + hop * (count - 1)
    signal, envelope = np.zeros((*pieces.shape[:-2], total), pieces.dtype), np.zeros(total, weights.dtype)
    for i in range(count):
        span = slice(i * hop, i * hop + n_fft)
        signal[..., span] += pieces[..., i, :] * weights
        envelope[span] += weights * weights
    start = n_fft // 2 if center else 0
    end = total - start if length is None else start + length
    return np.asarray(signal[..., start:end] / envelope[start:end])


# -- grids ------------------------------------------------------------------------------------------------------------
def _position(x: Any, size: int, align: bool) -> Any:
    """Convert a coordinate in [-1, 1] to a position among the elements."""
    return (x + 1) / 2 * (size - 1) if align else ((x + 1) * size - 1) / 2


def _padded(x: Any, size: int, padding: int, align: bool) -> Any:
    """Move a position into the image: to the border, or by reflection."""
    if padding == 2:
        low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
        while low < high and not low <= x <= high:
            x = 2 * low - x if x < low else 2 * high - x
    return x if padding == 0 else min(max(x, 0), size - 1)


def _read(image: Array, where: tuple[int, ...]) -> Any:
    """Return the elements of all channels; zeros outside the image."""
    inside = all(0 <= i < n for i, n in zip(where, image.shape[1:], strict=True))
    return np.moveaxis(image, 0, -1)[where] if inside else np.zeros(len(image), image.dtype)


def _keys(x: Any) -> Any:
    """Return Keys' cubic kernel of a distance."""
    x = abs(x)
    if x <= 1:
        return (1.25 * x - 2.25) * x * x + 1
    return ((-0.75 * x + 3.75) * x - 6) * x + 3 if x < 2 else 0 * x


def _point(image: Array, point: Array, mode: int, padding: int, align: bool) -> Any:
    sizes = image.shape[1:]
    positions = [_position(x, n, align) for x, n in zip(point[::-1], sizes, strict=True)]
    if mode == 2:
        steps = [range(math.floor(x) - 1, math.floor(x) + 3) for x in positions]
        total = np.zeros(len(image), image.dtype)
        for where in product(*steps):
            weight = np.prod([_keys(x - w) for x, w in zip(positions, where, strict=True)])
            inside = tuple(int(_padded(w, n, padding, align)) for w, n in zip(where, sizes, strict=True))
            total = total + _read(image, inside) * weight
        return total
    positions = [_padded(x, n, padding, align) for x, n in zip(positions, sizes, strict=True)]
    if mode == 1:
        return _read(image, tuple(round(float(x)) for x in positions))
    total = np.zeros(len(image), image.dtype)
    for corner in product((0, 1), repeat=len(positions)):
        where = tuple(math.floor(x) + c for x, c in zip(positions, corner, strict=True))
        weight = np.prod([1 - abs(x - w) for x, w in zip(positions, where, strict=True)])
        total = total + _read(image, where) * weight
    return total


@reference("grid_sampler", "grid_sampler_2d", "grid_sampler_3d", extended=True)
def grid_sampler(input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Array:
    """Sample point by point."""
    n, channels = input.shape[:2]
    shape = grid.shape[1:-1]
    out = np.zeros((n, channels, *shape), input.dtype)
    for i in range(n):
        for where in np.ndindex(*shape):
            found = _point(input[i], grid[(i, *where)], interpolation_mode, padding_mode, align_corners)
            out[(i, slice(None), *where)] = found
    return out


@reference("grid_sampler_adjoint", extended=True)
def grid_sampler_adjoint(
    grad: Array, grid: Array, sizes: Any, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Array:
    """Interpolate inputs that are 1 at a single element, which gives all weights."""
    n, count = len(grad), math.prod(sizes)
    units = np.broadcast_to(np.eye(count, dtype=grad.dtype).reshape(count, *sizes), (n, count, *sizes))
    weights = grid_sampler(units, grid, interpolation_mode, padding_mode, align_corners)
    points = math.prod(grid.shape[1:-1])
    g = grad.reshape(*grad.shape[:2], points)
    out = np.einsum("ncp,nep->nce", g, weights.reshape(n, count, points))
    return np.asarray(out.reshape(*grad.shape[:2], *sizes))


def _slope(point: Any, size: int, padding: int, align: bool, linear: bool) -> Any:
    """Return the derivative of a position, padded if ``linear``, with respect to the coordinate."""
    scale = (size - 1) / 2 if align else size / 2
    x = _position(point, size, align)
    if not linear or padding == 0:
        return scale
    low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
    while padding == 2 and low < high and not low <= x <= high:
        x, scale = (2 * low - x if x < low else 2 * high - x), -scale
    return scale if 0 < x < size - 1 else 0.0


def _keys_slope(x: Any) -> Any:
    """Return the derivative of Keys' cubic kernel at a signed distance."""
    a = abs(x)
    slope = (3.75 * a - 4.5) * a if a <= 1 else (-2.25 * a + 7.5) * a - 6
    return math.copysign(1, x) * (slope if a < 2 else 0 * a)


def _grid_slopes(image: Array, g: Array, point: Array, mode: int, padding: int, align: bool) -> Any:
    """Return the derivatives of the sum of ``g`` times the channels at a point, in the order of the sizes."""
    sizes, linear = image.shape[1:], mode == 0
    scales = [_slope(x, n, padding, align, linear) for x, n in zip(point[::-1], sizes, strict=True)]
    positions = [_position(x, n, align) for x, n in zip(point[::-1], sizes, strict=True)]
    if linear:
        positions = [_padded(x, n, padding, align) for x, n in zip(positions, sizes, strict=True)]
    first = 0 if linear else -1
    steps = [range(math.floor(x) + first, math.floor(x) + 2 - first) for x in positions]
    out = np.zeros(len(sizes), image.dtype)
    for where in product(*steps):
        inside = where if linear else tuple(int(_padded(w, n, padding, align)) for w, n in zip(where, sizes))
        weights = [1 - abs(x - w) if linear else _keys(x - w) for x, w in zip(positions, where)]
        turns = [w - math.floor(x) - 0.5 for x, w in zip(positions, where)]
        value = (g * _read(image, inside)).sum()
        for d, (x, w) in enumerate(zip(positions, where)):
            slope = math.copysign(1, turns[d]) if linear else _keys_slope(x - w)
            out[d] += value * slope * scales[d] * np.prod([v for e, v in enumerate(weights) if e != d])
    return out


@reference("grid_sampler_grid_gradient", extended=True)
def grid_sampler_grid_gradient(
    grad: Array, input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Array:
    """Differentiate the weights point by point."""
    out = np.zeros(grid.shape, input.dtype)
    if interpolation_mode == 1:
        return out
    for i in range(len(input)):
        for where in np.ndindex(*grid.shape[1:-1]):
            g, point = grad[(i, slice(None), *where)], grid[(i, *where)]
            out[(i, *where)] = _grid_slopes(input[i], g, point, interpolation_mode, padding_mode, align_corners)[::-1]
    return out


# -- checks -----------------------------------------------------------------------------------------------------------
@reference("raise_if_nonzero")
def raise_if_nonzero(codes: Array, text: str, error: type[Exception]) -> Array:
    """Return False, since the samples have no nonzero codes."""
    assert not codes.any()
    return np.asarray(False)
