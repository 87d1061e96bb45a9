"""The memory order of the dims of a tensor: C order, channels last, any."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING
from candelabra._keys import DEFERRED
from candelabra._layout import (
    contiguous_format,
    contiguous_strides,
    is_contiguous_layout,
    memory_format,
    physical_order,
    preserve_format,
)
from candelabra._operators.conversion.copies import clone
from candelabra._operators.shapes.permuting import inverse_permutation, permute
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


@public(is_function=False, guarded=False, elementwise=True)
def contiguous(input: Tensor, memory_format: memory_format = contiguous_format) -> Tensor:
    """Return the tensor itself if it has the memory order that ``memory_format`` requests (C order), else a copy."""
    if memory_format is not contiguous_format:
        return in_memory_format(input, memory_format)
    if input._keys & DEFERRED:
        found: Tensor = input._payload.contiguous(input)
        return found
    shape, strides = input._payload.shape, input._layout()[0]
    if strides == contiguous_strides(shape) or is_contiguous_layout(shape, strides):
        return input
    return clone(input)


def in_memory_format(input: Tensor, format: memory_format) -> Tensor:
    """Return the tensor in a memory format: itself, or a copy in channels-last order."""
    if format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    order = physical_order(input.ndim, format)
    if input.is_contiguous(format):
        return input
    return clone(input) if order is None else clone_in_order(input, order)


def clone_in_order(input: Tensor, order: Sequence[int]) -> Tensor:
    """Return a copy whose memory order of dims is ``order``, the outermost first."""
    return permute(clone(permute(input, order)), inverse_permutation(order))


def dense_strides(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a dense tensor whose memory order of dims is ``order``, the outermost first."""
    strides = [0] * len(shape)
    for d, step in zip(order, contiguous_strides([shape[d] for d in order]), strict=True):
        strides[d] = step
    return tuple(strides)


@public(is_function=False)
def dim_order(input: Tensor, *, ambiguity_check: bool = False) -> tuple[int, ...]:
    """Return the dims in memory order, the outermost first. Dims with equal strides keep their order.

    With ``ambiguity_check``, raises ``RuntimeError`` for tensors for which several orders are correct.
    """
    strides, shape = input._layout()[0], tuple(input.shape)
    order = sorted(range(len(shape)), key=lambda d: -strides[d])
    if ambiguity_check and (
        0 in shape or len({k for k, n in zip(strides, shape, strict=True) if n > 1}) < sum(n > 1 for n in shape)
    ):
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given formats."
        )
    return tuple(order)
