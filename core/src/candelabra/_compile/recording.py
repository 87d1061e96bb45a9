"""One traced call: its graphs, and the effects on tensors that each run repeats after a graph.

A call is a sequence of segments. A segment is a graph and its effects: gradients that were set or removed, versions
that advanced, payloads that were replaced on devices with immutable arrays. Between two segments stands a host call, a
function that runs as Python at every call, such as an optimizer's step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from weakref import WeakSet, ref

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple, TypeVar
from candelabra._autograd.engine import running
from candelabra._compile.outer_graphs import OuterGraphs
from candelabra._device import instance_of_key
from candelabra._dispatch.tracing import RunTimeFloat
from candelabra._graph.structure import Graph, Node, Value
from candelabra._graph.tracing import GeneratorDraw, GraphTracer, untraced
from candelabra._keys import AUTOGRAD, VIEW
from candelabra._tensor import Tensor
from candelabra.utils._pytree import tree_flatten

if TYPE_CHECKING:
    from candelabra._compile.environment import Environment

T = TypeVar("T")


class GradientSet(NamedTuple):
    """``tensor.grad`` becomes a new tensor with the payload of ``value``; None removes it."""

    tensor: Tensor
    value: Value | None
    keys: int


class Advanced(NamedTuple):
    """The version of a tensor from outside advances by a number of writes."""

    tensor: Tensor
    writes: int


class Replaced(NamedTuple):
    """A tensor from outside gets the payload of ``value``: a write on a device with immutable arrays."""

    tensor: Tensor
    value: Value


Effect = GradientSet | Advanced | Replaced


def _reference(tensor: Tensor | None) -> ref[Tensor] | None:
    return None if tensor is None else ref(tensor)


class HostNumbers(NamedTuple):
    """Numbers that each run computes on the host, before a graph: ``function()`` returns one for each value."""

    function: Callable[[], Sequence[float]]
    values: list[Value]


class HostCall(NamedTuple):
    """A call that runs as Python between two segments."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Segment:
    """The nodes between two host calls, and the effects after them."""

    def __init__(
        self,
        nodes: list[Node],
        draws: list[GeneratorDraw],
        numbers: list[HostNumbers],
        effects: list[Effect],
        call: HostCall | None,
    ) -> None:
        self.nodes = nodes
        self.draws = draws
        """The draws of random numbers, which come before the nodes."""
        self.numbers = numbers
        """The numbers of the host, which come before the nodes, too."""
        self.effects = effects
        self.call = call
        """The host call after the effects."""

    @property
    def computed(self) -> set[Value]:
        return {value for node in self.nodes for value in node.results}

    @property
    def used(self) -> dict[Value, None]:
        """The values that the nodes or the effects use, in order."""
        by_nodes = [value for node in self.nodes for value in node.operands]
        by_effects = [e.value for e in self.effects if not isinstance(e, Advanced) and e.value is not None]
        return dict.fromkeys([*by_nodes, *by_effects])


class _Start(NamedTuple):
    """A tensor from outside as the segment met it."""

    tensor: Tensor
    payload: Any
    cell: list[int]
    version: int
    node: Any
    keys: int


class Recorder(GraphTracer):
    """A tracer that also records effects. ``leaves``: the tensors whose ``.grad`` may change."""

    repeats = True

    def __init__(self, strict: bool, leaves: Sequence[Tensor], environment: Environment | None = None) -> None:
        super().__init__(strict)
        self.outer = OuterGraphs(self, environment, leaves)
        self.made_leaves: WeakSet[Any] = WeakSet()
        """The nodes of the leaves that the function creates."""
        self.segments: list[Segment] = []
        self.leaves: dict[int, Tensor] = {}
        self.gradients: dict[int, ref[Tensor] | None] = {}
        """The gradient of each leaf, by its id, at the start of the segment. The function may release it."""
        self.had_gradient: dict[int, bool] = {}
        """Whether each leaf had a gradient when the trace met it."""
        self.gradient_of: dict[Value, Tensor] = {}
        """The leaf whose gradient a tensor from outside is."""
        self._starts: dict[Value, _Start] = {}
        self.has_backward = False
        self.frees_graphs = False
        """Whether the function has run a backward pass that frees its graph."""
        self.observed: dict[str, set[int]] = {"is_leaf": set(), "grad": set()}
        """The ids of the tensors whose attribute the function has read."""
        self.host_numbers: list[HostNumbers] = []
        self.dependencies: list[tuple[Callable[[], bool], str]] = []
        """Conditions of each run besides those of the environment, each with its name in messages."""
        self.guards: dict[str, Callable[[], bool]] = {}
        """Conditions of each run that do not read gradients, by their names."""
        self._first = self._drawn = self._counted = 0
        for tensor in leaves:
            self.watch(tensor)

    def starts_backward(self, nodes: Iterable[Any], keep_graph: bool, accumulates: bool) -> None:
        """Note a backward pass: the gradients of its leaves have to be watched, and graphs from before the call."""
        if not self.rehearses:
            self.has_backward |= accumulates
            self.frees_graphs |= not keep_graph
            self.outer.enter(nodes, keep_graph, accumulates)

    def makes_leaf(self, node: Any) -> None:
        self.made_leaves.add(node)

    def observe(self, tensor: Tensor, attribute: str) -> None:
        self.observed[attribute].add(id(tensor))
        self.watch(tensor)
        if running.one is None:
            self.outer.name((tensor,))

    def watch(self, tensor: Tensor) -> None:
        """Watch the gradient of a tensor."""
        node = tensor._node
        if node is None or not node.is_leaf or node in self.made_leaves:
            return
        if id(tensor) not in self.leaves and tensor._keys & AUTOGRAD:
            self.leaves[id(tensor)] = tensor
            grad = gradient_of(tensor)
            self.gradients[id(tensor)] = _reference(grad)
            self.had_gradient[id(tensor)] = grad is not None

    def meet(self, args: Sequence[Any]) -> None:
        super().meet(args)
        if self.outer.graphs and running.one is None:
            self.outer.name(args)

    def value_of(self, tensor: Tensor) -> Value | None:
        known = tensor._payload in self.payloads
        if not known:  # a saved value may be a handle of a tensor that the function refers to
            tensor = self.outer.tensor_of(tensor)
        value = super().value_of(tensor)
        if not known and value is not None:
            cell = tensor._counter
            self._starts[value] = _Start(tensor, tensor._payload, cell, cell[0], tensor._node, tensor._keys)
            self.watch(tensor)
            self.outer.meet(value, tensor._payload)
            leaf = next((leaf for leaf in self.leaves.values() if gradient_of(leaf) is tensor), None)
            if leaf is not None:
                self.gradient_of[value] = leaf
        return value

    def depends_on(self, holds: Callable[[], bool], name: str) -> None:
        """Let each run call ``holds()`` first, and trace the function again if it returns False.

        It is also called at the end of the trace: a trace that changed what it depends on is not repeated.
        """
        self.dependencies.append((holds, name))

    def guard(self, holds: Callable[[], bool], name: str) -> None:
        """Let each run call ``holds()`` first, as :meth:`depends_on` does. The first condition of a name counts."""
        self.guards.setdefault(name, holds)

    def outside(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function that the graph does not repeat."""
        with untraced():
            return function(*args)

    def numbers(self, function: Callable[[], Sequence[float]]) -> list[RunTimeFloat]:
        """Return the numbers that ``function()`` computes now and at each run, before the graph."""
        found = [RunTimeFloat(number) for number in self.outside(function)]
        for number in found:
            number.value = Value(None)
        self.host_numbers.append(HostNumbers(function, [number.value for number in found]))
        return found

    def host_call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
        if any(isinstance(leaf, Tensor) for leaf in tree_flatten((args, kwargs))[0]):
            self.note_break("a function outside of the graph takes a tensor")
        self.end_segment(HostCall(function, args, kwargs))
        with untraced():
            out = function(*args, **kwargs)
        if out is not None:
            self.note_break("a function outside of the graph returns a value")
        self.forget_external()
        for key, tensor in self.leaves.items():
            self.gradients[key] = _reference(gradient_of(tensor))
        return out

    def end_segment(self, call: HostCall | None = None) -> None:
        """Close the segment: compare tensors from outside with what they were when it began."""
        effects = self._gradients_set()
        cells: set[int] = set()
        for start in self._starts.values():
            effects += self._changes(start, cells)
        numbers = self.host_numbers[self._counted :]
        self.segments.append(Segment(self.nodes[self._first :], self.draws[self._drawn :], numbers, effects, call))
        self._first, self._drawn, self._counted = len(self.nodes), len(self.draws), len(self.host_numbers)
        self._starts = {}

    def _gradients_set(self) -> list[Effect]:
        effects: list[Effect] = []
        for key, tensor in self.leaves.items():
            now, then = gradient_of(tensor), self.gradients[key]
            if now is None if then is None else now is not None and now is then():
                continue
            self.gradients[key] = _reference(now)
            if now is None:
                effects.append(GradientSet(tensor, None, 0))
                continue
            found = self.payloads.get(now._payload)
            if found is None or now._node is not None:
                self.note_break("a gradient is set to a tensor that the graph does not compute, or that has a graph")
                continue
            effects.append(GradientSet(tensor, found, now._keys))
        return effects

    def _changes(self, start: _Start, cells: set[int]) -> list[Effect]:
        """Return the effects of a segment on one tensor from outside."""
        tensor, effects = start.tensor, list[Effect]()
        if tensor._node is not start.node or tensor._keys != start.keys:
            self.note_break("autograd records a write to a tensor from outside, or its requires_grad changes")
        writes = start.cell[0] - start.version
        if writes and id(start.cell) not in cells:
            cells.add(id(start.cell))
            effects.append(Advanced(tensor, writes))
        if writes and tensor._keys & VIEW and instance_of_key(tensor._keys).immutable:
            # The write has replaced the payload of the base, which differs from call to call and is no input.
            self.note_break("a view from outside is written on a device whose arrays are immutable")
        if tensor._payload is not start.payload:
            found = self.payloads.get(tensor._payload)
            if found is None or not instance_of_key(tensor._keys).immutable:
                self.note_break("a tensor from outside gets other memory or another shape")
            else:
                effects.append(Replaced(tensor, found))
        return effects


def gradient_of(tensor: Tensor) -> Tensor | None:
    """Return ``tensor.grad``, unseen by the tracer."""
    return getattr(tensor, "_grad", None)


def graphs_of(
    segments: list[Segment], outputs: Iterable[Value], external: dict[Value, Tensor], varying: Iterable[Value]
) -> list[Graph]:
    """Return the graph of each segment. Its inputs are the values that it uses and does not compute, its outputs those
    of its values that its effects, later segments or the caller use. ``varying``: the tensors from outside that differ
    from call to call, arguments and gradients.
    """
    later, varying = set(outputs), set(varying)
    found: list[Graph] = []
    for segment in reversed(segments):
        computed, used = segment.computed, segment.used
        needed = later | {e.value for e in segment.effects if not isinstance(e, Advanced) and e.value is not None}
        results = [v for node in segment.nodes for v in node.results if v in needed]
        passed = [v for v in used if v not in computed]
        captured = {v: external[v] for v in passed if v in external and v not in varying}
        found.append(Graph(passed, segment.nodes, results, captured))
        later |= set(passed)
    return found[::-1]


__all__ = ["Advanced", "Effect", "GradientSet", "HostCall", "Recorder", "Replaced", "Segment", "graphs_of"]
