"""Powers and roots: ``pow``, ``square``, ``sqrt``, ``hypot``, ``float_power``."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.creation.filled import new_full, zeroed
from candelabra._operators.elementwise.complex import conj_of
from candelabra._operators.elementwise.selection import where
from candelabra._operators.inquiry import result_type
from candelabra._records.autocasting import Autocast
from candelabra._records.callables import public
from candelabra._records.promotion import to_double, to_float, to_integer
from candelabra._records.record import operator
from candelabra._records.rules import pointwise
from candelabra.dtypes import dtype

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor


@operator(pointwise, accepts="numeric", autocast=Autocast("float32"))
def pow(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """``input ** exponent``. Raises ``RuntimeError`` for integers to negative powers."""
    ...


def _pow_base(g: Tensor, input: Tensor, exponent: Any) -> Tensor:
    # x**0 has derivative 0 everywhere, also at x = 0, where 0 * 0**-1 would be NaN.
    if not hasattr(exponent, "_payload"):
        if exponent == 0:
            return zeroed(g)
        return g * conj_of((input if exponent == 2 else input ** (exponent - 1)) * exponent)
    slope = exponent * input ** where(exponent == 0, 1.0, exponent - 1)
    return g * conj_of(slope.masked_fill(exponent == 0, 0))


def _pow_exponent(g: Tensor, input: Any, exponent: Tensor, out: Tensor) -> Tensor:
    # d/dy x**y = x**y log x; at x = 0 the limit is 0 wherever y >= 0.
    base = input if hasattr(input, "_payload") else new_full(out, (), input)
    flat = base == 0
    if not out.is_complex():
        flat = flat & (exponent >= 0)
    return g * conj_of((out * base.log()).masked_fill(flat, 0))


pow.vjp(input=_pow_base, exponent=_pow_exponent)


@operator(pointwise, result=to_double, inplace=False)
def float_power(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """``input ** exponent`` computed in float64, or in complex128 if either is complex."""
    wide = to_double(result_type(input, exponent))
    return pow.function(_cast_tensor(input, wide), _cast_tensor(exponent, wide))


def _cast_tensor(value: Any, d: dtype) -> Any:
    return value.to(d) if hasattr(value, "_payload") else value


@public(is_function=False)
def float_power_(input: Tensor, exponent: Tensor | Number) -> Tensor:
    """Compute :func:`float_power` in place. Raises ``RuntimeError`` unless the tensor has the dtype of the result."""
    needed = to_double(result_type(input, exponent))
    if needed is not input.dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {input.dtype.title} but the operation's result "
            f"requires dtype {needed.title}"
        )
    return pow.form("inplace")(input, exponent)


@operator(pointwise, promote=to_integer)
def square(input: Tensor) -> Tensor:
    """``input * input``."""
    return input * input


square.vjp(input=lambda g, input: g * conj_of(input) * 2)


@operator(pointwise, promote=to_float)
def sqrt(input: Tensor) -> Tensor:
    """Return the square root; NaN below 0."""
    ...


sqrt.vjp(input=lambda g, out: g / (conj_of(out) * 2))


@operator(pointwise, promote=to_float, autocast=Autocast("float32"))
def rsqrt(input: Tensor) -> Tensor:
    """``1 / sqrt(input)``."""
    return 1 / sqrt(input)


rsqrt.vjp(input=lambda g, out: g * (out * out * out).conj() * -0.5)


@operator(pointwise, accepts="real floating")
def hypot(input: Tensor, other: Tensor) -> Tensor:
    """``sqrt(input**2 + other**2)`` without intermediate overflow."""
    ...


hypot.vjp(
    input=lambda g, input, out: g * (input / out),
    other=lambda g, other, out: g * (other / out),
)
