"""Elements to places that index arrays name: ``target[p · strides + index[p] · step] = rule(target[…], source[p])``.

No atomics: what arrives at one place arrives in the order of the index, so results never depend on the launch. The
dims of the walk are of two kinds. Along *columns* the target moves, too: elements of different columns never meet, and
each column may be anybody's. Along *folds* only indices decide: whoever has a column walks its folds in order. Where
there are too few columns to go round, work-items share them by parts of the target: each walks all indices and
leaves those that point elsewhere to the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.faults import OutOfBounds
from candelabra_clike.layouts import collapsed, is_wide
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates import walking
from candelabra_clike.templates.indexing import picking
from candelabra_clike.templates.indexing.picking import Pick
from candelabra_clike.types import CTYPES

SHORTEST = 64
"""Elements of a row that are worth a work-item of their own."""
SHARED = 1 << 13
"""From so many elements on it pays to share columns."""
WIDTH, MANY = 8, 8
"""Shorter pieces of rows are shared by no fewer processors: it costs more to see that an index is another's."""


class Rule(NamedTuple):
    """What becomes of an element: an expression of ``{a}``, which is there, and ``{b}``, which arrives.

    ``target`` and ``source`` are the dtypes in memory; an expression without ``{b}`` takes no source.
    """

    name: str
    target: dtype
    source: dtype
    expression: str


class Walk(NamedTuple):
    """The dims of a walk: all sizes, the strides of target and source along them, and which of them are folds."""

    shape: Shape
    target: Shape
    source: Shape
    folds: frozenset[int]


class Form(NamedTuple):
    """What a kernel is compiled for. ``inner``: the last strides where they are 0 or 1, 2 for others."""

    rule: Rule
    columns: int
    folds: int
    inner: Shape
    looped: bool
    wraps: bool
    wide: bool


def scatter(
    target: StridedArray, walk: Walk, picks: Sequence[Pick], source: StridedArray, rule: Rule, words: OutOfBounds
) -> None:
    """Write into ``target``, whose elements must not overlap each other nor any other array here.

    Wrong indices are complained about, and nothing is written for them. Raises ``IndexError`` where there is nothing
    to write to.
    """
    if 0 in walk.shape:
        return
    if any(not pick.size for pick in picks):
        raise IndexError("a dim has no elements to be written to")
    engine = target.engine
    rows = (walk.target, walk.source, *[pick.strides for pick in picks])
    dims, steps = _part(walk.shape, rows, [d for d in range(len(walk.shape)) if d not in walk.folds])
    folds, jumps = _part(walk.shape, rows, sorted(walk.folds))
    outer, inner = 1, dims[-1]
    for size in dims[:-1]:
        outer *= size
    fold = 1
    for size in folds:
        fold *= size
    chunk, parts = shares(engine, outer, inner, fold, picks[0].size)
    form = Form(
        rule, len(dims), len(folds), tuple([min(row[-1], 2) for row in steps]), chunk > 1, words.wraps,
        is_wide(target, source, *[pick.array for pick in picks]),
    )  # fmt: skip
    faults, ticket = engine.faults.expect(words, [pick.indexed for pick in picks])
    chunks = -(-inner // chunk)
    compiled(engine, form)(
        outer * chunks * parts,
        target.buffer, source.buffer, *[pick.array.buffer for pick in picks], faults, ticket,
        target.offset, source.offset, *[pick.array.offset for pick in picks],
        outer * chunks * parts, parts, -(-picks[0].size // parts), chunks, chunk, fold, *dims, *folds,
        *[step for row in steps for step in row], *[step for row in jumps[1:] for step in row],
        *picking.extents_of(picks),
    )  # fmt: skip


def _part(shape: Shape, rows: Sequence[Shape], dims: Sequence[int]) -> tuple[Shape, tuple[Shape, ...]]:
    """Some of the dims of a walk, collapsed."""
    return collapsed(tuple([shape[d] for d in dims]), tuple([tuple([row[d] for d in dims]) for row in rows]))


def shares(engine: Engine, outer: int, inner: int, fold: int, size: int) -> tuple[int, int]:
    """How long a chunk of a row one work-item has, and among how many the target's places are shared."""
    if not engine.traits.serial:
        return 1, 1
    wanted = 4 * engine.traits.compute_units
    pieces = max(1, min(-(-wanted // outer), inner // SHORTEST))
    chunk = -(-inner // pieces)
    units = engine.traits.compute_units
    if outer * pieces >= units or outer * inner * fold < SHARED or (chunk < WIDTH and units < MANY):
        return chunk, 1
    return chunk, min(size, units)


@lru_cache(None)
def compiled(engine: Engine, form: Form) -> Launch:
    """The kernel on a device."""
    return engine.compile(text(form))


def text(form: Form) -> Source:
    """A work-item has a chunk of a row of columns, or a single column, and a part of the target's places."""
    count, last, rule = len(form.inner) - 2, form.columns - 1, form.rule
    indices = picking.names(count)
    arrays = ("out", "x", *indices)
    target, source = CTYPES[rule.target], CTYPES[rule.source]
    head = (
        writes("out", target.memory), reads("x", source.memory), *picking.buffers(count), *walking.offsets(arrays),
        *[number(n) for n in ("items", "parts", "part_size", "chunks", "chunk", "folds")],
        *walking.sizes(form.columns), *walking.sizes(form.folds, "m"), *walking.strides(arrays, form.columns),
        *walking.strides(arrays[1:], form.folds, "_f"), *picking.extents(count),
    )  # fmt: skip
    at = {n: ("", " + i", f" + i * {n}_s{last}")[kind] for n, kind in zip(arrays, form.inner, strict=True)}
    along = any(form.inner[2:])
    found = picking.looked_up(count, [f"{n}_now{at[n] if along else ''}" for n in indices], form.wraps)
    mine = f"{found}if (good && (INDEX)v1 >= low && (INDEX)v1 < high) "
    put = _put(rule, f"out[out_row + to{at['out']}]", f"x[x_now{at['x']}]")
    loop = "for (INDEX i = begin; i < end; ++i) " if form.looped else ""
    step = loop + ("{\n" + mine + put + "}\n") if along else mine + (_row(form) if form.looped else put)
    now = "\n".join([f"INDEX {n}_now = {n}_row;" for n in arrays[1:]])
    moves = "\n".join(walking.moves(arrays[1:], form.folds, "fold", "m", "_f", "_now"))
    body = (
        "INDEX item = GLOBAL_ID;\nif (item < items) {\n"
        "const INDEX low = item % parts * part_size, high = low + part_size;\nitem /= parts;\n"
        "const INDEX row = item / chunks, begin = item % chunks * chunk;\n"
        f"const INDEX end = begin + chunk < n{last} ? begin + chunk : n{last};\n"
        f"{'' if form.looped else 'const INDEX i = begin;'}\n"
        f"{picking.noted()}{walking.starts(arrays, last)}"
        f"for (INDEX fold = 0; fold < folds; ++fold) {{\n{now}\n{moves}\n{step}}}\n{picking.complaint(count)}}}"
    )
    return Source(f"scatter_{rule.name}_{count}_{form.columns}d", head, body, wide=form.wide)


def _put(rule: Rule, there: str, given: str) -> str:
    """Load, apply the rule, store: one element."""
    target, source = CTYPES[rule.target], CTYPES[rule.source]
    loads = {"a": (target, there), "b": (source, given)}
    values = [f"const {c.value} v{n} = {c.load(e)};" for n, (c, e) in loads.items() if f"{{{n}}}" in rule.expression]
    value = target.store(rule.expression.format(a="va", b="vb"))
    return f"{{ {' '.join(values)} {there} = {value}; }}\n"


def _row(form: Form) -> str:
    """A chunk of a row whose place is the same for all columns: a loop that every driver's compiler vectorises."""
    last, rule = form.columns - 1, form.rule
    arrays = (("o", "out", rule.target, "out_row + to"), ("s", "x", rule.source, "x_now"))
    lines, at = ["{"], {}
    for (pointer, name, d, start), kind in zip(arrays, form.inner, strict=False):
        begin = ("0", "begin", f"begin * {name}_s{last}")[kind]
        const = "const " if pointer == "s" else ""
        lines.append(f"GLOBAL {const}{CTYPES[d].memory}* const {pointer} = {name} + ({start} + {begin});")
        at[pointer] = f"{pointer}[{('0', 'i', f'i * {name}_s{last}')[kind]}]"
    lines.append("const INDEX m = end - begin;\nINDEPENDENT\nfor (INDEX i = 0; i < m; ++i)")
    return "\n".join([*lines, _put(rule, at["o"], at["s"]) + "}\n"])
