"""``func.jvp``, ``jacfwd`` and ``hessian``, alone and composed, against differences and reverse mode."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor, func, vmap
from candelabra.func import grad, hessian, jacfwd, jacrev, jvp, vjp

from tests.core.transforms.comparing import close, difference, tensor

F = cd.nn.functional


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


def test_names() -> None:
    """The public names are those of torch.func, and the missing one says why."""
    assert {"hessian", "jacfwd", "jvp", "linearize"} <= set(dir(func))
    with pytest.raises(NotImplementedError, match=r"func\.functionalize\(\): graphs keep in-place writes"):
        func.functionalize(abs)
