"""Special functions, which the library implements."""

from __future__ import annotations

from math import factorial, inf

from candelabra.dtypes import finfo, float32, float64

from candelabra_clike.expressions import Entry, Expression, function_of_one, function_of_two
from candelabra_clike.language import Value, call

CONTRACTED = True

_NAMES = {
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "special_erfcx": "erfcx",
    "special_ndtr": "ndtr", "special_log_ndtr": "log_ndtr", "special_ndtri": "ndtri",
    "lgamma": "lgamma", "digamma": "digamma",
    "i0": "i0", "special_i0e": "i0e", "special_i1": "i1", "special_i1e": "i1e",
    "special_modified_bessel_k0": "k0", "special_scaled_modified_bessel_k0": "k0e",
    "special_modified_bessel_k1": "k1", "special_scaled_modified_bessel_k1": "k1e",
    "special_bessel_j0": "j0", "special_bessel_j1": "j1", "special_bessel_y0": "y0", "special_bessel_y1": "y1",
}  # fmt: skip


_OF_ORDER = ("digamma", "trigamma", "tetragamma")
"""The functions for the lowest orders of polygamma, which take no powers."""


def _polygamma(largest: float) -> Expression:
    """Return the expression of a derivative of digamma by DLMF 5.15.1, ``(-1)**(n + 1) n! zeta(n + 1, x)``."""

    def expression(a: Value, n: int) -> Value:
        if n < len(_OF_ORDER):
            return call(_OF_ORDER[n], a)
        scale = float(factorial(n)) if n <= 170 else inf
        scale = inf if scale > largest else scale
        return (scale if n % 2 else -scale) * call("zeta", n + 1, a)

    return expression


EXPRESSIONS: dict[str, Entry] = {
    **{name: {"float": function_of_one(word)} for name, word in _NAMES.items()},
    "special_zeta": {"float": function_of_two("zeta")},
    "polygamma_of": {"f32": _polygamma(finfo(float32).max), "f64": _polygamma(finfo(float64).max)},
}
