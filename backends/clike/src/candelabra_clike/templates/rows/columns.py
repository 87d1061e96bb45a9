"""Row kernels for devices whose work-items are lanes, for rows whose elements are not adjacent in memory, but those of
adjacent rows are: *columns*. Short rows are processed by a lane each.

In tiles a group has :data:`ACROSS` adjacent columns, and its warps have different elements of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from candelabra_clike.language import text
from candelabra_clike.source import Source
from candelabra_clike.templates.rows.program import RowReduction
from candelabra_clike.templates.rows.serial import Stage
from candelabra_clike.templates.rows.source import RowSourceBuilder
from candelabra_clike.templates.rows.tiles import TiledRowSourceBuilder

PIECE = 32
"""Elements of a row that a lane accumulates before it adds to its total."""


class LaneRowSourceBuilder(RowSourceBuilder):
    """The source of a row program for short rows, and for rows whose elements are not adjacent in memory, but those of
    adjacent rows are.
    """

    def by_lanes(self, wide: bool) -> Source:
        """Return the kernel in which work-item ``o`` processes row ``o``."""
        passes = "".join(self._pass(i, p) for i, p in enumerate(self.program.passes))
        body = (
            "const INDEX o = GLOBAL_ID;\nif (o < outputs) {\n"
            f"{self.rows('o', range(self.layout.kept))}{passes}{self._last()}}}"
        )
        return self.source("lanes", body, (), wide, None)

    def offset(self, k: int, i: str) -> str:
        """Return the offset of the element, to which the run has been moved already."""
        return f"{self.names[k]}_run"

    def _element(self, position: int) -> str:
        value = self.element(position)
        return (
            f"{self.runs('r', range(self.layout.reduced))}{self.load_operands([value], '')}"
            f"const {self.value} e = {text(value)};\n"
        )

    def _last(self) -> str:
        if self.program.last is None:
            return ""
        return (
            f"for (INDEX r = 0; r < count; ++r) {{\n{self._element(len(self.program.passes))}{self.store('', 'e')}}}\n"
        )

    def _pass(self, index: int, p: RowReduction) -> str:
        value, total = self.value, self.total_type(p)
        store_elements = self.store("", "e") if p.store_elements else ""
        return (
            f"{value} r{index};\n{{ {total} total = {self.identity(p)};\n"
            f"for (INDEX begin = 0; begin < count; begin += {PIECE}u) {{\n{value} lane = {self.identity(p)};\n"
            f"const INDEX stop = count - begin < {PIECE}u ? count : begin + {PIECE}u;\n"
            f"for (INDEX r = begin; r < stop; ++r) {{\n{self._element(index)}{store_elements}"
            f"lane = {self.combine(p, 'lane', 'e')};\n}}\n"
            f"total = {self.combine(p, 'total', f'({total})lane')};\n}}\n"
            f"r{index} = {self.result(index, 'total')}; }}\n{self.stored_result(index, 'o', f'r{index}')}"
        )


ACROSS = 32
"""Columns of a group."""


class ColumnTileSourceBuilder(TiledRowSourceBuilder):
    """The forms ``groups`` and ``split`` of a row program over columns. The lanes of the tile are those of a column."""

    own = ("blocks",)
    first = "lane == 0 && inside"

    def _group_start(self, splits: str) -> str:
        size, last = "size" if splits != "1u" else "count", self.layout.kept - 1
        return (
            f"const u32 lane = LOCAL_ID / {ACROSS}u;\n"
            f"const INDEX part = GROUP_ID / blocks % {splits}, outer = GROUP_ID / blocks / {splits};\n"
            f"const INDEX column = GROUP_ID % blocks * {ACROSS}u + LOCAL_ID % {ACROSS}u;\n"
            f"const u32 inside = column < k{last};\nconst INDEX o = outer * k{last} + (inside ? column : 0);\n"
            f"const INDEX from = part * {size}, end = count - from < {size} ? count : from + {size};\n"
            "const INDEX stop = inside ? end : from;\n"
        )

    def _offsets(self, positions: Collection[int]) -> str:
        return self.run_offsets(positions)

    def _stored_total(self, i: int) -> str:
        return f"t{i}[part * outputs + o]"

    def _read_totals(self, stage: Stage) -> str:
        loads = "".join(f"total{i} = {self.combine(p, f'total{i}', f't{i}[q * outputs + o]')};\n" for i, p in stage)
        return f"for (INDEX q = lane; q < parts; q += {self.tile.lanes}u) {{\n{loads}}}\n"

    def _declared_totals(self, of: Sequence[Stage] | None = None) -> str:
        stages = self.stages if of is None else of
        return "".join(
            f"LOCAL {self.total_type(p)} shared_total{i}[{self.tile.group}];\n" for stage in stages for i, p in stage
        )

    def _combined_totals(self, stage: Stage) -> str:
        put = "".join(f"shared_total{i}[LOCAL_ID] = total{i};\n" for i, _ in stage)
        get = joined = ""
        for i, p in stage:
            get += f"total{i} = shared_total{i}[LOCAL_ID % {ACROSS}u];\n"
            other = f"shared_total{i}[LOCAL_ID % {ACROSS}u + h * {ACROSS}u]"
            joined += f"total{i} = {self.combine(p, f'total{i}', other)};\n"
        return f"{put}BARRIER;\n{get}UNROLL for (u32 h = 1; h < {self.tile.lanes}u; ++h) {{\n{joined}}}\n"
