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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import isqrt, prod
from typing import Any, NamedTuple

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.language import Value, Variable, all_declared, printing, value_type
from candelabra_clike.layouts import collapsed, is_wide
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates import index_walker
from candelabra_clike.templates.elementwise.elementwise import MAX_PLANS
from candelabra_clike.templates.indexing import index_arrays
from candelabra_clike.templates.indexing.gather import IndexPlan
from candelabra_clike.templates.indexing.index_arrays import IndexedDim
from candelabra_clike.types import CTYPES

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

    @property
    def stored(self) -> tuple[str, ...]:
        """The numbers of the new element as C texts."""
        return tuple([CTYPES[self.target].store(printing.text(value)) for value in self.values])


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
        errors, ticket = engine.errors.register(error, list(zip(indices, plan.dims, plan.sizes)))
        plan.launch(
            plan.items, target.buffer, source.buffer, *[index.buffer for index in indices], errors, ticket,
            target.offset, source.offset, *[index.offset for index in indices], *plan.numbers,
        )  # fmt: skip


@lru_cache(MAX_PLANS)
def scatter_plan(
    engine: Engine, loop_dims: ScatterDims, indexed: tuple[IndexedDim, ...], rule: ScatterRule, wraps: bool, wide: bool
) -> IndexPlan:
    """Return the plan of :func:`scatter`."""
    extents = index_arrays.extent_arguments(indexed)
    rows = (loop_dims.target, loop_dims.source, *[each.strides for each in indexed])
    dims, steps = _part(loop_dims.shape, rows, [d for d in range(len(loop_dims.shape)) if d not in loop_dims.folds])
    folds, jumps = _part(loop_dims.shape, rows, sorted(loop_dims.folds))
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
    launch = compiled(engine, form)
    return IndexPlan(launch, items, numbers, tuple([e.dim for e in indexed]), tuple([e.size for e in indexed]))


def _part(shape: Shape, rows: Sequence[Shape], dims: Sequence[int]) -> tuple[Shape, tuple[Shape, ...]]:
    """Collapse some of the dims."""
    return collapsed(tuple([shape[d] for d in dims]), tuple([tuple([row[d] for d in dims]) for row in rows]))


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


@lru_cache(None)
def compiled(engine: Engine, form: ScatterForm) -> Launch:
    """Return the compiled kernel."""
    return engine.compile(text(form))


def text(form: ScatterForm) -> Source:
    """Return the kernel: a work-item processes a chunk of a row of columns, or one column, and a part of the target."""
    count, last, rule = len(form.inner) - 2, form.columns - 1, form.rule
    indices = index_arrays.names(count)
    arrays = ("out", "x", *indices)
    target, source = CTYPES[rule.target], CTYPES[rule.source]
    head = (
        writes("out", target.memory), reads("x", source.memory), *index_arrays.buffers(count),
        *index_walker.offset_parameters(arrays),
        *[number(n) for n in ("items", "parts", "part_size", "chunks", "chunk", "folds")],
        *index_walker.size_parameters(form.columns), *index_walker.size_parameters(form.folds, "m"),
        *index_walker.stride_parameters(arrays, form.columns),
        *index_walker.stride_parameters(arrays[1:], form.folds, "_f"), *index_arrays.extent_parameters(count),
    )  # fmt: skip
    at = {n: ("", " + i", f" + i * {n}_s{last}")[kind] for n, kind in zip(arrays, form.inner, strict=True)}
    along = any(form.inner[2:])
    look_up = index_arrays.checked_lookup if form.checked else index_arrays.lookup
    lanes = form.shared and not form.looped
    ahead = lanes and form.folds == 1
    elements = [f"ahead_{n}[j]" if ahead else f"{n}[{n}_now{at[n] if along else ''}]" for n in indices]
    lookup = look_up(count, elements, form.wraps)
    conditions = [*["good"] * (not form.checked), *["(INDEX)v1 >= low && (INDEX)v1 < high"] * form.shared]
    guard = lookup + (f"if ({' && '.join(conditions)}) " if conditions else "")
    put = _put(rule, ("out", f"out_row + to{at['out']}"), ("x", f"x_now{at['x']}"))
    loop = "for (INDEX i = begin; i < end; ++i) " if form.looped else ""
    outside, inside = (loop, "") if form.folds_inside else ("", loop)
    step = inside + ("{\n" + guard + put + "}\n") if along or not inside else guard + _row(form)
    now = "\n".join([f"INDEX {n}_now = {n}_row;" for n in arrays[1:]])
    moves = "\n".join(index_walker.offset_lines(arrays[1:], form.folds, "fold", "m", "_f", "_now"))
    of_fold = f"{now}\n{moves}\n{step}"
    every_fold = f"{outside}for (INDEX fold = 0; fold < folds; ++fold) {{\n{of_fold}}}\n"
    part = "const INDEX low = item % parts * part_size, high = low + part_size;\nitem /= parts;\n"
    if lanes:
        part = "const INDEX columns = items / parts, low = item / columns * part_size, high = low + part_size;\n"
        part += "item %= columns;\n"
    body = (
        f"INDEX item = GLOBAL_ID;\nif (item < items) {{\n{part}"
        "const INDEX row = item / chunks, begin = item % chunks * chunk;\n"
        f"const INDEX end = begin + chunk < n{last} ? begin + chunk : n{last};\n"
        f"{'' if form.looped else 'const INDEX i = begin;'}\n"
        f"{'' if form.checked else index_arrays.declare_error()}{index_walker.row_offsets(arrays, last)}"
        f"{_looking_ahead(indices, at, of_fold) if ahead else every_fold}"
        f"{'' if form.checked else index_arrays.report(count)}}}"
    )
    return Source(f"scatter_{rule.name}_{count}_{form.columns}d", head, body, wide=form.wide)


def _looking_ahead(indices: Sequence[str], at: dict[str, str], step: str) -> str:
    """Return the loop of a lane over folds of one dim, which loads several indices at once."""
    each = f"UNROLL for (u32 j = 0; j < {AHEAD}u; ++j)"
    loads = "".join(f"ahead_{n}[j] = {n}[{n}_row{at[n]} + fold * {n}_f0];\n" for n in indices)
    return (
        f"for (INDEX start = 0; start < folds; start += {AHEAD}u) {{\n"
        f"{''.join(f'i64 ahead_{n}[{AHEAD}];' for n in indices)}\n"
        f"{each} {{\nconst INDEX fold = start + j < folds ? start + j : folds - 1;\n{loads}}}\n"
        f"{each} {{\nconst INDEX fold = start + j;\nif (fold < folds) {{\n{step}}}\n}}\n}}\n"
    )


def _put(rule: ScatterRule, target: tuple[str, str], source: tuple[str, str]) -> str:
    """Return statements that load, apply the rule and store one element. Target and source: an array and an index."""
    loads = []
    for letter, d, (array, index), count in (
        ("va", rule.target, target, len(rule.values)), ("vb", rule.source, source, rule.sources)
    ):  # fmt: skip
        for k in range(count):
            if rule.reads(numbered(letter, k)):
                loads.append(f"const {CTYPES[d].value} {numbered(letter, k)} = {CTYPES[d].load(_at(array, index, k))};")
    stores = [f"{_at(*target, k)} = {value};" for k, value in enumerate(rule.stored)]
    return f"{{ {' '.join(loads)} {' '.join(stores)} }}\n"


def _at(array: str, index: str, k: int) -> str:
    """Return the text of number ``k`` of a group."""
    return f"{array}[{index} + {k}]" if k else f"{array}[{index}]"


def _row(form: ScatterForm) -> str:
    """Return a loop over a chunk of a row with one index for all columns, which every compiler vectorises."""
    last, rule = form.columns - 1, form.rule
    arrays = (("o", "out", rule.target, "out_row + to"), ("s", "x", rule.source, "x_now"))
    lines, at = ["{"], {}
    for (pointer, name, d, start), kind in zip(arrays, form.inner, strict=False):
        begin = ("0", "begin", f"begin * {name}_s{last}")[kind]
        const = "const " if pointer == "s" else ""
        lines.append(f"GLOBAL {const}{CTYPES[d].memory}* const {pointer} = {name} + ({start} + {begin});")
        at[pointer] = ("0", "i", f"i * {name}_s{last}")[kind]
    lines.append("const INDEX m = end - begin;\nINDEPENDENT\nfor (INDEX i = 0; i < m; ++i)")
    return "\n".join([*lines, _put(rule, ("o", at["o"]), ("s", at["s"])) + "}\n"])
