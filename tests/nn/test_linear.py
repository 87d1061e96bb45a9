"""The derivative of ``linear``, which is one operator of the graph."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra.autograd.gradcheck import gradcheck, gradgradcheck
from candelabra.nn import functional as F

Shape = tuple[int, ...]


@pytest.mark.parametrize("dtype", [cd.float64, cd.complex128], ids=str)
@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3), (4, 3), (4,)),
        ((2, 5, 3), (4, 3), (4,)),
        ((2, 1, 5, 3), (4, 3), ()),
        ((3,), (4, 3), (4,)),
        ((2, 3), (3,), ()),
        ((3,), (3,), ()),
        ((2, 5, 3), (3,), ()),
        ((2, 0, 3), (4, 3), (4,)),
    ],
    ids=str,
)
def test_linear_is_differentiable_to_second_order(shapes: tuple[Shape, ...], dtype: Any) -> None:
    """Its derivative and the derivative of that agree with finite differences, for all dims that it accepts."""
    leaves = [cd.randn(*shape, dtype=dtype, requires_grad=True) for shape in shapes]
    assert gradcheck(F.linear, leaves)
    assert gradgradcheck(F.linear, leaves)
    assert gradcheck(F.linear, leaves[:2])


@pytest.mark.parametrize(
    "shapes", [((2, 3), (4, 3), (5, 1, 4)), ((2, 3), (1, 3), (4,)), ((3,), (4, 3), (5, 4))], ids=str
)
def test_a_bias_may_have_more_elements_than_the_product(shapes: tuple[Shape, ...]) -> None:
    """The gradients of input and weight are then those of the product that the bias broadcasts."""
    leaves = [cd.randn(*shape, dtype=cd.float64, requires_grad=True) for shape in shapes]
    assert gradcheck(F.linear, leaves)
    assert gradgradcheck(F.linear, leaves)


def test_a_linear_layer_is_one_node() -> None:
    """The graph has one node for a call, with the leaves as its next functions."""
    x, w, b = (cd.randn(*shape, requires_grad=True) for shape in ((2, 5, 3), (4, 3), (4,)))
    node = F.linear(x, w, b).grad_fn
    assert node is not None
    assert node.name() == "LinearBackward"
    assert [function for function, _ in node.next_functions] == [leaf._node for leaf in (x, w, b)]


def test_the_gradients_of_weight_and_bias_are_kept_without_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backward pass computes them in the layout of their leaves, not as views, which a leaf would copy."""
    from candelabra._autograd import accumulating

    def refuse(g: Any) -> Any:
        raise AssertionError(f"a gradient of shape {list(g.shape)} is copied")

    x, w, b = cd.randn(2, 5, 3), cd.randn(4, 3, requires_grad=True), cd.randn(4, requires_grad=True)
    monkeypatch.setattr(accumulating, "_copy", refuse)
    F.linear(x, w, b).square().sum().backward()
    assert w.grad is not None
    assert b.grad is not None
    assert w.grad.is_contiguous()
    assert b.grad.shape == (4,)
