"""Element by element, two tensors or a tensor and a number: arithmetic and choice."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.primitives.creation import zeroed
from candelabra._operators.primitives.pointwise import conj
from candelabra._records.derivative import applied
from candelabra._records.promotion import to_float
from candelabra._records.record import operator
from candelabra._records.rules import pointwise

if TYPE_CHECKING:
    from candelabra.typing import Mask, Number, Tensor


@operator(pointwise, public=False)
def add(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input + other``. Integers wrap; bools give their disjunction."""
    ...


add.vjp(input=lambda g: g, other=lambda g: g)


@operator(pointwise, accepts="numeric operands", public=False)
def sub(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input - other``. Bools are refused, also beside numbers: use ``logical_xor`` or ``logical_not``."""
    ...


sub.vjp(input=lambda g: g, other=lambda g: -g)


@operator(pointwise, aliases=("multiply",))
def mul(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input * other``. Bools give their conjunction."""
    ...


mul.vjp(input=lambda g, other: g * conj(other), other=lambda g, input: g * conj(input))
mul.vjp_of_reals(input=applied(mul, "g", "other"), other=applied(mul, "g", "input"))


@operator(pointwise, promote=to_float, public=False)
def div(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """True division: of integers too, in the default floating dtype."""
    ...


div.vjp(
    input=lambda g, other: g / conj(other),
    other=lambda g, other, out: -g * conj(out) / conj(other),
)


@operator(pointwise, accepts="real numeric")
def floor_divide(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``floor(input / other)`` as Python's ``//``; integer division by 0 raises."""
    ...


floor_divide.vjp(input=zeroed, other=zeroed)


@operator(pointwise, accepts="real numeric")
def trunc_divide(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``trunc(input / other)`` as C's ``/`` on integers; integer division by 0 raises."""
    ...


trunc_divide.vjp(input=zeroed, other=zeroed)


@operator(pointwise, accepts="real numeric")
def remainder(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Python's ``%``: the result has the sign of the divisor; integer remainder by 0 raises."""
    ...


remainder.vjp(input=lambda g: g, other=lambda g, input, other: -g * floor_divide(input, other))


@operator(pointwise, accepts="real numeric")
def fmod(input: Tensor, other: Tensor | Number) -> Tensor:
    """C's ``fmod``: the result has the sign of the dividend; integer remainder by 0 raises."""
    ...


fmod.vjp(input=lambda g: g, other=lambda g, input, other: -g * trunc_divide(input, other))


@operator(pointwise, accepts="numeric")
def pow(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """``input ** exponent``; integers to negative powers raise."""
    ...


def _pow_base(g: Tensor, input: Tensor, exponent: Any) -> Tensor:
    # x**0 has derivative 0 everywhere, x = 0 too, where 0 * 0**-1 would be NaN.
    if not hasattr(exponent, "_payload"):
        return zeroed(g) if exponent == 0 else g * conj(input ** (exponent - 1) * exponent)
    slope = exponent * input ** where(exponent == 0, 1.0, exponent - 1)
    return g * conj(slope.masked_fill(exponent == 0, 0))


def _pow_exponent(g: Tensor, input: Any, exponent: Tensor, out: Tensor) -> Tensor:
    # d/dy x**y = x**y log x; at x = 0 the limit is 0 wherever y >= 0.
    from candelabra._operators.primitives.creation import full

    base = input if hasattr(input, "_payload") else full((), input, dtype=out.dtype, device=out.device)
    flat = base == 0
    if not out.is_complex():
        flat = flat & (exponent >= 0)
    return g * conj((out * base.log()).masked_fill(flat, 0))


pow.vjp(input=_pow_base, exponent=_pow_exponent)


@operator(pointwise, accepts="real")
def maximum(input: Tensor, other: Tensor) -> Tensor:
    """The larger of the two; NaN where either is NaN."""
    ...


def _share(g: Tensor, wins: Tensor, ties: Tensor) -> Tensor:
    # Where both are equal, each gets half.
    return (
        (g / 2)
        .masked_fill(wins.logical_not() & ties.logical_not(), 0)
        .where(ties, g.masked_fill(wins.logical_not(), 0))
    )


maximum.vjp(
    input=lambda g, input, other: _share(g, input > other, input == other),
    other=lambda g, input, other: _share(g, other > input, input == other),
)


@operator(pointwise, accepts="real")
def minimum(input: Tensor, other: Tensor) -> Tensor:
    """The smaller of the two; NaN where either is NaN."""
    ...


minimum.vjp(
    input=lambda g, input, other: _share(g, input < other, input == other),
    other=lambda g, input, other: _share(g, other < input, input == other),
)


@operator(pointwise, accepts="real", promote=to_float, aliases=("arctan2",))
def atan2(input: Tensor, other: Tensor) -> Tensor:
    """The angle of the point (other, input) in (-pi, pi]."""
    ...


atan2.vjp(
    input=lambda g, input, other: g * other / (input * input + other * other),
    other=lambda g, input, other: g * -input / (input * input + other * other),
)


@operator(pointwise, method=False, inplace=False, public=False)
def where(condition: Mask, input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input`` where ``condition`` holds, else ``other``; all three broadcast."""
    ...


where.vjp(
    input=lambda g, condition: where(condition, g, 0),
    other=lambda g, condition: where(condition, 0, g),
)


@operator(pointwise, inplace=True, public=False)
def masked_fill(input: Tensor | Number, mask: Mask, value: Tensor | Number) -> Tensor:
    """``input`` with ``value`` (a number or a 0-d tensor) where ``mask`` holds. The mask broadcasts."""
    return where(mask, value, input)


def _as_tensor(bound: Any, like: Tensor) -> Tensor:
    from candelabra._operators.primitives.creation import full

    out: Tensor = bound if hasattr(bound, "_payload") else full((), bound, dtype=like.dtype, device=like.device)
    return out


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


@operator(pointwise, accepts="floating")
def lerp(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """``input + weight * (end - input)``, computed from the nearer end: a weight of 1 gives ``end`` exactly."""
    span = end - input
    if isinstance(weight, (int, float, complex)):
        return input + span * weight if -0.5 < weight.real < 0.5 else end - span * (1 - weight)
    return where(weight.abs() < 0.5, input + weight * span, end - span * (1 - weight))


lerp.vjp(
    input=lambda g, weight: g * (1 - conj(weight)),
    end=lambda g, weight: g * conj(weight),
    weight=lambda g, input, end: g * conj(end - input),
)


@operator(pointwise)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``."""
    return input + (tensor1 * tensor2 if value == 1 else tensor1 * value * tensor2)


addcmul.vjp(
    input=lambda g: g,
    tensor1=lambda g, tensor2, value: g * conj(tensor2) * conj(value),
    tensor2=lambda g, tensor1, value: g * conj(tensor1) * conj(value),
)


@operator(pointwise, accepts="floating")
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``."""
    return input + (tensor1 / tensor2 if value == 1 else tensor1 * value / tensor2)


addcdiv.vjp(
    input=lambda g: g,
    tensor1=lambda g, tensor2, value: g / conj(tensor2) * conj(value),
    tensor2=lambda g, tensor1, tensor2, value: -g * conj(tensor1 / (tensor2 * tensor2)) * conj(value),
)
