"""Comparisons and logical operators.

The results are bools. A number compared with a half type is rounded to it first.
"""

from __future__ import annotations

from candelabra_clike.expressions import Entry

_REAL = {"ne": "!=", "eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_LOGIC = {"logical_and": "&", "logical_or": "|", "logical_xor": "^"}

EXPRESSIONS: dict[str, Entry] = {
    name: {"number": f"{{a}} {sign} {{b}}", "bool": f"{{a}} {sign} {{b}}"} for name, sign in _REAL.items()
}
EXPRESSIONS["eq"] = {**EXPRESSIONS["eq"], "complex": "({a}.x == {b}.x) & ({a}.y == {b}.y)"}
EXPRESSIONS["ne"] = {**EXPRESSIONS["ne"], "complex": "({a}.x != {b}.x) | ({a}.y != {b}.y)"}
EXPRESSIONS |= {
    name: {
        "bool": f"{{a}} {sign} {{b}}",
        "number": f"({{a}} != 0) {sign} ({{b}} != 0)",
        "complex": f"(({{a}}.x != 0) | ({{a}}.y != 0)) {sign} (({{b}}.x != 0) | ({{b}}.y != 0))",
    }
    for name, sign in _LOGIC.items()
}
EXPRESSIONS["logical_not"] = {
    "bool": "{a} ^ 1",
    "number": "{a} == 0",
    "complex": "({a}.x == 0) & ({a}.y == 0)",
}
