"""Custom functions."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra.autograd import Function, grad, gradcheck, gradgradcheck
from candelabra.autograd.function import once_differentiable


def leaf(values: Any) -> Any:
    """Return a float64 leaf that requires grad."""
    return cd.tensor(values, dtype=cd.float64, requires_grad=True)


class Cube(Function):
    """x**3 * factor, with a Python number among the arguments."""

    @staticmethod
    def forward(ctx: Any, x: Any, factor: float) -> Any:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x**3 * factor

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g * ctx.factor, None


class Split(Function):
    """Two differentiable outputs and an index, with setup_context; saves an output."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x.exp(), x * 2, (x > 0).to(cd.int64)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[2])
        ctx.save_for_backward(output[0])

    @staticmethod
    def backward(ctx: Any, g_exp: Any, g_double: Any, g_index: Any) -> Any:
        (e,) = ctx.saved_tensors
        return g_exp * e + g_double * 2


def test_derivatives_to_second_order() -> None:
    """The operators in backward are recorded."""
    assert gradcheck(Cube.apply, (leaf([1.0, -2.0]), 2.0))
    assert gradgradcheck(Cube.apply, (leaf([1.0, -2.0]), 2.0))
    assert gradgradcheck(lambda x: Split.apply(x)[:2], (leaf([0.5, -0.5]),))


def test_several_outputs_one_of_which_is_unused() -> None:
    """Missing gradients are passed as zeros; an index has none."""
    x = leaf([1.0])
    e, double, index = Split.apply(x)
    assert not index.requires_grad
    assert "SplitBackward" in repr(e.grad_fn)
    (g,) = grad(double.sum(), x)
    assert g.tolist() == [2.0]
    assert e.grad_fn is double.grad_fn


def test_gradients_are_not_materialised_on_request() -> None:
    """set_materialize_grads(False) passes None for missing gradients."""
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            seen.append(a)
            return b

    Two.apply(leaf([1.0]))[1].sum().backward()
    assert seen == [None]


def test_wrong_number_of_gradients() -> None:
    """The error of too few gradients has their number."""

    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    with pytest.raises(
        RuntimeError, match=r"WrongBackward returned an incorrect number of gradients \(expected 2, got 1\)"
    ):
        Wrong.apply(leaf([1.0]), leaf([1.0])).sum().backward()


def test_a_gradient_for_what_is_no_tensor() -> None:
    """A gradient for a number is an error."""

    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g

    with pytest.raises(RuntimeError, match="a gradient different from None at position 2"):
        Wrong.apply(leaf([1.0]), 2.0).sum().backward()


def test_a_gradient_of_the_wrong_shape() -> None:
    """The engine names the function, the position and both shapes."""

    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return cd.ones(3, dtype=cd.float64)

    with pytest.raises(
        RuntimeError, match=r"invalid gradient at index 0 - got \[3\] but expected shape compatible with \[2\]"
    ):
        Wrong.apply(leaf([1.0, 2.0])).backward()


def test_an_input_written_to_in_place() -> None:
    """mark_dirty returns the same tensor with the new history."""

    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leaf([1.0, 2.0])
    a = x * 1
    assert Double.apply(a) is a
    a.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    b = x * 1
    Double.apply(b[0])
    assert grad(b.sum(), x)[0].tolist() == [2.0, 1.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        Double.apply(x)


def test_an_input_returned_as_it_is_is_another_tensor() -> None:
    """A write to it would lose the custom derivative, and is refused."""

    class Same(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 10

    x = leaf([1.0])
    y = Same.apply(x)
    assert y is not x
    (y * 2).sum().backward()
    assert x.grad.tolist() == [20.0]
    with pytest.raises(RuntimeError, match="Output of SameBackward is a view and is being modified inplace"):
        y.mul_(2)


def test_a_changed_saved_tensor_is_noticed_and_a_freed_one_too() -> None:
    """saved_tensors compares versions, and is empty after the pass."""
    a = leaf([1.0]) * 1
    y = Cube.apply(a, 1.0)
    a.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = Cube.apply(leaf([1.0]), 1.0)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.sum().backward()


def test_once_differentiable() -> None:
    """A second derivative is an error."""

    class Once(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    x = leaf([3.0])
    (g,) = grad((Once.apply(x) * x).sum(), x, create_graph=True)
    assert g.tolist() == [27.0]
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with @once_diff"):
        g.sum().backward()


def test_misuse() -> None:
    """Instances, missing methods, and values that cannot be saved are errors."""
    with pytest.raises(RuntimeError, match="should not be instantiated"):
        Cube()
    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        type("Empty", (Function,), {}).apply(1)

    class Saves(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(3)
            return x

    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument 0 is of type int"):
        Saves.apply(leaf([1.0]))


def test_outputs_without_gradients_can_be_saved() -> None:
    """The positions that a sort returns serve its backward pass, once and twice."""

    class Sort(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            values, order = x.sort()
            ctx.mark_non_differentiable(order)
            ctx.save_for_backward(order)
            return values, order

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            (order,) = ctx.saved_tensors
            return cd.zeros_like(g).scatter(0, order, g)

    x = leaf([0.5, -1.0, 2.0, 0.1])
    values, order = Sort.apply(x)
    (first,) = grad((values**3).sum(), x, create_graph=True)
    assert cd.allclose(first, 3 * x**2)
    assert cd.allclose(grad(first.sum(), x)[0], 6 * x)
    values, order = Sort.apply(x)
    assert not order.requires_grad
    order.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        values.sum().backward()
