"""Graphs that are built by hand: order, printing, fusion, running."""

from __future__ import annotations

from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.graph import FUNCTION, INPLACE, Graph, Node, Spec, Value, decomposed, fuse, runner, simplified
from candelabra.library import Operator, like_input, open_device, record


def spec(*shape: int) -> Spec:
    """The spec of a contiguous float32 tensor on the reference device."""
    t = cd.empty(shape, device="cpu")
    return Spec(shape, t.stride(), 0, cd.float32, open_device("cpu"))


def call(name: str, *args: Any, form: str = FUNCTION) -> tuple[Node, Value]:
    """Return a node and its result, of the spec of its first argument."""
    result = Value(args[0].spec, args[0].memory if form == INPLACE else None)
    return Node(record(name), args, [result], form), result


def chain() -> Graph:
    """``exp(a) * sin(exp(a)) + a``."""
    a = Value(spec(3))
    first, e = call("exp", a)
    second, s = call("sin", e)
    third, m = call("mul", e, s)
    fourth, out = call("add", m, a)
    return Graph([a], [first, second, third, fourth], [out])


def pointwise(node: Node) -> bool:
    """Whether a node computes element by element."""
    return getattr(getattr(node.op, "rule", None), "pointwise", False)


def test_print() -> None:
    """A graph prints one line per node."""
    assert str(chain()).splitlines() == [
        "graph(a0: float32[3]):", "    v0: float32[3] = exp(a0)", "    v1: float32[3] = sin(v0)",
        "    v2: float32[3] = mul(v0, v1)", "    v3: float32[3] = add(v2, a0)", "    return v3",
    ]  # fmt: skip


def test_run() -> None:
    """A runner returns the payloads of the outputs."""
    x = cd.tensor([0.5, 1.0, -2.0], device="cpu")
    (out,) = runner(chain())(x._payload)
    expected = x.exp() * x.exp().sin() + x
    assert (out == expected._payload).all()


def test_fused_chain() -> None:
    """Connected admitted nodes become one node, whose graph computes the same."""
    graph = fuse(chain(), pointwise)
    (node,) = graph.nodes
    assert node.name == "exp+sin+mul+add"
    x = cd.tensor([0.5, 1.0, -2.0], device="cpu")
    assert (runner(graph)(x._payload)[0] == runner(chain())(x._payload)[0]).all()


def test_no_path_back_into_a_group() -> None:
    """Nodes around one that the device does not take form two groups if one group would need its own result."""
    a = Value(spec(3))
    first, e = call("exp", a)
    outside, c = call("cumsum", e)
    second, m = call("mul", e, c)
    third, out = call("neg", m)
    graph = fuse(Graph([a], [first, outside, second, third], [out]), pointwise)
    assert [node.name for node in graph] == ["exp", "cumsum", "mul+neg"]


def test_groups_that_overlap_in_the_trace() -> None:
    """A group that spans another group's nodes does not join it by a path over both."""
    a, b = Value(spec(3)), Value(spec(3))
    g1, p = call("exp", b)
    x, q = call("cumsum", p)
    inner, r = call("sin", a)
    g2, s = call("add", p, r)
    last, out = call("mul", r, q)
    graph = fuse(Graph([a, b], [g1, x, inner, g2, last], [out, s]), pointwise)
    names = [node.name for node in graph]
    assert len(names) == 3
    seen = set(graph.inputs)
    for node in graph:
        assert seen.issuperset(node.operands)
        seen.update(node.results)


def test_order_around_writes() -> None:
    """A read before a write in the trace runs before it, and one after it runs after it."""
    a = Value(spec(3))
    copy, c = call("clone", a)
    before, early = call("exp", c)
    write, w = call("add", c, a, form=INPLACE)
    after, late = call("sin", w)
    graph = Graph([a], [copy, before, write, after], [early, late])
    order = graph.predecessors()
    assert (order[write], order[after], order[before]) == ({copy, before}, {write}, {copy})
    assert (write.name, graph.written()) == ("add_", {c.memory})


def signalled(input: Tensor) -> Tensor:
    """Return a copy. A call is to be seen from outside of the process."""
    return input.clone()


signal: Operator[..., Tensor] = Operator(signalled, like_input, name="signal", ordered=True)


def sent(value: Value) -> tuple[Node, Value]:
    """Return a node of the ordered operator, and its result."""
    result = Value(value.spec)
    return Node(signal, [value], [result]), result


def test_ordered_nodes_wait_for_each_other() -> None:
    """Also where a group that runs early needs the result of the later one, and where a group contains one."""
    a, b = Value(spec(3)), Value(spec(3))
    start, e = call("exp", a)
    first, one = sent(b)
    second, two = sent(b)
    last, out = call("mul", e, two)
    graph = Graph([a, b], [start, first, second, last], [out])
    assert graph.predecessors()[second] == {first}
    fused = fuse(graph, pointwise)
    assert [node.name for node in fused] == ["signal", "signal", "exp+mul"]
    assert fused.nodes[:2] == (first, second)
    group = Node(Graph([b], [first], [one]), [b], [one])
    assert group.is_ordered
    assert Graph([a, b], [group, start, second, last], [out]).predecessors()[second] == {group}


def test_passes_leave_ordered_nodes() -> None:
    """Those whose results nothing uses, equal ones, calls on constants, and composites."""
    a = Value(spec(3))
    filled, ones = call("full", a)
    nodes, results = zip(*[sent(a), sent(a), sent(ones)], strict=True)
    constant = Node(filled.op, [(3,), 1, cd.float32, 0], [ones], kernel=lambda *_: cd.ones(3, device="cpu")._payload)
    graph = simplified(Graph([a], [constant, *nodes], [results[1]]))
    assert [node for node in graph if node.op is signal] == [*nodes[:2], graph.nodes[-1]]
    assert [node.name for node in graph] == ["signal"] * 3
    assert decomposed(graph, lambda node: True).nodes == graph.nodes
