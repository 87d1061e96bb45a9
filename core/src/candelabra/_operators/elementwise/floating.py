"""The representation of floating-point numbers: mantissa, exponent, neighbours, NaN and infinities."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, NamedTuple
from candelabra._operators.creation.filled import zeroed
from candelabra._operators.elementwise.selection import where
from candelabra._operators.shapes.views import view_as_complex, view_as_real
from candelabra._records.promotion import boolean, same, to_float
from candelabra._records.record import operator
from candelabra._records.rules import by, pointwise, shape_of
from candelabra.dtypes import INTEGER, dtype, finfo, int32

if TYPE_CHECKING:
    from candelabra.typing import Tensor


@operator(pointwise, result=boolean)
def isnan(input: Tensor) -> Tensor:
    """Return True where the input is not a number."""
    ...


@operator(pointwise, result=boolean)
def isinf(input: Tensor) -> Tensor:
    """Return True where the input is infinite, of either sign."""
    ...


@operator(pointwise, result=boolean)
def isfinite(input: Tensor) -> Tensor:
    """Return True where the input is neither infinite nor NaN."""
    ...


@operator(pointwise, result=boolean, accepts="real")
def isposinf(input: Tensor) -> Tensor:
    """Return True where the input is infinity."""
    return input == float("inf")


@operator(pointwise, result=boolean, accepts="real")
def isneginf(input: Tensor) -> Tensor:
    """Return True where the input is minus infinity."""
    return input == float("-inf")


for _test in (isnan, isinf, isfinite, isposinf, isneginf):
    _test.no_gradient("the result is bool")


@operator(pointwise)
def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Replace NaN by ``nan`` (default 0), infinities by ``posinf`` and ``neginf`` (default the largest and the least
    finite number of the dtype). In complex tensors the real and the imaginary part are replaced separately.
    """
    if input.is_complex():
        return view_as_complex(nan_to_num(view_as_real(input), nan, posinf, neginf))
    if input.dtype.category <= INTEGER:
        return input.clone()
    limits = finfo(input.dtype)
    out = where(input.isnan(), 0.0 if nan is None else nan, input)
    out = where(input == float("inf"), limits.max if posinf is None else posinf, out)
    return where(input == float("-inf"), limits.min if neginf is None else neginf, out)


nan_to_num.vjp(input=lambda g, input: where(input.isfinite(), g, 0))


# -- mantissa, exponent and neighbours ---------------------------------------------------------------------------------
class MantissaAndExponent(NamedTuple):
    """The mantissa and the exponent of floating-point numbers."""

    mantissa: Tensor
    exponent: Tensor


def _exponent(d: dtype) -> dtype:
    return int32


@by
def _two_like_input(input: Tensor) -> tuple[tuple[int, ...], ...]:
    return shape_of(input), shape_of(input)


@operator(_two_like_input, accepts="real floating", result=(same, _exponent), out=True)
def frexp(input: Tensor) -> MantissaAndExponent:
    """``input = mantissa * 2**exponent``: the mantissa has an absolute value in [0.5, 1), the exponent is int32."""
    ...


@operator(pointwise, accepts="real floating", method=False, public=False, out=False, inplace=False)
def frexp_along(tangent: Tensor, input: Tensor) -> Tensor:
    """``tangent / 2**exponent``, with the exponent of ``input`` in :func:`frexp`: the derivative of the mantissa."""
    exponent = frexp(input).exponent
    half = exponent // 2  # one power of 2 overflows for the smallest numbers
    return tangent * (-half).to(tangent.dtype).exp2() * (half - exponent).to(tangent.dtype).exp2()


frexp.vjp(input=lambda g_mantissa, input: frexp_along.canonical(g_mantissa, input))
frexp.jvp(lambda t_input, input: (frexp_along.canonical(t_input, input), None))


@operator(pointwise, promote=to_float)
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """``input * 2**other``. Integers become the default floating dtype."""
    return input * (2.0**other)


@operator(pointwise, accepts="real floating")
def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """Return the next floating-point number after ``input`` towards ``other``."""
    ...


nextafter.vjp(input=lambda g: g, other=zeroed)  # the distance to the next number is treated as constant
