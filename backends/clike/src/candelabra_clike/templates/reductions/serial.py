"""Reductions as long loops, for devices whose work-items are such: one work-item for some outputs, or a part of one.

``rows``: what is reduced lies side by side (or with any step), and is joined in four vectors of eight lanes.
``columns``: what is kept lies side by side; each output of a block has a lane, and whole rows are joined to them.
``narrow``: the same with so few columns that several rows lie side by side in the lanes.

Lanes are joined into totals every so many elements: the error of a sum in float32 grows with these, not with the size
of the input, where the totals are of float64.
"""

from __future__ import annotations

from candelabra_clike.source import Source
from candelabra_clike.templates.reductions.fold import eights_joined
from candelabra_clike.templates.reductions.text import PART, ReductionText, unit_of
from candelabra_clike.templates.walks import Nest, moved

CHUNK = 2048
"""Elements of a row between two looks at the total."""
SHORT = 512
"""Elements that lanes of the type of the total take before they are joined."""
ROWS = 128
"""Rows of columns between two looks at the totals."""
BLOCK = 256
"""Columns of a work-item, at most."""
NARROW = 64
"""Fewer columns than this are narrow: at most 8 * 63 lanes are a multiple of them and of eight."""
LANES = 512


class SerialText(ReductionText):
    """The sources of a fold for devices whose work-items are loops."""

    # -- rows ---------------------------------------------------------------------------------------------------------
    def rows(self, nest: Nest, lanes: bool, wide: bool, group: int | None = 1) -> Source:
        """Work-item ``g`` has part ``g % parts`` of the outputs from ``g / parts * per_item`` on.

        A part is ``per_part`` of the units into which the reduced dims are cut: stretches of a row, at most ``CHUNK``,
        ``pieces`` of them a row. ``lanes``: rows are long enough for vectors.
        """
        last = nest.reduced - 1
        body = (
            "const INDEX part = GLOBAL_ID % parts, first = GLOBAL_ID / parts * per_item;\n"
            "const INDEX end = outputs - first < per_item ? outputs : first + per_item;\n"
            f"{PART}"
            "for (INDEX o = first; o < end; ++o) {\n"
            f"INDEX row = a_at;\n{moved('row', 'o', 'k', range(nest.kept))}"
            f"{self.fold.total} total = {self.fold.first};\n"
            "for (INDEX unit = from; unit < to; ++unit) {\n"
            f"{unit_of(nest, f'{CHUNK}u')}"
            f"const INDEX rest = r{last} - begin, n = rest < {CHUNK}u ? rest : {CHUNK}u;\n"
            f"{self.stretch(nest, lanes)}}}\n"
            f"{self.stored('part * outputs + o', 'total')}}}"
        )
        mark = f"rows{'_long' if lanes else ''}_{nest.mark}"
        return self.source(mark, nest, ("per_item",), body, wide, group)

    def stretch(self, nest: Nest, lanes: bool) -> str:
        """Join ``n`` elements from ``at`` on to ``total``."""
        fold, step = self.fold, "" if nest.adjacent else f" * r_s{nest.reduced - 1}"
        block = CHUNK if fold.lane != fold.total else SHORT  # a wider total forgives longer chains
        text = f"{fold.lane} lane = {fold.first};\nINDEX i = 0;\n"
        if lanes and nest.adjacent and self.eights:
            vector = f"{fold.lane}x8"
            text += (
                f"while (n - i >= 32u) {{\nconst INDEX stop = n - i < {block}u ? n : i + {block}u;\n{vector} v[4];\n"
                f"UNROLL for (u32 j = 0; j < 4u; ++j) v[j] = ({vector})({fold.first});\n"
                "for (; i + 32u <= stop; i += 32u) UNROLL for (u32 j = 0; j < 4u; ++j)\n"
                f"{self.eight_taken('v[j]', 'at + i + 8u * j')}"
                f"v[0] = {fold.joined('v[0]', 'v[1]')}; v[2] = {fold.joined('v[2]', 'v[3]')};\n"
                f"const {vector} e = {fold.joined('v[0]', 'v[2]')};\n{eights_joined(fold, 'e', 'lane')}}}\n"
            )
        return text + f"for (; i < n; ++i) {self.taken('lane', f'at + i{step}')}{self.totalled('total', 'lane')}"

    # -- columns ------------------------------------------------------------------------------------------------------
    def columns(self, nest: Nest, wide: bool) -> Source:
        """A work-item has a block of outputs side by side, and ``per_part`` of the rows that are reduced to them."""
        fold, last = self.fold, nest.kept - 1
        step = "" if nest.adjacent else f" * k_s{last}"
        places = range(nest.reduced)
        row = f"INDEX at = row;\n{moved('at', 'r', 'r', places)}"
        four = "".join(f"INDEX at{i} = row;\n{moved(f'at{i}', f'(r + {i}u)', 'r', places)}" for i in range(4))
        body = (
            "const INDEX block = GLOBAL_ID % blocks, part = GLOBAL_ID / blocks % parts;\n"
            "const INDEX o = GLOBAL_ID / blocks / parts;\n"
            f"const INDEX begin = block * size, rest = k{last} - begin;\n"
            "const u32 width = (u32)(rest < size ? rest : size);\n"
            f"{PART}"
            f"INDEX row = a_at + begin{step};\n{moved('row', 'o', 'k', range(last))}"
            f"{fold.total} total[{BLOCK}];\n{fold.lane} lane[{BLOCK}];\n"
            f"for (u32 c = 0; c < width; ++c) total[c] = {fold.first};\n"
            "for (INDEX r = from; r < to;) {\n"
            f"const INDEX stop = to - r < {ROWS}u ? to : r + {ROWS}u;\n"
            f"for (u32 c = 0; c < width; ++c) lane[c] = {fold.first};\n"
            f"for (; r + 4u <= stop; r += 4u) {{\n{four}{self._across(nest, ['at0', 'at1', 'at2', 'at3'], step)}}}\n"
            f"for (; r < stop; ++r) {{\n{row}{self._across(nest, ['at'], step)}}}\n"
            f"for (u32 c = 0; c < width; ++c) {self.totalled('total[c]', 'lane[c]')}}}\n"
            f"for (u32 c = 0; c < width; ++c) {self.stored(f'part * outputs + o * k{last} + begin + c', 'total[c]')}"
        )
        return self.source(f"columns_{nest.mark}", nest, ("blocks", "size"), body, wide, 1)

    def _across(self, nest: Nest, starts: list[str], step: str) -> str:
        """Join the columns of some rows to the lanes."""
        fold = self.fold
        ones = "".join(self.taken("v", f"{at} + c{step}") for at in starts)
        one = f"{fold.lane} v = lane[c];\n{ones}lane[c] = v;"
        if not (nest.adjacent and self.eights):
            return f"for (u32 c = 0; c < width; ++c) {{\n{one}\n}}\n"
        eights = "".join(self.eight_taken("v", f"{at} + c") for at in starts)
        whole = f"OWN_EIGHT({fold.lane}, lane + c)"
        return (
            f"u32 c = 0;\nfor (; c + 8u <= width; c += 8u) {{\n"
            f"{fold.lane}x8 v = {whole};\n{eights}{whole} = v;\n}}\n"
            f"for (; c < width; ++c) {{\n{one}\n}}\n"
        )

    # -- narrow -------------------------------------------------------------------------------------------------------
    def narrow(self, nest: Nest, wide: bool) -> Source:
        """A work-item has ``width`` lanes, some rows of all columns. The reduced dim's step is their number."""
        fold, last = self.fold, nest.kept - 1
        columns, rows = f"k{last}", f"r{nest.reduced - 1}"
        if self.eights:
            whole = f"OWN_EIGHT({fold.lane}, lane + c)"
            across = (
                f"for (u32 c = 0; c < width; c += 8u) {{\n{fold.lane}x8 v = {whole};\n"
                f"{self.eight_taken('v', 'at + i + c')}{whole} = v;\n}}\n"
            )
        else:
            across = f"for (u32 c = 0; c < width; ++c) {self.taken('lane[c]', 'at + i + c')}"
        body = (
            "const INDEX part = GLOBAL_ID % parts, o = GLOBAL_ID / parts;\n"
            f"{PART}"
            f"INDEX row = a_at;\n{moved('row', 'o', 'k', range(last))}"
            f"{fold.total} total[{NARROW}];\n{fold.lane} lane[{LANES}];\n"
            f"for (u32 c = 0; c < {columns}; ++c) total[c] = {fold.first};\n"
            "for (INDEX unit = from; unit < to; ++unit) {\n"
            f"{unit_of(nest, 'piece')}"
            f"const INDEX rest = {rows} - begin, n = (rest < piece ? rest : piece) * {columns};\n"
            f"for (u32 c = 0; c < width; ++c) lane[c] = {fold.first};\n"
            f"INDEX i = 0;\nfor (; i + width <= n; i += width) {across}"
            f"for (u32 c = 0; i < n; ++i, ++c) {self.taken('lane[c]', 'at + i')}"
            f"for (u32 f = 0; f < width; f += {columns}) for (u32 c = 0; c < {columns}; ++c) "
            f"{self.totalled('total[c]', 'lane[f + c]')}}}\n"
            f"for (u32 c = 0; c < {columns}; ++c) {self.stored(f'part * outputs + o * {columns} + c', 'total[c]')}"
        )
        return self.source(f"narrow_{nest.mark}", nest, ("piece", "width"), body, wide, 1)
