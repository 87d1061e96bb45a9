"""The adjoint of convolutions in their weights on a processor: a product of matrices over all places of all images.

The rows of the result are the elements of a patch, read where they lie in the images; its columns are the channels of
the other operand, of which 8 or 16 at a time are turned into a panel. Work-items take some of the images each; what
they find is added up afterwards, always in the same order.
"""

from __future__ import annotations

from candelabra_clike.templates.convolutions.strips import taps
from candelabra_clike.templates.products.strips import DEPTH, Strip, pack, store
from candelabra_clike.types import CType

ROWS = 384
"""Elements of a patch that a work-item has at most."""


def _places(rank: int) -> str:
    """Fills ``at`` with where the places number ``k0`` to ``k0 + kc`` lie from the first one."""
    dims = range(rank - 1, -1, -1)
    start = "".join(f"INDEX q{d} = place % p{d}; place /= p{d};\n" for d in dims)
    step = "".join(f"if (++q{d} == p{d}) {{ q{d} = 0; " for d in dims) + " }" * rank
    where = " + ".join(f"q{d} * x_p{d}" for d in range(rank))
    return f"{{ INDEX place = k0;\n{start}for (INDEX k = 0; k < kc; ++k) {{ at[k] = {where}; {step} }} }}\n"


def body(strip: Strip, memory: CType, rank: int) -> str:
    """The kernel: a work-item has some elements of a patch, one panel of channels and some images of a group."""
    pointer = f"GLOBAL const {memory.memory}*"
    value = CType(strip.value, strip.value)
    rows = [f"{pointer} const a0 = x_image + rows_at[m0];"]
    others = range(1, strip.rows)
    rows += [f"{pointer} const a{i} = x_image + rows_at[{i} < rows_here ? m0 + {i} : m0];" for i in others]
    step = strip.step(
        lambda i: f"({strip.value})" + memory.load(f"a{i}[at[k]]"), lambda v: f"panel[k * {strip.eights}u + {v}u]"
    )
    newline, whole = "\n", memory.memory == strip.value
    return f"""INDEX item = GLOBAL_ID;
const INDEX n0 = item % column_blocks * {strip.columns}u; item /= column_blocks;
const INDEX m_first = item % row_blocks * rows_per_item; item /= row_blocks;
const INDEX group = item % groups, part = item / groups;
const INDEX m_end = depth - m_first < rows_per_item ? depth - m_first : rows_per_item;
const INDEX width = m - n0 < {strip.columns}u ? m - n0 : {strip.columns}u;
const INDEX first = part * images_per_item, rest = images - first;
const INDEX end = first + (rest < images_per_item ? rest : images_per_item);
INDEX rows_at[{ROWS}], at[{DEPTH}];
{strip.value}x8 panel[{DEPTH * strip.eights}];
const INDEX b_row = 1, b_column = places, o_row = m, o_column = 1;
{taps(rank, "rows_at", "m_first", "m_end")}for (INDEX image = first; image < end; ++image) {{
{pointer} const x_image = x + (x_from + image * x_image_step + group * x_group);
for (INDEX k0 = 0; k0 < places; k0 += {DEPTH}u) {{
const INDEX kc = places - k0 < {DEPTH}u ? places - k0 : {DEPTH}u;
const int fresh = image == first && k0 == 0;
{_places(rank)}{pointer} const b_here = y + (y_from + ((image * groups + group) * m + n0) * places + k0);
{pack(strip.columns, memory, strip.value, whole)}for (INDEX m0 = 0; m0 < m_end; m0 += {strip.rows}u) {{
const INDEX rows_here = m_end - m0 < {strip.rows}u ? m_end - m0 : {strip.rows}u;
{newline.join(rows)}
{strip.zeros()}for (INDEX k = 0; k < kc; ++k) {{
{step}}}
GLOBAL {strip.value}* const o_here = out + (((part * groups + group) * depth + m_first + m0) * m + n0);
{store(strip, value, True, False)}}} }} }}"""


def reduction(memory: CType, value: str, serial: bool) -> str:
    """The kernel that adds up the parts, of (part, group, element, channel), to (group, channel, element)."""
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
