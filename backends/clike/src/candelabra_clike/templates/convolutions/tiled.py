"""Convolutions and their gradients on GPUs: tiled matrix products with one operand gathered from patches."""

from __future__ import annotations

from candelabra_clike.templates.matmul.tiled import TILE, TileOperand, tiled_kernel
from candelabra_clike.types import CType


def _element(rank: int, number: str) -> str:
    """Return statements that set ``tap_offset`` to the offset of an element within a patch."""
    lines = [f"INDEX tap = {number} % taps, tap_offset = {number} / taps * x_channel;"]
    lines += [f"tap_offset += tap % t{d} * x_t{d}; tap /= t{d};" for d in range(rank - 1, -1, -1)]
    return " ".join(lines)


def _position(rank: int, number: str, out: bool = False) -> str:
    """Return statements that set ``here`` to the offset of a position in the input, and ``to`` to that in the
    output.
    """
    lines = [f"INDEX position = {number}, here = 0{', to = 0' if out else ''};"]
    for d in range(rank - 1, -1, -1):
        move = f"const INDEX p = position % p{d}; here += p * x_p{d};{f' to += p * o_p{d};' if out else ''}"
        lines.append(f"{{ {move} position /= p{d}; }}")
    return " ".join(lines)


def body(memory: CType, value: str, rank: int, bias: bool) -> str:
    """Return a convolution: rows are filters of a group, columns are output positions of an image."""
    head = f"""INDEX item = GROUP_ID;
const INDEX n0 = item % column_blocks * {TILE}u; item /= column_blocks;
const INDEX m0 = item % row_blocks * {TILE}u; item /= row_blocks;
const INDEX n = positions, group = item % groups, image = item / groups;
const INDEX x_at = x_from + image * x_image_step + group * x_group;
const INDEX o_at = o_from + image * o_image_step + group * m * o_row;
"""
    left = TileOperand(f"loaded = ({value}){memory.load('w[(group * m + row) * depth + k]')};", "1")
    fetch = f"{_element(rank, 'k')} {_position(rank, 'column')}"
    right = TileOperand(f"{fetch} loaded = ({value}){memory.load('x[x_at + here + tap_offset]')};", "0")
    begin = f"({value}){memory.load('bias[bias_from + group * m + row]')}" if bias else f"({value})0"
    put = f"out[o_at + row * o_row + to] = {memory.store(f'({begin} + result)')};"
    return tiled_kernel(value, head, left, right, f"{_position(rank, 'column', out=True)} {put}")


def weight(memory: CType, value: str, rank: int) -> str:
    """Return the weight gradient: rows are channels of ``y``, columns elements of a patch, the depth all output
    positions.
    """
    head = f"""INDEX item = GROUP_ID;
const INDEX n0 = item % column_blocks * {TILE}u; item /= column_blocks;
const INDEX m0 = item % row_blocks * {TILE}u; item /= row_blocks;
const INDEX n = elements, group = item % groups, part = item / groups;
const INDEX first = part * images_per_item, rest = images - first;
const INDEX depth = (rest < images_per_item ? rest : images_per_item) * positions;
"""
    position = f"const INDEX image = first + k / positions, where = k % positions; {_position(rank, 'where')}"
    y = "y[y_from + ((first + k / positions) * groups * m + group * m + row) * positions + k % positions]"
    left = TileOperand(f"loaded = ({value}){memory.load(y)};", "1")
    x = "x[x_from + image * x_image_step + group * x_group + here + tap_offset]"
    right = TileOperand(f"{position} {_element(rank, 'column')} loaded = ({value}){memory.load(x)};", "1")
    put = "out[((part * groups + group) * n + column) * m + row] = result;"
    return tiled_kernel(value, head, left, right, put)
