"""Binary search: ``searchsorted`` and ``bucketize``."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.conversion.python_numbers import number_for
from candelabra._operators.creation.filled import new_full
from candelabra._operators.elementwise.selection import where
from candelabra._operators.indexing.gather_scatter import gather
from candelabra._records.callables import public
from candelabra._records.promotion import index
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra._tensor import Tensor
from candelabra.dtypes import BOOL, COMPLEX, get_default_dtype, int32, int64

if TYPE_CHECKING:
    from candelabra.typing import Number


@by
def _indices_shape(sequence: Tensor, values: Tensor, right: bool) -> tuple[int, ...]:
    bounds, shape = shape_of(sequence), shape_of(values)
    if not bounds:
        raise RuntimeError("searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if len(bounds) > 1 and bounds[:-1] != shape[:-1]:
        raise RuntimeError(
            "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
            f"and input value tensor must match, but we got boundaries tensor {list(bounds)} and input value tensor "
            f"{list(shape)}"
        )
    return shape


@operator(_indices_shape, result=index, accepts="real", public=False, out=False)
def sorted_place(sequence: Tensor, values: Tensor, right: bool) -> Tensor:
    """Return the index at which each of ``values`` would be inserted into ``sequence``, which ascends along its last
    dim.

    That is the number of elements that are less than the value, or with ``right`` not greater. A 1-d sequence is for
    values of any shape; otherwise all dims except the last are equal. NaN is sorted last.
    """
    size = sequence.shape[-1]
    low = new_full(values, tuple(values.shape), 0, dtype=int64)
    if not size:
        return low
    high = low + size
    for _ in range(size.bit_length()):
        middle = (low + high) // 2
        position = middle.clamp(max=size - 1)
        if sequence.ndim == 1:
            element = sequence.take(position)
        else:
            element = gather(sequence, -1, position)
        stops = (element > values) if right else (element >= values)
        stops = stops | (low == high)
        low, high = where(stops, low, middle + 1), where(stops, middle, high)
    return low


sorted_place.no_gradient("the result is an index")


def _is_right(right: bool, side: str | None) -> bool:
    if side is None:
        return right
    if side not in ("left", "right"):
        raise RuntimeError(f"searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RuntimeError(
            "searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    return side == "right"


def _in_order(sequence: Tensor, sorter: Tensor) -> Tensor:
    """Return the sequence in the order of ``sorter``."""
    if sorter.dtype is not int64:
        raise RuntimeError(f"searchsorted(): sorter must be a tensor of long dtype but got dtype {sorter.dtype.title}")
    if sorter.shape != sequence.shape:
        raise RuntimeError(
            "searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{list(sequence.shape)} and got sorter tensor {list(sorter.shape)}"
        )
    return gather(sequence, -1, sorter)


def _as_values(input: Tensor | Number, sequence: Tensor) -> Tensor:
    """Return the values to search for. A number is converted to a 0-d tensor, in the dtype of the sequence unless a
    float would lose its fraction.
    """
    if isinstance(input, Tensor):
        return input.detach()
    number = input.item() if hasattr(input, "item") else input  # for a scalar of an array library
    is_exact = isinstance(number, int) or sequence.is_floating_point()
    d = sequence.dtype if is_exact else get_default_dtype()
    return new_full(sequence, (), number_for(number, d), dtype=d)


@public(method=False, out=True)
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | Number,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Return the index at which each value of ``input`` would be inserted into a sequence that ascends along its last
    dim.

    That is the number of elements that are less than the value, or with ``right`` (``side="right"``) not greater, as
    int64 or int32. With ``sorter`` the sequence ascends in that order of its elements. A 1-d sequence is for values of
    any shape; otherwise all dims except the last are equal. Raises ``RuntimeError`` for shapes that do not fit.
    """
    sequence = sorted_sequence.detach()
    values = _as_values(input, sequence)
    right = _is_right(right, side)
    if sequence.ndim > 1 and not values.ndim:
        raise RuntimeError(
            "searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({sequence.ndim}) and input value's dim(0) numel(1)"
        )
    _indices_shape(sorted_place, (sequence, values, right))
    for tensor in (sequence, values):
        if tensor.dtype.category in (BOOL, COMPLEX):
            raise NotImplementedError(f"\"searchsorted\" not implemented for '{tensor.dtype.title}'")
    if sorter is not None:
        sequence = _in_order(sequence, sorter)
    indices = sorted_place(sequence, values, right)
    return indices.to(int32) if out_int32 else indices


@public(method=False, out=True)
def bucketize(input: Tensor | Number, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Return the bucket of each value between 1-d ascending ``boundaries``; see :func:`searchsorted`.

    Bucket i holds the values with ``boundaries[i-1] < value <= boundaries[i]``; with ``right``, those with
    ``boundaries[i-1] <= value < boundaries[i]``.
    """
    if boundaries.ndim != 1:
        raise RuntimeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)
