"""Products with logarithms, logits, logarithms of sums of exponentials, and sinc."""

from __future__ import annotations

from math import inf

from candelabra_clike.expressions import Entry, Expression, function_of_one, function_of_two
from candelabra_clike.language import Value, call, select

CONTRACTED = True


def _times_logarithm(function: str) -> Expression:
    """Return the product with a logarithm. 0 times a logarithm is 0, except for NaN."""
    return lambda a, b: select((a == 0) & (b == b), 0, a * call(function, b))


def _logit(a: Value, eps: Value | None) -> Value:
    return call("logit", a if eps is None else call("clamp", a, eps, 1 - eps))


EXPRESSIONS: dict[str, Entry] = {
    "xlogy": {"float": _times_logarithm("log")},
    "special_xlog1py": {"float": _times_logarithm("log1p")},
    "special_entr": {"float": lambda a: select(a < 0, -inf, select(a == 0, 0, -a * call("log", a)))},
    "logit": {"float": _logit},
    "logaddexp": dict.fromkeys(("float", "complex"), function_of_two("logaddexp")),
    "logaddexp2": {"float": function_of_two("logaddexp2")},
    "sinc": dict.fromkeys(("float", "complex"), function_of_one("sinc")),
}
