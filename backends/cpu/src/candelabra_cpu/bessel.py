"""Bessel functions: those of SciPy, with corrections where these lose digits or return NaN instead of a limit.

Source of the series: NIST Digital Library of Mathematical Functions, chapter 10.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from math import inf, log, nan, pi
from typing import Any, Final, NamedTuple

import numpy as np

Function = Callable[[Any], Any]
TERMS: Final = 9
"""Terms of the power series for arguments up to 1 in float64."""
TINY: Final = 1e-30
"""Below this argument the first term of K, and of ``exp(x) K``, is exact to the last digit."""
EULER: Final = 0.5772156649015329
Y_COEFFICIENTS: Final[tuple[tuple[float, ...], ...]] = (
    (
        -8.840112096073101e-13, 2.6926938054524057e-11, -7.13046146536789e-10, 1.6390875014077404e-08,
        -3.2185078445935923e-07, 5.3213188103997145e-06, -7.279541882454115e-05, 0.000806158605961636,
        -0.00702574105727097, 0.046367047681375125, -0.21895747096171628, 0.6721770783431679, -1.0775477338215995,
        0.14412632369302475, 1.6470964788745466, -0.8284358903604587, -0.382250654459425,
    ),
    (
        8.760001143977853e-13, -2.499531546171249e-11, 6.169688029066965e-10, -1.3153147367094951e-08,
        2.3804930420514178e-07, -3.601000022590458e-06, 4.467433012646365e-05, -0.0004438173434420147,
        0.0034224907399188495, -0.01962875683311711, 0.07854786922242532, -0.19639839859930203, 0.23507209206669755,
        0.02336757172099348, -0.24337743079193114, 0.07075985882118005,
    ),
)  # fmt: skip
"""Coefficients, highest power first, of a polynomial in ``t = x**2 / 32 - 1`` for x up to 8: the regular part of Y0,
and that of Y1 divided by x. These are minimax fits of our own."""


class Correction(NamedTuple):
    """Values that replace those of SciPy: ``value(x)`` wherever ``where(x)`` is true."""

    where: Function
    value: Function


def corrected(name: str, *corrections: Correction) -> Callable[[], Function]:
    """Return a loader of ``scipy.special.<name>`` with corrections."""

    def load() -> Function:
        function = getattr(import_module("scipy.special"), name)

        def bessel(x: Any) -> Any:
            out = np.asarray(function(x))
            for correction in corrections:
                mask = correction.where(x)
                out[mask] = correction.value(x[mask])
            return out

        return bessel

    return load


def _limits_at_infinity(lower: float, upper: float) -> Correction:
    """Return the limits at the infinities, where the formulas give NaN."""
    return Correction(np.isinf, lambda x: np.where(x > 0, upper, lower))


SIGNED_ZERO: Final = Correction(lambda x: x == 0, lambda x: x)
"""An odd function keeps the sign of zero."""


def _series_near_zero(order: int, sign: int) -> Correction:
    """Compute J (sign -1) or I (sign 1) near 0 by DLMF 10.2.2 and 10.25.2.

    Derivatives divide the rounding errors of these functions by x, so the last digits matter.
    """

    def value(x: Any) -> Any:
        z = sign * 0.25 * x * x
        tail = np.zeros_like(x)
        for k in range(TERMS, 0, -1):
            tail = z / (k * (k + order)) * (1 + tail)
        return 0.5 * x + 0.5 * x * tail if order else 1 + tail

    return Correction(lambda x: np.abs(x) < 1, value)


def _y_between_3_and_5(order: int) -> Correction:
    """Compute Y by DLMF 10.8.1 with one polynomial for its sums.

    The error of SciPy between 3 and 5 is 90 times that of one rounding.
    """

    def value(x: Any) -> Any:
        t = x * x / 32 - 1
        first = getattr(import_module("scipy.special"), f"j{order}")(x)
        regular = np.polyval(Y_COEFFICIENTS[order], t)
        if order:
            return x * regular + (2 / pi) * (np.log(x) * first - 1 / x)
        return regular + (2 / pi) * (np.log(x) * first)

    return Correction(lambda x: (x > 3) & (x <= 5), value)


def _k_near_zero(order: int) -> Correction:
    """Compute K of the smallest numbers by DLMF 10.30.2 and 10.31.2; SciPy halves them, which may underflow to 0."""

    def value(x: Any) -> Any:
        return 1 / x if order else log(2) - EULER - np.log(x)

    return Correction(lambda x: (x > 0) & (x < TINY), value)


FUNCTIONS: Final[dict[str, Callable[[], Function]]] = {
    "i0": corrected("i0", _series_near_zero(0, 1), _limits_at_infinity(inf, inf)),
    "special_i1": corrected("i1", _series_near_zero(1, 1), SIGNED_ZERO, _limits_at_infinity(-inf, inf)),
    "special_i1e": corrected("i1e", SIGNED_ZERO),
    "special_bessel_j0": corrected("j0", _series_near_zero(0, -1), _limits_at_infinity(0.0, 0.0)),
    "special_bessel_j1": corrected("j1", _series_near_zero(1, -1), SIGNED_ZERO, _limits_at_infinity(-0.0, 0.0)),
    "special_bessel_y0": corrected("y0", _y_between_3_and_5(0), _limits_at_infinity(nan, 0.0)),
    "special_bessel_y1": corrected("y1", _y_between_3_and_5(1), _limits_at_infinity(nan, 0.0)),
    "special_modified_bessel_k0": corrected("k0", _k_near_zero(0)),
    "special_modified_bessel_k1": corrected("k1", _k_near_zero(1)),
    "special_scaled_modified_bessel_k0": corrected("k0e", _k_near_zero(0)),
    "special_scaled_modified_bessel_k1": corrected("k1e", _k_near_zero(1)),
}
"""A loader for the function of each operator, called at the first use."""
