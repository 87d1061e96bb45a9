"""Names of PyTorch's internal module of this name that programs import: many tensors as one, as for an all-reduce."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Return the elements of all tensors, one after the other, as a new 1-D tensor."""
    from candelabra import cat

    return cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return views of a 1-D tensor that have the shapes of ``tensors``, one after the other."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True))


def _take_tensors(tensors: Sequence[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Yield groups of tensors of one dtype and device, in order, each of at most ``size_limit`` bytes or one tensor."""
    groups: dict[tuple[object, object], list[Tensor]] = {}
    for tensor in tensors:
        kind = tensor.dtype, tensor.device
        group = groups.get(kind, [])
        size = sum(t.nbytes for t in group)
        if size and size + tensor.nbytes > size_limit:
            yield group
            group = []
        groups[kind] = [*group, tensor]
    yield from groups.values()
