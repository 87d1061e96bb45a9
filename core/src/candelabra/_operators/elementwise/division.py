"""Quotients and remainders, and the greatest common divisor."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.creation.filled import zeroed
from candelabra._operators.elementwise.complex import conj_of
from candelabra._operators.elementwise.selection import where
from candelabra._records.autocasting import Autocast
from candelabra._records.callables import public
from candelabra._records.derivative import applied, conjugate
from candelabra._records.overloads import overloads
from candelabra._records.promotion import to_float
from candelabra._records.record import Operator, operator
from candelabra._records.rules import checked_pointwise, pointwise

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor


# -- quotients --------------------------------------------------------------------------------------------------------
@operator(pointwise, promote=to_float, public=False)
def div(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input / other``, true division; for integers in the default floating dtype."""
    ...


div.vjp(
    input=applied(div, "g", conjugate("other")),
    other=lambda g, other, out: -g * conj_of(out) / conj_of(other),
)


@operator(pointwise, accepts="real numeric")
def floor_divide(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``floor(input / other)`` as Python's ``//``. Raises ``ZeroDivisionError`` for integers divided by 0."""
    ...


@operator(pointwise, accepts="real numeric")
def trunc_divide(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``trunc(input / other)`` as C's ``/`` on integers. Raises ``ZeroDivisionError`` for integers divided by 0."""
    ...


floor_divide.vjp(input=zeroed, other=zeroed)
trunc_divide.vjp(input=zeroed, other=zeroed)


def _rounded(rounding_mode: str) -> Operator[..., Tensor]:
    if rounding_mode == "floor":
        return floor_divide
    if rounding_mode == "trunc":
        return trunc_divide
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


@operator(
    checked_pointwise(lambda input, other, rounding_mode: _rounded(rounding_mode)), accepts="real numeric", public=False
)
def div_rounded(input: Tensor | Number, other: Tensor | Number, *, rounding_mode: str) -> Tensor:
    """Return the quotient rounded down (``rounding_mode="floor"``) or towards 0 (``"trunc"``); integers stay
    integers.
    """
    return _rounded(rounding_mode).function(input, other)


@div_rounded.in_place
def _div_rounded_in_place(input: Tensor, other: Any, *, rounding_mode: str) -> Tensor:
    return _rounded(rounding_mode).form("inplace")(input, other)


div_overloads = overloads("div", div, div_rounded, inplace=True, aliases=("divide", "true_divide"))


@operator(pointwise, promote=to_float, autocast=Autocast("float32"))
def reciprocal(input: Tensor) -> Tensor:
    """``1 / input``."""
    return 1 / input


reciprocal.vjp(input=lambda g, out: -g * (out * out).conj())


@public(is_function=False, method="__rdiv__")
def rdiv(input: Tensor, other: Tensor | Number) -> Tensor:
    """``other / input``; the name is that of the method in Python 2."""
    return input.reciprocal() * other


# -- remainders -------------------------------------------------------------------------------------------------------
@operator(pointwise, accepts="real numeric")
def remainder(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return Python's ``%``: it has the sign of the divisor. Raises ``ZeroDivisionError`` for integers divided by 0."""
    ...


@operator(pointwise, accepts="real numeric")
def fmod(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return C's ``fmod``: it has the sign of the dividend. Raises ``ZeroDivisionError`` for integers divided by 0."""
    ...


remainder.vjp(input=lambda g: g, other=lambda g, input, other: -g * floor_divide(input, other))
fmod.vjp(input=lambda g: g, other=lambda g, input, other: -g * trunc_divide(input, other))


# -- divisors and multiples -------------------------------------------------------------------------------------------
STEPS = {1: 12, 2: 23, 4: 46, 8: 93}
"""The maximum number of steps of Euclid's algorithm, by the size of a dtype in bytes. Source: Lamé's theorem; the worst
operands are consecutive Fibonacci numbers."""


@operator(pointwise, accepts="integer")
def gcd(input: Tensor, other: Tensor) -> Tensor:
    """Return the non-negative greatest common divisor; ``gcd(0, x)`` is ``abs(x)``. Bools are not supported.

    Source: Euclid's algorithm on all elements at once.
    """
    a, b = input.abs(), other.abs()
    for _ in range(STEPS[input.dtype.itemsize]):
        done = b == 0
        a, b = where(done, a, b), where(done, 0, a % b.masked_fill(done, 1))
    return a


@operator(pointwise, accepts="integer")
def lcm(input: Tensor, other: Tensor) -> Tensor:
    """Return the non-negative least common multiple; 0 if either is 0. Bools are not supported."""
    divisor = gcd(input, other)
    return (input // divisor.masked_fill(divisor == 0, 1) * other).abs()


for _of_integers in (gcd, lcm):
    _of_integers.no_gradient("integers")
