"""The sources of arg-reductions."""

from __future__ import annotations

from collections.abc import Callable

from candelabra_clike.language import Value, Variable, declared, text
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.reduction_dims import ReductionForm
from candelabra_clike.templates.reductions.fold import TypedFold
from candelabra_clike.templates.reductions.serial import SerialReductionSourceBuilder
from candelabra_clike.templates.reductions.source import PART, dim_parameters
from candelabra_clike.types import CType

Comparison = Callable[[Value, Value], Value]


class ArgReductionSourceBuilder:
    """The sources for one order and one type of element. The kernels store the extreme and its index.

    ``better`` says whether a value precedes another one, ``equal`` whether their indices decide. Raises
    ``ExpressionError`` if one of them is no bool.
    """

    piece, block, group = 256, 256, 256
    """Elements of a stretch, columns of a work-item, and the work-group size."""

    def __init__(self, name: str, better: Comparison, equal: Comparison, fold: TypedFold, element: CType) -> None:
        self.name = name
        for function in (better, equal):
            declared(repr(name), function, (Variable(fold.lane, "a"), Variable(fold.lane, "b")), "bool")
        self._better = better
        self._equal = equal
        self.fold = fold
        self.element = element
        self.stretch_builder = SerialReductionSourceBuilder(name, fold, element, element)

    def better(self, a: str, b: str) -> str:
        """Return the condition that ``a`` precedes ``b`` whatever their indices are."""
        return self._condition(self._better, a, b)

    def equal(self, a: str, b: str) -> str:
        """Return the condition that the indices decide between ``a`` and ``b``."""
        return self._condition(self._equal, a, b)

    def _condition(self, comparison: Comparison, a: str, b: str) -> str:
        return f"({text(comparison(Variable(self.fold.lane, a), Variable(self.fold.lane, b)))})"

    def _load(self, index: str) -> str:
        return f"const {self.element.value} x = {self.element.load(f'a[{index}]')};\n"

    def _store(self, position: str, value: str, index: str) -> str:
        return f"values[{position}] = {self.element.store(value)};\nindices[{position}] = (i64)({index});\n"

    def _source(self, mark: str, nest: ReductionForm, own: str, body: str, wide: bool, group: int) -> Source:
        head = [number(n) for n in ("a_at", "outputs", "count", "units", "parts", "per_part", "pieces", own)]
        buffers = writes("values", self.element.memory), writes("indices", "i64"), reads("a", self.element.memory)
        parameters = (*buffers, *head, *dim_parameters(("a",), nest))
        return Source(f"{self.name}_{mark}_{nest.mark}", parameters, body, wide=wide, group=group)

    def rows(self, nest: ReductionForm, lanes: bool, wide: bool) -> Source:
        """Return the rows form of :mod:`candelabra_clike.templates.reductions.serial`, with short stretches."""
        last, value = nest.reduced - 1, self.element.value
        step = "" if nest.adjacent else f" * a_r{last}"
        unit = f"{self.stretch_builder.unit(nest, f'{self.piece}u')}const INDEX rest = r{last} - begin;\n"
        unit += f"const INDEX n = rest < {self.piece}u ? rest : {self.piece}u;\n"
        before = f"unit / pieces * r{last} + " if last else ""
        body = (
            "const INDEX part = GLOBAL_ID % parts, first = GLOBAL_ID / parts * per_item;\n"
            "const INDEX end = outputs - first < per_item ? outputs : first + per_item;\n"
            f"{PART}"
            "for (INDEX o = first; o < end; ++o) {\n"
            f"{self.stretch_builder.row(nest.kept)}"
            f"{value} best = {self.fold.identity};\nINDEX spot = from, found = 0;\n"
            "for (INDEX unit = from; unit < to; ++unit) {\n"
            f"{unit}{value} total = {self.fold.identity};\n{self.stretch_builder.stretch(nest, lanes)}"
            f"if ({self.better('total', 'best')}) {{ best = total; spot = unit; }}\n}}\n"
            f"{{ const INDEX unit = spot;\n{unit}"
            f"for (INDEX i = 0; i < n; ++i) {{\n{self._load(f'a_run + i{step}')}"
            f"if ({self.equal('x', 'best')}) {{ found = {before}begin + i; break; }}\n}}\n}}\n"
            f"{self._store('part * outputs + o', 'best', 'found')}}}"
        )
        return self._source(f"rows{'_long' if lanes else ''}", nest, "per_item", body, wide, 1)

    def columns(self, nest: ReductionForm, wide: bool) -> Source:
        """Return the kernel in which a work-item reduces all rows of one dim to a block of adjacent outputs."""
        last, value = nest.kept - 1, self.element.value
        step = "" if nest.adjacent else f" * a_k{last}"
        body = (
            "const INDEX block = GLOBAL_ID % blocks, o = GLOBAL_ID / blocks;\n"
            f"const INDEX begin = block * {self.block}u, rest = k{last} - begin;\n"
            f"const u32 width = rest < {self.block}u ? (u32)rest : {self.block}u;\n"
            f"{self.stretch_builder.row(last, f' + begin{step}')}"
            f"{value} best[{self.block}];\nINDEX spot[{self.block}];\n"
            f"for (u32 c = 0; c < width; ++c) {{ best[c] = {self.fold.identity}; spot[c] = 0; }}\n"
            "for (INDEX r = 0; r < units; ++r) {\nconst INDEX at = a_row + r * a_r0;\n"
            f"for (u32 c = 0; c < width; ++c) {{\n{self._load(f'at + c{step}')}"
            f"const {value} v = best[c];\nconst INDEX s = spot[c];\nconst int take = {self.better('x', 'v')};\n"
            "best[c] = take ? x : v;\nspot[c] = take ? r : s;\n}\n}\n"
            f"for (u32 c = 0; c < width; ++c) {{\n{self._store(f'o * k{last} + begin + c', 'best[c]', 'spot[c]')}}}"
        )
        return self._source("columns", nest, "blocks", body, wide, 1)

    def groups(self, nest: ReductionForm, wide: bool, group: int) -> Source:
        """Return the kernel in which a group reduces a part of an output; the lanes read adjacent elements."""
        last, value = nest.reduced - 1, self.element.value
        step = "" if nest.adjacent else f" * a_r{last}"
        before = f"unit / pieces * r{last} + " if last else ""
        later, own = "best[LOCAL_ID + h]", "best[LOCAL_ID]"
        earlier = f"{self.equal(later, own)} && spot[LOCAL_ID + h] < spot[LOCAL_ID]"
        body = (
            f"LOCAL {value} best[{group}];\nLOCAL INDEX spot[{group}];\n"
            "const INDEX part = GROUP_ID % parts, o = GROUP_ID / parts;\n"
            f"{PART}"
            f"{self.stretch_builder.row(nest.kept)}"
            f"{value} v = {self.fold.identity};\nINDEX s = (INDEX)-1;\n"
            "for (INDEX unit = from; unit < to; ++unit) {\n"
            f"{self.stretch_builder.unit(nest, f'{self.piece}u')}const INDEX rest = r{last} - begin;\n"
            f"const INDEX n = rest < {self.piece}u ? rest : {self.piece}u;\n"
            f"for (INDEX i = LOCAL_ID; i < n; i += {group}u) {{\n{self._load(f'a_run + i{step}')}"
            f"if (s == (INDEX)-1 || {self.better('x', 'v')}) {{ v = x; s = {before}begin + i; }}\n}}\n}}\n"
            "best[LOCAL_ID] = v;\nspot[LOCAL_ID] = s;\nBARRIER;\n"
            f"for (u32 h = {group // 2}u; h > 0; h /= 2u) {{\n"
            f"if (LOCAL_ID < h && spot[LOCAL_ID + h] != (INDEX)-1 && (spot[LOCAL_ID] == (INDEX)-1 || "
            f"{self.better(later, own)} || ({earlier}))) {{\n"
            f"{own} = {later};\nspot[LOCAL_ID] = spot[LOCAL_ID + h];\n}}\nBARRIER;\n}}\n"
            f"if (LOCAL_ID == 0) {{\n{self._store('part * outputs + o', 'best[0]', 'spot[0]')}}}"
        )
        return self._source("groups", nest, "per_item", body, wide, group)

    def rest(self, wide: bool, group: int | None) -> Source:
        """Return the kernel that combines the parts of each output. Earlier parts have smaller indices."""
        value = self.element.value
        body = (
            "const INDEX o = GLOBAL_ID;\nif (o < outputs) {\n"
            f"{value} best = {self.element.load('found[o]')};\ni64 spot = there[o];\n"
            "for (INDEX p = 1; p < parts; ++p) {\n"
            f"const {value} x = {self.element.load('found[p * outputs + o]')};\n"
            f"if ({self.better('x', 'best')}) {{ best = x; spot = there[p * outputs + o]; }}\n}}\n"
            f"{self._store('o', 'best', 'spot')}}}"
        )
        buffers = (
            writes("values", self.element.memory), writes("indices", "i64"),
            reads("found", self.element.memory), reads("there", "i64"),
        )  # fmt: skip
        return Source(f"{self.name}_rest", (*buffers, number("outputs"), number("parts")), body, group, wide)
