"""A function of the distance of two numbers that is quadratic near 0 and linear beyond, and its derivative.

The mean square error, Huber's loss and the smooth L1 loss are its cases. Huber, Robust estimation of a location
parameter, 1964.
"""

from __future__ import annotations

from candelabra.dtypes import float32
from candelabra.library import operator, pointwise, record
from candelabra.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.typing import Tensor

where = record("where")

FLOATS = "real floating"


@operator(pointwise, accepts=FLOATS, public=False, method=False, out=False, inplace=False)
def huber(input: Tensor, target: Tensor, curve: float, width: float, slope: float) -> Tensor:
    """``curve * d**2`` for a distance d up to ``width``, and ``slope * (d - width / 2)`` beyond.

    The two parts meet if ``slope`` is ``2 * curve * width``.
    """
    if input.dtype.is_half:  # in float32, squares do not overflow
        return huber(input.to(float32), target.to(float32), curve, width, slope).to(input.dtype)
    distance = (input - target).abs()
    return where(distance > width, (distance - 0.5 * width) * slope, distance * distance * curve)


@operator(pointwise, accepts=FLOATS, public=False, method=False, out=False, inplace=False)
def huber_backward(grad: Tensor, input: Tensor, target: Tensor, curve: float, width: float) -> Tensor:
    """The gradient of huber's input, for parts that meet: ``grad * 2 * curve`` times the difference within ±width."""
    if grad.dtype.is_half:
        wide = huber_backward(grad.to(float32), input.to(float32), target.to(float32), curve, width)
        return wide.to(grad.dtype)
    return grad * ((input - target).clamp(-width, width) * (2 * curve))


def _huber_vjp(
    needs: tuple[bool, bool], g: Tensor, input: Tensor, target: Tensor, curve: float, width: float
) -> tuple[Tensor | None, Tensor | None]:
    to_input = huber_backward.canonical(g, input, target, curve, width)
    return (to_input if needs[0] else None), (-to_input if needs[1] else None)


huber.vjp(("input", "target"), _huber_vjp)
