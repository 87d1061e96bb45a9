"""Traces without values: what functions and modules become, and what they cannot."""

from __future__ import annotations

import copy
import operator
from typing import Any

import candelabra as cd
import pytest
from candelabra import fx, nn


def kinds(module: Any) -> list[str]:
    """Return the ops of the nodes."""
    return [node.op for node in module.graph.nodes]


def test_a_function_is_traced_by_its_calls() -> None:
    """Functions, methods, operators of Python, indices and attributes are nodes, and the module computes the same."""

    def f(x: cd.Tensor, y: cd.Tensor, scale: float = 2.0) -> cd.Tensor:
        return (cd.sin(x) * scale - y.T @ x[0] + x.sum(dim=1, keepdim=True) / 3 + x.shape[0] + 2**x)[:, 1:]

    module, x, y = fx.symbolic_trace(f), cd.randn(3, 3), cd.randn(3, 3)
    assert cd.equal(module(x, y), f(x, y))
    assert cd.equal(module(x, y, scale=1.0), f(x, y, 1.0))
    targets = [node.target for node in module.graph.nodes]
    assert cd.sin in targets
    assert operator.getitem in targets
    assert "sum" in targets
    assert getattr in targets
    module.graph.lint()
    assert "cos" not in module.code
    assert " @ " in module.code
    assert "def forward(self, x, y, scale = 2.0):" in module.code


class Net(nn.Module):
    """A module with a container, a parameter and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5))
        self.weight = nn.Parameter(cd.randn(4))
        self.register_buffer("shift", cd.randn(4))
        self.constant = [cd.full((4,), 2.0)]

    def forward(self, x: cd.Tensor) -> dict[str, Any]:
        y = nn.functional.relu(self.layers(x))
        return {"y": y * self.weight + self.shift, "z": (y * self.constant[0], 3)}


def test_a_module_keeps_its_layers_and_parameters() -> None:
    """Layers are calls of modules, parameters are shared, and the mode of training is that of the module."""
    net = Net().eval()
    module, x = fx.symbolic_trace(net), cd.randn(5, 3)
    found, expected = module(x), net(x)
    assert cd.equal(found["y"], expected["y"])
    assert cd.equal(found["z"][0], expected["z"][0])
    assert found["z"][1] == 3
    assert [n.target for n in module.graph.nodes if n.op == "call_module"] == ["layers.0", "layers.1", "layers.2"]
    assert {n.target for n in module.graph.nodes if n.op == "get_attr"} == {"weight", "shift", "_tensor_constant0"}
    assert module.weight is net.weight
    assert not module.training
    assert {name for name, _ in module.named_parameters()} == {"weight", "layers.0.weight", "layers.0.bias"}
    found["y"].sum().backward()
    assert net.weight.grad is not None
    compiled = cd.compile(module, fullgraph=True)
    for _ in range(2):
        cd.testing.assert_close(compiled(x)["y"], expected["y"])
    other = copy.deepcopy(module)
    assert other.weight is not module.weight
    assert cd.equal(other(x)["y"], expected["y"])
    assert other.graph is not module.graph
    assert other.code == module.code


def test_a_tracer_decides_what_stays_whole() -> None:
    """A subclass may trace into layers, or keep modules of the program."""

    class Everything(fx.Tracer):
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return False

    graph = Everything().trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert [n.op for n in graph.nodes].count("call_module") == 0
    assert len(graph.find_nodes(op="get_attr")) == 2


def test_what_depends_on_values_is_an_error() -> None:
    """Branches, loops, lengths and arguments without names cannot be traced; concrete arguments can."""

    def branch(x: cd.Tensor, y: cd.Tensor) -> cd.Tensor:
        return -y if x.sum() < 0 else y

    with pytest.raises(fx.TraceError, match="cannot be used as inputs to control flow: the truth of lt is not known"):
        fx.symbolic_trace(branch)
    x, y = cd.ones(2), cd.randn(2)
    module = fx.symbolic_trace(branch, concrete_args={"x": x})
    assert cd.equal(module(x, y), y)
    assert cd.equal(module(-x, y), y)
    with pytest.raises(fx.TraceError, match="Proxy object cannot be iterated: the length of x is not known"):
        fx.symbolic_trace(lambda x: [*x])
    with pytest.raises(RuntimeError, match="'len' is not supported in symbolic tracing: the length of x"):
        fx.symbolic_trace(lambda x: len(x))
    with pytest.raises(fx.TraceError, match=r"\*xs has no fixed number of arguments"):
        fx.symbolic_trace(lambda *xs: xs[0])
    with pytest.raises(AttributeError, match="a traced value has no attribute '_keys'"):
        fx.symbolic_trace(lambda x: x._keys)
    alone = nn.Linear(2, 2)

    class Outer(nn.Module):
        def forward(self, x: cd.Tensor) -> Any:
            return alone(x)

    with pytest.raises(NameError, match="the module Linear that is called is no submodule of the traced one"):
        fx.symbolic_trace(Outer())
    assert not isinstance(nn.Module.__call__, fx.Proxy)
    assert nn.Linear(2, 2)(cd.ones(2)).shape == (2,)


def helper(x: Any, n: int) -> Any:
    """Depend on a value."""
    return x * n if x.sum() > 0 else x


def uses_helper(x: Any) -> Any:
    """Call a function that is kept whole, and one of Python."""
    return helper(x, 3) + len(x)


def test_wrapped_functions_stay_whole() -> None:
    """``wrap`` makes calls of a function nodes, and leaves it as it is after the trace."""
    assert fx.wrap("len") == "len"
    assert fx.wrap(helper) is helper
    module = fx.symbolic_trace(uses_helper)
    before = helper
    assert {helper, len} <= {node.target for node in module.graph.nodes if node.op == "call_function"}
    assert before is helper
    assert "len" not in globals()
    assert module(cd.ones(2)).tolist() == [5, 5]
    assert module(-cd.ones(2)).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match=r"fx\.wrap\(\): expected a function or its name, got int"):
        fx.wrap(3)


def test_names_of_the_module() -> None:
    """The module has the names of its ``__all__``, and no others."""
    assert set(dir(fx)) >= {"Graph", "GraphModule", "Node", "Proxy", "symbolic_trace"}
    assert fx.GraphModule is nn.modules.graph_module.GraphModule
    with pytest.raises(AttributeError, match=r"module 'candelabra\.fx' has no attribute 'nothing'"):
        _ = fx.nothing
