"""View operators: on strided backends the core computes shape, strides and offset, and the backend only re-strides.

The in-place form of a view operator (``t_``, ``squeeze_``) writes nothing: it changes the shape and strides of the
tensor over the same memory.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._autograd.views import check_writable
from candelabra._device import Instance
from candelabra._keys import NO_GRAD, OVERRIDE, VIEW, mode
from candelabra._tensor import Tensor, new

if TYPE_CHECKING:
    from candelabra._records.record import Operator

VIEW_SLOTS = ("_base", "_parent", "_replay", "_seen")


def strided_view_kernel(op: Operator[..., Any], instance: Instance) -> Callable[..., Any] | None:
    """Return a kernel from the record's geometry, or None if it has none (then its body serves the call)."""
    geometry = op.geometry
    if geometry is None:
        return None
    layout, restride = instance.backend.layout, instance.backend.restride

    def kernel(payload: Any, *args: Any) -> Any:
        strides, offset = layout(payload)
        return restride(payload, *geometry(tuple(payload.shape), strides, offset, *args))

    return kernel


def inplace_view(op: Operator[..., Any]) -> Callable[..., Any]:
    """Return the in-place form of a view operator."""
    view = op.canonical

    def inplace(input: Tensor, *arguments: Any) -> Tensor:
        return become_view(input, view, *arguments)

    return inplace


def become_view(input: Tensor, view: Callable[..., Tensor], *arguments: Any) -> Tensor:
    """Give ``input`` the shape, strides and offset of ``view(input, *arguments)``, and return it.

    In the graph, this is the view operator applied to the earlier state of the tensor. If ``input`` is a view, it adds
    a step to the chain from its base. Raises RuntimeError for a leaf that requires grad, as any write does.
    """
    check_writable(input._fresh())
    was_view = input._keys & VIEW
    leaf = input._node is not None and input._node.is_leaf
    # For any other tensor the step is recorded even if recording is off: its node must know the new shape.
    with mode(include=NO_GRAD) if leaf else mode(exclude=NO_GRAD):
        made = view(same_tensor(input), *arguments)
    input._counter[0] += 1
    input._payload = made._payload
    if was_view:
        # The chain from the same base grows by one step: the tensor's earlier state is the parent of the new one.
        for slot in VIEW_SLOTS:
            setattr(input, slot, getattr(made, slot))
        input._seen = input._counter[0]
    if leaf and input._node is not None:  # recording is off, or check_writable would have raised
        input._node.shape = tuple(made._payload.shape)
    else:
        input._node = made._node
    return input


def same_tensor(input: Tensor) -> Tensor:
    """Return a plain tensor object for the same tensor: same memory, version counter and node."""
    twin = new(Tensor)
    for slot in ("_payload", "_keys", "_node", "_counter", *(VIEW_SLOTS if input._keys & VIEW else ())):
        setattr(twin, slot, getattr(input, slot))
    twin._keys &= ~OVERRIDE
    return twin
