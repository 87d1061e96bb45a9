"""Modes, random numbers, transforms and training in a block of ``batching()``."""

from __future__ import annotations

import candelabra as cd
import numpy as np
from candelabra import Tensor, batching
from candelabra.func import grad, jvp, vmap

from tests.core.transforms.comparing import Cube, recorded, tensor


def test_modes_belong_to_the_call(rng: np.random.Generator) -> None:
    """A call under ``no_grad`` is not recorded, one outside of it is, though both run later."""
    w = tensor(rng, 3, leaf=True)
    with batching():
        with cd.no_grad():
            a = w * 2
        b = w * 2
    assert (a.requires_grad, b.requires_grad) == (False, True)
    with batching(), cd.autocast("cpu", cd.bfloat16):
        c = cd.ones(2, 2) @ cd.ones(2, 2)
        d = c.float().softmax(0)
    assert (c.dtype, d.dtype) == (cd.bfloat16, cd.float32)


def test_random_numbers_are_those_of_the_loop() -> None:
    """Draws take their numbers when they are called, so that a seed gives the same with and without the block."""

    def run() -> Tensor:
        cd.manual_seed(3)
        x = cd.ones(4)
        return cd.stack([cd.nn.functional.dropout(x * i + cd.rand(4), 0.5) for i in range(3)])

    with batching():
        found = run()
    assert cd.equal(found, run())


def test_random_numbers_fill_tensors_of_a_block() -> None:
    """In-place draws have the numbers of eager calls, in results that wait and in their views."""

    def run() -> Tensor:
        cd.manual_seed(7)
        x = cd.zeros(4) + 1
        x.normal_()
        y = x * 2
        y[:2].bernoulli_(0.5)
        y[2:].uniform_().random_(0, 9)
        return x + y

    with batching():
        found = run()
    assert cd.equal(found, run())


def test_dropout_is_batched_around_its_draws(rng: np.random.Generator) -> None:
    """Each draw has the numbers of the loop; the operators after it are one call for all examples."""
    w, xs = tensor(rng, 4, leaf=True), [tensor(rng, 4) for _ in range(5)]

    def losses() -> list[Tensor]:
        cd.manual_seed(5)
        return [cd.nn.functional.dropout(w * x, 0.5).sum() for x in xs]

    cd.stack(losses()).sum().backward()
    expected, w.grad = w.grad, None
    with batching():
        found = losses()
        total = cd.stack(found).sum()
    assert recorded(total).count("MulBackward") == 2  # of all five dropouts, and of w * x
    total.backward()
    assert cd.allclose(w.grad, expected)
    assert cd.equal(cd.stack(found), cd.stack(losses()))


def test_transforms_work_inside_and_around_a_block(rng: np.random.Generator) -> None:
    """vmap, grad and jvp of a function with a block, and in a block, are those of the function alone."""
    w = tensor(rng, 3, 3)

    def f(x: Tensor) -> Tensor:
        return ((x @ w).tanh()[1:].sum() * 2 + (x @ w).sin().sum()).exp()

    def blocked(x: Tensor) -> Tensor:
        with batching():
            return f(x)

    x, t = tensor(rng, 4, 3), tensor(rng, 4, 3)
    for g in (blocked, batching()(f)):
        assert cd.allclose(vmap(g)(x), vmap(f)(x))
        assert cd.allclose(grad(g)(x[0]), grad(f)(x[0]))
        assert cd.allclose(vmap(grad(g))(x), vmap(grad(f))(x))
        for a, b in zip(jvp(g, (x[0],), (t[0],)), jvp(f, (x[0],), (t[0],)), strict=True):
            assert cd.allclose(a, b)
    with batching():
        outs = [vmap(f)(x), grad(f)(x[0]), vmap(grad(f))(x), jvp(f, (x[0],), (t[0],))[1]]
        outs.append(cd.stack([jvp(f, (a,), (b,))[1] for a, b in zip(x, t, strict=True)]))
    tangent = jvp(f, (x[0],), (t[0],))[1]
    expected = [vmap(f)(x), grad(f)(x[0]), vmap(grad(f))(x), tangent, jvp(vmap(f), (x,), (t,))[1]]
    for a, b in zip(outs, expected, strict=True):
        assert cd.allclose(a, b)


def test_backward_steps_and_custom_functions_work_in_a_block(rng: np.random.Generator) -> None:
    """A loop of training inside the block has the same parameters as outside; a custom Function is called at once."""
    start = tensor(rng, 3)

    def run() -> Tensor:
        w = start.clone().requires_grad_()
        optimizer = cd.optim.Adam([w], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (Cube.apply(w * 2) + w).sum().backward()
            optimizer.step()
        return w.detach()

    with batching():
        found = run()
    assert cd.allclose(found, run())


def test_a_block_in_a_block_is_part_of_it(rng: np.random.Generator) -> None:
    """The calls of an inner block are computed with those of the outer one."""
    w, x = tensor(rng, 3, leaf=True), tensor(rng, 2, 3)
    with batching():
        a = x[0] * w
        with batching():
            b = x[1] * w
        total = cd.stack([a.sin(), b.sin()]).sum()
    assert recorded(total).count("SinBackward") == 1
    assert cd.allclose(total, (x * w).sin().sum())
