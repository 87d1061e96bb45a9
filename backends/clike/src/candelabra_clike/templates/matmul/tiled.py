"""Matrix products on GPUs: a work-group keeps a tile of both matrices in local memory.

256 lanes compute a tile of 64 x 64 results, 4 x 4 per lane, from slices of depth 16.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from candelabra_clike.types import CType

GROUP = 256
"""The work-group size."""
TILE = 64
"""Rows and columns of the tile of a work-group."""
SLICE = 16
"""The depth of a slice in local memory."""
BLOCK = 512
"""Products that are summed before they are added to the other sums."""


class TileOperand(NamedTuple):
    """How an element is loaded: statements that set ``loaded`` for a ``row`` or ``column`` and the depth ``k``."""

    fetch: str
    deep: str
    """An expression: whether adjacent lanes load elements that are adjacent along the depth."""


def _fill(tile: str, name: str, start: str, end: str, value: str, operand: TileOperand) -> str:
    """Return statements that load part of a slice, one element per lane, with zeros beyond the end."""
    return f"""{{ const int deep = {operand.deep};
const u32 here = deep ? e / {SLICE}u : e % {TILE}u, below = deep ? e % {SLICE}u : e / {TILE}u;
const INDEX {name} = {start} + here, k = k0 + below;
{value} loaded = 0;
if ({name} < {end} && k < depth) {{ {operand.fetch} }}
{tile}[below][here] = loaded; }}
"""


def tiled_kernel(value: str, head: str, left: TileOperand, right: TileOperand, store: str) -> str:
    """Return the kernel. ``head`` sets ``m0``, ``n0`` and variables of the operands; ``store`` stores ``result``."""
    return f"""{head}const u32 lane = LOCAL_ID, across = lane % 16u, down = lane / 16u;
LOCAL {value} tile_a[{SLICE}][{TILE + 1}];
LOCAL {value} tile_b[{SLICE}][{TILE + 1}];
{value} sums[4][4], total[4][4];
UNROLL for (int i = 0; i < 4; ++i) UNROLL for (int j = 0; j < 4; ++j) sums[i][j] = total[i][j] = 0;
for (INDEX k0 = 0; k0 < depth; k0 += {SLICE}u) {{
for (u32 part = 0; part < {SLICE * TILE // GROUP}u; ++part) {{
const u32 e = lane + part * {GROUP}u;
{_fill("tile_a", "row", "m0", "m", value, left)}{_fill("tile_b", "column", "n0", "n", value, right)}}}
BARRIER;
for (u32 k = 0; k < {SLICE}u; ++k) {{
{value} x[4], y[4];
UNROLL for (int i = 0; i < 4; ++i) {{ x[i] = tile_a[k][down + 16 * i]; y[i] = tile_b[k][across + 16 * i]; }}
UNROLL for (int i = 0; i < 4; ++i) UNROLL for (int j = 0; j < 4; ++j) sums[i][j] += x[i] * y[j];
}}
BARRIER;
if (k0 % {BLOCK}u == {BLOCK - SLICE}u || depth - k0 <= {SLICE}u) {{
UNROLL for (int i = 0; i < 4; ++i) UNROLL for (int j = 0; j < 4; ++j) {{ total[i][j] += sums[i][j]; sums[i][j] = 0; }}
}}
}}
UNROLL for (int i = 0; i < 4; ++i) UNROLL for (int j = 0; j < 4; ++j) {{
const INDEX row = m0 + down + 16 * i, column = n0 + across + 16 * j;
const {value} result = total[i][j];
if (row < m && column < n) {{ {store} }}
}}"""


def body(memory: CType, value: str, batch: str, added: bool, epilogue: Callable[[str], str] | None = None) -> str:
    """Return a matrix product. ``batch`` are statements that move ``o_at``, ``a_at``, ``b_at`` (and ``start_at``) to a
    matrix. ``epilogue`` returns the statements for an element of the result, instead of those that store it.
    """
    head = f"""INDEX left = GROUP_ID;
const INDEX n0 = left % column_blocks * {TILE}u; left /= column_blocks;
const INDEX m0 = left % row_blocks * {TILE}u; left /= row_blocks;
{batch}"""
    left = TileOperand(f"loaded = ({value}){memory.load('a[a_at + row * a_row + k * a_column]')};", "a_column == 1")
    right = TileOperand(f"loaded = ({value}){memory.load('b[b_at + k * b_row + column * b_column]')};", "b_row == 1")
    result, begin = "result", ""
    if added:
        start = memory.load("start[start_at + row * start_row + column * start_column]")
        begin = f"const {value} begin = beta == 0 ? ({value})0 : ({value})(beta * ({value}){start});"
        result = f"(begin + ({value})(alpha * result))"
    put = (
        f"out[o_at + row * o_row + column * o_column] = {memory.store(result)};"
        if epilogue is None
        else epilogue(result)
    )
    store = f"{begin} {put}"
    return tiled_kernel(value, head, left, right, store)
