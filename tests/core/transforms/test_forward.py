"""``func.jvp``, ``jacfwd``, ``hessian`` and ``linearize``, alone and composed, against differences and reverse mode."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor, func, vmap
from candelabra.autograd import Function
from candelabra.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp
from candelabra.library import record

F = cd.nn.functional


def tensor(rng: np.random.Generator, *shape: int) -> Tensor:
    """Return float64 numbers."""
    return cd.tensor(rng.standard_normal(shape))


def close(a: Tensor, b: Tensor, tolerance: float = 1e-10) -> bool:
    """Compare in float64."""
    return a.shape == b.shape and cd.allclose(a, b, rtol=tolerance, atol=tolerance)


def difference(f: Callable[[Tensor], Tensor], x: Tensor, t: Tensor) -> Tensor:
    """Return the central difference of a function along a tangent, with an error of order step⁴ (five points)."""
    h = 1e-3
    return (8 * (f(x + h * t) - f(x - h * t)) - f(x + 2 * h * t) + f(x - 2 * h * t)) / (12 * h)


def written(x: Tensor) -> Tensor:
    """Write to views and to the base of a tensor that the function makes."""
    out = x * 2
    view = out[:, 1:]
    out[0] = x[1] * x[2]
    view.mul_(x[:, 1:])
    buffer = x.new_zeros(4, 3)
    buffer[1:3].copy_(view.sum(1, True).expand(4, 3)[:2])
    return out + buffer.exp()


def convolved(x: Tensor) -> Tensor:
    """Convolve an image with a filter that depends on it, and pool."""
    image = F.conv2d(x.reshape(1, 1, 4, 3), x[:2, :2].reshape(1, 1, 2, 2), x[0, :1])
    return F.max_pool2d(image, (2, 1)).tanh()


def attention(x: Tensor) -> Tensor:
    """Self-attention of the rows."""
    return F.scaled_dot_product_attention(x * 2, x, x.sin())


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "products": lambda x: (x @ x.T).sin(),
    "softmax": lambda x: x.softmax(-1) * x.log_softmax(0),
    "layer_norm": lambda x: F.layer_norm(x, (3,), x[0], x[1]) ** 3,
    "attention": attention,
    "conv and pool": convolved,
    "indexing": lambda x: x[cd.tensor([0, 2, 2])][:, cd.tensor([1, 0])].exp(),
    "views written in place": written,
    "reductions": lambda x: x.logsumexp(0).prod() + x.var() * x.amax() + x.norm() + x.std(0),
    "sort and gather": lambda x: x.sort(0).values.cumsum(0).gather(1, cd.tensor([[0], [2], [1], [1]])) ** 2,
    "solve": lambda x: cd.linalg.solve(x.T @ x + cd.eye(3, dtype=cd.float64), x.T),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jvp_is_the_derivative_along_a_tangent(name: str, rng: np.random.Generator) -> None:
    """The output is that of the function, its tangent that of differences, also with no_grad inside or outside."""
    f = FUNCTIONS[name]
    x, t = tensor(rng, 4, 3), tensor(rng, 4, 3)
    out, along = jvp(f, (x,), (t,))
    assert close(out, f(x))
    assert close(along, difference(f, x, t), 1e-6)
    with cd.no_grad():
        assert close(jvp(f, (x,), (t,))[1], along)
    assert close(jvp(cd.no_grad()(f), (x,), (t,))[1], along)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_and_reverse_mode_compose(name: str, rng: np.random.Generator) -> None:
    """jvp∘jvp, jvp∘grad and grad∘jvp are one second derivative; jacfwd is jacrev; hessian has four equal forms."""
    f = FUNCTIONS[name]
    weight = tensor(rng, *f(cd.ones(4, 3, dtype=cd.float64)).shape)
    total: Callable[[Tensor], Tensor] = lambda x: (f(x) * weight).sum()  # noqa: E731
    x, t, u = tensor(rng, 4, 3), tensor(rng, 4, 3), tensor(rng, 4, 3)
    along = lambda x: jvp(total, (x,), (t,))[1]  # noqa: E731
    second = difference(along, x, u)
    assert close(jvp(along, (x,), (u,))[1], second, 1e-5)
    assert close((grad(along)(x) * u).sum(), second, 1e-5)
    assert close((jvp(grad(total), (x,), (t,))[1] * u).sum(), second, 1e-5)
    assert close(jacfwd(f)(x), jacrev(f)(x))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap_and_jvp_compose(name: str, rng: np.random.Generator) -> None:
    """vmap∘jvp and jvp∘vmap, with grad between and around them, are loops over the examples."""
    f = FUNCTIONS[name]
    xs, ts = tensor(rng, 2, 4, 3), tensor(rng, 2, 4, 3)

    def looped(of: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        return cd.stack([of(x, t) for x, t in zip(xs, ts, strict=True)])

    def total(x: Tensor) -> Tensor:
        return f(x).sin().sum()

    loop = looped(lambda x, t: jvp(f, (x,), (t,))[1])
    assert close(vmap(lambda x, t: jvp(f, (x,), (t,))[1])(xs, ts), loop)
    assert close(jvp(vmap(f), (xs,), (ts,))[1], loop)
    assert close(grad(lambda xs: vmap(total)(xs).sum())(xs), looped(lambda x, _: grad(total)(x)))
    loop = looped(lambda x, t: jvp(grad(total), (x,), (t,))[1])
    assert close(vmap(lambda x, t: jvp(grad(total), (x,), (t,))[1])(xs, ts), loop)
    assert close(jvp(vmap(grad(total)), (xs,), (ts,))[1], loop)
    assert close(vmap(lambda x, t: grad(lambda x: jvp(total, (x,), (t,))[1])(x))(xs, ts), loop)
    assert close(grad(lambda xs: jvp(lambda x: vmap(total)(x).sum(), (xs,), (ts,))[1])(xs), loop)


def test_hessian_is_symmetric_and_equal_in_all_modes(rng: np.random.Generator) -> None:
    """Forward over reverse, reverse over forward and both twice; with several arguments the result has blocks."""
    w, x = tensor(rng, 3, 2), tensor(rng, 3)
    f = lambda x: (x @ w).tanh().prod()  # noqa: E731
    found = hessian(f)(x)
    assert close(found, found.T)
    for outer, inner in product((jacfwd, jacrev), (jacfwd, jacrev)):
        assert close(outer(inner(f))(x), found)
    blocks = hessian(lambda x, w: (x @ w).tanh().prod(), (0, 1))(x, w)
    assert close(blocks[0][0], found)
    assert blocks[0][1].shape == (3, 3, 2)
    assert close(blocks[0][1].movedim(0, -1), blocks[1][0])


def test_containers_aux_and_several_outputs(rng: np.random.Generator) -> None:
    """Primals and outputs may be nested; aux is returned without tangents; argnums choose the inputs of a Jacobian."""
    x, y, t = tensor(rng, 3), tensor(rng, 3), tensor(rng, 3)

    def f(p: dict[str, Any], y: Tensor) -> Any:
        return {"product": p["x"] * y, "none": cd.ones(2)}, (y * 2, "name")

    out, along, aux = jvp(f, ({"x": x}, y), ({"x": t}, cd.zeros_like(y)), has_aux=True)
    assert close(along["product"], t * y)
    assert along["none"].tolist() == [0, 0]
    assert close(aux[0], y * 2)
    assert (aux[1], out["none"].tolist()) == ("name", [1, 1])
    assert (aux[0] + 1).shape == (3,)
    matrix, name = jacfwd(lambda x, y: ((x * y).sum(0, True), x), argnums=1, has_aux=True)(x, y)
    assert close(matrix, x.unsqueeze(0))
    assert close(name, x)
    both = jacfwd(lambda x, y: (x * y, y.sum()), argnums=(0, -1))(x, y)
    assert close(both[0][0], y.diag())
    assert close(both[1][1], cd.ones(3, dtype=cd.float64))
    assert jacfwd(lambda x: x * 2)(cd.tensor(3.0)).item() == 2


def test_linearize_is_the_derivative_at_a_point(rng: np.random.Generator) -> None:
    """The function that it returns is linear, and equal to jvp; its tangents are checked."""
    x, t, u = tensor(rng, 4, 3), tensor(rng, 4, 3), tensor(rng, 4, 3)
    f = FUNCTIONS["softmax"]
    out, derivative = linearize(f, x)
    assert close(out, f(x))
    assert close(derivative(t), jvp(f, (x,), (t,))[1])
    assert close(derivative(t + 2 * u), derivative(t) + 2 * derivative(u))
    assert close(vmap(derivative)(cd.stack([t, u]))[1], derivative(u))
    with pytest.raises(RuntimeError, match=r"jvp_fn\(\*tangents\): Expected tangent to have the same shape as primal"):
        derivative(t[0])


def test_a_captured_tensor_keeps_its_gradient(rng: np.random.Generator) -> None:
    """Tangents are differentiable with respect to primals, tangents and captured tensors of the outer level."""
    x, t, w = (tensor(rng, 3).requires_grad_() for _ in range(3))
    along = jvp(lambda x: x**2 * w, (x,), (t,))[1]  # 2 x t w
    found = cd.autograd.grad(along.sum(), (x, t, w))
    assert all(close(a, b) for a, b in zip(found, (2 * t * w, 2 * x * w, 2 * x * t), strict=True))
    constant = jvp(lambda x: x.sort().values, (x.detach(),), (t.detach(),))[1]
    assert not constant.requires_grad


def test_no_perturbation_is_confused() -> None:
    """An inner derivative does not see the tangent of an outer one: d/dx x * d/dy (x + y) = 1."""
    one = cd.tensor(1.0)

    def slope(f: Callable[[Tensor], Tensor]) -> Tensor:
        return jvp(f, (one,), (one,))[1]

    assert slope(lambda x: x * slope(lambda y: x + y)).item() == 1
    assert slope(lambda x: x * grad(lambda y: x * y)(one)).item() == 2
    assert grad(lambda x: x * slope(lambda y: x * y))(one).item() == 2


def test_tensors_of_outer_levels_can_be_written() -> None:
    """A plain tensor that is written inside gets tangents, with its views, and keeps its values afterwards."""
    buffer = cd.zeros(4)
    view, other = buffer[1:], buffer[:2]

    def f(x: Tensor) -> Tensor:
        view[0] = x * 3
        assert other.device == x.device
        return other.sum() + buffer[1] ** 2

    out, along = jvp(f, (cd.tensor(2.0),), (cd.tensor(1.0),))
    assert (out.item(), along.item()) == (42, 39)
    assert (buffer.tolist(), view.tolist(), other.tolist()) == ([0, 6, 0, 0], [6, 0, 0], [0, 6])
    buffer.mul_(2)
    assert (view.tolist(), other.tolist()) == ([12, 0, 0], [0, 12])
    leaf = cd.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        jvp(lambda x: leaf.mul_(x), (cd.ones(2),), (cd.ones(2),))
    assert leaf.tolist() == [1, 1]


def test_tensors_that_outlive_their_level_are_their_primals() -> None:
    """As in torch.func, they have no tangents any more."""
    kept: list[Tensor] = []
    jvp(lambda x: kept.append(x * 2) or x, (cd.tensor(3.0),), (cd.tensor(1.0),))
    assert (kept[0] + 1).item() == 7
    assert jvp(lambda x: x * kept[0], (cd.tensor(3.0),), (cd.tensor(1.0),))[1].item() == 6
    assert repr(kept[0]) == "tensor(6.)"


def test_dual_tensors_are_shown_with_their_tangents() -> None:
    """Inside the function, repr shows both, and values can be read."""
    shown: list[str] = []

    def f(x: Tensor) -> Tensor:
        shown.append(repr(x))
        return x if x.item() > 0 and bool(x > 0) else -x

    assert jvp(f, (cd.tensor(2.0),), (cd.tensor(1.0),))[1].item() == 1
    assert shown == ["DualTensor(lvl=1, value=\n    tensor(2.)\n    tangent=\n    tensor(1.)\n)"]


X = cd.ones(3)
MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "primals": (lambda: jvp(cd.sin, X, X), "Expected primals to be a tuple"),
    "no primals": (lambda: jvp(lambda: X, (), ()), "Expected primals to contain at least one Tensor."),
    "structure": (
        lambda: jvp(cd.sin, (X,), (X, X)),
        "Expected primals and tangents to have the same python structure",
    ),
    "shape": (
        lambda: jvp(cd.sin, (X,), (cd.ones(4),)),
        r"Expected tangent to have the same shape as primal at flattened position 0: primal has shape \[3\], tangent "
        r"has shape \[4\]",
    ),
    "dtype": (
        lambda: jvp(cd.sin, (X,), (X.double(),)),
        "Expected tangent to have the same dtype as primal at flattened position 0: primal has dtype",
    ),
    "number": (lambda: jvp(cd.sin, (1.0,), (1.0,)), "Expected primals to only contain Tensors, got <class 'float'>"),
    "integers": (
        lambda: jvp(cd.sin, (X.long(),), (X.long(),)),
        "Expected primals to have a floating or complex dtype, as only those have derivatives, got candelabra.int64",
    ),
    "output": (
        lambda: jvp(lambda x: 3, (X,), (X,)),
        r"expected f\(\*primals\) to return only tensors, got unsupported",
    ),
    "aux": (lambda: jvp(cd.sin, (X,), (X,), has_aux=True), r"output of function f should be a tuple: \(output, aux\)"),
    "strict": (
        lambda: jvp(lambda x: cd.ones(2), (X,), (X,), strict=True),
        "The output of f is independent of the inputs",
    ),
    "complex Jacobian": (lambda: jacfwd(cd.sin)(X + 0j), "jacfwd: Expected all inputs to be real but received complex"),
    "argnums": (lambda: jacfwd(cd.sin, 1)(X), "Got argnum=1, but only 1 positional inputs"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name: str) -> None:
    """Errors name the function, what it expects, and what it got."""
    call, text = MISTAKES[name]
    with pytest.raises(RuntimeError, match=text):
        call()
    assert (X * 2).tolist() == [2, 2, 2]


def test_complex_derivatives(rng: np.random.Generator) -> None:
    """Holomorphic functions and those of real and imaginary parts, against differences; vjp is the adjoint."""
    z = cd.complex(tensor(rng, 4), tensor(rng, 4))
    t, u = cd.complex(tensor(rng, 4), tensor(rng, 4)), cd.complex(tensor(rng, 4), tensor(rng, 4))
    for f in (lambda z: z.exp() * z, lambda z: z.abs() * z.conj(), lambda z: cd.view_as_real(z).sin().sum(1) + 0j):
        along = jvp(f, (z,), (t,))[1]
        assert close(along, difference(f, z, t), 1e-8)
        (back,) = vjp(f, z)[1](u)
        assert close((u.conj() * along).sum().real, (back.conj() * t).sum().real)


def test_dropout_has_the_tangents_of_what_it_keeps() -> None:
    """The mask is that of the primal."""
    x, t = cd.ones(50), cd.arange(50.0)
    out, along = jvp(lambda x: F.dropout(x, 0.5, True), (x,), (t,))
    assert cd.equal(along, out * t)
    assert 0 < out.count_nonzero().item() < 50


class Quartic(Function):
    """``x³ y``, without a rule for forward mode; the second output is a constant."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Any:
        ctx.save_for_backward(x, y)
        return x.detach() ** 3 * y, x.detach()

    @staticmethod
    def backward(ctx: Any, g: Tensor, _: Tensor) -> Any:
        x, y = ctx.saved_tensors
        return g * 3 * x**2 * y, g * x**3


class Declared(Function):
    """A square whose forward rule has a factor that nothing else has."""

    result: Any = None

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        ctx.save_for_forward(x)
        return x**2 if Declared.result is None else (x, x)

    @staticmethod
    def jvp(ctx: Any, t: Tensor) -> Any:
        return 100 * ctx.saved_tensors[0] * t


def test_custom_functions_have_tangents() -> None:
    """Those of their jvp, or of backward, differentiated; also nested, under vmap, and under grad."""
    x, t = cd.tensor([2.0]), cd.tensor([1.0])
    f = lambda x: Quartic.apply(x, x)[0]  # noqa: E731
    along = lambda x: jvp(f, (x,), (t,))[1]  # noqa: E731
    assert [part.item() for part in jvp(f, (x,), (t,))] == [16, 32]
    assert not along(x).requires_grad
    assert not x.requires_grad
    assert jvp(along, (x,), (t,))[1].item() == 48
    assert grad(lambda x: along(x).sum())(x).item() == 48
    assert jvp(grad(lambda x: f(x).sum()), (x,), (t,))[1].item() == 48
    assert vmap(lambda x: jvp(f, (x,), (t[0],))[1])(x).item() == 32
    assert jvp(Declared.apply, (x,), (t,))[1].item() == 200
    Declared.result = "two outputs"
    try:
        with pytest.raises(
            RuntimeError, match=r"Declared\.jvp returned .*: expected a tuple with a tangent or None for"
        ):
            jvp(Declared.apply, (x,), (t,))
    finally:
        Declared.result = None
    with pytest.raises(NotImplementedError, match=r"Function\.jvp is not implemented: forward mode differentiates"):
        Function.jvp(None)


def test_names() -> None:
    """The public names are those of torch.func, and the missing one says why."""
    assert {"hessian", "jacfwd", "jvp", "linearize"} <= set(dir(func))
    with pytest.raises(NotImplementedError, match=r"func\.functionalize\(\): it removes in-place operators"):
        func.functionalize(abs)


def test_linearize_runs_the_function_once(rng: np.random.Generator) -> None:
    """Its derivative composes with grad and jvp, keeps gradients of captured tensors, and is zero for constants."""
    x, t, w = tensor(rng, 3), tensor(rng, 3), tensor(rng, 3).requires_grad_()
    calls: list[int] = []

    def f(x: Tensor, y: Tensor) -> dict[str, Tensor]:
        calls.append(1)
        return {"out": (x * w).sin() * y, "constant": cd.ones(2), "rows": x.argsort()}

    _, derivative = linearize(f, x, t)
    for tangents in ((t, x), (x, t)):
        found = derivative(*tangents)
        expected = jvp(lambda x, y: (x * w).sin() * y, (x, t), tangents)[1]
        assert close(found["out"], expected)
        gradients = [cd.autograd.grad(out.sum(), w, retain_graph=True) for out in (found["out"], expected)]
        for a, b in zip(*gradients, strict=True):
            assert close(a, b)
    assert found["constant"].tolist() == [0, 0]
    assert found["rows"].tolist() == [0, 0, 0]
    assert len(calls) == 1

    def along(x: Tensor) -> Tensor:
        return linearize(lambda y: (x * y).exp().sum(), x)[1](t)

    assert close(grad(along)(x), grad(lambda x: jvp(lambda y: (x * y).exp().sum(), (x,), (t,))[1])(x))
    assert close(jvp(along, (x,), (t,))[1], grad(along)(x) @ t)


class Cube(Function):
    """The cube, whose forward pass is opaque to derivatives."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return cd.as_tensor(np.asarray(x.tolist()) ** 3)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g

    @staticmethod
    def jvp(ctx: Any, t: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * t


def test_the_tangent_rule_of_a_function_serves_in_reverse_mode(rng: np.random.Generator) -> None:
    """Forward over reverse mode uses its ``jvp`` for the values that the backward pass reads."""
    x, t = tensor(rng, 3), tensor(rng, 3)
    value, along = jvp(grad(lambda x: Cube.apply(x).square().sum()), (x,), (t,))
    assert close(value, 6 * x**5)
    assert close(along, 30 * x**4 * t)


def test_hessians_of_a_function_with_a_tangent_rule(rng: np.random.Generator) -> None:
    """``jacfwd(jacrev)`` of a custom Function, whose gradients are of other levels than its inputs."""

    class Traced(Cube):
        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return x**3

    x = tensor(rng, 3)
    assert close(hessian(lambda x: Traced.apply(x).square().sum())(x), (30 * x**4).diag())


REDUCTIONS: dict[str, Callable[[Tensor, Any], Tensor]] = {
    "amax": lambda x, dim: x.amax(dim),
    "amin": lambda x, dim: x.amin(dim),
    "var": lambda x, dim: x.var(dim),
    "std": lambda x, dim: x.std(dim, correction=0),
    "norm": lambda x, dim: cd.linalg.vector_norm(x, 2, dim),
    "logsumexp": lambda x, dim: x.logsumexp(dim),
    "prod": lambda x, dim: x.prod(dim),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dim", [(0,), (1,), (2, 3)])
def test_value_and_tangent_of_one_pass_agree_with_differences(name: str, dim: Any, rng: np.random.Generator) -> None:
    """Reductions of rows, columns and several dims, of transposed tensors, and their derivatives in reverse mode."""
    if name == "prod":
        dim = dim[0]

    def f(x: Tensor) -> Tensor:
        return REDUCTIONS[name](x, dim)

    # Distinct numbers, further apart than the steps of the differences: no step changes which one is an extremum.
    x = cd.tensor(rng.permutation(360) / 40 - 4).reshape(5, 3, 4, 6).permute(0, 2, 1, 3)
    t = tensor(rng, 5, 4, 3, 6)
    value, along = jvp(f, (x,), (t,))
    assert close(value, f(x))
    assert close(along, difference(f, x, t), 1e-7)
    by_jvp = grad(lambda a: jvp(f, (a,), (t,))[1].sum())(x)
    by_vjp = jvp(grad(lambda a: f(a).sum()), (x,), (t,))[1]
    assert close(by_jvp, by_vjp)


def test_extrema_share_tangents_evenly_and_ignore_those_of_other_elements() -> None:
    """Ties have the mean of their tangents; an infinite tangent of another element does not matter; NaN propagates."""
    inf, nan = float("inf"), float("nan")
    x = cd.tensor([[2.0, 2.0, 1.0], [1.0, nan, 3.0], [inf, 1.0, inf]])
    t = cd.tensor([[1.0, 5.0, inf], [1.0, 2.0, 3.0], [4.0, inf, 6.0]])
    value, along = jvp(lambda a: a.amax(1), (x,), (t,))
    assert cd.equal(value[::2], cd.tensor([2.0, inf]))
    assert cd.equal(along[::2], cd.tensor([3.0, 5.0]))
    assert value[1].isnan()
    assert along[1].isnan()


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        ("extremum_along", ((1,), True, False)), ("var_mean_along", (None, 1, False)), ("norm_along", (None, False)),
        ("logsumexp_along", ((1,), False)), ("cumprod_along", (1,)), ("prod_along", ((1,), False)),
        ("linalg_det_along", ()), ("linalg_slogdet_along", ()),
    ],
)  # fmt: skip
def test_tangents_of_another_shape_are_refused(operator: str, arguments: tuple[Any, ...]) -> None:
    """The operators that compute value and tangent name the shapes."""
    with pytest.raises(RuntimeError, match=r"the tangent must have the shape of the input, \[2, 3\], got \[3\]"):
        record(operator).canonical(cd.ones(3), cd.ones(2, 3), *arguments)


@pytest.mark.parametrize("name", ["input", "src"])
def test_tangents_of_scattered_extremes_have_the_shapes_of_their_primals(name: str) -> None:
    """The error names the shapes of the tangent and its primal."""
    shapes = {"input": (2, 2), "src": (3, 3)}[name]
    with pytest.raises(RuntimeError, match=r"scatter_extreme: the tangent must have the shape of the input, \[(2|3)\]"):
        record("scatter_extreme_along").canonical(
            cd.ones(shapes[0]), cd.ones(shapes[1]), cd.ones(3), 0, cd.tensor([0, 1]), cd.ones(2), "amax", True
        )


@pytest.mark.parametrize("reduce", ["amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("size", [5, 200])
def test_scattered_extremes_share_tangents_among_ties(
    reduce: str, include_self: bool, size: int, rng: np.random.Generator
) -> None:
    """The tangents of input and source agree with the vector-Jacobian product, in small and in large tensors."""
    x, source = (cd.tensor(rng.integers(0, 4, (size, size)).astype(np.float64)) for _ in range(2))
    index = cd.tensor(rng.integers(0, size, (size, size)))
    t_x, t_source, g = (tensor(rng, size, size) for _ in range(3))

    def scattered(a: Tensor, b: Tensor) -> Tensor:
        return a.scatter_reduce(0, index, b, reduce, include_self=include_self)

    value, pull = vjp(scattered, x, source)
    assert cd.equal(jvp(scattered, (x, source), (t_x, t_source))[0], value)
    to_x, to_source = ((pulled * t).sum() for pulled, t in zip(pull(g), (t_x, t_source), strict=True))
    for f, primals, tangents, expected in (
        (lambda a: scattered(a, source), (x,), (t_x,), to_x),
        (lambda b: scattered(x, b), (source,), (t_source,), to_source),
        (scattered, (x, source), (t_x, t_source), to_x + to_source),
    ):
        assert close((jvp(f, primals, tangents)[1] * g).sum(), expected)


@pytest.mark.parametrize("dtype", [cd.float32, cd.float64], ids=str)
def test_mantissas_have_tangents_without_overflow(dtype: Any) -> None:
    """The smallest numbers are scaled by more than the largest power of two, the largest by less than the smallest."""
    info = cd.finfo(dtype)
    x, t = cd.tensor([info.tiny / 8, info.max, 3.0], dtype=dtype), cd.tensor([info.tiny, 1.0, 2.0], dtype=dtype)
    mantissa, along = jvp(lambda a: cd.frexp(a)[0], (x,), (t,))
    assert mantissa.tolist()[::2] == [0.5, 0.75]
    assert along.tolist()[::2] == [4.0, 0.5]
    assert 0 < along[1].item() < info.tiny


@pytest.mark.parametrize("count", [0, 1, 2])
def test_cumulative_products_have_exact_tangents_at_zeros(count: int, rng: np.random.Generator) -> None:
    """With one zero or two in a row, for small and for large tensors."""
    for rows, n in ((2, 5), (64, 100)):
        x, t = tensor(rng, rows, n), tensor(rng, rows, n)
        x[:, 1 : 1 + count] = 0
        along = jvp(lambda a: a.cumprod(1), (x,), (t,))[1]
        product, slope, expected = cd.ones(rows), cd.zeros(rows), []
        for i in range(n):
            product, slope = product * x[:, i], slope * x[:, i] + product * t[:, i]
            expected.append(slope)
        assert close(along, cd.stack(expected, 1))
