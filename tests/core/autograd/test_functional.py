"""gradcheck, products with Jacobians and Hessians, and gradients of Python functions."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra._autograd.transforms import elementwise_grad, value_and_grad
from candelabra._autograd.transforms import grad as gradient
from candelabra.autograd import Function, functional, gradcheck


def leaf(values: Any) -> Any:
    """Return a float64 leaf that requires grad."""
    return cd.tensor(values, dtype=cd.float64, requires_grad=True)


class Wrong(Function):
    """A square whose derivative is off by one."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * (2 * ctx.saved_tensors[0] + 1)


def test_gradcheck_finds_a_wrong_derivative() -> None:
    """The error shows both Jacobians; fast_mode detects it too; raise_exception=False returns False."""
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(Wrong.apply, (leaf([1.0]),))
    assert not gradcheck(Wrong.apply, (leaf([1.0, 2.0]),), fast_mode=True, raise_exception=False)


def test_gradcheck_of_complex_functions() -> None:
    """Complex numbers are treated as pairs of real numbers."""
    z = cd.tensor([1 + 2j, -0.5 + 0.3j], dtype=cd.complex128, requires_grad=True)
    assert gradcheck(lambda z: z * z.conj() + z.exp(), (z,))
    assert gradcheck(lambda z: z.abs(), (z,), fast_mode=True)


def test_gradcheck_refuses_what_it_cannot_check() -> None:
    """Missing inputs that require grad, expanded inputs and single precision are errors."""
    with pytest.raises(ValueError, match="gradcheck expects at least one input tensor to require gradient"):
        gradcheck(cd.sin, (cd.ones(1),))
    with pytest.raises(RuntimeError, match="has a dimension with stride 0"):
        gradcheck(cd.sin, (leaf([1.0]).expand(3),))
    with pytest.warns(UserWarning, match="is not a double precision"):
        gradcheck(cd.sin, (cd.ones(1, requires_grad=True),), atol=1.0, eps=1e-2)


def test_jacobians_of_all_strategies_are_equal() -> None:
    """Row by row, all rows at once and by forward mode; also for outputs without a graph, and with create_graph."""
    x, y = cd.tensor([1.0, -2.0, 0.5], dtype=cd.float64), cd.tensor([3.0, 1.5], dtype=cd.float64)
    choices: list[dict[str, Any]] = [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}]

    def outputs(x: Any, y: Any) -> Any:
        return (x[:2] * y).sin(), x.sum() * y[0], cd.ones(2)

    first, *others = [functional.jacobian(outputs, (x, y), **choice) for choice in choices]
    for other in others:
        assert all(
            cd.allclose(a.double(), b.double())
            for p, q in zip(first, other, strict=True)
            for a, b in zip(p, q, strict=True)
        )
    assert first[0][1].shape == (2, 2)

    def total(x: Any) -> Any:
        return (x**3).sum() * x[0].exp()

    again = [{}, {"vectorize": True}, {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}]
    first, *others = [functional.hessian(total, x, **choice) for choice in again]
    assert all(cd.allclose(first, other) for other in others)
    leaf = x.clone().requires_grad_()
    for choice in choices:
        found = functional.jacobian(lambda x: x**3, leaf, create_graph=True, **choice)
        assert cd.allclose(cd.autograd.grad(found.sum(), leaf)[0], 6 * x)
        assert not functional.jacobian(lambda x: x**3, leaf, **choice).requires_grad


def test_jacobian_and_hessian() -> None:
    """Their shapes are those of the output, followed by those of the input."""
    x, y = cd.tensor([1.0, 2.0]), cd.tensor([3.0])
    rows = functional.jacobian(lambda a, b: a * b, (x, y))
    assert [r.tolist() for r in rows] == [[[3.0, 0.0], [0.0, 3.0]], [[1.0], [2.0]]]
    assert functional.hessian(lambda a: (a**3).sum(), x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    blocks = functional.hessian(lambda a, b: (a * b).sum(), (x, y))
    assert [[b.tolist() for b in row] for row in blocks] == [[[[0, 0], [0, 0]], [[1], [1]]], [[[1, 1]], [[0]]]]


def test_products() -> None:
    """vjp, jvp, vhp and hvp of a small function are correct."""
    x, v = cd.tensor([1.0, 2.0]), cd.tensor([1.0, 10.0])
    assert functional.vjp(lambda a: a * a, x, v)[1].tolist() == [2.0, 40.0]
    assert functional.jvp(lambda a: a * a, x, v)[1].tolist() == [2.0, 40.0]
    assert functional.hvp(lambda a: (a**3).sum(), x, v)[1].tolist() == [6.0, 120.0]
    assert functional.vhp(lambda a: (a**3).sum(), x, v)[1].tolist() == [6.0, 120.0]
    with pytest.raises(RuntimeError, match="v has invalid size"):
        functional.vjp(lambda a: a * a, x, cd.ones(3))
    with pytest.raises(RuntimeError, match="does not require gradients"):
        functional.vjp(lambda a: cd.ones(1), x, cd.ones(1), strict=True)


def test_gradients_of_functions_nest() -> None:
    """grad(grad(f)) works with arguments and closures."""
    assert gradient(gradient(lambda x: x**3))(2.0).item() == 12.0
    assert gradient(lambda x: gradient(lambda y: x * y)(3.0))(5.0).item() == 1.0
    value, found = value_and_grad(lambda p, k=1.0: (p["w"] * k).sum())({"w": cd.ones(2)}, k=3.0)
    assert (value.item(), found["w"].tolist()) == (6.0, [3.0, 3.0])
    assert elementwise_grad(cd.sin)(cd.zeros(3)).tolist() == [1.0, 1.0, 1.0]
    assert gradient(lambda x: (x, "kept"), has_aux=True)(1.0)[1] == "kept"


def test_gradients_of_functions_say_what_is_wrong() -> None:
    """Non-scalar outputs, arguments without a gradient, and argnums out of range are errors."""
    with pytest.raises(RuntimeError, match=r"must return a scalar, got shape \[2\]"):
        gradient(lambda x: x * 2)(cd.ones(2))
    with pytest.raises(TypeError, match="which has no gradient"):
        gradient(lambda x: x)("text")
    with pytest.raises(TypeError, match="argnums names argument 1"):
        gradient(lambda x: x, argnums=1)(1.0)
    with pytest.raises(TypeError, match="must return a Tensor, got float"):
        gradient(lambda x: 1.0)(1.0)
