"""Programs over rows for devices whose work-items are lanes: a group for each row, or a lane for each."""

from __future__ import annotations

from candelabra_clike.source import Source
from candelabra_clike.templates.rows.text import Pass, RowText

GROUP = 256
"""Work-items of a group."""
PIECE = 8192
"""Elements of a row that lanes take before they look at their totals."""


class GroupRows(RowText):
    """The sources of a program for devices whose work-items are lanes."""

    def by_groups(self, wide: bool, group: int) -> Source:
        """Group ``o`` has row ``o``."""
        shared = f"LOCAL {self.total if self.value == 'f32' else 'f64'} shared[{group}];\n"
        passes = "".join(self._pass(i, p, group) for i, p in enumerate(self.program.passes))
        loop = f"for (INDEX r = LOCAL_ID; r < count; r += {group}u)"
        body = f"{shared}const INDEX o = GROUP_ID;\n{self.rows('o', range(self.layout.kept))}{passes}{self._last(loop)}"
        return self.source("groups", body, (), wide, group)

    def by_lanes(self, wide: bool) -> Source:
        """Work-item ``o`` has row ``o``."""
        passes = "".join(self._pass(i, p, 1) for i, p in enumerate(self.program.passes))
        last = self._last("for (INDEX r = 0; r < count; ++r)")
        body = (
            "const INDEX o = GLOBAL_ID;\nif (o < outputs) {\n"
            f"{self.rows('o', range(self.layout.kept))}{passes}{last}}}"
        )
        return self.source("lanes", body, (), wide, None)

    def place(self, k: int, i: str) -> str:
        """The place of the element to which the run has been moved."""
        return f"{self.names[k]}_run"

    def _element(self, expression: str) -> str:
        return (
            f"{self.runs('r', range(self.layout.reduced))}{self.loads(expression, '')}"
            f"const {self.value} e = {self.words(expression)};\n"
        )

    def _last(self, loop: str) -> str:
        last = self.program.last
        return f"{loop} {{\n{self._element(last)}{self.stored('', 'e')}}}\n" if last else ""

    def _pass(self, index: int, p: Pass, group: int) -> str:
        value, total = self.value, self.total if p.join == "sum" else self.value
        start, step, piece = ("LOCAL_ID", f"{group}u", f"{PIECE}u") if group > 1 else ("0", "1u", f"{PIECE // GROUP}u")
        keep = self.stored("", "e") if p.keep else ""
        found = (
            f"for (INDEX begin = 0; begin < count; begin += {piece}) {{\n{value} lane = {self.first(p)};\n"
            f"const INDEX stop = count - begin < {piece} ? count : begin + {piece};\n"
            f"for (INDEX r = begin + {start}; r < stop; r += {step}) {{\n{self._element(p.each)}{keep}"
            f"lane = {p.joined('lane', 'e')};\n}}\ntotal = {p.joined('total', f'({total})lane')};\n}}\n"
        )
        tree = written = ""
        if group > 1:
            joined = p.joined("shared[LOCAL_ID]", "shared[LOCAL_ID + h]")
            tree = (
                "BARRIER;\nshared[LOCAL_ID] = total;\nBARRIER;\n"
                f"for (u32 h = {group // 2}u; h > 0; h /= 2u) {{\n"
                f"if (LOCAL_ID < h) shared[LOCAL_ID] = {joined};\nBARRIER;\n}}\n"
                f"total = ({total})shared[0];\n"
            )
        written = self.written(index, "o", f"r{index}")
        if written and group > 1:
            written = f"if (LOCAL_ID == 0) {{ {written} }}\n"
        return (
            f"{value} r{index};\n{{ {total} total = {self.first(p)};\n{found}{tree}"
            f"r{index} = ({value})({self.words(p.result)}); }}\n{written}"
        )
