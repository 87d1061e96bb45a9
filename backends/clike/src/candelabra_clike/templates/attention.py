"""Attention on processors: a work-item computes the scores of a block of queries, their softmax and the output, or the
gradients, while the scores are in the cache.

The products are those of :mod:`candelabra_clike.templates.matmul.micro_kernel`. Scores that a causal mask hides are
skipped where a whole tile of them is hidden: a product over keys ends with the last key that a query of the tile sees,
and one over queries begins with the first query that sees a key of the tile. Weights beyond the last visible key are
zeros as far as such products read them. Source: T. Dao et al., "FlashAttention: fast and memory-efficient exact
attention with IO-awareness", 2022; the softmax here is over whole rows, which are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Final, NamedTuple

from candelabra.dtypes import float32

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import collapsed
from candelabra_clike.source import KernelParameter, Source, number, reads, writes
from candelabra_clike.templates.matmul.matmul import TILE_ROWS, batch_offsets, micro_tile_for, round_up
from candelabra_clike.templates.matmul.micro_kernel import Bounds, MicroTile, product
from candelabra_clike.types import CTYPES

FORWARD: Final = {"result": "y", "query": "q", "keys": "k", "values": "v"}
"""The arrays of attention, and what the names of their strides begin with. The first ones are written."""
BACKWARD: Final = {
    "query_grad": "dq", "keys_grad": "dk", "values_grad": "dv", "grad": "g", "query": "q", "keys": "k", "values": "v",
}  # fmt: skip
"""The arrays of its gradient."""
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
    """A matrix in the kernel: the name of its array, and the expressions of its first element and its strides."""

    array: str
    at: str
    row: str
    column: str

    @property
    def transposed(self) -> Matrix:
        return self._replace(row=self.column, column=self.row)


def operand(array: str, letter: str, first_row: str = "0") -> Matrix:
    """Return the matrix of a head from one of its rows on."""
    return Matrix(array, f"{letter}_at + {first_row} * {letter}_row", f"{letter}_row", f"{letter}_column")


WEIGHTS: Final = Matrix("scratch", "weights_at", "step", "1")
SLOPES: Final = Matrix("scratch", "slopes_at", "step", "1")


SCORES: Final = Bounds("n0 > shift ? n0 - shift : 0", padded=True)
"""The bounds of products whose results are scores: of each panel of keys, the queries that see any."""


def over_keys(rows: int) -> Bounds:
    """Return the bounds of products over the keys that a tile of queries sees."""
    seen = f"const INDEX visible = m_here + shift + {rows}u;\n"
    seen += "const INDEX k_end = visible <= k0 ? 0 : visible - k0 < kc ? visible - k0 : kc;\n"
    return Bounds(place=seen, end="k_end")


def over_queries(rows: int) -> Bounds:
    """Return the bounds of products over the queries that see any key of a tile. They are added to those of the blocks
    that were computed before.
    """
    seen = "const INDEX hidden = m_here > shift ? m_here - shift : 0;\n"
    seen += "const INDEX k_first = hidden <= k0 ? 0 : hidden - k0 < kc ? hidden - k0 : kc;\n"
    return Bounds(place=seen, first="k_first", fresh="k0 == 0 && is_first")


class AttentionSource:
    """The kernels for a tile. Each work-item computes some units: blocks of queries, or for the gradient whole heads.

    A block has ``shift``: its first query sees the keys up to that one, the next query one more, and so on; with no
    mask, ``shift`` is not less than the number of keys.
    """

    def __init__(self, tile: MicroTile) -> None:
        self.tile = tile
        self.memory = CTYPES[float32]
        self.vector = f"f32x{tile.lanes}"

    # -- kernels ------------------------------------------------------------------------------------------------------
    def forward(self, rank: int) -> Source:
        """Return the kernel of attention for a batch of ``rank`` dims."""
        unit = f"""INDEX left = unit / blocks;
const INDEX part = unit % blocks;
{batch_offsets(tuple(FORWARD.values()), rank)}{self._block()}{self._weights()}"""
        unit += self._product(
            operand("result", "y", "start"), WEIGHTS, operand("values", "v"), "rows", "value_width", "seen",
            over_keys(self.tile.rows),
        )  # fmt: skip
        return self._source("attention_blocks", FORWARD, 1, rank, f"const INDEX weights_at = GLOBAL_ID * size;\n{unit}")

    def backward(self, rank: int) -> Source:
        """Return the kernel of the gradient. Blocks are computed from the last one on, which sees the most keys."""
        rows = self.tile.rows
        block = f"""const INDEX part = blocks - 1u - turn;
const int is_first = turn == 0;
{self._block()}{self._weights()}"""
        query, keys, values = operand("query", "q", "start"), operand("keys", "k"), operand("values", "v")
        grad = operand("grad", "g", "start")
        block += self._product(SLOPES, grad, values.transposed, "rows", "seen", "value_width", SCORES)
        block += self._slopes()
        query_grad, keys_grad = operand("query_grad", "dq", "start"), operand("keys_grad", "dk")
        values_grad = operand("values_grad", "dv")
        block += self._product(query_grad, SLOPES, keys, "rows", "width", "seen", over_keys(rows))
        block += self._product(keys_grad, SLOPES.transposed, query, "seen", "width", "rows", over_queries(rows))
        block += self._product(
            values_grad, WEIGHTS.transposed, grad, "seen", "value_width", "rows", over_queries(rows)
        )  # fmt: skip
        block += "if (is_first) for (INDEX key = seen; key < keys_count; ++key) {\n"
        for array, letter, width in (("keys_grad", "dk", "width"), ("values_grad", "dv", "value_width")):
            element = f"{array}[{letter}_at + key * {letter}_row + j * {letter}_column]"
            block += f"for (INDEX j = 0; j < {width}; ++j) {element} = 0;\n"
        unit = f"""INDEX left = unit;
const INDEX weights_at = GLOBAL_ID * size, slopes_at = weights_at + size / 2u;
{batch_offsets(tuple(BACKWARD.values()), rank)}for (INDEX turn = 0; turn < blocks; ++turn) {{
{block}}} }}
"""
        return self._source("attention_backward_blocks", BACKWARD, 3, rank, unit)

    def _source(self, name: str, arrays: dict[str, str], written: int, rank: int, unit: str) -> Source:
        letters = arrays.values()
        counts = "units", "per_item", "blocks", "queries", "keys_count", "first", "width", "value_width", "step", "size"
        head: tuple[KernelParameter, ...] = (
            *[(writes if i < written else reads)(array, "f32") for i, array in enumerate(arrays)],
            writes("scratch", "f32"),
            *[number(f"{n}_from") for n in letters],
            *[number(n) for n in counts],
            *[number(f"{n}_{d}") for n in letters for d in ("row", "column")],
            *[number(f"z{d}") for d in range(rank)],
            *[number(f"{n}_z{d}") for n in letters for d in range(rank)],
            number("scale", "f32"),
        )
        body = f"""const INDEX begin = GLOBAL_ID * per_item;
const INDEX end = units - begin < per_item ? units : begin + per_item;
for (INDEX unit = begin; unit < end; ++unit) {{
{unit}}}"""
        return Source(f"{name}_{self.tile.rows}_{rank}", head, body, group=1, wide=True, contract=True)

    # -- statements ---------------------------------------------------------------------------------------------------
    def _block(self) -> str:
        """Return the declarations of the queries of block ``part``, and of the number of keys that any of them sees."""
        return """const INDEX start = part * queries / blocks, rows = (part + 1u) * queries / blocks - start;
const INDEX shift = first + start, seen = shift + rows < keys_count ? shift + rows : keys_count;
"""

    def _product(self, out: Matrix, a: Matrix, b: Matrix, m: str, n: str, depth: str, bounds: Bounds) -> str:
        """Return statements for ``out = a @ b``."""
        places = {"o": out, "a": a, "b": b}
        steps = ", ".join(f"{n}_at = {x.at}, {n}_row = {x.row}, {n}_column = {x.column}" for n, x in places.items())
        return f"""{{ GLOBAL f32* const out = {out.array};
GLOBAL const f32 *const a = {a.array}, *const b = {b.array};
const INDEX {steps};
const INDEX m_first = 0, m_end = {m}, n_first = 0, n_end = {n}, depth = {depth};
{product(self.tile, self.memory, False, False, bounds=bounds)} }}
"""

    def _row(self, matrix: Matrix) -> str:
        """Return the declarations of row ``r`` of scores. Of its elements, the first ``visible`` are of visible keys,
        ``whole`` are in vectors with these, and ``beyond`` are read by products.
        """
        lanes, beyond = self.tile.lanes, round_up(self.tile.rows, self.tile.lanes)
        return f"""GLOBAL f32* const w = {matrix.array} + ({matrix.at} + r * step);
const INDEX visible = shift + r + 1u < keys_count ? shift + r + 1u : keys_count;
const INDEX whole = (visible + {lanes - 1}u) / {lanes}u * {lanes}u;
const INDEX beyond = whole + {beyond}u < step ? whole + {beyond}u : step;
"""

    def _weights(self) -> str:
        """Return statements that compute the scores of a block, and their softmax in place. Hidden scores become minus
        infinity, and thereby weights of 0.
        """
        tile, vector = self.tile, self.vector
        lanes, load = tile.lanes, tile.load("w + i")

        def put(value: str) -> str:
            return tile.store("w + i", value)

        keys = operand("keys", "k").transposed
        scores = self._product(WEIGHTS, operand("query", "q", "start"), keys, "rows", "seen", "width", SCORES)
        return f"""{scores}for (INDEX r = 0; r < rows; ++r) {{
{self._row(WEIGHTS)}for (INDEX i = 0; i < whole; i += {lanes}u) {{ {put(f"{load} * scale")} }}
for (INDEX i = visible; i < whole; ++i) w[i] = -INFINITE_F32;
for (INDEX i = whole; i < beyond; i += {lanes}u) {{ {put(f"({vector})(0)")} }}
}}
for (INDEX r = 0; r < rows; ++r) {{
{self._row(WEIGHTS)}{vector} tops = ({vector})(-INFINITE_F32);
for (INDEX i = 0; i < whole; i += {lanes}u) {{ const {vector} x = {load}; tops = {greater("tops", "x")}; }}
{self._combined("top", "tops", greater)}{vector} sums = ({vector})(0);
for (INDEX i = 0; i < whole; i += {lanes}u) {{
const {vector} e = exp_x{lanes}({load} - top);
{put("e")} sums += e; }}
{self._combined("total", "sums", plus)}const f32 factor = DIVIDE_F32(1, total);
for (INDEX i = 0; i < whole; i += {lanes}u) {{ {put(f"{load} * factor")} }}
}}
"""

    def _slopes(self) -> str:
        """Return statements that compute the gradients of scores, in place of those of weights."""
        tile, vector = self.tile, self.vector
        lanes, load, weights = tile.lanes, tile.load("s + i"), tile.load("w + i")

        def put(value: str) -> str:
            return tile.store("s + i", value)

        return f"""for (INDEX r = 0; r < rows; ++r) {{
{self._row(WEIGHTS)}GLOBAL f32* const s = {SLOPES.array} + ({SLOPES.at} + r * step);
{vector} sums = ({vector})(0);
for (INDEX i = 0; i < whole; i += {lanes}u) sums += {weights} * {load};
{self._combined("total", "sums", plus)}for (INDEX i = 0; i < whole; i += {lanes}u) {{
{put(f"{weights} * ({load} - total) * scale")} }}
for (INDEX i = whole; i < beyond; i += {lanes}u) {{ {put(f"({vector})(0)")} }}
}}
"""

    def _combined(self, name: str, vector: str, combine: Callable[[str, str], str]) -> str:
        """Return statements that combine the elements of a vector into the scalar ``name``."""
        halves, eight = "", vector
        if self.tile.lanes == 16:
            eight = f"{name}_eight"
            halves = f"const f32x8 {eight} = {combine(f'{vector}.lo', f'{vector}.hi')};\n"
        four = ", ".join(f"{name}{i} = {combine(f'{eight}.s{i}', f'{eight}.s{i + 4}')}" for i in range(4))
        two = ", ".join(f"{name}{i + 4} = {combine(f'{name}{i}', f'{name}{i + 2}')}" for i in range(2))
        return f"{halves}const f32 {four};\nconst f32 {two};\nconst f32 {name} = {combine(f'{name}4', f'{name}5')};\n"


def greater(a: str, b: str) -> str:
    """Return the expression of the greater value, ``b`` if they do not compare."""
    return f"({a} > {b} ? {a} : {b})"


def plus(a: str, b: str) -> str:
    """Return the expression of the sum."""
    return f"({a} + {b})"


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
    least = min(queries // blocks, keys)
    traits = engine.traits
    source = AttentionSource(micro_tile_for(least, "f32", traits.lanes, traits.registers))
    units = heads if gradient else heads * blocks
    per_item = -(-units // min(units, ITEMS_PER_UNIT * traits.compute_units))
    items, step = -(-units // per_item), row_of_scores(keys)
    size = -(-queries // blocks) * step * (2 if gradient else 1)
    dims, steps = collapsed(batch, tuple([s[:-2] for s in strides]))
    launch = engine.compile((source.backward if gradient else source.forward)(len(dims)))
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
