"""Elementary and special functions: powers, exponentials, logarithms, trigonometric functions. The library has most."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, inf, pi
from typing import Final

from candelabra.dtypes import finfo, float32, float64

from candelabra_clike.expressions import Entry, Expression, function_of_one, function_of_two
from candelabra_clike.language import Value, call, cast, constant, rare, select, sqrt

CONTRACTED = True

_ELEMENTARY = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "asin", "acos", "atan", "sigmoid", "sinc",
)  # fmt: skip
_SPECIAL = {
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


NEAR: Final = {"f32": 1024, "f64": 1 << 20}
"""The arguments up to which the library subtracts multiples of pi / 2, which takes neither integers nor a branch."""


def _periodic(name: str, type: str) -> Callable[[Value], Value]:
    def value(a: Value) -> Value:
        return rare(call("abs", a) > NEAR[type], call(name, a), call(f"{name}_near", a))

    return value


def _times_logarithm(function: str) -> Expression:
    """Return the product with a logarithm. 0 times a logarithm is 0, except for NaN."""
    return lambda a, b: select((a == 0) & (b == b), 0, a * call(function, b))


def _logit(a: Value, eps: Value | None) -> Value:
    return call("logit", a if eps is None else call("clamp", a, eps, 1 - eps))


_SERIES = [(-1) ** k * 2 * k / factorial(2 * k + 1) * pi ** (2 * k) for k in range(9, 0, -1)]
"""The coefficients of the Taylor series of sinc's derivative in the odd powers of its argument, the highest first."""


def _sinc_backward(a: Value, b: Value) -> Value:
    """Return ``a * (cos(pi b) - sinc(b)) / b``. The difference cancels near 0, where the series is used."""
    square, series = b * b, constant(b.type, _SERIES[0])
    for coefficient in _SERIES[1:]:
        series = series * square + coefficient
    return a * select(call("abs", b) < 0.32, series * b, (call("cospi", b) - call("sinc", b)) / b)


EXPRESSIONS: dict[str, Entry] = {
    **{name: {"float": function_of_one(word)} for name, word in _SPECIAL.items()},
    "special_zeta": {"float": function_of_two("zeta")},
    "polygamma_of": {"f32": _polygamma(finfo(float32).max), "f64": _polygamma(finfo(float64).max)},
    "sqrt": dict.fromkeys(("float", "complex"), lambda a: sqrt(a)),
    "rsqrt": {"float": lambda a: 1 / sqrt(a), "complex": lambda a: call("divide", 1, sqrt(a))},
    "pow": {
        **dict.fromkeys(("float", "complex"), function_of_two("power")),
        "signed": lambda a, b: cast(a.type, call("power_i64", a, b)),
        "unsigned": lambda a, b: cast(a.type, call("power_u64", a, b)),
    },
    **{
        name: {**{type: _periodic(name, type) for type in NEAR}, "complex": function_of_one(name)}
        for name in ("sin", "cos", "tan")
    },
    "atan2": {"float": lambda a, b: call("atan2", a, b)},
    "xlogy": {"float": _times_logarithm("log")},
    "special_xlog1py": {"float": _times_logarithm("log1p")},
    "special_entr": {"float": lambda a: select(a < 0, -inf, select(a == 0, 0, -a * call("log", a)))},
    "logit": {"float": _logit},
    "logaddexp": dict.fromkeys(("float", "complex"), function_of_two("logaddexp")),
    "logaddexp2": {"float": function_of_two("logaddexp2")},
    "sinc_backward": {"float": _sinc_backward},
    **{name: dict.fromkeys(("float", "complex"), function_of_one(name)) for name in _ELEMENTARY},
}
