"""Errors of custom functions."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra.autograd import Function


def leaf(values: Any) -> Any:
    """Return a float64 leaf that requires grad."""
    return cd.tensor(values, dtype=cd.float64, requires_grad=True)


class Double(Function):
    """A function without a derivative."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2


def test_what_forward_marks_must_be_tensors_and_outputs() -> None:
    """mark_dirty and mark_non_differentiable name the argument; an input that was written to must be returned."""

    class Marks(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, how: str, marked: Any) -> Any:
            getattr(ctx, how)(x, marked)
            return x * 2

    x = leaf([1.0])
    for how in ("mark_dirty", "mark_non_differentiable"):
        with pytest.raises(TypeError, match=f"{how} only accepts variable arguments, but argument 1 is of type str"):
            Marks.apply(x, how, "text")
    with pytest.raises(RuntimeError, match="Some elements marked as dirty during the forward method were not returned"):
        Marks.apply(x, "mark_dirty", x)
    assert cd.is_grad_enabled()


def test_a_gradient_that_is_no_tensor() -> None:
    """The error names the type and the position, and no gradient is accumulated."""

    class Number(Double):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 3.0

    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="NumberBackward returned a float at position 1: expected Tensor or None"):
        Number.apply(x).sum().backward()
    assert x.grad is None


@pytest.mark.usefixtures("lantern")
def test_a_gradient_on_another_device() -> None:
    """The error names both devices, and no gradient is accumulated."""

    class Elsewhere(Double):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return cd.ones(1, device="lantern:1")

    x = cd.ones(1, device="lantern:0", requires_grad=True)
    text = "ElsewhereBackward returned an invalid gradient at index 0 - expected device lantern:0 but got lantern:1"
    with pytest.raises(RuntimeError, match=text):
        Elsewhere.apply(x).sum().backward()
    assert x.grad is None


def test_methods_that_are_missing_or_there_twice() -> None:
    """A function without a derivative, with two, and one that asks the base class for a context are errors."""

    class Twice(Double):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

        @staticmethod
        def vjp(ctx: Any, g: Any) -> Any:
            return g

    x = leaf([1.0])
    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method"):
        Double.apply(x).sum().backward()
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp' for a custom Function is not"):
        Twice.apply(x).sum().backward()
    assert x.grad is None
    with pytest.raises(NotImplementedError, match="setup_context is not implemented"):
        Function.setup_context(None, (), None)
