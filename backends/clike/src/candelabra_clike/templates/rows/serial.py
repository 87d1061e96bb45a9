"""Programs over rows as long loops: a work-item has some rows, or a block of columns side by side.

Sums are made in lanes, four vectors of eight where there are such (or a lane a column), which are joined to a total
every so many elements.
"""

from __future__ import annotations

from candelabra_clike.source import Source
from candelabra_clike.templates.rows.text import Pass, RowText

CHUNK = 2048
"""Elements of a row between two looks at the total."""
DEEP = 128
"""Rows of columns between two looks at the totals."""
BLOCK = 128
"""Columns of a work-item, at most."""


class SerialRows(RowText):
    """The sources of a program for devices whose work-items are loops."""

    @property
    def eights(self) -> bool:
        """Whether the innermost loop can go by eights: everything of value type f32, lying side by side or repeated."""
        if self.program.scalar or 2 in self.layout.inner or self.layout.inner[0] != 1:
            return False
        return all(e.value == "f32" for e in self.elements)

    def eight_loads(self, expression: str, i: str) -> str:
        """As :meth:`loads`, of vectors."""
        text = ""
        for k, name in enumerate(self.names[1:], 1):
            if f"{{{name[3:]}}}" not in expression:
                continue
            element = self.elements[k]
            if self.layout.inner[k]:
                loaded = f"EIGHT({element.memory}, {name} + {self.place(k, i)})"
                loaded = f"load_{element.converts}_x8({loaded})" if element.converts else loaded
            else:
                loaded = f"(f32x8)({element.load(f'{name}[{self.place(k, i)}]')})"
            text += f"const f32x8 v{name[3:]} = {loaded};\n"
        if "{o}" in expression:
            text += f"const f32x8 vo = EIGHT(f32, out + {self.place(0, i)});\n"
        return text

    def eight_words(self, expression: str, results: str = "r{}") -> str:
        """As :meth:`words`, of vectors."""
        return self.words(expression.replace("EXP", "exp_x8"), results)

    def eight_stored(self, i: str, value: str) -> str:
        """The statement that writes eight elements of the output."""
        element = self.elements[0]
        value = f"store_{element.converts}_x8({value})" if element.converts else value
        return f"PUT_EIGHT({element.memory}, out + {self.place(0, i)}, {value});\n"

    # -- rows ---------------------------------------------------------------------------------------------------------
    def in_rows(self, wide: bool) -> Source:
        """A work-item has ``per_item`` rows."""
        passes = "".join(self._pass(i, p) for i, p in enumerate(self.program.passes))
        body = (
            "const INDEX first = GLOBAL_ID * per_item, end = outputs - first < per_item ? outputs : first + per_item;\n"
            f"for (INDEX o = first; o < end; ++o) {{\n{self.rows('o', range(self.layout.kept))}{passes}{self._last()}}}"
        )
        return self.source("rows", body, ("per_item",), wide, 1)

    def _runs(self, body: str) -> str:
        """A loop over the stretches of side by side elements that make a row; ``n`` elements each."""
        last = self.layout.reduced - 1
        if not last:
            return f"{{ const INDEX n = span0;\n{self.runs('0', range(0))}{body}}}\n"
        count = " * ".join(f"span{d}" for d in range(last))
        run = f"const INDEX n = span{last};\n{self.runs('run', range(last))}{body}"
        return f"for (INDEX run = 0; run < {count}; ++run) {{\n{run}}}\n"

    def _pass(self, index: int, p: Pass) -> str:
        value, total = self.value, self.total if p.join == "sum" else self.value
        one = f"{self.loads(p.each, 'i')}const {value} e = {self.words(p.each)};\n"
        one += self.stored("i", "e") if p.keep else ""
        vectors = self._eights(p) if self.eights else self._lanes(p)
        stretch = (
            f"for (INDEX i = 0; i < n;) {{\nconst INDEX stop = n - i < {CHUNK}u ? n : i + {CHUNK}u;\n"
            f"{value} lane = {self.first(p)};\n{vectors}"
            f"for (; i < stop; ++i) {{\n{one}lane = {p.joined('lane', 'e')};\n}}\n"
            f"total = {p.joined('total', f'({total})lane')};\n}}\n"
        )
        return (
            f"{total} total{index} = {self.first(p)};\n{{ {total} total = {self.first(p)};\n{self._runs(stretch)}"
            f"total{index} = total; }}\n"
            f"const {value} r{index} = ({value})({self.words(p.result).replace('total', f'total{index}')});\n"
            f"{self.written(index, 'o', f'r{index}')}"
        )

    def _eights(self, p: Pass) -> str:
        """Join elements by 32 to ``lane``, in four vectors."""
        eight = f"{self.eight_loads(p.each, 'j')}const f32x8 e = {self.eight_words(p.each)};\n"
        eight += self.eight_stored("j", "e") if p.keep else ""
        quarter = f"{{ const INDEX j = i + 8u * q;\n{eight}v[q] = {p.joined('v[q]', 'e')}; }}\n"
        halves = "".join(f"v[{x}] = {p.joined(f'v[{x}]', f'v[{y}]')};\n" for x, y in ((0, 1), (2, 3), (0, 2)))
        lanes = ", ".join(f"h{k} = {p.joined(f'v[0].s{k}', f'v[0].s{k + 4}')}" for k in range(4))
        joins = "".join(f"h{x} = {p.joined(f'h{x}', f'h{y}')};\n" for x, y in ((0, 2), (1, 3), (0, 1)))
        return (
            "if (stop - i >= 32u) {\nf32x8 v[4];\n"
            f"UNROLL for (u32 q = 0; q < 4u; ++q) v[q] = (f32x8)({self.first(p)});\n"
            f"for (; i + 32u <= stop; i += 32u) UNROLL for (u32 q = 0; q < 4u; ++q) {quarter}"
            f"{halves}f32 {lanes};\n{joins}lane = {p.joined('lane', 'h0')};\n}}\n"
        )

    def _lanes(self, p: Pass) -> str:
        """Join elements by eight to ``lane``, each to a lane of its own: shorter chains round less."""
        one = f"{self.loads(p.each, 'j')}const {self.value} e = {self.words(p.each)};\n"
        one += self.stored("j", "e") if p.keep else ""
        pairs = ((0, 4), (1, 5), (2, 6), (3, 7), (0, 2), (1, 3), (0, 1))
        joins = "".join(f"v[{x}] = {p.joined(f'v[{x}]', f'v[{y}]')};\n" for x, y in pairs)
        return (
            f"if (stop - i >= 64u) {{\n{self.value} v[8];\n"
            f"UNROLL for (u32 q = 0; q < 8u; ++q) v[q] = {self.first(p)};\n"
            "for (; i + 8u <= stop; i += 8u) UNROLL for (u32 q = 0; q < 8u; ++q) {\nconst INDEX j = i + q;\n"
            f"{one}v[q] = {p.joined('v[q]', 'e')};\n}}\n{joins}lane = {p.joined('lane', 'v[0]')};\n}}\n"
        )

    def _last(self) -> str:
        last = self.program.last
        if not last:
            return ""
        loop = "INDEX i = 0;\n"
        if self.eights:
            eight = (
                f"{self.eight_loads(last, 'i')}const f32x8 e = {self.eight_words(last)};\n{self.eight_stored('i', 'e')}"
            )
            loop += f"for (; i + 8u <= n; i += 8u) {{\n{eight}}}\n"
        one = f"{self.loads(last, 'i')}const {self.value} e = {self.words(last)};\n{self.stored('i', 'e')}"
        return self._runs(f"{loop}for (; i < n; ++i) {{\n{one}}}\n")

    # -- columns ------------------------------------------------------------------------------------------------------
    def in_columns(self, wide: bool) -> Source:
        """A work-item has a block of ``size`` columns and all of their rows."""
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

    def _across(self, expression: str, join: str, store: bool) -> str:
        """A loop over the columns of a row. ``join`` is the statement's right side for ``lane``, of ``e``."""
        one = f"{self.loads(expression, 'c')}const {self.value} e = {self.words(expression, 'r{}[c]')};\n"
        one += self.stored("c", "e") if store else ""
        one += f"const {self.value} l = lane[c];\nlane[c] = {join};\n" if join else ""
        if not self.eights:
            return f"for (u32 c = 0; c < width; ++c) {{\n{one}}}\n"
        words = self.eight_words(expression, "OWN_EIGHT(f32, r{} + c)")
        eight = f"{self.eight_loads(expression, 'c')}const f32x8 e = {words};\n"
        eight += self.eight_stored("c", "e") if store else ""
        eight += f"const f32x8 l = OWN_EIGHT(f32, lane + c);\nOWN_EIGHT(f32, lane + c) = {join};\n" if join else ""
        return f"u32 c = 0;\nfor (; c + 8u <= width; c += 8u) {{\n{eight}}}\nfor (; c < width; ++c) {{\n{one}}}\n"

    def _column_pass(self, index: int, p: Pass) -> str:
        value, total = self.value, self.total if p.join == "sum" else self.value
        last = self.layout.kept - 1
        result = self.words(p.result, "r{}[c]").replace("total", "totals[c]")
        return (
            f"{{ {total} totals[{BLOCK}];\n{value} lane[{BLOCK}];\n"
            f"for (u32 c = 0; c < width; ++c) totals[c] = {self.first(p)};\n"
            "for (INDEX r = 0; r < count;) {\n"
            f"const INDEX stop = count - r < {DEEP}u ? count : r + {DEEP}u;\n"
            f"for (u32 c = 0; c < width; ++c) lane[c] = {self.first(p)};\n"
            f"for (; r < stop; ++r) {{\n{self._row()}{self._across(p.each, p.joined('l', 'e'), p.keep)}}}\n"
            f"for (u32 c = 0; c < width; ++c) totals[c] = {p.joined('totals[c]', f'({total})lane[c]')};\n}}\n"
            f"for (u32 c = 0; c < width; ++c) {{\nr{index}[c] = ({value})({result});\n"
            f"{self.written(index, f'o * k{last} + begin + c', f'r{index}[c]')}}}\n}}\n"
        )
