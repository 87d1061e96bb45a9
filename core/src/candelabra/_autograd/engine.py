"""The engine: traverse the graph from the outputs to the leaves, and run each node once all its gradients have arrived.

The traversal is iterative, so a chain of a million nodes does not recurse. A node's saved values are released as soon
as the node has run. :func:`restored` undoes broadcasting after each rule, so that no derivative rule has to.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._autograd.accumulating import OfSpecial, OfSum, accumulate
from candelabra._autograd.anomaly import run_checked
from candelabra._autograd.node import LEAF, PORT, Node
from candelabra._autograd.pending import evaluate_gradients
from candelabra._device import instance_of_key, lazy_instances
from candelabra._dispatch.tracing import tracer_here
from candelabra._keys import ANOMALY, AUTOGRAD, VIEW, active, state
from candelabra._records.registry import OPERATORS

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

Capture = Callable[[Any], None]


class _Running(threading.local):
    """The pass that this thread runs now, the innermost one."""

    one: _Pass | None = None


running: Final = _Running()


class PassWatcher:
    """The calls that a pass with ``captures`` makes while it runs."""

    def begins(self) -> None:
        """Called when the outputs that the pass starts from are not needed any more."""

    def has_run(self, node: Node) -> None:
        """Called when a node has given the gradients of its inputs."""

    def captured(self, g: Any) -> Any:
        """Return what the pass stores for the gradient of a target."""
        return g


def run(
    roots: list[tuple[Node, Any]],
    keep_graph: bool,
    create_graph: bool,
    captures: dict[Node, list[int]] | None = None,
    captured: list[Any] | None = None,
    ending: bool = False,
    watcher: PassWatcher | None = None,
) -> None:
    """Run the backward pass from ``roots``, (node, gradient) pairs, in the caller's mode of recording.

    With ``captures``, only the nodes on a path to one of its keys run. The gradients of these keys are stored in
    ``captured`` at the listed positions instead of being accumulated into leaves. With ``ending``, these paths end at
    the first key: one does not contribute to another. Then a
    ``watcher`` may see the nodes that have run, and say what is stored.
    """
    starts: dict[Node, Any] = {}
    for node, g in roots:
        present = starts.get(node)
        starts[node] = g if present is None else present + g
    one = _Pass(reachable(list(starts)), keep_graph, create_graph)
    if captures is not None:
        assert captured is not None
        one.captures, one.captured, one.wanted = captures, captured, _leading_to(captures, one.pending)
        one.watcher = watcher
        if ending:
            one.wanted.difference_update(captures)
    if active and (tracer := tracer_here()) is not None:
        tracer.starts_backward(one.pending if captures is None else one.wanted, keep_graph, captures is None)
    for node, g in starts.items():
        if one.pending[node]:  # a root that another root depends on
            one.partial[node] = g
        else:
            one.ready.append(node)
            one.arrived.append(g)
    del starts, roots
    g = None  # it lives no longer than the node that it arrives at
    if watcher is not None:
        watcher.begins()
    outer, running.one = running.one, one
    try:
        one.run()
    finally:
        running.one = outer
    for function in one.endings:
        function()
    if lazy_instances:
        evaluate_gradients(one.pending, one.captured)


def after_backward(function: Callable[[], object]) -> bool:
    """Call a function at the end of the backward pass that this thread runs, if that accumulates into leaves.

    A node that begins something slow, such as a collective, returns None for its leaves and adds to their ``.grad`` in
    the function. Returns False, and does not call the function, where gradients are returned (``autograd.grad``) or
    recorded (``create_graph``), and outside a pass. If the pass raises, the function is not called.
    """
    one = running.one
    if one is None or one.captures is not None or one.create_graph:
        return False
    one.endings.append(function)
    return True


def reachable(roots: list[Node]) -> dict[Node, int]:
    """Return, for each reachable node, the number of edges that lead to it from reachable nodes."""
    pending = dict.fromkeys(roots, 0)
    stack = list(pending)
    while stack:
        node: Node | None = stack.pop()
        while node is not None:  # follow a chain without using the stack
            below = None
            edge = node.e0
            if edge is not None:
                if edge in pending:
                    pending[edge] += 1
                else:
                    pending[edge] = 1
                    below = edge
            edge = node.e1
            if edge is not None:
                if edge in pending:
                    pending[edge] += 1
                else:
                    pending[edge] = 1
                    stack.append(edge)
            if node.more:
                for edge in node.more:
                    if edge is not None:
                        if edge in pending:
                            pending[edge] += 1
                        else:
                            pending[edge] = 1
                            stack.append(edge)
            node = below
    return pending


def _leading_to(targets: Iterable[Node], nodes: Iterable[Node]) -> set[Node]:
    """Return those of the reachable nodes that must run: those on a path to one of ``targets``."""
    incoming: dict[Node, list[Node]] = {}
    for node in nodes:
        for edge in node.edges():
            if edge is not None:
                incoming.setdefault(edge, []).append(node)
    wanted: set[Node] = set()
    stack = [node for target in targets for node in incoming.get(target, ())]
    while stack:
        node = stack.pop()
        if node not in wanted:
            wanted.add(node)
            stack += incoming.get(node, ())
    return wanted


class _Pass:
    """The state of one backward pass. ``ready`` and ``arrived`` are stacks of equal height."""

    __slots__ = (
        "arrived",
        "captured",
        "captures",
        "create_graph",
        "endings",
        "keep_graph",
        "notes",
        "partial",
        "pending",
        "ready",
        "wanted",
        "watcher",
    )

    def __init__(self, pending: dict[Node, int], keep_graph: bool, create_graph: bool) -> None:
        self.pending = pending
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.ready: list[Node] = []
        """The nodes whose gradients have all arrived."""
        self.arrived: list[Any] = []
        """For each node of ``ready`` the sum of its gradients, or None if no gradient reached it."""
        self.partial: dict[Node, Any] = {}
        """The sums of the gradients that have arrived at nodes that wait for more."""
        self.captures: dict[Node, list[int]] | None = None
        self.captured: list[Any] = []
        self.wanted: set[Node] = set()
        self.notes: dict[object, Any] = {}
        """What hooks keep for the rest of this pass."""
        self.watcher: PassWatcher | None = None
        self.endings: list[Callable[[], object]] = []
        """What :func:`after_backward` has registered."""

    def will_run(self, node: Node) -> bool:
        """Return whether the gradient of a node's output is, or was, part of this pass."""
        if self.captures is None:
            return node in self.pending
        return node in self.wanted or (node in self.captures and node in self.pending)

    def arrive(self, edge: Node, total: Any) -> None:
        """Deliver a gradient along one edge; the node becomes ready if it was the last."""
        self.pending[edge] = left = self.pending[edge] - 1
        if not left:
            self.ready.append(edge)
            self.arrived.append(total)
        elif total is not None:
            self.partial[edge] = total

    def run(self) -> None:
        """Run nodes until none is ready."""
        ready, arrived, partial, pending = self.ready, self.arrived, self.partial, self.pending
        free = not self.keep_graph
        slow = self.captures is not None or state.bits & ANOMALY
        following: Node | None = None
        """The node that became ready last. It runs next, with ``gradient``, and is never pushed onto the stack."""
        gradient = r = total = None
        while ready or following is not None:
            if following is not None:
                node, g, following, gradient, r = following, gradient, None, None, None
            else:
                node, g = ready.pop(), arrived.pop()
            if g is None:
                self.skip(node)
                continue
            if slow or node.hooks is not None:
                results = None
            elif partial and node.add_to is not None and (total := self.own_sum(node, g)) is not None:
                node.add_to(total, g, node)
                results, total = (total,), None
            else:
                results = node.consume(g) if free else node.backward(g)
            if results is None:  # a leaf, a port, or a node with hooks
                present = None  # drop this reference, so that `accumulate` sees that the gradient is not shared
                if node.kind == LEAF and not slow and node.hooks is None:
                    accumulate(node, g, self.create_graph)
                    continue
                results = self.special(node, g)
                if results is None:
                    continue
            edge, position, more = node.e0, 0, node.more
            while True:  # over node.edges(), without the tuple, which would cost as much as the rest of the loop
                if edge is not None:
                    r = results[position]
                    if r is not None and r._payload.shape != edge.shape:
                        r = restored(r, edge, node)
                    if partial and (present := partial.pop(edge, None)) is not None:
                        r = present if r is None else present + r
                    left = pending[edge] - 1
                    if left:
                        pending[edge] = left
                        if r is not None:
                            partial[edge] = r
                    else:
                        if following is not None:
                            ready.append(following)
                            arrived.append(gradient)
                        following, gradient = edge, r
                if position == 0:
                    edge = node.e1
                elif position <= len(more):
                    edge = more[position - 1]
                else:
                    break
                position += 1

    def own_sum(self, node: Node, g: Any) -> Any:
        """Return the sum that waits for the gradient of a node's input, and remove it, if it can be written in place.

        So the gradient of ``x.split(n)`` is one array, to which each piece adds its part. Nothing else may refer to
        the sum, and the pass must not be recorded. A graph gets additions, which it joins in another way.
        """
        if active and tracer_here() is not None:
            return None
        edge = node.e0
        total = self.partial.pop(edge, None)  # type: ignore[arg-type]
        if total is None:
            return None
        alike = total._keys == g._keys & ~VIEW and not total._keys & (VIEW | AUTOGRAD)
        if alike and not self.create_graph and total._payload.shape == edge.shape:  # type: ignore[union-attr]
            unshared = sys.getrefcount(total) <= OfSum.tensor and sys.getrefcount(total._payload) <= OfSum.payload
            instance = instance_of_key(total._keys)
            if unshared and not instance.immutable and instance.capabilities.strided and not lazy_instances:
                return total
        self.partial[edge] = total  # type: ignore[index]
        return None

    def special(self, node: Node, g: Any) -> tuple[Any, ...] | None:
        """Process leaves, ports, hooks, captures and anomaly mode. Return None if the node needs no further step."""
        if self.captures is not None and not self.will_run(node):
            self.skip(node)
            return None
        hooks = node.hooks
        if hooks is not None and node.outputs == 1:
            g = hooks.on_gradient(g)
        if self.captures is not None:
            for position in self.captures.get(node, ()):
                self.captured[position] = g if self.watcher is None else self.watcher.captured(g)
            if node not in self.wanted:
                self.skip(node)
                return None
        if node.kind == LEAF:
            accumulate(node, g, self.create_graph, OfSpecial)
            return None
        if node.kind == PORT:
            self.into_port(node, g)
            return None
        results = _run_watched(node, g)
        if not self.keep_graph:
            node.release()
        if self.watcher is not None:
            self.watcher.has_run(node)
        return results

    def into_port(self, port: Node, g: Any) -> None:
        """Pass the gradient of one of several outputs to the node that computed it."""
        node = port.e0
        assert node is not None
        slots = self.partial.pop(node, None)
        if slots is None:
            slots = [None] * node.outputs
        index = port.index  # type: ignore[attr-defined]
        slots[index] = g if slots[index] is None else slots[index] + g
        self.pending[node] = left = self.pending[node] - 1
        if left:
            self.partial[node] = slots
        else:
            self.ready.append(node)
            self.arrived.append(slots)

    def skip(self, node: Node) -> None:
        """Process a node that no gradient reached, or that is on no path to a target."""
        for edge in node.edges():
            if edge is not None:
                self.arrive(edge, self.partial.pop(edge, None))


def restored(r: Tensor, edge: Node, node: Node) -> Tensor:
    """Return a gradient in the shape of its tensor: sum over the dims that were broadcast."""
    have, want = tuple(r._payload.shape), tuple(edge.shape)
    if have == want:
        return r
    lead = len(have) - len(want)
    dims = list(range(lead))
    for dim, (size, wanted) in enumerate(zip(have[max(lead, 0) :], want), lead):
        if size != wanted:
            if wanted != 1:
                lead = -1
                break
            dims.append(dim)
    if lead >= 0:
        total = OPERATORS["sum"].canonical
        if len(dims) == lead:  # the result is no view, so that a leaf can keep it without a copy
            out: Tensor = total(r, tuple(dims), False, None)
            return out
        out = total(r, tuple(dims), True, None)
        return out.reshape(want) if lead else out
    position = next((i for i, e in enumerate(node.edges()) if e is edge), 0)
    raise RuntimeError(
        f"Function {node.name()} returned an invalid gradient at index {position} - got {list(have)} but expected "
        f"shape compatible with {list(want)}"
    )


def _run_watched(node: Node, g: Any) -> tuple[Any, ...]:
    """Run a node that has hooks, or any node in anomaly mode."""
    gs = tuple(g) if node.outputs > 1 else (g,)
    hooks = node.hooks
    if hooks is not None and hooks.before:
        gs = hooks.run_before(gs)
        g = list(gs) if node.outputs > 1 else gs[0]
    if state.bits & ANOMALY:
        results = run_checked(node, g)
    else:
        results = node.backward(g)
    if hooks is not None and hooks.after:
        arity = node._arity()
        visible = hooks.run_after(tuple(results)[:arity], gs)
        results = (*visible, *results[len(visible) :])
    return results
