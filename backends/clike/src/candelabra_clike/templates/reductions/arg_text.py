"""The C of searches for the place of an extreme."""

from __future__ import annotations

from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.reductions.fold import Fold
from candelabra_clike.templates.reductions.serial import SerialText
from candelabra_clike.templates.reductions.text import PART, unit_of
from candelabra_clike.templates.walks import Nest, dims_of, moved
from candelabra_clike.types import CType


class ArgText:
    """The sources for one order and one type of element. They write the extreme and its place."""

    piece, block, group = 256, 256, 256
    """Elements of a stretch, columns of a work-item, work-items of a group."""

    def __init__(self, name: str, better: str, fold: Fold, element: CType) -> None:
        self.name = name
        self.sign = better
        self.fold = fold
        self.element = element
        self.stretches = SerialText(name, fold, element, element)

    def better(self, a: str, b: str) -> str:
        """Whether ``a`` comes before ``b`` in any case."""
        plain = f"{a} {self.sign} {b}"
        return f"({plain} || ({a} != {a} && {b} == {b}))" if self.element.value[0] == "f" else f"({plain})"

    def same(self, a: str, b: str) -> str:
        """Whether only their places decide between them."""
        return f"({a} == {b} || ({a} != {a} && {b} != {b}))" if self.element.value[0] == "f" else f"({a} == {b})"

    def _load(self, place: str) -> str:
        return f"const {self.element.value} x = {self.element.load(f'a[{place}]')};\n"

    def _written(self, place: str, value: str, index: str) -> str:
        return f"values[{place}] = {self.element.store(value)};\nplaces[{place}] = (i64)({index});\n"

    def _source(self, mark: str, nest: Nest, own: str, body: str, wide: bool, group: int) -> Source:
        head = [number(n) for n in ("a_at", "outputs", "count", "units", "parts", "per_part", "pieces", own)]
        buffers = writes("values", self.element.memory), writes("places", "i64"), reads("a", self.element.memory)
        parameters = (*buffers, *head, *dims_of("k", nest.kept), *dims_of("r", nest.reduced))
        return Source(f"{self.name}_{mark}_{nest.mark}", parameters, body, wide=wide, group=group)

    def rows(self, nest: Nest, lanes: bool, wide: bool) -> Source:
        """As the rows of :mod:`candelabra_clike.templates.reductions.serial`, in short stretches."""
        last, value = nest.reduced - 1, self.element.value
        step = "" if nest.adjacent else f" * r_s{last}"
        unit = f"{unit_of(nest, f'{self.piece}u')}const INDEX rest = r{last} - begin;\n"
        unit += f"const INDEX n = rest < {self.piece}u ? rest : {self.piece}u;\n"
        before = f"unit / pieces * r{last} + " if last else ""
        body = (
            "const INDEX part = GLOBAL_ID % parts, first = GLOBAL_ID / parts * per_item;\n"
            "const INDEX end = outputs - first < per_item ? outputs : first + per_item;\n"
            f"{PART}"
            "for (INDEX o = first; o < end; ++o) {\n"
            f"INDEX row = a_at;\n{moved('row', 'o', 'k', range(nest.kept))}"
            f"{value} best = {self.fold.first};\nINDEX spot = from, found = 0;\n"
            "for (INDEX unit = from; unit < to; ++unit) {\n"
            f"{unit}{value} total = {self.fold.first};\n{self.stretches.stretch(nest, lanes)}"
            f"if ({self.better('total', 'best')}) {{ best = total; spot = unit; }}\n}}\n"
            f"{{ const INDEX unit = spot;\n{unit}"
            f"for (INDEX i = 0; i < n; ++i) {{\n{self._load(f'at + i{step}')}"
            f"if ({self.same('x', 'best')}) {{ found = {before}begin + i; break; }}\n}}\n}}\n"
            f"{self._written('part * outputs + o', 'best', 'found')}}}"
        )
        return self._source(f"rows{'_long' if lanes else ''}", nest, "per_item", body, wide, 1)

    def columns(self, nest: Nest, wide: bool) -> Source:
        """A work-item has a block of outputs side by side and all of their rows, of one dim."""
        last, value = nest.kept - 1, self.element.value
        step = "" if nest.adjacent else f" * k_s{last}"
        body = (
            "const INDEX block = GLOBAL_ID % blocks, o = GLOBAL_ID / blocks;\n"
            f"const INDEX begin = block * {self.block}u, rest = k{last} - begin;\n"
            f"const u32 width = rest < {self.block}u ? (u32)rest : {self.block}u;\n"
            f"INDEX row = a_at + begin{step};\n{moved('row', 'o', 'k', range(last))}"
            f"{value} best[{self.block}];\nINDEX spot[{self.block}];\n"
            f"for (u32 c = 0; c < width; ++c) {{ best[c] = {self.fold.first}; spot[c] = 0; }}\n"
            "for (INDEX r = 0; r < units; ++r) {\nconst INDEX at = row + r * r_s0;\n"
            f"for (u32 c = 0; c < width; ++c) {{\n{self._load(f'at + c{step}')}"
            f"const {value} v = best[c];\nconst INDEX s = spot[c];\nconst int take = {self.better('x', 'v')};\n"
            "best[c] = take ? x : v;\nspot[c] = take ? r : s;\n}\n}\n"
            f"for (u32 c = 0; c < width; ++c) {{\n{self._written(f'o * k{last} + begin + c', 'best[c]', 'spot[c]')}}}"
        )
        return self._source("columns", nest, "blocks", body, wide, 1)

    def groups(self, nest: Nest, wide: bool, group: int) -> Source:
        """A group has a part of an output; the lanes take neighbouring elements."""
        last, value = nest.reduced - 1, self.element.value
        step = "" if nest.adjacent else f" * r_s{last}"
        before = f"unit / pieces * r{last} + " if last else ""
        theirs, mine = "best[LOCAL_ID + h]", "best[LOCAL_ID]"
        earlier = f"{self.same(theirs, mine)} && spot[LOCAL_ID + h] < spot[LOCAL_ID]"
        body = (
            f"LOCAL {value} best[{group}];\nLOCAL INDEX spot[{group}];\n"
            "const INDEX part = GROUP_ID % parts, o = GROUP_ID / parts;\n"
            f"{PART}"
            f"INDEX row = a_at;\n{moved('row', 'o', 'k', range(nest.kept))}"
            f"{value} v = {self.fold.first};\nINDEX s = (INDEX)-1;\n"
            "for (INDEX unit = from; unit < to; ++unit) {\n"
            f"{unit_of(nest, f'{self.piece}u')}const INDEX rest = r{last} - begin;\n"
            f"const INDEX n = rest < {self.piece}u ? rest : {self.piece}u;\n"
            f"for (INDEX i = LOCAL_ID; i < n; i += {group}u) {{\n{self._load(f'at + i{step}')}"
            f"if (s == (INDEX)-1 || {self.better('x', 'v')}) {{ v = x; s = {before}begin + i; }}\n}}\n}}\n"
            "best[LOCAL_ID] = v;\nspot[LOCAL_ID] = s;\nBARRIER;\n"
            f"for (u32 h = {group // 2}u; h > 0; h /= 2u) {{\n"
            f"if (LOCAL_ID < h && spot[LOCAL_ID + h] != (INDEX)-1 && (spot[LOCAL_ID] == (INDEX)-1 || "
            f"{self.better(theirs, mine)} || ({earlier}))) {{\n"
            f"{mine} = {theirs};\nspot[LOCAL_ID] = spot[LOCAL_ID + h];\n}}\nBARRIER;\n}}\n"
            f"if (LOCAL_ID == 0) {{\n{self._written('part * outputs + o', 'best[0]', 'spot[0]')}}}"
        )
        return self._source("groups", nest, "per_item", body, wide, group)

    def rest(self, wide: bool, group: int | None) -> Source:
        """The best of the parts of each output; earlier parts have earlier places."""
        value = self.element.value
        body = (
            "const INDEX o = GLOBAL_ID;\nif (o < outputs) {\n"
            f"{value} best = {self.element.load('found[o]')};\ni64 spot = there[o];\n"
            "for (INDEX p = 1; p < parts; ++p) {\n"
            f"const {value} x = {self.element.load('found[p * outputs + o]')};\n"
            f"if ({self.better('x', 'best')}) {{ best = x; spot = there[p * outputs + o]; }}\n}}\n"
            f"{self._written('o', 'best', 'spot')}}}"
        )
        buffers = (
            writes("values", self.element.memory), writes("places", "i64"),
            reads("found", self.element.memory), reads("there", "i64"),
        )  # fmt: skip
        return Source(f"{self.name}_rest", (*buffers, number("outputs"), number("parts")), body, group, wide)
