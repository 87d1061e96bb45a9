"""Scatter: ``target[p · strides + index[p] · step] = rule(target[…], source[p])``.

A rule may combine groups of numbers, such as a value and its derivative: the numbers of a group are adjacent, so that
the processor waits for one line of memory.

There are no atomics. Values for one element arrive in the order of the index, so results do not depend on the launch.
The dims of the loop nest are of two kinds. The target moves along *columns*: elements of different columns never meet,
so columns are processed in parallel. Along *folds* only indices select the target: the work-item of a column processes
its folds in order. If there are few columns, work-items share them by parts of the target: each of them reads all
indices and skips those of other parts. Adjacent lanes then have adjacent columns of one part, whose indices are often
the same, so that few of them wait for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from math import isqrt, prod
from typing import Any, NamedTuple

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import Engine, compiled
from candelabra_clike.language import INDEX, Value, Variable, all_declared, and_then, cast, constant, value_type
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.layouts import collapsed_dims, is_wide
from candelabra_clike.source import Source
from candelabra_clike.templates import index_walker
from candelabra_clike.templates.elementwise.elementwise import MAX_PLANS
from candelabra_clike.templates.indexing import index_arrays
from candelabra_clike.templates.indexing.gather import IndexPlan
from candelabra_clike.templates.indexing.index_arrays import IndexedDim

SHORTEST = 64
"""Elements of a row that justify another work-item."""
SHARED = 1 << 13
"""The number of elements from which sharing columns is worthwhile."""
WIDTH = 32
"""Elements of a row that take as long as skipping the index of another part, which the processor cannot predict."""

UPDATE = 10_000
"""The cycles of a lane that waits for an element, times the lanes of a compute unit, divided by the instructions that
skip an index: the gain from sharing a column among lanes, divided by its cost.
"""
AHEAD = 8
"""Indices that a lane loads at once: it skips most of them, so that it would wait for memory."""


@dataclass(frozen=True)
class ScatterRule:
    """The combination of a value with an element, by name. ``target`` and ``source`` are the dtypes in memory.

    The new element is an expression of the variables ``va``, the element, and ``vb``, the value. If elements or values
    are groups of adjacent numbers, the others of a group are ``va1``, ``vb1`` and so on.
    """

    name: str
    target: dtype
    source: dtype
    values: tuple[Value, ...] = field(compare=False)
    """The new element: as many numbers as a group of the target has."""
    sources: int = 1
    """The numbers of a group of the source."""

    @classmethod
    def of(
        cls, name: str, target: dtype, source: dtype, function: Callable[..., Any], targets: int = 1, sources: int = 1
    ) -> ScatterRule:
        """Return the rule of a function of the element and the value, or of the numbers of both groups. It then returns
        a tuple. Raises ``ExpressionError``.
        """
        groups = (("va", target, targets), ("vb", source, sources))
        operands = [Variable(value_type(d), numbered(letter, k)) for letter, d, count in groups for k in range(count)]
        values = all_declared(name, function, tuple(operands), [[value_type(target)]] * targets)
        return cls(name, target, source, tuple(values), sources)

    def reads(self, name: str) -> bool:
        """Return whether the new element depends on a variable."""
        return any(isinstance(node, Variable) and node.name == name for value in self.values for node in value.walk())


def numbered(name: str, k: int) -> str:
    """Return the name of number ``k`` of a group."""
    return f"{name}{k or ''}"


class ScatterDims(NamedTuple):
    """The dims of a loop nest: sizes, strides of target and source, and which of them are folds."""

    shape: Shape
    target: Shape
    source: Shape
    folds: frozenset[int]


class ScatterForm(NamedTuple):
    """The properties that a kernel is compiled for. ``inner`` are the last strides: 0, 1, or 2 for others.

    ``looped``: a work-item processes several columns, with ``folds_inside`` one after the other. ``shared``: several
    work-items share a column. ``checked``: the indices are known to be valid.
    """

    rule: ScatterRule
    columns: int
    folds: int
    inner: Shape
    looped: bool
    folds_inside: bool
    shared: bool
    checked: bool
    wraps: bool
    wide: bool


def scatter(
    target: StridedArray,
    loop_dims: ScatterDims,
    indices: Sequence[StridedArray],
    indexed: tuple[IndexedDim, ...],
    source: StridedArray,
    rules: Sequence[ScatterRule],
    error: IndexOutOfBounds,
) -> None:
    """Scatter into ``target``, whose elements must not overlap each other or another array of the call, by one rule
    after another.

    Invalid indices are reported and nothing is written for them. Raises ``IndexError`` if an indexed dim is empty.
    """
    if 0 in loop_dims.shape:
        return
    engine, wide = target.engine, is_wide(target, source, *indices)
    plans = [scatter_plan(engine, loop_dims, indexed, rule, error.wraps, wide) for rule in rules]
    engine.before_writing(indices, indexed, error.wraps)
    for plan in plans:
        plan.run(target, source, indices, error)


@lru_cache(MAX_PLANS)
def scatter_plan(
    engine: Engine, loop_dims: ScatterDims, indexed: tuple[IndexedDim, ...], rule: ScatterRule, wraps: bool, wide: bool
) -> IndexPlan:
    """Return the plan of :func:`scatter`."""
    extents = index_arrays.extent_arguments(indexed)
    rows = (loop_dims.target, loop_dims.source, *[each.strides for each in indexed])
    dims, steps = collapsed_dims(
        loop_dims.shape, rows, [d for d in range(len(loop_dims.shape)) if d not in loop_dims.folds]
    )
    folds, jumps = collapsed_dims(loop_dims.shape, rows, sorted(loop_dims.folds))
    outer, inner, fold = prod(dims[:-1]), dims[-1], prod(folds)
    chunk, parts = shares(engine, outer, inner, fold, indexed[0].size)
    last = tuple([min(row[-1], 2) for row in steps])
    looped, nearer = chunk > 1, jumps[1][-1] < steps[1][-1]  # elements of the source along folds, along columns
    form = ScatterForm(
        rule, len(dims), len(folds), last, looped, looped and nearer, parts > 1, engine.checks_indices, wraps, wide
    )
    chunks = -(-inner // chunk)
    items = outer * chunks * parts
    numbers = (
        items, parts, -(-indexed[0].size // parts), chunks, chunk, fold, *dims, *folds,
        *[step for row in steps for step in row], *[step for row in jumps[1:] for step in row], *extents,
    )  # fmt: skip
    launch = compiled(engine, text, form)
    return IndexPlan(launch, items, numbers, tuple([e.dim for e in indexed]), tuple([e.size for e in indexed]))


def shares(engine: Engine, outer: int, inner: int, fold: int, size: int) -> tuple[int, int]:
    """Return the size of the chunk of a row per work-item, and the number of parts of the target."""
    if not engine.traits.serial:  # the time is columns * parts * fold / UPDATE + fold / parts, up to a factor
        return 1, max(1, min(size, fold // AHEAD, isqrt(UPDATE * engine.traits.compute_units // (outer * inner))))
    target_parts = 4 * engine.traits.compute_units
    pieces = max(1, min(-(-target_parts // outer), inner // SHORTEST))
    chunk = -(-inner // pieces)
    units = engine.traits.compute_units
    if outer * pieces >= units or outer * inner * fold < SHARED or chunk < 2 * WIDTH:
        return chunk, 1
    return chunk, min(size, units, chunk // WIDTH)


@built("scatter")
def text(form: ScatterForm) -> Source:
    """Return the kernel: a work-item processes a chunk of a row of columns, or one column, and a part of the target."""
    return ScatterSource(form).source()


class ScatterSource:
    """The kernel of a form. ``now`` are the offsets of arrays at a fold, ``row`` those at a row of columns."""

    def __init__(self, form: ScatterForm) -> None:
        count, rule = len(form.inner) - 2, form.rule
        self.form = form
        self.kernel = k = KernelBuilder(f"scatter_{rule.name}_{count}_{form.columns}d", form.wide)
        out, x = k.writes("out", rule.target), k.reads("x", rule.source)
        self.indices = index_arrays.IndexArrays(k, count, form.wraps)
        self.arrays = {"out": out, "x": x, **self.indices.arrays}
        self.read = [name for name in self.arrays if name != "out"]
        self.starts = {name: k.number(f"{name}_at") for name in self.arrays}
        self.items, self.parts, self.part_size, self.chunks, self.chunk, self.folds = k.numbers(
            "items", "parts", "part_size", "chunks", "chunk", "folds"
        )
        self.sizes = k.per_dim("n", form.columns)
        self.fold_sizes = k.per_dim("m", form.folds)
        self.strides = {name: k.per_dim(f"{name}_s", form.columns) for name in self.arrays}
        self.jumps = {name: k.per_dim(f"{name}_f", form.folds) for name in self.read}
        self.indices.add_extents()
        self.kinds = dict(zip(self.arrays, form.inner, strict=True))
        self.along = any(form.inner[2:])
        """Whether an index changes along the last column."""
        self.part: tuple[Value, Value]
        self.row: dict[str, Variable]

    def source(self) -> Source:
        """Return the kernel."""
        k, form, last = self.kernel, self.form, self.form.columns - 1
        with k.when(k.item < self.items):
            item = self._share()
            row, begin = k.let("row", item // self.chunks), k.let("begin", item % self.chunks * self.chunk)
            end = k.let("end", begin + least(self.sizes[last] - begin, self.chunk))
            if not form.checked:
                self.indices.errors.declare()
            self.row = index_walker.declare_offsets(k, self.starts, self.strides, row, self.sizes[:last])
            if form.shared and not form.looped and form.folds == 1:
                self._looking_ahead(begin)
            elif form.folds_inside:
                with k.loop("i", begin, end) as i, k.loop("fold", 0, self.folds) as fold:
                    self._elements(self._offsets(fold), i)
            else:
                with k.loop("fold", 0, self.folds) as fold:
                    now = self._offsets(fold)
                    if not form.looped:
                        self._elements(now, begin)
                    elif not self.along:
                        self._row(now, begin, end)
                    else:
                        with k.loop("i", begin, end) as i:
                            self._elements(now, i)
            if not form.checked:
                self.indices.report()
        return k.source()

    def _share(self) -> Value:
        """Declare the part of the target that the work-item writes, and return the number of its chunk of columns."""
        k = self.kernel
        if self.form.shared and not self.form.looped:
            columns = k.let("columns", self.items // self.parts)
            part, item = k.item // columns, k.item % columns
        else:
            part, item = k.item % self.parts, k.item // self.parts
        low = k.let("low", part * self.part_size)
        self.part = low, k.let("high", low + self.part_size)
        return k.let("item", item)

    def _offsets(self, fold: Value) -> dict[str, Value]:
        """Declare the offsets of the arrays that are read, at a fold."""
        starts = {name: self.row[name] for name in self.read}
        moved = index_walker.declare_offsets(self.kernel, starts, self.jumps, fold, self.fold_sizes, "_now")
        return {"out": self.row["out"], **moved}

    def _step(self, name: str, i: Value) -> Value:
        """Return the distance of column ``i`` from the first one."""
        return (constant(INDEX, 0), i, i * self.strides[name][-1])[self.kinds[name]]

    def _elements(self, now: Mapping[str, Value], i: Value, indices: Sequence[Value] | None = None) -> None:
        """Update the element of column ``i``, by the indices of this fold if they are not given."""
        at = {name: now[name] + self._step(name, i) for name in self.arrays}
        if indices is None:
            indices = [self.arrays[n][at[n] if self.along else now[n]] for n in self.indices.arrays]
        with self._where_valid(indices) as to:
            self._update(self.arrays["out"], at["out"] + to, self.arrays["x"], at["x"])

    def _row(self, now: Mapping[str, Value], begin: Value, end: Value) -> None:
        """Update a chunk of a row with one index for all columns, in a loop that every compiler vectorises."""
        k = self.kernel
        with self._where_valid([self.arrays[n][now[n]] for n in self.indices.arrays]) as to:
            o = k.pointer("o", self.arrays["out"], now["out"] + to + self._step("out", begin))
            s = k.pointer("s", self.arrays["x"], now["x"] + self._step("x", begin))
            with k.loop("i", 0, k.let("many", end - begin), independent=True) as i:
                self._update(o, self._step("out", i), s, self._step("x", i))

    @contextmanager
    def _where_valid(self, indices: Sequence[Value]) -> Iterator[Value]:
        """A block for indices that are valid and in the part of the work-item; the offset that they give."""
        k, form = self.kernel, self.form
        conditions: list[Value] = []
        if form.checked:
            to, found = self.indices.checked_lookup(indices)
        else:
            to, good, found = self.indices.lookup(indices)
            conditions.append(good)
        if form.shared:
            first, (low, high) = cast(INDEX, found[0]), self.part
            conditions += [first >= low, first < high]
        with k.when(and_then(*conditions)) if conditions else k.block():
            yield to

    def _update(self, target: KernelArray, to: Value, source: KernelArray, at: Value) -> None:
        """Load, apply the rule and store one element."""
        k, rule = self.kernel, self.form.rule
        groups = (("va", target, to, len(rule.values)), ("vb", source, at, rule.sources))
        with k.block():
            for letter, array, start, count in groups:
                for number in range(count):
                    if rule.reads(numbered(letter, number)):
                        k.let(numbered(letter, number), array[start + number if number else start])
            for number, value in enumerate(rule.values):
                target[to + number if number else to] = value

    def _looking_ahead(self, column: Value) -> None:
        """The loop of a lane over folds of one dim, which loads several indices at once."""
        k = self.kernel
        with k.loop("start", 0, self.folds, AHEAD) as start:
            ahead = {name: k.array(f"ahead_{name}", "i64", AHEAD) for name in self.indices.arrays}
            with k.loop("j", constant("u32", 0), AHEAD, unrolled=True) as j:
                fold = k.let("fold", least(start + j, self.folds - 1))
                for name, array in ahead.items():
                    at = self.row[name] + self._step(name, column) + fold * self.jumps[name][0]
                    array[j] = self.arrays[name][at]
            with k.loop("j", constant("u32", 0), AHEAD, unrolled=True) as j:
                fold = k.let("fold", start + j)
                with k.when(fold < self.folds):
                    self._elements(self._offsets(fold), column, [array[j] for array in ahead.values()])
