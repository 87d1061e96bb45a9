"""Reductions by work-groups, for devices whose work-items are lanes: a tree in local memory joins what each has found.

``rows``: a group has an output, or a part of one; its lanes take neighbouring elements of a row.
``columns``: a group has :data:`ACROSS` outputs side by side; its lanes take neighbouring ones, and rows in turn.
"""

from __future__ import annotations

from candelabra_clike.source import Source
from candelabra_clike.templates.reductions.text import PART, ReductionText, unit_of
from candelabra_clike.templates.walks import Nest, moved

GROUP = 256
"""Work-items of a group."""
PIECE = 8192
"""Elements of a row that a group joins in lanes before it looks at its totals."""
ACROSS = 32
"""Columns of a group."""
DEEP = 32
"""Elements of a column that a lane takes between two looks at its total."""


class GroupText(ReductionText):
    """The sources of a fold for devices whose work-items are lanes."""

    def rows(self, nest: Nest, wide: bool, group: int = GROUP) -> Source:
        """Group ``g`` has part ``g % parts`` of output ``g / parts``: ``per_part`` of the units of its rows."""
        fold, last = self.fold, nest.reduced - 1
        step = "" if nest.adjacent else f" * r_s{last}"
        body = (
            "const INDEX part = GROUP_ID % parts, o = GROUP_ID / parts;\n"
            f"{PART}"
            f"INDEX row = a_at;\n{moved('row', 'o', 'k', range(nest.kept))}"
            f"{fold.total} total = {fold.first};\n"
            "for (INDEX unit = from; unit < to; ++unit) {\n"
            f"{unit_of(nest, f'{PIECE}u')}"
            f"const INDEX rest = r{last} - begin, n = rest < {PIECE}u ? rest : {PIECE}u;\n"
            f"{fold.lane} lane = {fold.first};\n"
            f"for (INDEX i = LOCAL_ID; i < n; i += {group}u) {self.taken('lane', f'at + i{step}')}"
            f"{self.totalled('total', 'lane')}}}\n"
            f"{self._tree(group, 1)}"
            f"if (LOCAL_ID == 0) {{\n{self.stored('part * outputs + o', 'shared[0]')}}}"
        )
        return self.source(f"group_rows_{nest.mark}", nest, (), body, wide, group)

    def lanes(self, nest: Nest, wide: bool) -> Source:
        """Work-item ``g`` has output ``g``: for those of few elements."""
        body = (
            "const INDEX o = GLOBAL_ID;\nif (o < outputs) {\n"
            f"INDEX row = a_at;\n{moved('row', 'o', 'k', range(nest.kept))}"
            f"{self.fold.total} total = {self.fold.first};\n"
            "for (INDEX r = 0; r < units; ++r) {\n"
            f"INDEX at = row;\n{moved('at', 'r', 'r', range(nest.reduced))}"
            f"{self.fold.lane} lane = {self.fold.first};\n{self.taken('lane', 'at')}"
            f"{self.totalled('total', 'lane')}}}\n"
            f"{self.stored('o', 'total')}}}"
        )
        return self.source(f"lanes_{nest.mark}", nest, (), body, wide, None)

    def columns(self, nest: Nest, wide: bool, group: int = GROUP) -> Source:
        """Groups have ``blocks`` of columns, and ``per_part`` of the rows that are reduced to them."""
        fold, last = self.fold, nest.kept - 1
        step = "" if nest.adjacent else f" * k_s{last}"
        body = (
            "const INDEX block = GROUP_ID % blocks, part = GROUP_ID / blocks % parts, o = GROUP_ID / blocks / parts;\n"
            f"const INDEX column = block * {ACROSS}u + LOCAL_ID % {ACROSS}u;\n"
            f"{PART}"
            f"INDEX row = a_at + column{step};\n{moved('row', 'o', 'k', range(last))}"
            f"{fold.total} total = {fold.first};\n"
            f"if (column < k{last}) for (INDEX r = from + LOCAL_ID / {ACROSS}u; r < to;) {{\n"
            f"{fold.lane} lane = {fold.first};\n"
            f"for (u32 i = 0; i < {DEEP}u && r < to; ++i, r += {group // ACROSS}u) {{\n"
            f"INDEX at = row;\n{moved('at', 'r', 'r', range(nest.reduced))}{self.taken('lane', 'at')}}}\n"
            f"{self.totalled('total', 'lane')}}}\n"
            f"{self._tree(group, ACROSS)}"
            f"if (LOCAL_ID < {ACROSS}u && column < k{last}) {{\n"
            f"{self.stored(f'part * outputs + o * k{last} + column', 'shared[LOCAL_ID]')}}}"
        )
        return self.source(f"group_columns_{nest.mark}", nest, ("blocks",), body, wide, group)

    def _tree(self, group: int, left: int) -> str:
        """Join the totals of a group into the first ``left`` of ``shared``."""
        joined = self.fold.joined("shared[LOCAL_ID]", "shared[LOCAL_ID + h]")
        return (
            f"LOCAL {self.fold.total} shared[{group}];\nshared[LOCAL_ID] = total;\nBARRIER;\n"
            f"for (u32 h = {group // 2}u; h >= {left}u; h /= 2u) {{\n"
            f"if (LOCAL_ID < h) shared[LOCAL_ID] = {joined};\nBARRIER;\n}}\n"
        )
