"""Reductions by work-groups, for devices whose work-items are lanes. A tree in local memory combines the lanes.

``rows``: a group reduces an output, or a part of one; its lanes read adjacent elements of a row.
``columns``: a group reduces :data:`ACROSS` adjacent outputs; adjacent lanes read adjacent columns.
"""

from __future__ import annotations

from candelabra_clike.source import Source
from candelabra_clike.templates.reduction_dims import ReductionForm
from candelabra_clike.templates.reductions.source import PART, ReductionSourceBuilder

GROUP = 256
"""The work-group size."""
PIECE = 8192
"""Elements of a row that the lanes accumulate before they add to their totals."""
ACROSS = 32
"""Columns of a group."""
DEEP = 32
"""Elements of a column that a lane accumulates before it adds to its total."""


class GroupReductionSourceBuilder(ReductionSourceBuilder):
    """The sources of a fold for devices whose work-items are lanes."""

    def rows(self, nest: ReductionForm, wide: bool, group: int = GROUP) -> Source:
        """Return the kernel in which group ``g`` reduces part ``g % parts`` of output ``g / parts``: ``per_part``
        units.
        """
        fold, last = self.fold, nest.reduced - 1
        step = "" if nest.adjacent else f" * {{}}_r{last}"
        body = (
            "const INDEX part = GROUP_ID % parts, o = GROUP_ID / parts;\n"
            f"{PART}{self.row(nest.kept)}"
            f"{fold.total} total = {fold.identity};\n"
            "for (INDEX unit = from; unit < to; ++unit) {\n"
            f"{self.unit(nest, f'{PIECE}u')}"
            f"const INDEX rest = r{last} - begin, n = rest < {PIECE}u ? rest : {PIECE}u;\n"
            f"{fold.lane} lane = {fold.identity};\n"
            f"for (INDEX i = LOCAL_ID; i < n; i += {group}u) {self.accumulate_at('lane', '_run', 'i', step)}"
            f"{self.add_to_total('total', 'lane')}}}\n"
            f"{self._tree(group, 1)}"
            f"if (LOCAL_ID == 0) {{\n{self.store_total('part * outputs + o', 'shared[0]')}}}"
        )
        return self.source(f"group_rows_{nest.mark}", nest, (), body, wide, group)

    def lanes(self, nest: ReductionForm, wide: bool) -> Source:
        """Return the kernel in which work-item ``g`` reduces output ``g``, for few elements per output."""
        body = (
            "const INDEX o = GLOBAL_ID;\nif (o < outputs) {\n"
            f"{self.row(nest.kept)}"
            f"{self.fold.total} total = {self.fold.identity};\n"
            "for (INDEX r = 0; r < units; ++r) {\n"
            f"{self.run('r', nest.reduced)}"
            f"{self.fold.lane} lane = {self.fold.identity};\n{self.accumulate_at('lane', '_run')}"
            f"{self.add_to_total('total', 'lane')}}}\n"
            f"{self.store_total('o', 'total')}}}"
        )
        return self.source(f"lanes_{nest.mark}", nest, (), body, wide, None)

    def columns(self, nest: ReductionForm, wide: bool, group: int = GROUP) -> Source:
        """Return the kernel in which groups reduce ``blocks`` of columns, ``per_part`` rows each."""
        fold, last = self.fold, nest.kept - 1
        column = " + column" if nest.adjacent else f" + column * {{}}_k{last}"
        body = (
            "const INDEX block = GROUP_ID % blocks, part = GROUP_ID / blocks % parts, o = GROUP_ID / blocks / parts;\n"
            f"const INDEX column = block * {ACROSS}u + LOCAL_ID % {ACROSS}u;\n"
            f"{PART}{self.row(last, column)}"
            f"{fold.total} total = {fold.identity};\n"
            f"if (column < k{last}) for (INDEX r = from + LOCAL_ID / {ACROSS}u; r < to;) {{\n"
            f"{fold.lane} lane = {fold.identity};\n"
            f"for (u32 i = 0; i < {DEEP}u && r < to; ++i, r += {group // ACROSS}u) {{\n"
            f"{self.run('r', nest.reduced)}{self.accumulate_at('lane', '_run')}}}\n"
            f"{self.add_to_total('total', 'lane')}}}\n"
            f"{self._tree(group, ACROSS)}"
            f"if (LOCAL_ID < {ACROSS}u && column < k{last}) {{\n"
            f"{self.store_total(f'part * outputs + o * k{last} + column', 'shared[LOCAL_ID]')}}}"
        )
        return self.source(f"group_columns_{nest.mark}", nest, ("blocks",), body, wide, group)

    def _tree(self, group: int, left: int) -> str:
        """Return statements that combine the totals of a group into the first ``left`` elements of ``shared``."""
        combine = self.fold.combine("shared[LOCAL_ID]", "shared[LOCAL_ID + h]")
        return (
            f"LOCAL {self.fold.total} shared[{group}];\nshared[LOCAL_ID] = total;\nBARRIER;\n"
            f"for (u32 h = {group // 2}u; h >= {left}u; h /= 2u) {{\n"
            f"if (LOCAL_ID < h) shared[LOCAL_ID] = {combine};\nBARRIER;\n}}\n"
        )
