"""Shapes changed in place: ``t_``, ``squeeze_``, ``resize_``, ``set_`` and their kin.

The memory stays, the tensor shows it differently. In the graph that is the view operator applied to what the tensor
was; of a view it is one more step on the way from its base. A leaf that requires grad refuses, as any write does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._autograd.views import check_writable
from candelabra._codegen.arguments import kind_of
from candelabra._geometry import extent
from candelabra._keys import NO_GRAD, VIEW, mode
from candelabra._layout import contiguous_strides, physical_order
from candelabra._operators.fronts import arranging, shaping
from candelabra._operators.primitives import creation, views
from candelabra._operators.primitives.joining import cat
from candelabra._records.callables import public
from candelabra._tensor import Tensor, new

if TYPE_CHECKING:
    from candelabra._device import Instance

VIEW_SLOTS = ("_base", "_parent", "_replay", "_seen")


def _twin(input: Tensor) -> Tensor:
    """The tensor as it is, as another object: same memory, version counter and place in the graph."""
    twin = new(Tensor)
    for slot in ("_payload", "_keys", "_node", "_version", *(VIEW_SLOTS if input._keys & VIEW else ())):
        setattr(twin, slot, getattr(input, slot))
    return twin


def reshaped(input: Tensor, view: Callable[[Tensor], Tensor]) -> Tensor:
    """Let ``input`` be what ``view`` of it shows; returns ``input``."""
    check_writable(input._fresh())
    was_view = input._keys & VIEW
    leaf = input._node is not None and input._node.is_leaf
    # Of any other tensor the step is recorded even where recording is off: its node must know what shape it has now.
    with mode(include=NO_GRAD) if leaf else mode(exclude=NO_GRAD):
        made = view(_twin(input))
    input._version[0] += 1
    input._payload = made._payload
    if was_view:
        # Another way from the same base: the tensor as it was is the parent of what it is now.
        for slot in VIEW_SLOTS:
            setattr(input, slot, getattr(made, slot))
        input._seen = input._version[0]
    if leaf and input._node is not None:  # recording is off, or check_writable would have refused
        input._node.shape = tuple(made._payload.shape)
    else:
        input._node = made._node
    return input


@public(is_function=False)
def t_(input: Tensor) -> Tensor:
    """In-place form of :func:`t`."""
    return reshaped(input, views.t.function)


@public(is_function=False)
def transpose_(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """In-place form of :func:`transpose`."""
    return reshaped(input, lambda x: views.transpose.function(x, dim0, dim1))


@public(is_function=False)
def swapaxes_(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """In-place form of :func:`swapaxes`."""
    return transpose_(input, axis0, axis1)


@public(is_function=False)
def swapdims_(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """In-place form of :func:`swapdims`."""
    return transpose_(input, dim0, dim1)


@public(is_function=False)
def squeeze_(input: Tensor, dim: Any = None) -> Tensor:
    """In-place form of :func:`squeeze`."""
    return reshaped(input, lambda x: shaping.squeeze(x, dim))


@public(is_function=False)
def unsqueeze_(input: Tensor, dim: int) -> Tensor:
    """In-place form of :func:`unsqueeze`."""
    return reshaped(input, lambda x: shaping.unsqueeze(x, dim))


@public
def as_strided_(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """In-place form of :func:`as_strided`."""
    return reshaped(input, lambda x: arranging.as_strided(x, size, stride, storage_offset))


# -- other sizes ------------------------------------------------------------------------------------------------------
def _check_resizable(input: Tensor) -> None:
    if input._fresh()._node is not None:
        raise RuntimeError("cannot resize variables that require grad")


def _room(input: Tensor, instance: Instance) -> int:
    """How many elements lie in the memory of a tensor, as far as its base shows them."""
    if not instance.capabilities.strided:
        return input.numel()
    base = input._base if input._keys & VIEW else input
    strides, offset = base._layout()
    return offset + extent(tuple(base._payload.shape), strides)


@public(is_function=False)
def resize_(input: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Give the tensor another shape, in C order (or ``memory_format``), over its memory, or over more of it.

    What was there stays in the order in which it lies in memory; what is new is unspecified. Where the memory does not
    suffice the tensor gets other memory, and shares it with its views no longer.

    Raises ``RuntimeError`` for tensors that require grad and for negative sizes, and where a view would have to grow.
    """
    _check_resizable(input)
    shape = shaping.sizes(sizes)
    creation.given_shape(creation.full, (shape,))
    order = physical_order(len(shape), memory_format)
    strides = contiguous_strides(shape) if order is None else dense_strides(shape, order)
    instance = input._instance
    offset = input._layout()[1]
    if instance.capabilities.strided and offset + prod(shape) <= _room(input, instance):
        return reshaped(input, lambda x: arranging.as_strided(x, shape, strides))
    if input._keys & VIEW:
        raise RuntimeError(
            f"resize_(): a view of {input.numel()} elements cannot grow to {list(shape)} beyond the memory of its "
            "base; clone() it first"
        )
    with mode(include=NO_GRAD):
        old, strided = _twin(input), instance.capabilities.strided
        kept = arranging.as_strided(old, (_room(input, instance) - offset,), (1,)) if strided else old.reshape(-1)
        count = min(kept.numel(), prod(shape))
        grown = cat([kept[:count], old.new_empty((prod(shape) - count,))])
        grown = shaping.reshape(grown, shape) if order is None else arranging.as_strided(grown, shape, strides)
    input._payload = grown._payload
    input._version[0] += 1
    return input


def dense_strides(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """The strides of a dense tensor whose dims lie in memory in ``order``, the outermost first."""
    strides = [0] * len(shape)
    for d, step in zip(order, contiguous_strides([shape[d] for d in order])):
        strides[d] = step
    return tuple(strides)


@public
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """``input.resize_(the_template.shape)``."""
    return resize_(input, tuple(the_template.shape), memory_format=memory_format)


@public(is_function=False)
def set_(
    input: Tensor,
    source: Tensor | None = None,
    storage_offset: int | None = None,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Let the tensor show the memory of ``source``, as ``source`` does or with the sizes and steps that are given.

    Without ``source`` it becomes empty. Raises ``RuntimeError`` where the dtypes or devices differ, ``TypeError`` for a
    storage object: there are tensors only.
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
    shown = source.detach()
    if storage_offset is not None:
        if size is None:
            raise TypeError("set_(): a storage_offset needs a size")
        steps = contiguous_strides(size) if stride is None else stride
        shown = arranging.as_strided(shown, size, steps, storage_offset)
    input.data = shown
    return input


@public(is_function=False)
def is_set_to(input: Tensor, tensor: Tensor) -> bool:
    """Whether both show the same memory in the same way: same start, sizes and steps."""
    if input._instance is not tensor._instance or input.dtype is not tensor.dtype or input.shape != tensor.shape:
        return False
    return input.data_ptr() == tensor.data_ptr() and input.stride() == tensor.stride()


@public(is_function=False)
def dim_order(input: Tensor, *, ambiguity_check: bool = False) -> tuple[int, ...]:
    """The dims in the order in which they lie in memory, the outermost first; equal steps in the order of the dims.

    ``ambiguity_check`` refuses (``RuntimeError``) tensors of which several orders are true.
    """
    strides, shape = input._layout()[0], tuple(input.shape)
    order = sorted(range(len(shape)), key=lambda d: -strides[d])
    if ambiguity_check and (
        0 in shape or len({k for k, n in zip(strides, shape) if n > 1}) < sum(n > 1 for n in shape)
    ):
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given formats."
        )
    return tuple(order)
