"""Convolutions and their gradients on GPUs: tiled matrix products with one operand gathered from patches."""

from __future__ import annotations

from collections.abc import Callable

from candelabra_clike.templates.index_walker import coordinates, moves
from candelabra_clike.templates.matmul.tiled import TILE, TileOperand, tiled_kernel
from candelabra_clike.types import CType


def _element(rank: int, number: str) -> str:
    """Return statements that set ``tap_offset`` to the offset of an element within a patch."""
    lines = [f"INDEX tap = {number} % taps, tap_offset = {number} / taps * x_channel;"]
    lines += coordinates("tap", rank, "t", lambda d, p: f"tap_offset += {p} * x_t{d};", outermost=False)
    return " ".join(lines)


def _position(rank: int, number: str, out: bool = False) -> str:
    """Return statements that set ``here`` to the offset of a position in the input, and ``to`` to that in the
    output.
    """
    offsets = {"here": "x_p", "to": "o_p"} if out else {"here": "x_p"}
    start = f"INDEX position = {number}, {', '.join(f'{name} = 0' for name in offsets)};"
    moved = coordinates(
        "position", rank, "p", lambda d, p: moves(p, {n: f"{s}{d}" for n, s in offsets.items()}), outermost=False
    )
    return " ".join([start, *moved])


def body(memory: CType, value: str, rank: int, bias: bool, epilogue: Callable[[str], str] | None = None) -> str:
    """Return a convolution: rows are filters of a group, columns are output positions of an image. ``epilogue`` returns
    the statements for an element of the result, instead of those that store it.
    """
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
    result = f"({begin} + result)"
    put = f"out[o_at + row * o_row + to] = {memory.store(result)};" if epilogue is None else epilogue(result)
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
