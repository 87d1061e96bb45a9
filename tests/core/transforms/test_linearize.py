"""``func.linearize``, alone and composed."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor, vmap
from candelabra.func import grad, jvp, linearize

from tests.core.transforms.comparing import close, tensor


def test_linearize_is_the_derivative_at_a_point(rng: np.random.Generator) -> None:
    """The function that it returns is linear, and equal to jvp; its tangents are checked."""
    x, t, u = tensor(rng, 4, 3), tensor(rng, 4, 3), tensor(rng, 4, 3)
    f = lambda x: x.softmax(-1) * x.log_softmax(0)  # noqa: E731
    out, derivative = linearize(f, x)
    assert close(out, f(x))
    assert close(derivative(t), jvp(f, (x,), (t,))[1])
    assert close(derivative(t + 2 * u), derivative(t) + 2 * derivative(u))
    assert close(vmap(derivative)(cd.stack([t, u]))[1], derivative(u))
    with pytest.raises(RuntimeError, match=r"jvp_fn\(\*tangents\): Expected tangent to have the same shape as primal"):
        derivative(t[0])


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
