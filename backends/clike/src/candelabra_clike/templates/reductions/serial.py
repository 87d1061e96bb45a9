"""Reductions on serial devices: a work-item reduces several outputs, or a part of one.

``rows``: the reduced elements are adjacent (or have any stride) and are accumulated in four vectors of eight lanes.
``columns``: the kept elements are adjacent; each output of a block has a lane, and whole rows are accumulated in them.
``narrow``: the same for few columns; several rows are adjacent in the lanes.

Lanes are combined into totals after a fixed number of elements. If totals are float64, the rounding error of a float32
sum depends on that number and not on the size of the input.
"""

from __future__ import annotations

from candelabra_clike.source import Source
from candelabra_clike.templates.reduction_dims import ReductionForm
from candelabra_clike.templates.reductions.fold import reduce_vector
from candelabra_clike.templates.reductions.source import PART, ReductionSourceBuilder

CHUNK = 2048
"""Elements of a row that are accumulated before the total is updated."""
SHORT = 512
"""Elements that lanes of the type of the total accumulate."""
ROWS = 128
"""Rows of columns that are accumulated before the totals are updated."""
BLOCK = 256
"""The maximum number of columns of a work-item."""
NARROW = 64
"""Fewer columns than this are narrow: at most 8 * 63 lanes are a common multiple of their number and of 8."""
LANES = 512


class SerialReductionSourceBuilder(ReductionSourceBuilder):
    """The sources of a fold for serial devices."""

    # -- rows ---------------------------------------------------------------------------------------------------------
    def rows(self, nest: ReductionForm, lanes: bool, wide: bool, group: int | None = 1) -> Source:
        """Return the kernel in which work-item ``g`` reduces part ``g % parts`` of the outputs from ``g / parts *
        per_item`` on.

        A part is ``per_part`` units. A unit is a stretch of a row of at most ``CHUNK`` elements; a row has ``pieces``
        units. With ``lanes``, rows are long enough for vectors.
        """
        last = nest.reduced - 1
        body = (
            "const INDEX part = GLOBAL_ID % parts, first = GLOBAL_ID / parts * per_item;\n"
            "const INDEX end = outputs - first < per_item ? outputs : first + per_item;\n"
            f"{PART}{self.declare_strip('strip', CHUNK)}"
            "for (INDEX o = first; o < end; ++o) {\n"
            f"{self.row(nest.kept)}{self.fold.total} total = {self.fold.identity};\n"
            "for (INDEX unit = from; unit < to; ++unit) {\n"
            f"{self.unit(nest, f'{CHUNK}u')}"
            f"const INDEX rest = r{last} - begin, n = rest < {CHUNK}u ? rest : {CHUNK}u;\n"
            f"{self.fill_strip('strip', 'n', '_run', nest, f'_r{last}')}{self.stretch(nest, lanes)}}}\n"
            f"{self.store_total('part * outputs + o', 'total')}}}"
        )
        mark = f"rows{'_long' if lanes else ''}_{nest.mark}"
        return self.source(mark, nest, ("per_item",), body, wide, group)

    def stretch(self, nest: ReductionForm, lanes: bool) -> str:
        """Return statements that combine ``n`` elements, those from ``a_run`` on or those of the strip, with
        ``total``.
        """
        fold, strip = self.fold, self.producer is not None
        step = "" if nest.adjacent or strip else f" * a_r{nest.reduced - 1}"
        start = "strip + " if strip else "a + a_run + "
        block = CHUNK if fold.lane != fold.total else SHORT  # longer chains are accurate enough with a wider total
        text = f"{fold.lane} lane = {fold.identity};\nINDEX i = 0;\n"
        if lanes and (nest.adjacent or strip) and self.vectorizes:
            vector = f"{fold.lane}x8"
            text += (
                f"while (n - i >= 32u) {{\nconst INDEX stop = n - i < {block}u ? n : i + {block}u;\n{vector} v[4];\n"
                f"UNROLL for (u32 j = 0; j < 4u; ++j) v[j] = ({vector})({fold.identity});\n"
                "for (; i + 32u <= stop; i += 32u) UNROLL for (u32 j = 0; j < 4u; ++j)\n"
                f"{self.accumulate_vector('v[j]', f'{start}i + 8u * j', strip)}"
                f"v[0] = {fold.combine('v[0]', 'v[1]')}; v[2] = {fold.combine('v[2]', 'v[3]')};\n"
                f"const {vector} e = {fold.combine('v[0]', 'v[2]')};\n{reduce_vector(fold, 'e', 'lane')}}}\n"
            )
        element = "strip[i]" if strip else f"a[a_run + i{step}]"
        return f"{text}for (; i < n; ++i) {self.accumulate('lane', element)}{self.add_to_total('total', 'lane')}"

    # -- columns ------------------------------------------------------------------------------------------------------
    def columns(self, nest: ReductionForm, wide: bool) -> Source:
        """Return the kernel in which a work-item reduces ``per_part`` rows to a block of adjacent outputs. It has no
        producer.
        """
        fold, last = self.fold, nest.kept - 1
        begin = " + begin" if nest.adjacent else f" + begin * {{}}_k{last}"
        one = self.run("r", nest.reduced)
        four = "".join(self.run(f"(r + {i}u)", nest.reduced, f"_run{i}") for i in range(4))
        body = (
            "const INDEX block = GLOBAL_ID % blocks, part = GLOBAL_ID / blocks % parts;\n"
            "const INDEX o = GLOBAL_ID / blocks / parts;\n"
            f"const INDEX begin = block * size, rest = k{last} - begin;\n"
            "const u32 width = (u32)(rest < size ? rest : size);\n"
            f"{PART}{self.row(last, begin)}"
            f"{fold.total} total[{BLOCK}];\n{fold.lane} lane[{BLOCK}];\n"
            f"for (u32 c = 0; c < width; ++c) total[c] = {fold.identity};\n"
            "for (INDEX r = from; r < to;) {\n"
            f"const INDEX stop = to - r < {ROWS}u ? to : r + {ROWS}u;\n"
            f"for (u32 c = 0; c < width; ++c) lane[c] = {fold.identity};\n"
            f"for (; r + 4u <= stop; r += 4u) {{\n{four}{self._across(nest, ['0', '1', '2', '3'])}}}\n"
            f"for (; r < stop; ++r) {{\n{one}{self._across(nest, [''])}}}\n"
            f"for (u32 c = 0; c < width; ++c) {self.add_to_total('total[c]', 'lane[c]')}}}\n"
            "for (u32 c = 0; c < width; ++c) "
            f"{self.store_total(f'part * outputs + o * k{last} + begin + c', 'total[c]')}"
        )
        return self.source(f"columns_{nest.mark}", nest, ("blocks", "size"), body, wide, 1)

    def _across(self, nest: ReductionForm, rows: list[str]) -> str:
        """Return statements that combine the columns of several rows, the suffixes of their offsets, with the lanes."""
        fold = self.fold
        step = "" if nest.adjacent else f" * a_k{nest.kept - 1}"
        ones = "".join(self.accumulate("v", f"a[a_run{row} + c{step}]") for row in rows)
        one = f"{fold.lane} v = lane[c];\n{ones}lane[c] = v;"
        if not (nest.adjacent and self.vectorizes):
            return f"for (u32 c = 0; c < width; ++c) {{\n{one}\n}}\n"
        vectors = "".join(self.accumulate_vector("v", f"a + a_run{row} + c") for row in rows)
        whole = f"PRIVATE_X8({fold.lane}, lane + c)"
        return (
            f"u32 c = 0;\nfor (; c + 8u <= width; c += 8u) {{\n"
            f"{fold.lane}x8 v = {whole};\n{vectors}{whole} = v;\n}}\n"
            f"for (; c < width; ++c) {{\n{one}\n}}\n"
        )

    # -- narrow -------------------------------------------------------------------------------------------------------
    def narrow(self, nest: ReductionForm, wide: bool) -> Source:
        """Return the kernel in which a work-item has ``width`` lanes for several rows of all columns. The rows are
        adjacent. It has no producer.
        """
        fold, last = self.fold, nest.kept - 1
        columns, rows = f"k{last}", f"r{nest.reduced - 1}"
        if self.vectorizes:
            whole = f"PRIVATE_X8({fold.lane}, lane + c)"
            across = (
                f"for (u32 c = 0; c < width; c += 8u) {{\n{fold.lane}x8 v = {whole};\n"
                f"{self.accumulate_vector('v', 'a + a_run + i + c')}{whole} = v;\n}}\n"
            )
        else:
            across = f"for (u32 c = 0; c < width; ++c) {self.accumulate('lane[c]', 'a[a_run + i + c]')}"
        body = (
            "const INDEX part = GLOBAL_ID % parts, o = GLOBAL_ID / parts;\n"
            f"{PART}{self.row(last)}"
            f"{fold.total} total[{NARROW}];\n{fold.lane} lane[{LANES}];\n"
            f"for (u32 c = 0; c < {columns}; ++c) total[c] = {fold.identity};\n"
            "for (INDEX unit = from; unit < to; ++unit) {\n"
            f"{self.unit(nest, 'piece')}"
            f"const INDEX rest = {rows} - begin, n = (rest < piece ? rest : piece) * {columns};\n"
            f"for (u32 c = 0; c < width; ++c) lane[c] = {fold.identity};\n"
            f"INDEX i = 0;\nfor (; i + width <= n; i += width) {across}"
            f"for (u32 c = 0; i < n; ++i, ++c) {self.accumulate('lane[c]', 'a[a_run + i]')}"
            f"for (u32 f = 0; f < width; f += {columns}) for (u32 c = 0; c < {columns}; ++c) "
            f"{self.add_to_total('total[c]', 'lane[f + c]')}}}\n"
            f"for (u32 c = 0; c < {columns}; ++c) {self.store_total(f'part * outputs + o * {columns} + c', 'total[c]')}"
        )
        return self.source(f"narrow_{nest.mark}", nest, ("piece", "width"), body, wide, 1)
