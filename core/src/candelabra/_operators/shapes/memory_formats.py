"""In which order the dims of a tensor lie in memory: C order, channels last, any."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING
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


@public(is_function=False)
def contiguous(input: Tensor, memory_format: memory_format = contiguous_format) -> Tensor:
    """The tensor itself if its elements lie in the order that ``memory_format`` asks for (C order), else a copy."""
    if memory_format is not contiguous_format:
        return in_memory_format(input, memory_format)
    shape, strides = input._payload.shape, input._layout()[0]
    if strides == contiguous_strides(shape) or is_contiguous_layout(shape, strides):
        return input
    return clone(input)


def in_memory_format(input: Tensor, format: memory_format) -> Tensor:
    """The tensor in a memory format: itself, or a copy whose channels lie last."""
    if format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    order = physical_order(input.ndim, format)
    if input.is_contiguous(format):
        return input
    return clone(input) if order is None else clone_in_order(input, order)


def clone_in_order(input: Tensor, order: Sequence[int]) -> Tensor:
    """A copy whose dims lie in memory in ``order``, the outermost first."""
    return permute(clone(permute(input, order)), inverse_permutation(order))


def dense_strides(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """The strides of a dense tensor whose dims lie in memory in ``order``, the outermost first."""
    strides = [0] * len(shape)
    for d, step in zip(order, contiguous_strides([shape[d] for d in order]), strict=True):
        strides[d] = step
    return tuple(strides)


@public(is_function=False)
def dim_order(input: Tensor, *, ambiguity_check: bool = False) -> tuple[int, ...]:
    """The dims in the order in which they lie in memory, the outermost first; equal strides in the order of the dims.

    ``ambiguity_check`` refuses (``RuntimeError``) tensors of which several orders are true.
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
