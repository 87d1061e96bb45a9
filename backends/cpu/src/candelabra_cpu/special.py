"""Special functions, mostly those of SciPy, which is imported at the first call, computed in float64."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from math import exp, inf, lgamma, pi
from typing import Any, Final

import numpy as np

from candelabra_cpu.bessel import EULER
from candelabra_cpu.bessel import FUNCTIONS as BESSEL
from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.precision import elementwise_in_float64

Kernel = Callable[..., Any]


def lazy_kernel(load: Callable[[], Kernel]) -> Kernel:
    """Return the kernel of an elementwise function that is loaded at the first call."""
    loaded: list[Kernel] = []

    def function(*operands: Any) -> Any:
        if not loaded:
            loaded.append(load())
        return loaded[0](*operands)

    return numpy_kernel(elementwise_in_float64(function))


def scipy_kernel(name: str) -> Kernel:
    """Return the kernel of ``scipy.special.<name>``."""
    return lazy_kernel(lambda: getattr(import_module("scipy.special"), name))


# -- functions for which SciPy is slow, inaccurate or different from PyTorch -------------------------------------------
LGAMMA_TERMS: Final = 24
"""Terms of the series of lgamma around 2, up to a distance of 3/8. Each term is a fifth of the previous one."""


def _erfinv() -> Kernel:
    erfinv = import_module("scipy.special").erfinv

    def function(x: Any) -> Any:
        return np.copysign(erfinv(x), x)  # SciPy's is 0.0 at -0.0

    return function


def _lgamma() -> Kernel:
    special = import_module("scipy.special")
    gammaln = special.gammaln
    series = [(-1) ** k * special.zetac(k) / k for k in range(LGAMMA_TERMS, 1, -1)] + [1 - EULER, 0]

    def function(x: Any) -> Any:
        # C's lgamma is infinite at both infinities; SciPy's is infinite at one, and at subnormal numbers.
        out = np.where(x == -inf, inf, gammaln(x))
        tiny = np.abs(x) < 1e-30
        out[tiny] = -np.log(np.abs(x[tiny]))
        for zero in (1, 2):  # SciPy has cancellation around the zeros
            near = np.abs(x - zero) < 0.375
            t = x[near] - zero
            around_two = np.polyval(series, t)  # DLMF 5.7.3
            out[near] = around_two - np.log1p(t) if zero == 1 else around_two
        return out

    return function


def _zeta() -> Kernel:
    zeta: Kernel = import_module("scipy.special._ufuncs")._zeta  # the ufunc behind scipy.special.zeta
    return zeta


def _airy(part: int) -> Callable[[], Kernel]:
    def load() -> Kernel:
        airy = import_module("scipy.special").airy
        # SciPy returns NaN for very large numbers, where the function and its derivative have underflowed to 0.
        return lambda x: np.where(x > 110, 0.0, airy(x)[part])

    return load


def _logit(x: Any, eps: float | None) -> Any:
    if eps is not None:
        x = np.clip(x, eps, 1 - eps)
    return np.log(x / (1 - x))


# -- incomplete gamma -------------------------------------------------------------------------------------------------
SERIES_TERMS: Final = 20
"""Terms of the series for arguments up to 1.1 in float64."""
FRACTION_STEPS: Final = 80
"""Steps of the continued fraction for arguments from 1.1 in float64."""


def _upper_series(a: Any, x: Any) -> Any:
    """Return ``Q(a, x)`` for small x, in float64.

    Source: DLMF 8.7.3, ``1 - x**a / gamma(a + 1) - x**a / gamma(a) * sum over k >= 1 of (-x)**k / (k! (a + k))``.
    """
    gammaln = import_module("scipy.special").gammaln
    term, total = np.ones_like(x), np.zeros_like(x)
    for k in range(1, SERIES_TERMS):
        term = term * (x / -k)
        total = total + term / (a + k)
    power = a * np.log(x)
    return -np.expm1(power - gammaln(a + 1)) - np.exp(power - gammaln(a)) * total


def _upper_fraction(a: Any, x: Any) -> Any:
    """Return ``Q(a, x)`` for x from 1.1 to 4, in float64, by the continued fraction of DLMF 8.9.2 from its end."""
    denominator = x + 1 - a + 2 * FRACTION_STEPS
    for n in range(FRACTION_STEPS, 0, -1):
        denominator = x + (2 * n - 1) - a - n * (n - a) / denominator
    return np.exp(-x) * x**a / import_module("scipy.special").gamma(a) / denominator


def _incomplete(name: str, least: float) -> Callable[[], Kernel]:
    """Return a loader of SciPy's function with a replacement for x from ``least`` to 4 and a below x.

    In that range SciPy takes 17 microseconds per element for x from 0.5 to 1.1, and Q is wrong in the last two digits
    of float64.
    """

    def load() -> Kernel:
        function = getattr(import_module("scipy.special"), name)

        def gamma(a: Any, x: Any) -> Any:
            a, x = np.broadcast_arrays(a, x)
            within = (x > least) & (x <= 4) & (a > 1e-3) & (a <= 1.1 * x)
            out = np.empty_like(x)
            out[~within] = function(a[~within], x[~within])
            small = within & (x <= 1.1)
            for selected, compute in ((small, _upper_series), (within & ~small, _upper_fraction)):
                upper = compute(a[selected], x[selected])
                out[selected] = upper if name == "gammaincc" else 1 - upper
            return out

        return gamma

    return load


# -- polygamma --------------------------------------------------------------------------------------------------------
BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
RECURRENCE_STEPS: Final = 10


def _trigamma(x: Any) -> Any:
    """The derivative of digamma; infinite at 0, -1, -2, ...

    Source: DLMF 5.15.8, an asymptotic series, from 10 on; below 10 the recurrence ``f(x) = f(x + 1) + 1 / x**2``
    (5.15.5), and below 1/2 the reflection ``f(1 - x) + f(x) = (pi / sin(pi x))**2`` (5.15.6).
    """
    left = x < 0.5
    at = np.where(left, 1 - x, x)
    total = np.zeros_like(at)
    for _ in range(RECURRENCE_STEPS):
        total += 1 / (at * at)
        at += 1
    square = 1 / (at * at)
    series = np.zeros_like(at)
    for b in reversed(BERNOULLI):
        series += b
        series *= square
    total += (1 + 0.5 / at + series) / at
    sine = np.sin(pi * (x - np.rint(x)))
    total = np.where(left, (pi / sine) ** 2 - total, total)
    return np.where(x == -inf, np.nan, total)


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
    "erfc": scipy_kernel("erfc"), "erfinv": lazy_kernel(_erfinv),
    "erf": scipy_kernel("erf"),
    **{f"special_{name}": scipy_kernel(name) for name in (
        "entr", "erfcx", "i0e", "log_ndtr", "ndtr", "ndtri",
    )},
    **{name: lazy_kernel(load) for name, load in BESSEL.items()},
    "digamma": scipy_kernel("psi"),
    "igamma": lazy_kernel(_incomplete("gammainc", 1.0)),
    "igammac": lazy_kernel(_incomplete("gammaincc", 0.0)),
    "lgamma": lazy_kernel(_lgamma),
    "logit": numpy_kernel(elementwise_in_float64(_logit)),
    "polygamma_of": lazy_kernel(_polygamma_of),
    "special_airy_ai": lazy_kernel(_airy(0)),
    "special_airy_ai_slope": lazy_kernel(_airy(1)),
    "special_xlog1py": scipy_kernel("xlog1py"),
    "special_zeta": lazy_kernel(_zeta),
    "xlogy": scipy_kernel("xlogy"),
}  # fmt: skip
