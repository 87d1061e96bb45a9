"""Absolute values and signs: ``abs``, ``sign``, ``copysign``, ``heaviside``."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.elementwise.selection import where
from candelabra._operators.primitives.creation import zeroed
from candelabra._records.promotion import boolean, real_part, to_float, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import checked_pointwise, pointwise

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor


@operator(pointwise, result=real_part, aliases=("absolute",))
def abs(input: Tensor) -> Tensor:
    """The absolute value; of complex numbers the modulus, which is real."""
    ...


abs.vjp(input=lambda g, input: g * sgn(input))


@operator(pointwise, accepts="real")
def sign(input: Tensor) -> Tensor:
    """-1, 0 or 1; NaN stays NaN."""
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
    """The magnitude of ``input`` with the sign of ``other``, also of zeros and NaNs. Integers become floating first."""
    ...


# d|x|/dx is out/x, and 0 at 0, where it has no value.
copysign.vjp(
    input=lambda g, input, out: g * where(input == 0, 0, out / input),
    other=zeroed,
)


@operator(pointwise, result=boolean, accepts="real")
def signbit(input: Tensor) -> Tensor:
    """Where the sign bit is set: below 0, and at -0.0."""
    ...


signbit.no_gradient("the result is bool")


def _check_dtypes(input: Any, values: Any) -> None:
    if input.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


@operator(checked_pointwise(_check_dtypes), accepts="real", promote=unpromoted)
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below 0, 1 above, ``values`` at 0; NaN counts as below. ``RuntimeError`` where the dtypes differ."""
    _check_dtypes(input, values)
    return where(input == 0, values, (input > 0).to(input.dtype))


heaviside.vjp(input=zeroed, values=lambda g, input: where(input == 0, g, 0))
