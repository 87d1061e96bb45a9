"""Counts of integers, and histograms: counts of values between edges, in one dim or several."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._operators.creation.filled import new_full
from candelabra._operators.creation.ranges import new_linspace
from candelabra._operators.searching.sorted_search import sorted_place
from candelabra._records.callables import public
from candelabra._records.overloads import overloads
from candelabra._records.promotion import accumulated, same, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by
from candelabra.dtypes import FLOATING, INTEGER, bool_, float32, float64, int64

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra.typing import Index, Tensor

Limits = tuple[float, float]


# -- counts of integers -----------------------------------------------------------------------------------------------
@operator(by(lambda values, weights, size: (size,)), result=accumulated, accepts="real", public=False, out=False)
def tally(values: Index, weights: Tensor | None, size: int) -> Tensor:
    """Return the number of times that each number below ``size`` occurs in the vector ``values``, or the sum of its
    weights.
    """
    if weights is None:
        weights = new_full(values, tuple(values.shape), 1)
    elif weights.dtype.category <= INTEGER:
        weights = weights.to(int64)
    return new_full(weights, (size,), 0).index_add(0, values, weights)


@by
def _bincount_shape(input: Tensor, weights: Tensor | None, minlength: int) -> None:
    """Raise errors for invalid arguments of :func:`bincount`; the size of the result depends on the data."""
    if input.dtype.category != INTEGER:
        raise NotImplementedError(f"\"bincount\" not implemented for '{input.dtype.title}'")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if input.ndim != 1:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and tuple(weights.shape) != tuple(input.shape):
        raise RuntimeError("weights should be 1-d and have the same length as input")


@operator(_bincount_shape, promote=unpromoted, accepts="integer", data_dependent=True, out=False)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return the number of times that each number 0, 1, … occurs in a vector of integers, or the sum of its
    ``weights``.

    The result has at least ``minlength`` elements. Raises ``RuntimeError`` for negative numbers, unless ``input`` has
    one dim, and for weights of another length.
    """
    _bincount_shape(bincount, (input, weights, minlength))
    if not input.numel():
        return new_full(input, (minlength,), 0, dtype=int64)
    if int(input.amin()) < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.dtype is not float32:
        weights = weights.to(float64)
    return tally(input.to(int64), weights, max(int(input.amax()) + 1, minlength))


# -- histc ------------------------------------------------------------------------------------------------------------
@by
def _histc_shape(input: Tensor, bins: int, min: float, max: float) -> tuple[int, ...]:
    if bins <= 0:
        raise RuntimeError("bins must be > 0")
    _check_finite("histc: ", (min, max))
    if min > max:
        raise RuntimeError("histc: max must be larger than min")
    return (bins,)


@operator(_histc_shape, accepts="real floating", data_dependent=True)
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return the number of elements in each of ``bins`` equal bins between ``min`` and ``max``, in the input's dtype.

    The last bin includes its upper edge; NaN and elements outside are not counted. With ``min == max`` the limits are
    the elements' own extrema. Raises ``RuntimeError`` for limits that are not finite or in descending order.
    """
    _histc_shape(histc, (input, bins, min, max))
    flat = input.reshape(input.numel())
    low, high = _extrema(flat) if min == max and input.numel() else (float(min), float(max))
    if low == high:
        low, high = low - 1, high + 1
    _check_finite("histc: ", (low, high))
    inside = (flat >= low) & (flat <= high)
    indices = ((flat - low) * bins / (high - low)).masked_fill(inside.logical_not(), bins + 1).to(int64)
    # The upper edge, also as the result of rounding, belongs to the last bin; elements outside are counted after it.
    indices = indices - (indices == bins).to(int64)
    return tally(indices, None, bins + 2).narrow(0, 0, bins).to(input.dtype)


def _check_finite(prefix: str, limits: Limits) -> None:
    if not (isfinite(limits[0]) and isfinite(limits[1])):
        raise RuntimeError(f"{prefix}range of [{limits[0]:g}, {limits[1]:g}] is not finite")


def _extrema(x: Tensor) -> Limits:
    return x.amin().item(), x.amax().item()


# -- histogram --------------------------------------------------------------------------------------------------------
class Histogram(NamedTuple):
    """The counts, and the edges of the bins."""

    hist: Tensor
    bin_edges: Tensor


def _histogram_shapes(op: Operator[..., Any], args: tuple[Any, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    input, bins, weight = args[0], args[1], args[-2]
    _check_floating("histogram", input)
    _check_weight(input, weight, tuple(input.shape))
    if op.name == "histogram_edges":
        _check_edges(input, bins, 0)
        return (bins.shape[0] - 1,), (bins.shape[0],)
    if hasattr(bins, "_payload"):
        raise TypeError("histogram() accepts range only if bins is a number, got range and the edges of the bins")
    _check_bins(bins, args[2], 0)
    return (bins,), (bins + 1,)


@operator(_histogram_shapes, promote=unpromoted, result=(same, same), out=True, data_dependent=True, public=False)
def histogram_bins(
    input: Tensor,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """Return the pair (hist, bin_edges): the number of elements, or the sum of their ``weight``, in each bin, and the
    bins' edges.

    ``bins`` is a number of equal bins between the two numbers of ``range`` (by default the elements' extrema), or the
    ascending edges themselves. The last bin includes its upper edge. With ``density`` the integral over the bins is 1.
    """
    _histogram_shapes(histogram_bins, (input, bins, range, weight, density))
    flat = input.reshape(input.numel())
    edges = _equal_edges(flat, bins, range, 0)
    return Histogram(_counted(flat.unsqueeze(1), [edges], [True], weight, density), edges)


@operator(_histogram_shapes, promote=unpromoted, result=(same, same), out=True, public=False)
def histogram_edges(input: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False) -> Histogram:
    """Return the histogram for ascending edges in the tensor ``bins``."""
    _histogram_shapes(histogram_edges, (input, bins, weight, density))
    return Histogram(_counted(input.reshape((input.numel(), 1)), [bins], [False], weight, density), bins.clone())


histogram = overloads("histogram", histogram_bins, histogram_edges)
for _record in (tally, bincount, histc, histogram_bins, histogram_edges):
    _record.no_gradient("the result is a count")


class MultidimensionalHistogram(NamedTuple):
    """The counts, and the edges of the bins of each dim."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


@public(method=False)
def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> MultidimensionalHistogram:
    """Return the histogram in several dims, of points along the last dim of ``input``, and a tuple of edges, one per
    dim.

    ``bins`` is a number, or for each dim a number or its edges; ``range`` has the lower and upper limits, dim by dim.
    See :func:`histogram` for the rest.
    """
    _check_floating("histogramdd", input)
    if input.ndim < 2:
        raise RuntimeError("histogramdd: input tensor should have at least 2 dimensions")
    rank = input.shape[-1]
    several: list[Any] = [bins] * rank if isinstance(bins, int) else list(bins)
    if len(several) != rank:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    if range is not None and len(range) != 2 * rank:
        raise RuntimeError(
            f"histogramdd: for a {rank}-dimensional histogram range should have {2 * rank} elements, but got "
            f"{len(range)}"
        )
    _check_weight(input, weight, tuple(input.shape[:-1]))
    rows = input.detach().reshape(input.numel() // max(rank, 1), rank)
    edges = []
    for d, (column, bins_of_dim) in enumerate(zip(rows.unbind(1) if rank else (), several, strict=True)):
        limits = None if range is None else range[2 * d : 2 * d + 2]
        if hasattr(bins_of_dim, "_payload"):
            _check_edges(input, bins_of_dim, d)
            edges.append(bins_of_dim.detach())
        else:
            _check_bins(bins_of_dim, limits, d)
            edges.append(_equal_edges(column, bins_of_dim, limits, d))
    hist = _counted(rows, edges, [isinstance(b, int) for b in several], weight, density)
    return MultidimensionalHistogram(hist, tuple(edges))


def _check_floating(name: str, input: Tensor) -> None:
    if input.dtype.category != FLOATING:
        raise NotImplementedError(f"\"{name}\" not implemented for '{input.dtype.title}'")


def _check_weight(input: Tensor, weight: Tensor | None, shape: tuple[int, ...]) -> None:
    if weight is None:
        return
    if weight.dtype is not input.dtype:
        raise RuntimeError(
            "histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but "
            f"got input({input.dtype.name}), and weight({weight.dtype.name})"
        )
    if tuple(weight.shape) != shape:
        raise RuntimeError(
            "histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its "
            f"innermost dimension, but got input with shape {list(input.shape)} and weight with shape "
            f"{list(weight.shape)}"
        )


def _check_edges(input: Tensor, edges: Tensor, dim: int) -> None:
    if edges.ndim != 1:
        words = f"have one dimension, but got {edges.ndim} dimensions"
        raise RuntimeError(f"histogramdd: bins tensor should {words} in the bins tensor for dimension {dim}")
    if not edges.numel():
        words = "have at least 1 element, but got 0 elements"
        raise RuntimeError(f"histogramdd: bins tensor should {words} in the bins tensor for dimension {dim}")
    if edges.dtype is not input.dtype:
        raise RuntimeError(
            "histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
            f"{input.dtype.name} and bins for dimension {dim} with dtype {edges.dtype.name}"
        )


def _check_bins(bins: int, limits: Sequence[float] | None, dim: int) -> None:
    if bins <= 0:
        raise RuntimeError(f"histogram(): bins must be > 0, but got {bins} for dimension {dim}")
    if limits is None:
        return
    low, high = limits
    if not (isfinite(low) and isfinite(high)):
        raise RuntimeError(f"histogramdd: dimension {dim}'s range [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(
            f"histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {dim}"
        )


def _equal_edges(column: Tensor, bins: int, limits: Sequence[float] | None, dim: int) -> Tensor:
    """Return the edges of equal bins between limits, which by default are the extrema of the values."""
    if limits is None:
        limits = _extrema(column) if column.numel() else (0.0, 1.0)
        _check_bins(bins, limits, dim)
    low, high = limits
    if low == high:
        low, high = low - 0.5, high + 0.5
    return new_linspace(column, float(low), float(high), bins + 1)


def _bin_of(column: Tensor, edges: Tensor, count: int, equal: bool) -> Tensor:
    """Return the bin of each value between the edges (arbitrary for values outside); the last bin includes its upper
    edge.
    """
    if not equal or not count:
        position = sorted_place(edges, column, True) - 1
        return position - (column == edges[count]).to(int64)
    # First the bin without rounding errors, then a comparison with its edges.
    low, high = edges[0], edges[count]
    position = ((column - low) * count / (high - low)).to(int64).clamp(0, count - 1)
    lower, upper = (edges.index_select(0, position + i).reshape(position.shape) for i in (0, 1))
    position = position - (column < lower).to(int64) + (column >= upper).to(int64)
    return position.clamp(0, count - 1)


def _counted(
    rows: Tensor, edges: Sequence[Tensor], equal: Sequence[bool], weight: Tensor | None, density: bool
) -> Tensor:
    """Return the histogram of the rows of a matrix, a column per dim: the bin of each row is encoded as one number, and
    these are tallied.
    """
    counts = [e.shape[0] - 1 for e in edges]
    total = 1
    indices = new_full(rows, (rows.shape[0],), 0, dtype=int64)
    inside = new_full(rows, (rows.shape[0],), len(edges) > 0, dtype=bool_)
    for column, edge, count, is_equal in zip(rows.unbind(1), edges, counts, equal, strict=True):
        inside = inside & (column >= edge[0]) & (column <= edge[count])
        indices, total = indices * count + _bin_of(column, edge, count, is_equal), total * count
    indices = indices.masked_fill(inside.logical_not(), total)
    weights = None if weight is None else weight.detach().reshape(weight.numel())
    hist = tally(indices, weights, total + 1).narrow(0, 0, total).to(rows.dtype).reshape(counts)
    if density:
        hist = hist / hist.sum()
        for dim, edge in enumerate(edges):
            width = edge[1:] - edge[:-1]
            hist = hist / width.reshape(tuple(-1 if d == dim else 1 for d in range(len(counts))))
    return hist
