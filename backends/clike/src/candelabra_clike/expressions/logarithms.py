"""Products with logarithms, logits, logarithms of sums of exponentials, and sinc."""

from __future__ import annotations

from math import factorial, inf, pi

from candelabra_clike.expressions import Entry, Expression, function_of_one, function_of_two
from candelabra_clike.language import Value, call, constant, select

CONTRACTED = True


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
    "xlogy": {"float": _times_logarithm("log")},
    "special_xlog1py": {"float": _times_logarithm("log1p")},
    "special_entr": {"float": lambda a: select(a < 0, -inf, select(a == 0, 0, -a * call("log", a)))},
    "logit": {"float": _logit},
    "logaddexp": dict.fromkeys(("float", "complex"), function_of_two("logaddexp")),
    "logaddexp2": {"float": function_of_two("logaddexp2")},
    "sinc_backward": {"float": _sinc_backward},
    "sinc": dict.fromkeys(("float", "complex"), function_of_one("sinc")),
}
