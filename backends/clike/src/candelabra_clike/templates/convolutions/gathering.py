"""Patches of images as the columns of a matrix, for devices on which a library multiplies matrices.

Source: Chellapilla, Puri and Simard, "High performance convolutional neural networks for document processing", 2006.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, Final

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Launch
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.convolutions.convolution import Patches
from candelabra_clike.templates.copies.packing import UNSIGNED, strided_copy
from candelabra_clike.templates.index_walker import coordinates, moves
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
    if out.size:
        width = patches.taps[-1] if patches.taps[-1] <= WIDEST else 1
        memory = CTYPES[UNSIGNED[x.dtype.itemsize]].memory
        _gathering(memory, len(patches.taps), width, isinstance(x, PaddedView))(out, x, patches, columns)
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


class PatchGathering:
    """``out[(c, tap), (image, position)]`` is the element of that tap. A work-item has a column, and some channels.

    ``width`` is the number of taps along the last dim, or 1 if there are many: its loads precede its stores, because
    the compiler must assume that the arrays overlap. With ``padded``, elements outside the images are 0.
    """

    def __init__(self, memory: str, rank: int, width: int, padded: bool) -> None:
        self.memory = memory
        self.rank = rank
        self.width = width
        self.padded = padded
        self._launches: dict[Any, Launch] = {}

    def __call__(self, out: StridedArray, x: StridedArray, patches: Patches, columns: int) -> None:
        """Gather."""
        engine, wide = out.engine, is_wide(out, x)
        launch = self._launches.get((engine, wide))
        if launch is None:
            launch = self._launches[engine, wide] = engine.compile(self.source(wide))
        per_item = -(-patches.channels // min(patches.channels, ITEMS // columns + 1))
        numbers = (
            patches.first, columns, patches.channels, per_item, prod(patches.taps), patches.image_step,
            patches.channel_step, *patches.taps, *patches.positions, *patches.tap_steps, *patches.position_steps,
            *(padding_numbers(x, patches) if isinstance(x, PaddedView) else ()),
        )  # fmt: skip
        modulus = 1 << (64 if wide else 32)  # negative numbers as unsigned indices
        items = columns * -(-patches.channels // per_item)
        launch(items, out.buffer, x.buffer, *[n % modulus for n in numbers])

    def source(self, wide: bool) -> Source:
        """Return the kernel."""
        rank, last, width = self.rank, self.rank - 1, self.width
        looped = range(last if width > 1 else rank)
        loops = " ".join(f"for (INDEX i{d} = 0; i{d} < t{d}; ++i{d})" for d in looped)
        offset = " + ".join(["here", "c * x_channel", *[f"i{d} * x_t{d}" for d in looped]])
        body = f"""const INDEX column = GLOBAL_ID % columns, first = GLOBAL_ID / columns * channels_per_item;
const INDEX rest = channels - first, end = first + (rest < channels_per_item ? rest : channels_per_item);
INDEX image = column, here = x_from;
{self._decoded()}
here += image * x_image_step;
INDEX o = first * taps * columns + column;
for (INDEX c = first; c < end; ++c) {loops} {{
{self.memory} v[{width}];
UNROLL for (int j = 0; j < {width}; ++j) v[j] = {self._inside(looped)}x[{offset} + j * x_t{last}]{self._outside()};
UNROLL for (int j = 0; j < {width}; ++j) {{ out[o] = v[j]; o += columns; }}
}}"""
        names = ("x_from", "columns", "channels", "channels_per_item", "taps", "x_image_step", "x_channel")
        groups = ("t", "p", "x_t", "x_p", *(("corner", "inside", "step", "tap_step") if self.padded else ()))
        each = [f"{n}{d}" for n in groups for d in range(rank)]
        head = (writes("out", self.memory), reads("x", self.memory), *[number(n) for n in (*names, *each)])
        kind = "padded" if self.padded else "gather"
        return Source(f"{kind}_patches{rank}_{width}_{self.memory}", head, body, wide=wide)

    def _decoded(self) -> str:
        """Return statements that add the offset of the position to ``here``, and set its coordinates."""

        def use(d: int, position: str) -> str:
            if not self.padded:
                return moves(position, {"here": f"x_p{d}"})
            return (
                f"const INDEX q{d} = {position}; here += q{d} * x_p{d}; const INDEX y{d} = corner{d} + q{d} * step{d};"
            )

        return " ".join(coordinates("image", self.rank, "p", use, outermost=False))

    def _inside(self, looped: range) -> str:
        """Return the beginning of an expression that loads an element inside the image."""
        if not self.padded:
            return ""
        taps = {d: f"i{d}" for d in looped}
        within = [f"y{d} + {taps.get(d, 'j')} * tap_step{d} < inside{d}" for d in range(self.rank)]
        return f"{' && '.join(within)} ? "

    def _outside(self) -> str:
        return f" : ({self.memory})0" if self.padded else ""


@lru_cache(256)
def _gathering(memory: str, rank: int, width: int, padded: bool) -> PatchGathering:
    return PatchGathering(memory, rank, width, padded)
