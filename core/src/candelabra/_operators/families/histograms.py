"""Counting: of integers, and of values between edges, in one dim or several."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._dispatch.out import store
from candelabra._operators.families.searching import sorted_place
from candelabra._operators.fronts.creation import linspace
from candelabra._operators.primitives import creation
from candelabra._records.callables import public
from candelabra._records.promotion import accumulated
from candelabra._records.record import operator
from candelabra._records.rules import by
from candelabra.dtypes import FLOATING, INTEGER, PYTHON_NAMES, bool_, float32, float64, int64

if TYPE_CHECKING:
    from candelabra._tensor import Tensor
    from candelabra.typing import Index


@by
def _tallied(places: Tensor, weights: Any, size: int) -> tuple[int, ...]:
    return (size,)


@operator(_tallied, result=accumulated, accepts="real", public=False, out=False)
def tally(places: Index, weights: Tensor | None, size: int) -> Tensor:
    """How often each number below ``size`` is in the vector ``places``, or the sum of the weights that stand there."""
    if weights is None:
        weights = creation.full(tuple(places.shape), 1, dtype=int64, device=places.device)
    elif weights.dtype.category <= INTEGER:
        weights = weights.to(int64)
    zeros = creation.full((size,), 0, dtype=weights.dtype, device=places.device)
    return zeros.index_add(0, places, weights)


tally.no_gradient("the result is a count")


@public
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 on occurs in a vector of integers, or the sum of its ``weights``.


    The result has ``minlength`` elements at least. ``RuntimeError`` for negative numbers, other dims than one, and
    weights of another length.
    """
    if input.dtype.category != INTEGER:
        raise NotImplementedError(f"\"bincount\" not implemented for '{PYTHON_NAMES[input.dtype.name]}'")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if input.ndim != 1 or (input.numel() and int(input.amin()) < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and tuple(weights.shape) != tuple(input.shape):
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if not input.numel():
        return creation.full((minlength,), 0, dtype=int64, device=input._instance)
    size = max(int(input.amax()) + 1, minlength)
    if weights is not None:
        weights = weights.detach()
        weights = weights if weights.dtype is float32 else weights.to(float64)
    return tally(input.to(int64), weights, size)


def _limits(name: str, low: float, high: float) -> None:
    if not (isfinite(low) and isfinite(high)):
        raise RuntimeError(f"{name}: range of [{low:g}, {high:g}] is not finite")


def _floating(input: Tensor, name: str) -> Tensor:
    if input.dtype.category != FLOATING:
        raise NotImplementedError(f"\"{name}\" not implemented for '{PYTHON_NAMES[input.dtype.name]}'")
    return input.detach()


@public
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None) -> Any:
    """How many elements lie in each of ``bins`` equal bins between ``min`` and ``max``, in the input's dtype.

    The last bin includes its upper edge; NaN and what lies outside is left out. With ``min == max`` the elements' own
    extremes are taken. Raises ``RuntimeError`` for limits that are not finite or the wrong way round.
    """
    flat = _floating(input, "histc").reshape(input.numel())
    if bins <= 0:
        raise RuntimeError("bins must be > 0")
    low, high = float(min), float(max)
    if low == high and input.numel():
        low, high = flat.amin().item(), flat.amax().item()
    if low == high:
        low, high = low - 1, high + 1
    _limits("histc", low, high)
    if low > high:
        raise RuntimeError("histc: max must be larger than min")
    inside = (flat >= low) & (flat <= high)
    places = ((flat - low) * bins / (high - low)).masked_fill(inside.logical_not(), bins + 1).to(int64)
    # The upper edge, and what rounding puts there, belongs to the last bin; what lies outside is counted after it.
    places = places - (places == bins).to(int64)
    return store("histc", tally(places, None, bins + 2).narrow(0, 0, bins).to(input.dtype), out)


class Histogram(NamedTuple):
    """The counts, and the edges between which they were counted."""

    hist: Tensor
    bin_edges: Any


def _edges(input: Tensor, column: Tensor, bins: Any, limits: tuple[float, float] | None, dim: int) -> Tensor:
    """The edges along one dim: given ones, or equally spaced between limits or extremes."""
    if hasattr(bins, "_payload"):
        if bins.ndim != 1 or not bins.numel():
            text = (
                f"have one dimension, but got {bins.ndim} dimensions"
                if bins.ndim != 1
                else "have at least 1 element, but got 0 elements"
            )
            raise RuntimeError(f"histogramdd: bins tensor should {text} in the bins tensor for dimension {dim}")
        if bins.dtype is not input.dtype:
            raise RuntimeError(
                "histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{input.dtype.name} and bins for dimension {dim} with dtype {bins.dtype.name}"
            )
        return bins.detach()
    if bins <= 0:
        raise RuntimeError(f"histogram(): bins must be > 0, but got {bins} for dimension {dim}")
    if limits is None:
        limits = (column.amin().item(), column.amax().item()) if column.numel() else (0.0, 1.0)
    low, high = limits
    if not (isfinite(low) and isfinite(high)):
        raise RuntimeError(f"histogramdd: dimension {dim}'s range [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(
            f"histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {dim}"
        )
    if low == high:
        low, high = low - 0.5, high + 0.5
    return linspace(low, high, bins + 1, dtype=input.dtype, device=input.device)


def _place(column: Tensor, edge: Tensor, count: int, even: bool) -> Tensor:
    """The bin of each value between the edges (anything for values outside); the last bin includes its upper edge."""
    if not even or not count:
        place = sorted_place(edge, column, True) - 1
        return place - (column == edge[count]).to(int64)
    # Where it would be but for rounding, then compared with the edges there.
    low, high = edge[0], edge[count]
    place = ((column - low) * count / (high - low)).to(int64).clamp(0, count - 1)
    lower, upper = (edge.index_select(0, place + i).reshape(place.shape) for i in (0, 1))
    place = place - (column < lower).to(int64) + (column >= upper).to(int64)
    return place.clamp(0, count - 1)


def _counted(rows: Tensor, edges: Sequence[Tensor], even: Sequence[bool], weight: Any, density: bool) -> Tensor:
    """The histogram of the rows of a matrix, a column per dim: each row's bin as one number, and these tallied."""
    counts = [e.shape[0] - 1 for e in edges]
    total = 1
    places = creation.full((rows.shape[0],), 0, dtype=int64, device=rows._instance)
    inside = creation.full((rows.shape[0],), len(edges) > 0, dtype=bool_, device=rows._instance)
    for column, edge, count, evenly in zip(rows.unbind(1), edges, counts, even, strict=True):
        inside = inside & (column >= edge[0]) & (column <= edge[count])
        places, total = places * count + _place(column, edge, count, evenly), total * count
    places = places.masked_fill(inside.logical_not(), total)
    hist = tally(places, weight, total + 1).narrow(0, 0, total).to(rows.dtype).reshape(counts)
    if density:
        hist = hist / hist.sum()
        for dim, edge in enumerate(edges):
            width = edge[1:] - edge[:-1]
            hist = hist / width.reshape(tuple(-1 if d == dim else 1 for d in range(len(counts))))
    return hist


def _weights(input: Tensor, weight: Tensor | None, shape: tuple[int, ...]) -> Tensor | None:
    if weight is None:
        return None
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
    return weight.detach().reshape(weight.numel())


@public
def histogram(
    input: Tensor,
    bins: Any = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Any = None,
) -> Histogram:
    """The pair (hist, bin_edges): how many elements, or how much ``weight``, lies in each bin, and the bins' edges.

    ``bins`` is a number of equal bins, between the two numbers of ``range`` or the elements' extremes, or the ascending
    edges themselves. The last bin includes its upper edge. With ``density`` the integral over the bins is 1.
    """
    flat = _floating(input, "histogram").reshape(input.numel())
    if range is not None and hasattr(bins, "_payload"):
        raise TypeError("histogram(): range goes with a number of bins, not with their edges")
    limits = None if range is None else (float(range[0]), float(range[1]))
    weights = _weights(input, weight, tuple(input.shape))
    edges = _edges(flat, flat, bins, limits, 0)
    hist = _counted(flat.unsqueeze(1), [edges], [isinstance(bins, int)], weights, density)
    found: Histogram = store("histogram", Histogram(hist, edges), out)
    return found


@public(method=False)
def histogramdd(
    input: Tensor,
    bins: Any,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """The histogram in several dims, of points along the last dim of ``input``, and a tuple of edges, one per dim.

    ``bins`` is a number, or for each dim a number or its edges; ``range`` the lower and upper limits, dim by dim. For
    the rest see :func:`histogram`.
    """
    input = _floating(input, "histogramdd")
    if input.ndim < 2:
        raise RuntimeError("histogramdd: input tensor should have at least 2 dimensions")
    rank = input.shape[-1]
    several = [bins] * rank if isinstance(bins, int) else list(bins)
    if len(several) != rank:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    if range is not None and len(range) != 2 * rank:
        raise RuntimeError(
            f"histogramdd: for a {rank}-dimensional histogram range should have {2 * rank} elements, but got "
            f"{len(range)}"
        )
    rows = input.reshape(input.numel() // max(rank, 1), rank)
    weights = _weights(input, weight, tuple(input.shape[:-1]))
    edges = tuple(
        _edges(input, column, b, None if range is None else (float(range[2 * d]), float(range[2 * d + 1])), d)
        for d, (column, b) in enumerate(zip(rows.unbind(1) if rank else (), several, strict=True))
    )
    even = [isinstance(b, int) for b in several]
    return Histogram(_counted(rows, edges, even, weights, density), edges)
