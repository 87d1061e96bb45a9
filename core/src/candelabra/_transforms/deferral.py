"""Automatic batching: collect the calls of a block, and run groups of equal ones as one call.

Inside ``batching()`` a call of an operator returns a deferred tensor: its shape and dtype are known, its payload is a
:class:`Slot`. Two calls have the same *signature* if operator, plain arguments, modes, and shapes, dtypes and devices
of the tensors agree. A leaf that requires grad, a parameter, is part of the signature itself, so that all calls of a
group share it. When a value is needed, ``candelabra._transforms.agenda`` runs the groups by the batching rules of
``vmap``, on the device or level below. There the calls are recorded as usual, so gradients are batched too.

Deferral is not a level: it changes no kernel. Like ``no_grad`` it is a mode of the level on which the block is entered,
so transforms work inside the block, and the block inside transforms.

Attribution: Neubig, Goldberg and Dyer, "On-the-fly operation batching in dynamic computation graphs" (2017), in DyNet.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from weakref import ref

from candelabra._annotations import TYPE_CHECKING, Any, Final, NamedTuple
from candelabra._autograd.views import check_writable
from candelabra._device import open_device
from candelabra._dispatch.deferring import active_block, run_now
from candelabra._dispatch.levels import active_frames
from candelabra._dispatch.viewing import VIEW_SLOTS, same_tensor
from candelabra._keys import (
    ANOMALY,
    DEFERRED,
    DEVICE_SHIFT,
    LAYER_MASK,
    NO_GRAD,
    OVERRIDE,
    PACK,
    RECORDING_MODES,
    VIEW,
    mode,
    state,
    switch,
)
from candelabra._records.record import OPERATORS
from candelabra._records.schema import INDICES, LIST
from candelabra._tensor import Tensor, new, wrap
from candelabra._transforms.agenda import Call, Group, Operands, execute
from candelabra._transforms.batching import family_of
from candelabra.dtypes import BY_BIT, DTYPE_MASK

if TYPE_CHECKING:
    from types import TracebackType

    from candelabra._records.record import Operator


# -- signatures -------------------------------------------------------------------------------------------------------
class Kind:
    """What the signature of a call says about an operand: its shape, dtype and device, or which parameter it is.

    ``general``: the same without the identity of a parameter; the kind itself for any other operand.
    """

    __slots__ = ("general", "keys", "shape")

    def __init__(self, shape: tuple[int, ...], keys: int, general: Kind | None = None) -> None:
        self.shape = shape
        self.keys = keys
        self.general = self if general is None else general

    @property
    def shared(self) -> bool:
        return self.general is not self


class Results(NamedTuple):
    """The kinds of a call's results. ``view``: the result is a view of the first operand."""

    kinds: tuple[Kind, ...]
    view: bool = False
    itself: bool = False
    """Whether the result is the first operand itself."""


LIMIT: Final = 1 << 14
"""The number of kinds, and of signatures whose results are known, that are kept."""
_kinds: Final[dict[tuple[tuple[int, ...], int], Kind]] = {}
_results: Final[dict[tuple[Any, ...], Results | None]] = {}
TYPE_AND_DEVICE: Final = DTYPE_MASK | (-1 << DEVICE_SHIFT)
IMMEDIATE: Final = PACK | ANOMALY
"""Modes whose hooks run with each call, so that it is not deferred."""


def kind_of(shape: tuple[int, ...], keys: int) -> Kind:
    """Return the kind of an operand, the same object for equal ones."""
    found = _kinds.get((shape, keys))
    if found is None:
        if len(_kinds) > LIMIT:
            _kinds.clear()
        found = _kinds[shape, keys] = Kind(shape, keys)
    return found


def plain(value: Any) -> Any:
    """Return a hashable form of a plain argument that is equal for equal arguments of the same type only."""
    if value is None:
        return None
    if isinstance(value, (tuple, list)):
        return (tuple, *[plain(v) for v in value])
    if isinstance(value, slice):
        return (slice, plain(value.start), plain(value.stop), plain(value.step))
    if isinstance(value, (float, complex)) and not value:
        return (type(value), str(value))  # the sign of zero
    return (type(value), value)


# -- deferred tensors -------------------------------------------------------------------------------------------------
class Slot:
    """The payload of a deferred tensor: a result of a collected call. Also an operand that is known already.

    After the call has run, the result is ``tensor``, or a row of ``source``, which has the results of all calls of the
    group along its first dim.
    """

    __slots__ = (
        "call", "depth", "given", "holder", "kind", "row", "shape", "source", "tensor", "version", "viewed",
    )  # fmt: skip
    call: Call | None
    source: Any
    row: int
    tensor: Tensor | None
    holder: Any

    def __init__(self, kind: Kind, call: Call | None, depth: int) -> None:
        self.shape = kind.shape
        self.kind = kind
        self.call = call
        self.depth = depth
        self.tensor = self.source = self.holder = None
        self.row = self.version = 0
        self.given = self.viewed = False

    def value(self) -> Tensor:
        """Return the tensor, which the call of the slot has computed."""
        if self.tensor is None:
            if self.source is None:
                raise RuntimeError(
                    "this tensor was not computed: the block of batching() that deferred it ended with an error"
                )
            with mode(exclude=RECORDING_MODES | DEFERRED):
                self.tensor = OPERATORS["basic_index"].canonical(self.source.tensor, (self.row,))
        return self.tensor

    def settle(self, tensor: Tensor) -> None:
        """Make a deferred tensor whose payload this is an ordinary one: run the collected calls, and take the value."""
        call = self.call
        if call is not None:
            call.group.collector.run()
        if not tensor._keys & DEFERRED:  # the tensor was written in place, and the block has settled it
            return
        if hasattr(tensor, "_replay"):  # a view, which must show the memory of its parent
            op, args = tensor._replay
            with mode(exclude=RECORDING_MODES | DEFERRED):
                made = op.canonical(tensor._parent._fresh(), *args)
        else:
            made = self.value()
            if self.given:  # two calls with the same operands had one result
                with mode(exclude=RECORDING_MODES | DEFERRED):
                    made = made.clone()
            self.given = True
        become(tensor, made)


def become(tensor: Tensor, made: Tensor) -> None:
    """Give a tensor the payload, keys, version and history of another."""
    for slot in ("_payload", "_node", "_counter", *(VIEW_SLOTS if made._keys & VIEW else ())):
        setattr(tensor, slot, getattr(made, slot))
    tensor._keys = made._keys | tensor._keys & OVERRIDE


# -- collecting -------------------------------------------------------------------------------------------------------
class Collector:
    """The calls of one block, by signature, and the tensors that they use."""

    def __init__(self) -> None:
        self.depth = len(active_frames())
        self.thread = threading.get_ident()
        self.groups: dict[Any, Group] = {}
        self.calls: list[Call] = []
        self.constants: dict[int, Slot] = {}
        """The operands that no collected call computes, by the identity of the tensor."""
        self.counters: set[int] = set()
        """The identities of their version counters: a write to one of them runs the collected calls first."""
        self.written: list[tuple[Tensor, Tensor, int]] = []
        """Tensors from outside that collected calls write: the tensor, its earlier state, and the modes."""
        self.made: list[Any] = []

    def call(self, op: Operator[..., Any], args: tuple[Any, ...], bit: int) -> Any:
        """Collect a call, and return its deferred results. ``bit``: that of their device or level."""
        modes = state.bits & ~DEFERRED
        if modes & IMMEDIATE or (op.view and not self._is_collected(args[0])):
            return run_now(op, args)
        if modes & LAYER_MASK:
            if op.body is not None:  # a layer that serves its operators
                return op.body(*args)
            modes &= ~LAYER_MASK
        inputs: list[Slot] = []
        row = None
        if op.name == "basic_index" and len(args[1]) == 1 and type(args[1][0]) is int:
            first = self.slot(args[0])
            if first.kind.shared:  # the rows of a parameter are one group, whatever their numbers
                row, inputs = args[1][0], [first]
        signature = (op, modes, first.kind) if row is not None else (op, modes, *self._signature(op, args, inputs))
        group = self.groups.get(signature)
        if group is None:
            group = self._new_group(op, args, modes, bit, signature, inputs)
        results = group.results
        if results is None:
            return run_now(op, args)
        if results.itself:
            return args[0]
        if group.shared and row is None and group.common is not None:
            return self._tensors(op, args, results, group.common)
        call = Call(group, inputs, 1 + max([s.depth for s in inputs]), row)
        call.outputs = [Slot(kind, call, call.depth) for kind in results.kinds]
        if group.shared and row is None:
            for slot in call.outputs:
                slot.kind = Kind(slot.shape, slot.kind.keys, slot.kind)
            group.common = call.outputs
        group.calls.append(call)
        self.calls.append(call)
        return self._tensors(op, args, results, call.outputs)

    def _is_collected(self, tensor: Any) -> bool:
        """Return whether views of a tensor are deferred: those of deferred tensors, and of parameters."""
        return bool(tensor._keys & DEFERRED) or (tensor._fresh()._node is not None and not state.bits & NO_GRAD)

    def _signature(self, op: Operator[..., Any], args: tuple[Any, ...], inputs: list[Slot]) -> list[Any]:
        """Return the part of a signature for the arguments, and add the operands to ``inputs``."""
        found: list[Any] = []
        for p, value in zip(op.schema.parameters, args):
            if hasattr(value, "_keys"):
                slot = value._payload if value._keys & DEFERRED else self.slot(value)
                inputs.append(slot)
                found.append(slot.kind)
            elif p.kind == LIST or p.kind == INDICES:
                slots = [None if t is None else self.slot(t) for t in value]
                inputs += [s for s in slots if s is not None]
                found.append(tuple([None if s is None else s.kind for s in slots]))
            else:
                found.append(None if value is None else plain(value))
        return found

    def slot(self, tensor: Tensor) -> Slot:
        """Return the slot of an operand."""
        if tensor._keys & DEFERRED:
            found: Slot = tensor._payload
            return found
        known = self.constants.get(id(tensor))
        if known is not None:
            return known
        node = tensor._fresh()._node
        kind = kind_of(tuple(tensor._payload.shape), tensor._keys & TYPE_AND_DEVICE)
        if node is not None and node.is_leaf:
            kind = Kind(kind.shape, kind.keys, kind)
        found = self.constants[id(tensor)] = Slot(kind, None, 0)
        found.tensor = tensor
        found.version = tensor._counter[0]
        self.counters.add(id(tensor._counter))
        return found

    def _new_group(
        self, op: Operator[..., Any], args: tuple[Any, ...], modes: int, bit: int, signature: Any, inputs: list[Slot]
    ) -> Group:
        results = results_of(op, args, bit, general(signature) if inputs else None)
        group = Group(self, op, Operands.of(op, args), modes, results)
        group.shared = all(s.kind.shared for s in inputs)
        group.alone = op.random or family_of(op) == "loop"
        self.groups[signature] = group
        return group

    def _tensors(self, op: Operator[..., Any], args: tuple[Any, ...], results: Results, slots: list[Slot]) -> Any:
        """Return new deferred tensors for the results of a call."""
        outs = []
        for slot in slots:
            out = new(Tensor)
            out._payload = slot
            out._keys = slot.kind.keys | DEFERRED
            out._node = None
            out._counter = [0]
            self.made.append(ref(out))
            outs.append(out)
        if results.view:
            out._replay, out._parent = (op, args[1:]), args[0]
            if args[0]._keys & DEFERRED:
                args[0]._payload.viewed = True
        result: Any = op.schema.result
        return outs[0] if result is None else result(*outs)

    # -- in place -----------------------------------------------------------------------------------------------------
    def write(self, op: Operator[..., Any], args: tuple[Any, ...], bit: int) -> Any:
        """Collect a call in place, if nothing but ``args[0]`` can show its effect, or run it now."""
        target = args[0]
        if target._keys & DEFERRED:
            slot = target._payload
            alone = not (op.view or slot.viewed or hasattr(target, "_replay"))
            if alone and self._takes(target, slot.kind, self.call(op, args, bit)):
                return target
        elif self._may_defer(op, args):
            earlier = same_tensor(target)
            kind = kind_of(tuple(target._payload.shape), target._keys & TYPE_AND_DEVICE)
            target._counter[0] += 1  # its views are stale
            if self._takes(target, kind, self.call(op, (earlier, *args[1:]), bit)):
                self.written.append((target, earlier, state.bits & ~DEFERRED))
                return target
        if target._keys & DEFERRED or id(target._counter) in self.counters:
            self.run()
        return run_now(op, args, inplace=True)

    def _may_defer(self, op: Operator[..., Any], args: tuple[Any, ...]) -> bool:
        """Return whether a write to a tensor from outside the block can wait: the calls must not use the tensor."""
        target = args[0]
        if op.view or target._keys & (VIEW | OVERRIDE) or id(target._counter) in self.counters:
            return False
        if not any(getattr(a, "_keys", 0) & DEFERRED for a in args[1:]):
            return False
        check_writable(target)
        node = target._node
        return node is None or not node.is_leaf

    def _takes(self, target: Tensor, kind: Kind, result: Tensor) -> bool:
        """Make a deferred result the state of ``target``, if it has its shape, dtype and device."""
        if not result._keys & DEFERRED or result._payload.kind.general is not kind.general:
            return False
        target._payload = result._payload
        target._keys = result._keys
        target._node = None
        self.made.append(ref(target))
        return True

    # -- running ------------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Run all collected calls."""
        if threading.get_ident() != self.thread:
            raise RuntimeError(
                "a tensor of batching() was used in another thread before its value was computed. Compute it first, "
                "for example with .item(), or end the block"
            )
        calls, groups = self.calls, list(self.groups.values())
        self.calls, self.groups = [], {}
        written, self.written = self.written, []
        before = state.bits
        switch(before & ~DEFERRED)
        try:
            execute(calls, groups)
            for target, earlier, modes in written:
                self._store(target, earlier, modes)
        finally:
            switch(before)
            self.constants = {}
            self.counters = set()
            self.made = [r for r in self.made if r() is not None]

    def _store(self, target: Tensor, earlier: Tensor, modes: int) -> None:
        """Write the final state of a tensor from outside into its memory."""
        value = target._payload.value()
        become(target, earlier)
        switch(modes)
        OPERATORS["copied"].form("inplace")(target, value)

    def discard(self) -> None:
        """Forget the collected calls after an error, and restore the tensors that they write."""
        for call in self.calls:
            call.discard()
        for target, earlier, _ in self.written:
            become(target, earlier)
        self.calls, self.groups, self.written = [], {}, []

    def settle_all(self) -> None:
        """Make all deferred tensors that are still in use ordinary ones."""
        for made in self.made:
            tensor = made()
            if tensor is not None:
                tensor._fresh()


def general(signature: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a signature without the identities of parameters."""

    def one(part: Any) -> Any:
        if isinstance(part, Kind):
            return part.general
        return tuple([one(p) for p in part]) if isinstance(part, tuple) else part

    return tuple([one(part) for part in signature])


def results_of(op: Operator[..., Any], args: tuple[Any, ...], bit: int, signature: Any) -> Results | None:
    """Return the results of a call, which runs on tensors without data. None: it must run at once."""
    if signature is None:
        return None
    if signature in _results:
        return _results[signature]
    if len(_results) > LIMIT:
        _results.clear()
    found = _results[signature] = _inferred(op, args, bit)
    return found


def _inferred(op: Operator[..., Any], args: tuple[Any, ...], bit: int) -> Results | None:
    """Run a call on tensors without data. If it fails there, it runs at once, and its error names the user's line."""
    instance = open_device("meta")

    def shown(value: Any) -> Any:
        if isinstance(value, Tensor):
            dtype = BY_BIT[value._keys & DTYPE_MASK]
            return wrap(instance.backend.empty(0, tuple(value._payload.shape), dtype), instance.keys_for(dtype))
        return tuple([shown(v) for v in value]) if isinstance(value, (tuple, list)) else value

    given = [shown(value) for value in args]
    with mode(include=NO_GRAD, exclude=DEFERRED | LAYER_MASK):
        try:
            made = op.canonical(*given)
        except Exception:
            return None
    outs = made if isinstance(made, tuple) else (made,)
    kinds = tuple([kind_of(tuple(o._payload.shape), o._keys & DTYPE_MASK | bit) for o in outs])
    view = len(outs) == 1 and bool(outs[0]._keys & VIEW)
    return Results(kinds, view, made is given[0])


class batching:
    """Run the operators of a block in batches, across examples of different structure, as DyNet does.

    Inside the block a call of an operator returns a tensor whose value is computed later: at the end of the block, or
    when it is needed (``.item()``, ``print``, ``if``, ``backward``). Calls that differ only in the values of their
    tensors then run as one, also those of different examples, for example of trees of different shapes:

    >>> with candelabra.batching():
    ...     losses = [loss(model(tree), tree.label) for tree in trees]
    ...     candelabra.stack(losses).sum().backward()

    Parameters, which are leaves that require grad, are shared within a group; other tensors are stacked. The results
    and the gradients are those of the same code without the block, up to rounding. A block inside another one has no
    effect of its own. Also a decorator.
    """

    def __init__(self) -> None:
        self._entered: list[tuple[Collector | None, int]] = []

    def __enter__(self) -> None:
        collector = None
        bits = state.bits
        if active_block.collector is None:
            collector = active_block.collector = Collector()
            switch(bits | DEFERRED)
        self._entered.append((collector, bits))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        collector, bits = self._entered.pop()
        if collector is None:
            return
        switch(state.bits & ~DEFERRED | bits & DEFERRED)
        try:
            if kind is None:
                collector.run()
                collector.settle_all()
        finally:
            active_block.collector = None
            collector.discard()

    def __call__(self, function: Any) -> Any:
        from functools import wraps

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with batching():
                return function(*args, **kwargs)

        return call


