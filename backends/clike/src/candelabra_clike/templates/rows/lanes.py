"""Row kernels for devices whose work-items are lanes, in which a lane processes a row."""

from __future__ import annotations

from candelabra_clike.language import text
from candelabra_clike.source import Source
from candelabra_clike.templates.rows.program import RowReduction
from candelabra_clike.templates.rows.source import RowSourceBuilder

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
