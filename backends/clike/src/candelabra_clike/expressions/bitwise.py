"""Bitwise operators of integers and bools.

A shift by a negative count, or by the width or more, shifts out all bits.
"""

from __future__ import annotations

from candelabra_clike.expressions import Entry

_WIDE = "({U}){b} >= 8 * sizeof({T})"

EXPRESSIONS: dict[str, Entry] = {
    "bitwise_and": {"integer": "{a} & {b}", "bool": "{a} & {b}"},
    "bitwise_or": {"integer": "{a} | {b}", "bool": "{a} | {b}"},
    "bitwise_xor": {"integer": "{a} ^ {b}", "bool": "{a} ^ {b}"},
    "bitwise_not": {"integer": "({T})~{a}", "bool": "{a} ^ 1"},
    "bitwise_left_shift": {"integer": f"{_WIDE} ? 0 : ({{T}})(({{U}}){{a}} << {{b}})"},
    "bitwise_right_shift": {
        "signed": f"{_WIDE} ? ({{T}})({{a}} < 0 ? -1 : 0) : ({{T}})({{a}} >> {{b}})",
        "unsigned": f"{_WIDE} ? 0 : ({{T}})({{a}} >> {{b}})",
    },
}
