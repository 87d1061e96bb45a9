"""Element by element: products with logarithms, logarithms of sums and odds, degrees, powers in double precision."""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.primitives.arithmetic import maximum, pow, sub, where
from candelabra._operators.primitives.pointwise import conj
from candelabra._operators.special.sine_quotient import sine_quotient_slope
from candelabra._records.callables import public
from candelabra._records.promotion import to_float
from candelabra._records.record import operator
from candelabra._records.rules import pointwise
from candelabra.dtypes import PYTHON_NAMES, complex128, float64

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor

LN2 = math.log(2.0)


# -- products with logarithms -----------------------------------------------------------------------------------------
@operator(pointwise, promote=to_float, accepts="real", aliases=("special.xlogy",))
def xlogy(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input * log(other)``, and 0 where ``input`` is 0 (NaN where ``other`` is NaN)."""
    other = _as_tensor(other, input)
    return where((input == 0) & ~other.isnan(), 0.0, input * other.log())


xlogy.vjp(
    input=lambda g, input, other: where((input == 0) & (other <= 0), 0, xlogy(g, other)),
    other=lambda g, input, other: g * (input / other),
)


@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_xlog1py(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input * log1p(other)``, and 0 where ``input`` is 0 (NaN where ``other`` is NaN)."""
    other = _as_tensor(other, input)
    return where((input == 0) & ~other.isnan(), 0.0, input * other.log1p())


special_xlog1py.vjp(
    input=lambda g, input, other: where((input == 0) & (other <= -1), 0, special_xlog1py(g, other)),
    other=lambda g, input, other: g * (input / (other + 1)),
)


def _as_tensor(value: Any, like: Any) -> Tensor:
    from candelabra._operators.primitives.creation import full

    made: Tensor = value if hasattr(value, "_payload") else full((), value, dtype=like.dtype, device=like.device)
    return made


@operator(pointwise, promote=to_float, accepts="real floating", namespace="special")
def special_entr(input: Tensor) -> Tensor:
    """``-input * log(input)``: 0 at 0, -inf below."""
    return (-xlogy(input, input)).masked_fill(input < 0, -math.inf)


special_entr.vjp(
    # The logarithm is NaN below 0, and so is the slope.
    input=lambda g, input: g * (-input.log() - 1),
)


# -- sums of exponentials ---------------------------------------------------------------------------------------------
def _share(mine: Tensor, other: Tensor, scale: float) -> Tensor:
    """The part of one term in the sum of both: the derivative of the logarithm of that sum."""
    return conj(1 / (1 + ((other - mine) * scale).exp()))


@operator(pointwise, accepts="floating", inplace=False)
def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """``log(exp(input) + exp(other))`` without overflow; complex too."""
    return _log_of_sum(input, other, 1.0)


@operator(pointwise, accepts="real floating", inplace=False)
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """``log2(2**input + 2**other)`` without overflow."""
    return _log_of_sum(input, other, LN2)


def _log_of_sum(input: Tensor, other: Tensor, scale: float) -> Tensor:
    # The larger term is taken out: m + log1p(exp(-|a - b|)). Equal infinities have no difference, and nothing to add.
    if input.is_complex():
        first = input.real >= other.real
        high, low = where(first, input, other), where(first, other, input)
        same = (high == low) & ~high.isfinite()
        return where(same, high, high + (low - high).exp().log1p())
    high = maximum(input, other)
    gap = sub(input, other).abs().masked_fill(input == other, 0.0)
    return high + (gap * -scale).exp().log1p() / scale


logaddexp.vjp(
    input=lambda g, input, other: g * _share(input, other, 1.0),
    other=lambda g, input, other: g * _share(other, input, 1.0),
)
logaddexp2.vjp(
    input=lambda g, input, other: g * _share(input, other, LN2),
    other=lambda g, input, other: g * _share(other, input, LN2),
)


# -- odds -------------------------------------------------------------------------------------------------------------
@operator(pointwise, promote=to_float, accepts="real", aliases=("special.logit",))
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """``log(input / (1 - input))``: NaN outside [0, 1], unless ``eps`` limits the input to [eps, 1 - eps] first."""
    if eps is not None:
        input = input.clamp_min(eps).clamp_max(1 - eps)
    return (input / (1 - input)).log()


def _logit_back(g: Tensor, input: Tensor, eps: float | None) -> Tensor:
    low, outside = (0.0, math.nan) if eps is None else (eps, 0.0)
    return where((input < low) | (input > 1 - low), outside, g / (input * (1 - input)))


logit.vjp(input=_logit_back)


# -- degrees ----------------------------------------------------------------------------------------------------------
@operator(pointwise, promote=to_float, accepts="real")
def deg2rad(input: Tensor) -> Tensor:
    """Degrees as radians."""
    return input * (math.pi / 180)


@operator(pointwise, promote=to_float, accepts="real")
def rad2deg(input: Tensor) -> Tensor:
    """Radians as degrees."""
    return input * (180 / math.pi)


@operator(pointwise, promote=to_float, aliases=("special.sinc",))
def sinc(input: Tensor) -> Tensor:
    """``sin(pi * input) / (pi * input)``: 1 at 0, exactly 0 at the other whole numbers."""
    # With n the nearest whole number, input - n is exact and sin(pi * input) = (-1)**n * sin(pi * (input - n)).
    nearest = (input.real if input.is_complex() else input).round()
    sine = ((input - nearest) * math.pi).sin() * (1 - (nearest % 2) * 2)
    zero = input == 0
    return (sine / (input * math.pi).masked_fill(zero, 1)).masked_fill(zero, 1)


sinc.vjp(input=lambda g, input: g * conj(sine_quotient_slope(input * math.pi) * math.pi))


# -- powers in double precision ---------------------------------------------------------------------------------------


@public
def float_power(input: Tensor | Number, exponent: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """``input ** exponent`` computed in float64, or complex128 where either is complex."""
    return pow.function(*_doubled(input, exponent), out=out)


@public(is_function=False)
def float_power_(input: Tensor, exponent: Tensor | Number) -> Tensor:
    """In-place form of :func:`float_power`; the tensor must be float64, or complex128 where either is complex."""
    base, power = _doubled(input, exponent)
    if base.dtype is not input.dtype:
        found, needed = PYTHON_NAMES[input.dtype.name], PYTHON_NAMES[base.dtype.name]
        raise RuntimeError(
            f"the base given to float_power_ has dtype {found} but the operation's result requires dtype {needed}"
        )
    return pow.form("inplace")(input, power)


def _doubled(input: Any, exponent: Any) -> tuple[Any, Any]:
    pair = (input, exponent)
    wide = complex128 if any(map(_is_complex, pair)) else float64
    if not any(hasattr(v, "_payload") for v in pair):
        raise TypeError("float_power(): at least one argument must be a Tensor, both are numbers")
    return tuple(v.to(wide) if hasattr(v, "_payload") else v for v in pair)


def _is_complex(value: Any) -> bool:
    return value.is_complex() if hasattr(value, "_payload") else isinstance(value, complex)


@public(method=False)
def rsub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """``other - alpha * input``."""
    if not hasattr(input, "_payload"):
        raise TypeError(f"rsub(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return sub.function(other, input if alpha == 1 else input * alpha)
