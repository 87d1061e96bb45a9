"""Invalid calls of the products with Jacobians and Hessians, and the errors of ``strict``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import candelabra as cd
import pytest
from candelabra._autograd.transforms import grad as gradient
from candelabra._autograd.transforms import value_and_grad
from candelabra.autograd import Function, functional


class Refusal(NamedTuple):
    """An invalid call on the vector [1, 2]: an id, the call, the error's class and a pattern of its text."""

    name: str
    call: Callable[[Any], Any]
    error: type[Exception]
    text: str


def square(x: Any) -> Any:
    """Return one output per element."""
    return x * x


def total(x: Any) -> Any:
    """Return a scalar whose second derivative is not zero."""
    return (x * x * x).sum()


class Constant(Function):
    """Two outputs; the gradient is a multiple of the first output's gradient, or depends on neither."""

    @staticmethod
    def forward(ctx: Any, x: Any, index: int) -> Any:
        ctx.index = index
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return (g * 2, None) if ctx.index == 0 else (cd.ones(2), None)


class Detached(Function):
    """A scalar whose gradient requires grad only through another tensor."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return cd.ones(2, requires_grad=True) * 2


ONES = cd.ones(2)
R = RuntimeError
CALLS = [
    Refusal(
        "strategy",
        lambda x: functional.jacobian(square, x, strategy="sideways"),
        ValueError,
        r'Expected strategy to be either "forward-mode" or "reverse-mode"\. Hint: If your function has more outputs',
    ),
    Refusal(
        "forward-mode",
        lambda x: functional.jacobian(square, x, strategy="forward-mode"),
        NotImplementedError,
        r"Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for",
    ),
    Refusal(
        "hessian-forward-mode",
        lambda x: functional.hessian(total, x, outer_jacobian_strategy="forward-mode"),
        NotImplementedError,
        r"is only implemented for `vectorize=True`",
    ),
    Refusal(
        "strict-forward-mode",
        lambda x: functional.jacobian(square, x, strict=True, vectorize=True, strategy="forward-mode"),
        R,
        r'jacobian: `strict=True` and `strategy="forward-mode"` are not supported together',
    ),
    Refusal(
        "strict-vectorize",
        lambda x: functional.jacobian(square, x, strict=True, vectorize=True),
        R,
        r"jacobian: `strict=True` and `vectorize=True` are not supported together",
    ),
    Refusal(
        "inputs-list-of-numbers",
        lambda x: functional.vjp(square, 3.0),
        TypeError,
        r"The inputs given to vjp must be either a Tensor or a tuple of Tensors but the given inputs has type <class",
    ),
    Refusal(
        "inputs-with-a-number",
        lambda x: functional.jacobian(square, (x, 3.0)),
        TypeError,
        r"The inputs given to jacobian must be .* but the value at index 1 has type <class 'float'>",
    ),
    Refusal(
        "output-number",
        lambda x: functional.jvp(lambda a: 1.0, x, ONES),
        TypeError,
        r"The outputs of the user-provided function given to jvp must be .* has type <class 'float'>",
    ),
    Refusal(
        "output-with-a-number",
        lambda x: functional.vjp(lambda a: (a, None), x, ONES),
        TypeError,
        r"The outputs of the user-provided function given to vjp must be .* at index 1 has type <class 'NoneType'>",
    ),
    Refusal(
        "v-number",
        lambda x: functional.vjp(square, x, 3.0),
        TypeError,
        r"The v given to vjp must be either a Tensor or a tuple of Tensors but the given v has type <class 'float'>",
    ),
    Refusal(
        "vjp-without-v",
        lambda x: functional.vjp(square, x),
        R,
        r"The vector v can only be None if the user-provided function returns a single Tensor with a single element\.",
    ),
    Refusal(
        "jvp-without-v",
        lambda x: functional.jvp(square, x),
        R,
        r"The vector v can only be None if the input to the user-provided function is a single Tensor with a single",
    ),
    Refusal(
        "v-too-long",
        lambda x: functional.vjp(square, x, (ONES, ONES)),
        R,
        r"The given v should contain a single Tensor\.",
    ),
    Refusal(
        "v-too-short",
        lambda x: functional.jvp(lambda a, b: a * b, (x, x), ONES),
        R,
        r"v is a tuple of invalid length: should be 2 but got 1\.",
    ),
    Refusal(
        "v-entry-size",
        lambda x: functional.jvp(lambda a, b: a * b, (x, x), (ONES, cd.ones(3))),
        R,
        r"Entry 1 in v has invalid size: should be \[2\] but got \[3\]",
    ),
    Refusal(
        "hessian-of-a-pair",
        lambda x: functional.hessian(lambda a: (total(a), total(a)), x),
        R,
        r"The function given to hessian should return a single Tensor",
    ),
    Refusal(
        "vhp-of-a-vector",
        lambda x: functional.vhp(square, x, ONES),
        R,
        r"The Tensor returned by the function given to vhp should contain a single element",
    ),
    # strict
    Refusal(
        "jacobian-independent",
        lambda x: functional.jacobian(lambda a, b: (a * b, a * 2), (x, x), strict=True),
        R,
        r"Output 1 of the user-provided function is independent of input 1\. This is not allowed in strict mode\.",
    ),
    Refusal(
        "jacobian-constant",
        lambda x: functional.jacobian(lambda a: a * 2, x, strict=True, create_graph=True),
        R,
        r"The jacobian of the user-provided function is independent of input 0\. .*strict mode when create_graph=True",
    ),
    Refusal(
        "jvp-constant",
        lambda x: functional.jvp(lambda a: cd.ones(2), x, ONES, strict=True),
        R,
        r"Output 0 of the user-provided function does not require gradients\.",
    ),
    Refusal(
        "jvp-independent",
        lambda x: functional.jvp(lambda a, b: a * 2, (x, x), (ONES, ONES), strict=True),
        R,
        r"The output of the user-provided function is independent of input 1\. This is not allowed in strict mode\.",
    ),
    Refusal(
        "jvp-gradient-from-nowhere",
        lambda x: functional.jvp(lambda a: Constant.apply(a, 1)[0], x, ONES, strict=True),
        R,
        r"The gradient with respect to input 0 is independent of the inputs of the user-provided function\.",
    ),
    Refusal(
        "jvp-forgets-an-output",
        lambda x: functional.jvp(lambda a: Constant.apply(a, 0), x, ONES, strict=True),
        R,
        r"The gradient with respect to the input is independent of entry 1 in the grad_outputs when using the double",
    ),
    Refusal(
        "vjp-independent",
        lambda x: functional.vjp(lambda a, b: a * 2, (x, x), ONES, strict=True),
        R,
        r"The output of the user-provided function is independent of input 1\. This is not allowed in strict mode\.",
    ),
    Refusal(
        "vjp-linear-with-graph",
        lambda x: functional.vjp(lambda a: a * 2, x, ONES, strict=True, create_graph=True),
        R,
        r"The jacobian of the user-provided function is independent of input 0\. .* strict mode when create_graph=True",
    ),
    Refusal(
        "vhp-linear",
        lambda x: functional.vhp(lambda a: a.sum(), x, ONES, strict=True),
        R,
        r"While computing the hessian, found that the jacobian of the user-provided function with respect to input 0",
    ),
    Refusal(
        "hessian-linear",
        lambda x: functional.hessian(lambda a: a.sum(), x, strict=True),
        R,
        r"While computing the hessian, found that the jacobian of the user-provided function with respect to input 0",
    ),
    Refusal(
        "vhp-quadratic-with-graph",
        lambda x: functional.vhp(lambda a: (a * a).sum(), x, ONES, strict=True, create_graph=True),
        R,
        r"The hessian of the user-provided function is independent of input 0\. .* strict mode when create_graph=True",
    ),
    Refusal(
        "vhp-of-a-sum",
        lambda x: functional.vhp(lambda a, b: total(a), (x, x), (ONES, ONES), strict=True),
        R,
        r"The output of the user-provided function is independent of input 1\. This is not allowed in strict mode\.",
    ),
    Refusal(
        "vhp-detached",
        lambda x: functional.vhp(Detached.apply, x, ONES, strict=True),
        R,
        r"The jacobian of the user-provided function is independent of input 0\. This is not allowed in strict mode\.",
    ),
    Refusal(
        "hessian-separable",
        lambda x: functional.hessian(lambda a, b: total(a) + total(b), (x, x), strict=True),
        R,
        r"Output 0 of the user-provided function is independent of input 1\. This is not allowed in strict mode\.",
    ),
    # gradients of Python functions
    Refusal(
        "aux-missing",
        lambda x: value_and_grad(total, has_aux=True)(x),
        TypeError,
        r"grad: with has_aux=True total must return a pair \(output, aux\), got Tensor",
    ),
    Refusal(
        "complex-output",
        lambda x: gradient(lambda a: (a * 1j).sum())(x),
        R,
        r"grad: <lambda> must return a real number, got candelabra\.complex64",
    ),
]


@pytest.mark.parametrize("row", CALLS, ids=[row.name for row in CALLS])
def test_a_refused_call_leaves_its_input_as_it_was(row: Refusal) -> None:
    """The error names the output or input; the caller's tensor gets no gradient, graph or write."""
    x = cd.tensor([1.0, 2.0])
    with pytest.raises(row.error, match=row.text):
        row.call(x)
    assert (x.tolist(), x._version, x.requires_grad, x.grad) == ([1.0, 2.0], 0, False, None)
    assert cd.is_grad_enabled()
