"""Interpolation to another size: ``interpolate`` and its deprecated names.

Each spatial dim is resampled after the other by a banded matrix (:mod:`candelabra.nn._operators.resampling`), whose
rows are the weights of a filter around the position of an element of the result.
"""

from __future__ import annotations

import warnings

from candelabra.dtypes import float32, uint8
from candelabra.library import public, shape_of
from candelabra.nn._functional.adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from candelabra.nn._functional.bands import NEAREST, Band, interpolation, resample_by, rounded_to_16_bits
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from candelabra.typing import Sequence, Tensor

Ints = tuple[int, ...]
RANKS = {"linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,), "lanczos": (2,)}
"""The numbers of spatial dims for which each mode is defined. The other modes are defined for 1, 2 and 3."""
MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"


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
    halves_refused = antialias and input.dtype.is_half
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
    function: Callable[[Band, Tensor, int], Tensor] = resample_by
    if is_uint8:
        function = _select_bytes if mode in NEAREST else _resample_bytes
    out = input
    for dim in range(input.ndim - 1, 1, -1):
        band = bands[dim - 2]
        if band is not None:
            out = function(band, out, dim)
    return out if out is not input else input.clone()


def _select_bytes(band: Band, input: Tensor, dim: int) -> Tensor:
    return input.index_select(dim, band.start.to(input.device))


def _resample_bytes(band: Band, input: Tensor, dim: int) -> Tensor:
    """Interpolate with weights in 16 bits, and round after each dim, as PyTorch does."""
    out = resample_by(rounded_to_16_bits(band), input.to(float32), dim)
    return (out.clamp(0, 255) + 0.5).floor().to(uint8)


def _warn(name: str) -> None:
    text = f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead."
    warnings.warn(text, stacklevel=4)


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
