"""The combination of the values of adjacent work-items of a group: by shuffles in a warp, by local memory beyond it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class LaneTotal(NamedTuple):
    """A variable of every work-item, of a type, and the text that combines two values of it."""

    name: str
    type: str
    combine: Callable[[str, str], str]

    def combined_with(self, other: str) -> str:
        """Return the statement that combines the variable with the value of an expression, which is read once."""
        return f"{{ const {self.type} other = {other}; {self.name} = {self.combine(self.name, 'other')}; }}\n"


def local_declarations(totals: Sequence[LaneTotal], lanes: int, group: int, warp: int) -> str:
    """Return the local memory that :func:`combine_lanes` needs. It is declared outside of all blocks."""
    if lanes <= warp:
        return ""
    return "".join(f"LOCAL {t.type} shared_{t.name}[{group // warp}];\n" for t in totals)


def combine_lanes(totals: Sequence[LaneTotal], lanes: int, warp: int) -> str:
    """Return statements after which ``lanes`` adjacent work-items have the same value of each variable: the combination
    of their values, always in the same order. All work-items of the group execute them, once.

    ``lanes`` and ``warp`` are powers of two. The operation is associative, but need not be commutative: the result of
    the first lane counts.
    """
    statements, distance = "", min(lanes, warp) // 2
    while distance:
        statements += "".join(t.combined_with(f"SHUFFLE({t.name}, LOCAL_ID ^ {distance}u)") for t in totals)
        distance //= 2
    if lanes <= warp:
        first = f"LOCAL_ID / {lanes}u * {lanes}u"
        return statements + "".join(f"{t.name} = SHUFFLE({t.name}, {first});\n" for t in totals if lanes > 1)
    if warp == 1:
        return _tree(totals, lanes)
    leaders = "".join(f"shared_{t.name}[LOCAL_ID / {warp}u] = {t.name};\n" for t in totals)
    statements += f"if (LOCAL_ID % {warp}u == 0) {{\n{leaders}}}\nBARRIER;\n"
    first = f"LOCAL_ID / {lanes}u * {lanes // warp}u"
    for t in totals:
        each = t.combined_with(f"shared_{t.name}[{first} + w]")
        statements += f"{t.name} = shared_{t.name}[{first}];\nUNROLL for (u32 w = 1; w < {lanes // warp}u; ++w) {each}"
    return statements


def _tree(totals: Sequence[LaneTotal], lanes: int) -> str:
    """Return :func:`combine_lanes` for dialects without SHUFFLE."""
    put = "".join(f"shared_{t.name}[LOCAL_ID] = {t.name};\n" for t in totals)
    joined = "".join(
        f"shared_{t.name}[LOCAL_ID] = {t.combine(f'shared_{t.name}[LOCAL_ID]', f'shared_{t.name}[LOCAL_ID + h]')};\n"
        for t in totals
    )
    get = "".join(f"{t.name} = shared_{t.name}[LOCAL_ID / {lanes}u * {lanes}u];\n" for t in totals)
    return (
        f"{put}BARRIER;\nfor (u32 h = {lanes // 2}u; h > 0; h /= 2u) {{\n"
        f"if (LOCAL_ID % {lanes}u < h) {{\n{joined}}}\nBARRIER;\n}}\n{get}"
    )
