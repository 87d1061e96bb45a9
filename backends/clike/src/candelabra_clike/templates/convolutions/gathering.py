"""Patches of images as the columns of a matrix, for devices on which a library multiplies matrices.

Source: Chellapilla, Puri and Simard, "High performance convolutional neural networks for document processing", 2006.
"""

from __future__ import annotations

from contextlib import ExitStack
from math import prod
from typing import Final

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import compiled
from candelabra_clike.language import INDEX, Value, and_then, constant, select
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import Source
from candelabra_clike.templates.convolutions.convolution import Patches
from candelabra_clike.templates.copies.packing import UNSIGNED, strided_copy
from candelabra_clike.templates.index_walker import each_coordinate
from candelabra_clike.types import CTYPES

ITEMS: Final = 1 << 18
"""The number of work-items that fills a GPU."""
WIDEST: Final = 8
"""The largest number of taps along the last dim that a work-item loads before it stores them."""


class PaddedView(StridedArray):
    """Images as if zeros surrounded them: shape and offset are those with the zeros, which are not in memory.

    ``before`` has the number of zeros before each of the last dims, and ``inside`` their sizes without zeros.
    """

    __slots__ = ("before", "inside")

    before: Shape
    inside: Shape


def padded_view(x: StridedArray, before: Shape, after: Shape) -> StridedArray:
    """Return an array with zeros around its last dims, as :func:`~candelabra_clike.templates.copies.packing.padded`
    does.
    """
    lead = len(x.shape) - len(before)
    if 0 in x.strides[lead:]:  # coordinates are computed from offsets
        x = strided_copy(x, x.shape, x.strides, x.offset)
    inside, steps = x.shape[lead:], x.strides[lead:]
    shape = x.shape[:lead] + tuple([b + n + a for b, n, a in zip(before, inside, after, strict=True)])
    offset = x.offset - sum(b * step for b, step in zip(before, steps, strict=True))
    result = PaddedView(x.engine, x.buffer, shape, x.strides, offset, x.dtype, prod(shape), False)
    result.before, result.inside = before, inside
    return result


def gather_patches(x: StridedArray, patches: Patches) -> StridedArray:
    """Return the patches as a matrix: (elements of a patch, positions of all images). ``x`` has one group."""
    columns = patches.images * prod(patches.positions)
    out = x.engine.empty((patches.depth, columns), x.dtype)
    if not out.size:
        return out
    width = patches.taps[-1] if patches.taps[-1] <= WIDEST else 1
    memory, wide = CTYPES[UNSIGNED[x.dtype.itemsize]].memory, is_wide(out, x)
    per_item = -(-patches.channels // min(patches.channels, ITEMS // columns + 1))
    numbers = (
        patches.first, columns, patches.channels, per_item, prod(patches.taps), patches.image_step,
        patches.channel_step, *patches.taps, *patches.positions, *patches.tap_steps, *patches.position_steps,
        *(padding_numbers(x, patches) if isinstance(x, PaddedView) else ()),
    )  # fmt: skip
    modulus = 1 << (64 if wide else 32)  # negative numbers as unsigned indices
    launch = compiled(x.engine, source, memory, len(patches.taps), width, isinstance(x, PaddedView), wide)
    items = columns * -(-patches.channels // per_item)
    launch(items, out.buffer, x.buffer, *[n % modulus for n in numbers])
    return out


def padding_numbers(x: PaddedView, patches: Patches) -> list[int]:
    """Return, for each dim, the coordinate of the first tap, the sizes, and the steps of positions and taps in
    elements of the dim.
    """
    rank = len(x.before)
    corner, steps = patches.corner or (0,) * rank, x.strides[-rank:]
    return [
        *[c - b for c, b in zip(corner, x.before, strict=True)],
        *x.inside,
        *[p // s for p, s in zip(patches.position_steps, steps, strict=True)],
        *[t // s for t, s in zip(patches.tap_steps, steps, strict=True)],
    ]


@built("conv")
def source(memory: str, rank: int, width: int, padded: bool, wide: bool) -> Source:
    """Return the kernel of ``out[(c, tap), (image, position)]``. A work-item has a column, and some channels.

    ``width`` is the number of taps along the last dim, or 1 if there are many: its loads precede its stores, because
    the compiler must assume that the arrays overlap. With ``padded``, elements outside the images are 0.
    """
    k = KernelBuilder(f"{'padded' if padded else 'gather'}_patches{rank}_{width}_{memory}", wide)
    out, x = k.writes("out", memory), k.reads("x", memory)
    start, columns, channels, per_item = k.numbers("x_from", "columns", "channels", "channels_per_item")
    taps, image_step, channel_step = k.numbers("taps", "x_image_step", "x_channel")
    groups = ("t", "p", "x_t", "x_p", *(("corner", "inside", "step", "tap_step") if padded else ()))
    t, p, tap_steps, position_steps, *padding = [k.per_dim(n, rank) for n in groups]
    column, first = k.let("column", k.item % columns), k.let("first", k.item // columns * per_item)
    image, here, places = k.variable("image", column), k.variable("here", start), [column] * rank
    for d, coordinate in each_coordinate(k, image, p, outermost=False):
        position = k.let(f"q{d}", coordinate)
        k.assign(here, here + position * position_steps[d])
        if padded:
            places[d] = k.let(f"y{d}", padding[0][d] + position * padding[2][d])
    k.assign(here, here + image * image_step)
    o = k.variable("o", first * taps * columns + column)
    with ExitStack() as loops:
        c = loops.enter_context(k.loop("c", first, k.let("end", first + least(channels - first, per_item))))
        looped = range(rank - 1 if width > 1 else rank)
        i: list[Value] = [loops.enter_context(k.loop(f"i{d}", 0, t[d])) for d in looped]
        values = k.array("v", memory, width)
        for j in range(width):
            at = [*i, *[constant(INDEX, j)] * (width > 1)]
            element = x[sum([n * step for n, step in zip(at, tap_steps)], start=here + c * channel_step)]
            if padded:
                within = [y + n * step < size for y, n, size, step in zip(places, at, padding[1], padding[3])]
                element = select(and_then(*within), element, 0)
            values[j] = element
        for j in range(width):
            out[o] = values[j]
            k.assign(o, o + columns)
    return k.source()
