"""Bessel functions: SciPy's, amended where they lose digits or limits.

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
"""Of the power series of numbers up to 1, for float64."""
LEAST: Final = 1e-30
"""Below it K is its first term to the last digit, and so is ``exp(x) K``."""
EULER: Final = 0.5772156649015329
SECOND: Final[tuple[tuple[float, ...], ...]] = (
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
"""Coefficients in ``t = x**2 / 32 - 1``, from the highest down, of what Y is over its logarithm and pole (over x in
order 1): minimax fits of our own for x up to 8."""


class Amendment(NamedTuple):
    """Where a function takes other values, and those. ``double``: in float64; narrower dtypes do not show it."""

    where: Function
    value: Function
    double: bool = True


def amended(name: str, *amendments: Amendment) -> Callable[[], Function]:
    """What finds the function that is ``scipy.special.<name>``, amended."""

    def find() -> Function:
        function = getattr(import_module("scipy.special"), name)

        def bessel(x: Any) -> Any:
            out = np.asarray(function(x))
            for amendment in amendments:
                if amendment.double and x.dtype != np.float64:
                    continue
                here = amendment.where(x)
                if here.any():
                    out[here] = amendment.value(x[here])
            return out

        return bessel

    return find


def _ends(lower: float, upper: float) -> Amendment:
    """The limits at the infinities, where the formulas have NaN."""
    return Amendment(np.isinf, lambda x: np.where(x > 0, upper, lower), double=False)


ODD: Final = Amendment(lambda x: x == 0, lambda x: x, double=False)
"""An odd function keeps the sign of a zero."""


def _series(order: int, sign: int) -> Amendment:
    """J (sign -1) or I (sign 1) near 0, where derivatives divide their roundings by x: 10.2.2 and 10.25.2."""

    def value(x: Any) -> Any:
        z = sign * 0.25 * x * x
        more = np.zeros_like(x)
        for k in range(TERMS, 0, -1):
            more = z / (k * (k + order)) * (1 + more)
        return 0.5 * x + 0.5 * x * more if order else 1 + more

    return Amendment(lambda x: np.abs(x) < 1, value)


def _second(order: int) -> Amendment:
    """Y between 3 and 5, where SciPy has errors of 90 roundings: 10.8.1 with its sums as one polynomial."""

    def value(x: Any) -> Any:
        t = x * x / 32 - 1
        first = getattr(import_module("scipy.special"), f"j{order}")(x)
        regular = np.polyval(SECOND[order], t)
        if order:
            return x * regular + (2 / pi) * (np.log(x) * first - 1 / x)
        return regular + (2 / pi) * (np.log(x) * first)

    return Amendment(lambda x: (x > 3) & (x <= 5), value)


def _least(order: int) -> Amendment:
    """K of the smallest numbers, of which SciPy takes a half that may be 0: 10.30.2 and 10.31.2."""

    def value(x: Any) -> Any:
        return 1 / x if order else log(2) - EULER - np.log(x)

    return Amendment(lambda x: (x > 0) & (x < LEAST), value, double=False)


FUNCTIONS: Final[dict[str, Callable[[], Function]]] = {
    "i0": amended("i0", _series(0, 1), _ends(inf, inf)),
    "special_i1": amended("i1", _series(1, 1), ODD, _ends(-inf, inf)),
    "special_i1e": amended("i1e", ODD),
    "special_bessel_j0": amended("j0", _series(0, -1), _ends(0.0, 0.0)),
    "special_bessel_j1": amended("j1", _series(1, -1), ODD, _ends(-0.0, 0.0)),
    "special_bessel_y0": amended("y0", _second(0), _ends(nan, 0.0)),
    "special_bessel_y1": amended("y1", _second(1), _ends(nan, 0.0)),
    "special_modified_bessel_k0": amended("k0", _least(0)),
    "special_modified_bessel_k1": amended("k1", _least(1)),
    "special_scaled_modified_bessel_k0": amended("k0e", _least(0)),
    "special_scaled_modified_bessel_k1": amended("k1e", _least(1)),
}
"""What finds the function of each operator when it is first needed."""
