"""Compiled functions in a graph of autograd, and backward passes inside of them."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra.errors import GraphFreed, VersionMismatch


def leaf(rng: Any, *shape: int) -> cd.Tensor:
    """A leaf that requires grad."""
    return cd.tensor(rng.random(shape), requires_grad=True)


def test_one_node(rng: Any) -> None:
    """The results of a compiled call have one node, and the gradients have the eager bits."""
    w = leaf(rng, 3, 2)

    def f(x: cd.Tensor) -> Any:
        y = (x @ w).tanh()
        return y.sum(), (y * x.sum(1, keepdim=True)).relu(), x.argmax()

    compiled = cd.compile(f, fullgraph=True)
    for _ in range(3):
        x = leaf(rng, 4, 3)
        total, rows, index = f(x)
        expected = cd.autograd.grad(total + rows.sum(), [x, w])
        total, rows, index = compiled(x)
        assert not index.requires_grad
        found = cd.autograd.grad(total + rows.sum(), [x, w])
        assert all(cd.equal(a, b) for a, b in zip(found, expected))
    assert total.grad_fn is rows.grad_fn
    assert total.grad_fn.name() == "CompiledFunctionBackward"


def test_accumulates_into_leaves(rng: Any) -> None:
    """``backward()`` adds gradients to the leaves, and a first gradient is not shared."""
    a, b = leaf(rng, 3), leaf(rng, 3)
    compiled = cd.compile(lambda x: (a + b) * x, fullgraph=True)
    for n in range(1, 4):
        compiled(cd.ones(3, dtype=cd.float64)).sum().backward()
        assert a.grad is not None
        assert b.grad is not None
        assert a.grad.tolist() == b.grad.tolist() == [n] * 3
    a.grad.zero_()
    assert b.grad.tolist() == [3, 3, 3]


def test_unused_outputs_and_inputs(rng: Any) -> None:
    """An output without a gradient counts as zeros, and an input that has no influence gets none."""
    a, b = leaf(rng, 2), leaf(rng, 2)
    compiled = cd.compile(lambda x, y: (x * 2, x * x, y.detach() * 1), fullgraph=True)
    for _ in range(2):
        double = compiled(a, b)[0]
        assert cd.autograd.grad(double.sum(), [a, b], allow_unused=True)[1] is None
        assert cd.equal(cd.autograd.grad(compiled(a, b)[1].sum(), a)[0], 2 * a.detach())


def test_inputs_that_depend_on_each_other(rng: Any) -> None:
    """What one input contributes to the gradient of another counts once: the graph outside of the call computes it."""
    w = cd.tensor(rng.standard_normal((3, 3)), requires_grad=True)
    compiled = cd.compile(lambda y, w: (y * 2) @ w, fullgraph=True)
    for _ in range(2):
        (found,) = cd.autograd.grad(compiled(w @ w, w).sum(), w)
        (expected,) = cd.autograd.grad(compiled.function(w @ w, w).sum(), w)
        assert cd.allclose(found, expected)


def test_released(rng: Any) -> None:
    """A second backward pass is the error of eager graphs, unless the graph is retained."""
    a = leaf(rng, 2)
    compiled = cd.compile(lambda x: (x * x).sum(), fullgraph=True)
    compiled(a)
    out = compiled(a)
    out.backward(retain_graph=True)
    out.backward()
    with pytest.raises(GraphFreed, match="backward through the graph a second time"):
        out.backward()


def test_saved_tensor_written(rng: Any) -> None:
    """A write to an argument that the derivative needs is detected."""
    a = leaf(rng, 2)
    compiled = cd.compile(lambda x: (x * x).sum(), fullgraph=True)
    compiled(a)
    out = compiled(a)
    with cd.no_grad():
        a.add_(1)
    with pytest.raises(VersionMismatch, match="modified by an inplace operation"):
        out.backward()


def test_second_derivative(rng: Any) -> None:
    """Second derivatives repeat the call eagerly: also through captured tensors, and not through detached ones."""
    w = leaf(rng, 3, 3)

    def f(x: cd.Tensor) -> cd.Tensor:
        return (w @ x).tanh() * x.detach() * x

    compiled = cd.compile(f, fullgraph=True)
    x = leaf(rng, 3)
    for _ in range(2):
        found = []
        for called in (compiled, f):
            (a,) = cd.autograd.grad(called(x).sum(), x, create_graph=True)
            found.append(cd.autograd.grad((a * a).sum(), (x, w)))
        assert all(cd.equal(a, b) for a, b in zip(*found, strict=True))
    assert cd.autograd.gradgradcheck(cd.compile(lambda x: (w @ x).tanh() * x, fullgraph=True), (x,))


def test_transforms_of_compiled_functions(rng: Any) -> None:
    """Function transforms take compiled functions, and compiled functions contain transforms."""

    def f(x: cd.Tensor) -> cd.Tensor:
        return x.exp() * x.sum()

    compiled = cd.compile(f, fullgraph=True)
    x, rows = leaf(rng, 3), cd.tensor(rng.random((2, 3)))
    out = [compiled(x) for _ in range(2)][1]
    (jacobian,) = cd.autograd.grad(out, x, cd.eye(3, dtype=cd.float64), is_grads_batched=True)
    assert cd.allclose(jacobian, cd.func.jacrev(f)(x))
    assert cd.allclose(cd.func.vmap(compiled)(rows), cd.func.vmap(f)(rows))
    assert cd.allclose(cd.func.hessian(lambda x: compiled(x).sum())(x), cd.func.hessian(lambda x: f(x).sum())(x))
    inside = cd.compile(cd.func.vmap(cd.func.grad(lambda x: f(x).sum())), fullgraph=True)
    for _ in range(2):
        assert cd.allclose(inside(rows), cd.func.vmap(cd.func.grad(lambda x: f(x).sum()))(rows))
    assert len(inside.programs) == 1


COUNT = cd.zeros(1)
FACTOR = {"value": 2.0}


def changed_factor(x: cd.Tensor) -> cd.Tensor:
    """Depend on a dict."""
    return (x * FACTOR["value"]).exp()


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: cd.nn.functional.dropout(x, 0.5).exp(), "draws random numbers"),
        (lambda x: (COUNT.add_(1), x.exp())[1], "writes a tensor from outside"),
        (changed_factor, "depends on the global 'FACTOR'.*, which has changed since the call"),
    ],
)
def test_refused_second_derivatives(function: Any, reason: str, rng: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that cannot be repeated refuses a second derivative, and says why."""
    compiled = cd.compile(function, fullgraph=True)
    x = leaf(rng, 3)
    compiled(x)
    out = compiled(x).sum()
    monkeypatch.setitem(FACTOR, "value", 3.0)
    with pytest.raises(RuntimeError, match=f"a compiled function that {reason}.* has no second derivative"):
        out.backward(create_graph=True)


def test_second_derivative_under_autocast(rng: Any) -> None:
    """Under autocast there is no second derivative."""
    compiled = cd.compile(lambda x: (x @ x).exp(), fullgraph=True)
    x = cd.ones(2, 2, requires_grad=True)
    with cd.autocast("cpu"):
        out = [compiled(x).sum() for _ in range(2)][1]
    with pytest.raises(RuntimeError, match="was called under autocast or another mode has no second derivative"):
        out.backward(create_graph=True)


def test_argument_written_before_the_second_derivative(rng: Any) -> None:
    """An argument that the first derivative does not need may be written before it, but not before the second."""
    compiled = cd.compile(lambda x, y: x + y * 2, fullgraph=True)
    x, y = leaf(rng, 2), cd.ones(2, dtype=cd.float64)
    compiled(x, y)
    out = compiled(x, y).sum()
    y.add_(1)
    with pytest.raises(VersionMismatch, match="modified by an inplace operation"):
        out.backward(create_graph=True, retain_graph=True)
    out.backward()


def test_gradient_of_another_layout(rng: Any) -> None:
    """A gradient that arrives in another memory order is copied into that of the trace."""
    a = leaf(rng, 2, 3)
    compiled = cd.compile(lambda x: x.t() * 2, fullgraph=True)
    for _ in range(2):
        (found,) = cd.autograd.grad(compiled(a), a, cd.arange(6.0, dtype=cd.float64).reshape(2, 3).t())
        assert found.tolist() == [[0, 2, 4], [6, 8, 10]]


def test_graph_through_several_compiled_calls(rng: Any) -> None:
    """Compiled calls before and after eager operators are part of one graph."""
    a = leaf(rng, 3)
    first, second = cd.compile(lambda x: x.sin()), cd.compile(lambda x: (x * x).sum())
    for _ in range(2):
        (found,) = cd.autograd.grad(second(first(a) + 1), a)
        (expected,) = cd.autograd.grad(((a.sin() + 1) * (a.sin() + 1)).sum(), a)
        assert cd.equal(found, expected)


def test_backward_inside(rng: Any) -> None:
    """A function that runs the backward pass fills ``.grad`` as eager code does: set, added to, or removed."""
    w, v = leaf(rng, 3), leaf(rng, 3)

    def f(x: cd.Tensor, fresh: bool) -> cd.Tensor:
        if fresh:
            w.grad = None
        loss = (w * x).sum()
        loss.backward()
        return loss

    compiled = cd.compile(f, fullgraph=True)
    x = cd.tensor(rng.random(3))
    for fresh in (True, False, False, True, True, False, True):
        before = None if fresh or w.grad is None else w.grad.clone()
        kept = None if fresh else w.grad
        loss = compiled(x, fresh)
        assert w.grad is not None
        assert cd.equal(w.grad, x if before is None else before + x)
        assert kept is None or w.grad is kept
        assert loss.requires_grad
    assert v.grad is None
    with pytest.raises(GraphFreed, match="a second time"):
        loss.backward()


def test_kept_gradients_are_separate(rng: Any) -> None:
    """A gradient that a program has kept is not overwritten by later compiled calls."""
    w = leaf(rng, 3)

    def f(x: cd.Tensor) -> None:
        w.grad = None
        (w * x).sum().backward()

    compiled = cd.compile(f, fullgraph=True)
    kept = []
    for n in range(4):
        compiled(cd.full((3,), float(n), dtype=cd.float64))
        kept.append(w.grad)
    assert [g.tolist() for g in kept] == [[float(n)] * 3 for n in range(4)]


def test_recomputed_values(rng: Any) -> None:
    """Large results of cheap operators are computed again in the backward pass, with the same gradients."""
    a = cd.tensor(rng.random((200, 100)), requires_grad=True)
    compiled = cd.compile(lambda x: ((x + 1) * (x * 2)).sum(), fullgraph=True)
    compiled(a)
    (found,) = cd.autograd.grad(compiled(a), a)
    (expected,) = cd.autograd.grad(((a + 1) * (a * 2)).sum(), a)
    assert cd.equal(found, expected)
    derivative = compiled.programs[0].derivative
    assert len(derivative.saved) == 1


def test_custom_function(rng: Any) -> None:
    """The backward of an ``autograd.Function`` is part of the compiled derivative."""

    class Cube(cd.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: cd.Tensor) -> cd.Tensor:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: cd.Tensor) -> cd.Tensor:
            (x,) = ctx.saved_tensors
            return g * 3 * x * x + 1

    a = leaf(rng, 3)
    compiled = cd.compile(lambda x: Cube.apply(x).sum(), fullgraph=True)
    for _ in range(2):
        assert cd.equal(cd.autograd.grad(compiled(a), a)[0], 3 * a.detach() * a.detach() + 1)


def test_hooks_of_inputs(rng: Any) -> None:
    """A hook on a tensor that the function differentiates runs once for each backward pass, with its gradient."""
    a = leaf(rng, 2)
    seen: list[list[float]] = []

    def double(g: cd.Tensor) -> cd.Tensor:
        seen.append(g.tolist())
        return g * 2

    a.register_hook(double)
    compiled = cd.compile(lambda x: (x * 3).sum(), fullgraph=True)
    for n in range(1, 4):
        compiled(a).backward()
        assert seen == [[3, 3]] * n
        assert a.grad is not None
        assert a.grad.tolist() == [6 * n] * 2


def test_hooks_that_are_added_later(rng: Any) -> None:
    """A hook that is added to a leaf after a step was compiled runs."""
    w = leaf(rng, 2)
    seen = []

    def step(x: cd.Tensor) -> None:
        w.grad = None
        (w * x).sum().backward()

    compiled = cd.compile(step)
    for _ in range(3):
        compiled(cd.ones(2, dtype=cd.float64))
    w.register_hook(lambda g: seen.append(g.tolist()))
    with pytest.warns(UserWarning, match="the elements of a tensor are read"):
        compiled(cd.ones(2, dtype=cd.float64))
    compiled(cd.ones(2, dtype=cd.float64))
    assert seen == [[1, 1]] * 2


def test_kernels_that_return_an_operand() -> None:
    """A kernel of the backward pass may return the gradient that arrives, as solutions without elements do."""
    compiled = cd.compile(cd.cholesky_solve, fullgraph=True)
    for _ in range(3):
        b, factor = cd.zeros(0, 2, requires_grad=True), cd.zeros(0, 0, requires_grad=True)
        gradients = cd.autograd.grad([compiled(b, factor)], [b, factor], [cd.ones(0, 2)])
        assert [g.shape for g in gradients] == [(0, 2), (0, 0)]
    assert len(compiled.programs) == 1
