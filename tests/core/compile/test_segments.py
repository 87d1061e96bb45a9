"""Functions that break the graph: their Python runs at every call, their operators in compiled segments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra._compile import segments

CALLS = 4
"""One that is traced, one that runs call by call, one that compiles the segments, and one that runs them."""

pytestmark = pytest.mark.filterwarnings("ignore:candelabra.compile:UserWarning")


def branching(x: cd.Tensor, w: cd.Tensor) -> cd.Tensor:
    """Read a value between two products."""
    y = x @ w
    return (y * 2 if y.sum() > 0 else y - 1) @ w


def written(x: cd.Tensor, w: cd.Tensor) -> cd.Tensor:
    """Write a result, a view of one, and an argument."""
    y = x * 2
    y.add_(w)
    y[0] = 5
    x.mul_(y.sum().item())
    y.t().mul_(2)
    return y + x


def shown(x: cd.Tensor, w: cd.Tensor) -> tuple[cd.Tensor, ...]:
    """Return views, also of a memory order that is known only when it is computed."""
    y = (x * w).transpose(0, 1)
    z = y.contiguous().view(-1)
    bool(z[0] > 0)
    return y, z, y.reshape(-1), y.contiguous(), z.view(-1, 3)


def drawn(x: cd.Tensor, w: cd.Tensor) -> cd.Tensor:
    """Draw random numbers by operators that wait and by others, and fill tensors with them in place."""
    y = cd.nn.functional.dropout(x, 0.5) + cd.rand(3, 3)
    y = cd.nn.functional.dropout(y, 0.25)
    y = y * (y.sum().item() + cd.empty(3, 3, dtype=y.dtype).normal_())
    y[0].detach().bernoulli_(0.5)
    return y * y.sum().item() + cd.nn.functional.dropout(w, 0.5)


def without_recording(x: cd.Tensor, w: cd.Tensor) -> cd.Tensor:
    """Record only a part of the operators."""
    with cd.no_grad():
        y = x @ w
    return y * w * y.mean().item() + y.detach()


def shared(x: cd.Tensor, w: cd.Tensor) -> cd.Tensor:
    """Write memory that NumPy shares between an operator that reads it and the end."""
    y = x.detach() * 1
    array = y.numpy()
    z = y * w
    array[:] = 0
    return z + y


def rebound(x: cd.Tensor, w: cd.Tensor) -> cd.Tensor:
    """Give a tensor other memory after an operator that reads it."""
    y = x.detach() * 1
    z = y + w
    y.data = cd.zeros(3, 3)
    return z + y


def widened(x: cd.Tensor, w: cd.Tensor) -> cd.Tensor:
    """Give a tensor the shape of a result that waits, by an operator that does so in place."""
    y = x.detach()[0] * 1
    return y.addbmm_(w.expand(2, 3, 3), w.tanh().expand(2, 3, 3))


def differentiated(x: cd.Tensor, w: cd.Tensor) -> Any:
    """Take a gradient inside, and a hook on a result."""
    y = (x @ w).tanh()
    y.register_hook(lambda g: g * 2 if g.sum() > 0 else g)
    (gradient,) = cd.autograd.grad((y * y).sum(), w, retain_graph=True)
    return gradient * y


FUNCTIONS = (branching, written, shown, drawn, without_recording, shared, rebound, widened, differentiated)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("device", ["cpu", "lantern"])
@pytest.mark.usefixtures("lantern")
def test_segments(function: Callable[..., Any], device: str, rng: Any) -> None:
    """Results, gradients, effects and random numbers are those of eager calls, bit for bit."""
    if device == "lantern" and function in (shared, rebound, widened, drawn):
        pytest.skip("the function uses the host's memory, or random numbers, for which the device has no kernel")
    compiled = cd.compile(function)
    w = cd.tensor(rng.standard_normal((3, 3)).astype("float32"), device=device, requires_grad=True)

    def results(called: Callable[..., Any]) -> list[cd.Tensor]:
        x = cd.tensor(values, device=device)
        cd.manual_seed(3)
        out = called(x, w)
        outs = list(out) if isinstance(out, tuple) else [out]
        grads = [cd.autograd.grad(o.sum(), w, retain_graph=True)[0] for o in outs]
        return [*outs, *grads, x]

    for _ in range(CALLS):
        values = rng.standard_normal((3, 3)).astype("float32")
        for a, b in zip(results(compiled), results(function), strict=True):
            assert a.stride() == b.stride() or 0 in b.stride()  # an expanded gradient, which a graph copies
            assert cd.equal(a, b)
            assert a.requires_grad == b.requires_grad
    assert compiled.segments is not None
    if function is not written:  # its factor differs at each call
        assert compiled.segments.compiled
    assert all(s.programs for s in compiled.segments.compiled.values())


def test_python_runs_at_every_call(capsys: Any) -> None:
    """A function that prints a tensor prints at every call; its segments are compiled once."""

    def f(x: cd.Tensor) -> cd.Tensor:
        y = x * 2 + 1
        print(y.mean().item())  # noqa: T201 - the subject of the test
        return y.exp()

    compiled = cd.compile(f)
    for i in range(5):
        compiled(cd.full((2,), float(i)))
    assert capsys.readouterr().out.split() == ["1.0", "3.0", "5.0", "7.0", "9.0"]
    first, second = compiled.segments.compiled.values()
    assert [node.name for node in first.programs[0].graphs[0]] == ["mul", "add", "mean"]
    assert [node.name for node in second.programs[0].graphs[0]] == ["exp"]


def test_unused_results_are_not_computed() -> None:
    """What no tensor refers to at a break is no result of the segment, and what nothing uses does not run."""

    def f(x: cd.Tensor) -> float:
        y = x.exp()
        z = (x * 2).sum()
        del y
        return z.item()

    compiled = cd.compile(f)
    assert [compiled(cd.ones(2)) for _ in range(CALLS)] == [4.0] * CALLS
    (segment,) = compiled.segments.compiled.values()
    assert [node.name for node in segment.programs[0].graphs[0]] == ["mul", "sum"]


def test_numbers_that_differ() -> None:
    """A number that differs at each call compiles nothing, and the segments before it stay compiled."""
    compiled = cd.compile(lambda x: x * (x * 2 + 1).mean().item())
    for i in range(12):
        assert compiled(cd.full((2,), float(i))).tolist() == [(2 * i + 1) * i] * 2
    assert len(compiled.segments.compiled) == 1


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of segments, and of structures that were seen, is bounded."""
    monkeypatch.setattr(segments, "SEGMENT_LIMIT", 3)
    monkeypatch.setattr(segments, "SEEN_LIMIT", 4)
    compiled = cd.compile(lambda x, n: [x * 1 if x.sum() > 0 else x, x + 1 / (n + 2)][1])
    for n in range(8):
        for _ in range(3):
            compiled(cd.ones(2), n)
    assert len(compiled.segments.compiled) == 3
    for n in range(100, 120):
        compiled(cd.ones(2), n)
    assert len(compiled.segments._seen) <= 4


def test_errors_of_operators() -> None:
    """An operator that refuses its arguments raises at its line; one that refuses values, at the break."""

    def f(x: cd.Tensor, index: cd.Tensor) -> Any:
        try:
            x @ cd.ones(7, 7)
        except RuntimeError:
            return x[index].sum().item()

    compiled = cd.compile(f)
    for _ in range(CALLS):
        assert compiled(cd.ones(3), cd.tensor([0, 2])) == 2
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        compiled(cd.ones(3), cd.tensor([0, 7]))


def test_tensors_of_a_segment_that_failed() -> None:
    """A tensor whose segment failed says so."""
    kept = []

    def f(x: cd.Tensor, index: cd.Tensor) -> float:
        kept.append(x[index])
        return kept[-1].sum().item()

    compiled = cd.compile(f)
    compiled(cd.ones(3), cd.tensor([0]))
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        compiled(cd.ones(3), cd.tensor([7]))
    with pytest.raises(RuntimeError, match=r"this tensor was not computed: .* in its block of a compiled function"):
        kept[-1].tolist()


def test_nested() -> None:
    """A compiled function inside one that runs in segments becomes part of these."""
    inner = cd.compile(lambda x: x * 3)
    compiled = cd.compile(lambda x: inner(x) + (inner(x).sum().item() > 0))
    for _ in range(CALLS):
        assert compiled(cd.ones(2)).tolist() == [4, 4]
    assert len(compiled.segments.compiled) == 2


def test_segments_that_a_graph_cannot_repeat() -> None:
    """A segment that sets what autograd records of a tensor from outside runs call by call."""

    def f(x: cd.Tensor, w: cd.Tensor) -> float:
        y = x.detach() + 0
        bool(y[0] > 0)
        y.mul_((w * 2).exp())
        return y

    compiled = cd.compile(f)
    w = cd.zeros(2, requires_grad=True)
    for _ in range(CALLS):
        y = compiled(cd.ones(2), w)
        assert cd.autograd.grad(y.sum(), w)[0].tolist() == [2, 2]
