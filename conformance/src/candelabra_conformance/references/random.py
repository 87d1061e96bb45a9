"""Random draws, written from their specification (docs/notes/0001-random-numbers.md) with NumPy's own Philox.

Every number must be exact to the bit, so that even the polynomials of the logarithm and of the trigonometric functions
are the specification's. Half precision is truncated or rounded as specified; results have the requested dtype.
"""

from __future__ import annotations

import math
from typing import Any, Final

import ml_dtypes
import numpy as np
from candelabra.dtypes import dtype as DType

from candelabra_conformance.numpy_dtypes import host_dtype
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
WORD: Final = 1 << 64


def _coefficients(text: str) -> list[float]:
    return [float.fromhex(number) for number in text.split()]


LOGARITHM: Final = _coefficients(
    "0x1.5555555555558p-1 0x1.999999999522fp-2 0x1.2492492e02a7fp-2 0x1.c71c62d1cda75p-3 0x1.7462b9b6dcd74p-3 "
    "0x1.39fdc7ed9805fp-3 0x1.2b5f0a1bec941p-3"
)
COSINE: Final = _coefficients(
    "-0x1.3bd3cc9be45dep+0 0x1.03c1f081b5ac0p-2 -0x1.55d3c7e3cb243p-6 0x1.e1f506868916ap-11 -0x1.a6d1eef4b85a6p-16 "
    "0x1.f9ce249452291p-22 -0x1.b2f3fd9011174p-28"
)
SINE: Final = _coefficients(
    "-0x1.4abbce625be53p-1 0x1.466bc6775aae1p-4 -0x1.32d2cce62b873p-8 0x1.50783486fae02p-13 -0x1.e3074d263e23dp-19 "
    "0x1.e8f036e1a71f1p-25 -0x1.6cc5842082abdp-31"
)
LN2: Final = _coefficients("0x1.62e4200000000p-1 0x1.fdf473de6af28p-22")
"""High part and low part, like those of half of pi."""
HALF_PI: Final = _coefficients("0x1.921fb54442d18p+0 0x1.1a62633145c07p-54")
ROOT: Final = float.fromhex("0x1.6a09ep-1")
"""The least significand of the logarithm, slightly below the root of one half."""


def words(seed: int, offset: int, count: int) -> Array:
    """Return the first words of a draw: NumPy's stream, whose counter is the offset."""
    return np.random.Philox(key=seed, counter=offset).random_raw(count).astype(np.uint64)


def halves(seed: int, offset: int, count: int) -> Array:
    """Return the first 32-bit words: the low half of each word before the high one."""
    whole = words(seed, offset, -(-count // 2))
    return np.stack([whole & np.uint64(0xFFFFFFFF), whole >> np.uint64(32)], 1).reshape(-1)[:count]


def _uniform(count: int, seed: int, offset: int, name: str) -> Array:
    if name == "float64":
        return (words(seed, offset, count) >> np.uint64(11)) * 2.0**-53
    bits = {"float32": 24, "float16": 11, "bfloat16": 8}[name]
    return (halves(seed, offset, count) >> np.uint64(32 - bits)) * 2.0**-bits


@reference("random_uniform")
def random_uniform(shape: Shape, seed: int, offset: int, dtype: DType, device: Any) -> Array:
    """Implement section 4: use as many bits as the significand has."""
    count = math.prod(shape)
    if not dtype.is_complex:
        return _uniform(count, seed, offset, dtype.name).astype(host_dtype(dtype)).reshape(shape)
    parts = _uniform(2 * count, seed, offset, dtype.to_real().name)
    return (parts[::2] + 1j * parts[1::2]).astype(host_dtype(dtype)).reshape(shape)


def _polynomial(z: Array, coefficients: list[float]) -> Array:
    """Evaluate by Horner's rule, with a rounding at each step."""
    total = np.full(z.shape, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * z + coefficient
    return total


def negative_logarithm(H: Array, bits: int) -> Array:
    """Return ``-ln((H + 1/2) / 2**bits)``, section 7."""
    y = H.astype(np.float64) + 0.5
    significand, exponent = np.frexp(y)  # in [1/2, 1): those below the root are doubled
    low = significand < ROOT
    m = np.where(low, 2 * significand, significand)
    e = (exponent - low - bits).astype(np.float64)
    f = m - 1
    s = f / (f + 2)
    z = s * s
    q = (0.5 * f) * f
    R = z * _polynomial(z, LOGARITHM)
    return np.asarray(((q - (s * (q + R) + e * LN2[1])) - f) - e * LN2[0])


def circle(A: Array) -> tuple[Array, Array]:
    """Return cosine and sine of ``A / 2**64`` turns, section 7."""
    t = A + np.uint64(1 << 61)  # modulo 2**64
    rest = (t & np.uint64((1 << 62) - 1)).astype(np.int64) - (1 << 61)
    x = rest.astype(np.float64) * 2.0**-62
    z = x * x
    C = z * _polynomial(z, COSINE) + 1
    S = x * HALF_PI[0] + x * (z * _polynomial(z, SINE) + HALF_PI[1])
    quarter = (t >> np.uint64(62)).astype(np.int64)
    return np.choose(quarter, [C, -S, -C, S]), np.choose(quarter, [S, C, -S, -C])


def _pairs(count: int, seed: int, offset: int, double: bool) -> tuple[Array, Array, Array]:
    """Return ``-ln u``, the cosine and the sine of ``count`` pairs."""
    if double:
        first, second = words(seed, offset, 2 * count).reshape(-1, 2).T
        return negative_logarithm(first >> np.uint64(12), 52), *circle(second & ~np.uint64(2047))
    whole = words(seed, offset, count)
    low = whole & np.uint64(0xFFFFFFFF)
    return negative_logarithm(low, 32), *circle(whole & ~np.uint64(0xFFFFFFFF))


def rounded(values: Array, dtype: DType) -> Array:
    """Round to the dtype; to half precision by float32."""
    if dtype.is_half:
        half = ml_dtypes.bfloat16 if dtype.name == "bfloat16" else np.float16
        return values.astype(np.float32).astype(half)
    return values.astype(host_dtype(dtype))


@reference("random_normal")
def random_normal(shape: Shape, seed: int, offset: int, dtype: DType, device: Any) -> Array:
    """Implement section 7: Box and Muller's method."""
    count = math.prod(shape)
    if dtype.is_complex:
        N, cosine, sine = _pairs(count, seed, offset, dtype.name == "complex128")
        radius = np.sqrt(N)
        return rounded(radius * cosine + 1j * (radius * sine), dtype).reshape(shape)
    N, cosine, sine = _pairs(-(-count // 2), seed, offset, dtype.name == "float64")
    radius = np.sqrt(N + N)
    values = np.stack([radius * cosine, radius * sine], 1).reshape(-1)[:count]
    return rounded(values, dtype).reshape(shape)


def _exponential(count: int, seed: int, offset: int, double: bool) -> Array:
    if double:
        return negative_logarithm(words(seed, offset, count) >> np.uint64(12), 52)
    return negative_logarithm(halves(seed, offset, count), 32)


@reference("random_exponential")
def random_exponential(shape: Shape, seed: int, offset: int, dtype: DType, device: Any) -> Array:
    """Implement section 8: the logarithm of section 7."""
    values = _exponential(math.prod(shape), seed, offset, dtype.name == "float64")
    return rounded(values, dtype).reshape(shape)


@reference("random_integers")
def random_integers(shape: Shape, low: int, high: int, seed: int, offset: int, dtype: DType, device: Any) -> Array:
    """Implement section 5: multiply and return the high part, in Python's integers."""
    count, span = math.prod(shape), high - low
    if span <= 1 << 32:
        drawn = [int(w) * span >> 64 for w in words(seed, offset, count)]
    else:
        pairs = words(seed, offset, 2 * count).reshape(-1, 2)
        drawn = [(int(w) * WORD + int(v)) * span >> 128 for w, v in pairs]
    values = np.array([low + d for d in drawn], object)
    return values.astype(host_dtype(dtype)).reshape(shape)


@reference("random_permutation")
def random_permutation(n: int, seed: int, offset: int, dtype: DType, device: Any) -> Array:
    """Implement section 9: the indices in the order of their words."""
    return np.argsort(words(seed, offset, n), kind="stable").astype(host_dtype(dtype))


@reference("random_bernoulli", as_given=True)
def random_bernoulli(p: Any, shape: Shape, seed: int, offset: int, device: Any) -> Array:
    """Implement section 6: compare a uniform number with p exactly."""
    count = math.prod(shape)
    if isinstance(p, np.ndarray) and p.dtype == np.float64:
        u = (words(seed, offset, count) >> np.uint64(11)) * 2.0**-53
    else:
        u = halves(seed, offset, count) * 2.0**-32
    return np.asarray(u.reshape(shape) < np.asarray(p, np.float64))


def _with_replacement(row: Array, drawn: Array) -> list[int]:
    """Draw by inversion, in Python's integers."""
    exponent = math.frexp(float(row.max()))[1]
    shift = 63 - len(row).bit_length() - exponent
    weights = [math.floor(math.ldexp(float(w), shift)) for w in row]
    sums = np.cumsum(np.array(weights, object))
    total = int(sums[-1])
    return [next(i for i, s in enumerate(sums) if int(w) * total >> 64 < s) for w in drawn]


@reference("random_multinomial")
def random_multinomial(x: Array, samples: int, replacement: bool, seed: int, offset: int) -> Array:
    """Implement section 10: inversion, or a race."""
    rows = x.astype(np.float64).reshape(-1, x.shape[-1])
    if replacement:
        drawn = words(seed, offset, len(rows) * samples).reshape(len(rows), samples)
        found = [_with_replacement(row, line) for row, line in zip(rows, drawn, strict=True)]
    else:
        times = _exponential(rows.size, seed, offset, True).reshape(rows.shape)
        found = []
        for row, line in zip(rows, times, strict=True):
            scaled = np.ldexp(row, 1 - math.frexp(float(row.max()))[1])
            with np.errstate(divide="ignore"):
                race = np.where(scaled < 2.0**-1000, np.inf, line / scaled)
            found.append(list(np.argsort(race, kind="stable")[:samples]))
    return np.array(found, np.int64).reshape(*x.shape[:-1], samples)
