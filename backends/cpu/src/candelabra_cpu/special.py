"""Special functions, mostly SciPy's. SciPy is imported when the first of them is called.

SciPy's functions know float32 and float64: half types are computed in float32. They are slow enough, tens of
nanoseconds an element, that large arrays are split over the cores.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from math import exp, inf, lgamma, pi
from typing import Any, Final

import numpy as np

from candelabra_cpu.bessel import EULER
from candelabra_cpu.bessel import FUNCTIONS as BESSEL
from candelabra_cpu.blocks import blockwise
from candelabra_cpu.float32 import FUNCTIONS
from candelabra_cpu.pointwise import choose
from candelabra_cpu.vectors import vectored

Kernel = Callable[..., Any]


def late(find: Callable[[], Kernel]) -> Kernel:
    """The elementwise kernel of a function that is looked up when it is first needed."""
    made: list[Kernel] = []

    def kernel(*operands: Any) -> Any:
        if not made:
            made.append(blockwise(find()))
        return made[0](*operands)

    return kernel


def scipys(name: str) -> Kernel:
    """The kernel that is ``scipy.special.<name>``."""
    return late(lambda: getattr(import_module("scipy.special"), name))


# -- where SciPy's functions are not what is wanted -------------------------------------------------------------------
POWERS: Final = 24
"""In the series of lgamma around 2, up to 3/8 from it: each term is a fifth of the one before."""


def _lgamma() -> Kernel:
    special = import_module("scipy.special")
    gammaln = special.gammaln
    series = [(-1) ** k * special.zetac(k) / k for k in range(POWERS, 1, -1)] + [1 - EULER, 0]

    def function(x: Any) -> Any:
        # C's lgamma is infinity at both infinities, SciPy's at one, and at subnormal numbers too.
        out = np.where(x == -inf, x.dtype.type(inf), gammaln(x))
        tiny = np.abs(x) < 1e-30
        if tiny.any():
            out[tiny] = -np.log(np.abs(x[tiny]))
        if x.dtype == np.float64:  # around its zeros SciPy subtracts logarithms of 2
            for zero in (1, 2):
                near = np.abs(x - zero) < 0.375
                if near.any():
                    t = x[near] - zero
                    around_two = np.polyval(series, t)  # DLMF 5.7.3
                    out[near] = around_two - np.log1p(t) if zero == 1 else around_two
        return out

    return function


def _zeta() -> Kernel:
    zeta = import_module("scipy.special._ufuncs")._zeta  # zeta(x, q) without its detour
    return lambda s, q: zeta(*_alike(s, q))


def _xlogy(name: str) -> Callable[[], Kernel]:
    def find() -> Kernel:
        function = getattr(import_module("scipy.special"), name)
        return lambda x, y: function(*_alike(x, y))

    return find


def _alike(x: Any, y: Any) -> tuple[Any, Any]:
    """Numbers as arrays of the other's dtype: SciPy would compute in float64."""
    d = x.dtype if isinstance(x, np.ndarray) else y.dtype
    return np.asarray(x, d), np.asarray(y, d)


def _airy(part: int) -> Callable[[], Kernel]:
    def find() -> Kernel:
        airy = import_module("scipy.special").airy
        # SciPy gives NaN for very large numbers; the function and its slope have fallen to 0 long before.
        return lambda x: np.where(x > 110, x.dtype.type(0), airy(x)[part])

    return find


def _logit(x: Any, eps: float | None) -> Any:
    if eps is not None:
        x = np.minimum(np.maximum(x, x.dtype.type(eps)), x.dtype.type(1 - eps))
    return np.log(x / (1 - x))


# -- incomplete gamma -------------------------------------------------------------------------------------------------
TERMS: Final = 20
"""Of the series at arguments up to 1.1, for float64."""
STEPS: Final = 80
"""Of the continued fraction at arguments from 1.1, for float64."""


def _upper_series(a: Any, x: Any) -> Any:
    """``Q(a, x)`` for small x, in float64.

    Source: DLMF 8.7.3, ``1 - x**a / gamma(a + 1) - x**a / gamma(a) * sum over k >= 1 of (-x)**k / (k! (a + k))``.
    """
    gammaln = import_module("scipy.special").gammaln
    term, total = np.ones_like(x), np.zeros_like(x)
    for k in range(1, TERMS):
        term = term * (x / -k)
        total = total + term / (a + k)
    power = a * np.log(x)
    return -np.expm1(power - gammaln(a + 1)) - np.exp(power - gammaln(a)) * total


def _upper_fraction(a: Any, x: Any) -> Any:
    """``Q(a, x)`` for x from 1.1 to 4, in float64: the continued fraction of DLMF 8.9.2, from its end."""
    below = x + 1 - a + 2 * STEPS
    for n in range(STEPS, 0, -1):
        below = x + (2 * n - 1) - a - n * (n - a) / below
    return np.exp(-x) * x**a / import_module("scipy.special").gamma(a) / below


def _incomplete(name: str, least: float) -> Callable[[], Kernel]:
    """SciPy's function, but for x from ``least`` to 4 and a below x.

    Up to 1.1 it takes 17 microseconds an element from 0.5 on, and all the way Q is wrong in the last two digits of
    float64.
    """

    def find() -> Kernel:
        function = getattr(import_module("scipy.special"), name)

        def gamma(a: Any, x: Any) -> Any:
            a, x = np.broadcast_arrays(a, x)
            ours = (x > least) & (x <= (4 if x.dtype == np.float64 else 1.1)) & (a > 1e-3) & (a <= 1.1 * x)
            if not ours.any():
                return function(a, x)
            out = np.empty_like(x)
            out[~ours] = function(a[~ours], x[~ours])
            small = ours & (x <= 1.1)
            for where, compute in ((small, _upper_series), (ours & ~small, _upper_fraction)):
                upper = compute(a[where].astype(np.float64), x[where].astype(np.float64))
                out[where] = upper if name == "gammaincc" else 1 - upper
            return out

        return gamma

    return find


# -- polygamma --------------------------------------------------------------------------------------------------------
BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
SHIFT: Final = 10


def _trigamma(x: Any) -> Any:
    """The derivative of digamma: infinity at 0, -1, -2, …

    Source: DLMF 5.15.8, an asymptotic series, from 10 up; below it by the recurrence ``f(x) = f(x + 1) + 1 / x**2``
    (5.15.5), and left of 1/2 by the reflection ``f(1 - x) + f(x) = (pi / sin(pi x))**2`` (5.15.6).
    """
    wide = x.astype(np.float64)
    left = wide < 0.5
    at = choose(left, 1 - wide, wide)
    total = np.zeros_like(at)
    for _ in range(SHIFT):
        total += 1 / (at * at)
        at += 1
    square = 1 / (at * at)
    series = np.zeros_like(at)
    for b in reversed(BERNOULLI):
        series += b
        series *= square
    total += (1 + 0.5 / at + series) / at
    if left.any():
        sine = np.sin(pi * (wide - np.rint(wide)))
        total = choose(left, (pi / sine) ** 2 - total, total)
        total[wide == -inf] = np.nan
    return total.astype(x.dtype)


def _polygamma_of() -> Kernel:
    special = import_module("scipy.special")
    zeta = _zeta()

    def polygamma(x: Any, n: int) -> Any:
        if n == 0:
            return special.psi(x)
        if n == 1:
            return _trigamma(x)
        # DLMF 5.15.1 and 25.11.12
        factorial = exp(lgamma(n + 1)) if n <= 170 else inf
        return zeta(n + 1.0, x) * (factorial if n % 2 else -factorial)

    return polygamma


KERNELS: dict[str, Any] = {
    **{name: scipys(name) for name in ("erfc", "erfinv")},
    "erf": vectored(scipys("erf"), FUNCTIONS["erf"]),
    **{f"special_{name}": scipys(name) for name in (
        "entr", "erfcx", "i0e", "log_ndtr", "ndtr", "ndtri",
    )},
    **{name: late(find) for name, find in BESSEL.items()},
    "digamma": scipys("psi"),
    "igamma": late(_incomplete("gammainc", 1.0)),
    "igammac": late(_incomplete("gammaincc", 0.0)),
    "lgamma": late(_lgamma),
    "logit": blockwise(_logit),
    "polygamma_of": late(_polygamma_of),
    "special_airy_ai": late(_airy(0)),
    "special_airy_ai_slope": late(_airy(1)),
    "special_xlog1py": late(_xlogy("xlog1py")),
    "special_zeta": late(_zeta),
    "xlogy": late(_xlogy("xlogy")),
}  # fmt: skip
