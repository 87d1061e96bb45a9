"""The derivative of a compiled call, as a graph.

The backward pass is traced together with the call, for gradients of the shapes of the outputs. A cut then decides which
values the node of the call saves: the inputs of the backward graph. What is cheap to compute from saved values is
computed again in the backward graph (:func:`cut`).

Attribution: tracing forward and backward together and choosing what to save between them is the design of JAX's
linearize-then-transpose and of PyTorch's AOTAutograd.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager

from candelabra._annotations import Any, Final, NamedTuple
from candelabra._autograd.api import grad_up_to
from candelabra._autograd.engine import PassWatcher
from candelabra._autograd.filling import filled_like
from candelabra._autograd.node import Node
from candelabra._compile.backends import GraphCompiler
from candelabra._compile.recording import Recorder
from candelabra._compile.rematerialization import SavedValues, released_values
from candelabra._graph.running import on_list
from candelabra._graph.structure import Graph, Value
from candelabra._graph.structure import Node as GraphNode
from candelabra._keys import AUTOGRAD, NO_GRAD, VIEW, mode
from candelabra._tensor import Tensor
from candelabra.errors import GraphFreed

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


__all__ = ["Derivative", "cut", "freed", "has_hooks", "leads_to", "trace_backward", "without_hooks"]
