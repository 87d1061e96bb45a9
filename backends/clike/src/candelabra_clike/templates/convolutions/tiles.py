"""Convolutions and their adjoints on a GPU: the tiled products of matrices, one of which is gathered from patches."""

from __future__ import annotations

from candelabra_clike.templates.products.tiles import TILE, Operand, tiles
from candelabra_clike.types import CType


def _element(rank: int, number: str) -> str:
    """Sets ``seen`` to where an element of a patch, by its number, lies from the first one."""
    lines = [f"INDEX tap = {number} % taps, seen = {number} / taps * x_channel;"]
    lines += [f"seen += tap % t{d} * x_t{d}; tap /= t{d};" for d in range(rank - 1, -1, -1)]
    return " ".join(lines)


def _place(rank: int, number: str, out: bool = False) -> str:
    """Sets ``here`` to where a place, by its number, begins in the input, and ``to`` where its result goes."""
    lines = [f"INDEX place = {number}, here = 0{', to = 0' if out else ''};"]
    for d in range(rank - 1, -1, -1):
        move = f"const INDEX p = place % p{d}; here += p * x_p{d};{f' to += p * o_p{d};' if out else ''}"
        lines.append(f"{{ {move} place /= p{d}; }}")
    return " ".join(lines)


def body(memory: CType, value: str, rank: int, bias: bool) -> str:
    """A convolution: rows are filters of a group, columns places of an image."""
    head = f"""INDEX item = GROUP_ID;
const INDEX n0 = item % column_blocks * {TILE}u; item /= column_blocks;
const INDEX m0 = item % row_blocks * {TILE}u; item /= row_blocks;
const INDEX n = places, group = item % groups, image = item / groups;
const INDEX x_at = x_from + image * x_image_step + group * x_group;
const INDEX o_at = o_from + image * o_image_step + group * m * o_row;
"""
    left = Operand(f"loaded = ({value}){memory.load('w[(group * m + row) * depth + k]')};", "1")
    fetch = f"{_element(rank, 'k')} {_place(rank, 'column')}"
    right = Operand(f"{fetch} loaded = ({value}){memory.load('x[x_at + here + seen]')};", "0")
    begin = f"({value}){memory.load('bias[bias_from + group * m + row]')}" if bias else f"({value})0"
    put = f"out[o_at + row * o_row + to] = {memory.store(f'({begin} + result)')};"
    return tiles(value, head, left, right, f"{_place(rank, 'column', out=True)} {put}")


def weight(memory: CType, value: str, rank: int) -> str:
    """The adjoint in the weights: rows are channels of ``y``, columns elements of a patch, the depth all places."""
    head = f"""INDEX item = GROUP_ID;
const INDEX n0 = item % column_blocks * {TILE}u; item /= column_blocks;
const INDEX m0 = item % row_blocks * {TILE}u; item /= row_blocks;
const INDEX n = elements, group = item % groups, part = item / groups;
const INDEX first = part * images_per_item, rest = images - first;
const INDEX depth = (rest < images_per_item ? rest : images_per_item) * places;
"""
    place = f"const INDEX image = first + k / places, where = k % places; {_place(rank, 'where')}"
    y = "y[y_from + ((first + k / places) * groups * m + group * m + row) * places + k % places]"
    left = Operand(f"loaded = ({value}){memory.load(y)};", "1")
    x = "x[x_from + image * x_image_step + group * x_group + here + seen]"
    right = Operand(f"{place} {_element(rank, 'column')} loaded = ({value}){memory.load(x)};", "1")
    put = "out[((part * groups + group) * n + column) * m + row] = result;"
    return tiles(value, head, left, right, put)
