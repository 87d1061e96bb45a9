"""The error function and its relatives, and the normal distribution.

Source of the definitions: NIST Digital Library of Mathematical Functions, chapter 7.
"""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.elementwise.exponential import exp
from candelabra._operators.elementwise.selection import where
from candelabra._records.autocasting import Autocast
from candelabra._records.promotion import to_float
from candelabra._records.record import operator
from candelabra._records.rules import pointwise

if TYPE_CHECKING:
    from candelabra.typing import Tensor

SLOPE = 2 / math.sqrt(math.pi)
"""The derivative of erf at 0."""
DENSITY = 1 / math.sqrt(2 * math.pi)
"""The normal density at 0."""


@operator(pointwise, promote=to_float, accepts="real", aliases=("special.erf",))
def erf(input: Tensor) -> Tensor:
    """Return the error function, ``2/sqrt(pi) * integral of exp(-t*t) from 0 to input``."""
    ...


erf.vjp(input=lambda g, input: g * exp(-input * input) * SLOPE)


@operator(pointwise, promote=to_float, accepts="real", aliases=("special.erfc",))
def erfc(input: Tensor) -> Tensor:
    """``1 - erf(input)`` without cancellation for large inputs."""
    ...


erfc.vjp(input=lambda g, input: g * exp(-input * input) * -SLOPE)


@operator(pointwise, promote=to_float, accepts="real", aliases=("special.erfinv",), autocast=Autocast("float32"))
def erfinv(input: Tensor) -> Tensor:
    """Return the inverse of :func:`erf`: infinities at -1 and 1, NaN outside."""
    ...


erfinv.vjp(input=lambda g, out: g * exp(out * out) * (1 / SLOPE))


@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_erfcx(input: Tensor) -> Tensor:
    """``exp(input**2) * erfc(input)`` without overflow of the first and underflow of the second factor."""
    ...


special_erfcx.vjp(input=lambda g, input, out: g * (2 * input * out - SLOPE))


@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_ndtr(input: Tensor) -> Tensor:
    """Return the normal distribution function: the area under the density from minus infinity to ``input``.

    Source: ``(1 + erf(x / sqrt 2)) / 2`` near 0, ``erfc(-x / sqrt 2) / 2`` in the tails, where the sum would cancel.
    """
    scaled = input * math.sqrt(0.5)
    tail = erfc(scaled.abs()) / 2
    return where(scaled.abs() < 1, (1 + erf(scaled)) / 2, where(scaled < 0, tail, 1 - tail))


special_ndtr.vjp(input=lambda g, input: g * exp(input * input * -0.5) * DENSITY)


@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_ndtri(input: Tensor) -> Tensor:
    """Return the inverse of :func:`ndtr`: infinities at 0 and 1, NaN outside."""
    ...


special_ndtri.vjp(input=lambda g, out: g * exp(out * out * 0.5) * (1 / DENSITY))


@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_log_ndtr(input: Tensor) -> Tensor:
    """``log(ndtr(input))`` without underflow for very negative inputs."""
    scaled = input * math.sqrt(0.5)
    left = (special_erfcx(-scaled.clamp_max(0)) / 2).log() - scaled * scaled
    return where(input < 1, where(input < -1, left, special_ndtr(input).log()), (-erfc(scaled) / 2).log1p())


special_log_ndtr.vjp(input=lambda g, input: g / special_erfcx(input * -math.sqrt(0.5)) * (2 * DENSITY))
