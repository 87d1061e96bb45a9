"""Products of matrices on a GPU: a work-group keeps a tile of both matrices in the memory that it shares.

256 lanes make a tile of 64 x 64 results, 4 x 4 a lane, from slices 16 deep.
"""

from __future__ import annotations

from candelabra_clike.types import CType

GROUP = 256
"""Lanes of a work-group."""
TILE = 64
"""Rows and columns of the results of a work-group."""
SLICE = 16
"""How deep a slice is that lies in shared memory."""
BLOCK = 512
"""So many products are summed before they are added to the other sums."""


def body(memory: CType, value: str, batch: str, added: bool) -> str:
    """The kernel: ``batch`` moves ``o_at``, ``a_at``, ``b_at`` (and ``start_at``) to a matrix of the batch."""
    load_a = memory.load("a[a_at + (m0 + row) * a_row + (k0 + depth_here) * a_column]")
    load_b = memory.load("b[b_at + (k0 + depth_here) * b_row + (n0 + column) * b_column]")
    result, place = "total[i][j]", "o_at + row * o_row + column * o_column"
    if added:
        start = memory.load("start[start_at + row * start_row + column * start_column]")
        result = f"(beta == 0 ? ({value})0 : ({value})(beta * ({value}){start})) + ({value})(alpha * total[i][j])"
    return f"""INDEX left = GROUP_ID;
const INDEX n0 = left % column_blocks * {TILE}u; left /= column_blocks;
const INDEX m0 = left % row_blocks * {TILE}u; left /= row_blocks;
{batch}const u32 lane = LOCAL_ID, across = lane % 16u, down = lane / 16u;
LOCAL {value} tile_a[{SLICE}][{TILE + 1}];
LOCAL {value} tile_b[{SLICE}][{TILE + 1}];
{value} sums[4][4], total[4][4];
UNROLL for (int i = 0; i < 4; ++i) UNROLL for (int j = 0; j < 4; ++j) sums[i][j] = total[i][j] = 0;
for (INDEX k0 = 0; k0 < depth; k0 += {SLICE}u) {{
for (u32 part = 0; part < {SLICE * TILE // GROUP}u; ++part) {{
const u32 e = lane + part * {GROUP}u;
{{ const u32 row = a_column == 1 ? e / {SLICE}u : e % {TILE}u, depth_here = a_column == 1 ? e % {SLICE}u : e / {TILE}u;
tile_a[depth_here][row] = m0 + row < m && k0 + depth_here < depth ? ({value}){load_a} : ({value})0; }}
{{ const u32 column = b_row == 1 ? e / {SLICE}u : e % {TILE}u, depth_here = b_row == 1 ? e % {SLICE}u : e / {TILE}u;
tile_b[depth_here][column] = n0 + column < n && k0 + depth_here < depth ? ({value}){load_b} : ({value})0; }}
}}
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
if (row < m && column < n) out[{place}] = {memory.store(result)};
}}"""
