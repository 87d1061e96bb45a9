"""Products of matrices of any layout, batches of them, on top of a matrix if wanted: choice of form and launch."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Buffer, Engine, Launch, Traits
from candelabra_clike.layouts import collapsed, is_wide
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.products import dots as matmul_dots
from candelabra_clike.templates.products import strips as matmul_strips
from candelabra_clike.templates.products import tiles as matmul_tiles
from candelabra_clike.templates.products.packing import Rows, packed
from candelabra_clike.templates.products.strips import Strip
from candelabra_clike.types import CTYPES

ROWS_OF_A_BLOCK = 384
"""Rows of a work-item's block: with the panel's depth, what the second cache holds."""
PLANS = 4096
"""Plans that are kept, of each dtype."""
WORTHWHILE = 1 << 17
"""Products that a work-item should have: fewer cost less than a launch of another."""


class Layout(NamedTuple):
    """Sizes and strides of ``out[z] = a[z] @ b[z]``: batches as few dims as will do, each row (out, a, b, start)."""

    batch: Shape
    steps: tuple[Shape, ...]
    m: int
    n: int
    depth: int
    strides: tuple[tuple[int, int], ...]
    """(row, column) of out, a, b and start."""


class Plan(NamedTuple):
    """The launch for arrays of certain shapes and strides, its count, and the numbers after the offsets."""

    launch: Launch
    items: int
    numbers: tuple[int, ...]
    layout: Layout
    strips: Strip | None
    """How the left matrix is laid out first, if it is."""
    exchanged: bool = False
    """Whether the matrices change places: the product is made as that of the transposes."""


@lru_cache(4096)
def layout(shape: Shape, depth: int, strides: tuple[Shape, ...]) -> Layout:
    """The fewest dims of a product of ``shape`` (batch, m, n); a batch of rows over one right matrix is one matrix."""
    m, n = shape[-2:]
    batch, steps = collapsed(shape[:-2], tuple([s[:-2] for s in strides]))
    pairs = tuple([(s[-2], s[-1]) for s in strides])
    rows = [r for i, r in enumerate(steps) if i != 2]
    row_steps = [p[0] for i, p in enumerate(pairs) if i != 2]
    while batch != (1,) and steps[2][-1] == 0 and all(r[-1] == m * p for r, p in zip(rows, row_steps)):
        m *= batch[-1]
        batch, steps = (batch[:-1], tuple([s[:-1] for s in steps])) if len(batch) > 1 else ((1,), ((0,),) * len(steps))
        rows = [r for i, r in enumerate(steps) if i != 2]
    return Layout(batch, steps, m, n, depth, pairs)


def exchanged(found: Layout) -> Layout:
    """The same product as that of the transposes, ``out.T = b.T @ a.T``: ``a`` and ``b`` change places."""
    out, a, b, *rest = [(column, row) for row, column in found.strides]
    out_steps, a_steps, b_steps, *rest_steps = found.steps
    return found._replace(
        m=found.n, n=found.m, strides=(out, b, a, *rest), steps=(out_steps, b_steps, a_steps, *rest_steps)
    )


@lru_cache(4096)
def strip_for(m: int, value: str) -> Strip:
    """Six rows of registers, the most that fit, unless fewer compute some percent less in vain."""
    rows = m if m <= 2 else 6 if m > 4 and rounded(m, 6) <= 1.04 * rounded(m, 4) else 4
    eights = (2 if value in ("f32", "u32") else 1) * (2 if rows == 1 else 1)
    return Strip(rows, eights, value)


@lru_cache(4096)
def blocks(m: int, n: int, work: int, strip: Strip, units: int) -> tuple[int, int]:
    """Rows and columns of a work-item's block: large, but so that there are several for each unit of the device."""
    wanted = min(4 * units, work // WORTHWHILE + 1)
    parts = -(-m // ROWS_OF_A_BLOCK)
    rows, columns = rounded(-(-m // parts), strip.rows), 16 * strip.columns
    while -(-m // rows) * -(-n // columns) < wanted:
        if columns > strip.columns and columns >= n:
            columns = rounded(-(-n // 2), strip.columns) if n > strip.columns else strip.columns
        elif columns > strip.columns and (columns > 4 * strip.columns or rows <= 16 * strip.rows):
            columns //= 2
        elif rows > strip.rows:
            rows = rounded(rows // 2, strip.rows)
        else:
            break
    return rows, columns


def worth_packing(found: Layout) -> bool:
    """Whether the left matrix should be laid out in strips first: it is read several times."""
    return found.batch == (1,) and found.n >= 128 and found.m * found.depth >= 1 << 14


def rounded(count: int, step: int) -> int:
    """The multiple of ``step`` that holds ``count``."""
    return -(-count // step) * step


class Product:
    """``out = a @ b`` in one dtype, or with ``added`` ``out = beta * start + alpha * (a @ b)``."""

    def __init__(self, d: dtype, added: bool) -> None:
        self.dtype = d
        self.added = added
        # Integers are multiplied as unsigned ones, which wrap.
        self.value = CTYPES[d].value if d.is_floating_point else "u64" if d.itemsize == 8 else "u32"
        self._plans: dict[Any, Plan] = {}

    def __call__(
        self, out: StridedArray, a: StridedArray, b: StridedArray, start: StridedArray | None, alpha: Any, beta: Any
    ) -> None:
        """Matrices with their batch dims expanded; ``start`` has the shape of ``out`` and may be the same."""
        engine = out.engine
        key: Any
        if start is None:
            arrays: tuple[StridedArray, ...] = (out, a, b)
            key = (engine, out.shape, a.shape[-1], out.strides, a.strides, b.strides)
        else:
            arrays = (out, a, b, start)
            key = (engine, out.shape, a.shape[-1], out.strides, a.strides, b.strides, start.strides)
        if not engine.traits.serial:
            key = (is_wide(*arrays), *key)
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= PLANS:
                self._plans.clear()
            plan = self._plans[key] = self._planned(arrays)
        if plan.exchanged:
            a, b = b, a
            arrays = (out, a, b, *arrays[3:])
        if start is None and plan.strips is None:
            plan.launch(plan.items, out.buffer, a.buffer, b.buffer, out.offset, a.offset, b.offset, *plan.numbers)
            return
        buffers, starts = [array.buffer for array in arrays], [array.offset for array in arrays]
        if plan.strips is not None:
            buffers[1], starts[1] = self._packed(a, plan.layout, plan.strips), 0
        plan.launch(plan.items, *buffers, *starts, *plan.numbers, *((alpha, beta) if self.added else ()))

    def _planned(self, arrays: tuple[StridedArray, ...]) -> Plan:
        """The plan for arrays of these shapes and strides."""
        out, a = arrays[:2]
        found = layout(out.shape, a.shape[-1], tuple([array.strides for array in arrays]))
        traits = out.engine.traits
        turned = traits.serial and found.n == 1
        if turned:
            found = exchanged(found)
        if traits.serial and self._along_depth(found):
            return self._dots(found, out.engine, turned)
        strip = strip_for(found.m, self.value)
        packing = traits.serial and worth_packing(found)
        wide = traits.serial or is_wide(*arrays)
        launch = out.engine.compile(self.source(traits, strip, len(found.batch), packing, wide))
        count, extents = self._extents(found, traits, strip)
        numbers = (
            *extents, found.m, found.n, found.depth, *[step for pair in found.strides for step in pair],
            *found.batch, *[step for row in found.steps for step in row],
        )  # fmt: skip
        return Plan(launch, count, numbers, found, strip if packing else None, turned)

    def _along_depth(self, found: Layout) -> bool:
        """Whether the product is a row times a matrix, and both lie along the depth."""
        one = found.m == 1 and not self.added and CTYPES[self.dtype].memory == self.value
        return one and found.strides[1][1] == 1 == found.strides[2][0]

    def _dots(self, found: Layout, engine: Engine, turned: bool) -> Plan:
        """The plan of such a product."""
        wanted = min(4 * engine.traits.compute_units, found.n * found.depth // WORTHWHILE + 1)
        per_item = rounded(-(-found.n // wanted), matmul_dots.COLUMNS)
        count = -(-found.n // per_item)
        numbers = (
            count, per_item, found.n, found.depth, found.strides[0][1], found.strides[2][1],
            *found.batch, *[step for row in found.steps for step in row],
        )  # fmt: skip
        launch = engine.compile(self._dots_source(len(found.batch)))
        return Plan(launch, prod(found.batch) * count, numbers, found, None, turned)

    def _dots_source(self, rank: int) -> Source:
        """Its kernel, for a batch of ``rank`` dims."""
        names = ("o", "a", "b")
        head = (
            writes("out", self.value),
            *[reads(n, self.value) for n in names[1:]],
            *[number(f"{n}_from") for n in names],
            *[number(n) for n in ("blocks", "columns_per_item", "n", "depth", "o_column", "b_column")],
            *[number(f"z{d}") for d in range(rank)],
            *[number(f"{n}_z{d}") for n in names for d in range(rank)],
        )
        body = matmul_dots.body(self.value, _batch(names, rank))
        return Source(f"matmul_dots_{self.dtype.name}_{rank}", head, body, wide=True, contract=True)

    def _packed(self, a: StridedArray, found: Layout, strip: Strip) -> Buffer:
        """The left matrix in strips."""
        row_step, column_step = found.strides[1]
        rows = Rows(a.offset, 1, 0, found.m, row_step, (found.depth,), (column_step,))
        return packed(a.engine, a.buffer, rows, CTYPES[self.dtype].memory, self.dtype.itemsize, strip.rows)

    def _extents(self, found: Layout, traits: Traits, strip: Strip) -> tuple[int, tuple[int, ...]]:
        """How many work-items or groups, and the numbers that say which block of the result each has."""
        matrices = prod(found.batch)
        if not traits.serial:
            down, across = -(-found.m // matmul_tiles.TILE), -(-found.n // matmul_tiles.TILE)
            return matrices * down * across, (down, across)
        work = found.m * found.n * max(found.depth, 1)
        units = -(-traits.compute_units // matrices)
        rows, columns = blocks(found.m, found.n, work, strip, units)
        down, across = -(-found.m // rows), -(-found.n // columns)
        return matrices * down * across, (down, across, rows, columns)

    def source(self, traits: Traits, strip: Strip, rank: int, packing: bool, wide: bool) -> Source:
        """The kernel for a batch of ``rank`` dims."""
        memory = CTYPES[self.dtype]
        names = ("o", "a", "b", "start") if self.added else ("o", "a", "b")
        buffers = [writes("out", memory.memory), reads("a", memory.memory), reads("b", memory.memory)]
        if self.added:
            buffers.append(reads("start", memory.memory))
        extents = ("row_blocks", "column_blocks", *(("rows_per_item", "columns_per_item") if traits.serial else ()))
        head = (
            *buffers,
            *[number(f"{n}_from") for n in names],
            *[number(n) for n in extents],
            *[number(n) for n in ("m", "n", "depth")],
            *[number(f"{n}_{d}") for n in names for d in ("row", "column")],
            *[number(f"z{d}") for d in range(rank)],
            *[number(f"{n}_z{d}") for n in names for d in range(rank)],
            *([number("alpha", self.value), number("beta", self.value)] if self.added else []),
        )
        form = "strips" if traits.serial else "tiles"
        name = f"matmul_{form}_{self.dtype.name}_{rank}{'_added' if self.added else ''}"
        moves = _batch(names, rank)
        if traits.serial:
            body = matmul_strips.body(strip, memory, moves, self.added, packing)
            return Source(name, head, body, wide=wide, contract=True)
        body = matmul_tiles.body(memory, self.value, moves, self.added)
        return Source(name, head, body, group=matmul_tiles.GROUP, wide=wide, contract=True)


def _batch(names: tuple[str, ...], rank: int) -> str:
    """Where the matrix number ``left`` of each array begins."""
    lines = [f"INDEX {n}_at = {n}_from;" for n in names]
    for d in range(rank - 1, -1, -1):
        place = f"left % z{d}" if d else "left"
        moves = " ".join(f"{n}_at += p * {n}_z{d};" for n in names)
        lines.append(f"{{ const INDEX p = {place}; {moves} }}")
        if d:
            lines.append(f"left /= z{d};")
    return "\n".join(lines) + "\n"


@lru_cache(64)
def product(d: dtype, added: bool) -> Product:
    """The product of matrices of a dtype: of integers as unsigned ones of their size."""
    return Product(d, added)
