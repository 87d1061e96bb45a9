"""Losses of the distance of two numbers, and values around a center."""

from __future__ import annotations

from candelabra_clike.expressions import Entry
from candelabra_clike.language import Value, call


def _huber_backward(a: Value, b: Value, c: Value, curve: Value, width: Value) -> Value:
    return a * (call("clamp", b - c, -width, width) * (2 * curve))


EXPRESSIONS: dict[str, Entry] = {
    "huber": {"float": lambda a, b, curve, width, slope: call("huber", a - b, curve, width, slope)},
    "huber_backward": {"float": _huber_backward},
    "scale_about": {"float": lambda a, b, c, d: (a - b) * c + d},
}
