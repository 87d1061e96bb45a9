"""Row kernels for serial devices: a work-item processes some rows, or a block of adjacent columns.

Sums are accumulated in lanes, which are four vectors of eight if possible, or one lane per column. Lanes are added to a
total after a fixed number of elements.
"""

from __future__ import annotations

from candelabra_clike.source import Source
from candelabra_clike.templates.rows.source import RowReduction, RowSourceBuilder

CHUNK = 2048
"""Elements of a row that are accumulated before the total is updated."""
DEEP = 128
"""Rows of columns that are accumulated before the totals are updated."""
BLOCK = 128
"""The maximum number of columns of a work-item."""


class SerialRowSourceBuilder(RowSourceBuilder):
    """The sources of a row program for serial devices."""

    @property
    def vectorizes(self) -> bool:
        """Whether the innermost loop can use vectors: all values are f32 and adjacent in memory, or broadcast."""
        if self.program.scalar or 2 in self.layout.inner or self.layout.inner[0] != 1:
            return False
        return all(e.value == "f32" for e in self.elements)

    def load_vectors(self, expression: str, i: str) -> str:
        """The vector form of :meth:`load_operands`."""
        text = ""
        for k, name in enumerate(self.names[1:], 1):
            if f"{{{name[3:]}}}" not in expression:
                continue
            element = self.elements[k]
            if self.layout.inner[k]:
                loaded = f"LOAD_X8({element.memory}, {name} + {self.offset(k, i)})"
                loaded = f"load_{element.converts}_x8({loaded})" if element.converts else loaded
            else:
                loaded = f"(f32x8)({element.load(f'{name}[{self.offset(k, i)}]')})"
            text += f"const f32x8 v{name[3:]} = {loaded};\n"
        if "{o}" in expression:
            text += f"const f32x8 vo = LOAD_X8(f32, out + {self.offset(0, i)});\n"
        return text

    def fill_vector(self, expression: str, results: str = "r{}") -> str:
        """The vector form of :meth:`fill`."""
        return self.fill(expression.replace("EXP", "exp_x8"), results)

    def store_vector(self, i: str, value: str) -> str:
        """Return the statement that stores eight elements of the output."""
        element = self.elements[0]
        value = f"store_{element.converts}_x8({value})" if element.converts else value
        return f"STORE_X8({element.memory}, out + {self.offset(0, i)}, {value});\n"

    # -- rows ---------------------------------------------------------------------------------------------------------
    def in_rows(self, wide: bool) -> Source:
        """Return the kernel in which a work-item processes ``per_item`` rows."""
        passes = "".join(self._pass(i, p) for i, p in enumerate(self.program.passes))
        body = (
            "const INDEX first = GLOBAL_ID * per_item, end = outputs - first < per_item ? outputs : first + per_item;\n"
            f"for (INDEX o = first; o < end; ++o) {{\n{self.rows('o', range(self.layout.kept))}{passes}{self._last()}}}"
        )
        return self.source("rows", body, ("per_item",), wide, 1)

    def _runs(self, body: str) -> str:
        """Return a loop over the runs of a row. The elements of a run are adjacent; it has ``n`` of them."""
        last = self.layout.reduced - 1
        if not last:
            return f"{{ const INDEX n = span0;\n{self.runs('0', range(0))}{body}}}\n"
        count = " * ".join(f"span{d}" for d in range(last))
        run = f"const INDEX n = span{last};\n{self.runs('run', range(last))}{body}"
        return f"for (INDEX run = 0; run < {count}; ++run) {{\n{run}}}\n"

    def _pass(self, index: int, p: RowReduction) -> str:
        value, total = self.value, self.total if p.operation == "sum" else self.value
        one = f"{self.load_operands(p.each, 'i')}const {value} e = {self.fill(p.each)};\n"
        one += self.store("i", "e") if p.store_elements else ""
        vectors = self._accumulate_vectors(p) if self.vectorizes else self._accumulate_lanes(p)
        stretch = (
            f"for (INDEX i = 0; i < n;) {{\nconst INDEX stop = n - i < {CHUNK}u ? n : i + {CHUNK}u;\n"
            f"{value} lane = {self.identity(p)};\n{vectors}"
            f"for (; i < stop; ++i) {{\n{one}lane = {p.combine('lane', 'e')};\n}}\n"
            f"total = {p.combine('total', f'({total})lane')};\n}}\n"
        )
        return (
            f"{total} total{index} = {self.identity(p)};\n{{ {total} total = {self.identity(p)};\n{self._runs(stretch)}"
            f"total{index} = total; }}\n"
            f"const {value} r{index} = ({value})({self.fill(p.result).replace('total', f'total{index}')});\n"
            f"{self.stored_result(index, 'o', f'r{index}')}"
        )

    def _accumulate_vectors(self, p: RowReduction) -> str:
        """Return statements that accumulate 32 elements at a time in four vectors, and reduce these to ``lane``."""
        eight = f"{self.load_vectors(p.each, 'j')}const f32x8 e = {self.fill_vector(p.each)};\n"
        eight += self.store_vector("j", "e") if p.store_elements else ""
        quarter = f"{{ const INDEX j = i + 8u * q;\n{eight}v[q] = {p.combine('v[q]', 'e')}; }}\n"
        halves = "".join(f"v[{x}] = {p.combine(f'v[{x}]', f'v[{y}]')};\n" for x, y in ((0, 1), (2, 3), (0, 2)))
        lanes = ", ".join(f"h{k} = {p.combine(f'v[0].s{k}', f'v[0].s{k + 4}')}" for k in range(4))
        joins = "".join(f"h{x} = {p.combine(f'h{x}', f'h{y}')};\n" for x, y in ((0, 2), (1, 3), (0, 1)))
        return (
            "if (stop - i >= 32u) {\nf32x8 v[4];\n"
            f"UNROLL for (u32 q = 0; q < 4u; ++q) v[q] = (f32x8)({self.identity(p)});\n"
            f"for (; i + 32u <= stop; i += 32u) UNROLL for (u32 q = 0; q < 4u; ++q) {quarter}"
            f"{halves}f32 {lanes};\n{joins}lane = {p.combine('lane', 'h0')};\n}}\n"
        )

    def _accumulate_lanes(self, p: RowReduction) -> str:
        """Return statements that accumulate eight elements at a time in eight lanes; shorter chains have smaller
        rounding errors.
        """
        one = f"{self.load_operands(p.each, 'j')}const {self.value} e = {self.fill(p.each)};\n"
        one += self.store("j", "e") if p.store_elements else ""
        pairs = ((0, 4), (1, 5), (2, 6), (3, 7), (0, 2), (1, 3), (0, 1))
        joins = "".join(f"v[{x}] = {p.combine(f'v[{x}]', f'v[{y}]')};\n" for x, y in pairs)
        return (
            f"if (stop - i >= 64u) {{\n{self.value} v[8];\n"
            f"UNROLL for (u32 q = 0; q < 8u; ++q) v[q] = {self.identity(p)};\n"
            "for (; i + 8u <= stop; i += 8u) UNROLL for (u32 q = 0; q < 8u; ++q) {\nconst INDEX j = i + q;\n"
            f"{one}v[q] = {p.combine('v[q]', 'e')};\n}}\n{joins}lane = {p.combine('lane', 'v[0]')};\n}}\n"
        )

    def _last(self) -> str:
        last = self.program.last
        if not last:
            return ""
        loop = "INDEX i = 0;\n"
        if self.vectorizes:
            eight = f"{self.load_vectors(last, 'i')}const f32x8 e = {self.fill_vector(last)};\n"
            eight += self.store_vector("i", "e")
            loop += f"for (; i + 8u <= n; i += 8u) {{\n{eight}}}\n"
        one = f"{self.load_operands(last, 'i')}const {self.value} e = {self.fill(last)};\n{self.store('i', 'e')}"
        return self._runs(f"{loop}for (; i < n; ++i) {{\n{one}}}\n")

    # -- columns ------------------------------------------------------------------------------------------------------
    def in_columns(self, wide: bool) -> Source:
        """Return the kernel in which a work-item processes a block of ``size`` columns and all of their rows."""
        last = self.layout.kept - 1
        begins = "".join(f"{n}_row += begin * {n}_k{last};\n" for n in self.names)
        results = "".join(f"{self.value} r{i}[{BLOCK}];\n" for i, _ in enumerate(self.program.passes))
        passes = "".join(self._column_pass(i, p) for i, p in enumerate(self.program.passes))
        body = (
            "const INDEX block = GLOBAL_ID % blocks, o = GLOBAL_ID / blocks;\n"
            f"const INDEX begin = block * size, rest = k{last} - begin;\n"
            "const u32 width = (u32)(rest < size ? rest : size);\n"
            f"{self.rows('o', range(last))}{begins}{results}{passes}"
        )
        if self.program.last:
            body += (
                f"for (INDEX r = 0; r < count; ++r) {{\n{self._row()}{self._across(self.program.last, '', True)}}}\n"
            )
        return self.source("columns", body, ("blocks", "size"), wide, 1)

    def _row(self) -> str:
        return self.runs("r", range(self.layout.reduced))

    def _across(self, expression: str, operation: str, store: bool) -> str:
        """Return a loop over the columns of a row. ``operation`` is the expression of ``l`` and ``e`` that is stored in
        ``lane``.
        """
        one = f"{self.load_operands(expression, 'c')}const {self.value} e = {self.fill(expression, 'r{}[c]')};\n"
        one += self.store("c", "e") if store else ""
        one += f"const {self.value} l = lane[c];\nlane[c] = {operation};\n" if operation else ""
        if not self.vectorizes:
            return f"for (u32 c = 0; c < width; ++c) {{\n{one}}}\n"
        fill = self.fill_vector(expression, "PRIVATE_X8(f32, r{} + c)")
        eight = f"{self.load_vectors(expression, 'c')}const f32x8 e = {fill};\n"
        eight += self.store_vector("c", "e") if store else ""
        eight += (
            f"const f32x8 l = PRIVATE_X8(f32, lane + c);\nPRIVATE_X8(f32, lane + c) = {operation};\n"
            if operation
            else ""
        )
        return f"u32 c = 0;\nfor (; c + 8u <= width; c += 8u) {{\n{eight}}}\nfor (; c < width; ++c) {{\n{one}}}\n"

    def _column_pass(self, index: int, p: RowReduction) -> str:
        value, total = self.value, self.total if p.operation == "sum" else self.value
        last = self.layout.kept - 1
        result = self.fill(p.result, "r{}[c]").replace("total", "totals[c]")
        return (
            f"{{ {total} totals[{BLOCK}];\n{value} lane[{BLOCK}];\n"
            f"for (u32 c = 0; c < width; ++c) totals[c] = {self.identity(p)};\n"
            "for (INDEX r = 0; r < count;) {\n"
            f"const INDEX stop = count - r < {DEEP}u ? count : r + {DEEP}u;\n"
            f"for (u32 c = 0; c < width; ++c) lane[c] = {self.identity(p)};\n"
            f"for (; r < stop; ++r) {{\n{self._row()}{self._across(p.each, p.combine('l', 'e'), p.store_elements)}}}\n"
            f"for (u32 c = 0; c < width; ++c) totals[c] = {p.combine('totals[c]', f'({total})lane[c]')};\n}}\n"
            f"for (u32 c = 0; c < width; ++c) {{\nr{index}[c] = ({value})({result});\n"
            f"{self.stored_result(index, f'o * k{last} + begin + c', f'r{index}[c]')}}}\n}}\n"
        )
