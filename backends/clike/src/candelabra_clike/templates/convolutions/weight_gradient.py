"""The weight gradient of convolutions on processors: a matrix product over all output positions of all images.

The rows of the result are the elements of a patch, which are read in place. Its columns are the channels of the output
gradient, 8 or 16 of which at a time are packed into a panel. Each work-item processes some of the images; the partial
sums are added afterwards, always in the same order.
"""

from __future__ import annotations

from candelabra_clike.templates.convolutions.panels import taps
from candelabra_clike.templates.matmul.micro_kernel import DEPTH, MicroTile, pack, store
from candelabra_clike.types import CType

ROWS = 384
"""The maximum number of elements of a patch per work-item."""


def _position_offsets(rank: int) -> str:
    """Return statements that fill ``at`` with the offsets of positions ``k0`` to ``k0 + kc``."""
    dims = range(rank - 1, -1, -1)
    start = "".join(f"INDEX q{d} = place % p{d}; place /= p{d};\n" for d in dims)
    step = "".join(f"if (++q{d} == p{d}) {{ q{d} = 0; " for d in dims) + " }" * rank
    where = " + ".join(f"q{d} * x_p{d}" for d in range(rank))
    return f"{{ INDEX place = k0;\n{start}for (INDEX k = 0; k < kc; ++k) {{ at[k] = {where}; {step} }} }}\n"


def body(tile: MicroTile, memory: CType, rank: int) -> str:
    """Return the kernel: a work-item processes some elements of a patch, one panel of channels and some images of a
    group.
    """
    pointer = f"GLOBAL const {memory.memory}*"
    value = CType(tile.value, tile.value)
    rows = [f"{pointer} const a0 = x_image + rows_at[m0];"]
    others = range(1, tile.rows)
    rows += [f"{pointer} const a{i} = x_image + rows_at[{i} < rows_here ? m0 + {i} : m0];" for i in others]
    step = tile.step(
        lambda i: f"({tile.value})" + memory.load(f"a{i}[at[k]]"), lambda v: f"panel[k * {tile.vectors}u + {v}u]"
    )
    newline, same_type = "\n", memory.memory == tile.value
    return f"""INDEX item = GLOBAL_ID;
const INDEX n0 = item % column_blocks * {tile.columns}u; item /= column_blocks;
const INDEX m_first = item % row_blocks * rows_per_item; item /= row_blocks;
const INDEX group = item % groups, part = item / groups;
const INDEX m_end = depth - m_first < rows_per_item ? depth - m_first : rows_per_item;
const INDEX width = m - n0 < {tile.columns}u ? m - n0 : {tile.columns}u;
const INDEX first = part * images_per_item, rest = images - first;
const INDEX end = first + (rest < images_per_item ? rest : images_per_item);
INDEX rows_at[{ROWS}], at[{DEPTH}];
{tile.vector} panel[{DEPTH * tile.vectors}];
const INDEX b_row = 1, b_column = positions, o_row = m, o_column = 1;
{taps(rank, "rows_at", "m_first", "m_end")}for (INDEX image = first; image < end; ++image) {{
{pointer} const x_image = x + (x_from + image * x_image_step + group * x_group);
for (INDEX k0 = 0; k0 < positions; k0 += {DEPTH}u) {{
const INDEX kc = positions - k0 < {DEPTH}u ? positions - k0 : {DEPTH}u;
const int fresh = image == first && k0 == 0;
{_position_offsets(rank)}{pointer} const b_here = y + (y_from + ((image * groups + group) * m + n0) * positions + k0);
{pack(tile, memory, same_type)}for (INDEX m0 = 0; m0 < m_end; m0 += {tile.rows}u) {{
const INDEX rows_here = m_end - m0 < {tile.rows}u ? m_end - m0 : {tile.rows}u;
{newline.join(rows)}
{tile.zeros()}for (INDEX k = 0; k < kc; ++k) {{
{step}}}
GLOBAL {tile.value}* const o_here = out + (((part * groups + group) * depth + m_first + m0) * m + n0);
{store(tile, value, True, False)}}} }} }}"""


def reduction(memory: CType, value: str, serial: bool) -> str:
    """Return the kernel that adds the partial sums (part, group, element, channel) to (group, channel, element)."""
    total = f"""{value} total = 0;
for (INDEX part = 0; part < parts; ++part) total += sums[part * size + (group * depth + k) * m + channel];
out[out_from + (group * m + channel) * depth + k] = {memory.store("total")};
"""
    if serial:
        return f"""const INDEX channel = GLOBAL_ID % m, group = GLOBAL_ID / m, size = groups * m * depth;
for (INDEX k = 0; k < depth; ++k) {{
{total}}}"""
    return f"""const INDEX k = GLOBAL_ID % depth, channel = GLOBAL_ID / depth % m, group = GLOBAL_ID / depth / m;
const INDEX size = groups * m * depth;
if (group < groups) {{
{total}}}"""
