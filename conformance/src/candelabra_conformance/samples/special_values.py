"""Samples of special values: signed zeros, subnormals, extremes, infinities and NaN, the limits of integers.

They follow from the record of any pointwise operator: all values for one tensor, all pairs for two. Cases that neither
IEEE 754, C nor PyTorch's documentation defines are left out; the tables of this module list them with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import ml_dtypes
import numpy as np
from candelabra.library import OPERAND, TENSOR, Operator, Parameter

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.pointwise import POLYNOMIALS, QUOTIENTS, follows_from_record
from candelabra_conformance.samples.sample import Sample, sample

Array = np.ndarray[Any, Any]

ORDINARY: Final = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 2.0, 3.0)
"""Floating values for which every function of real numbers is defined, or NaN."""
HALVES: Final = (-0.5, 1.5, -1.5, 2.5, 3.5)
"""Values that are rounded to even."""
ANGLES: Final = tuple(k * math.pi / 4 for k in (1, 2, 3, 4, 8, -2, -4))
"""Angles whose sines and cosines are 0, 1 or equal, except for the rounding of pi."""
DEGREES: Final = (-1, 0, 1, 2.5, 5)
"""Degrees of polynomials: negative, integer, and not an integer. Large degrees would take as many steps."""


# -- values -----------------------------------------------------------------------------------------------------------
def floats(t: Maker) -> Array:
    """Return the special values of a floating dtype, for operators of two tensors too."""
    limits = _limits(t.numpy)
    odd = 2.0 ** (limits.nmant + 1) - 1  # the largest odd number: the dtype does not represent half of it
    extremes = (limits.smallest_subnormal, limits.tiny, limits.eps, 1 + float(limits.eps), odd, limits.max, limits.min)
    values = np.array([*ORDINARY, *[float(e) for e in extremes], math.inf, -math.inf, math.nan]).astype(t.numpy)
    return np.concatenate([values, odd_nans(t)])


def odd_nans(t: Maker) -> Array:
    """Return two quiet NaNs of other bits than the usual one: with the sign bit, and with every bit of the payload."""
    limits, bits = _limits(t.numpy), 8 * t.numpy.itemsize
    quiet = ((1 << limits.nexp) - 1) << limits.nmant | 1 << (limits.nmant - 1)
    return np.array([quiet | 1 << (bits - 1), (1 << (bits - 1)) - 1], f"u{t.numpy.itemsize}").view(t.numpy)


def _limits(d: Any) -> Any:
    """Return the limits of a NumPy dtype."""
    finfo: Any = ml_dtypes.finfo  # NumPy's does not support bfloat16
    return finfo(d)


def more_floats(t: Maker) -> Array:
    """Return the special values for operators of one tensor: also ties, angles and large arguments.

    A quarter of the largest number overflows in a formula whose result does not.
    """
    largest = float(_limits(t.numpy).max)
    large = [largest / 4, *(v for v in (1e4, -1e4, 1e8, -1e8) if abs(v) < largest)]
    return np.concatenate([floats(t), np.array([*HALVES, *ANGLES, *large]).astype(t.numpy)])


NEIGHBOURS: Final = (1 << 24, (1 << 24) + 1, 1 << 53, (1 << 53) + 1)
"""Neighbours that are equal in float32 or float64."""


def neighbours(t: Maker) -> Array:
    """Return neighbours beyond 2**24 and 2**53 that the dtype represents, and their negatives."""
    limits = np.iinfo(t.numpy)
    held = [n for n in NEIGHBOURS if n <= limits.max]
    return np.array([*held, *(-n for n in held if limits.min < 0)], t.numpy)


def integers(t: Maker) -> Array:
    """Return the limits of an integer dtype, small numbers, neighbours that floats do not distinguish, and two patterns
    of alternating bits."""
    limits = np.iinfo(t.numpy)
    ones = (1 << limits.bits) // 3  # 0101…01
    patterns = np.array([ones, ones << 1], f"u{t.numpy.itemsize}").view(t.numpy)
    few = [v for v in (0, 1, -1, 2, 7) if v >= limits.min]
    ends = (limits.min, limits.min + 1, limits.max - 1, limits.max)
    return np.concatenate([np.array([*few, *ends], t.numpy), patterns, neighbours(t)])


def complexes(t: Maker, components: tuple[float, ...]) -> Array:
    """Return every pair of components."""
    real, imaginary = np.meshgrid(components, components, indexing="ij")
    out = np.empty(real.size, np.complex128)
    out.real, out.imag = real.ravel(), imaginary.ravel()  # not a sum, since 1j * inf contains NaN
    return out.astype(t.numpy)


# -- undefined results ------------------------------------------------------------------------------------------------
COMPONENTWISE: Final = frozenset({
    "abs", "add", "angle", "conj_physical", "eq", "isfinite", "isinf", "isnan", "isreal", "logical_and", "logical_not",
    "logical_or", "logical_xor", "ne", "neg", "positive", "sub",
})  # fmt: skip
"""Complex operators that treat each component separately, or that follow C99's Annex G, so that infinite and NaN
components are defined. Products and quotients are not among them: Annex G does not specify which infinity results, and
implementations differ."""
PARTS: Final = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 2.0)
"""The components of complex numbers for other operators: both sides of every branch cut, and the branch points."""
NOT_FINITE: Final = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan)

Undefined = Callable[..., Any]
"""``(arrays) -> mask of the elements without a defined result``."""


def _opposite_zeros(x: Array, y: Array) -> Any:
    return (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))


def _least(x: Array) -> Any:
    return x == np.iinfo(x.dtype).min if x.dtype.kind == "i" else np.zeros(x.shape, bool)


def _no_quotient(x: Array, y: Array) -> Any:
    return (y == 0) | (_least(x) & (y == x.dtype.type(-1) if x.dtype.kind == "i" else False))


def _large(x: Array, y: Array) -> Any:
    # A comparison of Python's numbers, since the difference to the limit would wrap.
    limit = math.isqrt(int(np.iinfo(x.dtype).max))
    return np.array([abs(int(a)) > limit or abs(int(b)) > limit for a, b in zip(x, y, strict=True)], bool)


def _zeta(s: Array, q: Array) -> Any:
    wide_s, wide_q = s.astype(np.float64), q.astype(np.float64)
    limit = (wide_s == math.inf) & (wide_q > 0) & (wide_q <= 1)
    return ~(np.isfinite(wide_s) & np.isfinite(wide_q) & (wide_q > 1e-3) & (wide_q < 1e6) & (wide_s < 50) | limit)


def _no_slope(g: Array, x: Array) -> Any:
    # The slope at subnormal numbers is subnormal before it is multiplied by g.
    size, limits = np.abs(x.astype(float)), _limits(x.dtype)
    return (size * float(limits.eps) > 0.01) | ((size > 0) & (size < limits.tiny))


_ZEROS: Final = ("f", _opposite_zeros, "IEEE 754 lets either zero be the larger")
_DIVISION: Final = ("biu", _no_quotient, "division by 0 raises; the least number by -1 overflows")
_RECIPROCAL: Final = ("c", lambda *zs: zs[-1] == 0, "which of the infinities a complex 1 / 0 is, is open")
_SHAPE: Final = ("f", lambda a, x: ~(np.isfinite(a) & np.isfinite(x) & (a < 1e6)), "the limits are open")
_OUTPUT: Final = ("f", lambda g, out: ~(np.abs(out) <= 1), "the output is never larger than 1")
_PHASE: Final = ("biuf", lambda x: np.abs(x.astype(float)) > 1e3, "no digit is right where the phase is not known")

EITHER_ZERO: Final = {
    "log_sigmoid": "a difference of zeros", "relu": "the larger of two zeros", "sign": "0 has no sign here",
    "sgn": "0 has no sign here", "remainder": "Python's and C's zeros differ", "sinc": "the sine of a multiple of pi",
    "sinc_backward": "a difference of zeros", "floor_divide": "a quotient rounded to 0",
    "cumsum": "a running sum may start from 0, which -0 does not change",
    **dict.fromkeys(("hardtanh", "hardtanh_checked", "relu6"), "the larger of two zeros"),
    **dict.fromkeys(POLYNOMIALS, "a sum of zeros"),
}  # fmt: skip
"""Operators for which either zero is correct, and the reason."""

FAR_APART: Final = {"logaddexp": (-8.0, -16.0, -25.0, -40.0, -80.0), "logaddexp2": (-12.0, -24.0, -40.0, -60.0, -120.0)}
"""Arguments next to 0 whose result is a small number: 1 plus it is 1 in one dtype or another."""

NO_ANSWER: Final[dict[str, tuple[str, Undefined, str]]] = {
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin", "clamp_min", "clamp_max"), _ZEROS),
    **dict.fromkeys(QUOTIENTS, _DIVISION),
    **dict.fromkeys(("reciprocal", "rsqrt", "log2", "log10", "div"), _RECIPROCAL),
    **dict.fromkeys(("igamma", "igammac"), _SHAPE),
    **dict.fromkeys(("sigmoid_backward", "tanh_backward"), _OUTPUT),
    **dict.fromkeys(("special_airy_ai", "special_airy_ai_slope"), _PHASE),
    "sinc_backward": ("f", _no_slope, "few digits of the phase are known"),
    "gcd": ("iu", lambda x, y: _least(x) | _least(y), "the magnitude of the least number overflows"),
    "hardtanh_checked": ("u", lambda x: x >= 0, "negative limits of an unsigned type are refused"),
    "tanhshrink": ("f", lambda x: (x != 0) & (np.abs(x) < 0.4), "the difference of two nearly equal numbers"),
    "lcm": ("iu", _large, "the product overflows on the way"),
    "ldexp": ("biuf", lambda x, y: np.abs(y.astype(float)) > 10, "2**other may overflow where the product would not"),
    "special_zeta": ("biuf", _zeta, "the continuation to the left of 0 is PyTorch's own, and so are the limits"),
    "pow": ("c", lambda x, y: x == 0, "powers of a complex 0 differ between implementations"),
    "logaddexp": ("c", lambda x, y: np.exp(x) + np.exp(y) == 0, "the logarithm of a complex 0"),
}
"""``{operator: (kinds of dtype, mask of the elements without an answer, reason)}``; these elements are left out."""


def special_of_record(op: Operator[..., Any], t: Maker) -> Iterator[Sample]:
    """Yield calls of a pointwise operator on the special values of the dtype of ``t``; none for other operators.

    One sample contains all values, or all pairs of them; parameters other than tensors keep their defaults.
    """
    parameters = [p for p in op.schema.parameters if p.kind in (TENSOR, OPERAND)]
    if not follows_from_record(op) or len(parameters) < len(op.schema.tensors):
        return
    given = _grid(op, t, len(parameters))
    kinds, undefined, _ = NO_ANSWER.get(op.name, ("", None, ""))
    if undefined is not None and ("f" if t.is_floating else t.numpy.kind) in kinds:
        with np.errstate(all="ignore"):
            kept = ~np.asarray(undefined(*given), bool)
        given = [g[kept] for g in given]
    if given[0].size:
        yield sample(*given, gradient=False, note="special values")
    if op.name in FAR_APART and t.is_floating:
        near, far = t.array(FAR_APART[op.name]), t.array((0.0,) * len(FAR_APART[op.name]))
        yield sample(near, far, gradient=False, note="far apart")
        yield sample(far, near, gradient=False, note="far apart")
    yield from _by_numbers(op, t, parameters)


def _by_numbers(op: Operator[..., Any], t: Maker, parameters: list[Parameter]) -> Iterator[Sample]:
    """Yield Python numbers that float32 does not represent, in place of one of two tensors."""
    if len(parameters) != 2 or op.name in POLYNOMIALS or (t.is_integer and op.promote(t.dtype).is_floating_point):
        return  # floats that are computed from integers have rounded the number before
    numbers: list[int | float] = [int(n) for n in neighbours(t) if n > 0 and n % 2] if t.is_integer else []
    numbers += [0.1] if t.dtype.name in ("float64", "complex128") else []
    values = integers(t) if t.is_integer else t.array([*ORDINARY, 0.1])
    kinds, undefined, _ = NO_ANSWER.get(op.name, ("", None, ""))
    for place, p in enumerate(parameters):
        for number in numbers if p.kind == OPERAND else ():
            pair = [values, values]
            pair[place] = t.array(np.full(values.shape, number))
            defined = np.ones(values.shape, bool)
            if undefined is not None and ("f" if t.is_floating else t.numpy.kind) in kinds:
                with np.errstate(all="ignore"):
                    defined = ~np.asarray(undefined(*pair), bool)
            given: list[Any] = [v[defined] for v in pair]
            given[place] = number
            if defined.any():
                yield sample(*given, gradient=False, note=f"{p.name}={number!r}")


def _grid(op: Operator[..., Any], t: Maker, tensors: int) -> list[Array]:
    """Return the values of each tensor, in one dim, so that every pair occurs; a third tensor has a few."""
    first = _values(op, t, tensors)
    if op.name in POLYNOMIALS:
        first = t.array(ORDINARY if t.dtype.is_signed and not t.is_bool else (0, 1, 3))
    second = t.array([d for d in DEGREES if d >= 0 or t.dtype.is_signed]) if op.name in POLYNOMIALS else first
    if tensors == 1:
        return [first]
    grid = [g.ravel() for g in np.meshgrid(first, second, indexing="ij")]
    if tensors == 2:
        return grid
    # For three tensors: sums of infinities depend on the order, so these are numbers that are exact in every dtype.
    exact = t.array((0, 1, 2, 0.5, -2.5) if t.is_floating or t.is_complex else (0, 1, 2))
    return [g.ravel() for g in np.meshgrid(*[exact] * tensors, indexing="ij")]


def _values(op: Operator[..., Any], t: Maker, tensors: int) -> Array:
    if t.is_bool:
        return np.array([False, True])
    if t.is_integer:
        return integers(t)
    if t.is_complex:
        return complexes(t, NOT_FINITE if op.name in COMPONENTWISE else PARTS)
    return more_floats(t) if tensors == 1 else floats(t)
