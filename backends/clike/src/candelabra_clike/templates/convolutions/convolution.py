"""Convolutions and their adjoints over any number of dims: geometry, choice of form and launch."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import Parameter, Source, number, reads, writes
from candelabra_clike.templates.convolutions import strips as convolution_strips
from candelabra_clike.templates.convolutions import tiles as convolution_tiles
from candelabra_clike.templates.convolutions import weight as convolution_weight
from candelabra_clike.templates.convolutions.strips import Places
from candelabra_clike.templates.copies.packing import arranged
from candelabra_clike.templates.products import tiles as matmul_tiles
from candelabra_clike.templates.products.packing import Rows, packed
from candelabra_clike.templates.products.product import WORTHWHILE, rounded, strip_for
from candelabra_clike.templates.products.strips import Strip
from candelabra_clike.types import CTYPES

FEW = 16
"""Places of an image below which several images share a strip of columns."""


class Patches(NamedTuple):
    """What each place of a batch of images sees: ``channels`` times ``taps`` elements. Steps count elements.

    ``first`` is where the first tap of the first place lies in the buffer.
    """

    first: int
    images: int
    groups: int
    channels: int
    taps: Shape
    places: Shape
    image_step: int
    channel_step: int
    tap_steps: Shape
    place_steps: Shape

    @property
    def depth(self) -> int:
        """Elements that a place sees."""
        return self.channels * prod(self.taps)

    @property
    def few(self) -> bool:
        """Whether the places of one image leave much of a strip empty."""
        return self.images > 1 and prod(self.places) < FEW

    def together(self) -> Patches:
        """The images as one image with a dim more."""
        return self._replace(
            images=1, taps=(1, *self.taps), places=(self.images, *self.places), image_step=0,
            tap_steps=(0, *self.tap_steps), place_steps=(self.image_step, *self.place_steps),
        )  # fmt: skip

    def numbers(self) -> tuple[int, ...]:
        """The arguments that :func:`_patches` declares."""
        taps = self.taps if self.depth else (1,) * len(self.taps)
        return (
            self.first, self.groups, self.depth, prod(taps), prod(self.places), self.image_step,
            self.channels * self.channel_step, self.channel_step,
            *taps, *self.places, *self.tap_steps, *self.place_steps,
        )  # fmt: skip


def _patches(rank: int) -> list[Parameter]:
    names = ("x_from", "groups", "depth", "taps", "places", "x_image_step", "x_group", "x_channel")
    each = [f"{n}{d}" for n in ("t", "p", "x_t", "x_p") for d in range(rank)]
    return [number(n) for n in (*names, *each)]


class Results(NamedTuple):
    """Where the results of the places go: the first one's place in the buffer, and steps."""

    first: int
    image_step: int
    row_step: int
    place_steps: Shape

    def together(self) -> Results:
        """As :meth:`Patches.together`."""
        return self._replace(image_step=0, place_steps=(self.image_step, *self.place_steps))


@lru_cache(1024)
def _choice(patches: Patches, rows: int, columns: int) -> Places:
    """The way of taking places that computes and fetches least."""
    places, steps = patches.places, patches.place_steps
    costs = {Places.ANY: 1 + 16 / rows}
    if steps[-1] == 1:
        costs[Places.ROWS] = -(-places[-1] // columns) * columns / places[-1]
        # What lies between the rows of a plane is computed in vain, and results are written one by one.
        if len(places) > 1 and steps[-2] >= places[-1]:
            run = (places[-2] - 1) * steps[-2] + places[-1]
            written = 1 + 2 / max(patches.depth, 1) + 40 / (rows * max(patches.depth, 1))
            costs[Places.RUNS] = -(-run // columns) * columns / (places[-1] * places[-2]) * written
    return min(costs, key=lambda p: costs[p])


class Convolution:
    """``out[image, row, place]`` is ``bias[row]``, if any, plus ``w[row]`` times what the place sees, summed."""

    def __init__(self, d: dtype, rank: int, bias: bool) -> None:
        self.dtype = d
        self.rank = rank
        self.bias = bias
        self.value = CTYPES[d].value if d.is_floating_point else "u64" if d.itemsize == 8 else "u32"
        self._launches: dict[Any, Launch] = {}

    def __call__(
        self,
        out: StridedArray,
        w: StridedArray,
        filters: Rows,
        x: StridedArray,
        bias: StridedArray | None,
        patches: Patches,
        results: Results,
        slack: bool,
    ) -> None:
        """``slack`` says that the elements behind ``x`` may be read."""
        rows = filters.rows
        engine = out.engine
        serial = engine.traits.serial
        wide = serial or is_wide(out, w, x)
        strip = strip_for(rows, self.value)
        places = _choice(patches, rows, strip.columns) if serial else Places.ANY
        key = (engine, strip.rows if serial else 0, places, wide)
        launch = self._launches.get(key)
        if launch is None:
            launch = self._launches[key] = engine.compile(self.source(engine, strip, places, wide))
        count, extents = self._extents(engine, patches, rows, strip, places, slack)
        if serial:
            memory = CTYPES[self.dtype].memory
            left = packed(engine, w.buffer, filters, memory, self.dtype.itemsize, strip.rows)
        else:
            sizes = (filters.matrices, rows, *filters.sizes)
            left = arranged(w, sizes, (filters.matrix_step, filters.row_step, *filters.steps), filters.first).buffer
        launch(
            count, out.buffer, left, x.buffer, *(() if bias is None else (bias.buffer,)), results.first,
            *(() if bias is None else (bias.offset,)), rows, results.image_step, results.row_step,
            *results.place_steps, *patches.numbers(), *extents,
        )  # fmt: skip

    def _extents(
        self, engine: Engine, patches: Patches, rows: int, strip: Strip, places: Places, slack: bool
    ) -> tuple[int, tuple[int, ...]]:
        """How many work-items or groups, and the numbers that say which places each has."""
        matrices, count = patches.images * patches.groups, prod(patches.places)
        if not engine.traits.serial:
            down, across = -(-rows // matmul_tiles.TILE), -(-count // matmul_tiles.TILE)
            return matrices * down * across, (down, across)
        across, tiles = 1, -(-count // strip.columns)
        if places is Places.ROWS:
            across = -(-patches.places[-1] // strip.columns)
            tiles = across * prod(patches.places[:-1])
        elif places is Places.RUNS:
            run = (patches.places[-2] - 1) * patches.place_steps[-2] + patches.places[-1]
            across = -(-run // strip.columns)
            tiles = across * prod(patches.places[:-2])
        work = count * rows * max(patches.depth, 1)
        wanted = min(-(-8 * engine.traits.compute_units // matrices), work // WORTHWHILE + 1, tiles)
        per_item = -(-tiles // wanted)
        parts = -(-tiles // per_item)
        return matrices * parts, (parts, tiles, per_item, across, int(slack))

    def source(self, engine: Engine, strip: Strip, places: Places, wide: bool) -> Source:
        """The kernel in the form for the device."""
        serial = engine.traits.serial
        memory = CTYPES[self.dtype]
        names = ["out", "w", "x", "bias"] if self.bias else ["out", "w", "x"]
        extents = ("parts", "tiles", "tiles_per_item", "tiles_across", "slack") if serial else ()
        head = (
            writes("out", memory.memory),
            *[reads(n, memory.memory) for n in names[1:]],
            *[number(n) for n in ("o_from", *(["bias_from"] if self.bias else []))],
            *[number(n) for n in ("m", "o_image_step", "o_row", *[f"o_p{d}" for d in range(self.rank)])],
            *_patches(self.rank),
            *[number(n) for n in extents or ("row_blocks", "column_blocks")],
        )
        name = f"conv{self.rank}_{places.value if serial else 'tiles'}_{self.dtype.name}"
        if serial:
            body = convolution_strips.body(strip, memory, places, self.rank, self.bias)
            return Source(name, head, body, wide=wide, contract=True)
        body = convolution_tiles.body(memory, self.value, self.rank, self.bias)
        return Source(name, head, body, group=matmul_tiles.GROUP, wide=wide, contract=True)


class ConvolutionWeight:
    """``out[row, element]`` is the sum of ``y[image, row, place]`` times the element of what the place sees."""

    def __init__(self, d: dtype, rank: int) -> None:
        self.dtype = d
        self.rank = rank
        self.value = CTYPES[d].value if d.is_floating_point else "u64" if d.itemsize == 8 else "u32"
        self._launches: dict[Any, tuple[Launch, Launch]] = {}

    def __call__(self, out: StridedArray, x: StridedArray, y: StridedArray, patches: Patches) -> None:
        """``y`` and ``out`` are contiguous; nothing is empty."""
        engine, rows = out.engine, out.shape[0] // patches.groups
        serial = engine.traits.serial
        wide = serial or is_wide(out, x, y)
        strip = self.strip(patches.depth, rows)
        key = (engine, strip if serial else 0, wide)
        launches = self._launches.get(key)
        if launches is None:
            sources = self.source(serial, strip, wide), self.reduction(serial, wide)
            launches = self._launches[key] = engine.compile(sources[0]), engine.compile(sources[1])
        parts, count, extents = self._extents(engine, patches, rows, strip)
        size = out.size
        sums = engine.allocate(max(parts, 1) * size * (8 if self.value[1:] == "64" else 4))
        launches[0](count, sums, x.buffer, y.buffer, y.offset, rows, patches.images, *patches.numbers(), *extents)
        numbers = (out.offset, parts, patches.groups, rows, patches.depth)
        launches[1](patches.groups * rows if serial else size, out.buffer, sums, *numbers)

    def strip(self, depth: int, rows: int) -> Strip:
        """Elements of a patch times channels."""
        strip = strip_for(depth, self.value)
        return strip if rows > 8 else Strip(strip.rows, 1, self.value)

    def _extents(self, engine: Engine, patches: Patches, rows: int, strip: Strip) -> tuple[int, int, tuple[int, ...]]:
        """Into how many parts the images go, how many work-items or groups, and the numbers that say what each has."""
        units, images = engine.traits.compute_units, patches.images
        if engine.traits.serial:
            blocks = -(-patches.depth // convolution_weight.ROWS)
            per_block = rounded(-(-patches.depth // blocks), strip.rows)
            down, across = -(-patches.depth // per_block), -(-rows // strip.columns)
            extents: tuple[int, ...] = (down, across, per_block)
        else:
            down, across = -(-rows // matmul_tiles.TILE), -(-patches.depth // matmul_tiles.TILE)
            extents = (down, across, patches.depth)
        matrices = patches.groups * down * across
        work = out_work(patches) * rows
        wanted = min(-(-4 * units // matrices), work // WORTHWHILE + 1, max(images, 1))
        per_item = max(-(-images // wanted), 1)
        parts = -(-images // per_item)
        return parts, parts * matrices, (*extents, per_item)

    def source(self, serial: bool, strip: Strip, wide: bool) -> Source:
        """The kernel that makes the sums over the images of a part."""
        memory = CTYPES[self.dtype]
        last = "rows_per_item" if serial else "elements"
        head = (
            writes("out", self.value),
            *[reads(n, memory.memory) for n in ("x", "y")],
            *[number(n) for n in ("y_from", "m", "images")],
            *_patches(self.rank),
            *[number(n) for n in ("row_blocks", "column_blocks", last, "images_per_item")],
        )
        name = f"conv{self.rank}_weight_{self.dtype.name}"
        if serial:
            body = convolution_weight.body(strip, memory, self.rank)
            return Source(name, head, body, wide=wide, contract=True)
        head = tuple([p._replace(name="whole_depth") if p.name == "depth" else p for p in head])
        body = convolution_tiles.weight(memory, self.value, self.rank)
        return Source(name, head, body, group=matmul_tiles.GROUP, wide=wide, contract=True)

    def reduction(self, serial: bool, wide: bool) -> Source:
        """The kernel that adds the parts up."""
        memory = CTYPES[self.dtype]
        head = (
            writes("out", memory.memory),
            reads("sums", self.value),
            *[number(n) for n in ("out_from", "parts", "groups", "m", "depth")],
        )
        body = convolution_weight.reduction(memory, self.value, serial)
        return Source(f"conv_weight_parts_{self.dtype.name}", head, body, wide=wide)


def out_work(patches: Patches) -> int:
    """Products for one channel of the result."""
    return patches.images * prod(patches.places) * patches.depth


def convolve(
    out: StridedArray, w: StridedArray, filters: Rows, x: StridedArray, bias: StridedArray | None, patches: Patches,
    results: Results, slack: bool,
) -> None:  # fmt: skip
    """:class:`Convolution`, of all images together where each has few places."""
    if patches.few:
        patches, results = patches.together(), results.together()
    convolution(x.dtype, len(patches.taps), bias is not None)(out, w, filters, x, bias, patches, results, slack)


@lru_cache(256)
def convolution(d: dtype, rank: int, bias: bool) -> Convolution:
    """The convolution of a dtype in ``rank`` dims."""
    return Convolution(d, rank, bias)


@lru_cache(256)
def convolution_in_weight(d: dtype, rank: int) -> ConvolutionWeight:
    """Its adjoint in the weights."""
    return ConvolutionWeight(d, rank)
