"""Interpolation to another size: ``interpolate`` and its deprecated names.

Each spatial dim is resampled after the other by a banded matrix (:mod:`candelabra.nn._operators.resampling`), whose
rows are the weights of a filter around the position of an element of the result.
"""

from __future__ import annotations

import struct
import warnings
from functools import lru_cache
from math import ceil, floor, pi, sin

from candelabra.dtypes import float32, int64, uint8
from candelabra.library import public, shape_of
from candelabra.nn._functional.adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from candelabra.nn._operators.resampling import Band, Rows, band_of, resample
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from candelabra.typing import Sequence, Tensor

Ints = tuple[int, ...]
NEAREST = ("nearest", "nearest-exact")
RANKS = {"linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,), "lanczos": (2,)}
"""The numbers of spatial dims for which each mode is defined. The other modes are defined for 1, 2 and 3."""
MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"


# -- weights ----------------------------------------------------------------------------------------------------------
def _single(x: float) -> float:
    """Round to float32, in which PyTorch computes the positions of the nearest elements for all dtypes."""
    value: float = struct.unpack("f", struct.pack("f", x))[0]
    return value


def _nearest(size: int, count: int, factor: float | None, exact: bool, image: bool) -> Ints:
    """Return the index of the nearest element for each of ``count`` positions.

    As in PyTorch, the factor of an image does not matter if its size doubles or stays.
    """
    if image and not exact and count in (size, 2 * size):
        return tuple([i * size // count for i in range(count)])
    step = _single(1 / factor) if factor else _single(size / count)
    offset = 0.5 if exact else 0.0
    return tuple([min(floor(_single((i + offset) * step)), size - 1) for i in range(count)])


def _triangle(x: float) -> float:
    return max(1 - abs(x), 0.0)


def _keys(x: float, a: float) -> float:
    """Return Keys' cubic kernel (1981) with the parameter ``a``."""
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


def _lanczos(x: float) -> float:
    if x == 0:
        return 1.0
    return 3 * sin(pi * x) * sin(pi * x / 3) / (pi * x) ** 2 if abs(x) < 3 else 0.0


FILTERS: dict[str, tuple[float, Callable[[float], float]]] = {
    "linear": (1.0, _triangle),
    "cubic": (2.0, lambda x: _keys(x, -0.5)),
    "lanczos": (3.0, _lanczos),
}
"""The filters with antialiasing: the distance at which each one ends, and the function."""


def _smoothed(size: int, count: int, step: float, name: str) -> list[dict[int, float]]:
    """Return rows of a filter that is as much wider as the result is smaller, so that it averages what it skips."""
    radius, function = FILTERS[name]
    stretch = max(step, 1.0)
    rows = []
    for i in range(count):
        centre = step * (i + 0.5)
        first = max(int(centre - radius * stretch + 0.5), 0)
        end = min(int(centre + radius * stretch + 0.5), size)
        end = min(end, first + ceil(radius * stretch) * 2 + 1)
        values = [function((j + 0.5 - centre) / stretch) for j in range(first, end)]
        total = sum(values) or 1.0
        rows.append({first + k: v / total for k, v in enumerate(values)} or {min(first, size - 1): 0.0})
    return rows


def _interpolated(size: int, count: int, step: float, name: str, align_corners: bool) -> list[dict[int, float]]:
    """Return rows of two or four weights around each position. Elements beyond the ends are those at the ends."""
    rows = []
    for i in range(count):
        position = step * i if align_corners else step * (i + 0.5) - 0.5
        if name == "linear":
            position = max(position, 0.0)
        below = min(floor(position), size - 1)
        t = min(max(position - below, 0.0), 1.0)
        weights = (1 - t, t) if name == "linear" else [_keys(t - k, -0.75) for k in (-1, 0, 1, 2)]
        row: dict[int, float] = {}
        for k, w in enumerate(weights, below if name == "linear" else below - 1):
            column = min(max(k, 0), size - 1)
            row[column] = row.get(column, 0.0) + w
        rows.append(row)
    return rows


@lru_cache(256)
def interpolation(
    mode: str, size: int, count: int, factor: float | None, align_corners: bool, antialias: bool, image: bool
) -> Band | None:
    """Return the matrix that interpolates ``size`` elements at ``count`` positions, or None for the identity.

    The distance of positions is ``1 / factor`` if there is a factor, and otherwise follows from the sizes. As in
    PyTorch, the factor does not matter if the size stays, except without antialiasing for nearest and cubic.
    """
    name = "linear" if "linear" in mode else mode.removeprefix("bi")
    if size == count and (factor in (None, 1.0) or antialias or name == "linear"):
        return None
    if name in NEAREST:
        return band_of([{i: 1.0} for i in _nearest(size, count, factor, name == "nearest-exact", image)], size)
    if align_corners:
        step = (size - 1) / (count - 1) if count > 1 else 0.0
    else:
        step = 1 / factor if factor else size / count
    if antialias:
        return band_of(_smoothed(size, count, step, name), size)
    return band_of(_interpolated(size, count, step, name, align_corners), size)


# -- arguments --------------------------------------------------------------------------------------------------------
def _shown(sizes: Sequence[int]) -> str:
    return f"({', '.join(f'{n}: {s}' for n, s in zip('DHW'[3 - len(sizes) :], sizes, strict=True))})"


def _sizes(input: Tensor, size: Any, scale_factor: Any, recompute: bool) -> tuple[Ints, tuple[float | None, ...]]:
    """Return the size of the result, and the factors if positions depend on them."""
    spatial = shape_of(input)[2:]
    rank = len(spatial)
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    given = size if scale_factor is None else scale_factor
    if given is None:
        raise ValueError("either size or scale_factor should be defined")
    values = list(given) if isinstance(given, (tuple, list)) else [given] * rank
    if len(values) != rank:
        what = "output" if scale_factor is None else "scale_factor"
        shown = f"output size of {size}" if scale_factor is None else f"scale_factor of shape {scale_factor}"
        form = "output size in (o1, o2, ...,oK)" if scale_factor is None else "scale_factor in (s1, s2, ...,sK)"
        raise ValueError(
            f"Input and {what} must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {list(spatial)} and {shown}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and {form} "
            "format."
        )
    if scale_factor is None:
        if not all(hasattr(v, "__index__") and not isinstance(v, bool) for v in values):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
                f"with types {[type(v) for v in values]}"
            )
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return tuple([v.__index__() for v in values]), (None,) * rank
    if not all(isinstance(v, (int, float)) for v in values):
        raise TypeError(f"expected scale_factor to be numbers, but got {[type(v) for v in values]}")
    output = tuple([int(s * f) for s, f in zip(spatial, values, strict=True)])
    return output, (None,) * rank if recompute else tuple([float(f) if f > 0 else None for f in values])


def _check_sizes(input: Tensor, output: Ints) -> None:
    shape = shape_of(input)
    if min(shape[2:]) < 1 or min(output) < 1:
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input "
            f"{_shown(shape[2:])} {'and ' if len(output) == 1 else ''}output {_shown(output)}"
        )
    if 0 in shape[1:]:
        raise RuntimeError(f"Non-empty {len(shape)}D data tensor expected but got a tensor with sizes {list(shape)}")


def _check_dtype(input: Tensor, mode: str, antialias: bool) -> None:
    name = "linear" if "linear" in mode else mode.removeprefix("bi").removesuffix("-exact")
    kernel = "compute_index_ranges_weights" if antialias else f"compute_indices_weights_{name}"
    bytes_allowed = mode in NEAREST or len(input.shape) == 4
    halves_refused = antialias and input.dtype.itemsize == 2
    if not (input.is_floating_point() and not halves_refused) and not (input.dtype is uint8 and bytes_allowed):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.title}'")


def _check_mode(input: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    rank = input.ndim - 2
    if rank not in RANKS.get(mode, (1, 2, 3)) and rank in (1, 2, 3) and mode in ("linear", "bilinear", "trilinear"):
        needed = RANKS[mode][0] + 2
        raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode needs {needed}D input")
    if mode not in (*RANKS, *NEAREST, "area") or rank not in RANKS.get(mode, (1, 2, 3)):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D) for the modes: {MODES} "
            f"(got {mode})"
        )
    if mode == "lanczos":
        if align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")


# -- functions --------------------------------------------------------------------------------------------------------
@public(namespace="nn.functional")
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize (N, C, L), (N, C, H, W) or (N, C, D, H, W) to ``size``, or by ``scale_factor``: one number or one per dim.

    ``mode``: nearest, nearest-exact and area for every number of dims, linear for one, bilinear and bicubic for two
    (with ``antialias`` also lanczos), trilinear for three. ``align_corners`` places the centres of the outermost
    elements of the result on those of the input, otherwise their outer edges. ``recompute_scale_factor`` computes
    positions from the sizes and not from the factor. ``antialias`` widens the filter if the result is smaller.
    """
    if mode in (*NEAREST, "area") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if input.ndim < 3:
        _check_mode(input, mode, align_corners, False)
    output, factors = _sizes(input, size, scale_factor, bool(recompute_scale_factor))
    _check_mode(input, mode, align_corners, antialias)
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[input.ndim - 3](input, output)
    _check_sizes(input, output)
    _check_dtype(input, mode, antialias)
    sizes = shape_of(input)[2:]
    is_uint8 = input.dtype is uint8
    if is_uint8:
        factors = tuple([None if n == m else f for n, m, f in zip(sizes, output, factors, strict=True)])
    flags = bool(align_corners), bool(antialias), len(sizes) == 2
    bands = [interpolation(mode, n, m, f, *flags) for n, m, f in zip(sizes, output, factors, strict=True)]
    function: Callable[..., Tensor] = resample
    if is_uint8:
        function = _select_bytes if mode in NEAREST else _resample_bytes
    out = input
    for dim in range(input.ndim - 1, 1, -1):
        band = bands[dim - 2]
        if band is not None:
            out = function(out, dim, *band)
    return out if out is not input else input.clone()


def _select_bytes(input: Tensor, dim: int, start: Ints, weight: Rows) -> Tensor:
    return input.index_select(dim, input.new_tensor(start, dtype=int64))


def _resample_bytes(input: Tensor, dim: int, start: Ints, weight: Rows) -> Tensor:
    """Interpolate with weights in 16 bits, and round after each dim, as PyTorch does."""
    return (resample(input.to(float32), dim, start, _in_16_bits(weight)).clamp(0, 255) + 0.5).floor().to(uint8)


@lru_cache(256)
def _in_16_bits(weight: Rows) -> Rows:
    """Round weights to multiples of the smallest power of two for which all multipliers fit in 16 bits."""
    largest = max(max(row) for row in weight)
    scale = 1
    while scale < 1 << 22 and int(0.5 + largest * scale * 2) < 1 << 15:
        scale *= 2
    return tuple([tuple([int(w * scale + (0.5 if w >= 0 else -0.5)) / scale for w in row]) for row in weight])


def _warn(name: str) -> None:
    text = f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead."
    warnings.warn(text, stacklevel=3)


@public(namespace="nn.functional")
def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """:func:`interpolate`, with a warning. Deprecated."""
    _warn("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@public(namespace="nn.functional")
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """:func:`interpolate` with ``mode="nearest"``, with a warning. Deprecated."""
    _warn("upsample_nearest")
    return interpolate(input, size, scale_factor, "nearest")


@public(namespace="nn.functional")
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """:func:`interpolate` with ``mode="bilinear"`` and ``align_corners=True``, with a warning. Deprecated."""
    _warn("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)
