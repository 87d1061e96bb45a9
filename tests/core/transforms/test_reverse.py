"""``func.grad``, ``vjp`` and ``jacrev``, alone and composed with ``vmap``, against loops and known derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor, func, vmap
from candelabra.func import grad, grad_and_value, jacrev, vjp


def tensor(rng: np.random.Generator, *shape: int) -> Tensor:
    """Return float64 numbers."""
    return cd.tensor(rng.standard_normal(shape))


def close(a: Tensor, b: Any) -> bool:
    """Compare in float64."""
    b = b if isinstance(b, Tensor) else cd.tensor(b, dtype=cd.float64)
    return a.shape == b.shape and cd.allclose(a, b, rtol=1e-10, atol=1e-12)


def attention(w: Tensor, x: Tensor) -> Tensor:
    """Return self-attention of the rows of ``x``."""
    q = x @ w
    return cd.nn.functional.scaled_dot_product_attention(q, x, x).sum()


SMOOTH: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "products": lambda w, x: (x @ w).sin().sum(),
    "softmax": lambda w, x: ((x @ w).softmax(-1) * x).sum(),
    "log_softmax": lambda w, x: (x @ w).log_softmax(0)[1].sum(),
    "layer_norm": lambda w, x: (cd.nn.functional.layer_norm(x @ w, (3,), w[0], w[1]) ** 3).sum(),
    "attention": attention,
    "indexing": lambda w, x: (x[cd.tensor([0, 2, 2])] @ w[:, cd.tensor([1, 0])]).exp().sum(),
    "views written in place": lambda w, x: _written(w, x).tanh().sum(),
    "reductions": lambda w, x: (x @ w).logsumexp(0).prod() + w.var() * x.amax(),
    "linear and gelu": lambda w, x: cd.nn.functional.gelu(cd.nn.functional.linear(x, w, w[0])).mean(),
    "cross entropy": lambda w, x: cd.nn.functional.cross_entropy(x @ w, cd.tensor([0, 1, 2, 0])),
    "solve": lambda w, x: cd.linalg.solve(w @ w.T + cd.eye(3, dtype=cd.float64), x.T).sum(),
    "gather and cumsum": lambda w, x: (x @ w).cumsum(0).gather(1, cd.tensor([[0], [2], [1], [1]])).square().sum(),
}


def _written(w: Tensor, x: Tensor) -> Tensor:
    out = x @ w
    out[0] = w[1] * 2
    out[:, 1:].mul_(x[:, 1:])
    return out


@pytest.mark.parametrize("name", SMOOTH)
def test_compositions_of_vmap_and_grad(name: str, rng: np.random.Generator) -> None:
    """vmap∘grad, grad∘vmap, vmap∘grad∘vmap and grad∘grad of each function are the loops."""
    f = SMOOTH[name]
    w, x = tensor(rng, 3, 3), tensor(rng, 5, 4, 3)
    ws = tensor(rng, 2, 3, 3)

    def plain(w: Tensor, x: Tensor) -> Tensor:
        v = w.detach().requires_grad_()
        return cd.autograd.grad(f(v, x), v)[0]

    assert close(vmap(grad(f), (None, 0))(w, x), cd.stack([plain(w, a) for a in x]))
    assert close(vmap(grad(f), (0, None))(ws, x[0]), cd.stack([plain(v, x[0]) for v in ws]))
    assert close(vmap(grad(f))(ws, x[:2]), cd.stack([plain(v, a) for v, a in zip(ws, x[:2], strict=True)]))
    assert close(vmap(cd.grad(f), (None, 0))(w, x), cd.stack([plain(w, a) for a in x]))
    assert close(grad(lambda w: vmap(f, (None, 0))(w, x).sum())(w), sum(plain(w, a) for a in x))
    nested = vmap(grad(lambda w: vmap(f, (None, 0))(w, x).sum()))(ws)
    assert close(nested, cd.stack([sum(plain(v, a) for a in x) for v in ws]))  # type: ignore[arg-type]

    def slope(w: Tensor, x: Tensor) -> Tensor:
        return (grad(f)(w, x) * x[:3]).sum()

    def plain_slope(w: Tensor, x: Tensor) -> Tensor:
        v = w.detach().requires_grad_()
        (g,) = cd.autograd.grad(f(v, x), v, create_graph=True)
        return cd.autograd.grad((g * x[:3]).sum(), v)[0]

    assert close(grad(slope)(w, x[0]), plain_slope(w, x[0]))
    assert close(vmap(grad(slope), (None, 0))(w, x), cd.stack([plain_slope(w, a) for a in x]))
    assert close(grad(lambda w: vmap(slope, (None, 0))(w, x).sum())(w), sum(plain_slope(w, a) for a in x))


def test_no_grad_makes_constants() -> None:
    """Inside the function, it does so for every derivative and on every level; outside, grad still works."""
    three = cd.tensor(3.0, dtype=cd.float64)

    def f(x: Tensor) -> Tensor:
        with cd.no_grad():
            c = x**2
        return x * c

    def g(x: Tensor) -> Tensor:
        def inner(y: Tensor) -> Tensor:
            with cd.no_grad():
                c = x * y
            return c * y

        return grad(inner)(x)

    def enabled(x: Tensor) -> Tensor:
        with cd.no_grad(), cd.enable_grad():
            a = x * 1
        with cd.no_grad():
            c = x * vmap(lambda y: y * 2)(x.expand(1))[0]
        return a * c / 2

    assert grad(f)(three).item() == 9
    assert grad(g)(three).item() == 0
    assert vmap(grad(g))(three.expand(2)).tolist() == [0, 0]
    assert grad(lambda x: vmap(f)(x.expand(2)).sum())(three).item() == 18
    assert grad(lambda x: vmap(grad(f))(x.expand(2)).sum())(three).item() == 0
    assert grad(enabled)(three).item() == 9
    with cd.no_grad():
        assert grad(grad(lambda x: x**3))(three).item() == 18
        outside = cd.tensor(2.0, requires_grad=True)
        assert not grad(lambda x: x**2)(outside).requires_grad
    assert grad(lambda x: x**2)(outside).requires_grad
    assert grad(lambda x: x * outside)(cd.tensor(1.0)).requires_grad
    assert not grad(lambda x: x * x)(cd.tensor(1.0)).requires_grad


def test_no_perturbation_is_confused() -> None:
    """An inner derivative does not see the variable of an outer one: d/dx x * d/dy (x + y) = 1."""
    one = cd.tensor(1.0)
    assert grad(lambda x: x * grad(lambda y: x + y)(one))(one).item() == 1
    assert grad(lambda x: x * vmap(grad(lambda y: x * y))(cd.ones(2)).sum())(one).item() == 4


def test_detach_is_a_constant_for_every_derivative() -> None:
    """As in torch.func, and unlike no_grad."""
    x = cd.tensor(2.0)
    assert grad(grad(lambda a: a.detach() ** 2 * a))(x).item() == 0
    assert grad(lambda a: grad(lambda b: b.detach() * b)(a))(x).item() == 0


def test_nested_containers_and_aux(rng: np.random.Generator) -> None:
    """Gradients have the structure of the arguments, and aux has no graph."""
    x, y = tensor(rng, 3), tensor(rng, 3)

    def f(p: dict[str, Any], scale: Tensor) -> Any:
        out = (p["x"] * p["y"][0] * scale).sum()
        return out, {"half": out / 2, "name": "f"}

    gradient, (value, aux) = grad_and_value(f, has_aux=True)({"x": x, "y": (y,)}, cd.tensor(2.0, dtype=cd.float64))
    assert close(gradient["x"], y * 2)
    assert close(gradient["y"][0], x * 2)
    assert close(value, (x * y * 2).sum())
    assert close(aux["half"], value / 2)
    assert aux["name"] == "f"
    assert not aux["half"].requires_grad
    both, aux = grad(f, argnums=(0, 1), has_aux=True)({"x": x, "y": (y,)}, cd.tensor(2.0, dtype=cd.float64))
    assert close(both[1], (x * y).sum())


def test_vjp(rng: np.random.Generator) -> None:
    """The function of cotangents returns a tuple, may be called often, also by vmap; the output has no graph."""
    x, y = tensor(rng, 3), tensor(rng, 3)
    out, pull = vjp(lambda a, b: {"p": a * b, "s": (a.sin(),)}, x, y)
    assert not out["p"].requires_grad
    for factor in (1, 2):
        ga, gb = pull({"p": cd.ones(3, dtype=cd.float64) * factor, "s": (x,)})
        assert close(ga, y * factor + x.cos() * x)
        assert close(gb, x * factor)
    _, pull = vjp(cd.sin, x)
    (rows,) = vmap(pull)(cd.eye(3, dtype=cd.float64))
    assert close(rows, cd.diag(x.cos()))
    assert not rows.requires_grad

    def nested(a: Tensor) -> Tensor:
        _, pull = vjp(cd.sin, a)
        return vmap(pull)(cd.eye(3, dtype=cd.float64))[0].sum()

    assert close(grad(nested)(x), -x.sin())
    assert close(vmap(grad(nested))(cd.stack([x, y])), -cd.stack([x, y]).sin())
    out, pull, aux = vjp(lambda a: (a * 2, "aux"), x, has_aux=True)
    assert aux == "aux"
    assert close(pull(x)[0], x * 2)


def test_jacrev(rng: np.random.Generator) -> None:
    """Rows are computed by vmap; the structure is that of the outputs, and within it that of the inputs."""
    x, y = tensor(rng, 3), tensor(rng, 2)
    assert close(jacrev(lambda a: a**2)(x), cd.diag(2 * x))
    assert close(jacrev(jacrev(lambda a: (a**3).sum()))(x), cd.diag(6 * x))
    assert jacrev(jacrev(jacrev(lambda a: (a**3).sum())))(x)[1, 1, 1].item() == pytest.approx(6)
    assert close(vmap(jacrev(lambda a: a**2))(cd.stack([x, x * 2])), cd.stack([cd.diag(2 * x), cd.diag(4 * x)]))
    for chunk_size in (None, 1, 2):
        found = jacrev(lambda a, b: {"o": cd.outer(a, b), "b": b}, argnums=(0, 1), chunk_size=chunk_size)(x, y)
        assert [t.shape for t in (*found["o"], *found["b"])] == [(3, 2, 3), (3, 2, 2), (2, 3), (2, 2)]
        assert close(found["o"][0][1, :, 1], y)
        assert close(found["o"][1][:, 1, 1], x)
        assert close(found["b"][1], np.eye(2))
    value, aux = jacrev(lambda a, scale=1: (a * scale, a), has_aux=True)(x, scale=3)
    assert close(value, np.eye(3) * 3)
    assert close(aux, x)


def test_per_example_gradients_of_a_module(rng: np.random.Generator) -> None:
    """functional_call within vmap(grad), as in torch.func's tutorials; an ensemble by stack_module_state."""
    models = [cd.nn.Sequential(cd.nn.Linear(4, 5), cd.nn.Tanh(), cd.nn.Linear(5, 3)).double() for _ in range(3)]
    net = models[0]
    x, target = tensor(rng, 6, 4), cd.tensor(rng.integers(0, 3, 6))
    params = {name: p.detach() for name, p in net.named_parameters()}

    def loss(params: dict[str, Tensor], x: Tensor, target: Tensor) -> Tensor:
        out = func.functional_call(net, params, (x.unsqueeze(0),))
        return cd.nn.functional.cross_entropy(out, target.unsqueeze(0))

    found = vmap(grad(loss), (None, 0, 0))(params, x, target)
    for i in range(6):
        net.zero_grad()
        cd.nn.functional.cross_entropy(net(x[i : i + 1]), target[i : i + 1]).backward()
        for name, p in net.named_parameters():
            assert close(found[name][i], p.grad)
    stacked, buffers = func.stack_module_state(models)
    out = vmap(lambda p, b, x: func.functional_call(net, (p, b), (x,)), (0, 0, None))(stacked, buffers, x)
    assert close(out, cd.stack([m(x) for m in models]))
    out.sum().backward()
    assert all(p.grad is not None and p.grad.shape == p.shape for p in stacked.values())


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "an output that is no tensor": (
        lambda: grad(lambda x: 3)(cd.ones(())), RuntimeError, r"Expected f\(\*args\) to return a Tensor, got"
    ),
    "an output with dims": (
        lambda: grad(lambda x: x)(cd.ones(2)), RuntimeError, "to return a scalar Tensor, got tensor with 1 dims"
    ),
    "no aux": (
        lambda: grad(lambda x: x, has_aux=True)(cd.ones(())), RuntimeError,
        r"output of function f should be a tuple: \(output, aux\)",
    ),
    "an argument that is no tensor": (
        lambda: grad(lambda x: x)(3), ValueError, "Thing passed to transform API must be Tensor, got <class 'int'>"
    ),
    "a position out of range": (
        lambda: grad(lambda x: x, 1)(cd.ones(())), RuntimeError, "Got argnum=1, but only 1 positional inputs"
    ),
    "a position that is no int": (
        lambda: grad(lambda x: x, (0.5,))(cd.ones(())), RuntimeError, "argnum must be int, got: <class 'float'>"
    ),
    "positions in a list": (
        lambda: grad(lambda x: x, [0])(cd.ones(())), RuntimeError, r"argnums must be int or Tuple\[int, ...\], got"
    ),
    "no positions": (lambda: grad(lambda x: x, ())(cd.ones(())), RuntimeError, "argnums must be non-empty"),
    "a position twice": (
        lambda: grad(lambda x: x, (0, 0))(cd.ones(())), RuntimeError, r"argnums elements must be unique, got \(0, 0\)"
    ),
    "integer outputs": (
        lambda: vjp(lambda x: x > 0, cd.ones(2)), RuntimeError, "All outputs of f must be floating-point or complex"
    ),
    "no outputs": (lambda: vjp(lambda x: None, cd.ones(2)), RuntimeError, "a function that has non-empty output"),
    "an output of another type": (
        lambda: vjp(lambda x: (x, 3), cd.ones(2)), RuntimeError, "to return only tensors, got unsupported type <class"
    ),
    "cotangents of another structure": (
        lambda: vjp(cd.sin, cd.ones(2))[1]((cd.ones(2), cd.ones(2))), RuntimeError,
        "Expected pytree structure of cotangents to be the same as pytree structure of outputs",
    ),
    "complex inputs": (
        lambda: jacrev(cd.sin)(cd.ones(2, dtype=cd.complex64)), RuntimeError, "jacrev: Expected all inputs to be real"
    ),
    "chunks": (lambda: jacrev(cd.sin, chunk_size=0), ValueError, "`chunk_size` should be greater than 0"),
    "dictionaries": (
        lambda: func.functional_call(cd.nn.ReLU(), 3), ValueError, "to be a dict, or a list/tuple of dicts, but got"
    ),
    "a list of others": (
        lambda: func.functional_call(cd.nn.ReLU(), [3]), ValueError, "Expected all elements of parameter_and_buffer_"
    ),
    "no models": (lambda: func.stack_module_state([]), RuntimeError, "Expected at least one model, got 0"),
    "models of two classes": (
        lambda: func.stack_module_state([cd.nn.ReLU(), cd.nn.Tanh()]), RuntimeError, "to be of the same class"
    ),
    "models of two modes": (
        lambda: func.stack_module_state([cd.nn.ReLU(), cd.nn.ReLU().eval()]), RuntimeError, "same training/eval mode"
    ),
    "parameters of which one is frozen": (
        lambda: func.stack_module_state([cd.nn.Linear(1, 1), cd.nn.Linear(1, 1).requires_grad_(False)]), RuntimeError,
        "Expected weight from each model to have the same .requires_grad",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use(name: str) -> None:
    """The errors are functorch's."""
    call, error, words = WRONG[name]
    with pytest.raises(error, match=words):
        call()
