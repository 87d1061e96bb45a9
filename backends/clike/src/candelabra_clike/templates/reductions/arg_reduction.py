"""Arg-reductions: the index of the largest or smallest element. The first of equal elements wins, and NaN before all
others.

On serial devices, ``rows`` first finds the stretch with the extreme, which vectors do fast, and then the element in it.
``columns`` keeps a value and an index for each output of a block. Each lane of a work-group does the same, and a tree
combines them. If an output is divided into parts, a second launch combines these.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod

from candelabra.backend import reduced_shape
from candelabra.dtypes import dtype, int64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch, Traits
from candelabra_clike.language import Value, Variable, declared, text
from candelabra_clike.layouts import WIDE, check_dims
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.reduction_dims import (
    ReductionDims,
    ReductionForm,
    check_not_empty,
    max_offset,
    reduction_dims,
)
from candelabra_clike.templates.reductions.fold import TypedFold
from candelabra_clike.templates.reductions.reduction import Partition, rows_partition, split_units, uses_columns
from candelabra_clike.templates.reductions.serial import SerialReductionSourceBuilder
from candelabra_clike.templates.reductions.source import PART, dim_parameters
from candelabra_clike.types import CTYPES, CType

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


Call = tuple[Launch, int, tuple[int, ...]]
"""A launch, its count and its numbers."""


class ArgReduction:
    """``better`` and ``equal`` are the comparisons of two elements; ``fold`` computes the extreme."""

    def __init__(self, name: str, better: Comparison, equal: Comparison, fold: TypedFold, d: dtype) -> None:
        self.name = name
        self.dtype = d
        self.element = CTYPES[d]
        self.text = ArgReductionSourceBuilder(name, better, equal, fold, self.element)
        self._plan = lru_cache(4096)(self._planned)

    def __call__(self, x: StridedArray, dim: int | None, keepdim: bool) -> tuple[StridedArray, StridedArray]:
        """Return the extremes and their indices along ``dim``, or in the flattened array."""
        engine, dims = x.engine, None if dim is None or not x.shape else (dim,)
        shape, last, parts, first, second = self._plan(engine, x.shape, x.strides, dims, keepdim, False)
        if x.offset + last >= WIDE:
            shape, last, parts, first, second = self._plan(engine, x.shape, x.strides, dims, keepdim, True)
        values, indices = engine.empty(shape, self.dtype), engine.empty(shape, int64)
        if first is None:
            return values, indices
        launch, count, numbers = first
        if second is None:
            launch(count, values.buffer, indices.buffer, x.buffer, x.offset, *numbers)
            return values, indices
        partial_values = engine.allocate(values.size * parts * self.dtype.itemsize)
        partial_indices = engine.allocate(values.size * parts * 8)
        launch(count, partial_values, partial_indices, x.buffer, x.offset, *numbers)
        launch, count, numbers = second
        launch(count, values.buffer, indices.buffer, partial_values, partial_indices, *numbers)
        return values, indices

    def _planned(
        self, engine: Engine, shape: Shape, strides: Shape, dims: Shape | None, keepdim: bool, wide: bool
    ) -> tuple[Shape, int, int, Call | None, Call | None]:
        check_dims(shape, dims)
        result, last = reduced_shape(shape, dims, keepdim), max_offset(shape, strides)
        check_not_empty(self.name, shape, dims)
        if not prod(result):
            return result, last, 1, None, None
        loop_dims = reduction_dims(shape, strides, dims, ordered=True)
        division = self._partition(engine.traits, loop_dims)
        numbers = (loop_dims.outputs, loop_dims.count, *division.numbers, *loop_dims.numbers())
        first, parts = (engine.compile(division.source(self.text, wide)), division.items, numbers), division.parts
        if parts == 1:
            return result, last, 1, first, None
        second = engine.compile(self.text.rest(wide, 1 if engine.traits.serial else None))
        return result, last, parts, first, (second, loop_dims.outputs, (loop_dims.outputs, parts))

    def _partition(self, traits: Traits, dims: ReductionDims) -> Partition:
        """Return the division of the work."""
        text, outputs, size = self.text, dims.outputs, dims.reduced[-1]
        if traits.serial and uses_columns(dims) and len(dims.reduced) == 1:
            columns = dims.kept[-1]
            blocks = -(-columns // text.block)
            nest = dims.form(True, dims.kept_strides[-1] == 1, False)
            return Partition(
                outputs // columns * blocks, size, 1, size, 1, (blocks,), lambda text, wide: text.columns(nest, wide)
            )
        if traits.serial:
            return rows_partition(traits.compute_units, dims, True, text.piece)
        pieces = -(-size // text.piece)
        units = prod(dims.reduced[:-1]) * pieces
        parts, per_part = split_units(units, min(-(-8 * traits.compute_units // outputs), units // 8))
        adjacent, group = dims.reduced_strides[-1] == 1, min(text.group, 1 << (traits.group.bit_length() - 1))
        nest = dims.form(False, adjacent, adjacent)
        return Partition(
            outputs * parts, units, parts, per_part, pieces, (1,), lambda text, wide: text.groups(nest, wide, group)
        )
