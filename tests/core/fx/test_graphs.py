"""Graphs of calls: building, changing, printing and running them."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra import fx, nn


def small() -> Any:
    """Return the GraphModule of a small function."""
    return fx.symbolic_trace(lambda x: cd.relu(x + 1) * cd.relu(x))


def test_a_graph_is_built_node_by_node() -> None:
    """Nodes get names of their own, and the module runs them."""
    graph = fx.Graph()
    x = graph.placeholder("x")
    first = graph.call_function(cd.add, (x, 1))
    second = graph.call_function(cd.add, (first,), {"other": 2})
    read = graph.get_attr("w")
    third = graph.call_method("mul", (second, read))
    graph.output({"out": [graph.call_module("layer", (third,)), slice(None, 2)]})
    module = fx.GraphModule({"w": cd.full((2,), 3.0), "layer": nn.Identity()}, graph, "Built")
    assert [node.name for node in graph.nodes] == ["x", "add", "add_1", "w", "mul", "layer", "output"]
    found = module(cd.ones(2))
    assert found["out"][0].tolist() == [12, 12]
    assert found["out"][1] == slice(None, 2)
    assert type(module).__name__ == "Built"
    assert x.users == {first: None}
    assert third.all_input_nodes == [second, read]
    assert first.next is second
    assert second.prev is first
    assert graph.output_node() is graph.nodes[-1]
    with pytest.raises(IndexError, match="x is the first node of its graph"):
        _ = x.prev
    with pytest.raises(IndexError, match="list index out of range"):
        _ = graph.nodes[-1].next
    for root in ({}, nn.Module()):
        with pytest.raises(RuntimeError, match="GraphModule: a node of the graph names 'w', which the"):
            fx.GraphModule(root, graph)


def test_nodes_are_changed_and_removed() -> None:
    """Arguments, targets and places change; what is in use is not removed; dead code is."""
    module, x = small(), cd.randn(4)
    graph = module.graph
    relu = graph.find_nodes(op="call_function", target=cd.relu)[1]
    with graph.inserting_after(relu):
        tanh = graph.call_function(cd.tanh, relu.args)
    assert relu.replace_all_uses_with(tanh) == [graph.nodes[-2]]
    assert graph.eliminate_dead_code()
    assert relu not in graph.nodes
    assert not graph.eliminate_dead_code()
    with graph.inserting_before():
        assert graph.create_node("call_function", cd.ones, (1,)) is graph.nodes[0]
    module.recompile()
    cd.testing.assert_close(module(x), (x + 1).relu() * x.tanh())
    last = graph.nodes[-2]
    last.update_arg(0, tanh)
    last.args = (*last.args[:1], 3)
    module.recompile()
    cd.testing.assert_close(module(x), x.tanh() * 3)
    last.kwargs = {"extra": 1}
    last.update_kwarg("more", tanh)
    assert tanh in last.all_input_nodes
    assert last.kwargs == {"extra": 1, "more": tanh}
    with pytest.raises(RuntimeError, match=r"fx\.Graph\.erase_node\(tanh\): mul still use it; call replace_all_uses"):
        graph.erase_node(tanh)
    graph.nodes[-1].prepend(tanh)
    with pytest.raises(RuntimeError, match=r"fx\.Graph: mul uses tanh, which does not come before it"):
        graph.lint()
    last.prepend(tanh)
    tanh.name = last.name
    with pytest.raises(RuntimeError, match=r"fx\.Graph: two nodes have the name mul"):
        graph.lint()


def test_calls_of_writes_stay_without_users() -> None:
    """A node whose function writes, or that has ``out=``, is no dead code."""
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_method("add_", (x, 1))
    graph.call_method("__add__", (x, 1))
    graph.call_function(cd.sin, (x,), {"out": x})
    graph.output(x)
    graph.eliminate_dead_code()
    assert [node.name for node in graph.nodes] == ["x", "add", "sin", "output"]
    module = fx.GraphModule({}, graph)
    assert cd.equal(module(cd.zeros(2)), cd.ones(2).sin())


def test_graphs_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """As a table, as lines, and as code."""
    module = small()
    module.graph.print_tabular()
    table = capsys.readouterr().out
    assert table.splitlines()[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert "call_function  relu    candelabra.relu  (add,)" in table
    assert "%relu : [num_users=1] = call_function[target=candelabra.relu](args = (%add,), kwargs = {})" in str(
        module.graph
    )
    assert "return %mul" in str(module.graph)
    assert repr(module.graph.nodes[0]) == "x"
    assert "class <lambda>(candelabra.nn.Module):\n    def forward(self, x):" in module.print_readable()
    assert "mul = relu * relu_1" in capsys.readouterr().out


def test_wrong_graphs_are_refused() -> None:
    """Other ops, nodes of other graphs, and graphs without a result."""
    graph = fx.Graph()
    with pytest.raises(ValueError, match=r"fx\.Node: expected an op among placeholder, get_attr.*got 'jump'"):
        graph.create_node("jump", "x")
    with pytest.raises(RuntimeError, match=r"fx\.Graph: the argument x of sin belongs to another graph"):
        graph.call_function(cd.sin, (fx.Graph().placeholder("x"),))
    with pytest.raises(RuntimeError, match=r"fx\.Graph: the graph has no output; call output\(\)"):
        graph.output_node()


def test_patterns_are_replaced() -> None:
    """Each place of a pattern whose inner values nothing else uses is replaced."""
    module = fx.symbolic_trace(lambda x, y: cd.relu(x + y) + cd.relu(x + y) * (x * 2).relu())
    found = fx.replace_pattern(module, lambda a, b: cd.relu(a + b), lambda a, b: cd.tanh(a - b))
    x, y = cd.randn(3), cd.randn(3)
    assert len(found) == 2
    assert [match.anchor.name for match in found] == ["relu", "relu_1"]
    cd.testing.assert_close(module(x, y), (x - y).tanh() + (x - y).tanh() * (x * 2).relu())
    assert fx.replace_pattern(module, lambda a: cd.sin(a), lambda a: a) == []
    chain = fx.symbolic_trace(lambda x: cd.relu(cd.relu(x)))
    assert len(fx.replace_pattern(chain, lambda a: cd.relu(a), lambda a: cd.exp(a) + 1)) == 2
    cd.testing.assert_close(chain(x), (x.exp() + 1).exp() + 1)
    shared = fx.symbolic_trace(lambda x: cd.relu(x + 1) + (x + 1))
    assert len(fx.replace_pattern(shared, lambda x: cd.relu(x + 1), lambda x: x)) == 1
    used = fx.symbolic_trace(lambda x: (lambda y: cd.relu(y) + y)(x + 1))
    assert fx.replace_pattern(used, lambda x: cd.relu(x + 1), lambda x: x) == []  # y is used elsewhere
    with pytest.raises(ValueError, match="the pattern must return one tensor"):
        fx.replace_pattern(module, lambda a: (a + 1, a + 2), lambda a: a)
    with pytest.raises(ValueError, match="the pattern has 1 arguments and the replacement 2"):
        fx.replace_pattern(module, lambda a: cd.tanh(a), lambda a, b: a)


def test_graphs_run_node_by_node() -> None:
    """An interpreter gives the module's results; a subclass sees each call; a transformer builds another module."""
    module, x = small(), cd.randn(3)
    calls: list[str] = []

    class Logging(fx.Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            calls.append(target.__name__)
            return super().call_function(target, args, kwargs)

    assert cd.equal(Logging(module).run(x), module(x))
    assert calls == ["add", "relu", "relu", "mul"]

    class Negating(fx.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_function(cd.neg if target is cd.relu else target, args, kwargs)

    cd.testing.assert_close(Negating(module).transform()(x), (x + 1) * x)
    net = fx.symbolic_trace(nn.Sequential(nn.Linear(3, 2), nn.Tanh()))
    cd.testing.assert_close(fx.Interpreter(net).run(x), net(x))
    cd.testing.assert_close(fx.Transformer(net).transform()(x), net(x))
    with pytest.raises(RuntimeError, match=r"fx\.Interpreter\.run\(\): the argument 'x' is missing and has no default"):
        fx.Interpreter(module).run()
