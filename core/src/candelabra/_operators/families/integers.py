"""Element by element, on integers: common divisors and multiples."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.primitives.arithmetic import where
from candelabra._records.record import operator
from candelabra._records.rules import pointwise

if TYPE_CHECKING:
    from candelabra.typing import Tensor


@operator(pointwise, accepts="integer")
def gcd(input: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor, not negative; ``gcd(0, x)`` is ``abs(x)``. Bools are refused.

    Source: Euclid's algorithm on all elements at once, until the last of them is through.
    """
    a, b = input.abs(), other.abs()
    while b.any():
        divides = b == 0
        a, b = where(divides, a, b), where(divides, 0, a % b.masked_fill(divides, 1))
    return a.expand((a + b).shape).clone() if a.shape != (a + b).shape else a


@operator(pointwise, accepts="integer")
def lcm(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiple, not negative; 0 where either is 0. Bools are refused."""
    divisor = gcd(input, other)
    return (input // divisor.masked_fill(divisor == 0, 1) * other).abs()


for _whole in (gcd, lcm):
    _whole.no_gradient("integers")
