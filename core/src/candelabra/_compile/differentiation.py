"""The derivative of a compiled call: one node of the graph, whose backward pass is a compiled graph, too.

The backward pass is traced together with the call, for gradients of the shapes of the outputs. A cut then decides which
values the node saves: the inputs of the backward graph. What is cheap to compute from saved values is computed again in
the backward graph (:func:`cut`). For second derivatives the node calls the function again, eagerly: graphs lie below
autograd, and do not know what the function has detached.

Attribution: tracing forward and backward together and choosing what to save between them is the design of JAX's
linearize-then-transpose and of PyTorch's AOTAutograd.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from weakref import ref

from candelabra._annotations import Any, Final, NamedTuple
from candelabra._autograd.api import grad_up_to
from candelabra._autograd.engine import PassWatcher
from candelabra._autograd.filling import filled_like
from candelabra._autograd.node import RELEASED, Node, Port, changed
from candelabra._autograd.structure import Structure
from candelabra._compile.backends import GraphCompiler
from candelabra._compile.environment import Environment
from candelabra._compile.recording import Recorder
from candelabra._compile.rematerialization import SavedValues, released_values
from candelabra._dispatch.tracing import tracer_here
from candelabra._graph.running import dispatching, on_list
from candelabra._graph.structure import INPLACE, Graph, Value, mapped
from candelabra._graph.structure import Node as GraphNode
from candelabra._graph.tracing import GraphTracer
from candelabra._keys import AUTOGRAD, NO_GRAD, VIEW, active, mode, state
from candelabra._records.registry import OPERATORS
from candelabra._tensor import Tensor, wrap
from candelabra.dtypes import BY_BIT, DTYPE_MASK
from candelabra.errors import GraphFreed
from candelabra.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

CHEAP: Final = 1 << 16
"""Values of fewer bytes are saved rather than computed again: a kernel costs more than their memory."""


class Derivative(NamedTuple):
    """The backward graph of a compiled call, and how to call it."""

    run: Callable[[list[Any]], tuple[Any, ...]]
    """A function of a list of payloads, which releases each of them after its last use."""
    graph: Graph
    plain: Graph
    """The graph as it was traced, which a trace of the backward pass repeats."""
    outputs: tuple[Value, ...]
    """The values of the differentiable outputs, each of which has a gradient as an input of the graph."""
    layouts: tuple[Any, ...]
    saved: tuple[Value, ...]
    """The other inputs of the graph, which the node saves."""
    inputs: tuple[Value, ...]
    """The tensors from outside that get gradients."""
    keys: tuple[int, ...]
    """The keys of their gradients."""
    places: tuple[int, ...]
    """For each of them the position among the graph's outputs, or -1 for no gradient."""
    frees: tuple[frozenset[int], ...]
    """For each output those whose graphs a backward pass from it frees, since they have nodes in common."""
    reached: tuple[frozenset[int], ...]
    """For each tensor that gets gradients the outputs that depend on it."""
    needs: tuple[frozenset[Value], ...]
    """For each output the saved values that its backward pass reads."""
    checks: tuple[frozenset[int], ...] = ()
    """The same as positions among the tensors whose versions the node checks."""


class Repetition(NamedTuple):
    """How to repeat a compiled call eagerly, for derivatives of its backward pass."""

    function: Callable[..., Any]
    spec: TreeSpec
    """The structure of the arguments."""
    environment: Environment
    positions: tuple[int, ...]
    """Those of the differentiable outputs, among the tensors of the result."""
    refused: str | None
    """Why the call cannot be repeated."""


@contextmanager
def without_hooks(inputs: Sequence[Tensor]) -> Iterator[None]:
    """Inside the block, the tensors have no hooks: those run when the gradients of a compiled call arrive."""
    kept = [(node, node.hooks) for t in inputs if (node := t._node) is not None and node.hooks is not None]
    for node, _ in kept:
        node.hooks = None
    try:
        yield
    finally:
        for node, hooks in kept:
            node.hooks = hooks


def has_hooks(outputs: Iterable[Tensor], inputs: Iterable[Tensor]) -> bool:
    """Return whether a backward pass from ``outputs`` to ``inputs`` runs hooks of the nodes between them."""
    seen = {tensor._node for tensor in inputs}
    waiting = [tensor._node for tensor in outputs]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        if node.hooks is not None and not node.is_leaf:
            return True
        seen.add(node)
        waiting += node.edges()
    return False


def leads_to(outputs: Iterable[Tensor], nodes: Set[Any]) -> bool:
    """Return whether a backward pass from ``outputs`` leads to one of some nodes."""
    seen: set[Any] = {None}
    waiting = [tensor._node for tensor in outputs]
    while waiting:
        node = waiting.pop()
        if node in nodes:
            return True
        if node not in seen:
            seen.add(node)
            waiting += node.edges()  # type: ignore[union-attr]  # None has been seen
    return False


def trace_backward(
    recorder: Recorder, outputs: Sequence[Tensor], inputs: Sequence[Tensor], compiler: GraphCompiler
) -> Derivative | None:
    """Trace the backward pass from ``outputs`` to ``inputs``, after the call; None if the trace breaks.

    Must be called while the recorder is active. What the graph has saved is released while it is traced.
    """
    first, earlier, drawn = len(recorder.nodes), recorder.payloads.current(), len(recorder.draws)
    results = tuple([recorder.payloads[t._payload] for t in outputs])
    made, values, gradients = _traced_gradients(recorder, outputs, inputs)
    arrived = [None if g is None else g.value for g in gradients]
    first_values = {id(tensor): value for value, tensor in reversed(recorder.external.items())}
    if recorder.breaks or len(recorder.draws) != drawn or None in values:
        return None
    nodes, forward = recorder.nodes[made:], recorder.nodes[:first]
    if not _make_all_calls(nodes, [v for v in values if v is not None]):
        recorder.note_break("the backward pass of some results, and not of others, leads to a collective")
        return None
    del recorder.nodes[first:]
    recorder.payloads.restore(earlier)
    found: list[Any] = list(dict.fromkeys(v for v in arrived if v is not None))
    starts: list[Any] = [v for v in values if v is not None]
    saved, again = cut(forward, nodes, found, starts)
    plain = Graph([*starts, *saved], [*again, *nodes], found)
    graph, run = compiler(plain, recorder.external)
    constants = tuple([tensor._payload for tensor in graph.captured.values()])
    return Derivative(
        _with_constants(on_list(run), constants), graph, plain, results,
        tuple([(v.spec.strides, v.spec.offset) for v in starts]),
        tuple(saved),
        tuple([first_values[id(t)] for t in inputs]),
        tuple([0 if g is None else g.keys for g in gradients]),
        tuple([-1 if v is None else found.index(v) for v in arrived]),
        freed_together(outputs, inputs),
        *_dependencies((*again, *nodes), starts, saved, arrived),
    )  # fmt: skip


class _Arrived(NamedTuple):
    """A gradient of the trace: its value, and the keys of the tensor."""

    value: Value | None
    keys: int


class _TracedPass(PassWatcher):
    """Keeps nothing of a traced backward pass: no gradients, and not what the nodes that have run had saved."""

    def __init__(self, recorder: Recorder, saved: SavedValues) -> None:
        self.recorder = recorder
        self.saved = saved

    def begins(self) -> None:
        self.saved.release_outputs()

    def has_run(self, node: Node) -> None:
        self.saved.release(node)

    def captured(self, g: Any) -> Any:
        if g is None or g._keys & VIEW or g._instance.lazy:
            return g  # a view is copied when the pass has ended, and perhaps is the last use of its memory then
        return _Arrived(self.recorder.value_of(g), g._keys & ~AUTOGRAD)


def _traced_gradients(
    recorder: Recorder, outputs: Sequence[Tensor], inputs: Sequence[Tensor]
) -> tuple[int, list[Value | None], list[_Arrived | None]]:
    """Trace a backward pass that starts from ones.

    Returns the number of nodes of the trace before the pass, and the values of the ones and of the gradients.
    """
    with mode(include=NO_GRAD), released_values(recorder, outputs) as saved:
        ones = [filled_like(t, 1, tuple(t._payload.shape), t.dtype).contiguous() for t in outputs]
        made, starts = len(recorder.nodes), [recorder.value_of(t) for t in ones]
        gradients: list[Any] = grad_up_to(outputs, inputs, ones, watcher=_TracedPass(recorder, saved))
        for i, g in enumerate(gradients):
            if g is not None and not isinstance(g, _Arrived):
                # A leaf keeps a gradient that nothing else refers to, so none may show the memory of another value.
                own = g.clone() if g._keys & VIEW else g
                gradients[i] = _Arrived(recorder.value_of(own._fresh()), own._keys & ~(AUTOGRAD | VIEW))
                del g, own
    return made, starts, gradients


def _make_all_calls(nodes: Sequence[GraphNode], starts: Sequence[Value]) -> bool:
    """Return whether every ordered node depends on each of the gradients that a backward pass starts from.

    If so, a backward pass from any of them makes the same calls in the same order, compiled or not.
    """
    sources: dict[Value, frozenset[Value]] = {value: frozenset([value]) for value in starts}
    for node in nodes:
        found = frozenset().union(*[sources.get(value, ()) for value in node.operands])
        if node.is_ordered and len(found) < len(starts):
            return False
        sources.update(dict.fromkeys(node.results, found))
    return True


def _with_constants(run: Callable[[list[Any]], tuple[Any, ...]], constants: tuple[Any, ...]) -> Any:
    """Return ``run`` with constants after the payloads of its list."""

    def call(payloads: list[Any]) -> tuple[Any, ...]:
        payloads.extend(constants)
        return run(payloads)

    return call if constants else run


def replayed(graph: Graph, payloads: Sequence[Any], tracer: GraphTracer) -> list[Any]:
    """Run a graph node by node while ``tracer`` records, and return its outputs."""
    found: dict[Value, Any] = {}
    for value, payload in zip(graph.inputs, payloads, strict=True):
        found[value] = payload
        if value.spec is not None:
            tracer.meet([wrap(payload, value.spec.instance.keys_for(value.spec.dtype))])
    for node in graph.nodes:
        kernel = node.kernel or dispatching(node)
        args = [mapped(argument, found.__getitem__) for argument in node.args]
        spec = (*node.results, *node.operands)[0].spec
        assert spec is not None
        assert not isinstance(node.op, Graph)  # groups are made later
        out = tracer.run(node.op, node.form, kernel, tuple(args), spec.instance)
        results = [found[before] for before in node.operands[:1]] if node.form == INPLACE else out
        found.update(zip(node.results, results if len(node.results) > 1 or node.form == INPLACE else [out]))
    return [found[value] for value in graph.outputs]


def _dependencies(
    nodes: Iterable[GraphNode], starts: Sequence[Value], saved: Sequence[Value], results: Sequence[Value | None]
) -> tuple[tuple[frozenset[int], ...], tuple[frozenset[Value], ...]]:
    """Return for each result the positions of the gradients on which it depends, and for each of these the saved values
    that are computed with it.
    """
    none = frozenset[Any]()
    gradients = {value: frozenset([i]) for i, value in enumerate(starts)}
    sources = {value: frozenset([value]) for value in saved}
    """The saved values behind each value that depends on no gradient."""
    needs: list[set[Value]] = [set() for _ in starts]
    for node in nodes:
        found = none.union(*[gradients.get(value, none) for value in node.operands])
        read = none.union(*[sources.get(value, none) for value in node.operands])
        for i in found:
            needs[i] |= read
        for value in node.results:
            (gradients if found else sources)[value] = found or read
    reached = tuple([none if value is None else gradients.get(value, none) for value in results])
    return reached, tuple(map(frozenset, needs))


def freed_together(outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> tuple[frozenset[int], ...]:
    """Return for each output those with which it shares a node that has saved values, up to the inputs."""
    ends = {None, *(tensor._node for tensor in inputs)}
    users: dict[Node, set[int]] = {}
    for i, tensor in enumerate(outputs):
        seen, waiting = set(ends), [tensor._node]
        while waiting:
            node = waiting.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            waiting += node.edges()
            if any(getattr(node, slot, None) is not None for slot in node.saved_slots):
                users.setdefault(node, set()).add(i)
    groups = set(map(frozenset, users.values()))
    return tuple([frozenset().union(*(group for group in groups if i in group)) for i in range(len(outputs))])


def freed(recorder: Recorder, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[bool]:
    """Return for each output whether the function has run its backward pass already, so that its graph is freed."""
    if not recorder.frees_graphs:
        return [False] * len(outputs)
    found, first, earlier = [], len(recorder.nodes), recorder.payloads.current()
    for output in outputs:
        try:
            with mode(include=NO_GRAD):
                grad_up_to([output], inputs, [filled_like(output, 1)])
            found.append(False)
        except GraphFreed:
            found.append(True)
    del recorder.nodes[first:]
    recorder.payloads.restore(earlier)
    return found


def cut(
    forward: Sequence[GraphNode], backward: Sequence[GraphNode], results: Sequence[Value], starts: Sequence[Value]
) -> tuple[list[Value], list[GraphNode]]:
    """Return the values to save for a backward graph, and the nodes of the forward graph that it computes again.

    Views, and pointwise results of more than :data:`CHEAP` bytes, are computed again if all their operands are saved
    anyway or come from outside; a memory that is written is never read again. Everything else is saved.
    """
    producers = {value: node for node in forward for value in node.results}
    written = {memory for node in (*forward, *backward) for memory in node.written}
    computed = {value for node in backward for value in node.results} | set(starts)
    used = [value for node in backward for value in node.operands if value not in computed]
    needed = dict.fromkeys([*used, *(value for value in results if value not in computed)])
    saved = {v: None for v in needed if not _is_cheap(producers.get(v), written)}
    again: dict[GraphNode, None] = {}

    def available(value: Value, depth: int = 8) -> bool:
        """Whether a value can be computed from saved ones; adds the nodes that do."""
        if value in saved or any(value in node.results for node in again):
            return True
        node = producers.get(value)
        if node is None and value.memory.external:  # a reference to a tensor from outside costs nothing
            saved[value] = None
            return True
        if node is None or not depth or not _is_cheap(node, written):
            return False
        if not all(available(operand, depth - 1) for operand in node.operands):
            return False
        again[node] = None
        return True

    for value in needed:
        if not available(value):
            saved[value] = None
    order = [node for node in forward if node in again]
    operands = {value for node in (*order, *backward) for value in node.operands} | set(results)
    return [value for value in saved if value in operands], order


def _is_cheap(node: GraphNode | None, written: set[Any]) -> bool:
    if node is None or isinstance(node.op, Graph) or any(value.memory in written for value in node.operands):
        return False
    if node.is_view:
        return True
    large = any(value.spec is not None and value.spec.nbytes >= CHEAP for value in node.results)
    return large and getattr(node.op.rule, "pointwise", False) and not node.op.random and not node.written


Version = tuple[list[int], int, Tensor]
"""The counter of a tensor's writes, what it was at the call, and the tensor."""


def versions_of(tensors: Iterable[Tensor]) -> list[Version]:
    """Return the versions of tensors now."""
    return [(tensor._counter, tensor._counter[0], tensor) for tensor in tensors]


class CompiledNode(Node):
    """The node of a compiled call: it saves payloads, and its backward pass runs the backward graph.

    ``leaves`` are those of the call's arguments, and ``inputs`` the tensors that get gradients. A backward pass that is
    recorded itself, or whose gradients belong to a function transform, repeats the call eagerly.
    """

    __slots__ = (
        "all_keys", "derivative", "e1", "inputs", "leaf_versions", "leaves", "more", "outputs", "ports", "repetition",
        "saved", "shapes", "spent", "versions",
    )  # fmt: skip
    operator = "compiled"
    saved_slots = ("saved",)

    def __init__(
        self,
        derivative: Derivative | None,
        saved: Any,
        inputs: Sequence[Tensor] = (),
        guarded: Sequence[Tensor] = (),
        repetition: Repetition | None = None,
        leaves: Sequence[Any] = (),
    ) -> None:
        self.derivative = derivative
        self.saved = saved
        self.repetition = repetition
        self.inputs, self.leaves = inputs, leaves
        self.e0, self.e1, *more = (*[tensor._node for tensor in inputs], None, None)[: max(2, len(inputs))]
        self.more = tuple(more)
        self.hooks = None
        self.spent: frozenset[int] = frozenset()
        """The outputs whose graphs are freed."""
        self.versions = versions_of(guarded)
        self.leaf_versions = versions_of(leaf for leaf in leaves if isinstance(leaf, Tensor))

    def give(self, tensors: Sequence[Tensor]) -> None:
        """Make the node that of the differentiable outputs."""
        self.outputs = len(tensors)
        self.shapes = tuple([tuple(t._payload.shape) for t in tensors])
        self.all_keys = tuple([t._keys | AUTOGRAD for t in tensors])
        self.shape, self.keys = self.shapes[0], self.all_keys[0]
        nodes: list[Any] = [self]
        if len(tensors) > 1:
            nodes = [Port(self, i, self.shapes[i], self.all_keys[i]) for i in range(len(tensors))]
        for tensor, node in zip(tensors, nodes, strict=True):
            tensor._node = node
            tensor._keys |= AUTOGRAD
        self.ports = tuple([ref(node) for node in nodes])

    def backward(self, g: Any) -> tuple[Any, ...]:
        return self._gradients(g, False)

    def consume(self, g: Any) -> tuple[Any, ...]:
        last = self._spend(g)
        results = self._gradients(g, last)
        if last:
            self.release()
        return results

    def _spend(self, g: Any) -> bool:
        """Note that the graphs of the outputs with gradients are freed. Return whether those of all outputs are."""
        if (derivative := self.derivative) is None:
            return True
        arrived = range(1) if self.outputs == 1 else [i for i, one in enumerate(g) if one is not None]
        if not self.spent.isdisjoint(arrived):
            RELEASED.unpack()  # raises GraphFreed
        self.spent = self.spent.union(*[derivative.frees[i] for i in arrived])
        return len(self.spent) == self.outputs

    def _gradients(self, g: Any, last: bool) -> tuple[Any, ...]:
        """Run the backward graph. ``last``: the graph may release what the node has saved."""
        if (saved := self.saved) is RELEASED:
            return RELEASED.unpack()  # type: ignore[no-any-return]  # raises GraphFreed
        arrived = [g] if self.outputs == 1 else g
        if not state.bits & NO_GRAD or any(one is not None and one._instance.depth for one in arrived):
            return self._repeated(arrived)
        derivative = self.derivative
        assert derivative is not None
        numbers = None if self.outputs == 1 else [i for i, one in enumerate(g) if one is not None]
        if numbers is None or len(numbers) == self.outputs:
            self._check(self.versions)
        else:
            needed = frozenset[int]().union(*[derivative.checks[i] for i in numbers])
            self._check([self.versions[k] for k in needed])
        payloads = [*(self._payload(i, one, arrived) for i, one in enumerate(arrived)), *saved]
        if last:
            self.saved = saved = RELEASED
        tracer = tracer_here() if active else None
        found = derivative.run(payloads) if tracer is None else replayed(derivative.plain, payloads, tracer)
        results = [
            None if place < 0 else wrap(found[place], keys)
            for place, keys in zip(derivative.places, derivative.keys, strict=True)
        ]
        if numbers is not None and len(numbers) < self.outputs:  # as eager passes, which end where no gradient arrives
            results = [
                None if outputs.isdisjoint(numbers) else r
                for r, outputs in zip(results, derivative.reached, strict=True)
            ]
        return (*results, None)[: max(2, len(results))]

    def _check(self, versions: Sequence[Version]) -> None:
        """Raise VersionMismatch if a tensor was written since the call."""
        for cell, version, tensor in versions:
            if cell[0] != version:
                raise changed(self, "captured tensor", tuple(tensor.shape), tensor._keys, cell[0], version)

    def _repeated(self, arrived: Sequence[Tensor | None]) -> tuple[Any, ...]:
        """Return the gradients of the inputs by calling the function again, eagerly and with recording."""
        repetition = self.repetition
        assert repetition is not None
        refused = repetition.refused
        if refused is None and (changes := repetition.environment.failure()) is not None:
            refused = f"depends on {changes}, which has changed since the call,"
        if refused is not None:
            raise RuntimeError(
                f"a compiled function that {refused} has no second derivative, and none by function transforms: call "
                "it under candelabra.compiler.set_stance('force_eager'), or do not compile it"
            )
        self._check((*self.versions, *self.leaf_versions))
        args, kwargs = tree_unflatten(list(self.leaves), repetition.spec)
        create = not state.bits & NO_GRAD
        with mode(exclude=NO_GRAD):
            found = tree_flatten(repetition.function(*args, **kwargs))[0]
        tensors = [leaf for leaf in found if isinstance(leaf, Tensor)]
        pairs = [(tensors[i], g) for i, g in zip(repetition.positions, arrived, strict=True) if g is not None]
        outputs, gradients = zip(*pairs, strict=True)
        return (*grad_up_to(outputs, self.inputs, gradients, create), None)[: max(2, len(self.inputs))]

    def _payload(self, position: int, g: Tensor | None, arrived: Sequence[Tensor | None]) -> Any:
        """Return the payload of the gradient of an output, with the layout of the trace."""
        if g is None:
            like = next(one for one in arrived if one is not None)
            d = BY_BIT[self.all_keys[position] & DTYPE_MASK]
            g = filled_like(like, 0, self.shapes[position], d)
        g._fresh()
        assert self.derivative is not None
        if g._layout() != self.derivative.layouts[position]:
            g = OPERATORS["clone"].canonical(g)
        return g._payload

    def describe(self, to: Structure) -> None:
        """Add the backward graph, and the payloads that the node has saved for it."""
        if self.saved is RELEASED:
            RELEASED.unpack()  # raises
        assert self.derivative is not None
        self._check(self.versions)
        to.same(self.derivative)
        cells = {id(tensor._payload): tensor._counter for _, _, tensor in self.versions}
        for value, payload in zip(self.derivative.saved, self.saved, strict=True):
            if value.spec is None:
                to.refuse("a number of a compiled call")
            else:
                cell = cells.get(id(payload), [0])
                to.payload(payload, cell, value.spec.instance.keys_for(value.spec.dtype))

    def release(self) -> None:
        self.saved = RELEASED
        self.versions = self.leaf_versions = []
        self.inputs = self.leaves = ()

    def name(self) -> str:
        return "CompiledFunctionBackward"


__all__ = ["CompiledNode", "Derivative", "Repetition", "cut", "freed", "has_hooks", "trace_backward", "without_hooks"]
