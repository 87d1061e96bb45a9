"""The banded matrices of interpolation and of adaptive means, for :mod:`candelabra.nn._operators.resampling`.

They are computed by tensor operators on the reference device, in float64, and copied to the device of the input.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, pi

from candelabra import arange, cat, inference_mode
from candelabra.dtypes import float32, float64, int64
from candelabra.library import plugins, record, untraced
from candelabra.nn._operators.resampling import resample
from candelabra.typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from candelabra.typing import Tensor

where = record("where")
NEAREST = ("nearest", "nearest-exact")
CACHED = 4096
"""Matrices with at most this number of rows and of columns are cached: at most about 200 kB each."""


class Band(NamedTuple):
    """A banded matrix: the column in which each row starts, and the elements of the rows, shape (rows, width)."""

    start: Tensor
    weight: Tensor


def resample_by(band: Band, input: Tensor, dim: int) -> Tensor:
    """Multiply the matrix by the elements along ``dim``. Half types compute in float32."""
    if input.dtype.is_half:
        return resample_by(band, input.float(), dim).to(input.dtype)
    start, weight, place = band.start, band.weight.to(input.dtype), input.device
    if start.device != place:
        start, weight = start.to(place), weight.to(place)
    return resample(input, dim, start, weight)


def rounded_to_16_bits(band: Band) -> Band:
    """Round weights to multiples of the smallest power of two for which all multipliers fit in 16 bits."""
    weight: Any = band.weight
    largest, scale = weight.amax().item(), 1
    while scale < 1 << 22 and int(0.5 + largest * scale * 2) < 1 << 15:
        scale *= 2
    return band._replace(weight=(weight * scale + where(weight >= 0, 0.5, -0.5)).trunc() / scale)


# -- rows -------------------------------------------------------------------------------------------------------------
def _numbers(count: int, dtype: Any = float64) -> Any:
    return arange(count, dtype=dtype, device=plugins.reference_device())


def _columns(first: Any, width: int, size: int) -> tuple[Any, Any]:
    """Return the start of each row, and the columns of its elements. Rows do not extend beyond the last column."""
    start = first.clamp(0, size - width)
    return start, start.unsqueeze(1) + _numbers(width, int64)


def _nearest(size: int, count: int, factor: float | None, exact: bool, image: bool) -> Band:
    """Return rows with the nearest element of each of ``count`` positions.

    As in PyTorch, the factor of an image does not matter if its size doubles or stays, and positions are computed in
    float32 for all dtypes.
    """
    if image and not exact and count in (size, 2 * size):
        start = _numbers(count, int64) * size // count
    else:
        position = (_numbers(count, float32) + (0.5 if exact else 0.0)) * (1 / factor if factor else size / count)
        start = position.floor().to(int64).clamp_max(size - 1)
    return Band(start, start.new_ones((count, 1), dtype=float64))


def _triangle(x: Any) -> Any:
    return (1 - x.abs()).clamp_min(0)


def _keys(x: Any, a: float) -> Any:
    """Return Keys' cubic kernel (1981) with the parameter ``a``."""
    x = x.abs()
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    return where(x < 1, near, where(x < 2, (((x - 5) * x + 8) * x - 4) * a, 0.0))


def _lanczos(x: Any) -> Any:
    angle = pi * where(x == 0, 1.0, x)
    return where(x == 0, 1.0, where(x.abs() < 3, 3 * angle.sin() * (angle / 3).sin() / (angle * angle), 0.0))


FILTERS: dict[str, tuple[float, Callable[[Any], Any]]] = {
    "linear": (1.0, _triangle),
    "cubic": (2.0, lambda x: _keys(x, -0.5)),
    "lanczos": (3.0, _lanczos),
}
"""The filters with antialiasing: the distance at which each one ends, and the function."""


def _smoothed(size: int, count: int, step: float, name: str) -> Band:
    """Return rows of a filter that is as much wider as the result is smaller, so that it averages what it skips."""
    radius, function = FILTERS[name]
    stretch = max(step, 1.0)
    centre = (_numbers(count) + 0.5) * step
    first = (centre - radius * stretch + 0.5).to(int64).clamp_min(0)
    end = (centre + radius * stretch + 0.5).to(int64).clamp_max(size)
    end = end.minimum(first + (ceil(radius * stretch) * 2 + 1))
    width = max(int((end - first).amax().item()), 1)
    start, column = _columns(first, width, size)
    value = function((column + 0.5 - centre.unsqueeze(1)) / stretch)
    weight = where((column >= first.unsqueeze(1)) & (column < end.unsqueeze(1)), value, 0.0)
    total = weight.sum(1, keepdim=True)
    return Band(start, weight / where(total == 0, 1.0, total))


def _interpolated(size: int, count: int, step: float, name: str, align_corners: bool) -> Band:
    """Return rows of two or four weights around each position. Elements beyond the ends are those at the ends."""
    i = _numbers(count)
    position = i * step if align_corners else (i + 0.5) * step - 0.5
    if name == "linear" and size > 1:
        left = position.floor().clamp(0, size - 2)
        t = (position - left).clamp(0, 1).unsqueeze(1)
        return Band(left.to(int64), cat([1 - t, t], 1))
    below = position.floor().clamp_max(size - 1)
    t = (position - below).clamp(0, 1)
    values = [1 - t, t] if name == "linear" else [_keys(t - k, -0.75) for k in (-1, 0, 1, 2)]
    first = below.to(int64) - (len(values) // 2 - 1)
    start, column = _columns(first, min(len(values), size), size)
    weight: Any = 0.0
    for k, value in enumerate(values):
        read = (first + k).clamp(0, size - 1).unsqueeze(1)
        weight = weight + where(column == read, value.unsqueeze(1), 0.0)
    return Band(start, weight)


# -- matrices ---------------------------------------------------------------------------------------------------------
def _averages(size: int, count: int) -> Band:
    i = _numbers(count, int64)
    first, end = i * size // count, ((i + 1) * size + (count - 1)) // count
    length = end - first
    start, column = _columns(first, int(length.amax().item()) if count else 1, size)
    inside = (column >= first.unsqueeze(1)) & (column < end.unsqueeze(1))
    return Band(start, where(inside, 1 / length.to(float64).unsqueeze(1), 0.0))


def _interpolation(
    mode: str, size: int, count: int, factor: float | None, align_corners: bool, antialias: bool, image: bool
) -> Band:
    if mode in NEAREST:
        return _nearest(size, count, factor, mode == "nearest-exact", image)
    if align_corners:
        step = (size - 1) / (count - 1) if count > 1 else 0.0
    else:
        step = 1 / factor if factor else size / count
    name = "linear" if "linear" in mode else mode.removeprefix("bi")
    return _smoothed(size, count, step, name) if antialias else _interpolated(size, count, step, name, align_corners)


def _computed(function: Callable[..., Band], *arguments: Any) -> Band:
    # Derivatives save the tables, which inference mode would forbid. They depend on sizes only, so a compiled function
    # takes them for constants; kept ones must not wait for the end of a block.
    with inference_mode(False), untraced():
        return function(*arguments)


_cached = lru_cache(64)(_computed)


def averages(size: int, count: int) -> Band:
    """Return the matrix whose row i averages the elements floor(i * size / count) to ceil((i + 1) * size / count)."""
    return (_cached if max(size, count) <= CACHED else _computed)(_averages, size, count)


def interpolation(
    mode: str, size: int, count: int, factor: float | None, align_corners: bool, antialias: bool, image: bool
) -> Band | None:
    """Return the matrix that interpolates ``size`` elements at ``count`` positions, or None for the identity.

    The distance of positions is ``1 / factor`` if there is a factor, and otherwise follows from the sizes. As in
    PyTorch, the factor does not matter if the size stays, except without antialiasing for nearest and cubic.
    """
    if size == count and (factor in (None, 1.0) or antialias or "linear" in mode):
        return None
    compute = _cached if max(size, count) <= CACHED else _computed
    return compute(_interpolation, mode, size, count, factor, align_corners, antialias, image)
