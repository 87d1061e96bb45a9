"""Operators that read and write where a mask is true: ``masked_select``, ``masked_scatter``."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._layout import broadcast_shapes
from candelabra._operators.indexing.advanced import index, index_put
from candelabra._operators.searching.nonzero import nonzero
from candelabra._records.promotion import identical
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import BoolMask, Tensor


@by
def _selected(input: Tensor, mask: Tensor) -> None:
    broadcast_shapes(shape_of(input), shape_of(mask))  # raises errors; the number of elements depends on the mask


@operator(_selected, data_dependent=True, out="exact")
def masked_select(input: Tensor, mask: BoolMask) -> Tensor:
    """Return the elements where ``mask`` is true, as a 1-d tensor in C order. Both tensors broadcast."""
    shape = broadcast_shapes(shape_of(input), shape_of(mask)) or (1,)
    return index(input.expand(shape), nonzero(mask.expand(shape)).unbind(1))


@operator(
    by(lambda input, mask, source: broadcast_shapes(shape_of(input), shape_of(mask))),
    promote=identical,
    data_dependent=True,
    inplace=True,
    out=False,
)
def masked_scatter(input: Tensor, mask: BoolMask, source: Tensor) -> Tensor:
    """Return ``input`` with the elements of ``source``, in order, where ``mask`` is true. ``input`` and ``mask``
    broadcast.

    Raises ``RuntimeError`` if ``source`` has fewer elements than ``mask`` selects, and for different dtypes.
    """
    shape = broadcast_shapes(shape_of(input), shape_of(mask))
    if not shape:
        return masked_scatter(input.reshape(1), mask.reshape(1), source).reshape(())
    indices = nonzero(mask.expand(shape))
    count = indices.shape[0]
    if count > source.numel():
        raise RuntimeError(
            f"masked_scatter(): Number of elements of source < number of ones in mask: {source.numel()} < {count}"
        )
    return index_put(input.expand(shape), indices.unbind(1), source.flatten().narrow(0, 0, count))
