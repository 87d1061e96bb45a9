"""Rounding: to integers, and to decimals."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.creation.filled import zeroed
from candelabra._records.record import operator
from candelabra._records.rules import checked_pointwise, pointwise
from candelabra.dtypes import FLOATING

if TYPE_CHECKING:
    from candelabra.typing import Tensor


@operator(pointwise, accepts="real numeric")
def floor(input: Tensor) -> Tensor:
    """Return the largest integer not above the input."""
    ...


@operator(pointwise, accepts="real numeric")
def ceil(input: Tensor) -> Tensor:
    """Return the smallest integer not below the input."""
    ...


@operator(pointwise, accepts="real numeric", aliases=("fix",))
def trunc(input: Tensor) -> Tensor:
    """Return the integer part: the input rounded towards 0."""
    ...


def _check_decimals(input: Any, decimals: int) -> None:
    if decimals and input.dtype.category != FLOATING:
        kind = input.dtype.title
        raise NotImplementedError(f"\"round\" not implemented for '{kind}' with decimals: expected a floating dtype")


@operator(checked_pointwise(_check_decimals), accepts="real numeric", aliases=("special.round",))
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Return the nearest multiple of ``10**-decimals``, ties to even."""
    ...


for _step in (floor, ceil, trunc, round):
    _step.vjp(input=zeroed)


@operator(pointwise, accepts="real floating")
def frac(input: Tensor) -> Tensor:
    """Return the fractional part: ``input - trunc(input)``, with the sign of the input."""
    return input - input.trunc()


frac.vjp(input=lambda g: g)
