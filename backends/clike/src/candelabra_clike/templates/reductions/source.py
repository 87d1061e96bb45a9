"""The common parts of the sources of reductions."""

from __future__ import annotations

from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.reduction_dims import ReductionForm, add_offset, dim_parameters
from candelabra_clike.templates.reductions.fold import Fold, is_vectorizable, load_vector
from candelabra_clike.types import CType

PART = (
    "const INDEX from = part * per_part < units ? part * per_part : units;\n"
    "const INDEX to = units - from < per_part ? units : from + per_part;\n"
)
"""Statements for the range of units of a part; the range of the last part may be empty."""


def unit_of(nest: ReductionForm, piece: str) -> str:
    """Return statements for the location of a unit: ``piece`` elements of a row from ``begin``, ``at`` in memory."""
    last = nest.reduced - 1
    step = "" if nest.adjacent_rows else f" * r_s{last}"
    if not last:
        return f"const INDEX begin = unit * {piece}, at = row + begin{step};\n"
    outer = add_offset("at", "unit / pieces", "r", range(last))
    return f"const INDEX begin = unit % pieces * {piece};\nINDEX at = row + begin{step};\n{outer}"


class ReductionSourceBuilder:
    """The sources of one fold over one type of element. Without a ``store`` type, they store the totals themselves."""

    def __init__(self, name: str, fold: Fold, element: CType, store: CType | None) -> None:
        self.name = name
        self.fold = fold
        self.element = element
        self.store = store
        self.vectorizes = is_vectorizable(fold, element)
        self.buffers = (writes("out", store.memory if store else fold.total), reads("a", element.memory))

    def store_total(self, offset: str, total: str) -> str:
        """Return the statement that stores a total, or its result."""
        if self.store is None:
            return f"out[{offset}] = {total};\n"
        return f"out[{offset}] = {self.store.store('(' + self.fold.result.format(t=total) + ')')};\n"

    def add_to_total(self, total: str, lane: str) -> str:
        """Return the statement that combines a lane with a total."""
        fold = self.fold
        return f"{total} = {fold.combine(total, lane if fold.lane == fold.total else f'({fold.total}){lane}')};\n"

    def accumulate(self, lane: str, offset: str) -> str:
        """Return statements that combine the element at ``offset`` with a lane."""
        value = f"const {self.element.value} x = {self.element.load(f'a[{offset}]')};\n"
        return f"{{ {value}{self.fold.accumulate(lane, 'x')}}}\n"

    def accumulate_vector(self, lanes: str, offset: str) -> str:
        """Return statements that combine eight elements from ``offset`` on with a vector of lanes."""
        return f"{{ const {self.fold.lane}x8 x = {load_vector(self.fold, self.element, f'a + {offset}')};\n" + (
            f"{self.fold.accumulate(lanes, 'x')}}}\n"
        )

    def source(
        self, mark: str, nest: ReductionForm, own: tuple[str, ...], body: str, wide: bool, group: int | None
    ) -> Source:
        head = [number(n) for n in ("a_at", "outputs", "count", "units", "parts", "per_part", "pieces", *own)]
        numbers = (*head, *dim_parameters("k", nest.kept), *dim_parameters("r", nest.reduced))
        return Source(f"{self.name}_{mark}", (*self.buffers, *numbers), body, wide=wide, group=group)
