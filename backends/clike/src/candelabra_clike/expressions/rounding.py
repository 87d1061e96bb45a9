"""Rounding to integers or to decimals."""

from __future__ import annotations

from collections.abc import Callable

from candelabra_clike.expressions import Entry


def _to_decimals(suffix: str, largest: float) -> Callable[[int], str]:
    """Return the expression that rounds to decimals by scaling in the value type, like the reference."""

    def expression(decimals: int) -> str:
        scale = 10.0 ** min(abs(decimals), 400 if suffix else 308)
        number = f"{scale!r}{suffix}" if scale <= largest else "INFINITE_{W}"
        if decimals == 0:
            return "round_{T}({a})"
        if decimals > 0:
            return f"DIVIDE_{{W}}(round_{{T}}({{a}} * {number}), {number})"
        return f"round_{{T}}(DIVIDE_{{W}}({{a}}, {number})) * {number}"

    return expression


def _of_integers(decimals: int) -> str:
    """Return the expression for integers. Raises ``TypeError`` for decimals, which they do not have."""
    if decimals:
        raise TypeError("integers have no decimals")
    return "{a}"


EXPRESSIONS: dict[str, Entry] = {
    "floor": {"float": "floor_{T}({a})", "integer": "{a}"},
    "ceil": {"float": "ceil_{T}({a})", "integer": "{a}"},
    "trunc": {"float": "trunc_{T}({a})", "integer": "{a}"},
    "frac": {"float": "{a} - trunc_{T}({a})"},
    "round": {
        "f32": _to_decimals("f", 3.4028234663852886e38),
        "f64": _to_decimals("", 1.7976931348623157e308),
        "integer": _of_integers,
    },
}
