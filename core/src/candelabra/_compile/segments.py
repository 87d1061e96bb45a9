"""Run a function that breaks the graph: its Python runs at every call, its operators in compiled segments.

Inside a run, as in a block of ``batching()``, a call of an operator returns a deferred tensor. Where a value is needed
(``.item()``, ``print``, ``if``, ``backward``), and at the end, the calls that wait form a *segment*: a function of the
tensors that they use, whose results are the deferred tensors that still exist. Segments are kept by their structure:
operators, plain arguments, shapes, and which results each call uses. One that occurs for the second time is compiled as
any function is, so guards, derivatives and devices need nothing of their own; others run call by call.

Attribution: LazyTensor of Swift for TensorFlow and PyTorch/XLA, which cut programs in this way.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from weakref import ref

from candelabra._annotations import Any, Final, NamedTuple
from candelabra._compile.backends import GraphCompiler
from candelabra._compile.calling import CompiledFunction
from candelabra._dispatch.deferring import active_block, run_now
from candelabra._keys import DEFERRED, RECORDING_MODES, state, switch
from candelabra._operators.shapes.memory_formats import contiguous
from candelabra._operators.shapes.reshaping import reshape
from candelabra._tensor import Tensor
from candelabra._transforms.agenda import Arguments
from candelabra._transforms.collecting import Collector
from candelabra._transforms.deferred import Results, Slot, results_of
from candelabra._transforms.groups import Bucket
from candelabra.utils._pytree import tree_flatten

SEGMENT_LIMIT: Final = 64
"""The number of compiled segments of one function; the one that was not used for the longest time is forgotten."""
SEEN_LIMIT: Final = 1024
"""The number of structures of segments that are remembered before they occur for the second time."""


class LayoutCall:
    """A call that shows its operand or copies it, which depends on a layout that is not known before it runs."""

    random = False
    view = True
    schema = SimpleNamespace(result=None)

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self.name = function.__name__
        self.canonical = function


RESHAPE: Final = LayoutCall(lambda input, size: reshape(input, size))
CONTIGUOUS: Final = LayoutCall(lambda input: contiguous(input))


class PendingCall(NamedTuple):
    """A call of an operator that waits."""

    op: Any
    arguments: Arguments
    modes: int
    inputs: tuple[Slot, ...]
    results: Sequence[SegmentSlot]


class SegmentSlot(Slot):
    """The payload of a deferred tensor of a segment. ``holders``: references to the tensors that have it."""

    block = "a compiled function"

    def __init__(self, collector: Segments, number: int) -> None:
        self.collector = collector
        self.number = number
        """The position among the results of all calls of the segment."""
        self.holders: list[ref[Tensor]] = []
        self.viewed = False

    @property
    def is_used(self) -> bool:
        """Whether a tensor needs the value. A view of a tensor is computed from that."""
        tensors = [tensor for holder in self.holders if (tensor := holder()) is not None]
        return any(tensor._payload is self and not hasattr(tensor, "_replay") for tensor in tensors)

    def layout(self, tensor: Tensor) -> tuple[tuple[int, ...], int]:
        """Return the strides and the offset, which are known when the tensor is computed."""
        return tensor._fresh()._layout()

    def contiguous(self, tensor: Tensor) -> Tensor:
        """Return the tensor, or a copy, in C order."""
        if active_block.collector is not self.collector or self.bucket.group is None:
            return contiguous(tensor._fresh())
        results = Results((self.kind,), True, False)
        found: Tensor = self.collector.defer(CONTIGUOUS, (tensor,), (self,), (self.kind,), results)
        return found


class Replay:
    """A segment as a function: it runs the calls on the tensors that they use, and returns those that are used."""

    def __init__(self, calls: list[PendingCall], operands: list[tuple[int, ...]], count: int, used: list[int]) -> None:
        self.used = used
        last = {number: position for position, numbers in enumerate(operands) for number in numbers}
        kept = {count + number for number in used}
        self.steps = [
            (call.op, call.arguments, call.modes, numbers, [n for n in {*numbers} - kept if last[n] == i])
            for i, (call, numbers) in enumerate(zip(calls, operands, strict=True))
        ]
        """For each call the numbers of its operands, and of those that nothing uses after it."""

    def __call__(self, *tensors: Tensor) -> list[Tensor]:
        values: list[Any] = list(tensors)
        bits = state.bits & ~RECORDING_MODES
        before = state.bits
        try:
            for op, arguments, modes, numbers, dead in self.steps:
                switch(bits | modes)
                found = op.canonical(*arguments.filled([values[n] for n in numbers]))
                values += [found] if op.schema.result is None else found
                for number in dead:
                    values[number] = None
        finally:
            switch(before)
        return [values[len(tensors) + number] for number in self.used]


class CompiledSegment(CompiledFunction):
    """A compiled segment. What its graph cannot repeat runs call by call, without a warning."""

    is_segment = True

    def __init__(self, replay: Replay, name: str, compiler: GraphCompiler) -> None:
        super().__init__(replay, compiler=compiler)
        self.name = name

    @property
    def title(self) -> str:
        return f"a segment of {self.name}"

    def _give_up(self, reason: str, segments: bool = True) -> None:
        self.eager = reason

    def _eagerly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.function(*args)


class SegmentCache:
    """The compiled segments of one function, by structure."""

    def __init__(self, name: str, compiler: GraphCompiler) -> None:
        self.name = name
        self.compiler = compiler
        self.compiled: OrderedDict[Any, CompiledSegment] = OrderedDict()
        self._seen: OrderedDict[Any, None] = OrderedDict()

    def function(self, structure: Any, make: Callable[[], Replay]) -> Callable[..., list[Tensor]]:
        """Return the function of a segment: compiled, if the structure occurs not for the first time.

        A backend of the program gets each segment at its first time.
        """
        found = self.compiled.get(structure)
        if found is not None:
            self.compiled.move_to_end(structure)
            return found
        if structure not in self._seen and not self.compiler.at_once:
            self._seen[structure] = None
            if len(self._seen) > SEEN_LIMIT:
                self._seen.popitem(last=False)
            return make()
        self._seen.pop(structure, None)
        found = self.compiled[structure] = CompiledSegment(make(), self.name, self.compiler)
        if len(self.compiled) > SEGMENT_LIMIT:
            self.compiled.popitem(last=False)
        return found


class Segments(Collector):
    """The calls of one run of a function, which are run in segments."""

    shares_parameters = False
    block = "a compiled function"

    def __init__(self, cache: SegmentCache) -> None:
        super().__init__()
        self.cache = cache
        self.calls: list[PendingCall] = []
        self.structure: list[Any] = []
        self.bucket = Bucket(self, 1, None)  # type: ignore[arg-type]  # a slot asks it for its collector only
        self.collector = self
        self.count = 0
        """The number of results of the calls."""
        self.stopped = False
        """Whether calls run at once, since other code shares the memory of a tensor."""

    # -- calls --------------------------------------------------------------------------------------------------------
    def _collect(self, op: Any, args: tuple[Any, ...], bit: int) -> Any:
        if self.stopped or op.ordered:
            return run_now(op, args)
        inputs: list[Slot] = []
        signature = self._signature(args, inputs)
        results = results_of(op, args, bit, (op, *signature)) if inputs else None
        if results is None:
            return run_now(op, args)
        if results.itself:
            return args[0]
        return self.defer(RESHAPE if op.name == "view" else op, args, tuple(inputs), signature, results)

    def slot(self, tensor: Tensor) -> Slot:
        if tensor._keys & DEFERRED and tensor._payload.bucket is not self.bucket:
            tensor._fresh()  # of a segment that has run
        return super().slot(tensor)

    def defer(
        self, op: Any, args: tuple[Any, ...], inputs: tuple[Slot, ...], signature: Sequence[Any], results: Results
    ) -> Any:
        """Let a call wait, and return its deferred results."""
        modes = self.modes & RECORDING_MODES
        self.structure.append((op, modes, *signature))
        slots = []
        for kind in results.kinds:
            slot = SegmentSlot(self, self.count)
            slot.bucket, slot.kind, slot.shape = self.bucket, kind, kind.shape
            slots.append(slot)
            self.count += 1
        self.calls.append(PendingCall(op, Arguments(op, args), modes, inputs, slots))
        return self._returned(op, args, results, slots)

    def _tensor(self, slot: Slot) -> Tensor:
        out = super()._tensor(slot)
        slot.holders.append(ref(out))  # type: ignore[attr-defined]
        return out

    def _takes(self, target: Tensor, kind: Any, result: Tensor) -> bool:
        taken = super()._takes(target, kind, result)
        if taken:
            target._payload.holders.append(ref(target))
        return taken

    # -- running ------------------------------------------------------------------------------------------------------
    def shares_memory(self) -> None:
        self.run()
        self.stopped = True

    def changes_state(self) -> None:
        if self.calls:
            self.run()

    def _execution(self) -> Callable[[], None]:
        return partial(self._run_segment, self.calls, tuple(self.structure), self.count, self.bucket)

    def _run_segment(self, calls: list[PendingCall], structure: tuple[Any, ...], count: int, bucket: Bucket) -> None:
        """Run the calls as one function, and give the slots that are used their values."""
        bucket.group = None
        slots = [slot for call in calls for slot in call.results if slot.is_used]
        if not slots and not any(call.op.random for call in calls):
            return
        numbers: dict[int, int] = {}
        known: list[Slot] = []
        for call in calls:
            for slot in call.inputs:
                if slot.version is not None and id(slot) not in numbers:
                    numbers[id(slot)] = len(known)
                    known.append(slot)
        operands = [
            tuple([numbers[id(s)] if id(s) in numbers else len(known) + s.number for s in call.inputs])  # type: ignore[attr-defined]
            for call in calls
        ]
        used = [slot.number for slot in slots]
        key = (structure, tuple(operands), tuple(used), state.bits)
        function = self.cache.function(key, lambda: Replay(calls, operands, len(known), used))
        for slot, tensor in zip(slots, function(*[slot.value() for slot in known]), strict=True):
            slot.tensor = tensor

    def _forget(self) -> None:
        super()._forget()
        self.calls, self.structure, self.count = [], [], 0
        self.bucket = Bucket(self, 1, None)  # type: ignore[arg-type]


def run_in_segments(function: Callable[..., Any], cache: SegmentCache, args: Any, kwargs: Any) -> Any:
    """Call a function, with its operators in segments."""
    before = state.bits
    collector = active_block.collector = Segments(cache)
    switch(before | DEFERRED)
    try:
        out = function(*args, **kwargs)
        for leaf in tree_flatten(out)[0]:
            if isinstance(leaf, Tensor):
                leaf._fresh()
        collector.run()
        return out
    finally:
        switch(state.bits & ~DEFERRED | before & DEFERRED)  # what the function has changed is for the code after it
        active_block.collector = None
        collector.discard()


__all__ = ["SegmentCache", "run_in_segments"]
