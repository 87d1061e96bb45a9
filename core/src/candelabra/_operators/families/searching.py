"""Places: in a sorted sequence, of what is not 0, and those behind a flat index."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_shape
from candelabra._dispatch.out import store
from candelabra._operators.creation import filled
from candelabra._operators.elementwise import selection
from candelabra._operators.primitives import indexing
from candelabra._operators.shapes.joining import cat
from candelabra._records.callables import public
from candelabra._records.promotion import index
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import BOOL, COMPLEX, INTEGER, PYTHON_NAMES, int32, int64

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


@by
def _places(sequence: Tensor, values: Tensor, right: bool) -> tuple[int, ...]:
    return shape_of(values)


@operator(_places, result=index, accepts="real", public=False, out=False)
def sorted_place(sequence: Tensor, values: Tensor, right: bool) -> Tensor:
    """Where each of ``values`` would go in ``sequence``, ascending along its last dim, to keep it in order.

    That is the number of elements less than the value, or with ``right`` not greater. A 1-d sequence serves values of
    any shape; else all dims but the last are the same. NaN goes to the end. Found by bisection.
    """
    size = sequence.shape[-1]
    low = filled.full(tuple(values.shape), 0, dtype=int64, device=values.device)
    if not size:
        return low
    high = low + size
    for _ in range(size.bit_length()):
        middle = (low + high).div(2, rounding_mode="floor")
        there = middle.clamp(max=size - 1)
        if sequence.ndim == 1:
            found = sequence.index_select(0, there.reshape(there.numel())).reshape(there.shape)
        else:
            found = sequence.gather(-1, there)
        stops = (found > values) if right else (found >= values)
        stops = stops | (low == high)
        low, high = selection.where.function(stops, low, middle + 1), selection.where.function(stops, middle, high)
    return low


sorted_place.no_gradient("the result is an index")


def _checked_side(right: bool, side: str | None) -> bool:
    if side is None:
        return right
    if side not in ("left", "right"):
        raise RuntimeError(f"searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RuntimeError(
            "searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    return side == "right"


def _check_sequence(sequence: Tensor, values: Tensor, number: bool) -> None:
    bounds, shape = tuple(sequence.shape), tuple(values.shape)
    if not bounds:
        raise RuntimeError("searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if len(bounds) > 1 and number:
        raise RuntimeError(
            "searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({len(bounds)}) and input value's dim(0) numel(1)"
        )
    if len(bounds) > 1 and bounds[:-1] != shape[:-1]:
        raise RuntimeError(
            "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
            f"and input value tensor must match, but we got boundaries tensor {list(bounds)} and input value tensor "
            f"{list(shape)}"
        )
    for tensor in (sequence, values):
        if tensor.dtype.category in (BOOL, COMPLEX):
            raise NotImplementedError(f"\"searchsorted\" not implemented for '{PYTHON_NAMES[tensor.dtype.name]}'")


def _in_order(sequence: Tensor, sorter: Tensor) -> Tensor:
    if sorter.dtype is not int64:
        raise RuntimeError(
            f"searchsorted(): sorter must be a tensor of long dtype but got dtype {PYTHON_NAMES[sorter.dtype.name]}"
        )
    if sorter.shape != sequence.shape:
        raise RuntimeError(
            "searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{list(sequence.shape)} and got sorter tensor {list(sorter.shape)}"
        )
    if sorter.numel() and (int(sorter.amin()) < 0 or int(sorter.amax()) >= sequence.shape[-1]):
        raise RuntimeError("searchsorted(): sorter index out of range")
    return sequence.gather(-1, sorter)


def _as_values(input: Any, sequence: Tensor) -> tuple[Tensor, bool]:
    """What is searched for as a tensor, and whether it was a number."""
    if hasattr(input, "_payload"):
        return input.detach(), not input.ndim
    kind = sequence.dtype if isinstance(input, int) or sequence.is_floating_point() else None
    from candelabra._operators.creation.from_data import tensor

    made: Tensor = tensor(input, dtype=kind, device=sequence.device)
    return made, True


@public(method=False)
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Any:
    """Where each value of ``input`` (a tensor or a number) would go in a sequence that ascends along its last dim.

    The number of elements less than the value, or with ``right`` (``side="right"``) not greater, as int64 or int32.
    ``sorter`` is the order in which the sequence ascends. A 1-d sequence serves any input; else all dims but the last
    must be the same. Raises ``RuntimeError`` otherwise.
    """
    sequence = sorted_sequence.detach()
    values, number = _as_values(input, sequence)
    right = _checked_side(right, side)
    _check_sequence(sequence, values, number)
    if sorter is not None:
        sequence = _in_order(sequence, sorter)
    places = sorted_place(sequence, values, right)
    return store("searchsorted", places.to(int32) if out_int32 else places, out)


@public(method=False)
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Tensor | None = None
) -> Any:
    """The bucket of each value (a tensor's or a number) between 1-d ascending ``boundaries``; see :func:`searchsorted`.

    Bucket i has ``boundaries[i-1] < value <= boundaries[i]``, with ``right`` the ``<`` and ``<=`` the other way round.
    """
    if boundaries.ndim != 1:
        raise RuntimeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


@public
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None) -> Any:
    """The indices of the first ``size`` elements that are not 0 as rows; rows that are left over are ``fill_value``."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    rows = indexing.nonzero(input)
    count, rank = tuple(rows.shape)
    if count < size:
        rest = filled.full((size - count, rank), fill_value, dtype=int64, device=input._instance)
        rows = cat([rows, rest], 0)
    return store("nonzero_static", rows.narrow(0, 0, size).clone(), out)


@public(method=False)
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """The indices per dim of a tensor of ``shape`` behind flat ``indices``: a tuple of int64 tensors of their shape.

    Raises ``TypeError`` for indices that are no integers, ``ValueError`` for a negative size.
    """
    if not hasattr(indices, "_payload") or indices.dtype.category != INTEGER:
        found = indices.dtype if hasattr(indices, "_payload") else type(indices).__name__
        raise TypeError(f"expected 'indices' to be integer dtype, but got {found}")
    if hasattr(shape, "_payload") or not (isinstance(shape, (int, tuple, list))):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(s < 0 for s in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    places: list[Tensor] = []
    indices, step = indices.to(int64), 1
    for size in reversed(as_shape(sizes)):
        places.append(indices.div(step, rounding_mode="floor").remainder(max(size, 1)))
        step *= max(size, 1)
    return tuple(reversed(places))
