"""Conjugates and phase angles."""

from __future__ import annotations

from math import pi

from candelabra_clike.expressions import Entry
from candelabra_clike.language import call, constant, pair, select

EXPRESSIONS: dict[str, Entry] = {
    "conj_physical": {"complex": lambda a: pair(a.real, -a.imag), "any": lambda a: a},
    "angle": {
        "float": lambda a: select(a != a, a, select(a < 0, pi, constant(a.type, 0))),
        "complex": lambda a: call("atan2", a.imag, a.real),
    },
}
