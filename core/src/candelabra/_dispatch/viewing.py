"""View operators: on strided backends the core computes shape, strides and offset; the backend only re-strides.

The in-place form of a view operator (``t_``, ``squeeze_``) writes nothing: the tensor shows its memory in another way
from then on.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._autograd.views import check_writable
from candelabra._device import Instance
from candelabra._keys import NO_GRAD, VIEW, mode
from candelabra._tensor import Tensor, new

if TYPE_CHECKING:
    from candelabra._records.record import Operator

VIEW_SLOTS = ("_base", "_parent", "_replay", "_seen")


def strided_view_kernel(op: Operator[..., Any], instance: Instance) -> Callable[..., Any] | None:
    """A kernel from the record's geometry, or None where it has none (its body serves it then)."""
    geometry = op.geometry
    if geometry is None:
        return None
    layout, restride = instance.backend.layout, instance.backend.restride

    def kernel(payload: Any, *args: Any) -> Any:
        strides, offset = layout(payload)
        return restride(payload, *geometry(tuple(payload.shape), strides, offset, *args))

    return kernel


def inplace_view(op: Operator[..., Any]) -> Callable[..., Any]:
    """The in-place form of a view operator."""
    view = op.canonical

    def inplace(input: Tensor, *arguments: Any) -> Tensor:
        return become_view(input, view, *arguments)

    return inplace


def become_view(input: Tensor, view: Callable[..., Tensor], *arguments: Any) -> Tensor:
    """Let ``input`` be what ``view(input, *arguments)`` shows; returns ``input``.

    In the graph that is the view operator applied to what the tensor was; of a view it is one more step on the way from
    its base. A leaf that requires grad refuses, as any write does.
    """
    check_writable(input._fresh())
    was_view = input._keys & VIEW
    leaf = input._node is not None and input._node.is_leaf
    # Of any other tensor the step is recorded even where recording is off: its node must know what shape it has now.
    with mode(include=NO_GRAD) if leaf else mode(exclude=NO_GRAD):
        made = view(same_tensor(input), *arguments)
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


def same_tensor(input: Tensor) -> Tensor:
    """The tensor as it is, as another object: same memory, version counter and place in the graph."""
    twin = new(Tensor)
    for slot in ("_payload", "_keys", "_node", "_version", *(VIEW_SLOTS if input._keys & VIEW else ())):
        setattr(twin, slot, getattr(input, slot))
    return twin
