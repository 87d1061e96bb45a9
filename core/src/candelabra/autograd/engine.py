"""The engine: walk the graph from the outputs to the leaves, each node once all its gradients are there.

Iterative, so a chain of a million nodes neither recurses nor slows; a node's saved values are let go of as soon as it
has run. One step, :func:`restored`, undoes broadcasting, so that no derivative rule has to.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from candelabra.autograd.node import LEAF, Leaf, Node
from candelabra.keys import ANOMALY, AUTOGRAD, NO_GRAD, VIEW, state

if TYPE_CHECKING:
    from candelabra.tensor import Tensor

Capture = Callable[[Any], None]

_accumulating: Final = threading.Lock()


def run(
    roots: list[tuple[Node, Any]],
    keep_graph: bool,
    create_graph: bool,
    captures: dict[Node, list[int]] | None = None,
    captured: list[Any] | None = None,
) -> None:
    """Run the backward pass from ``roots``, (node, gradient) pairs.

    With ``captures`` only nodes on a path to one of its keys run, and the gradients of those are put into ``captured``
    at the listed positions instead of being accumulated into leaves.
    """
    before = state.bits
    state.bits = before & ~NO_GRAD if create_graph else before | NO_GRAD
    try:
        gradients: dict[Node, Any] = {}
        for node, g in roots:
            _deliver(gradients, node, g)
        starts = list(gradients)
        pending = _count(starts)
        wanted = None if captures is None else _leading_to(captures, pending)
        ready = [node for node in starts if not pending[node]]
        _loop(ready, pending, gradients, keep_graph, create_graph, wanted, captures, captured)
    finally:
        state.bits = before


def _count(roots: list[Node]) -> dict[Node, int]:
    """How many edges lead to each reachable node from reachable nodes."""
    pending = dict.fromkeys(roots, 0)
    stack = list(pending)
    while stack:
        node = stack.pop()
        for edge in (node.e0, node.e1, *node.more) if node.more else (node.e0, node.e1):
            if edge is not None:
                if edge in pending:
                    pending[edge] += 1
                else:
                    pending[edge] = 1
                    stack.append(edge)
    return pending


def _leading_to(targets: Iterable[Node], reachable: dict[Node, int]) -> set[Node]:
    """The reachable nodes with an edge on a path to one of ``targets``: those that must run."""
    incoming: dict[Node, list[Node]] = {}
    for node in reachable:
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


def _loop(
    ready: list[Node],
    pending: dict[Node, int],
    gradients: dict[Node, Any],
    keep_graph: bool,
    create_graph: bool,
    wanted: set[Node] | None,
    captures: dict[Node, list[int]] | None,
    captured: list[Any] | None,
) -> None:
    pop = gradients.pop
    watching = state.bits & ANOMALY
    selective = captures is not None
    while ready:
        node = ready.pop()
        g = pop(node, None)
        if g is None:
            _skip(node, pending, ready)
            continue
        hooks = node.hooks
        if hooks is not None and node.outputs == 1:
            g = hooks.on_gradient(g)
        if selective:
            assert captures is not None and captured is not None and wanted is not None
            for position in captures.get(node, ()):
                captured[position] = g
            if node not in wanted:
                _skip(node, pending, ready)
                continue
        if node.kind:
            if node.kind == LEAF:
                results = r = present = None  # so that a gradient that nobody else holds is seen to be ours
                accumulate(node, g, create_graph)
            else:
                _into_port(node, g, gradients, pending, ready)
            continue
        results = node.backward(g) if hooks is None and not watching else _run_watched(node, g)
        if not keep_graph:
            node.release()
        edge = node.e0
        if edge is not None:
            r = results[0]
            if r is not None:
                if r._payload.shape != edge.shape:
                    r = restored(r, edge, node)
                present = gradients.get(edge)
                gradients[edge] = r if present is None else present + r
            pending[edge] = left = pending[edge] - 1
            if not left:
                ready.append(edge)
        edge = node.e1
        if edge is not None:
            r = results[1]
            if r is not None:
                if r._payload.shape != edge.shape:
                    r = restored(r, edge, node)
                present = gradients.get(edge)
                gradients[edge] = r if present is None else present + r
            pending[edge] = left = pending[edge] - 1
            if not left:
                ready.append(edge)
        if node.more:
            for edge, r in zip(node.more, results[2:], strict=True):
                if edge is not None:
                    if r is not None:
                        _deliver(gradients, edge, restored(r, edge, node))
                    pending[edge] -= 1
                    if not pending[edge]:
                        ready.append(edge)


def _into_port(port: Node, g: Any, gradients: dict[Node, Any], pending: dict[Node, int], ready: list[Node]) -> None:
    """Hand the gradient of one of several outputs to its node."""
    node = port.e0
    assert node is not None
    slots = gradients.get(node)
    if slots is None:
        slots = gradients[node] = [None] * node.outputs
    index = port.index  # type: ignore[attr-defined]
    slots[index] = g if slots[index] is None else slots[index] + g
    pending[node] -= 1
    if not pending[node]:
        ready.append(node)


def _deliver(gradients: dict[Node, Any], node: Node, g: Any) -> None:
    present = gradients.get(node)
    gradients[node] = g if present is None else present + g


def _skip(node: Node, pending: dict[Node, int], ready: list[Node]) -> None:
    """A node that no gradient reached, or that leads nowhere that is wanted."""
    for edge in node.edges():
        if edge is not None:
            pending[edge] -= 1
            if not pending[edge]:
                ready.append(edge)


def restored(r: Tensor, edge: Node, node: Node) -> Tensor:
    """A gradient in the shape of the tensor that it belongs to: broadcasting undone by summing."""
    have, want = r._payload.shape, edge.shape
    if tuple(have) == tuple(want):
        return r
    lead = len(have) - len(want)
    if lead >= 0 and all(w in (1, h) for h, w in zip(have[lead:], want, strict=True)):
        dims = [*range(lead), *(i + lead for i, w in enumerate(want) if w == 1 != have[i + lead])]
        from candelabra.ops.reductions import sum as sum_

        out = sum_(r, dims, True)
        result: Tensor = out.reshape(want) if lead else out
        return result
    position = next((i for i, e in enumerate(node.edges()) if e is edge), 0)
    raise RuntimeError(
        f"Function {node.name()} returned an invalid gradient at index {position} - got {list(have)} but expected shape "
        f"compatible with {list(want)}"
    )


def _run_watched(node: Node, g: Any) -> tuple[Any, ...]:
    """With hooks on the node, or in anomaly mode."""
    gs = tuple(g) if node.outputs > 1 else (g,)
    hooks = node.hooks
    if hooks is not None and hooks.before:
        gs = hooks.run_before(gs)
        g = list(gs) if node.outputs > 1 else gs[0]
    if state.bits & ANOMALY:
        from candelabra.autograd.anomaly import run_checked

        results = run_checked(node, g)
    else:
        results = node.backward(g)
    if hooks is not None and hooks.after:
        arity = node._arity()
        visible = hooks.run_after(tuple(results)[:arity], gs)
        results = (*visible, *results[len(visible) :])
    return results


def accumulate(leaf: Node, g: Tensor, create_graph: bool) -> None:
    """Add ``g`` to the ``.grad`` of a leaf's tensor.

    A first gradient that nobody else can see is kept as it is; otherwise it is copied, so that ``x.grad.zero_()``
    changes nothing but ``x.grad``.
    """
    assert isinstance(leaf, Leaf)
    tensor = leaf.owner()
    if tensor is None:
        return
    with _accumulating:
        present = tensor.grad
        if create_graph:
            tensor._grad = g if present is None else present + g
        elif present is None:
            tensor._grad = g if _ours_alone(g) else _copy(g)
        elif present._keys & AUTOGRAD:
            tensor._grad = present + g
        else:
            present.add_(g)
    if leaf.hooks is not None:
        for hook in list(leaf.hooks.post_accumulate.values()):
            hook(tensor)


# What refers to a gradient that only the engine holds: the locals and arguments of `_loop` and `accumulate`, and the
# argument of getrefcount. Measured once, on the interpreter that runs, instead of being written down.
def _ours_alone(g: Tensor) -> bool:
    if g._keys & (VIEW | AUTOGRAD):
        return False
    return sys.getrefcount(g) <= _Alone.tensor and sys.getrefcount(g._payload) <= _Alone.payload


class _Alone:
    tensor = 0
    payload = 0


def _measure() -> None:
    class Probe:
        __slots__ = ("_payload",)
        _payload: object

    def through_accumulate(g: Any) -> None:
        through_ours_alone(g)

    def through_ours_alone(g: Any) -> None:
        _Alone.tensor = sys.getrefcount(g)
        _Alone.payload = sys.getrefcount(g._payload)

    probe = Probe()
    probe._payload = object()
    held = {0: probe}
    del probe
    g = held.pop(0, None)
    through_accumulate(g)


_measure()


def _copy(g: Tensor) -> Tensor:
    from candelabra.ops.creation import clone

    before = state.bits
    state.bits = before | NO_GRAD
    try:
        out: Tensor = clone(g)
    finally:
        state.bits = before
    return out
