"""Attention on processors: a work-item computes the scores of a block of queries, their softmax and the output, or the
gradients, while the scores are in the cache.

The products are those of :mod:`candelabra_clike.templates.matmul.micro_kernel`. Scores that a causal mask hides are
skipped where a whole tile of them is hidden: a product over keys ends with the last key that a query of the tile sees,
and one over queries begins with the first query that sees a key of the tile. Weights beyond the last visible key are
zeros as far as such products read them. Source: T. Dao et al., "FlashAttention: fast and memory-efficient exact
attention with IO-awareness", 2022; the softmax here is over whole rows, which are kept.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache
from math import inf, prod
from typing import Final, NamedTuple

from candelabra.dtypes import float32

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.language import INDEX, Value, call, constant, select
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.language.simd import declare_combined
from candelabra_clike.layouts import collapsed
from candelabra_clike.source import Source
from candelabra_clike.templates.index_walker import declare_offsets
from candelabra_clike.templates.matmul.matmul import TILE_ROWS, micro_tile_for, round_up
from candelabra_clike.templates.matmul.micro_kernel import COLUMN, PRODUCT, PRODUCTS, ROW, Bounds, MicroTile, product
from candelabra_clike.types import CTYPES

FORWARD: Final = ("result", "query", "keys", "values")
"""The arrays of attention. The first one is written."""
BACKWARD: Final = ("query_grad", "keys_grad", "values_grad", "grad", "query", "keys", "values")
"""The arrays of its gradient. The first three are written."""
PANEL: Final = 32
"""A multiple of the columns of every tile: rows of scores have space for whole panels."""
BLOCK_ROWS: Final = 64
"""The most queries of a block."""
BLOCK_SCORES: Final = 1 << 17
"""The most scores of a block, which fit in the second-level cache."""
LEAST_ROWS: Final = 32
"""The least queries of a full block: with fewer of them, the work of packing keys and values is not spread."""
ITEMS_PER_UNIT: Final = 2
"""Work-items per compute unit. Each has memory for the scores of a block, which is better reused than new."""


def row_of_scores(keys: int) -> int:
    """Return the distance of the rows of scores of a block. It is no multiple of large powers of two, which would let
    the rows evict each other from the cache.
    """
    return round_up(keys, PANEL) + PANEL // 2


class Matrix(NamedTuple):
    """A matrix in the kernel: its array, the index of its first element, and its strides."""

    array: KernelArray
    at: Value
    row: Value
    column: Value

    @property
    def transposed(self) -> Matrix:
        return self._replace(row=self.column, column=self.row)


@built("attention")
def forward(tile: MicroTile, rank: int) -> Source:
    """Return the kernel of attention for a batch of ``rank`` dims, whose units are blocks of queries."""
    x = AttentionKernel("attention_blocks", FORWARD, 1, tile, rank)
    k, weights = x.kernel, x.scores(x.kernel.let("weights_at", x.kernel.item * x.size))
    with k.share("unit", x.units, x.per_item) as unit:
        x.declare_head(unit // x.blocks)
        x.declare_block(unit % x.blocks)
        x.weights(weights)
        result, values = x.matrix("result", x.start), x.matrix("values")
        x.product(result, weights, values, x.rows, x.value_width, x.seen, x.over_keys())
    return x.source()


@built("attention_backward")
def backward(tile: MicroTile, rank: int) -> Source:
    """Return the kernel of the gradient, whose units are heads. Blocks are computed from the last one on, which sees
    the most keys.
    """
    x = AttentionKernel("attention_backward_blocks", BACKWARD, 3, tile, rank)
    k = x.kernel
    with k.share("unit", x.units, x.per_item) as unit:
        weights = x.scores(k.let("weights_at", k.item * x.size))
        slopes = x.scores(k.let("slopes_at", weights.at + x.size // 2))
        x.declare_head(unit)
        with k.loop("turn", 0, x.blocks) as turn:
            x.declare_block(k.let("part", x.blocks - 1 - turn))
            x.weights(weights)
            grad, over_queries = x.matrix("grad", x.start), x.over_queries(turn == 0)
            x.product(slopes, grad, x.matrix("values").transposed, x.rows, x.seen, x.value_width, x.of_scores())
            x.slopes(slopes, weights)
            x.product(x.matrix("query_grad", x.start), slopes, x.matrix("keys"), x.rows, x.width, x.seen, x.over_keys())
            for out, a, b, width in (
                (x.matrix("keys_grad"), slopes, x.matrix("query", x.start), x.width),
                (x.matrix("values_grad"), weights, grad, x.value_width),
            ):
                x.product(out, a.transposed, b, x.seen, width, x.rows, over_queries)
                with k.when(turn == 0), k.loop("key", x.seen, x.keys) as key, k.loop("j", 0, width) as j:
                    out.array[out.at + key * out.row + j * out.column] = 0
    return x.source()


class AttentionKernel:
    """A kernel for a tile. Each work-item computes some units.

    A block of ``rows`` queries has ``shift``: its first query sees the keys up to that one, the next query one more,
    and so on; with no mask, ``shift`` is not less than the number of keys. Its queries see ``seen`` keys.
    """

    def __init__(self, name: str, arrays: Sequence[str], written: int, tile: MicroTile, rank: int) -> None:
        self.tile, self.lanes = tile, tile.lanes
        k = self.kernel = KernelBuilder(f"{name}_{tile.rows}_{rank}", wide=True)
        self.arrays = {n: (k.writes if i < written else k.reads)(n, "f32") for i, n in enumerate(arrays)}
        self.scratch = k.writes("scratch", "f32")
        self.starts = {n: k.number(f"{n}_from") for n in arrays}
        self.units, self.per_item, self.blocks, self.queries, self.keys, self.first = k.numbers(
            "units", "per_item", "blocks", "queries", "keys_count", "first"
        )
        self.width, self.value_width, self.step, self.size = k.numbers("width", "value_width", "step", "size")
        self.steps = {n: k.numbers(f"{n}_row", f"{n}_column") for n in arrays}
        self.sizes = k.numbers(*[f"z{d}" for d in range(rank)])
        self.strides = {n: k.numbers(*[f"{n}_z{d}" for d in range(rank)]) for n in arrays}
        self.scale = k.number("scale", "f32")

    def source(self) -> Source:
        """Return the kernel."""
        return self.kernel.source(group=1, contract=True)

    def declare_head(self, flat: Value) -> None:
        """Declare the offsets of the matrices of a head."""
        self.at = declare_offsets(self.kernel, self.starts, self.strides, flat, self.sizes, "_at")

    def declare_block(self, part: Value) -> None:
        """Declare the queries of a block, and the number of keys that any of them sees."""
        k = self.kernel
        self.start = k.let("start", part * self.queries // self.blocks)
        self.rows = k.let("rows", (part + 1) * self.queries // self.blocks - self.start)
        self.shift = k.let("shift", self.first + self.start)
        self.seen = k.let("seen", least(self.shift + self.rows, self.keys))

    def matrix(self, name: str, first_row: Value | None = None) -> Matrix:
        """Return the matrix of a head, from one of its rows on."""
        at, (row, column) = self.at[name], self.steps[name]
        return Matrix(self.arrays[name], at if first_row is None else at + first_row * row, row, column)

    def scores(self, at: Value) -> Matrix:
        """Return the matrix of a number for each query of a block and each key."""
        return Matrix(self.scratch, at, self.step, constant(INDEX, 1))

    # -- products -----------------------------------------------------------------------------------------------------
    def product(self, out: Matrix, a: Matrix, b: Matrix, m: Value, n: Value, depth: Value, bounds: Bounds) -> None:
        """Compute ``out = a @ b``."""
        k, zero = self.kernel, constant(INDEX, 0)
        with k.block():
            for name, letter, x in (("out", "o", out), ("a", "a", a), ("b", "b", b)):
                k.pointer(name, x.array)
                for part, value in (("at", x.at), ("row", x.row), ("column", x.column)):
                    k.let(f"{letter}_{part}", value)
            for name, value in (("m_first", zero), ("m_end", m), ("n_first", zero), ("n_end", n), ("depth", depth)):
                k.let(name, value)
            k.line(product(self.tile, CTYPES[float32], False, False, bounds=bounds))

    def of_scores(self) -> Bounds:
        """Return the bounds of products whose results are scores: of each panel of keys, the queries that see any."""
        return Bounds(_excess(COLUMN, self.shift), padded=True)

    def over_keys(self) -> Bounds:
        """Return the bounds of products over the keys that a tile of queries sees."""
        return Bounds(end=_excess(ROW + self.shift + self.tile.rows, PRODUCT, PRODUCTS))

    def over_queries(self, is_first: Value) -> Bounds:
        """Return the bounds of products over the queries that see any key of a tile. They are added to those of the
        blocks that were computed before.
        """
        first = _excess(_excess(ROW, self.shift), PRODUCT, PRODUCTS)
        return Bounds(first=first, fresh=(PRODUCT == 0) & is_first)

    # -- scores -------------------------------------------------------------------------------------------------------
    def row(self, name: str, matrix: Matrix, r: Value) -> KernelArray:
        """Declare a row of scores."""
        return self.kernel.pointer(name, matrix.array, matrix.at + r * matrix.row)

    def declare_parts(self, r: Value) -> None:
        """Declare the parts of row ``r`` of scores: the first ``visible`` elements are of visible keys, ``whole`` are
        in vectors with these, and ``beyond`` are read by products.
        """
        k, lanes = self.kernel, self.lanes
        self.visible = k.let("visible", least(self.shift + r + 1, self.keys))
        self.whole = k.let("whole", (self.visible + (lanes - 1)) // lanes * lanes)
        self.beyond = k.let("beyond", least(self.whole + round_up(self.tile.rows, lanes), self.step))

    def weights(self, weights: Matrix) -> None:
        """Compute the scores of a block, and their softmax in place. Hidden scores become minus infinity, and thereby
        weights of 0.
        """
        k, lanes = self.kernel, self.lanes
        query, keys = self.matrix("query", self.start), self.matrix("keys").transposed
        self.product(weights, query, keys, self.rows, self.seen, self.width, self.of_scores())
        with k.loop("r", 0, self.rows) as r:
            w = self.row("w", weights, r)
            self.declare_parts(r)
            with k.vectors("i", 0, self.whole, lanes) as i:
                w[i] = w[i] * self.scale
            with k.loop("i", self.visible, self.whole) as i:
                w[i] = -inf
            with k.vectors("i", self.whole, self.beyond, lanes) as i:
                w[i] = 0
        # In a loop of its own: a vector that is loaded right after numbers were stored into it waits for them.
        with k.loop("r", 0, self.rows) as r:
            w = self.row("w", weights, r)
            self.declare_parts(r)
            tops = k.variable("tops", constant("f32", -inf), lanes)
            with k.vectors("i", 0, self.whole, lanes) as i:
                k.assign(tops, greater(tops, k.let("x", w[i])))
            top = declare_combined(k, "top", tops, greater)
            sums = k.variable("sums", constant("f32", 0), lanes)
            with k.vectors("i", 0, self.whole, lanes) as i:
                w[i] = e = k.let("e", call("exp", w[i] - top))
                k.assign(sums, sums + e)
            factor = k.let("factor", 1 / declare_combined(k, "total", sums, operator.add))
            with k.vectors("i", 0, self.whole, lanes) as i:
                w[i] = w[i] * factor

    def slopes(self, slopes: Matrix, weights: Matrix) -> None:
        """Compute the gradients of scores, in place of those of weights."""
        k, lanes = self.kernel, self.lanes
        with k.loop("r", 0, self.rows) as r:
            w, s = self.row("w", weights, r), self.row("s", slopes, r)
            self.declare_parts(r)
            sums = k.variable("sums", constant("f32", 0), lanes)
            with k.vectors("i", 0, self.whole, lanes) as i:
                k.assign(sums, sums + w[i] * s[i])
            total = declare_combined(k, "total", sums, operator.add)
            with k.vectors("i", 0, self.whole, lanes) as i:
                s[i] = w[i] * (s[i] - total) * self.scale
            with k.vectors("i", self.whole, self.beyond, lanes) as i:
                s[i] = 0


def _excess(a: Value, b: Value, most: Value | None = None) -> Value:
    """Return ``a - b``, at least 0 and at most ``most``."""
    return select(a <= b, 0, a - b if most is None else least(a - b, most))


def greater(a: Value, b: Value) -> Value:
    """Return the greater value, ``b`` if they do not compare."""
    return select(a > b, a, b)


# -- launches ---------------------------------------------------------------------------------------------------------
class AttentionPlan(NamedTuple):
    """The launch for arrays of certain shapes and strides, its work-items, the size of their memory in bytes, and the
    numbers between offsets and scale.
    """

    launch: Launch
    items: int
    nbytes: int
    numbers: tuple[int, ...]


def block_rows(keys: int) -> int:
    """Return the most queries of a block for a number of keys."""
    return min(BLOCK_ROWS, BLOCK_SCORES // row_of_scores(keys))


def serves(engine: Engine, queries: int, keys: int, heads: int, gradient: bool) -> bool:
    """Return whether the kernels serve attention of these sizes.

    Its gradient divides the work by heads only, so few of them have to be small.
    """
    traits = engine.traits
    if not traits.serial or not traits.multiplies or min(queries, keys) < min(TILE_ROWS[traits.registers]):
        return False
    enough = not gradient or heads >= traits.compute_units or queries * keys * heads <= BLOCK_SCORES
    return enough and block_rows(keys) >= LEAST_ROWS


@lru_cache(4096)
def planned(
    engine: Engine, gradient: bool, batch: Shape, strides: tuple[Shape, ...], sizes: tuple[int, ...], first: int
) -> AttentionPlan:
    """Return the plan for the numbers of queries, of keys, and the widths of keys and values.

    ``strides`` are those of the arrays of :data:`FORWARD` or :data:`BACKWARD`, in their order.
    """
    queries, keys, width, value_width = sizes
    heads, blocks = prod(batch), -(-queries // block_rows(keys))
    fewest = min(queries // blocks, keys)
    traits = engine.traits
    tile = micro_tile_for(fewest, "f32", traits.lanes, traits.registers)
    units = heads if gradient else heads * blocks
    per_item = -(-units // min(units, ITEMS_PER_UNIT * traits.compute_units))
    items, step = -(-units // per_item), row_of_scores(keys)
    size = -(-queries // blocks) * step * (2 if gradient else 1)
    dims, steps = collapsed(batch, tuple([s[:-2] for s in strides]))
    launch = engine.compile((backward if gradient else forward)(tile, len(dims)))
    numbers = (
        units, per_item, blocks, queries, keys, first, width, value_width, step, size,
        *[step for s in strides for step in s[-2:]], *dims, *[step for row in steps for step in row],
    )  # fmt: skip
    return AttentionPlan(launch, items, items * size * 4, numbers)


def in_blocks(arrays: Sequence[StridedArray], first: int | None, scale: float, gradient: bool) -> bool:
    """Compute attention of float32, or its gradient, from arrays with expanded batch dims, in one launch. Return
    whether the kernels serve them.

    ``arrays`` are those of :data:`FORWARD` or :data:`BACKWARD`. ``first`` is the index of the first query if the mask
    is causal, None if there is none.
    """
    query, _keys, values = arrays[-3:]
    engine, (*batch, queries, width), (count, value_width) = query.engine, query.shape, values.shape[-2:]
    heads = prod(batch)
    if not all(x.dtype is float32 and x.size for x in arrays) or not serves(engine, queries, count, heads, gradient):
        return False
    strides, sizes = tuple([x.strides for x in arrays]), (queries, count, width, value_width)
    plan = planned(engine, gradient, tuple(batch), strides, sizes, count if first is None else first)
    scratch = engine.allocate(plan.nbytes)
    plan.launch(
        plan.items, *[x.buffer for x in arrays], scratch, *[x.offset for x in arrays], *plan.numbers, scale
    )  # fmt: skip
    return True
