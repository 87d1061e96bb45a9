"""``library.after_backward``: work that ends with the backward pass."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra.autograd import Function
from candelabra.library import after_backward


class Late(Function):
    """Twice the input, whose gradient arrives at the end of the pass."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.leaf = x
        return 2 * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        def store() -> None:
            ctx.leaf.grad = 2 * g

        return None if after_backward(store) else 2 * g


def test_a_function_is_called_at_the_end() -> None:
    """Before ``backward`` returns, and after the other nodes."""
    x, y = (cd.ones(2, requires_grad=True) for _ in range(2))
    order: list[Any] = []
    y.register_hook(lambda _: order.append(x.grad))
    (Late.apply(x) * y).sum().backward()
    assert order == [None]
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]


def test_where_gradients_are_returned_there_is_no_end() -> None:
    """Nor where they are recorded, nor outside a pass."""
    x = cd.ones(2, requires_grad=True)
    assert cd.autograd.grad(Late.apply(x).sum(), [x])[0].tolist() == [2.0, 2.0]
    Late.apply(x).sum().backward(create_graph=True)
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]
    assert not after_backward(lambda: None)


def test_a_pass_that_raises_has_no_end() -> None:
    """What it has begun is dropped."""
    x, y = (cd.ones(2, requires_grad=True) for _ in range(2))

    def fail(_: Any) -> None:
        raise KeyError("no such gradient")

    y.register_hook(fail)
    with pytest.raises(KeyError, match="no such gradient"):
        (Late.apply(x) * y).sum().backward()
    assert x.grad is None
