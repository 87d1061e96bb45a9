"""Special functions, which the library implements."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

from candelabra_clike.expressions import Entry

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


def _polygamma(suffix: str, largest: float) -> Callable[[int], str]:
    """Return the expression of a derivative of digamma by DLMF 5.15.1, ``(-1)**(n + 1) n! zeta(n + 1, x)``."""

    def expression(n: int) -> str:
        if n < 2:
            return "trigamma_{T}({a})" if n else "digamma_{T}({a})"
        scale = factorial(n) if n <= 170 else largest * 2
        number = "INFINITE_{W}" if scale > largest else f"{float(scale)!r}{suffix}"
        return f"{'' if n % 2 else '-'}{number} * zeta_{{T}}({n + 1}, {{a}})"

    return expression


EXPRESSIONS: dict[str, Entry] = {name: {"float": f"{word}_{{T}}({{a}})"} for name, word in _NAMES.items()}
EXPRESSIONS |= {
    "special_zeta": {"float": "zeta_{T}({a}, {b})"},
    "polygamma_of": {"f32": _polygamma("f", 3.4028234663852886e38), "f64": _polygamma("", 1.7976931348623157e308)},
}
