"""Patches of images as the columns of a matrix, for devices on which a library multiplies matrices.

Source: Chellapilla, Puri and Simard, "High performance convolutional neural networks for document processing", 2006.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, Final

from candelabra_clike.array import StridedArray
from candelabra_clike.engine import Launch
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.convolutions.convolution import Patches
from candelabra_clike.templates.copies.packing import as_bits
from candelabra_clike.templates.index_walker import coordinates, moves
from candelabra_clike.types import CTYPES

ITEMS: Final = 1 << 18
"""The number of work-items that fills a GPU."""
WIDEST: Final = 8
"""The largest number of taps along the last dim that a work-item loads before it stores them."""


def gather_patches(x: StridedArray, patches: Patches) -> StridedArray:
    """Return the patches as a matrix: (elements of a patch, positions of all images). ``x`` has one group."""
    columns = patches.images * prod(patches.positions)
    out = x.engine.empty((patches.depth, columns), x.dtype)
    if out.size:
        bits = as_bits(x)
        width = patches.taps[-1] if patches.taps[-1] <= WIDEST else 1
        gathering = _gathering(CTYPES[bits.dtype].memory, len(patches.taps), width)
        gathering(as_bits(out), bits, patches, columns)
    return out


class PatchGathering:
    """``out[(c, tap), (image, position)]`` is the element of that tap. A work-item has a column, and some channels.

    ``width`` is the number of taps along the last dim, or 1 if there are many: its loads precede its stores, because
    the compiler must assume that the arrays overlap.
    """

    def __init__(self, memory: str, rank: int, width: int) -> None:
        self.memory = memory
        self.rank = rank
        self.width = width
        self._launches: dict[Any, Launch] = {}

    def __call__(self, out: StridedArray, x: StridedArray, patches: Patches, columns: int) -> None:
        """Gather."""
        engine, wide = out.engine, is_wide(out, x)
        launch = self._launches.get((engine, wide))
        if launch is None:
            launch = self._launches[engine, wide] = engine.compile(self.source(wide))
        per_item = -(-patches.channels // min(patches.channels, ITEMS // columns + 1))
        launch(
            columns * -(-patches.channels // per_item), out.buffer, x.buffer, patches.first, columns, patches.channels,
            per_item, prod(patches.taps), patches.image_step, patches.channel_step,
            *patches.taps, *patches.positions, *patches.tap_steps, *patches.position_steps,
        )  # fmt: skip

    def source(self, wide: bool) -> Source:
        """Return the kernel."""
        rank, last, width = self.rank, self.rank - 1, self.width
        decode = coordinates("image", rank, "p", lambda d, p: moves(p, {"here": f"x_p{d}"}), outermost=False)
        looped = range(last if width > 1 else rank)
        loops = " ".join(f"for (INDEX i{d} = 0; i{d} < t{d}; ++i{d})" for d in looped)
        offset = " + ".join(["here", "c * x_channel", *[f"i{d} * x_t{d}" for d in looped]])
        body = f"""const INDEX column = GLOBAL_ID % columns, first = GLOBAL_ID / columns * channels_per_item;
const INDEX rest = channels - first, end = first + (rest < channels_per_item ? rest : channels_per_item);
INDEX image = column, here = x_from;
{" ".join(decode)}
here += image * x_image_step;
INDEX o = first * taps * columns + column;
for (INDEX c = first; c < end; ++c) {loops} {{
{self.memory} v[{width}];
UNROLL for (int j = 0; j < {width}; ++j) v[j] = x[{offset} + j * x_t{last}];
UNROLL for (int j = 0; j < {width}; ++j) {{ out[o] = v[j]; o += columns; }}
}}"""
        names = ("x_from", "columns", "channels", "channels_per_item", "taps", "x_image_step", "x_channel")
        each = [f"{n}{d}" for n in ("t", "p", "x_t", "x_p") for d in range(rank)]
        head = (writes("out", self.memory), reads("x", self.memory), *[number(n) for n in (*names, *each)])
        return Source(f"gather_patches{rank}_{width}_{self.memory}", head, body, wide=wide)


@lru_cache(256)
def _gathering(memory: str, rank: int, width: int) -> PatchGathering:
    return PatchGathering(memory, rank, width)
