"""Products with logarithms, the terms of entropies: ``xlogy``, ``xlog1py``, ``entr``."""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.creation.filled import new_full
from candelabra._operators.elementwise.selection import where
from candelabra._records.promotion import to_float
from candelabra._records.record import operator
from candelabra._records.rules import pointwise

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor


@operator(pointwise, promote=to_float, accepts="real", aliases=("special.xlogy",))
def xlogy(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input * log(other)``, or 0 where ``input`` is 0, unless ``other`` is NaN."""
    other = _as_tensor(other, input)
    return where((input == 0) & ~other.isnan(), 0.0, input * other.log())


xlogy.vjp(
    input=lambda g, input, other: where((input == 0) & (other <= 0), 0, xlogy(g, other)),
    other=lambda g, input, other: g * (input / other),
)


@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_xlog1py(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input * log1p(other)``, or 0 where ``input`` is 0, unless ``other`` is NaN."""
    other = _as_tensor(other, input)
    return where((input == 0) & ~other.isnan(), 0.0, input * other.log1p())


special_xlog1py.vjp(
    input=lambda g, input, other: where((input == 0) & (other <= -1), 0, special_xlog1py(g, other)),
    other=lambda g, input, other: g * (input / (other + 1)),
)


def _as_tensor(value: Any, like: Any) -> Tensor:
    return value if hasattr(value, "_payload") else new_full(like, (), value)


@operator(pointwise, promote=to_float, accepts="real floating", namespace="special")
def special_entr(input: Tensor) -> Tensor:
    """``-input * log(input)``: 0 at 0, -inf below."""
    # Not -xlogy(input, input), which is -0 at 0.
    return xlogy(-input, input).masked_fill(input < 0, -math.inf)


special_entr.vjp(
    # The logarithm is NaN below 0, and so is the derivative.
    input=lambda g, input: g * (-input.log() - 1),
)
