"""The gradient of a tensor of which pieces are used: one array, to which each piece adds its part."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra._operators.indexing import basic


@pytest.fixture
def created(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The shapes of the gradients that contain one piece and zeros."""
    shapes: list[Any] = []
    adjoint = basic.basic_index_adjoint

    def counted(g: Any, shape: Any, index: Any) -> Any:
        shapes.append(tuple(shape))
        return adjoint(g, shape, index)

    monkeypatch.setattr(basic, "basic_index_adjoint", counted)
    return shapes


def test_pieces_share_one_array(created: list[Any]) -> None:
    """Three pieces of a split need one array of zeros, and overlapping ones add up."""
    x = cd.arange(6.0).requires_grad_()
    y = x * 1
    a, b, c = y.split(2)
    (a * 2 + b * 3 + c * 4 + y[1:3] * 10).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 12, 13, 3, 4, 4]
    assert created == [(6,)]


def test_a_sum_that_others_hold_is_not_written(created: list[Any]) -> None:
    """The gradient of ``y + w`` is that of w too; the piece of y does not change it."""
    x, w = cd.ones(4, requires_grad=True), cd.ones(4, requires_grad=True)
    y = x * 1
    piece = y[:2] * 5
    (y + w).sum().backward(retain_graph=True)
    x.grad = w.grad = None
    ((y + w) * cd.arange(4.0)).sum().add(piece.sum()).backward()
    assert x.grad is not None
    assert w.grad is not None
    assert (x.grad.tolist(), w.grad.tolist()) == ([5, 6, 2, 3], [0, 1, 2, 3])


def test_a_recorded_pass_makes_new_sums(created: list[Any]) -> None:
    """With ``create_graph`` the gradient has a derivative itself, so nothing is written in place."""
    x = cd.arange(1.0, 5.0).requires_grad_()
    y = x * x
    a, b = y.split(2)
    (g,) = cd.autograd.grad((a * a).sum() + (b * b).sum(), x, create_graph=True)
    assert created == [(4,), (4,)]
    g.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [12 * v * v for v in (1, 2, 3, 4)]


def test_hooks_see_the_whole_sum() -> None:
    """The gradient that a hook of the tensor receives contains every piece."""
    seen: list[Any] = []
    x = cd.ones(4, requires_grad=True)
    y = x * 1
    y.register_hook(lambda g: seen.append(g.tolist()))
    a, b = y.split(2)
    (a.sum() + 2 * b.sum()).backward()
    assert seen == [[1, 1, 2, 2]]
