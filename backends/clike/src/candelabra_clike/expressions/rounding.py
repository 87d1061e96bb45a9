"""Rounding to integers or to decimals."""

from __future__ import annotations

from math import inf

from candelabra.dtypes import finfo, float32, float64

from candelabra_clike.expressions import Entry, Expression, function_of_one
from candelabra_clike.language import Value, call


def _to_decimals(largest: float) -> Expression:
    """Return the expression that rounds to decimals by scaling in the value type, like the reference."""

    def expression(a: Value, decimals: int) -> Value:
        if decimals == 0:
            return call("round", a)
        power = 10.0 ** min(abs(decimals), 308)
        scale = power if power <= largest else inf
        return call("round", a * scale) / scale if decimals > 0 else call("round", a / scale) * scale

    return expression


def _of_integers(a: Value, decimals: int) -> Value:
    """Return the expression for integers. Raises ``TypeError`` for decimals, which they do not have."""
    if decimals:
        raise TypeError("integers have no decimals")
    return a


EXPRESSIONS: dict[str, Entry] = {
    **{name: {"float": function_of_one(name), "integer": lambda a: a} for name in ("floor", "ceil", "trunc")},
    "frac": {"float": lambda a: a - call("trunc", a)},
    "round": {
        "f32": _to_decimals(finfo(float32).max),
        "f64": _to_decimals(finfo(float64).max),
        "integer": _of_integers,
    },
}
