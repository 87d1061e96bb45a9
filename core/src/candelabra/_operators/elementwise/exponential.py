"""Exponentials and logarithms, element by element."""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.elementwise.arithmetic import sub
from candelabra._operators.elementwise.comparison import maximum
from candelabra._operators.elementwise.complex import conj_of
from candelabra._operators.elementwise.selection import where
from candelabra._records.autocasting import Autocast
from candelabra._records.promotion import to_float
from candelabra._records.record import operator
from candelabra._records.rules import pointwise

if TYPE_CHECKING:
    from candelabra.typing import Tensor


LN2, LN10 = math.log(2.0), math.log(10.0)


@operator(pointwise, promote=to_float, autocast=Autocast("float32"))
def exp(input: Tensor) -> Tensor:
    """``e**input``."""
    ...


exp.vjp(input=lambda g, out: g * conj_of(out))


@operator(pointwise, promote=to_float, aliases=("special.exp2",))
def exp2(input: Tensor) -> Tensor:
    """``2**input``."""
    ...


exp2.vjp(input=lambda g, out: g * conj_of(out) * LN2)


@operator(pointwise, promote=to_float, aliases=("special.expm1",), autocast=Autocast("float32"))
def expm1(input: Tensor) -> Tensor:
    """``exp(input) - 1`` without cancellation near 0."""
    ...


expm1.vjp(input=lambda g, out: g * (conj_of(out) + 1))


@operator(pointwise, promote=to_float, autocast=Autocast("float32"))
def log(input: Tensor) -> Tensor:
    """Return the natural logarithm; NaN below 0, -inf at 0."""
    ...


log.vjp(input=lambda g, input: g / conj_of(input))


@operator(pointwise, promote=to_float, autocast=Autocast("float32"))
def log2(input: Tensor) -> Tensor:
    """Return the logarithm to base 2."""
    ...


log2.vjp(input=lambda g, input: g / (conj_of(input) * LN2))


@operator(pointwise, promote=to_float, autocast=Autocast("float32"))
def log10(input: Tensor) -> Tensor:
    """Return the logarithm to base 10."""
    ...


log10.vjp(input=lambda g, input: g / (conj_of(input) * LN10))


@operator(pointwise, promote=to_float, aliases=("special.log1p",), autocast=Autocast("float32"))
def log1p(input: Tensor) -> Tensor:
    """``log(1 + input)`` without cancellation near 0."""
    ...


log1p.vjp(input=lambda g, input: g / (conj_of(input) + 1))


# -- sums of exponentials ---------------------------------------------------------------------------------------------
def _weight(x: Tensor, other: Tensor, scale: float) -> Tensor:
    """Return ``exp(x) / (exp(x) + exp(other))``, conjugated: the derivative of the logarithm of the sum with respect to
    x.
    """
    return conj_of(1 / (1 + ((other - x) * scale).exp()))


@operator(pointwise, accepts="floating", inplace=False)
def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """``log(exp(input) + exp(other))`` without overflow; also of complex numbers."""
    return _log_of_sum(input, other, 1.0)


@operator(pointwise, accepts="real floating", inplace=False)
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """``log2(2**input + 2**other)`` without overflow."""
    return _log_of_sum(input, other, LN2)


def _log_of_sum(input: Tensor, other: Tensor, scale: float) -> Tensor:
    # m + log1p(exp(-|a - b|)), where m is the larger of a and b. Equal infinities would give NaN as their difference.
    if input.is_complex():
        first = input.real >= other.real
        high, low = where(first, input, other), where(first, other, input)
        same = (high == low) & ~high.isfinite()
        return where(same, high, high + (low - high).exp().log1p())
    high = maximum(input, other)
    gap = sub(input, other).abs().masked_fill(input == other, 0.0)
    return high + (gap * -scale).exp().log1p() / scale


logaddexp.vjp(
    input=lambda g, input, other: g * _weight(input, other, 1.0),
    other=lambda g, input, other: g * _weight(other, input, 1.0),
)
logaddexp2.vjp(
    input=lambda g, input, other: g * _weight(input, other, LN2),
    other=lambda g, input, other: g * _weight(other, input, LN2),
)
