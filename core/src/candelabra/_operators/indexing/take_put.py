"""``take`` and ``put``: indices of the flattened tensor."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.indexing.advanced import index as advanced_index
from candelabra._operators.indexing.advanced import index_put
from candelabra._records.promotion import identical
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Index, Tensor


@operator(by(lambda input, index: shape_of(index)), out="exact")
def take(input: Tensor, index: Index) -> Tensor:
    """Return the elements of the flattened ``input`` that ``index`` selects, in its shape. Negative indices count from
    the end.

    Raises ``IndexError`` for indices out of bounds.
    """
    return advanced_index(input.flatten(), (index,))


@by
def _put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> tuple[int, ...]:
    if source.numel() != index.numel():
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.numel()}, index.numel() = {index.numel()}"
        )
    return shape_of(input)


@operator(_put, promote=identical, inplace=True, out=False)
def put(input: Tensor, index: Index, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return ``input`` with the elements of ``source`` written to the elements of the flattened ``input`` at ``index``.

    With ``accumulate`` they are added. Negative indices count from the end. Raises ``IndexError`` for indices out of
    bounds and for another number of elements, ``RuntimeError`` for different dtypes.
    """
    shape: Any = _put(put, (input, index, source, accumulate))
    return index_put(input.flatten(), (index.flatten(),), source.flatten(), accumulate).reshape(shape)
