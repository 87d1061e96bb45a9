"""The C of reductions that all their forms share."""

from __future__ import annotations

from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.reductions.fold import Fold, eight, loads_eights
from candelabra_clike.templates.walks import Nest, dims_of, moved
from candelabra_clike.types import CType

PART = (
    "const INDEX from = part * per_part < units ? part * per_part : units;\n"
    "const INDEX to = units - from < per_part ? units : from + per_part;\n"
)
"""What of the units is this part: none for the last one, possibly."""


def unit_of(nest: Nest, piece: str) -> str:
    """Statements for where a unit is: ``piece`` elements of a row from ``begin`` on, ``at`` in memory."""
    last = nest.reduced - 1
    step = "" if nest.adjacent_rows else f" * r_s{last}"
    if not last:
        return f"const INDEX begin = unit * {piece}, at = row + begin{step};\n"
    outer = moved("at", "unit / pieces", "r", range(last))
    return f"const INDEX begin = unit % pieces * {piece};\nINDEX at = row + begin{step};\n{outer}"


class ReductionText:
    """The sources of one fold over one type of element. Without a ``store`` the totals themselves are written."""

    def __init__(self, name: str, fold: Fold, element: CType, store: CType | None) -> None:
        self.name = name
        self.fold = fold
        self.element = element
        self.store = store
        self.eights = loads_eights(fold, element)
        self.buffers = (writes("out", store.memory if store else fold.total), reads("a", element.memory))

    def stored(self, place: str, total: str) -> str:
        """The statement that writes a total, or what it results in."""
        if self.store is None:
            return f"out[{place}] = {total};\n"
        return f"out[{place}] = {self.store.store('(' + self.fold.result.format(t=total) + ')')};\n"

    def totalled(self, total: str, lane: str) -> str:
        """The statement that joins a lane to a total."""
        fold = self.fold
        return f"{total} = {fold.joined(total, lane if fold.lane == fold.total else f'({fold.total}){lane}')};\n"

    def taken(self, lane: str, place: str) -> str:
        """Statements that join the element at a place to a lane."""
        return (
            f"{{ const {self.element.value} x = {self.element.load(f'a[{place}]')};\n{self.fold.taken(lane, 'x')}}}\n"
        )

    def eight_taken(self, lanes: str, place: str) -> str:
        """Statements that join eight elements from a place on to a vector of lanes."""
        return f"{{ const {self.fold.lane}x8 x = {eight(self.fold, self.element, f'a + {place}')};\n" + (
            f"{self.fold.taken(lanes, 'x')}}}\n"
        )

    def source(self, mark: str, nest: Nest, own: tuple[str, ...], body: str, wide: bool, group: int | None) -> Source:
        head = [number(n) for n in ("a_at", "outputs", "count", "units", "parts", "per_part", "pieces", *own)]
        numbers = (*head, *dims_of("k", nest.kept), *dims_of("r", nest.reduced))
        return Source(f"{self.name}_{mark}", (*self.buffers, *numbers), body, wide=wide, group=group)
