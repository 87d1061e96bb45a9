"""Sums, differences and products: ``add``, ``sub``, ``mul``, ``addcmul``, ``lerp``; absolute values and signs."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._autograd.views import check_operand_overlap
from candelabra._codegen.adapters import FLOATING_BITS
from candelabra._operators.creation.filled import zeroed
from candelabra._operators.elementwise.complex import conj_of
from candelabra._operators.elementwise.selection import where
from candelabra._records.autocasting import Autocast
from candelabra._records.derivative import applied, conjugate
from candelabra._records.overloads import overloads
from candelabra._records.promotion import boolean, real_part, to_float, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import checked_pointwise, pointwise
from candelabra.dtypes import BOOL, COMPLEX, FLOATING, category_of_scalar

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor


# -- sums and differences -------------------------------------------------------------------------------------------
@operator(pointwise, public=False)
def add(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input + other``. Integers wrap around; bools give their disjunction."""
    ...


@operator(pointwise, accepts="numeric operands", public=False)
def sub(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input - other``. Raises ``NotImplementedError`` for a bool tensor: use ``logical_xor`` or ``logical_not``."""
    ...


add.vjp(input=lambda g: g, other=lambda g: g)
sub.vjp(input=lambda g: g, other=lambda g: -g)


def _category(value: Any) -> int:
    """Return the category of the dtype of a tensor or of a number."""
    return value.dtype.category if hasattr(value, "dtype") else category_of_scalar(value)


def _check_alpha(input: Any, other: Any, alpha: Number) -> None:
    kind = type(alpha)
    if kind is int or (kind is float and (getattr(input, "_keys", 0) | getattr(other, "_keys", 0)) & FLOATING_BITS):
        return
    category = max(_category(input), _category(other))
    if kind is bool and category != BOOL:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if kind is float and category < FLOATING:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if kind is complex and category != COMPLEX:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")


@operator(checked_pointwise(_check_alpha), public=False)
def add_scaled(input: Tensor | Number, other: Tensor | Number, *, alpha: Number) -> Tensor:
    """``input + alpha * other``; ``alpha`` must be an integer if both are."""
    if type(alpha) is not int:
        _check_alpha(input, other, alpha)
    return add.function(input, other * alpha)


@operator(checked_pointwise(_check_alpha), accepts="numeric operands", public=False)
def sub_scaled(input: Tensor | Number, other: Tensor | Number, *, alpha: Number) -> Tensor:
    """``input - alpha * other``; ``alpha`` must be an integer if both are."""
    _check_alpha(input, other, alpha)
    return sub.function(input, other * alpha)


@add_scaled.in_place
def _add_scaled_in_place(input: Tensor, other: Any, *, alpha: Number) -> Tensor:
    _check_alpha(input, other, alpha)
    check_operand_overlap(input, other)
    return add.form("inplace")(input, other * alpha)


@sub_scaled.in_place
def _sub_scaled_in_place(input: Tensor, other: Any, *, alpha: Number) -> Tensor:
    _check_alpha(input, other, alpha)
    check_operand_overlap(input, other)
    return sub.form("inplace")(input, other * alpha)


add_overloads = overloads("add", add, add_scaled, inplace=True)
sub_overloads = overloads("sub", sub, sub_scaled, inplace=True, aliases=("subtract",))


@operator(checked_pointwise(_check_alpha), accepts="numeric operands", method=False, inplace=False)
def rsub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """``other - alpha * input``."""
    _check_alpha(input, other, alpha)
    return sub.function(other, input if alpha == 1 else input * alpha)


@operator(pointwise, accepts="numeric", aliases=("negative",))
def neg(input: Tensor) -> Tensor:
    """``-input``. Unsigned integers wrap around. Raises ``NotImplementedError`` for bools."""
    ...


@operator(pointwise, accepts="numeric")
def positive(input: Tensor) -> Tensor:
    """``+input``: the input itself. Raises ``NotImplementedError`` for bools."""
    return input


neg.vjp(input=lambda g: -g)


# -- products -------------------------------------------------------------------------------------------------------
@operator(pointwise, aliases=("multiply",))
def mul(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input * other``. Bools give their conjunction."""
    ...


mul.vjp(input=applied(mul, "g", conjugate("other")), other=applied(mul, "g", conjugate("input")))


@operator(pointwise, autocast=Autocast("widest"))
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``."""
    return input + (tensor1 * tensor2 if value == 1 else tensor1 * value * tensor2)


addcmul.vjp(
    input=lambda g: g,
    tensor1=lambda g, tensor2, value: g * conj_of(tensor2) * conj_of(value),
    tensor2=lambda g, tensor1, value: g * conj_of(tensor1) * conj_of(value),
)


@operator(pointwise, accepts="floating", autocast=Autocast("widest"))
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``."""
    return input + (tensor1 / tensor2 if value == 1 else tensor1 * value / tensor2)


addcdiv.vjp(
    input=lambda g: g,
    tensor1=lambda g, tensor2, value: g / conj_of(tensor2) * conj_of(value),
    tensor2=lambda g, tensor1, tensor2, value: -g * conj_of(tensor1 / (tensor2 * tensor2)) * conj_of(value),
)


@operator(pointwise, accepts="floating")
def lerp(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """``input + weight * (end - input)``, computed from the nearer end: a weight of 1 gives ``end`` exactly."""
    span = end - input
    if isinstance(weight, (int, float, complex)):
        return input + span * weight if -0.5 < weight.real < 0.5 else end - span * (1 - weight)
    return where(weight.abs() < 0.5, input + weight * span, end - span * (1 - weight))


lerp.vjp(
    input=lambda g, weight: g * (1 - conj_of(weight)),
    end=lambda g, weight: g * conj_of(weight),
    weight=lambda g, input, end: g * conj_of(end - input),
)


# -- absolute values and signs -----------------------------------------------------------------------------------------
@operator(pointwise, result=real_part, aliases=("absolute",))
def abs(input: Tensor) -> Tensor:
    """Return the absolute value; for complex numbers the modulus, which is real."""
    ...


abs.vjp(input=lambda g, input: g * sgn(input))


@operator(pointwise, accepts="real")
def sign(input: Tensor) -> Tensor:
    """Return -1, 0 or 1; NaN is propagated."""
    ...


sign.vjp(input=zeroed)


@operator(pointwise)
def sgn(input: Tensor) -> Tensor:
    """``input / abs(input)``, 0 where the input is 0: :func:`sign` for complex numbers."""
    if not input.is_complex():
        return sign(input)
    size = abs(input)
    return input / size.masked_fill(size == 0, 1.0)


@operator(pointwise, promote=to_float, accepts="real")
def copysign(input: Tensor, other: Tensor | Number) -> Tensor:
    """Return the magnitude of ``input`` with the sign of ``other``, also of zeros and NaNs. Integers become floating
    first.
    """
    ...


# d|x|/dx is out/x; at 0, where it is undefined, the subgradient 0 is used.
copysign.vjp(
    input=lambda g, input, out: g * where(input == 0, 0, out / input),
    other=zeroed,
)


@operator(pointwise, result=boolean, accepts="real")
def signbit(input: Tensor) -> Tensor:
    """Return True where the sign bit is set: for negative numbers and -0.0."""
    ...


signbit.no_gradient("the result is bool")


def _check_dtypes(input: Any, values: Any) -> None:
    if input.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


@operator(checked_pointwise(_check_dtypes), accepts="real", promote=unpromoted)
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """Return 0 for a negative input or NaN, 1 for a positive one, ``values`` for 0. Raises ``RuntimeError`` if the
    dtypes differ.
    """
    _check_dtypes(input, values)
    return where(input == 0, values, (input > 0).to(input.dtype))


heaviside.vjp(input=zeroed, values=lambda g, input: where(input == 0, g, 0))
