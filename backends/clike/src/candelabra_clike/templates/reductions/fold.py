"""What a reduction does with its elements: each is turned into something, and two such become one, in some order."""

from __future__ import annotations

from dataclasses import dataclass

from candelabra_clike.types import CType

EIGHTS = frozenset({"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64"})
"""The types of which there are vectors of eight."""


@dataclass(frozen=True)
class Fold:
    """``result(join(each(x0), join(each(x1), …)))``, as expressions of C.

    ``each`` is of ``{x}``, a value of the input, and gives a ``lane``: the type in which some hundred elements are
    joined. ``join`` is of ``{a}`` and ``{b}``, both lanes or both of the wider type ``total`` in which lanes are
    joined; ``first`` is what joins with anything without changing it. ``result`` is of the total ``{t}``, and of
    ``count``, how many elements there were. ``eights``: ``each`` and ``join`` hold for vectors of eight as they stand.
    """

    each: str
    join: str
    first: str
    lane: str
    total: str
    result: str = "{t}"
    eights: bool = True

    def taken(self, lane: str, value: str) -> str:
        """The statement that joins a value of the input (the name of a variable) to a lane."""
        return f"{lane} = {self.joined(lane, self.each.format(x=value))};\n"

    def joined(self, a: str, b: str) -> str:
        """The expression of two that have become one."""
        return "(" + self.join.format(a=a, b=b) + ")"

    def again(self) -> Fold:
        """The fold of totals that an earlier fold has left."""
        return Fold("{x}", self.join, self.first, self.total, self.total, self.result, self.eights)


def loads_eights(fold: Fold, element: CType) -> bool:
    """Whether elements of this type can be loaded and joined by eights."""
    known = element.converts in ("f16", "bf16") if element.converts else element.memory in EIGHTS
    return fold.eights and known and fold.lane in EIGHTS and (element.value == fold.lane or fold.each == "{x}")


def eight(fold: Fold, element: CType, place: str) -> str:
    """The vector of eight lanes from a place of the device's memory on."""
    loaded = f"EIGHT({element.memory}, {place})"
    if element.converts:
        loaded = f"load_{element.converts}_x8({loaded})"
    if element.value != fold.lane:
        return f"AS_{fold.lane.upper()}X8({loaded})"
    return loaded


def eights_joined(fold: Fold, name: str, into: str) -> str:
    """Statements that join the eight of a vector, and what is in a lane, into that lane; always in the same order."""
    pairs = ", ".join(f"{name}_{k} = {fold.joined(f'{name}.s{k}', f'{name}.s{k + 4}')}" for k in range(4))
    last = " ".join(f"{name}_{a} = {fold.joined(f'{name}_{a}', f'{name}_{b}')};" for a, b in ((0, 2), (1, 3), (0, 1)))
    return f"{fold.lane} {pairs};\n{last}\n{into} = {fold.joined(into, f'{name}_0')};\n"
