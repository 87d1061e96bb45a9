"""Samples of pointwise operators, which follow from the record: shapes, broadcasting, numbers combined with tensors.

A record does not specify where a function is smooth and its results are within half precision. The tables of this
module do, by operator, and by parameter if the parameters differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from candelabra.library import MASK, OPERAND, REQUIRED, TENSOR, Operator, Parameter

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import DOMAINS, domain
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ORDINARY, ZERO_DIM, ZERO_SIZE, Sample, sample

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

EQUAL: Final[tuple[Shape, ...]] = ((17,), (3, 5), (2, 3, 4), (2, 1, 3, 2), (1023,))
"""Shapes that all tensors have, up to four dims; none is a multiple of blocks of 2, 4, 8 or 16."""
BROADCAST: Final[tuple[tuple[Shape, Shape], ...]] = (
    ((3, 1), (1, 4)), ((4,), (2, 3, 4)), ((2, 3, 4), (3, 1)), ((1,), (5,)),
)  # fmt: skip
"""The shapes of the tensors, by position."""
MANY: Final = 131_101
"""The number of elements of a large sample: more than two blocks of usual sizes (2**16 and less), plus 29."""
OTHERS: Final[tuple[tuple[str, tuple[Shape, Shape]], ...]] = (
    (ZERO_DIM, ((), ())), (ZERO_DIM, ((), (3,))), (ZERO_DIM, ((2, 3), ())),
    (LENGTH_ONE, ((1,), (1,))), (LENGTH_ONE, ((1, 1, 1), (1, 1, 1))),
    (ZERO_SIZE, ((0,), (0,))), (ZERO_SIZE, ((2, 0, 3), (2, 0, 3))), (ZERO_SIZE, ((0,), (1,))),
    (ZERO_SIZE, ((2, 1), (0,))), (LARGE, ((MANY,), (MANY,))),
)  # fmt: skip
"""``(kind, the shapes of the tensors by position)``."""


@dataclass(frozen=True)
class Range:
    """The range of ordinary values, with both ends included for integers."""

    low: float
    high: float
    ints: tuple[int, int] | None = None
    """The same for integer dtypes, or None for the operator's domain."""
    signed: bool = False
    """The range is that of magnitudes, and both signs occur."""
    whole: bool = False
    """The values are integers also in floating dtypes."""

    def drawn(self, t: Maker, *shape: int) -> Array:
        """Return real values in the dtype of ``t``."""
        if t.is_integer:
            values = t(*shape) if self.ints is None else t(*shape, low=self.ints[0], high=self.ints[1])
            signed = self.signed and t.dtype.is_signed
        elif self.whole:
            values, signed = t.array(t.of("int64")(*shape, low=self.low, high=self.high)), self.signed
        else:
            values, signed = t(*shape, low=self.low, high=self.high), self.signed
        return np.where(t.mask(*shape), -values, values) if signed else values


for _range, _names in {
    (0.1, 4.0): ("log", "log2", "log10", "sqrt", "rsqrt"), (-0.9, 3.0): ("log1p",), (1.1, 4.0): ("acosh",),
    (-0.95, 0.95): ("acos", "asin", "atanh", "erfinv"), (-1.4, 1.4): ("tan",), (0.05, 0.95): ("special_ndtri",),
    (0.05, 3.0): ("special_entr",), (-1.5, 4.0): ("special_erfcx", "erfc"),
    (0.2, 6.0): (
        "lgamma", "digamma", "special_bessel_y0", "special_bessel_y1", "special_modified_bessel_k0",
        "special_modified_bessel_k1", "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1",
    ),
    (-4.0, 4.0): (
        "special_log_ndtr", "special_ndtr", "special_airy_ai", "special_airy_ai_slope", "i0", "special_i0e",
        "special_i1", "special_i1e", "special_bessel_j0", "special_bessel_j1", "special_spherical_bessel_j0", "sigmoid",
        "log_sigmoid", "silu", "silu_backward", "hardswish_backward", "hardsigmoid_backward", "logaddexp", "logaddexp2",
    ),
}.items():  # fmt: skip
    domain(*_range, *_names)

POLYNOMIALS: Final[dict[str, Range]] = {
    **{f"special_chebyshev_polynomial_{kind}": Range(-1.0, 2.5) for kind in "tuvw"},
    # These compute 2 x - 1, which near 0 and 1/2 keeps few of the digits of x.
    **{f"special_shifted_chebyshev_polynomial_{kind}": Range(0.6, 2.0, ints=(1, 5)) for kind in "tuvw"},
    **{f"special_{name}": Range(-1.0, 2.5) for name in (
        "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
    )},
}  # fmt: skip
"""The arguments for which polynomials up to degree 4 are within float16."""
QUOTIENTS: Final = ("floor_divide", "trunc_divide", "remainder", "fmod")
"""The operators that jump at integer quotients: dividends are 1.5 times numbers between two integers, divisors near
1.5."""
DIVIDENDS: Final = Range(0.2, 0.8)
_DIVISOR: Final = Range(1.47, 1.53, ints=(1, 9), signed=True)
_SHIFT: Final = Range(0, 6, ints=(0, 6), whole=True)
_SHAPE: Final = Range(3.0, 8.0, ints=(1, 9))  # below 3 SciPy, which backends use, loses two digits of Q
_FEW: Final = Range(-1, 2, ints=(0, 2), whole=True)
RANGES: Final[dict[str, dict[str, Range]]] = {
    **{name: {"input": r, "n": Range(0, 4, ints=(0, 4), whole=True)} for name, r in POLYNOMIALS.items()},
    **{name: {"other": _DIVISOR} for name in QUOTIENTS},
    **{name: {"input": _FEW, "other": _FEW} for name in (
        "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor",
    )},
    **{name: {"input": _FEW} for name in ("logical_not", "heaviside")},
    "reciprocal": {"input": Range(0.3, 3.0, signed=True)},
    "div": {"other": Range(0.5, 3.0, ints=(1, 9), signed=True)},
    **{name: {"input": Range(0.2, 2.0), "exponent": Range(-2.0, 2.0, ints=(0, 3))} for name in ("pow", "float_power")},
    "bitwise_left_shift": {"other": _SHIFT},
    "bitwise_right_shift": {"other": _SHIFT},
    "igamma": {"input": _SHAPE, "other": Range(0.2, 6.0, ints=(0, 9))},
    "igammac": {"input": _SHAPE, "other": Range(0.2, 6.0, ints=(0, 9))},
    "special_zeta": {"input": Range(1.3, 6.0, ints=(2, 9)), "other": Range(0.3, 4.0, ints=(1, 9))},
    "xlogy": {"other": Range(0.1, 4.0, ints=(1, 9))},
    "special_xlog1py": {"other": Range(-0.9, 3.0, ints=(0, 9))},
    # Their second derivatives divide twice by the argument, and lose digits near 0.
    "special_bessel_j1": {"input": Range(0.3, 4.0, ints=(-4, 4), signed=True)},
    "sigmoid_backward": {"output": Range(0.05, 0.95)},
    "tanh_backward": {"output": Range(-0.95, 0.95)},
    "lerp": {"weight": Range(-0.4, 1.4)},
}  # fmt: skip
"""The ranges by operator and parameter, if one domain for all parameters is not sufficient."""
CONSTANT: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("igamma", "igammac", "special_zeta", "heaviside"), ("input",)),
    **dict.fromkeys(POLYNOMIALS, ("n",)),
}
"""The parameters without a derivative: the rule raises, or the function jumps at the values."""


def follows_from_record(op: Operator[..., Any]) -> bool:
    """Return whether the samples of an operator follow from its record: it is pointwise and only tensors are
    required."""
    due = {p.kind for p in op.schema.parameters if p.default is REQUIRED}
    tensors = {p.kind for p in op.schema.tensors}
    return bool(getattr(op.rule, "pointwise", False)) and not op.random and due == tensors <= {TENSOR, OPERAND, MASK}


def samples_of_record(op: Operator[..., Any], t: Maker) -> Iterator[Sample]:
    """Yield ordinary calls of a pointwise operator in the dtype of ``t``; the note marks numbers in place of tensors.

    Parameters other than tensors keep their defaults. Operators for which :func:`follows_from_record` is False have
    none.
    """
    if not follows_from_record(op):
        return
    parameters = op.schema.tensors
    constant = CONSTANT.get(op.name, ())
    for kind, shapes in shapes_for(len(parameters)):
        values = [tensor_for(op, p, t, *shapes[i % 2]) for i, p in enumerate(parameters)]
        yield sample(*values, kind=kind, constant=constant)
    if len(parameters) < 2:
        return
    for p in parameters:
        for number in numbers_for(op, p, t) if p.kind == OPERAND else ():
            values = [number if q is p else tensor_for(op, q, t, 3, 5) for q in parameters]
            yield sample(*values, note=f"{p.name}={number!r}", constant=constant)


def shapes_for(tensors: int) -> Iterator[tuple[str, tuple[Shape, Shape]]]:
    """Return ``(kind, the shapes of the tensors by position)`` for an operator of ``tensors`` tensors."""
    ordinary = (*((shape, shape) for shape in EQUAL), *BROADCAST)
    for kind, pair in (*((ORDINARY, pair) for pair in ordinary), *OTHERS):
        if tensors > 1 or pair[0] == pair[1]:
            yield kind, pair


def tensor_for(op: Operator[..., Any], p: Parameter, t: Maker, *shape: int) -> Array:
    """Return an array of values at which ``op`` is smooth in the parameter ``p``."""
    if p.kind == MASK:
        return t.mask(*shape)
    r = RANGES.get(op.name, {}).get(p.name) or Range(t.low, t.high, _integers(op, t))
    if t.is_bool:  # a divisor, and any other positive number, can only be True
        return np.ones(shape, bool) if r.ints is not None and r.ints[0] > 0 else t(*shape)
    if t.is_complex:  # cuts and poles are on the axes, and ordinary values are not near them
        return t.array(r.drawn(t.of("int64"), *shape)) if r.whole else t(*shape, low=-2.0, high=2.0)
    values = r.drawn(t, *shape)
    if op.name in QUOTIENTS and p.name == "input" and t.is_floating:
        whole = t.of("int64")(*shape, low=-3, high=2)
        return t.array(1.5 * (whole + DIVIDENDS.drawn(t.of("float64"), *shape)))
    return values


def _integers(op: Operator[..., Any], t: Maker) -> tuple[int, int] | None:
    """Return the integers of the domain, or None for fewer than two, for which NaN is a valid result."""
    low, high = DOMAINS.get(op.name, (0.0, 0.0))
    least, most = math.ceil(low) if t.dtype.is_signed else max(math.ceil(low), 0), math.floor(high)
    return (least, most) if most > least else None


def numbers_for(op: Operator[..., Any], p: Parameter, t: Maker) -> tuple[Any, ...]:
    """Yield Python numbers for ``p``, of the kind of the dtype and of a lower one, that every dtype represents
    exactly."""
    if t.is_bool:
        return (True,)
    r = RANGES.get(op.name, {}).get(p.name) or Range(t.low, t.high)
    if r.whole or t.is_integer:
        return (3,) if r.ints is None else (min(3, r.ints[1]),)
    if t.is_complex:
        return (complex(0.75, -0.5), 1.5, 2)
    middle = round((r.low + 0.7 * (r.high - r.low)) * 16) / 16
    whole = max(1, math.ceil(r.low))
    return (middle, whole) if whole <= r.high else (middle,)
