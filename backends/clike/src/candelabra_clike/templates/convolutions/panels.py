"""Convolutions on processors: matrix products whose right matrix is gathered from patches, panel by panel.

A work-item computes some output positions of one image for some output channels, mostly all. It gathers 8 to 32
patches, up to :data:`DEPTH` elements each, into a private panel, and multiplies it by one group of filters after
another. The offsets of the elements within a patch are the same for all patches and are kept in a private table.

The positions of a panel are chosen in one of several ways (:class:`OutputTiling`): along a row; along all rows of a
plane as if they were one (the results between rows are discarded); or one, four or eight at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from candelabra_clike.templates.index_walker import advance, coordinates, declare_coordinates, moves
from candelabra_clike.templates.matmul.micro_kernel import DEPTH, MicroTile, multiply
from candelabra_clike.types import CType


class OutputTiling(Enum):
    """How the output positions of a panel are chosen."""

    ROWS = "rows"
    """Adjacent positions of one row, whose elements are adjacent too."""
    RUNS = "runs"
    """Positions that are adjacent in memory along the last two dims, across the ends of rows."""
    ANY = "any"
    """Any positions of one image."""
    FOURS = "fours"
    """The same where rows, and elements along them, are adjacent by fours. Elements behind the images may be read."""
    EIGHTS = "eights"
    """The same where rows, and elements along them, are adjacent by eights."""

    @property
    def unit(self) -> int:
        """The number of adjacent positions that are gathered at a time, or 0 for a whole row of the panel."""
        return {OutputTiling.ANY: 1, OutputTiling.FOURS: 4, OutputTiling.EIGHTS: 8}.get(self, 0)


def taps(rank: int, table: str, first: str, count: str) -> str:
    """Return statements that fill ``table`` with the offsets of ``count`` elements of a patch, from ``first`` on."""
    start, step = declare_coordinates("q", "tap", rank, "t"), advance("q", rank, "t", "++channel;")
    offset = " + ".join(["channel * x_channel", *[f"q{d} * x_t{d}" for d in range(rank)]])
    return f"""{{ INDEX tap = ({first}) % taps, channel = ({first}) / taps;
{start}for (INDEX k = 0; k < {count}; ++k) {{ {table}[k] = {offset}; {step} }} }}
"""


def _outer_offsets(rank: int) -> str:
    """Return statements that move ``x_here`` and ``o_first`` to position ``left`` of the first ``rank`` dims."""
    lines = coordinates("left", rank, "p", lambda d, p: moves(p, {"x_here": f"x_p{d}", "o_first": f"o_p{d}"}))
    return "\n".join(lines) + "\n"


def _result_piece(first: str, size: str, to: str) -> str:
    """Return statements that add a piece: adjacent results in the tile with a constant stride ``result_step`` in the
    output.
    """
    return f"{{ piece_from[pieces] = {first}; piece_size[pieces] = {size}; piece_to[pieces] = {to}; ++pieces; }}"


def _tile(tiling: OutputTiling, rank: int, columns: int) -> str:
    """Return statements for the positions of a tile: ``x_here``, ``width``, and the ``pieces`` in which results are
    stored.
    """
    last = rank - 1
    head = f"""INDEX left = tile, x_here = 0, o_first = 0, pieces = 0;
INDEX piece_from[{columns}], piece_size[{columns}], piece_to[{columns}];
"""
    if tiling is OutputTiling.ROWS:
        return f"""{head}const INDEX w0 = left % tiles_across * {columns}u; left /= tiles_across;
{_outer_offsets(last)}x_here += w0 * x_p{last}; o_first += w0 * o_p{last};
const INDEX width = p{last} - w0 < {columns}u ? p{last} - w0 : {columns}u;
const INDEX result_step = o_p{last};
{_result_piece("0", "width", "o_first")}
"""
    if tiling is OutputTiling.RUNS:
        h, w = last - 1, last
        return f"""{head}const INDEX run = (p{h} - 1) * x_p{h} + p{w}, w0 = left % tiles_across * {columns}u;
left /= tiles_across;
{_outer_offsets(last - 1)}x_here += w0;
const INDEX width = run - w0 < {columns}u ? run - w0 : {columns}u;
const INDEX result_step = o_p{w};
INDEX row = w0 / x_p{h}, column = w0 % x_p{h};
for (INDEX j = 0; j < width; ++row) {{
if (column < p{w}) {{
const INDEX size = p{w} - column < width - j ? p{w} - column : width - j;
const INDEX place = o_first + row * o_p{h} + column * o_p{w};
{_result_piece("j", "size", "place")}
}}
j += x_p{h} - column; column = 0;
}}
"""
    start, step = declare_coordinates("q", "left", rank, "p"), advance("q", rank, "p")
    x_place = " + ".join(f"q{d} * x_p{d}" for d in range(rank))
    o_place = " + ".join(f"q{d} * o_p{d}" for d in range(rank))
    return f"""{head}left = tile * {columns}u;
const INDEX result_step = 1;
const INDEX width = positions - left < {columns}u ? positions - left : {columns}u;
{start}INDEX from[{columns}];
for (INDEX j = 0; j < {columns}u; ++j) {{
from[j] = {x_place};
if (j < width) {{
const INDEX place = {o_place};
if (pieces && piece_to[pieces - 1] + piece_size[pieces - 1] == place) ++piece_size[pieces - 1];
else {_result_piece("j", "1", "place")}
{step} }}
}}
"""


def _gather(tiling: OutputTiling, tile: MicroTile, memory: CType) -> str:
    """Return statements that gather the patches of the tile into ``panel``, for the elements in ``tap_offsets``."""
    columns, same_type = tile.columns, memory.memory == tile.value
    flat = f"{tile.value}* const flat = ({tile.value}*)panel;\n"
    pointer = f"GLOBAL const {memory.memory}* p = x_image + (x_here + tap_offsets[k]);"
    value = f"({tile.value}){memory.load('p[{}]')}"
    if tiling.unit > 1 and same_type:
        return f"{flat}for (INDEX k = 0; k < kc; ++k) {{ {pointer} {_vector_loads(tiling, tile)} }}\n"
    if tiling.unit:
        every = "UNROLL for (int j = 0; j < {}; ++j) flat[k * {}u + j] = {};".format(
            columns, columns, value.format("from[j]")
        )
        return f"{flat}for (INDEX k = 0; k < kc; ++k) {{ {pointer} {every} }}\n"
    if same_type:
        fill = tile.panel_row("p")
    else:
        fill = f"UNROLL for (int j = 0; j < {columns}; ++j) flat[k * {columns}u + j] = {value.format('j')};"
    part = f"for (int j = 0; j < {columns}; ++j) flat[k * {columns}u + j] = j < width ? {value.format('j')} : 0;"
    return f"""{flat}if (slack || width == {columns}) {{ for (INDEX k = 0; k < kc; ++k) {{ {pointer} {fill} }} }}
else for (INDEX k = 0; k < kc; ++k) {{ {pointer} {part} }}
"""


def _vector_loads(tiling: OutputTiling, tile: MicroTile) -> str:
    """Return statements that gather row ``k`` of the panel, four or eight elements at a time."""
    lines = []
    for j in range(0, tile.columns, 8):
        eight = f"LOAD_X8({tile.value}, p + from[{j}])"
        if tiling is OutputTiling.FOURS:
            lines.append(f"{tile.value}x8 v{j} = {eight}; v{j}.hi = LOAD_X8({tile.value}, p + from[{j + 4}]).lo;")
            eight = f"v{j}"
        lines.append(f"PRIVATE_X8({tile.value}, flat + (k * {tile.columns}u + {j}u)) = {eight};")
    return " ".join(lines)


def _store(tile: MicroTile, memory: CType, bias: bool) -> str:
    """Return statements that store the sums, added to the bias or to the sums of earlier panels.

    A piece of at least eight adjacent results is stored by vectors. The last vector may overlap the previous one, so it
    is computed before that one is stored.
    """
    columns, value = tile.columns, tile.value

    def begin(row: str) -> str:
        return f"({value}){memory.load(f'bias[bias_here + {row}]')}" if bias else f"({value})0"

    element = f"""for (int j = 0; j < size; ++j) {{
const {value} before = k0 == 0 ? begin : ({value}){memory.load("r[j * result_step]")};
r[j * result_step] = {memory.store("(before + s[j])")};
}}"""

    def eight(column: str) -> str:
        before = f"(k0 == 0 ? ({value}x8)(begin) : LOAD_X8({value}, r + {column}))"
        return f"PRIVATE_X8({value}, s + {column}) + {before}"

    if memory.memory == value:
        step = f"STORE_X8({value}, r + j, {eight('j')});"
        others = f"const int j = 0; {step}" if columns <= 16 else f"for (int j = 0; j < size - 8; j += 8) {step}"
        element = f"""if (result_step == 1 && size >= 8) {{
const {value}x8 end = {eight("(size - 8)")};
{others}
STORE_X8({value}, r + (size - 8), end);
}} else {element}"""
    scattered = f"""{tile.spill("sums_here")}{value}* const sums = ({value}*)sums_here;
for (INDEX i = 0; i < rows_here; ++i) {{
const {value} begin = {begin("i")};
for (INDEX q = 0; q < pieces; ++q) {{
const int size = (int)piece_size[q];
GLOBAL {memory.memory}* const r = o_here + (i * o_row + piece_to[q]);
{value}* const s = sums + (i * {columns} + piece_from[q]);
{element}
}} }}
"""
    if memory.memory != value:
        return scattered
    return f"""if (pieces == 1 && result_step == 1 && piece_size[0] == {columns}u) {{
{_store_whole(tile, memory, begin)}}} else {{
{scattered}}}
"""


def _store_whole(tile: MicroTile, memory: CType, begin: Callable[[str], str]) -> str:
    """Return statements that store the sums of a tile whose results are adjacent, from the registers."""
    lines = ""
    for i in range(tile.rows):
        places = [f"r + {tile.lanes * v}" for v in range(tile.vectors)]
        first = " ".join(tile.store(place, f"c{i}_{v} + begin") for v, place in enumerate(places))
        more = " ".join(tile.store(place, f"c{i}_{v} + {tile.load(place)}") for v, place in enumerate(places))
        lines += f"""if ({i} < rows_here) {{
GLOBAL {memory.memory}* const r = o_here + ({i}u * o_row + piece_to[0]);
if (k0 == 0) {{ const {tile.vector} begin = {begin(f"{i}u")}; {first} }} else {{ {more} }}
}}
"""
    return lines


def body(tile: MicroTile, memory: CType, tiling: OutputTiling, rank: int, bias: bool, epilogue: str = "") -> str:
    """Return the kernel: a work-item processes ``tiles_per_item`` tiles of one image and group, and ``rows_per_item``
    filters of the group. ``epilogue`` are statements that run when the sums of a tile are complete, for ``rows_here``
    rows from ``m0`` on and the pieces of the tile.
    """
    if epilogue:
        epilogue = f"if (depth - k0 <= {DEPTH}u) {{\n{epilogue}}}\n"
    pointer = f"GLOBAL const {memory.memory}*"
    bias_here = "const INDEX bias_here = bias_from + group * m + m0;\n" if bias else ""
    fill, sums = _gather(tiling, tile, memory), multiply(tile, memory, True)
    if tile.reads_panel_rarely and memory.memory == tile.value and not tiling.unit:
        fill = f"const int direct = slack || width == {tile.columns};\nif (!direct) {{\n{fill}}}\n"
        sums = multiply(tile, memory, True, "x_image + (x_here + tap_offsets[k])")
    return f"""INDEX item = GLOBAL_ID;
const INDEX tile_first = item % parts * tiles_per_item; item /= parts;
const INDEX rest = tiles - tile_first, tile_end = tile_first + (rest < tiles_per_item ? rest : tiles_per_item);
const INDEX row_parts = (m + rows_per_item - 1) / rows_per_item, m_first = item % row_parts * rows_per_item;
item /= row_parts;
const INDEX m_end = m - m_first < rows_per_item ? m : m_first + rows_per_item;
const INDEX group = item % groups, image = item / groups, row_panels = (m + {tile.rows - 1}u) / {tile.rows}u;
{pointer} const x_image = x + (x_from + image * x_image_step + group * x_group);
GLOBAL {memory.memory}* const o_image = out + (o_from + image * o_image_step + group * m * o_row);
INDEX tap_offsets[{DEPTH}];
{tile.vector} panel[{DEPTH * tile.vectors}];
for (INDEX k0 = 0; k0 == 0 || k0 < depth; k0 += {DEPTH}u) {{
const INDEX kc = depth - k0 < {DEPTH}u ? depth - k0 : {DEPTH}u;
{taps(rank, "tap_offsets", "k0", "kc")}
for (INDEX tile = tile_first; tile < tile_end; ++tile) {{
{_tile(tiling, rank, tile.columns)}{fill}
for (INDEX m0 = m_first; m0 < m_end; m0 += {tile.rows}u) {{
const INDEX rows_here = m_end - m0 < {tile.rows}u ? m_end - m0 : {tile.rows}u;
{pointer} const a_here = w + ((group * row_panels * {tile.rows}u + m0) * depth + k0 * {tile.rows}u);
{sums}GLOBAL {memory.memory}* const o_here = o_image + m0 * o_row;
{bias_here}{_store(tile, memory, bias)}{epilogue}}} }} }}"""
