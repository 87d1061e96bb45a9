"""In-place changes of a tensor's sizes and memory: ``resize_`` and ``set_``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from candelabra._annotations import TYPE_CHECKING
from candelabra._autograd.views import check_writable
from candelabra._codegen.arguments import kind_of
from candelabra._dispatch.viewing import become_view, same_tensor
from candelabra._geometry import extent
from candelabra._keys import NO_GRAD, VIEW, mode
from candelabra._layout import contiguous_strides, memory_format, physical_order
from candelabra._operators.creation.filled import full, given_shape
from candelabra._operators.shapes.joining import cat
from candelabra._operators.shapes.memory_formats import dense_strides
from candelabra._operators.shapes.reshaping import reshape
from candelabra._operators.shapes.strided import as_strided
from candelabra._records.callables import public
from candelabra._tensor import Tensor

if TYPE_CHECKING:
    from candelabra._device import Instance
    from candelabra.typing import Shape


@public(is_function=False, uses="memory")
def resize_(input: Tensor, *sizes: Shape, memory_format: memory_format | None = None) -> Tensor:
    """Change the shape of the tensor in place, to C order (or ``memory_format``), over its memory or a larger copy of
    it.

    The old elements stay in memory order; new elements are uninitialized. If the memory is too small, the tensor gets
    new memory, which it no longer shares with its views. Raises ``RuntimeError`` for tensors that require grad, for
    negative sizes, and for a view that would have to grow.
    """
    if input._fresh()._node is not None:
        raise RuntimeError("cannot resize variables that require grad")
    shape: tuple[int, ...] = given_shape(full, (sizes,))
    order = physical_order(len(shape), memory_format)
    strides = contiguous_strides(shape) if order is None else dense_strides(shape, order)
    instance = input._instance
    offset = input._layout()[1]
    if instance.capabilities.strided and offset + prod(shape) <= _memory_size(input, instance):
        return become_view(input, as_strided, shape, strides)
    if input._keys & VIEW:
        raise RuntimeError(
            f"resize_(): a view of {input.numel()} elements cannot grow to {list(shape)} beyond the memory of its "
            "base; clone() it first"
        )
    with mode(include=NO_GRAD):
        old, strided = same_tensor(input), instance.capabilities.strided
        kept = as_strided(old, (_memory_size(input, instance) - offset,), (1,)) if strided else reshape(old, (-1,))
        count = min(kept.numel(), prod(shape))
        grown = cat([kept[:count], old.new_empty((prod(shape) - count,))])
        grown = reshape(grown, shape) if order is None else as_strided(grown, shape, strides)
    input._payload = grown._payload
    input._counter[0] += 1
    return input


def _memory_size(input: Tensor, instance: Instance) -> int:
    """Return the number of elements in the memory of a tensor, which is that of its base."""
    if not instance.capabilities.strided:
        return input.numel()
    base = input._base if input._keys & VIEW else input
    strides, offset = base._layout()
    return offset + extent(tuple(base._payload.shape), strides)


@public(uses="memory")
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """Return ``input.resize_(the_template.shape)``."""
    return resize_(input, tuple(the_template.shape), memory_format=memory_format)


@public(is_function=False, uses="memory")
def set_(
    input: Tensor,
    source: Tensor | None = None,
    storage_offset: int | None = None,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Let the tensor use the memory of ``source``, with the sizes and strides of ``source`` or the given ones.

    Without ``source`` the tensor becomes empty. Raises ``RuntimeError`` if the dtypes or devices differ, ``TypeError``
    for a storage object: storages are not supported.
    """
    check_writable(input._fresh())
    if source is None:
        source = input.new_empty((0,))
    if not isinstance(source, Tensor):
        raise TypeError(f"set_(): argument 'source' (position 1) must be Tensor, not {kind_of(source)}")
    if source.dtype is not input.dtype:
        raise RuntimeError(f"set_(): expected a source of dtype {input.dtype}, but got {source.dtype}")
    if source._instance is not input._instance:
        raise RuntimeError(f"set_(): expected a source on {input.device}, but got one on {source.device}")
    view = source.detach()
    if storage_offset is not None:
        if size is None:
            raise TypeError("set_(): a storage_offset needs a size")
        view = as_strided(view, size, contiguous_strides(size) if stride is None else stride, storage_offset)
    input.data = view
    return input


@public(is_function=False, uses="memory")
def is_set_to(input: Tensor, tensor: Tensor) -> bool:
    """Return whether both tensors have the same memory, offset, sizes and strides.

    On devices whose memory has no host address, this is known only for tensors with the same base.
    """
    if input._instance is not tensor._instance or input.dtype is not tensor.dtype or input.shape != tensor.shape:
        return False
    if input._instance.capabilities.host:
        return input.data_ptr() == tensor.data_ptr() and input.stride() == tensor.stride()
    bases = [t._base if t._keys & VIEW else t for t in (input, tensor)]
    return bases[0]._payload is bases[1]._payload and input._layout() == tensor._layout()
