"""The gamma function and related functions from asymptotic series, in 80 bits.

Source: NIST Digital Library of Mathematical Functions: 5.11.1 (Stirling's series), 5.5.3 and 5.5.4 (reflection), 5.11.2
(digamma), 8.7.1 and 8.9.2 (incomplete functions), 25.11.5 (Hurwitz's zeta by Euler and Maclaurin). Extreme arguments,
for which these are not sufficient, are left to SciPy.
"""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module
from typing import Any, Final

import numpy as np

from candelabra_conformance.references.pointwise_error import PI, in_long_double
from candelabra_conformance.references.promoted import of_floats, unless_many
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]
sp: Final[Any] = import_module("scipy.special")  # it has no types
SHIFT: Final = 20
"""The number that is added to arguments, so that the series have 64 bits."""
BERNOULLI: Final = tuple(
    np.longdouble(b.numerator) / b.denominator
    for b in map(Fraction, ("1/6", "-1/30", "1/42", "-1/30", "5/66", "-691/2730", "7/6", "-3617/510", "43867/798"))
)
"""The even Bernoulli numbers from the second."""
EULER: Final = np.longdouble("0.57721566490153286060651209")
TAIL: Final = 36
"""The number of powers in the series around 2, in which each term is at most a quarter of the previous one."""


def _from_nearest(x: Array) -> Array:
    """Return x minus the nearest integer, exactly."""
    return np.where(np.isfinite(x), x - np.rint(np.where(np.isfinite(x), x, 0)), 0)


def _right_lgamma(x: Array) -> Array:
    """Return lgamma for positive numbers: Stirling's series at x + 20, minus the logarithm of x (x + 1) … (x + 19)."""
    product = np.ones_like(x)
    for k in range(SHIFT):
        product = product * np.where(x < 1e6, x + k, 1)
    z = np.where(x < 1e6, x + SHIFT, x)
    series = np.zeros_like(z)
    for k, b in enumerate(BERNOULLI, 1):
        series = series + b / (2 * k * (2 * k - 1)) / z ** (2 * k - 1)
    out: Array = (z - 0.5) * (np.log(z) - 1) + (np.log(2 * PI) - 1) / 2 + series - np.log(product)
    return out


def _around_two(t: Array) -> Array:
    """Return ``log(gamma(2 + t))`` for t between -1/2 and 1/2, with full relative precision: it is 0 at 0 (5.7.3)."""
    out = np.zeros_like(t)
    above_one = zeta(np.arange(TAIL, dtype=np.longdouble), np.longdouble(2))  # zeta(k) - 1
    for k in range(TAIL - 1, 1, -1):
        out = ((-1) ** k * above_one[k] / k + out) * t
    return t * (1 - EULER + out)


def _near_its_zeros(x: Array, elsewhere: Array) -> Array:
    """Return the given values, except for numbers around 1 and 2, whose values come from the series without
    cancellation."""
    one, two = np.abs(x - 1) < 0.5, np.abs(x - 2) <= 0.5
    t = np.where(one, x - 1, np.where(two, x - 2, 0))
    series = _around_two(t)
    return np.where(one, series - np.log1p(t), np.where(two, series, elsewhere))


def _many_lgammas(x: Array) -> Array:
    """Call SciPy's function, which around 1 and 2 has only the digits of log(2)."""
    return _near_its_zeros(x.astype(np.longdouble), sp.gammaln(x))


@reference("lgamma", extended=True)
@unless_many(_many_lgammas)
@in_long_double
def lgamma(x: Array) -> Any:
    """Return ``log(|gamma(x)|)``; below 1/2 by the reflection ``gamma(x) gamma(1 - x) = pi / sin(pi x)``."""
    right = np.where(x < 0.5, 1 - x, x)
    at = _right_lgamma(np.where(np.isfinite(right), right, 1))
    mirrored = np.log(PI / np.abs(np.sin(PI * _from_nearest(x)))) - at
    pole = (x <= 0) & (_from_nearest(x) == 0)
    value = _near_its_zeros(x, np.where(x < 0.5, mirrored, at))
    return np.where(np.isinf(x) | pole, np.inf, np.where(x != x, x, value))


@reference("digamma", extended=True)
@unless_many(sp.psi)
@in_long_double
def digamma(x: Array) -> Any:
    """Return the derivative of lgamma; infinite at 0, NaN at the other poles."""
    left = x < 0.5
    z = np.where(np.isfinite(x), np.where(left, 1 - x, x), 1)
    total = np.zeros_like(z)
    for k in range(SHIFT):
        total = total - 1 / (z + k)
    z = z + SHIFT
    for k, b in enumerate(BERNOULLI, 1):
        total = total - b / (2 * k) / z ** (2 * k)
    total = total + np.log(z) - 0.5 / z
    rest = _from_nearest(x)
    total = np.where(left, total - PI / np.tan(PI * np.where(rest == 0, 0.25, rest)), total)
    total = np.where(x == 0, -np.copysign(np.inf, x), np.where(left & (rest == 0) & (x != 0), np.nan, total))
    return np.where(np.isfinite(x), total, sp.psi(x.astype(np.float64)))


@reference("special_zeta", extended=True)
@unless_many(sp.zeta)
@of_floats
def zeta(s: Any, q: Any) -> Any:
    """Return the sum of ``(q + k)**-s``: the first 20 terms, an integral for the rest, and its corrections."""
    s, q = np.broadcast_arrays(np.asarray(s, np.longdouble), np.asarray(q, np.longdouble))
    plain = (s > 1) & (s < 50) & (q > 1e-3) & (q < 1e6)
    at, shift = np.where(plain, s, 2), np.where(plain, q, 1)
    total = np.zeros_like(at)
    for k in range(SHIFT):
        total = total + (shift + k) ** -at
    z = shift + SHIFT
    total = total + z ** (1 - at) / (at - 1) + z**-at / 2
    factor = at / z
    for k, b in enumerate(BERNOULLI, 1):  # factor: s (s + 1) … (s + 2k - 2) / (2k)! / z**(2k - 1)
        total = total + b * factor / (2 if k == 1 else 1) * z**-at
        n = 2 * k
        factor = factor / (2 if k == 1 else 1) * (at + n - 1) * (at + n) / ((n + 1) * (n + 2)) / (z * z)
    return np.where(plain, total, sp.zeta(s.astype(np.float64), q.astype(np.float64)))


def _incomplete(a: Any, x: Any) -> tuple[Array, Array, Array]:
    """Return P and Q for ordinary arguments, and a mask of these."""
    a, x = np.broadcast_arrays(np.asarray(a, np.longdouble), np.asarray(x, np.longdouble))
    plain = (a > 1e-3) & (a < 30) & (x > 0) & (x < 60)
    a, x = np.where(plain, a, 1), np.where(plain, x, 1)
    power = np.exp(a * np.log(x) - x - _right_lgamma(a + 1))  # x**a exp(-x) / gamma(a + 1)
    low = np.minimum(x, a + 1)
    term = total = np.ones_like(a)
    for n in range(1, 150):
        term = term * low / (a + n)
        total = total + term
    high = np.maximum(x, a + 1)
    below = high + 1 - a + 2 * 200
    for n in range(200, 0, -1):
        below = high + 2 * n - 1 - a - n * (n - a) / below
    left, right = power * total, power * a / below
    return np.where(x < a + 1, left, 1 - right), np.where(x < a + 1, 1 - left, right), plain


@reference("igamma", extended=True)
@unless_many(sp.gammainc)
@of_floats
def igamma(a: Any, x: Any) -> Any:
    """Return P(a, x): below a + 1 by its series, above by the continued fraction of Q."""
    lower, _, plain = _incomplete(a, x)
    return np.where(plain, lower, sp.gammainc(np.asarray(a, np.float64), np.asarray(x, np.float64)))


@reference("igammac", extended=True)
@unless_many(sp.gammaincc)
@of_floats
def igammac(a: Any, x: Any) -> Any:
    """Return Q(a, x), by the same formulas."""
    _, upper, plain = _incomplete(a, x)
    return np.where(plain, upper, sp.gammaincc(np.asarray(a, np.float64), np.asarray(x, np.float64)))
