"""Row kernels for devices whose work-items are lanes: a work-group per row, or a lane per row."""

from __future__ import annotations

from candelabra_clike.language import text
from candelabra_clike.source import Source
from candelabra_clike.templates.rows.program import RowReduction
from candelabra_clike.templates.rows.source import RowSourceBuilder

GROUP = 256
"""The work-group size."""
PIECE = 8192
"""Elements of a row that the lanes accumulate before they add to their totals."""


class GroupRowSourceBuilder(RowSourceBuilder):
    """The sources of a row program for devices whose work-items are lanes."""

    def by_groups(self, wide: bool, group: int) -> Source:
        """Return the kernel in which work-group ``o`` processes row ``o``."""
        shared = f"LOCAL {self.types.total if self.value == 'f32' else 'f64'} shared[{group}];\n"
        passes = "".join(self._pass(i, p, group) for i, p in enumerate(self.program.passes))
        loop = f"for (INDEX r = LOCAL_ID; r < count; r += {group}u)"
        body = f"{shared}const INDEX o = GROUP_ID;\n{self.rows('o', range(self.layout.kept))}{passes}{self._last(loop)}"
        return self.source("groups", body, (), wide, group)

    def by_lanes(self, wide: bool) -> Source:
        """Return the kernel in which work-item ``o`` processes row ``o``."""
        passes = "".join(self._pass(i, p, 1) for i, p in enumerate(self.program.passes))
        last = self._last("for (INDEX r = 0; r < count; ++r)")
        body = (
            "const INDEX o = GLOBAL_ID;\nif (o < outputs) {\n"
            f"{self.rows('o', range(self.layout.kept))}{passes}{last}}}"
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

    def _last(self, loop: str) -> str:
        if self.program.last is None:
            return ""
        return f"{loop} {{\n{self._element(len(self.program.passes))}{self.store('', 'e')}}}\n"

    def _pass(self, index: int, p: RowReduction, group: int) -> str:
        value, total = self.value, self.total_type(p)
        start, step, piece = ("LOCAL_ID", f"{group}u", f"{PIECE}u") if group > 1 else ("0", "1u", f"{PIECE // GROUP}u")
        store_elements = self.store("", "e") if p.store_elements else ""
        loop = (
            f"for (INDEX begin = 0; begin < count; begin += {piece}) {{\n{value} lane = {self.identity(p)};\n"
            f"const INDEX stop = count - begin < {piece} ? count : begin + {piece};\n"
            f"for (INDEX r = begin + {start}; r < stop; r += {step}) {{\n{self._element(index)}{store_elements}"
            f"lane = {self.combine(p, 'lane', 'e')};\n}}\n"
            f"total = {self.combine(p, 'total', f'({total})lane')};\n}}\n"
        )
        tree = stored_result = ""
        if group > 1:
            combine = self.combine(p, "shared[LOCAL_ID]", "shared[LOCAL_ID + h]")
            tree = (
                "BARRIER;\nshared[LOCAL_ID] = total;\nBARRIER;\n"
                f"for (u32 h = {group // 2}u; h > 0; h /= 2u) {{\n"
                f"if (LOCAL_ID < h) shared[LOCAL_ID] = {combine};\nBARRIER;\n}}\n"
                f"total = ({total})shared[0];\n"
            )
        stored_result = self.stored_result(index, "o", f"r{index}")
        if stored_result and group > 1:
            stored_result = f"if (LOCAL_ID == 0) {{ {stored_result} }}\n"
        return (
            f"{value} r{index};\n{{ {total} total = {self.identity(p)};\n{loop}{tree}"
            f"r{index} = {self.result(index, 'total')}; }}\n{stored_result}"
        )
