"""Record the kernels that a function runs as a graph.

A trace runs the function as usual, with the mode bit TRACING in its keys: adapters then report the kernels that they
run (``candelabra._dispatch.tracing``). So a traced call returns what an eager one returns and has its effects, and a
function that does something which a graph cannot repeat is still right: the tracer notes a *break*, and the trace is
discarded. The recorded operators are those for which the device has kernels; autograd, promotion, composites and
function transforms have run above them.

Payloads are recognised by identity. One that no kernel of the trace has computed belongs to a tensor from outside: an
argument, or a captured tensor such as a parameter. The trace does not keep the payloads alive: their memory is that of
the eager call.

Attribution: tracing with real values is that of HIPS/autograd, Chainer and ``torch.jit.trace``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from os.path import basename
from weakref import ref

from candelabra._annotations import Any, NamedTuple
from candelabra._device import Instance, instance_of_key
from candelabra._dispatch.tracing import PLAIN_NUMBER, RunTimeInt, current, untraced
from candelabra._graph.structure import FUNCTION, INPLACE, ROWS, Graph, Memory, Node, Spec, Value
from candelabra._keys import NO_GRAD, TRACING, mode
from candelabra._layout import contiguous_strides
from candelabra._records.record import Operator
from candelabra._records.registry import OPERATORS
from candelabra._tensor import Tensor, wrap
from candelabra.dtypes import dtype


class GeneratorDraw(NamedTuple):
    """A draw from a generator: at each run it takes counters, and gives the graph two numbers, seed and offset."""

    generator: Any
    counters: int
    seed: Value
    offset: Value


class Break(NamedTuple):
    """Something that a graph cannot repeat, the user's line, and the number of nodes that were recorded before it."""

    reason: str
    where: str
    nodes: int = 0

    def __str__(self) -> str:
        return f"{self.reason}{f', at {self.where}' if self.where else ''}"


class GraphBreak(RuntimeError):
    """The error of ``fullgraph=True`` and of ``trace`` for something that a graph cannot repeat."""


def spec_of(payload: Any, instance: Instance) -> Spec:
    """Return the spec of a payload."""
    backend, shape = instance.backend, tuple(payload.shape)
    strides, offset = backend.layout(payload) if instance.capabilities.strided else (contiguous_strides(shape), 0)
    return Spec(shape, tuple(strides), offset, backend.dtype_of(payload), instance)


class PayloadValues:
    """The value of each payload of a trace, by identity. Payloads are referred to weakly, if their class allows it."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Callable[[], Any], Value]] = {}

    def get(self, payload: Any) -> Value | None:
        """Return the value of a payload, or None if the trace has not met it."""
        entry = self._entries.get(id(payload))
        # The id may be that of a payload that is gone: its reference then returns None.
        return entry[1] if entry is not None and entry[0]() is payload else None

    def __contains__(self, payload: Any) -> bool:
        return self.get(payload) is not None

    def __getitem__(self, payload: Any) -> Value:
        value = self.get(payload)
        assert value is not None
        return value

    def __setitem__(self, payload: Any, value: Value) -> None:
        try:
            reference: Callable[[], Any] = ref(payload)
        except TypeError:  # it has no slot for weak references
            reference = partial(_itself, payload)
        self._entries[id(payload)] = reference, value

    def current(self) -> dict[int, tuple[Callable[[], Any], Value]]:
        """Return the values of the payloads that exist, for :meth:`restore`."""
        return {key: entry for key, entry in self._entries.items() if entry[0]() is not None}

    def restore(self, earlier: dict[int, tuple[Callable[[], Any], Value]]) -> None:
        """Give payloads the values that they had. A kernel may have returned one of them, as its result."""
        self._entries.update((key, entry) for key, entry in earlier.items() if entry[0]() is not None)

    def forget(self, memory: Memory) -> None:
        """Forget the payloads that show a memory."""
        self._entries = {key: entry for key, entry in self._entries.items() if entry[1].memory is not memory}


def _itself(payload: Any) -> Any:
    return payload


class GraphTracer:
    """One trace of one thread. ``strict``: a break raises :class:`GraphBreak`."""

    repeats = False
    """Whether each run repeats the effects on Python objects, as compiled calls do."""
    rehearses = False
    """Whether ordered operators only return zeros now: a backward pass is traced before the program asks for it."""

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self.nodes: list[Node] = []
        self.breaks: list[Break] = []
        self.draws: list[GeneratorDraw] = []
        self.drawn: dict[Value, int] = {}
        """The seeds and offsets that the draws have given."""
        self.external: dict[Value, Tensor] = {}
        """The tensors from outside, arguments and captured ones, in the order in which the trace met them."""
        self.payloads = PayloadValues()
        self._memories: dict[int, tuple[list[int], Memory]] = {}

    # -- what dispatch reports ----------------------------------------------------------------------------------------
    def run(
        self, op: Operator[..., Any], form: str, kernel: Callable[..., Any], args: tuple[Any, ...], instance: Instance
    ) -> Any:
        """Run a kernel, and record the call unless the kernel declines it."""
        plain = [PLAIN_NUMBER[type(a)](a) if type(a) in PLAIN_NUMBER else a for a in args]
        out = kernel(*plain)
        if out is NotImplemented:
            if form != ROWS or not any(type(a) in PLAIN_NUMBER for a in args):
                return out
            # The operators of the body would have constants for the numbers, so one node stands for them.
            out = None
            _run_rows(op, plain, instance)
        if op.data_dependent:
            self.note_break(f"the shape of a result of {op.name} depends on values")
        arguments = [self._argument(a) for a in args]
        if form == FUNCTION:
            self._computed(op, arguments, kernel, out, instance)
        else:
            written = args[:1] if form == INPLACE else _written_in_rows(op, args)
            self._overwritten(op, form, arguments, kernel, written)
        return out

    def copy(self, target: Tensor, payload: Any) -> None:
        """Copy a payload into a tensor's memory, and record it as the operator ``copied`` in place."""
        instance = instance_of_key(target._keys)
        self.meet((target,))
        self.run(OPERATORS["copied"], INPLACE, instance.backend.copy_, (target._payload, payload), instance)

    def allocated(self, payload: Any, shape: tuple[int, ...], d: dtype, instance: Instance) -> None:
        """Record memory without content. Its operator is ``full``, since the content is unspecified."""
        empty, index = instance.backend.empty, instance.index
        self._computed(OPERATORS["full"], [shape, 0, d, index], lambda *_: empty(index, shape, d), payload, instance)

    def constant(self, payload: Any, keys: int) -> Any:
        """Record a tensor that the function creates from data: a copy, at each run, of a captured constant."""
        if instance_of_key(keys).depth:
            return payload
        with mode(include=TRACING):
            return OPERATORS["clone"].canonical(wrap(payload, keys))._payload

    def check(self, op: Operator[..., Any], codes: Tensor, text: str, error: type[Exception]) -> Tensor:
        """Run a check of values, and record it: it reads them at each run, and raises the error."""
        codes._fresh()
        self.meet((codes,))
        with untraced():
            out: Tensor = op.canonical(codes.detach(), text, error)
        instance = instance_of_key(codes._keys)
        value = self._argument(codes._payload)
        self._computed(op, [value, text, error], None, out._payload, instance)
        return out

    def opaque(
        self, op: Operator[..., Any], call: Callable[..., Any], tensors: Sequence[Tensor], writes: Sequence[int]
    ) -> Any:
        """Run ``call(tensors)``, whose operators are not recorded, as one node that calls it at each run.

        It returns a tensor, a tuple of tensors, or None, perhaps after it has written the tensors at ``writes``.
        """
        self.meet(tensors)
        with untraced():
            out = call(tensors)
        results = [*out] if isinstance(out, (list, tuple)) else [] if out is None else [out]
        if writes and results:
            self.note_break(f"{op.name} writes arguments and returns a result")
        if not all(isinstance(t, Tensor) for t in results):
            self.note_break(f"{op.name} returns a value that is no tensor")
            return out
        if any(t._payload in self.payloads for t in results):
            self.note_break(f"{op.name} returns one of its arguments")
        kernel = _on_payloads(call, [t._keys for t in tensors])
        arguments = [self._argument([t._payload for t in tensors]), call]
        if writes:
            self._overwritten(op, INPLACE, arguments, kernel, [tensors[i]._payload for i in writes])
            return out
        # The function may keep its result, so nothing else takes its memory.
        values = [Value(spec_of(t._payload, instance_of_key(t._keys)), Memory(external=True)) for t in results]
        for t, value in zip(results, values, strict=True):
            self.payloads[t._payload] = value
        self.nodes.append(Node(op, arguments, values, FUNCTION, kernel, user_line()))
        return out

    def draw(self, generator: Any, counters: int) -> tuple[int, int]:
        """Draw counters from a generator, and return the two numbers, which stand for those of each run."""
        seed, offset = map(RunTimeInt, generator.take(counters))
        seed.value, offset.value = Value(None), Value(None)
        self.draws.append(GeneratorDraw(generator, counters, seed.value, offset.value))
        self.drawn |= {seed.value: int(seed), offset.value: int(offset)}
        return seed, offset

    def meet(self, args: Sequence[Any]) -> None:
        """Note the tensors of a call whose payloads the trace has not computed."""
        for value in args:
            if isinstance(value, Tensor):
                if value._payload not in self.payloads:
                    self.value_of(value)
            elif isinstance(value, (list, tuple)):
                self.meet(value)

    def starts_backward(self, nodes: Iterable[Any], keep_graph: bool, accumulates: bool) -> None:
        """Note that a backward pass over ``nodes`` starts. ``accumulates``: it adds gradients to ``.grad``."""

    def makes_leaf(self, node: Any) -> None:
        """Note the node of a leaf that the function creates."""

    def observe(self, tensor: Tensor, attribute: str) -> None:
        """Note that the function reads ``is_leaf`` or ``grad`` of a tensor."""

    def note_break(self, reason: str) -> None:
        """Note something that the graph cannot repeat. Raise GraphBreak if the trace is strict."""
        found = Break(reason, user_line(), len(self.nodes))
        self.breaks.append(found)
        if self.strict:
            raise GraphBreak(f"{found} (fullgraph=True: the whole function must be one graph)")

    def pieces(self) -> list[int]:
        """Return the numbers of nodes between the breaks, without empty pieces."""
        ends = [0, *sorted(found.nodes for found in self.breaks), len(self.nodes)]
        return [last - first for first, last in pairwise(ends) if last > first]

    def guard(self, holds: Callable[[], bool], name: str) -> None:
        """Note a condition that each run of the trace must fulfil; ``name`` is what it reads, in messages."""

    def host_call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
        """Call a function that no graph contains. Here it is a break; a compiled call repeats it."""
        self.note_break("a function runs outside of the graph")
        with untraced():
            return function(*args, **kwargs)

    # -- values -------------------------------------------------------------------------------------------------------
    def value_of(self, tensor: Tensor) -> Value | None:
        """Return the value of a tensor now; that of a tensor from outside is created. None inside a transform."""
        payload = tensor._payload
        found = self.payloads.get(payload)
        if found is not None:
            return found
        instance = instance_of_key(tensor._keys)
        if instance.depth:
            return None
        cell = tensor._counter
        _, memory = self._memories.setdefault(id(cell), (cell, Memory(external=True)))
        value = Value(spec_of(payload, instance), memory)
        self.external[value] = tensor
        self.payloads[payload] = value
        return value

    def forget_external(self) -> None:
        """Meet tensors from outside again, since a host call may have written them."""
        for value in self.external:
            self.payloads.forget(value.memory)
        self._memories.clear()

    def _argument(self, argument: Any) -> Any:
        """Return an argument of a kernel with values for payloads and for numbers of the run."""
        if type(argument) in PLAIN_NUMBER:
            return argument.value
        if type(argument) in (list, tuple):
            items = [self._argument(item) for item in argument]
            return items if any(isinstance(item, (Value, list)) for item in items) else argument
        found = self.payloads.get(argument)
        return argument if found is None else found

    def _computed(
        self,
        op: Operator[..., Any],
        arguments: list[Any],
        kernel: Callable[..., Any] | None,
        out: Any,
        instance: Instance,
    ) -> None:
        outputs = out if op.schema.result is not None else (out,)
        memory = next((v.memory for v in arguments if isinstance(v, Value)), None) if op.view else None
        memory = None if instance.immutable else memory
        values = [Value(spec_of(payload, instance), memory) for payload in outputs]
        for payload, value in zip(outputs, values, strict=True):
            self.payloads[payload] = value
        self.nodes.append(Node(op, arguments, values, FUNCTION, kernel, user_line()))

    def _overwritten(
        self,
        op: Operator[..., Any],
        form: str,
        arguments: list[Any],
        kernel: Callable[..., Any],
        written: Sequence[Any],
    ) -> None:
        values = []
        for payload in written:
            before = self.payloads[payload]
            values.append(Value(before.spec, before.memory))
            self.payloads[payload] = values[-1]
        self.nodes.append(Node(op, arguments, values, form, kernel, user_line()))

    # -- the graph ----------------------------------------------------------------------------------------------------
    def graph(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> Graph:
        """Return what was recorded. ``inputs`` are the arguments; captured tensors and numbers that are used follow."""
        used = dict.fromkeys(value for node in self.nodes for value in node.operands)
        used.update(dict.fromkeys(outputs))
        captured = {v: t for v, t in self.external.items() if v in used and v not in inputs}
        numbers = [v for draw in self.draws for v in (draw.seed, draw.offset) if v in used]
        return Graph([*inputs, *captured, *numbers], self.nodes, outputs, captured)


def _on_payloads(call: Callable[[Sequence[Tensor]], Any], keys: Sequence[int]) -> Callable[..., Any]:
    """Return the kernel of an opaque node: a function of a list of payloads, and of the call that its node has."""

    def kernel(payloads: Sequence[Any], _: Any) -> Any:
        with untraced(), mode(include=NO_GRAD):
            out = call([wrap(payload, key) for payload, key in zip(payloads, keys, strict=True)])
        return out._payload if isinstance(out, Tensor) else tuple([t._payload for t in out or ()])

    return kernel


def _run_rows(op: Operator[..., Any], args: Sequence[Any], instance: Instance) -> None:
    """Run a call over rows that its kernel declines, unseen by the trace."""
    count, dtype_of = len(op.schema.tensors), instance.backend.dtype_of
    columns = [[wrap(payload, instance.keys_for(dtype_of(payload))) for payload in column] for column in args[:count]]
    with untraced():
        op.over_rows(list(zip(*columns, strict=True)), *args[count:])


def _written_in_rows(op: Operator[..., Any], args: Sequence[Any]) -> list[Any]:
    """Return the payloads that a call over rows writes: those of the columns that the record returns."""
    parameters = op.schema.parameters
    columns = [i for i, p in enumerate(parameters) if not i or p.name in op.schema.outputs]
    return [payload for i in columns for payload in args[i]]


def user_line() -> str:
    """Return the file and line of the innermost frame outside of candelabra."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith("candelabra") and not frame.f_code.co_filename.startswith("<candelabra"):
            return f"{basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


@contextmanager
def tracing(tracer: GraphTracer) -> Iterator[GraphTracer]:
    """Inside the block, this thread reports to a tracer."""
    before, current.tracer = current.tracer, tracer
    try:
        with mode(include=TRACING):
            yield tracer
    finally:
        current.tracer = before


def trace(function: Callable[..., Any], *args: Any) -> Graph:
    """Run ``function(*args)`` and return the operators that it runs as a graph.

    The graph's inputs are the tensors in ``args``, which may be nested containers, then the tensors that the function
    refers to, such as parameters, then numbers that each run supplies (seeds and offsets of random numbers). The
    outputs are the tensors in the result. Derivatives that the function computes are part of the graph. On the device
    ``meta`` nothing is computed.

    Raises :class:`GraphBreak` for what a graph cannot repeat, such as reading a value.
    """
    from candelabra.utils._pytree import tree_flatten

    tracer = GraphTracer(strict=True)
    with tracing(tracer):
        tensors = [leaf for leaf in tree_flatten(args)[0] if isinstance(leaf, Tensor)]
        inputs = list(dict.fromkeys(tracer.value_of(tensor._fresh()) for tensor in tensors))
        out = function(*args)
        results = [leaf._fresh() for leaf in tree_flatten(out)[0] if isinstance(leaf, Tensor)]
        outputs = [tracer.value_of(tensor) for tensor in results]
    return tracer.graph([v for v in inputs if v is not None], [v for v in outputs if v is not None])


__all__ = [
    "Break", "GeneratorDraw", "GraphBreak", "GraphTracer", "spec_of", "trace", "tracing", "untraced", "user_line",
]  # fmt: skip
