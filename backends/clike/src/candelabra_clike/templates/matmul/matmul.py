"""Matrix products of arrays of any layout, batched, optionally added to a matrix: selection of the form and launch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Buffer, Engine, Launch, Traits
from candelabra_clike.layouts import collapsed, is_wide
from candelabra_clike.source import KernelParameter, Source, number, reads, writes
from candelabra_clike.templates.index_walker import coordinates, moves, size_parameters, stride_parameters
from candelabra_clike.templates.matmul import dot, micro_kernel, tiled
from candelabra_clike.templates.matmul.micro_kernel import FETCHING_ROWS, MicroTile
from candelabra_clike.templates.matmul.packing import StridedRows, pack_panels
from candelabra_clike.types import CTYPES

BLOCK_ROWS = 512
"""Rows of a work-item's block. With the depth of the panel, they fit in the second-level cache."""
TILE_ROWS = {16: (4, 6), 32: (4, 8, 13)}
"""The rows of a tile, by the number of registers: two registers of sums each, and a few for the operands. 64 channels
are five times 13 rows."""
MIN_TILES = 6
"""The number of tiles of rows that justifies packing the columns again."""
MAX_PLANS = 4096
"""The number of plans that are kept per dtype."""
MIN_PRODUCTS_PER_ITEM = 1 << 17
"""The number of products that justifies another work-item."""
MIN_PRODUCTS_PER_ROWS = 1 << 23
"""The number that justifies another work-item which packs the same columns again: from an outer cache that takes as
long as two of the tiles that follow."""


class MatmulLayout(NamedTuple):
    """Sizes and strides of ``out[z] = a[z] @ b[z]``. Batch dims are collapsed; each row has the strides of (out, a, b,
    start).
    """

    batch: Shape
    steps: tuple[Shape, ...]
    m: int
    n: int
    depth: int
    strides: tuple[tuple[int, int], ...]
    """(row, column) of out, a, b and start."""


class MatmulPlan(NamedTuple):
    """The launch for arrays of certain shapes and strides, its count, and the arguments after the offsets."""

    launch: Launch
    items: int
    numbers: tuple[int, ...]
    layout: MatmulLayout
    packed_tile: MicroTile | None
    """The micro tile for which the left matrix is packed first, or None."""
    transposed: bool = False
    """Whether the matrices change places: the product is made as that of the transposes."""


@lru_cache(4096)
def layout(shape: Shape, depth: int, strides: tuple[Shape, ...]) -> MatmulLayout:
    """Collapse a product of ``shape`` (batch, m, n). A batch of rows times one right matrix becomes one matrix."""
    m, n = shape[-2:]
    batch, steps = collapsed(shape[:-2], tuple([s[:-2] for s in strides]))
    pairs = tuple([(s[-2], s[-1]) for s in strides])
    rows = [r for i, r in enumerate(steps) if i != 2]
    row_steps = [p[0] for i, p in enumerate(pairs) if i != 2]
    while batch != (1,) and steps[2][-1] == 0 and all(r[-1] == m * p for r, p in zip(rows, row_steps)):
        m *= batch[-1]
        batch, steps = (batch[:-1], tuple([s[:-1] for s in steps])) if len(batch) > 1 else ((1,), ((0,),) * len(steps))
        rows = [r for i, r in enumerate(steps) if i != 2]
    return MatmulLayout(batch, steps, m, n, depth, pairs)


def transposed(layout_: MatmulLayout) -> MatmulLayout:
    """Return the layout of ``out.T = b.T @ a.T``."""
    out, a, b, *rest = [(column, row) for row, column in layout_.strides]
    out_steps, a_steps, b_steps, *rest_steps = layout_.steps
    return layout_._replace(
        m=layout_.n, n=layout_.m, strides=(out, b, a, *rest), steps=(out_steps, b_steps, a_steps, *rest_steps)
    )


@lru_cache(4096)
def micro_tile_for(m: int, value: str, lanes: int, registers: int) -> MicroTile:
    """Return the tile of two registers a row that takes the least time, see :class:`Traits` for lanes and registers.

    A panel of rows takes the time of its rows, and that of half a row for loading the right matrix. No tile has more
    rows than the matrix: a panel of fewer rows begins before them. One row has twice
    as many vectors, but not more than 32 columns of float32, which would exceed the rows of many images.
    """
    size = int(value[1:]) // 8
    lanes_here = lanes if size == 4 else 8
    vectors = 2 * lanes * 4 // (lanes_here * size)
    if m <= 3:
        return MicroTile(min(m, 2), vectors * (2 if m == 1 and lanes_here == 8 else 1), value, lanes_here)
    rows = min(
        [rows for rows in TILE_ROWS[registers] if rows <= m], key=lambda rows: (-(-m // rows) * (2 * rows + 1), -rows)
    )
    return MicroTile(rows, vectors, value, lanes_here)


@lru_cache(4096)
def blocks(m: int, n: int, work: int, tile: MicroTile, units: int) -> tuple[int, int]:
    """Return rows and columns of a work-item's block: large, but with several blocks per compute unit.

    Each block packs its columns, so rows are divided only if there are still few blocks of one panel of columns, and
    not into few.
    """
    target_blocks = min(4 * units, work // MIN_PRODUCTS_PER_ITEM + 1)
    row_target = min(target_blocks, work // MIN_PRODUCTS_PER_ROWS + 1)
    row_blocks = -(-m // BLOCK_ROWS)
    rows, columns = round_up(-(-m // row_blocks), tile.rows), 16 * tile.columns
    while -(-m // rows) * -(-n // columns) < target_blocks:
        if columns > tile.columns and columns >= n:
            columns = round_up(-(-n // 2), tile.columns) if n > tile.columns else tile.columns
        elif columns > tile.columns:
            columns = round_up(columns // 2, tile.columns)
        elif rows >= 2 * MIN_TILES * tile.rows and -(-m // rows) * -(-n // columns) < row_target:
            rows = round_up(rows // 2, tile.rows)
        else:
            break
    return rows, columns


def should_pack(layout_: MatmulLayout, tile: MicroTile) -> bool:
    """Whether packing the left matrix is worthwhile, because it is read many times.

    Rows are read in place nearly as fast as packed ones, above all by tiles that prefetch the next rows.
    """
    times, worth = layout_.n // tile.columns, 32 if tile.rows >= FETCHING_ROWS else 16
    return layout_.batch == (1,) and times >= worth and layout_.m * layout_.depth >= 1 << 14


def round_up(count: int, step: int) -> int:
    """Return the smallest multiple of ``step`` that is at least ``count``."""
    return -(-count // step) * step


def packed_left(engine: Engine, a: Buffer, offset: int, layout_: MatmulLayout, d: dtype, rows: int) -> Buffer:
    """Return the left matrix, packed into panels of ``rows``."""
    row_step, column_step = layout_.strides[1]
    source = StridedRows(offset, 1, 0, layout_.m, row_step, (layout_.depth,), (column_step,))
    return pack_panels(engine, a, source, CTYPES[d].memory, d.itemsize, rows)


class MatmulKernel:
    """``out = a @ b`` in one dtype, or with ``added``, ``out = beta * start + alpha * (a @ b)``."""

    def __init__(self, d: dtype, added: bool) -> None:
        self.dtype = d
        self.added = added
        # Integers are multiplied as unsigned ones, which wrap around.
        self.value = CTYPES[d].value if d.is_floating_point else "u64" if d.itemsize == 8 else "u32"
        self._plans: dict[Any, MatmulPlan] = {}

    def __call__(
        self, out: StridedArray, a: StridedArray, b: StridedArray, start: StridedArray | None, alpha: Any, beta: Any
    ) -> None:
        """Multiply matrices whose batch dims are expanded. ``start`` has the shape of ``out`` and may be the same
        array.
        """
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
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            plan = self._plans[key] = self.planned(arrays)
        if plan.transposed:
            a, b = b, a
        left, offset = a.buffer, a.offset
        if plan.packed_tile is not None:
            left, offset = packed_left(engine, left, offset, plan.layout, self.dtype, plan.packed_tile.rows), 0
        if start is None:
            plan.launch(plan.items, out.buffer, left, b.buffer, out.offset, offset, b.offset, *plan.numbers)
        else:
            plan.launch(
                plan.items, out.buffer, left, b.buffer, start.buffer, out.offset, offset, b.offset, start.offset,
                *plan.numbers, alpha, beta,
            )  # fmt: skip

    def planned(self, arrays: tuple[StridedArray, ...], wide: bool = False) -> MatmulPlan:
        """Return the plan for arrays of these shapes and strides. With ``wide``, indices have 64 bits."""
        out, a = arrays[:2]
        layout_ = layout(out.shape, a.shape[-1], tuple([array.strides for array in arrays]))
        traits = out.engine.traits
        transposed_ = traits.serial and layout_.n == 1
        if transposed_:
            layout_ = transposed(layout_)
        if traits.serial and self.is_dot(layout_):
            return self._dot_plan(layout_, out.engine, transposed_)
        tile = micro_tile_for(layout_.m, self.value, traits.lanes, traits.registers)
        packing = traits.serial and should_pack(layout_, tile)
        wide = wide or traits.serial or is_wide(*arrays)
        launch = out.engine.compile(self.source(traits, tile, len(layout_.batch), packing, wide))
        count, extents = self._extents(layout_, traits, tile)
        numbers = (
            *extents, layout_.m, layout_.n, layout_.depth, *[step for pair in layout_.strides for step in pair],
            *layout_.batch, *[step for row in layout_.steps for step in row],
        )  # fmt: skip
        return MatmulPlan(launch, count, numbers, layout_, tile if packing else None, transposed_)

    def is_dot(self, layout_: MatmulLayout) -> bool:
        """Whether the product is a row times a matrix, and both are contiguous along the depth."""
        one = layout_.m == 1 and not self.added and CTYPES[self.dtype].memory == self.value
        return one and layout_.strides[1][1] == 1 == layout_.strides[2][0]

    def _dot_plan(self, layout_: MatmulLayout, engine: Engine, transposed_: bool) -> MatmulPlan:
        """Return the plan of such a product."""
        target_items = min(4 * engine.traits.compute_units, layout_.n * layout_.depth // MIN_PRODUCTS_PER_ITEM + 1)
        per_item = round_up(-(-layout_.n // target_items), dot.COLUMNS)
        count = -(-layout_.n // per_item)
        numbers = (
            count, per_item, layout_.n, layout_.depth, layout_.strides[0][1], layout_.strides[2][1],
            *layout_.batch, *[step for row in layout_.steps for step in row],
        )  # fmt: skip
        launch = engine.compile(dot.source(self.dtype, len(layout_.batch)))
        return MatmulPlan(launch, prod(layout_.batch) * count, numbers, layout_, None, transposed_)

    def _extents(self, layout_: MatmulLayout, traits: Traits, tile: MicroTile) -> tuple[int, tuple[int, ...]]:
        """Return the number of work-items or groups, and the arguments that determine the block of each."""
        matrices = prod(layout_.batch)
        if not traits.serial:
            down, across = -(-layout_.m // tiled.TILE), -(-layout_.n // tiled.TILE)
            return matrices * down * across, (down, across)
        work = layout_.m * layout_.n * max(layout_.depth, 1)
        units = -(-traits.compute_units // matrices)
        rows, columns = blocks(layout_.m, layout_.n, work, tile, units)
        down, across = -(-layout_.m // rows), -(-layout_.n // columns)
        return matrices * down * across, (down, across, rows, columns)

    def source(self, traits: Traits, tile: MicroTile, rank: int, packing: bool, wide: bool) -> Source:
        """Return the kernel for a batch of ``rank`` dims."""
        memory = CTYPES[self.dtype]
        names = ("o", "a", "b", "start") if self.added else ("o", "a", "b")
        buffers = [writes("out", memory.memory), reads("a", memory.memory), reads("b", memory.memory)]
        if self.added:
            buffers.append(reads("start", memory.memory))
        head = (
            *buffers,
            *[number(f"{n}_from") for n in names],
            *plan_parameters(names, rank, traits.serial),
            *([number("alpha", self.value), number("beta", self.value)] if self.added else []),
        )
        form = "panels" if traits.serial else "tiles"
        name = f"matmul_{form}_{self.dtype.name}_{rank}{'_added' if self.added else ''}"
        moves = batch_offsets(names, rank)
        if traits.serial:
            body = micro_kernel.body(tile, memory, moves, self.added, packing)
            return Source(name, head, body, wide=wide, contract=True)
        body = tiled.body(memory, self.value, moves, self.added)
        return Source(name, head, body, group=tiled.GROUP, wide=wide, contract=True)


def plan_parameters(names: Sequence[str], rank: int, serial: bool) -> list[KernelParameter]:
    """Return the parameters of :attr:`MatmulPlan.numbers`, for arrays of these names and a batch of ``rank`` dims."""
    extents = ("row_blocks", "column_blocks", *(("rows_per_item", "columns_per_item") if serial else ()))
    strides = [f"{n}_{d}" for n in names for d in ("row", "column")]
    sizes = [*size_parameters(rank, "z"), *stride_parameters(names, rank, "_z")]
    return [*[number(n) for n in (*extents, "m", "n", "depth", *strides)], *sizes]


def batch_offsets(names: tuple[str, ...], rank: int) -> str:
    """Return statements for the offset of matrix ``left`` of each array."""
    lines = [f"INDEX {n}_at = {n}_from;" for n in names]
    lines += coordinates("left", rank, "z", lambda d, p: moves(p, {f"{n}_at": f"{n}_z{d}" for n in names}))
    return "\n".join(lines) + "\n"


@lru_cache(64)
def matmul_kernel(d: dtype, added: bool) -> MatmulKernel:
    """Return the matrix product of a dtype. Integers are multiplied as unsigned ones of their size."""
    return MatmulKernel(d, added)
