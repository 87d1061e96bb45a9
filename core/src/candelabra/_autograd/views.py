"""Views and in-place writes: how a write becomes visible in other views, and how it changes their history.

A view refers to its base, its parent and the operator that created it. All tensors on one memory share a version cell,
which every write increments. A view whose ``_seen`` differs from the cell is refreshed before its next use: its graph
node (and, on immutable arrays, its payload) is computed again from its parent. So ``v = b[0]; b.mul_(w)`` makes ``v``
require grad.

In the graph, a write to a view is a new base: the old one with the viewed part replaced (:class:`Overwrite`).

Attribution: sharing version counters between base and views, and rebasing history on writes, are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Container

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._autograd.filling import zeros_like
from candelabra._autograd.node import Node
from candelabra._autograd.pending import note_write
from candelabra._device import instance_of_key
from candelabra._dispatch.deferring import changes_state
from candelabra._dispatch.key import redispatch
from candelabra._dispatch.tracing import note_break, tracer_here
from candelabra._keys import (
    AUTOGRAD,
    DEFERRED,
    DEVICE_SHIFT,
    INFERENCE,
    INFERENCE_MODE,
    LAYER_MASK,
    NO_GRAD,
    NO_OVERRIDE,
    OVERRIDE,
    VIEW,
    mode,
    state,
    switch,
)
from candelabra._overrides import call_override
from candelabra._records.registry import OPERATORS
from candelabra._tensor import Tensor, wrap
from candelabra._versions import join_versions

if TYPE_CHECKING:
    from candelabra._autograd.structure import Structure
    from candelabra._records.record import Operator
Step = tuple[Any, tuple[Any, ...]]
"""One view operator and its arguments after the tensor."""


def chain_of(view: Tensor) -> list[Step]:
    """Return the view operators that lead from the base to ``view``, in order."""
    return chain_from((), view)[1]


def chain_from(sources: Container[int], view: Tensor) -> tuple[Tensor, list[Step]]:
    """Return the nearest tensor that ``view`` is a view of and whose ``id`` is in ``sources``, otherwise its base, and
    the view operators that lead from there to ``view``, in order.
    """
    steps: list[Step] = []
    while view._keys & VIEW and id(view) not in sources:
        assert view._replay is not None
        steps.append(view._replay)
        view = view._parent
    return view, steps[::-1]


def refresh(view: Tensor) -> None:
    """Compute the node (and on immutable arrays the payload) of a stale view again, after those of stale parents."""
    stale = [view]
    while (parent := stale[-1]._parent)._keys & VIEW and parent._seen != parent._counter[0]:
        stale.append(parent)
    before = state.bits
    switch(before & ~(NO_GRAD | INFERENCE_MODE))
    try:
        for tensor in reversed(stale):
            _remake(tensor)
    finally:
        switch(before)


def _remake(view: Tensor) -> None:
    assert view._replay is not None
    op, arguments = view._replay
    view._parent._fresh()
    immutable, node = instance_of_key(view._keys).immutable, view._node
    same = not (view._keys ^ view._parent._keys) >> DEVICE_SHIFT
    if same and view._parent._node is None and not immutable:
        # Nothing to replay: the view still shows the base's memory.
        if node is not None and not node.is_leaf:
            view._node = None
            view._keys &= ~AUTOGRAD
        view._seen = view._counter[0]
        return
    made = redispatch(op, (view._parent, *arguments))
    if (made._keys ^ view._keys) >> DEVICE_SHIFT:  # a level of a function transform has taken the base in, or left it
        _move(view, made)
        return
    if made._payload.shape != view._payload.shape or (not immutable and made._layout() != view._layout()):
        raise RuntimeError(
            f"a view of shape {list(view._payload.shape)} cannot be used any more: its base was given another shape in "
            "place after the view was created. Create the view again"
        )
    if view._node is not None and view._node.is_leaf:
        pass  # it was detached and became a leaf: it only shares the memory of the base
    elif made._node is None:
        view._node = None
        view._keys &= ~AUTOGRAD
    else:
        view._node = made._node
        view._keys |= AUTOGRAD
    if immutable:
        view._payload = made._payload
    view._seen = view._counter[0]


def _move(view: Tensor, view_of_base: Tensor) -> None:
    """Give a view the payload, the keys and the node of the same view of its base on another level."""
    view._payload = view_of_base._payload
    view._keys = view_of_base._keys | view._keys & OVERRIDE
    view._node = view_of_base._node
    view._seen = view._counter[0]


def refresh_all(args: tuple[Any, ...]) -> bool:
    """Refresh the stale views of a call, and return whether the keys of one of them changed."""
    changed = False
    for value in args:
        for tensor in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(tensor, Tensor) and tensor._keys & VIEW and tensor._seen != tensor._counter[0]:
                keys = tensor._keys
                refresh(tensor)
                changed |= tensor._keys != keys
    return changed


def refreshed(op: Operator[..., Any], args: tuple[Any, ...]) -> Any:
    """Refresh the call's views and dispatch it again (their keys may have changed)."""
    refresh_all(args)
    return redispatch(op, args)


def refreshed_inplace(op: Operator[..., Any], args: tuple[Any, ...]) -> Any:
    """As :func:`refreshed`, for an in-place form."""
    refresh_all(args)
    return redispatch(op, args, inplace=True)


def check_writable(target: Tensor) -> None:
    """Raise RuntimeError for a recorded write to a leaf that requires grad or its view, and for expanded memory."""
    if target._keys & INFERENCE and not state.bits & INFERENCE_MODE:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
            "normal tensor before doing inplace update."
        )
    if state.bits & NO_GRAD:
        return
    if target._inplace_refused is not None:
        raise RuntimeError(target._inplace_refused)
    node = target._node
    if node is not None and node.is_leaf:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if target._keys & VIEW:
        base = target._base._node
        if base is not None and base.is_leaf and not is_cut(target):
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")


def is_cut(view: Tensor) -> bool:
    """Return whether the chain of a view contains ``detach``, so that writes to it are not recorded."""
    return any(op.not_differentiable is not None for op, _ in chain_of(view))


def write(target: Tensor, payload: Any) -> None:
    """Replace the target's content by a payload of the same shape and dtype, and increment the version."""
    instance = instance_of_key(target._keys)
    if not instance.immutable:
        check_overlap(target)
        tracer = tracer_here()
        if tracer is not None and not instance.depth:
            tracer.copy(target, payload)
        else:
            instance.backend.copy_(target._payload, payload)
    elif target._keys & VIEW:
        base = target._base
        with mode(include=NO_GRAD):
            base._payload = scatter_through(chain_of(target), _plain(base), _wrapped(payload, target))._payload
        if instance.lazy:
            note_write(base)
    else:
        target._payload = payload
        if instance.lazy:
            note_write(target)
    target._counter[0] += 1


def check_overlap(target: Tensor) -> None:
    """Raise RuntimeError for a write to expanded memory, in which several elements share an address."""
    shape = target._payload.shape
    if not shape or not target._keys & VIEW:
        return
    strides = target._layout()[0]
    if 0 in strides and any(step == 0 and size > 1 for size, step in zip(shape, strides, strict=True)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


def check_targets(*targets: Tensor | None) -> None:
    """Raise RuntimeError if one of several tensors cannot be written, before the first of them is."""
    for target in targets:
        if target is not None:
            check_writable(target)
            check_overlap(target)


def check_operand_overlap(target: Tensor, operand: Any) -> None:
    """Raise RuntimeError for an operand that shares a part of the written memory, as in ``x[1:] += x[:-1]``.

    The result would depend on the order in which a kernel reads and writes. Tensors of one memory share their version
    counter. As in PyTorch, only tensors without gaps are compared, and exactly the same elements are allowed.
    """
    if operand is target or getattr(operand, "_counter", None) is not target._counter:
        return
    spans = []
    for tensor in (target, operand):
        shape, (strides, offset) = tuple(tensor._payload.shape), tensor._layout()
        dims = sorted((step, size) for step, size in zip(strides, shape, strict=True) if size != 1)
        count = 1
        for step, size in dims:
            if step != count:
                return
            count *= size
        spans.append((offset, offset + count, dims and [s for s, n in zip(strides, shape, strict=True) if n != 1]))
    (first, end, strides), (other, other_end, others) = spans
    if first < other_end and other < end and (first, end, strides) != (other, other_end, others):
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )


def write_recorded(target: Tensor, value: Tensor) -> Tensor:
    """Write ``value`` and make its node the target's history. If the target is a view, this goes through its base."""
    write(target, value._payload)
    _share_saved_output(value, target)
    node = value._node
    if target._keys & VIEW:
        base = target._base
        if not is_cut(target) and (node is not None or base._node is not None):
            base._node = Overwrite(base, chain_of(target), node)
            base._keys |= AUTOGRAD
        return target
    target._node = node
    target._keys = target._keys | AUTOGRAD if node is not None else target._keys & ~AUTOGRAD
    return target


def _share_saved_output(value: Tensor, target: Tensor) -> None:
    """Let a node that saved its output refer to the target's memory, so that no second copy stays alive."""
    node: Any = value._node
    if node is None or target._keys & VIEW or instance_of_key(target._keys).immutable:
        return
    if getattr(node, "p_out", None) is value._payload and value._payload is not None:
        node.p_out = target._payload
        node.c_out = target._counter
        node.v_out = target._counter[0]


class Overwrite(Node):
    """The node of a base after a write to one of its views: the old base with the viewed part replaced."""

    __slots__ = ("chain", "e1")
    operator = "copy_slices"

    def __init__(self, base: Tensor, chain: list[Step], value: Node | None) -> None:
        self.e0 = base._node
        self.e1 = value
        self.hooks = None
        self.keys = base._keys | AUTOGRAD
        self.shape = tuple(base._payload.shape)
        self.chain = chain

    def backward(self, g: Tensor) -> tuple[Tensor | None, Tensor | None]:
        parts = [g]
        for op, arguments in self.chain:
            parts.append((op.gather or op.canonical)(parts[-1], *arguments))
        to_base = None
        if self.e0 is not None:
            to_base = zeros_like(parts[-1])
            for (op, arguments), whole in zip(reversed(self.chain), reversed(parts[:-1]), strict=True):
                to_base = op.scatter(whole, to_base, *arguments)
        return to_base, parts[-1] if self.e1 is not None else None

    def describe(self, to: Structure) -> None:
        for op, arguments in self.chain:
            to.same(op)
            to.plain(arguments)
        to.key.append(len(self.chain))

    def name(self) -> str:
        return "CopySlices"


def scatter_through(chain: list[Step], base: Tensor, source: Tensor) -> Tensor:
    """Return a new tensor: ``base`` with the part that a chain of views shows replaced by ``source``."""
    wholes = [base]
    for op, arguments in chain[:-1]:
        wholes.append(op.canonical(wholes[-1], *arguments))
    for (op, arguments), whole in zip(reversed(chain), reversed(wholes), strict=True):
        if op.scatter is None:
            raise RuntimeError(f"a view made by {op.name!r} cannot be written to: it shows elements more than once")
        source = op.scatter(whole, source, *arguments)
    return source


def _plain(tensor: Tensor) -> Tensor:
    return wrap(tensor._payload, tensor._keys & ~(AUTOGRAD | VIEW))


def _wrapped(payload: Any, like: Tensor) -> Tensor:
    return wrap(payload, like._keys & ~(AUTOGRAD | VIEW))


# -- what changes a tensor's identity ------------------------------------------------------------------------------
def detached(tensor: Tensor) -> Tensor:
    """See ``Tensor.detach``. On immutable arrays the result is a tracked view, which follows writes to its base.

    Inside a function transform the operator runs, since it detaches the tensors of the levels below too.
    """
    if tensor._keys & OVERRIDE and not state.bits & NO_OVERRIDE:
        handled: Tensor = call_override(Tensor.detach, (tensor,), (tensor,), {}, Tensor)
        return handled
    instance = instance_of_key(tensor._keys)
    if instance.immutable or instance.depth or (state.bits | tensor._keys) & (LAYER_MASK | DEFERRED):
        followed: Tensor = OPERATORS["detach"].function(tensor)
        return followed
    out = wrap(tensor._payload, tensor._keys & ~(AUTOGRAD | VIEW))
    out._counter = tensor._counter
    return out


def detach_in_place(tensor: Tensor) -> Tensor:
    """See ``Tensor.detach_``."""
    if tensor._fresh()._keys & VIEW:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    if instance_of_key(tensor._keys).depth:  # the tensors of the levels below, and the tangent
        tensor._payload = OPERATORS["detach"].function(tensor)._payload
    tensor._node = None
    tensor._keys &= ~AUTOGRAD
    return tensor


def rebind(tensor: Tensor, source: Tensor) -> None:
    """Give a tensor the memory of another one, possibly of another shape. The version increases, as for any write."""
    source._fresh()  # a deferred tensor is computed now
    if tensor._fresh()._keys & VIEW:
        raise RuntimeError("a view cannot be resized or given other memory; use its base, or a clone")
    note_break("a tensor gets other memory (.data, resize_, out=)")
    changes_state()
    tensor._payload = source._payload
    tensor._counter[0] += 1


def set_data(tensor: Tensor, value: Any) -> None:
    """Implement ``tensor.data = value``: replace the memory and keep the node."""
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    tensor._fresh()
    special = AUTOGRAD | VIEW | OVERRIDE
    if tensor._keys & VIEW:
        tensor._keys &= ~VIEW  # it is no longer a view
        tensor._counter = [tensor._counter[0]]
    rebind(tensor, value)
    join_versions(tensor._counter, value._counter)
    tensor._keys = (value._keys & ~special) | (tensor._keys & (AUTOGRAD | OVERRIDE))
    node = tensor._node
    if node is not None and node.is_leaf:
        node.shape = tuple(value._payload.shape)
        node.keys = tensor._keys & ~OVERRIDE
