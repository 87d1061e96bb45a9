"""Compiled functions on devices with immutable arrays, without strides, with fallbacks, and with a compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn
from candelabra.graph import Graph, Node, fuse, runner, trace
from candelabra.library import add_contribution, open_device, own_kernels

DEVICES = ["lantern", "ember"]
pytestmark = [
    pytest.mark.usefixtures("lantern"), pytest.mark.filterwarnings("ignore::candelabra.errors.FallbackWarning")
]  # fmt: skip


def functions(device: str) -> dict[str, Callable[[cd.Tensor], Any]]:
    """Functions of a float32 tensor of shape (2, 3)."""
    table = cd.arange(3.0, device=device)

    def writes(x: cd.Tensor) -> Any:
        row = x[0]
        x.add_(1)
        row.mul_(2)
        return row + 1

    def captured(x: cd.Tensor) -> Any:
        table.add_(x[1])
        return table * 2

    return {
        "chain": lambda x: ((x + 1).exp() * x.t().t()).sum(0),
        "fallback": lambda x: x.sinh().cumsum(0),
        "views": lambda x: (x.t(), x[0], x.reshape(-1)),
        "writes": writes,
        "captured": captured,
        "random": lambda x: x + cd.rand(3, device=device) + nn.functional.dropout(x, 0.5),
        "gradient": lambda x: (
            cd.autograd.grad((x.detach().requires_grad_() ** 2).sum(), x) if x.requires_grad else x.sigmoid()
        ),
    }


@pytest.mark.parametrize("name", list(functions("cpu")))
@pytest.mark.parametrize("device", DEVICES)
def test_results(device: str, name: str, rng: Any) -> None:
    """Results, arguments and captured tensors are those of the function itself."""
    eager, function = functions(device)[name], functions(device)[name]
    compiled = cd.compile(function, fullgraph=True)
    for _ in range(3):
        x = cd.tensor(rng.random((2, 3)).astype("float32"), device=device)
        y, state = x.clone(), cd.default_generator.get_state()
        cd.manual_seed(4)
        expected = eager(x)
        cd.manual_seed(4)
        found = compiled(y)
        cd.default_generator.set_state(state)
        assert cd.utils._pytree.tree_map(lambda t: t.tolist(), found) == cd.utils._pytree.tree_map(
            lambda t: t.tolist(), expected
        )
        assert x.tolist() == y.tolist()
        assert x._version == y._version
    assert len(compiled.programs) == 1


@pytest.mark.parametrize("device", DEVICES)
def test_backward_passes_of_other_graphs(device: str) -> None:
    """A backward pass of a graph from before the call gives the gradients of an eager pass, and accumulates."""

    def loss_of(w: cd.Tensor, k: float) -> cd.Tensor:
        y = w.exp() * w.t().t()
        return (y[0] * y[1]).sum() * k

    compiled = cd.compile(lambda loss: loss.backward(), fullgraph=True)
    v, w = (cd.full((2, 3), 0.5, device=device, requires_grad=True) for _ in range(2))
    for _ in range(4):
        loss_of(v, 2.0).backward()
        compiled(loss_of(w, 2.0))
        assert v.grad is not None
        assert w.grad is not None
        assert v.grad.tolist() == w.grad.tolist()
    assert len(compiled.programs) == 2


@pytest.mark.parametrize("device", DEVICES)
def test_writes_into_views_from_outside(device: str) -> None:
    """A write into an argument that is a view reaches its base. Immutable arrays break the graph, as a warning says."""

    def added(x: cd.Tensor) -> cd.Tensor:
        x[1:].add_(1)
        return x * 2

    compiled = cd.compile(added)
    for number in range(3):
        base = cd.full((3, 2), float(number), device=device)
        if device == "ember" and number == 0:
            with pytest.warns(
                UserWarning, match="a view from outside is written on a device whose arrays are immutable"
            ):
                found = compiled(base.t())
        else:
            found = compiled(base.t())
        assert base.tolist() == [[number, number + 1.0]] * 3
        assert found.tolist() == [[number * 2.0] * 3, [number * 2.0 + 2] * 3]
    assert len(compiled.programs) == (device != "ember")


@pytest.mark.parametrize("device", DEVICES)
def test_training(device: str) -> None:
    """A training step on the device gives the bits of eager training."""

    def train(compile: bool) -> Any:
        cd.manual_seed(5)
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2)).to(device)
        opt = cd.optim.Adam(model.parameters(), lr=0.05)

        def step(x: cd.Tensor, y: cd.Tensor) -> cd.Tensor:
            opt.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            opt.step()
            return loss

        stepped = cd.compile(step, fullgraph=True) if compile else step
        losses = [stepped(cd.randn(6, 3, device=device), cd.randn(6, 2, device=device)).item() for _ in range(5)]
        return losses, {name: t.tolist() for name, t in model.state_dict().items()}

    assert train(True) == train(False)


def pointwise(node: Node) -> bool:
    """Whether a node computes element by element."""
    return not node.is_view and node.form == "function" and getattr(getattr(node.op, "rule", None), "pointwise", False)


class Compiler:
    """A contribution without kernels that compiles graphs: it fuses pointwise operators and counts the groups."""

    def __init__(self) -> None:
        self.groups: list[str] = []

    @cd.backend.hookimpl
    def candelabra_kernels(self) -> dict[str, Any]:
        return {"cosh": lambda x: NotImplemented}

    @cd.backend.hookimpl
    def candelabra_compile(self, device_type: str, graph: Graph) -> Any:
        fused = fuse(graph, pointwise)
        self.groups += [node.name for node in fused if isinstance(node.op, Graph)]
        return runner(fused) if self.groups else None


def test_contributed_compiler(rng: Any) -> None:
    """A distribution that contributes kernels to a device may compile its graphs."""
    contribution = Compiler()
    remove = add_contribution("lantern", contribution)
    try:
        compiled = cd.compile(lambda x: ((x + 1) * x).sum(), fullgraph=True)
        x = cd.tensor(rng.random(4).astype("float32"), device="lantern")
        assert [compiled(x).item() for _ in range(3)] == [compiled.function(x).item()] * 3
        assert contribution.groups == ["add+mul"]
        with own_kernels():
            assert [compiled(x).item() for _ in range(2)] == [compiled.function(x).item()] * 2
        assert contribution.groups == ["add+mul"]
    finally:
        remove()


def test_compiler_of_a_backend(rng: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """``Backend.compile`` gets the graph of a device, and may return a function of payloads."""
    seen: list[Graph] = []

    def compile(graph: Graph) -> Any:
        seen.append(graph)
        return lambda x: (x,)

    monkeypatch.setattr(open_device("lantern").backend, "compile", compile, raising=False)
    compiled = cd.compile(lambda x: x * 2, fullgraph=True)
    x = cd.ones(2, device="lantern")
    assert [compiled(x).tolist() for _ in range(2)] == [[2, 2], [1, 1]]
    assert [node.name for node in seen[0]] == ["mul"]


def test_trace_on_meta() -> None:
    """A trace of tensors without data computes nothing and has the same nodes."""
    x, w = cd.ones(2, 3, device="meta"), cd.ones(3, 4, device="meta")
    graph = trace(lambda x, w: (x @ w).relu().sum(), x, w)
    assert [node.name for node in graph] == ["matmul", "relu", "sum"]
    assert [str(v.spec) for v in graph.inputs] == ["float32[2, 3]", "float32[3, 4]"]


def test_compiler_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a device's compiled graph raises and the function does not, its result is returned, with a warning."""

    def compile(graph: Graph) -> Any:
        def run(*payloads: Any) -> Any:
            raise ZeroDivisionError("in the kernel")

        return run

    monkeypatch.setattr(open_device("lantern").backend, "compile", compile, raising=False)
    compiled = cd.compile(lambda x: x * 2, fullgraph=True)
    x = cd.ones(2, device="lantern")
    compiled(x)
    with pytest.warns(RuntimeWarning, match="an error of the device's compiler: ZeroDivisionError: in the kernel"):
        assert compiled(x).tolist() == [2, 2]
