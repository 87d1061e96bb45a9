"""``autograd.Function`` inside transforms: its ``jvp``, its ``backward`` differentiated, and its ``vmap``."""

from __future__ import annotations

from itertools import product
from typing import Any, ClassVar

import candelabra as cd
import numpy as np
import pytest
from candelabra import Tensor, vmap
from candelabra.autograd import Function
from candelabra.func import grad, hessian, jacfwd, jacrev, jvp

from tests.core.transforms.comparing import close, tensor


class Quartic(Function):
    """``x³ y``, without a rule for forward mode; the second output is a constant."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Any:
        ctx.save_for_backward(x, y)
        return x.detach() ** 3 * y, x.detach()

    @staticmethod
    def backward(ctx: Any, g: Tensor, _: Tensor) -> Any:
        x, y = ctx.saved_tensors
        return g * 3 * x**2 * y, g * x**3


class Declared(Function):
    """A square whose forward rule has a factor that nothing else has."""

    result: Any = None

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        ctx.save_for_forward(x)
        return x**2 if Declared.result is None else (x, x)

    @staticmethod
    def jvp(ctx: Any, t: Tensor) -> Any:
        return 100 * ctx.saved_tensors[0] * t


def test_custom_functions_have_tangents() -> None:
    """Those of their jvp, or of backward, differentiated; also nested, under vmap, and under grad."""
    x, t = cd.tensor([2.0]), cd.tensor([1.0])
    f = lambda x: Quartic.apply(x, x)[0]  # noqa: E731
    along = lambda x: jvp(f, (x,), (t,))[1]  # noqa: E731
    assert [part.item() for part in jvp(f, (x,), (t,))] == [16, 32]
    assert not along(x).requires_grad
    assert not x.requires_grad
    assert jvp(along, (x,), (t,))[1].item() == 48
    assert grad(lambda x: along(x).sum())(x).item() == 48
    assert jvp(grad(lambda x: f(x).sum()), (x,), (t,))[1].item() == 48
    assert vmap(lambda x: jvp(f, (x,), (t[0],))[1])(x).item() == 32
    assert jvp(Declared.apply, (x,), (t,))[1].item() == 200
    Declared.result = "two outputs"
    try:
        with pytest.raises(
            RuntimeError, match=r"Declared\.jvp returned .*: expected a tuple with a tangent or None for"
        ):
            jvp(Declared.apply, (x,), (t,))
    finally:
        Declared.result = None
    with pytest.raises(NotImplementedError, match=r"Function\.jvp is not implemented: forward mode differentiates"):
        Function.jvp(None)


class Cube(Function):
    """The cube, whose forward pass is opaque to derivatives."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return cd.as_tensor(np.asarray(x.tolist()) ** 3)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g

    @staticmethod
    def jvp(ctx: Any, t: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * t


def test_the_tangent_rule_of_a_function_serves_in_reverse_mode(rng: np.random.Generator) -> None:
    """Forward over reverse mode uses its ``jvp`` for the values that the backward pass reads."""
    x, t = tensor(rng, 3), tensor(rng, 3)
    value, along = jvp(grad(lambda x: Cube.apply(x).square().sum()), (x,), (t,))
    assert close(value, 6 * x**5)
    assert close(along, 30 * x**4 * t)


def test_hessians_of_a_function_with_a_tangent_rule(rng: np.random.Generator) -> None:
    """``jacfwd(jacrev)`` of a custom Function, whose gradients are of other levels than its inputs."""

    class Traced(Cube):
        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return x**3

    x = tensor(rng, 3)
    assert close(hessian(lambda x: Traced.apply(x).square().sum())(x), (30 * x**4).diag())


class StraightThrough(Function):
    """Rounding, whose derivative is that of the identity."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.round()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g


class StraightThroughOfContext(Function):
    """The same, with a context that ``forward`` gets."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.round()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g


@pytest.mark.parametrize("function", [StraightThrough, StraightThroughOfContext])
def test_second_derivatives_are_those_of_the_backward_pass_in_any_order(function: type[Function]) -> None:
    """Forward over reverse mode does not differentiate ``forward``, whose derivative differs."""
    f = lambda x: function.apply(x).square().sum()  # noqa: E731
    x, expected = cd.tensor([1.3, 2.7]), [[2, 0], [0, 2]]
    for outer, inner in product((jacfwd, jacrev), (jacfwd, jacrev)):
        assert outer(inner(f))(x).tolist() == expected
    assert vmap(hessian(f))(x.unsqueeze(0))[0].tolist() == expected


# -- vmap -------------------------------------------------------------------------------------------------------------
class NumpySort(Function):
    """Sorted numbers and their positions, computed by NumPy: ``vmap`` says how for several examples."""

    seen: ClassVar[list[Any]] = []

    @staticmethod
    def forward(x: Tensor, dim: int) -> Any:
        values = x.detach().numpy()
        order = np.argsort(values, dim)
        return cd.tensor(np.take_along_axis(values, order, dim)), cd.tensor(order), cd.tensor(np.argsort(order, dim))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _, order, inverse = output
        ctx.mark_non_differentiable(order, inverse)
        ctx.save_for_backward(order, inverse)
        ctx.dim = inputs[1]

    @staticmethod
    def backward(ctx: Any, g: Tensor, *_: Any) -> Any:
        order, inverse = ctx.saved_tensors
        return NumpyTake.apply(g, inverse, order, ctx.dim), None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], x: Tensor, dim: int) -> Any:
        NumpySort.seen.append((*info, in_dims))
        return NumpySort.apply(x.movedim(in_dims[0], 0), dim if dim < 0 else dim + 1), (0, 0, 0)


class NumpyTake(Function):
    """Elements at positions, by NumPy."""

    @staticmethod
    def forward(x: Tensor, index: Tensor, inverse: Tensor, dim: int) -> Tensor:
        return cd.tensor(np.take_along_axis(x.detach().numpy(), index.numpy(), dim))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        _, index, inverse, ctx.dim = inputs
        ctx.save_for_backward(index, inverse)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        index, inverse = ctx.saved_tensors
        return NumpyTake.apply(g, inverse, index, ctx.dim), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
        *tensors, dim = args
        rows = [
            t.expand(info.batch_size, *t.shape) if d is None else t.movedim(d, 0)
            for t, d in zip(tensors, in_dims, strict=False)
        ]
        return NumpyTake.apply(*rows, dim if dim < 0 else dim + 1), 0


def test_the_vmap_of_a_function_serves_all_orders_of_transforms(rng: np.random.Generator) -> None:
    """Values, gradients inside and around, nested batches and Hessians are those of the operator ``sort``."""
    w, xs = tensor(rng, 5), tensor(rng, 4, 5)
    own: Any = lambda x: (NumpySort.apply(x * x, -1)[0] * w).sum()  # noqa: E731
    sort: Any = lambda x: ((x * x).sort(-1).values * w).sum()  # noqa: E731
    NumpySort.seen.clear()
    assert close(vmap(own)(xs), vmap(sort)(xs))
    assert NumpySort.seen == [(4, "error", (0, None))]
    assert close(vmap(grad(own))(xs), vmap(grad(sort))(xs))
    assert close(grad(lambda x: vmap(own)(x).sum())(xs), grad(lambda x: vmap(sort)(x).sum())(xs))
    assert close(vmap(vmap(grad(own)))(xs.unsqueeze(1)), vmap(grad(sort))(xs).unsqueeze(1))
    assert close(vmap(hessian(own))(xs), vmap(hessian(sort))(xs))
    shared = vmap(lambda x: NumpySort.apply(w, 0)[0] * x)(xs)  # all examples share w: it is sorted once
    assert close(shared, w.sort().values * xs)


def test_the_vmap_of_a_function_may_write_to_its_input() -> None:
    """A tensor that it returns as it got it is the tensor of the caller, marked as dirty."""

    class AddOne(Function):
        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return x.add_(1)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.mark_dirty(inputs[0])

        @staticmethod
        def vmap(info: Any, in_dims: tuple[Any, ...], x: Tensor) -> Any:
            x.add_(1)
            return x, in_dims[0]

    def f(x: Tensor) -> Tensor:
        y = x * 2
        assert AddOne.apply(y) is y
        return y

    assert vmap(f)(cd.ones(2, 3)).tolist() == [[3] * 3] * 2


def test_a_vmap_that_returns_something_else_is_refused() -> None:
    """The errors name the function, what it returned, and what was expected."""
    x = cd.ones(2, 3)

    class Wrong(StraightThrough):
        returned: Any = None

        @staticmethod
        def vmap(info: Any, in_dims: tuple[Any, ...], x: Tensor) -> Any:
            return Wrong.returned

    for returned, text in (
        (x, r"Wrong\.vmap returned Tensor: expected a tuple of two elements, the outputs and their out_dims"),
        ((x, (0, 0)), r"Wrong\.vmap returned out_dims of structure .*: expected that of its outputs, \*"),
    ):
        Wrong.returned = returned
        with pytest.raises(RuntimeError, match=text):
            vmap(Wrong.apply)(x)
    Wrong.generate_vmap_rule = True
    with pytest.raises(RuntimeError, match="Wrong, but it has both generate_vmap_rule=True and an overridden vmap"):
        vmap(Wrong.apply)(x)
    with pytest.raises(NotImplementedError, match=r"Function\.vmap is not implemented: vmap runs forward on batched"):
        Function.vmap(None, ())
