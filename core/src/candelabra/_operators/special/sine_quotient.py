"""The slope of ``sin(x) / x``, which two operators share: sinc and the spherical Bessel function of order 0."""

from __future__ import annotations

from math import factorial

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.primitives.arithmetic import where

if TYPE_CHECKING:
    from candelabra.typing import Tensor

SLOPES = tuple((-1) ** k * 2 * k / factorial(2 * k + 1) for k in range(1, 10))
"""Of the odd powers of x in the series of the slope; within 1 the next one is below the eps of float64."""


def sine_quotient_slope(x: Tensor) -> Tensor:
    """``(x cos(x) - sin(x)) / x**2``, the negative spherical Bessel function of order 1; 0 at 0.

    Within 1 the two terms cancel, and their own derivatives more so: there it is the Taylor series (from those of the
    sine and the cosine, NIST Digital Library of Mathematical Functions, 4.19.1 and 4.19.2).
    """
    near = x.abs() < 1
    small, far = x.masked_fill(near.logical_not(), 0), x.masked_fill(near, 1)
    square = small * small
    series = square * SLOPES[-1]
    for slope in SLOPES[-2:0:-1]:
        series = (series + slope) * square
    return where(near, (series + SLOPES[0]) * small, (far.cos() - far.sin() / far) / far)
