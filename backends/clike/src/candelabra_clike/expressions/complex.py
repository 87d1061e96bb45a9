"""Conjugates and phase angles."""

from __future__ import annotations

from candelabra_clike.expressions import Entry

EXPRESSIONS: dict[str, Entry] = {
    "conj_physical": {"complex": "{W}({a}.x, -{a}.y)", "any": "{a}"},
    "angle": {
        "f32": "{a} != {a} ? {a} : {a} < 0 ? 3.14159265f : 0",
        "f64": "{a} != {a} ? {a} : {a} < 0 ? 3.141592653589793 : 0",
        "complex": "atan2_{R}({a}.y, {a}.x)",
    },
}
