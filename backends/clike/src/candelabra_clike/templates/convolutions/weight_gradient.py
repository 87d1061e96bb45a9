"""The weight gradient of convolutions on processors: a matrix product over all output positions of all images.

The rows of the result are the elements of a patch, which are read in place. Its columns are the channels of the output
gradient, 8 to 64 of which at a time are packed into a panel. Each work-item processes some of the images; the partial
sums are added afterwards, always in the same order.
"""

from __future__ import annotations

from candelabra_clike.templates.convolutions.panels import taps
from candelabra_clike.templates.index_walker import advance, declare_coordinates
from candelabra_clike.templates.matmul.micro_kernel import DEPTH, MicroTile, pack, store
from candelabra_clike.types import CType

ROWS = 384
"""The maximum number of elements of a patch per work-item."""
PART_CHANNELS = 32
"""The channels per work-item from which the number of parts follows: as all tiles have the same parts, their sums have
the same bits."""
BLOCK_ELEMENTS, BLOCK_CHANNELS = 64, 64
"""The elements and channels of a work-item that adds partial sums. Adjacent channels are adjacent in memory."""


def _position_offsets(rank: int) -> str:
    """Return statements that fill ``at`` with the offsets of positions ``k0`` to ``k0 + kc`` of the images."""
    start, step = declare_coordinates("q", "place", rank, "p"), advance("q", rank, "p", "image_at += x_image_step;")
    where = " + ".join(["image_at", *[f"q{d} * x_p{d}" for d in range(rank)]])
    return f"""{{ INDEX image_at = k0 / positions * x_image_step, place = k0 % positions;
{start}for (INDEX k = 0; k < kc; ++k) {{ at[k] = {where}; {step} }} }}
"""


def _pack(tile: MicroTile, memory: CType) -> str:
    """Return statements that pack positions ``k0`` to ``k0 + kc`` of the images, one image after another."""
    same_type = memory.memory == tile.value
    return f"""INDEX image = first + k0 / positions, place = k0 % positions;
for (INDEX packed = 0; packed < kc_all; ++image) {{
const INDEX image_rest = positions - place, rest = kc_all - packed, kc = image_rest < rest ? image_rest : rest;
{tile.vector}* const panel = panels + packed * {tile.vectors}u;
GLOBAL const {memory.memory}* const b_here = y + (y_from + ((image * groups + group) * m + n0) * positions + place);
{pack(tile, memory, same_type)}packed += kc; place = 0;
}}
"""


def body(tile: MicroTile, memory: CType, rank: int) -> str:
    """Return the kernel: a work-item processes some elements of a patch, one panel of channels and some images of a
    group.
    """
    pointer = f"GLOBAL const {memory.memory}*"
    value = CType(tile.value, tile.value)
    rows = [f"{pointer} const a0 = x_images + rows_at[m0];"]
    others = range(1, tile.rows)
    rows += [f"{pointer} const a{i} = x_images + rows_at[{i} < rows_here ? m0 + {i} : m0];" for i in others]
    step = tile.step(
        lambda i: f"({tile.value})" + memory.load(f"a{i}[at[k]]"), lambda v: f"panels[k * {tile.vectors}u + {v}u]"
    )
    newline = "\n"
    return f"""INDEX item = GLOBAL_ID;
const INDEX n0 = item % column_blocks * {tile.columns}u; item /= column_blocks;
const INDEX m_first = item % row_blocks * rows_per_item; item /= row_blocks;
const INDEX group = item % groups, part = item / groups;
const INDEX m_end = depth - m_first < rows_per_item ? depth - m_first : rows_per_item;
const INDEX width = m - n0 < {tile.columns}u ? m - n0 : {tile.columns}u;
const INDEX first = part * images_per_item, images_left = images - first;
const INDEX all = (images_left < images_per_item ? images_left : images_per_item) * positions;
INDEX rows_at[{ROWS}], at[{DEPTH}];
{tile.vector} panels[{DEPTH * tile.vectors}];
const INDEX b_row = 1, b_column = positions, o_row = m, o_column = 1;
{pointer} const x_images = x + (x_from + first * x_image_step + group * x_group);
{taps(rank, "rows_at", "m_first", "m_end")}for (INDEX k0 = 0; k0 < all; k0 += {DEPTH}u) {{
const INDEX kc = all - k0 < {DEPTH}u ? all - k0 : {DEPTH}u, kc_all = kc;
const int fresh = k0 == 0;
{_position_offsets(rank)}{_pack(tile, memory)}for (INDEX m0 = 0; m0 < m_end; m0 += {tile.rows}u) {{
const INDEX rows_here = m_end - m0 < {tile.rows}u ? m_end - m0 : {tile.rows}u;
{newline.join(rows)}
{tile.zeros()}for (INDEX k = 0; k < kc; ++k) {{
{step}}}
GLOBAL {tile.value}* const o_here = out + (((part * groups + group) * depth + m_first + m0) * m + n0);
{store(tile, value, True, False)}}} }}"""


def reduction_items(groups: int, channels: int, depth: int) -> int:
    """Return the number of work-items of :func:`reduction` on processors."""
    return groups * -(-channels // BLOCK_CHANNELS) * -(-depth // BLOCK_ELEMENTS)


def reduction(memory: CType, value: str, serial: bool) -> str:
    """Return the kernel that adds the partial sums (part, group, element, channel) to (group, channel, element)."""
    total = f"""{value} total = 0;
for (INDEX part = 0; part < parts; ++part) total += sums[part * size + (group * depth + k) * m + channel];
out[out_from + (group * m + channel) * depth + k] = {memory.store("total")};
"""
    if serial:
        return _blocks(memory, value, total)
    return f"""const INDEX k = GLOBAL_ID % depth, channel = GLOBAL_ID / depth % m, group = GLOBAL_ID / depth / m;
const INDEX size = groups * m * depth;
if (group < groups) {{
{total}}}"""


def _blocks(memory: CType, value: str, total: str) -> str:
    """Return the kernel for processors: a work-item adds and transposes a block of the partial sums."""
    vectors = f"""for (; k + 16 <= k_end; k += 16) {{
INDEX channel = channel_first;
for (; channel + 8 <= channel_end; channel += 8) for (INDEX eight = k; eight < k + 16; eight += 8) {{
{value}x8 v[8];
UNROLL for (int i = 0; i < 8; ++i) v[i] = 0;
GLOBAL const {value}* s = sums + ((group * depth + eight) * m + channel);
for (INDEX part = 0; part < parts; ++part, s += size)
UNROLL for (int i = 0; i < 8; ++i) v[i] += LOAD_X8({value}, s + i * m);
TRANSPOSE_X8({value}, v)
GLOBAL {value}* const to = out + (out_from + (group * m + channel) * depth + eight);
UNROLL for (int i = 0; i < 8; ++i) STORE_X8({value}, to + i * depth, v[i]);
}}
const INDEX begin = k;
for (; channel < channel_end; ++channel) for (INDEX k = begin; k < begin + 16; ++k) {{
{total}}} }}
"""
    return f"""INDEX item = GLOBAL_ID;
const INDEX blocks = (depth + {BLOCK_ELEMENTS - 1}u) / {BLOCK_ELEMENTS}u, size = groups * m * depth;
INDEX k = item % blocks * {BLOCK_ELEMENTS}u; item /= blocks;
const INDEX channel_blocks = (m + {BLOCK_CHANNELS - 1}u) / {BLOCK_CHANNELS}u, group = item / channel_blocks;
const INDEX channel_first = item % channel_blocks * {BLOCK_CHANNELS}u;
const INDEX channel_end = m - channel_first < {BLOCK_CHANNELS}u ? m : channel_first + {BLOCK_CHANNELS}u;
const INDEX k_end = depth - k < {BLOCK_ELEMENTS}u ? depth : k + {BLOCK_ELEMENTS}u;
{vectors if memory.memory == value else ""}for (; k < k_end; ++k) {{
for (INDEX channel = channel_first; channel < channel_end; ++channel) {{
{total}}} }}"""
