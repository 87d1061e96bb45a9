"""Automatic batching: collect the calls of a block, and run groups of equal ones as one call.

Inside ``batching()`` a call of an operator returns a deferred tensor: its shape and dtype are known, its value is not.
Calls of one signature form a group (``candelabra._transforms.deferred``). A leaf that requires grad, a parameter, is
part of the signature, so that all calls of a group share it. When a value is needed, the agenda runs the groups by the
batching rules of ``vmap`` (``candelabra._transforms.agenda``) on the device or level below. There they are recorded as
any call, so gradients are batched, too.

Deferral is not a level: it changes no kernel. Like ``no_grad`` it is a mode of the level on which the block is entered,
so transforms work inside the block, and the block inside transforms.

Attribution: Neubig, Goldberg and Dyer, "On-the-fly operation batching in dynamic computation graphs" (2017), in DyNet.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial, wraps

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._autograd.views import check_writable
from candelabra._dispatch.deferring import active_block, run_now
from candelabra._dispatch.levels import active_frames
from candelabra._dispatch.viewing import same_tensor
from candelabra._keys import (
    DEFERRED,
    DEVICE_SHIFT,
    LAYER_MASK,
    NO_GRAD,
    OVERRIDE,
    VIEW,
    state,
    switch,
)
from candelabra._records.registry import OPERATORS
from candelabra._tensor import Tensor, new
from candelabra._transforms import batching_rules, collecting_functions  # noqa: F401 - the rules, and the functions in the tables
from candelabra._transforms.agenda import Arguments, execute
from candelabra._transforms.batching_kernels import family_of
from candelabra._transforms.deferred import (
    IMMEDIATE,
    DeferredOperand,
    OperandKind,
    Results,
    Slot,
    become,
    kind_of,
    plain,
    results_of,
)
from candelabra._transforms.groups import Group, ViewBucket
from candelabra.dtypes import DTYPE_MASK

if TYPE_CHECKING:
    from types import TracebackType

    from candelabra._records.record import Operator
    from candelabra._transforms.groups import Bucket

TYPE_AND_DEVICE: Final = DTYPE_MASK | (-1 << DEVICE_SHIFT)
SEQUENCES: Final = (tuple, list)


@lru_cache(None)
def counters_of(op: Operator[..., Any]) -> tuple[int, ...]:
    """Return the positions of the counters of a generator among the parameters: they differ for each draw."""
    places = tuple([i for i, p in enumerate(op.schema.parameters) if p.name in ("seed", "offset")])
    return places if len(places) == 2 else ()


class Collector:
    """The calls of one block, by signature, and the tensors that they use."""

    shares_parameters = True
    """Whether a parameter is part of the signature of a call."""
    block = "batching()"

    def __init__(self) -> None:
        self.depth = len(active_frames())
        self.thread = threading.get_ident()
        self.tables: dict[int, tuple[dict[Any, Group], dict[Any, Bucket]]] = {}
        """By modes: the groups by signature, and the buckets that calls were found to belong to."""
        self.modes = 0
        self.table: dict[Any, Group] = {}
        """The modes of the last call, and their groups."""
        self.successors: dict[Any, Bucket] = {}
        """The bucket of a call, by operator, plain arguments, and the buckets of the operands."""
        self.buckets: list[Bucket] = []
        self.counter = [0]
        """The version of all deferred tensors, which nothing reads."""
        self.constants: dict[int, Slot] = {}
        """The operands from outside, by the identity of the tensor."""
        self.counters: set[int] = set()
        """The identities of their version counters: a write to one of them runs the collected calls first."""
        self.written: list[tuple[Tensor, Tensor, int]] = []
        """Tensors from outside that collected calls write: the tensor, its earlier state, and the modes."""

    def enter_modes(self, modes: int) -> None:
        """Select the groups of calls under these mode bits."""
        self.modes = modes
        self.table, self.successors = self.tables.setdefault(modes & ~(DEFERRED | LAYER_MASK), ({}, {}))

    # -- calls --------------------------------------------------------------------------------------------------------
    def call(self, op: Operator[..., Any], args: tuple[Any, ...], bit: int) -> Any:
        """Collect a call, and return its deferred results. ``bit``: that of their device or level."""
        modes = state.bits
        if modes != self.modes:
            self.enter_modes(modes)
        if modes & IMMEDIATE or (op.view and not self._is_collected(args[0])):
            return run_now(op, args)
        if modes & LAYER_MASK and op.body is not None:  # a layer serves the operators of the body
            return op.body(*args)
        return self._collect(op, args, bit)

    def _collect(self, op: Operator[..., Any], args: tuple[Any, ...], bit: int) -> Any:
        counters = counters_of(op)
        if counters and op.body is not None and not op.random:  # dropout: all of its operators but the draw are batched
            return op.body(*args)
        row = self._row_of_parameter(op, args)
        inputs: list[Slot] = []
        shown = args if row is None else args[:1]
        if counters:
            shown = tuple([None if i in counters else value for i, value in enumerate(args)])
        signature = (op, *self._signature(shown, inputs))
        group = self.table.get(signature)
        if group is None:
            group = self._new_group(op, args, bit, signature, inputs)
        results = group.results
        if results is None:
            return run_now(op, args)
        if results.itself:
            return args[0]
        slots = group.common
        if results.view and op.view and self._may_follow(inputs):
            slots = [self._view(op, args[1:], inputs[0], (op, *signature[2:], self.modes), results)]
        if slots is None:
            slots = self._collected(group, inputs, row, tuple([args[i] for i in counters]))
            if group.shared and row is None:
                for slot in slots:
                    slot.kind = slot.bucket.kind = OperandKind(slot.shape, slot.kind.keys, slot.kind)
                group.common = slots
        return self._returned(op, args, results, slots)

    def _returned(self, op: Operator[..., Any], args: tuple[Any, ...], results: Results, slots: Sequence[Slot]) -> Any:
        """Return the deferred tensors of a call."""
        outs = [self._tensor(slot) for slot in slots]
        if results.view:
            outs[0]._replay, outs[0]._parent = (op, args[1:]), args[0]
            if args[0]._keys & DEFERRED:
                args[0]._payload.viewed = True
        result: Any = op.schema.result
        return outs[0] if result is None else result(*outs)

    def _is_collected(self, tensor: Any) -> bool:
        """Return whether views of a tensor are deferred: those of deferred tensors, and of parameters."""
        return bool(tensor._keys & DEFERRED) or (tensor._fresh()._node is not None and not state.bits & NO_GRAD)

    def _row_of_parameter(self, op: Operator[..., Any], args: tuple[Any, ...]) -> int | None:
        """Return the number of a row, for ``parameter[number]``: all of them are one group, whatever the number."""
        if op.name != "basic_index" or len(args[1]) != 1 or type(args[1][0]) is not int:
            return None
        slot = self.slot(args[0])
        return args[1][0] if slot.kind.shared and -slot.shape[0] <= args[1][0] < slot.shape[0] else None

    def _signature(self, args: Sequence[Any], inputs: list[Slot]) -> list[Any]:
        """Return the part of a signature for the arguments, and add the operands to ``inputs``."""
        found: list[Any] = []
        for value in args:
            if hasattr(value, "_keys"):
                slot = self.slot(value)
                inputs.append(slot)
                found.append(slot.kind)
            elif type(value) in SEQUENCES and any(hasattr(v, "_keys") for v in value):
                slots = [None if t is None else self.slot(t) for t in value]
                inputs += [s for s in slots if s is not None]
                found.append(tuple([None if s is None else s.kind for s in slots]))
            else:
                found.append(plain(value))
        return found

    def slot(self, tensor: Tensor) -> Slot:
        """Return the slot of an operand."""
        found: Slot
        if tensor._keys & DEFERRED:
            found = tensor._payload
            return found
        known = self.constants.get(id(tensor))
        if known is not None:
            return known
        node = tensor._fresh()._node
        kind = kind_of(tuple(tensor._payload.shape), tensor._keys & TYPE_AND_DEVICE)
        if self.shares_parameters and node is not None and node.is_leaf:
            kind = OperandKind(kind.shape, kind.keys, kind)
        found = self.constants[id(tensor)] = DeferredOperand(tensor, kind)
        self.counters.add(id(tensor._counter))
        return found

    def _may_follow(self, inputs: Sequence[Slot]) -> bool:
        """Return whether a view of an operand is a view of all results of the calls that compute it."""
        return len(inputs) == 1 and inputs[0].bucket.group is not None and not inputs[0].kind.shared

    def _view(self, op: Operator[..., Any], rest: Sequence[Any], parent: Slot, key: Any, results: Results) -> Slot:
        """Return the slot of a view of a result."""
        bucket = parent.bucket.views.get(key)
        if bucket is None:
            modes = self.modes & ~(DEFERRED | LAYER_MASK)
            bucket = parent.bucket.views[key] = ViewBucket(parent.bucket, op, rest, modes, results.kinds[0])
        return _slot(bucket, parent.row)

    def _new_group(
        self, op: Operator[..., Any], args: tuple[Any, ...], bit: int, signature: Any, inputs: list[Slot]
    ) -> Group:
        results = results_of(op, args, bit, signature) if inputs else None
        group = Group(self, op, Arguments(op, args), self.modes & ~(DEFERRED | LAYER_MASK), results)
        group.shared = all(s.kind.shared for s in inputs)
        group.alone = op.random or family_of(op) == "loop"
        group.counters = counters_of(op)
        group.simple = (
            results is not None
            and not (group.shared or results.itself or results.view != op.view)
            and op.schema.result is None
        )
        self.table[signature] = group
        return group

    def _collected(
        self, group: Group, inputs: Sequence[Slot], row: int | None, counters: tuple[int, ...]
    ) -> list[Slot]:
        """Add a call to its group, and return its results."""
        needs = {slot.bucket for slot in inputs}
        depth = 1 + max([bucket.depth for bucket in needs])
        bucket = group.bucket(depth)
        bucket.needs |= needs
        slots = [_slot(output, len(bucket.inputs)) for output in bucket.outputs or (bucket,)]
        bucket.inputs.append(tuple(inputs))
        if row is not None:
            bucket.numbers.append(row)
        if counters:
            bucket.counters.append(counters)
        return slots

    def _tensor(self, slot: Slot) -> Tensor:
        """Return a deferred tensor."""
        out = new(Tensor)
        out._payload = slot
        out._keys = slot.kind.keys | DEFERRED
        out._node = None
        out._counter = self.counter
        return out

    def views(self, op: Operator[..., Any], tensor: Tensor, arguments: tuple[Any, ...]) -> tuple[Tensor, ...]:
        """Return the views of a deferred tensor by an operator, one for each argument.

        Equal calls pass the same tuple ``arguments``, so the buckets of the views are known from the second call on.
        """
        parent = tensor._payload
        key = id(arguments), op, self.modes
        found = parent.bucket.parts.get(key) if state.bits == self.modes else None
        if found is None:
            outs = tuple([op.canonical(tensor, each) for each in arguments])
            buckets = [out._payload.bucket if out._keys & DEFERRED else None for out in outs]
            if all(isinstance(bucket, ViewBucket) for bucket in buckets):
                parent.bucket.parts[key] = arguments, buckets
            return outs
        parent.viewed = True
        row, counter, made = parent.row, self.counter, []
        for bucket, each in zip(found[1], arguments, strict=True):
            slot = new(Slot)
            slot.bucket, slot.row, slot.viewed = bucket, row, False
            slot.kind = kind = bucket.kind
            slot.shape = kind.shape
            out = new(Tensor)
            out._payload, out._keys, out._node, out._counter = slot, bucket.keys, None, counter
            out._replay, out._parent = (op, (each,)), tensor
            made.append(out)
        return tuple(made)

    # -- in place -----------------------------------------------------------------------------------------------------
    def write(self, op: Operator[..., Any], args: tuple[Any, ...], bit: int) -> Any:
        """Collect a call in place if only ``args[0]`` can show its effect, or run it now."""
        target = args[0]
        if target._keys & DEFERRED:
            slot = target._payload
            alone = not (op.view or slot.viewed or hasattr(target, "_replay"))
            if alone and self._takes(target, slot.kind, self.call(op, args, bit)):
                return target
        elif self._may_wait(op, args):
            earlier = same_tensor(target)
            kind = kind_of(tuple(target._payload.shape), target._keys & TYPE_AND_DEVICE)
            target._counter[0] += 1  # its views are stale
            if self._takes(target, kind, self.call(op, (earlier, *args[1:]), bit)):
                self.written.append((target, earlier, state.bits & ~DEFERRED))
                return target
        if target._keys & DEFERRED or id(target._counter) in self.counters:
            self.run()
        return run_now(op, args, inplace=True)

    def _may_wait(self, op: Operator[..., Any], args: tuple[Any, ...]) -> bool:
        """Return whether a write to a tensor from outside can wait: no collected call uses it, and its value does."""
        target = args[0]
        if op.view or target._keys & (VIEW | OVERRIDE) or id(target._counter) in self.counters:
            return False
        if not any(getattr(a, "_keys", 0) & DEFERRED for a in args[1:]):
            return False
        check_writable(target)
        node = target._node
        return node is None or not node.is_leaf

    def _takes(self, target: Tensor, kind: OperandKind, result: Tensor) -> bool:
        """Make a deferred result the state of ``target``, if it has its shape, dtype and device."""
        if not result._keys & DEFERRED or result._payload.kind.general is not kind.general:
            return False
        target._payload = result._payload
        target._keys = result._keys
        target._node = None
        return True

    # -- running ------------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Run all collected calls."""
        if threading.get_ident() != self.thread:
            raise RuntimeError(
                f"a tensor of {self.block} was used in another thread before its value was computed. Compute it first, "
                "for example with .item(), or end the block"
            )
        execute = self._execution()
        written, self.written = self.written, []
        self._forget()
        before = state.bits
        switch(before & ~DEFERRED)
        try:
            execute()
        except BaseException:
            _restore(written)
            raise
        else:
            for target, earlier, modes in written:
                value = target._payload.value()
                become(target, earlier)
                switch(modes)
                OPERATORS["copied"].form("inplace")(target, value)
        finally:
            switch(before)

    def _execution(self) -> Callable[[], None]:
        """Return the function that runs the collected calls."""
        return partial(execute, self.buckets)

    def shares_memory(self) -> None:
        """Note that memory of a tensor becomes visible outside of candelabra."""

    def changes_state(self) -> None:
        """Note that something which is no operator changes a tensor, or a generator."""

    def discard(self) -> None:
        """Forget the collected calls, and restore the tensors that they write."""
        for bucket in self.buckets:
            bucket.end(None)
        _restore(self.written)
        self.written = []
        self._forget()

    def _forget(self) -> None:
        self.buckets, self.tables, self.constants, self.counters = [], {}, {}, set()
        self.enter_modes(state.bits)


def _slot(bucket: Bucket, row: int) -> Slot:
    """Return the slot of a result."""
    slot = Slot()
    slot.bucket, slot.row, slot.viewed = bucket, row, False
    slot.kind = kind = bucket.kind
    slot.shape = kind.shape
    return slot


def _restore(written: list[tuple[Tensor, Tensor, int]]) -> None:
    """Undo the writes of calls that have not run."""
    for target, earlier, _ in written:
        become(target, earlier)


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
        finally:
            active_block.collector = None
            collector.discard()

    def __call__(self, function: Any) -> Any:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with batching():
                return function(*args, **kwargs)

        return call


__all__ = ["batching"]
