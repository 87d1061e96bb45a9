"""Products of a vector and the columns of a matrix on processors, where both are contiguous along the depth.

Four columns are processed at a time, 16 elements each. Nothing is copied, because nothing is read twice.
"""

from __future__ import annotations

COLUMNS = 4
"""Columns at a time: with two vectors of sums each, they saturate the multipliers."""
BLOCK = 4096
"""Elements whose products are summed before they are added to the other sums."""


def body(value: str, batch: str) -> str:
    """Return the kernel. ``batch`` are statements that move ``o_at``, ``a_at``, ``b_at``; ``a`` is the vector."""
    columns = range(COLUMNS)
    pointers = f"GLOBAL const {value}* const p0 = b + (b_at + j * b_column);\n" + "".join(
        f"GLOBAL const {value}* const p{i} = j + {i}u < end ? p{i - 1} + b_column : p{i - 1};\n" for i in columns[1:]
    )
    totals = f"{value} " + ", ".join(f"t{i} = 0" for i in columns) + ";"
    sums = f"{value}x8 " + ", ".join(f"s{i}_{v} = 0" for i in columns for v in (0, 1)) + ";"
    step = " ".join(f"s{i}_{v} += x{v} * LOAD_X8({value}, p{i} + k + {8 * v});" for i in columns for v in (0, 1))
    ends = "".join(
        f"PRIVATE_X8({value}, own) = s{i}_0 + s{i}_1;\n"
        f"t{i} += ((own[0] + own[4]) + (own[1] + own[5])) + ((own[2] + own[6]) + (own[3] + own[7]));\n"
        for i in columns
    )
    rest = " ".join(f"t{i} += v[k] * p{i}[k];" for i in columns)
    puts = " ".join(f"if (j + {i}u < end) out[o_at + (j + {i}u) * o_column] = t{i};" for i in columns)
    return f"""INDEX left = GLOBAL_ID;
const INDEX block = left % blocks; left /= blocks;
{batch}const INDEX first = block * columns_per_item;
const INDEX end = n - first < columns_per_item ? n : first + columns_per_item;
GLOBAL const {value}* const v = a + a_at;
for (INDEX j = first; j < end; j += {COLUMNS}u) {{
{pointers}{totals}
for (INDEX k0 = 0; k0 < depth; k0 += {BLOCK}u) {{
const INDEX k_end = depth - k0 < {BLOCK}u ? depth : k0 + {BLOCK}u;
INDEX k = k0;
{sums}
for (; k + 16 <= k_end; k += 16) {{
const {value}x8 x0 = LOAD_X8({value}, v + k), x1 = LOAD_X8({value}, v + k + 8);
{step}
}}
{value} own[8];
{ends}for (; k < k_end; ++k) {{ {rest} }}
}}
{puts}
}}"""
