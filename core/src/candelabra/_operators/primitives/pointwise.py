"""Element by element, one tensor: each is a function and its derivative.

Derivatives of complex functions follow PyTorch's convention: for holomorphic f the rule is ``g * conj(f')``.
"""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.primitives.creation import zeroed
from candelabra._records.derivative import applied
from candelabra._records.promotion import boolean, real_part, to_float, to_integer
from candelabra._records.record import operator
from candelabra._records.rules import pointwise
from candelabra.dtypes import FLOATING, PYTHON_NAMES, complex64, complex128

if TYPE_CHECKING:
    from candelabra.typing import Tensor

LN2, LN10 = math.log(2.0), math.log(10.0)
COMPLEX_BITS = complex64.bit | complex128.bit


def conj(x: Any) -> Any:
    """The conjugate of a tensor or number; what is real comes back as it is, at the price of one bit test."""
    try:
        return conj_physical(x) if x._keys & COMPLEX_BITS else x
    except AttributeError:
        return x.conjugate()


@operator(pointwise, accepts="numeric", aliases=("negative",))
def neg(input: Tensor) -> Tensor:
    """``-input``. Unsigned integers wrap; bools are refused."""
    ...


neg.vjp(input=lambda g: -g)


@operator(pointwise, accepts="numeric")
def positive(input: Tensor) -> Tensor:
    """``+input``: the input itself. Bools are refused."""
    return input


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


@operator(pointwise, promote=to_float)
def exp(input: Tensor) -> Tensor:
    """``e**input``."""
    ...


exp.vjp(input=lambda g, out: g * conj(out))


@operator(pointwise, promote=to_float, aliases=("special.exp2",))
def exp2(input: Tensor) -> Tensor:
    """``2**input``."""
    ...


exp2.vjp(input=lambda g, out: g * conj(out) * LN2)


@operator(pointwise, promote=to_float, aliases=("special.expm1",))
def expm1(input: Tensor) -> Tensor:
    """``exp(input) - 1`` without the cancellation near 0."""
    ...


expm1.vjp(input=lambda g, out: g * (conj(out) + 1))


@operator(pointwise, promote=to_float)
def log(input: Tensor) -> Tensor:
    """The natural logarithm; NaN below 0, -inf at 0."""
    ...


log.vjp(input=lambda g, input: g / conj(input))


@operator(pointwise, promote=to_float)
def log2(input: Tensor) -> Tensor:
    """The logarithm to base 2."""
    ...


log2.vjp(input=lambda g, input: g / (conj(input) * LN2))


@operator(pointwise, promote=to_float)
def log10(input: Tensor) -> Tensor:
    """The logarithm to base 10."""
    ...


log10.vjp(input=lambda g, input: g / (conj(input) * LN10))


@operator(pointwise, promote=to_float, aliases=("special.log1p",))
def log1p(input: Tensor) -> Tensor:
    """``log(1 + input)`` without the cancellation near 0."""
    ...


log1p.vjp(input=lambda g, input: g / (conj(input) + 1))


@operator(pointwise, promote=to_float)
def sqrt(input: Tensor) -> Tensor:
    """The square root; NaN below 0."""
    ...


sqrt.vjp(input=lambda g, out: g / (conj(out) * 2))


@operator(pointwise, promote=to_float)
def rsqrt(input: Tensor) -> Tensor:
    """``1 / sqrt(input)``."""
    return 1 / sqrt(input)


rsqrt.vjp(input=lambda g, out: g * (out * out * out).conj() * -0.5)


@operator(pointwise, promote=to_float)
def reciprocal(input: Tensor) -> Tensor:
    """``1 / input``."""
    return 1 / input


reciprocal.vjp(input=lambda g, out: -g * (out * out).conj())


@operator(pointwise, promote=to_integer)
def square(input: Tensor) -> Tensor:
    """``input * input``."""
    return input * input


square.vjp(input=lambda g, input: g * conj(input) * 2)


@operator(pointwise, promote=to_float, accepts="real", aliases=("special.erf",))
def erf(input: Tensor) -> Tensor:
    """The error function, ``2/sqrt(pi) * integral of exp(-t*t) from 0 to input``."""
    ...


erf.vjp(input=lambda g, input: g * exp(-input * input) * (2 / math.sqrt(math.pi)))


@operator(pointwise, promote=to_float, aliases=("special.expit",))
def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-input))``."""
    return 1 / (1 + exp(-input))


@operator(pointwise, accepts="floating", public=False, inplace=False)
def sigmoid_backward(grad: Tensor, output: Tensor) -> Tensor:
    """``grad * output * (1 - output)``, conjugated: one kernel where a backend has it."""
    return grad * conj(output * (1 - output))


sigmoid_backward.vjp(
    grad=lambda g, output: g * (output * (1 - output)),
    output=lambda g, grad, output: conj(g) * grad * conj(1 - 2 * output),
)
sigmoid.vjp(input=applied(sigmoid_backward, "g", "out"))


@operator(pointwise, accepts="real numeric")
def relu(input: Tensor) -> Tensor:
    """``max(input, 0)``; NaN stays NaN."""
    return input.clamp_min(0)


@operator(pointwise, accepts="real", public=False, method=False, out=False, inplace=False)
def relu_backward(grad: Tensor, output: Tensor) -> Tensor:
    """``grad`` where ``output`` is above 0 (or NaN), else 0."""
    return grad.masked_fill(output <= 0, 0)


relu.vjp(input=applied(relu_backward, "g", "out"))


@operator(pointwise, accepts="real numeric")
def floor(input: Tensor) -> Tensor:
    """The largest integer not above the input."""
    ...


@operator(pointwise, accepts="real numeric")
def ceil(input: Tensor) -> Tensor:
    """The smallest integer not below the input."""
    ...


@operator(pointwise, accepts="real numeric", aliases=("fix",))
def trunc(input: Tensor) -> Tensor:
    """The integer part, towards 0."""
    ...


def _to_decimals(op: Any, args: tuple[Any, ...]) -> tuple[int, ...]:
    if args[1] and args[0].dtype.category != FLOATING:
        kind = PYTHON_NAMES[args[0].dtype.name]
        raise NotImplementedError(f"\"round\" not implemented for '{kind}' with decimals: it takes floating dtypes")
    return pointwise(op, args)


_to_decimals.pointwise = True  # type: ignore[attr-defined]


@operator(_to_decimals, accepts="real numeric", aliases=("special.round",))
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """The nearest multiple of ``10**-decimals``, ties to even."""
    ...


for _step in (floor, ceil, trunc, round):
    _step.vjp(input=zeroed)


@operator(pointwise, result=boolean)
def isnan(input: Tensor) -> Tensor:
    """Where the input is not a number."""
    ...


@operator(pointwise, result=boolean)
def isinf(input: Tensor) -> Tensor:
    """Where the input is infinite, of either sign."""
    ...


@operator(pointwise, result=boolean)
def isfinite(input: Tensor) -> Tensor:
    """Where the input is neither infinite nor NaN."""
    ...


@operator(pointwise, result=boolean)
def logical_not(input: Tensor) -> Tensor:
    """Where the input is zero (or False)."""
    ...


for _test in (isnan, isinf, isfinite, logical_not):
    _test.no_gradient("the result is bool")


@operator(pointwise, accepts="integral")
def bitwise_not(input: Tensor) -> Tensor:
    """Every bit flipped; of bools, the negation."""
    ...


bitwise_not.no_gradient("integers")


@operator(pointwise)
def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate, computed."""
    ...


conj_physical.vjp(input=lambda g: g.conj())


@operator(pointwise, result=real_part, promote=to_float)
def angle(input: Tensor) -> Tensor:
    """The argument of complex numbers in radians; of real ones 0, or pi below 0."""
    if input.is_complex():
        return input.imag.atan2(input.real)
    return ((input < 0).to(input.dtype) * math.pi).where(input == input, input)
