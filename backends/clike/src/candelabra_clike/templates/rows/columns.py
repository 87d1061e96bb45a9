"""Row kernels in tiles for rows whose elements are not adjacent in memory, but those of adjacent rows are: *columns*.

A group has :data:`ACROSS` adjacent columns, and its warps have different elements of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from candelabra_clike.templates.rows.serial import Stage
from candelabra_clike.templates.rows.tiles import TiledRowSourceBuilder

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
