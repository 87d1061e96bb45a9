"""Limits: ``clamp``, with a lower bound, an upper bound, or both."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.adapters import FLOATING_BITS
from candelabra._dispatch.inplace import writing
from candelabra._operators.elementwise.comparison import maximum, minimum
from candelabra._operators.elementwise.selection import where
from candelabra._operators.primitives.creation import new_full
from candelabra._records.record import operator
from candelabra._records.rules import checked_pointwise, pointwise
from candelabra.dtypes import category_of_scalar

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor


def _as_tensor(bound: Any, like: Tensor) -> Tensor:
    return bound if hasattr(bound, "_payload") else new_full(like, (), bound)


@operator(pointwise, accepts="real")
def clamp_min(input: Tensor, min: Tensor | Number) -> Tensor:
    """``max(input, min)``; NaN stays NaN."""
    return maximum(input, _as_tensor(min, input))


clamp_min.vjp(
    input=lambda g, input, min: where(input >= min, g, 0),
    min=lambda g, input, min: where(input < min, g, 0),
)


@operator(pointwise, accepts="real")
def clamp_max(input: Tensor, max: Tensor | Number) -> Tensor:
    """``min(input, max)``; NaN stays NaN."""
    return minimum(input, _as_tensor(max, input))


clamp_max.vjp(
    input=lambda g, input, max: where(input <= max, g, 0),
    max=lambda g, input, max: where(input > max, g, 0),
)


def _check_bounds(input: Any, min: Any, max: Any) -> None:
    if min is None and max is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None")


@operator(checked_pointwise(_check_bounds), accepts="real", aliases=("clip",))
def clamp(input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
    """``input`` limited to [min, max]; either may be a tensor, a number or None. NaN stays NaN.

    Where ``min`` is above ``max`` the result is ``max``. A floating bound makes integers floating.
    """
    if min is None:
        _check_bounds(input, min, max)
        return clamp_max.function(input, max)
    limited = clamp_min.function(input, min)
    return limited if max is None else clamp_max.function(limited, max)


@clamp.in_place
def _clamp_in_place(input: Tensor, min: Any, max: Any) -> Tensor:
    if min is None:
        _check_bounds(input, min, max)
        return clamp_max.form("inplace")(input, max)
    if max is None:
        return clamp_min.form("inplace")(input, min)
    floats = input._keys & FLOATING_BITS and type(max) in (float, int)
    if not floats and (hasattr(max, "_payload") or category_of_scalar(max) > input.dtype.category):
        return writing(clamp)(input, min, max)  # nothing is written unless both bounds fit
    return clamp_max.form("inplace")(clamp_min.form("inplace")(input, min), max)
