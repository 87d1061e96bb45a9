"""Reductions of consecutive segments along a dim."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Final
from candelabra._operators.creation.filled import new_full
from candelabra._operators.creation.ranges import new_arange
from candelabra._operators.searching.sorted_search import sorted_place
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import FLOATING

if TYPE_CHECKING:
    from candelabra.typing import Dim, Index, Tensor

INFINITY: Final = float("inf")
REDUCTIONS: Final[dict[str, tuple[str, float]]] = {
    "sum": ("sum", 0), "mean": ("sum", 0), "prod": ("prod", 1), "max": ("amax", -INFINITY), "min": ("amin", INFINITY),
}  # fmt: skip
"""The ``reduce`` argument of ``scatter_reduce`` for each reduction, and its identity."""


@by
def _segments_shape(
    data: Tensor,
    reduce: str,
    lengths: Tensor | None,
    indices: Tensor | None,
    offsets: Tensor | None,
    axis: int,
    unsafe: bool,
    initial: float | None,
) -> tuple[int, ...]:
    if reduce not in REDUCTIONS:
        raise RuntimeError(f"segment_reduce(): reduce must be one of {', '.join(REDUCTIONS)}, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if data.dtype.category != FLOATING:
        raise NotImplementedError(f"\"segment_reduce\" not implemented for '{data.dtype.title}'")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    shape = shape_of(offsets if lengths is None else lengths)
    if axis != len(shape) - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}.")
    segments = shape[-1] - (lengths is None)
    return (*shape_of(data)[:axis], segments, *shape_of(data)[axis + 1 :])


@operator(_segments_shape, data_dependent=True, method=False, out=False)
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Index | None = None,
    indices: Index | None = None,
    offsets: Index | None = None,
    axis: Dim = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Reduce consecutive segments along ``axis``: ``"sum"``, ``"mean"``, ``"max"``, ``"min"`` or ``"prod"``.

    The segments have the given ``lengths``, or begin and end at ``offsets``, which may be different for each index of
    the dims before ``axis``. A segment without elements gives ``initial``, or the reduction's identity (NaN for the
    mean). Raises ``RuntimeError`` unless the lengths add up to the size along ``axis``, which ``unsafe`` does not
    check.
    """
    shape = _segments_shape(segment_reduce, (data, reduce, lengths, indices, offsets, axis, unsafe, initial))
    if lengths is None:
        assert offsets is not None  # checked by the rule
        lengths = offsets.diff(dim=-1)
    if not unsafe and not bool((lengths.sum(-1) == data.shape[axis]).all()):
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
            "!unsafe."
        )
    kind, identity = REDUCTIONS[reduce]
    count, trailing = shape[axis], [1] * (data.ndim - axis - 1)
    positions = new_arange(lengths, 0, 1, data.shape[axis]).expand(data.shape[: axis + 1])
    segments = sorted_place(
        lengths.cumsum(-1), positions.clone(), True
    )  # an additional segment collects the elements outside of all segments
    segments = segments.reshape([*segments.shape, *trailing]).expand(data.shape)
    start = new_full(data, (*shape[:axis], count + 1, *shape[axis + 1 :]), identity if initial is None else initial)
    result = start.scatter_reduce(axis, segments, data, kind).narrow(axis, 0, count).clone()
    if reduce != "mean":
        return result
    sizes = lengths.reshape([*lengths.shape, *trailing])
    mean = result / sizes.clamp(min=1)
    return mean.masked_fill(sizes == 0, float("nan")) if initial is None else mean
