"""The first call of a compiled function releases saved values while its backward pass is traced, and has them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import candelabra.nn.functional as F
import pytest
from candelabra import nn
from candelabra._compile.recording import Recorder
from candelabra._compile.rematerialization import released_values, repeatable
from candelabra._graph.tracing import tracing

from benchmarks.memory import LIMIT, Peaks, compared, peaks, setup_of

SIZE = 1 << 14


def chain(x: cd.Tensor) -> cd.Tensor:
    """Compute many tensors that the derivative needs."""
    for _ in range(10):
        x = (x * 1.5).sin()
    return x * 2


def in_place(x: cd.Tensor) -> cd.Tensor:
    """Write tensors that the derivative needs, before it has saved them."""
    for _ in range(5):
        x = (x * 1.5).sin().add_(0.5).relu_()
    return x


def of_views(x: cd.Tensor) -> cd.Tensor:
    """Save parts of tensors, transposed ones and one that two operators save."""
    for _ in range(3):
        a, b = x.reshape(2, -1).exp().chunk(2)
        x = (a.t() * b.t()).t().flatten().sin() * a.flatten()
        x = cd.cat([x, x.cos()])
    return x


def with_saved_result(x: cd.Tensor) -> cd.Tensor:
    """Return a tensor that the derivative needs itself."""
    return chain(x).softmax(0)


def random(x: cd.Tensor) -> cd.Tensor:
    """Draw random numbers."""
    return F.dropout(chain(x), 0.5).tanh() * cd.rand_like(x)


FUNCTIONS = [chain, in_place, of_views, with_saved_result, random]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_the_first_call_has_the_peak_and_the_gradient_of_the_eager_one(
    counting: cd.device, function: Callable[[cd.Tensor], cd.Tensor]
) -> None:
    """Its backward pass runs in the first call twice, traced and by the program, and its forward pass, too."""
    x = cd.linspace(-1, 1, SIZE, device=counting, requires_grad=True)
    found, gradients = [], []
    for each in (function, cd.compile(function, fullgraph=True)):
        cd.manual_seed(3)

        def step(each: Callable[[cd.Tensor], cd.Tensor] = each) -> None:
            x.grad = None
            each(x).square().sum().backward()

        found.append(peaks(step, counting, 1))
        assert x.grad is not None
        gradients.append(x.grad.tolist())
    assert gradients[0] == gradients[1]
    assert max(Peaks(*found).ratios) <= LIMIT


@pytest.mark.parametrize("name", ["MLP", "CNN"])
def test_the_first_call_of_a_compiled_module_needs_no_more_memory_than_an_eager_one(name: str) -> None:
    """So it is for networks on the reference device."""
    assert max(compared(setup_of(name), cd.device("cpu"), 3, "model").ratios) <= LIMIT


def test_the_first_call_has_the_effects_of_one_call() -> None:
    """Buffers and generators advance once, although the operators run again."""
    found = []
    for compiled in (False, True):
        cd.manual_seed(5)
        layers = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Tanh())
        model = cd.compile(layers, fullgraph=True) if compiled else layers
        out = model(cd.linspace(-1, 1, 32).reshape(8, 4))
        out.sum().backward()
        state = [value.tolist() for value in layers.state_dict().values()]
        gradients = [parameter.grad.tolist() for parameter in layers.parameters()]
        found.append((out.tolist(), state, gradients, cd.rand(2).tolist()))
    assert found[0] == found[1]


def test_the_result_of_the_first_call_has_an_eager_graph() -> None:
    """It can be differentiated twice, and more than once."""
    x = cd.linspace(-1, 1, 5, requires_grad=True)
    out = cd.compile(chain, fullgraph=True)(x).sum()
    (first,) = cd.autograd.grad(out, x, create_graph=True)
    (second,) = cd.autograd.grad(first.sum(), x, retain_graph=True)
    (again,) = cd.autograd.grad(out, x)
    eager = chain(x).sum()
    (expected,) = cd.autograd.grad(eager, x, create_graph=True)
    assert first.tolist() == again.tolist() == expected.tolist()
    assert second.tolist() == cd.autograd.grad(expected.sum(), x)[0].tolist()


def traced(function: Callable[[], cd.Tensor]) -> tuple[Recorder, cd.Tensor]:
    """Trace a function as the first call of a compiled one does."""
    recorder = Recorder(True, [])
    with tracing(recorder):
        out = function()
    return recorder, out


def test_what_depends_on_memory_that_the_call_writes_stays() -> None:
    """Computed again, it would have another value. What the call writes apart from that does not matter."""
    cache, count = cd.ones(3), cd.zeros(3)
    x = cd.linspace(1, 2, 3, requires_grad=True)

    def function() -> cd.Tensor:
        count.add_(1)
        before = (cache + x).exp()
        cache.mul_(2)
        return before.sin()

    recorder, out = traced(function)
    assert repeatable(recorder) == []
    node: Any = out._node
    saved = node.s_input
    with tracing(recorder), released_values(recorder, [out]) as values:
        values.release(node)
        assert node.s_input is saved
    compiled = cd.compile(lambda: function(), fullgraph=True)
    cache.fill_(1)
    compiled().sum().backward()
    assert x.grad is not None
    exponential = (x + 1).detach().exp()
    assert cd.allclose(x.grad, exponential.cos() * exponential)


def test_a_value_that_something_refers_to_is_not_computed_again() -> None:
    """The slot has the same tensor after the trace as before."""
    x, kept = cd.linspace(1, 2, 3, requires_grad=True), []

    def function() -> cd.Tensor:
        kept.append(x.exp())
        return kept[0].sin().sin()

    recorder, out = traced(function)
    outer: Any = out._node
    inner = outer.e0
    with tracing(recorder), released_values(recorder, [out]) as values:
        values.release_outputs()
        assert out._payload is None
        for node in (outer, inner):
            values.release(node)
            assert node.s_input is None
    assert inner.s_input is kept[0]
    assert outer.s_input.tolist() == kept[0].sin().tolist()
    assert out.tolist() == kept[0].sin().sin().tolist()


@pytest.mark.parametrize("share", [lambda out: out.detach(), lambda out: out[1:], lambda out: out.sin()])
def test_a_result_that_shares_its_memory_stays(share: Callable[[cd.Tensor], cd.Tensor]) -> None:
    """A write to the one shows in the other, as after an eager call; so does one that another result reads."""
    x = cd.linspace(1, 2, 3, requires_grad=True)
    recorder, (out, other) = traced(lambda: (out := x * 2, share(out)))  # type: ignore[arg-type,return-value]
    payload = out._payload
    outputs = [t for t in (out, other) if t.requires_grad]
    with tracing(recorder), released_values(recorder, outputs) as values:
        values.release_outputs()
        assert out._payload is payload


def test_custom_functions_and_packing_hooks_keep_what_they_save() -> None:
    """Their values are their own business; the gradients are those of eager calls."""

    class Square(cd.autograd.Function):
        """The square, which saves its argument."""

        @staticmethod
        def forward(ctx: object, x: cd.Tensor) -> cd.Tensor:
            ctx.save_for_backward(x)  # type: ignore[attr-defined]
            return x * x

        @staticmethod
        def backward(ctx: object, g: cd.Tensor) -> cd.Tensor:
            (x,) = ctx.saved_tensors  # type: ignore[attr-defined]
            return 2 * x * g

    def custom(x: cd.Tensor) -> cd.Tensor:
        out: cd.Tensor = Square.apply(x.exp())
        return out

    def packed(x: cd.Tensor) -> cd.Tensor:
        with cd.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return x.exp().sin()

    for function in (custom, packed):
        x = cd.linspace(0, 1, 4, requires_grad=True)
        (found,) = cd.autograd.grad(cd.compile(function)(x).sum(), x)
        (expected,) = cd.autograd.grad(function(x).sum(), x)
        assert found.tolist() == expected.tolist()
