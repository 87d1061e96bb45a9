"""Cases of functorch's own tests that needed mending: each behaviour, in one example."""

from __future__ import annotations

from collections.abc import Callable

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor, vmap
from candelabra.func import grad, jvp, vjp

from tests.core.transforms.comparing import tensor


def test_the_function_of_cotangents_can_be_differentiated(rng: np.random.Generator) -> None:
    """It is linear in its cotangents, so its gradient is the derivative itself: also under vmap over cotangents."""
    x, g = tensor(rng, 3), tensor(rng, 4, 3)
    _, back = vjp(cd.sin, x)
    assert cd.allclose(grad(lambda c: back(c)[0].sum())(g[0]), x.cos())
    assert cd.allclose(vmap(grad(lambda c: back(c)[0].sum()))(g), x.cos().expand(4, 3))
    assert cd.allclose(grad(lambda c: vmap(back)(c)[0].sum())(g), x.cos().expand(4, 3))


def test_the_function_of_cotangents_follows_no_grad(rng: np.random.Generator) -> None:
    """Under no_grad its results have no graph, even if the primals require grad."""
    x = tensor(rng, 3).requires_grad_()
    out, back = vjp(lambda a: a**2, x)
    with cd.no_grad():
        found = back(cd.ones_like(x))[0]
    assert out.requires_grad
    assert not found.requires_grad
    assert cd.equal(found, 2 * x.detach())
    assert back(cd.ones_like(x))[0].requires_grad


def test_jvp_writes_to_its_arguments(rng: np.random.Generator) -> None:
    """The caller's tensors have what the function wrote, through a view, too; under vmap each example has its own."""

    def f(x: Tensor, y: Tensor) -> Tensor:
        x[::2].copy_(y)
        return x

    x, y, t, u = tensor(rng, 2, 6), tensor(rng, 2, 3), tensor(rng, 2, 6), tensor(rng, 2, 3)
    expected, along = x.clone(), t.clone()
    expected[:, ::2], along[:, ::2] = y, u
    single = x[0].clone()
    jvp(f, (single, y[0]), (t[0], u[0]))
    assert cd.equal(single, expected[0])
    out, found = vmap(lambda *args: jvp(f, args[:2], args[2:]))(x, y, t, u)
    assert cd.equal(out, expected)
    assert cd.equal(found, along)
    assert cd.equal(x, expected)


def test_views_that_a_write_has_changed_have_tangents(rng: np.random.Generator) -> None:
    """A view of a plain tensor, taken before a dual value is written to the tensor, is returned with its tangent."""

    def f(y: Tensor) -> Tensor:
        x = y.new_zeros(2, 3) if vmapped else cd.zeros(2, 3, dtype=y.dtype)
        view = x[0]
        x.copy_(y)
        return view

    y, t = tensor(rng, 4, 2, 3), tensor(rng, 4, 2, 3)
    vmapped = False
    assert cd.equal(jvp(f, (y[0],), (t[0],))[1], t[0, 0])
    vmapped = True
    assert cd.equal(vmap(lambda a, b: jvp(f, (a,), (b,))[1])(y, t), t[:, 0])


FILLINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "a number": lambda p: p.clone().bernoulli_(0.5),
    "probabilities of each example": lambda p: cd.zeros_like(p).bernoulli_(p),
    "probabilities from outside": lambda p: p.clone().bernoulli_(cd.full((50,), 0.5, dtype=p.dtype)),
    "normal": lambda p: p.clone().normal_(),
}


@pytest.mark.parametrize("name", FILLINGS)
def test_random_fillings(name: str) -> None:
    """Examples differ with randomness="different", and are equal with "same"; without either, a draw is an error."""
    p, fill = cd.full((3, 50), 0.5), FILLINGS[name]
    different, same = (vmap(fill, randomness=kind)(p) for kind in ("different", "same"))
    assert not cd.equal(different[0], different[1])
    assert cd.equal(same[0], same[1])
    with pytest.raises(RuntimeError, match="called random operation while in randomness error mode"):
        vmap(fill)(p)


def test_a_shared_tensor_can_be_filled_for_all_examples() -> None:
    """It takes the numbers of one draw; numbers of each example do not fit into it."""

    def f(x: Tensor) -> Tensor:
        return cd.zeros(5).normal_() + x

    out = vmap(f, randomness="same")(cd.zeros(3))
    assert cd.equal(out[0], out[2])
    assert bool(out.any())
    with pytest.raises(RuntimeError, match="there exists a Tensor `other` in extra_args that has more elements"):
        vmap(f, randomness="different")(cd.zeros(3))
    with pytest.raises(RuntimeError, match="there exists a Tensor `other` in extra_args that has more elements"):
        vmap(lambda p: cd.zeros(5).bernoulli_(p), randomness="different")(cd.full((3, 5), 0.5))


def test_set_state_returns_the_generator() -> None:
    """So that calls can be chained."""
    generator = cd.Generator()
    assert generator.set_state(generator.get_state()) is generator
