"""``sigmoid``, its inverse ``logit``, and ``relu``. The other activation functions are in ``candelabra.nn``."""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING
from candelabra._layout import broadcast_shapes
from candelabra._operators.elementwise.complex import conj_of
from candelabra._operators.elementwise.exponential import exp
from candelabra._operators.elementwise.selection import where
from candelabra._records.derivative import applied
from candelabra._records.promotion import to_float
from candelabra._records.record import operator
from candelabra._records.rules import pointwise

if TYPE_CHECKING:
    from candelabra.typing import Tensor


@operator(pointwise, promote=to_float, aliases=("special.expit",))
def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-input))``."""
    return 1 / (1 + exp(-input))


@operator(pointwise, accepts="floating", public=False, inplace=False)
def sigmoid_backward(grad: Tensor, output: Tensor) -> Tensor:
    """Return the gradient of sigmoid's input: ``grad * conj(output * (1 - output))``."""
    return grad * conj_of(output * (1 - output))


sigmoid_backward.vjp(
    grad=lambda g, output: g * (output * (1 - output)),
    output=lambda g, grad, output: conj_of(g) * grad * conj_of(1 - 2 * output),
)
sigmoid.vjp(input=applied(sigmoid_backward, "g", "out"))


@operator(pointwise, accepts="real numeric")
def relu(input: Tensor) -> Tensor:
    """``max(input, 0)``; NaN is propagated."""
    return input.clamp_min(0)


@operator(pointwise, accepts="real", public=False, method=False, out=False, inplace=False)
def relu_backward(grad: Tensor, output: Tensor) -> Tensor:
    """Return the gradient of relu's input: ``grad`` where ``output`` is above 0 or NaN, else 0."""
    broadcast_shapes(grad.shape, output.shape)  # masked_fill would name the shapes in the other order
    return grad.masked_fill(output <= 0, 0)


relu.vjp(input=applied(relu_backward, "g", "out"))


@operator(pointwise, promote=to_float, accepts="real", aliases=("special.logit",))
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """``log(input / (1 - input))``: NaN outside [0, 1], unless ``eps`` clamps the input to [eps, 1 - eps] first."""
    if eps is not None:
        input = input.clamp_min(eps).clamp_max(1 - eps)
    return (input / (1 - input)).log()


def _logit_vjp(g: Tensor, input: Tensor, eps: float | None) -> Tensor:
    low, outside = (0.0, math.nan) if eps is None else (eps, 0.0)
    return where((input < low) | (input > 1 - low), outside, g / (input * (1 - input)))


logit.vjp(input=_logit_vjp)
