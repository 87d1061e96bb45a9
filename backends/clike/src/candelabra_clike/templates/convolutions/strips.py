"""Convolutions on a processor: products of matrices whose right matrix is gathered from patches, panel by panel.

A work-item has some places of one image and all channels of the result. It gathers what 8 or 16 places see, some
hundred elements each, into a panel of its own, and multiplies that by one strip of filters after the other. Which
elements a place sees is the same everywhere but for where it begins, and stands in a table of the work-item's own.

Places are taken 16 at a time in one of three ways (:class:`Places`): along a row; along all rows of a plane as if they
were one (what lies between them is computed and not kept); or as they come, each element fetched by itself.
"""

from __future__ import annotations

from enum import Enum

from candelabra_clike.templates.products.strips import DEPTH, Strip, multiply
from candelabra_clike.types import CType


class Places(Enum):
    """How the places of a panel are chosen."""

    ROWS = "rows"
    """Neighbours within one row, whose elements are neighbours too."""
    RUNS = "runs"
    """Neighbours in memory, over the ends of rows, along the last two dims."""
    ANY = "any"
    """Any, of one image."""


def taps(rank: int, table: str, first: str, count: str) -> str:
    """Fills ``table`` with where ``count`` elements of a patch, from ``first`` on, lie from its first one."""
    dims = range(rank - 1, -1, -1)
    start = "".join(f"INDEX q{d} = tap % t{d}; tap /= t{d};\n" for d in dims)
    step = "".join(f"if (++q{d} == t{d}) {{ q{d} = 0; " for d in dims) + "++channel;" + " }" * rank
    place = " + ".join(["channel * x_channel", *[f"q{d} * x_t{d}" for d in range(rank)]])
    return f"""{{ INDEX tap = ({first}) % taps, channel = ({first}) / taps;
{start}for (INDEX k = 0; k < {count}; ++k) {{ {table}[k] = {place}; {step} }} }}
"""


def _outer(dims: range) -> str:
    """Moves ``x_here`` and ``o_first`` to the place whose number in ``dims`` is ``left``."""
    lines = []
    for d in reversed(dims):
        place = f"left % p{d}" if d else "left"
        lines.append(f"{{ const INDEX p = {place}; x_here += p * x_p{d}; o_first += p * o_p{d}; }}")
        if d:
            lines.append(f"left /= p{d};")
    return "\n".join(lines) + "\n"


def _piece(first: str, size: str, to: str) -> str:
    """Adds results that are neighbours in the tile, and where the first goes; the others follow ``apart`` from it."""
    return f"{{ piece_from[pieces] = {first}; piece_size[pieces] = {size}; piece_to[pieces] = {to}; ++pieces; }}"


def _tile(places: Places, rank: int, columns: int) -> str:
    """Where the places of the tile begin: ``x_here`` and ``width``, and the ``pieces`` that results are written in."""
    last = rank - 1
    head = f"""INDEX left = tile, x_here = 0, o_first = 0, pieces = 0;
INDEX piece_from[{columns}], piece_size[{columns}], piece_to[{columns}];
"""
    if places is Places.ROWS:
        return f"""{head}const INDEX w0 = left % tiles_across * {columns}u; left /= tiles_across;
{_outer(range(last))}x_here += w0 * x_p{last}; o_first += w0 * o_p{last};
const INDEX width = p{last} - w0 < {columns}u ? p{last} - w0 : {columns}u;
const INDEX apart = o_p{last};
{_piece("0", "width", "o_first")}
"""
    if places is Places.RUNS:
        h, w = last - 1, last
        return f"""{head}const INDEX run = (p{h} - 1) * x_p{h} + p{w}, w0 = left % tiles_across * {columns}u;
left /= tiles_across;
{_outer(range(last - 1))}x_here += w0;
const INDEX width = run - w0 < {columns}u ? run - w0 : {columns}u;
const INDEX apart = o_p{w};
INDEX row = w0 / x_p{h}, column = w0 % x_p{h};
for (INDEX j = 0; j < width; ++row) {{
if (column < p{w}) {{
const INDEX size = p{w} - column < width - j ? p{w} - column : width - j;
const INDEX place = o_first + row * o_p{h} + column * o_p{w};
{_piece("j", "size", "place")}
}}
j += x_p{h} - column; column = 0;
}}
"""
    dims = range(last, -1, -1)
    start = "".join(f"INDEX q{d} = left % p{d}; left /= p{d};\n" for d in dims)
    step = "".join(f"if (++q{d} == p{d}) {{ q{d} = 0; " for d in dims) + " }" * rank
    x_place = " + ".join(f"q{d} * x_p{d}" for d in range(rank))
    o_place = " + ".join(f"q{d} * o_p{d}" for d in range(rank))
    return f"""{head}left = tile * {columns}u;
const INDEX apart = 1;
const INDEX width = places - left < {columns}u ? places - left : {columns}u;
{start}INDEX from[{columns}];
for (INDEX j = 0; j < {columns}u; ++j) {{
from[j] = {x_place};
if (j < width) {{
const INDEX place = {o_place};
if (pieces && piece_to[pieces - 1] + piece_size[pieces - 1] == place) ++piece_size[pieces - 1];
else {_piece("j", "1", "place")}
{step} }}
}}
"""


def _gather(places: Places, strip: Strip, memory: CType) -> str:
    """Fills ``panel`` with what the places of the tile see, for the elements in ``seen``."""
    columns, whole = strip.columns, memory.memory == strip.value
    flat = f"{strip.value}* const flat = ({strip.value}*)panel;\n"
    pointer = f"GLOBAL const {memory.memory}* p = x_image + (x_here + seen[k]);"
    value = f"({strip.value}){memory.load('p[{}]')}"
    if places is Places.ANY:
        every = "UNROLL for (int j = 0; j < {}; ++j) flat[k * {}u + j] = {};".format(
            columns, columns, value.format("from[j]")
        )
        return f"{flat}for (INDEX k = 0; k < kc; ++k) {{ {pointer} {every} }}\n"
    if whole:
        fill = " ".join(
            f"panel[k * {strip.eights}u + {v}u] = EIGHT({strip.value}, p + {8 * v});" for v in range(strip.eights)
        )
    else:
        fill = f"UNROLL for (int j = 0; j < {columns}; ++j) flat[k * {columns}u + j] = {value.format('j')};"
    part = f"for (int j = 0; j < {columns}; ++j) flat[k * {columns}u + j] = j < width ? {value.format('j')} : 0;"
    return f"""{flat}if (slack || width == {columns}) {{ for (INDEX k = 0; k < kc; ++k) {{ {pointer} {fill} }} }}
else for (INDEX k = 0; k < kc; ++k) {{ {pointer} {part} }}
"""


def _store(strip: Strip, memory: CType, bias: bool) -> str:
    """Writes the sums to where they belong, on top of the bias or of the sums of the blocks before.

    A piece of eight neighbours or more is written in vectors, the last of which may overlap the one before and is made
    before that is written.
    """
    columns, value = strip.columns, strip.value
    begin = f"({value}){memory.load('bias[bias_here + i]')}" if bias else f"({value})0"
    element = f"""for (int j = 0; j < size; ++j) {{
const {value} before = k0 == 0 ? begin : ({value}){memory.load("r[j * apart]")};
r[j * apart] = {memory.store("(before + s[j])")};
}}"""

    def eight(place: str) -> str:
        before = f"(k0 == 0 ? ({value}x8)(begin) : EIGHT({value}, r + {place}))"
        return f"OWN_EIGHT({value}, s + {place}) + {before}"

    if memory.memory == value:
        step = f"PUT_EIGHT({value}, r + j, {eight('j')});"
        others = f"const int j = 0; {step}" if columns <= 16 else f"for (int j = 0; j < size - 8; j += 8) {step}"
        element = f"""if (apart == 1 && size >= 8) {{
const {value}x8 end = {eight("(size - 8)")};
{others}
PUT_EIGHT({value}, r + (size - 8), end);
}} else {element}"""
    return f"""{strip.spill("sums_here")}{value}* const sums = ({value}*)sums_here;
for (INDEX i = 0; i < rows_here; ++i) {{
const {value} begin = {begin};
for (INDEX q = 0; q < pieces; ++q) {{
const int size = (int)piece_size[q];
GLOBAL {memory.memory}* const r = o_here + (i * o_row + piece_to[q]);
{value}* const s = sums + (i * {columns} + piece_from[q]);
{element}
}} }}
"""


def body(strip: Strip, memory: CType, places: Places, rank: int, bias: bool) -> str:
    """The kernel: a work-item has ``tiles_per_item`` tiles of one image and group, and all filters of the group."""
    pointer = f"GLOBAL const {memory.memory}*"
    bias_here = "const INDEX bias_here = bias_from + group * m + m0;\n" if bias else ""
    fill, sums = _gather(places, strip, memory), multiply(strip, memory, True)
    if strip.thin and memory.memory == strip.value and places is not Places.ANY:
        fill = f"const int direct = slack || width == {strip.columns};\nif (!direct) {{\n{fill}}}\n"
        sums = multiply(strip, memory, True, "x_image + (x_here + seen[k])")
    return f"""INDEX item = GLOBAL_ID;
const INDEX tile_first = item % parts * tiles_per_item; item /= parts;
const INDEX rest = tiles - tile_first, tile_end = tile_first + (rest < tiles_per_item ? rest : tiles_per_item);
const INDEX group = item % groups, image = item / groups, strips = (m + {strip.rows - 1}u) / {strip.rows}u;
{pointer} const x_image = x + (x_from + image * x_image_step + group * x_group);
GLOBAL {memory.memory}* const o_image = out + (o_from + image * o_image_step + group * m * o_row);
INDEX seen[{DEPTH}];
{strip.value}x8 panel[{DEPTH * strip.eights}];
for (INDEX k0 = 0; k0 == 0 || k0 < depth; k0 += {DEPTH}u) {{
const INDEX kc = depth - k0 < {DEPTH}u ? depth - k0 : {DEPTH}u;
{taps(rank, "seen", "k0", "kc")}
for (INDEX tile = tile_first; tile < tile_end; ++tile) {{
{_tile(places, rank, strip.columns)}{fill}
for (INDEX m0 = 0; m0 < m; m0 += {strip.rows}u) {{
const INDEX rows_here = m - m0 < {strip.rows}u ? m - m0 : {strip.rows}u;
{pointer} const a_here = w + ((group * strips * {strip.rows}u + m0) * depth + k0 * {strip.rows}u);
{sums}GLOBAL {memory.memory}* const o_here = o_image + m0 * o_row;
{bias_here}{_store(strip, memory, bias)}}} }} }}"""
