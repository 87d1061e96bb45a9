"""Convolutions and their gradients in any number of dims: geometry, selection of the form, and launch."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Buffer, Engine, Launch, Traits
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import KernelParameter, Source, number, reads, writes
from candelabra_clike.templates.convolutions import panels, weight_gradient
from candelabra_clike.templates.convolutions import tiled as conv_tiled
from candelabra_clike.templates.convolutions.packed import PackedFilters
from candelabra_clike.templates.convolutions.panels import OutputTiling
from candelabra_clike.templates.copies.packing import strided_copy
from candelabra_clike.templates.matmul import tiled as matmul_tiled
from candelabra_clike.templates.matmul.matmul import MIN_PRODUCTS_PER_ITEM, micro_tile_for, round_up
from candelabra_clike.templates.matmul.micro_kernel import MicroTile
from candelabra_clike.templates.matmul.packing import StridedRows, pack_panels
from candelabra_clike.types import CTYPES

Weight = StridedArray | PackedFilters
"""The weight of a convolution, which may be packed."""
FEW_POSITIONS = 16
"""Images with fewer output positions than this are processed as one image on GPUs."""
MANY_WEIGHTS = 1 << 18
"""The number of filters' elements of a group that a processor's cache does not keep from one tile to the next."""
REUSE = 4
"""The tiles that a work-item multiplies by each slice of filters."""
MIN_ROWS = 128
"""The filters that justify gathering a tile again for them."""


class Patches(NamedTuple):
    """The patches of a batch of images: ``channels`` times ``taps`` elements per output position. Strides count
    elements.

    ``first`` is the offset of the first tap of the first position.
    """

    first: int
    images: int
    groups: int
    channels: int
    taps: Shape
    positions: Shape
    image_step: int
    channel_step: int
    tap_steps: Shape
    position_steps: Shape
    corner: Shape = ()
    """The coordinates of the first tap of the first position, unless they are 0."""

    @property
    def depth(self) -> int:
        """The number of elements of a patch."""
        return self.channels * prod(self.taps)

    @property
    def few_positions(self) -> bool:
        """Whether a GPU processes the images as one."""
        return self.images > 1 and prod(self.positions) < FEW_POSITIONS

    def wasteful(self, rows: int, columns: int) -> bool:
        """Whether the output positions of one image leave much of a panel of ``columns`` empty, or are too few to
        reuse many weights.
        """
        count = prod(self.positions)
        tiles = -(-count // columns)
        few = tiles < REUSE and rows * self.depth > MANY_WEIGHTS
        return self.images > 1 and (few or 10 * tiles * columns > 11 * count)

    def merge_images(self) -> Patches:
        """Return the images as one image with one more dim."""
        return self._replace(
            images=1, taps=(1, *self.taps), positions=(self.images, *self.positions), image_step=0,
            tap_steps=(0, *self.tap_steps), position_steps=(self.image_step, *self.position_steps),
        )  # fmt: skip

    def numbers(self) -> tuple[int, ...]:
        """Return the arguments of the parameters that :func:`patch_parameters` declares."""
        taps = self.taps if self.depth else (1,) * len(self.taps)
        return (
            self.first, self.groups, self.depth, prod(taps), prod(self.positions), self.image_step,
            self.channels * self.channel_step, self.channel_step,
            *taps, *self.positions, *self.tap_steps, *self.position_steps,
        )  # fmt: skip


def patch_parameters(rank: int) -> list[KernelParameter]:
    """Return the parameters for patches of a rank, see :meth:`Patches.numbers`."""
    names = ("x_from", "groups", "depth", "taps", "positions", "x_image_step", "x_group", "x_channel")
    each = [f"{n}{d}" for n in ("t", "p", "x_t", "x_p") for d in range(rank)]
    return [number(n) for n in (*names, *each)]


class OutputLayout(NamedTuple):
    """The layout of the results: the offset of the first one, and strides."""

    first: int
    image_step: int
    row_step: int
    position_steps: Shape

    def merge_images(self) -> OutputLayout:
        """The counterpart of :meth:`Patches.merge_images`."""
        return self._replace(image_step=0, position_steps=(self.image_step, *self.position_steps))


@lru_cache(1024)
def _cheapest_tiling(patches: Patches, rows: int, tile: MicroTile, slack: bool) -> OutputTiling:
    """Return the tiling with the least computation and the fewest loads.

    A row of filters takes about as long as a load and a store of each vector of the tile.
    """
    positions, steps, columns = patches.positions, patches.position_steps, tile.columns
    costs = {OutputTiling.ANY: 1 + columns / rows}
    if steps[-1] == 1:
        if positions[-1] % 8 == 0:
            costs[OutputTiling.EIGHTS] = 1 + columns / 6 / rows
        elif positions[-1] % 4 == 0 and slack:
            costs[OutputTiling.FOURS] = 1 + columns / 3 / rows
        loads = columns / 8 / rows
        costs[OutputTiling.ROWS] = -(-positions[-1] // columns) * columns / positions[-1] + loads
        # The results between the rows of a plane are discarded, and the others are stored one by one.
        if len(positions) > 1 and steps[-2] >= positions[-1]:
            run = (positions[-2] - 1) * steps[-2] + positions[-1]
            written = 1 + 2 / max(patches.depth, 1) + 40 / (rows * max(patches.depth, 1))
            costs[OutputTiling.RUNS] = -(-run // columns) * columns / (positions[-1] * positions[-2]) * written + loads
    return min(costs, key=lambda p: costs[p])


class ConvolutionPlan(NamedTuple):
    """How to convolve arrays of certain layouts: the kernel and its form, the count of work-items, and the arguments
    after the buffers.
    """

    kernel: ConvolutionKernel
    tile: MicroTile
    tiling: OutputTiling
    items: int
    first: int
    """The offset of the first result."""
    numbers: tuple[int, ...]


def plan_parameters(rank: int, serial: bool) -> list[KernelParameter]:
    """Return the parameters of :attr:`ConvolutionPlan.numbers`."""
    extents = ("parts", "tiles", "tiles_per_item", "tiles_across", "slack", "rows_per_item")
    results = ("m", "o_image_step", "o_row", *[f"o_p{d}" for d in range(rank)])
    blocks = extents if serial else ("row_blocks", "column_blocks")
    return [*[number(n) for n in results], *patch_parameters(rank), *[number(n) for n in blocks]]


class ConvolutionKernel:
    """``out[image, row, position]`` is ``bias[row]``, if any, plus the dot product of ``w[row]`` and the patch."""

    def __init__(self, d: dtype, rank: int, bias: bool) -> None:
        self.dtype = d
        self.rank = rank
        self.bias = bias
        self.value = CTYPES[d].value if d.is_floating_point else "u64" if d.itemsize == 8 else "u32"
        self._launches: dict[Any, Launch] = {}

    def __call__(
        self, out: StridedArray, w: Weight, filters: StridedRows, x: StridedArray, bias: StridedArray | None,
        plan: ConvolutionPlan,
    ) -> None:  # fmt: skip
        """Convolve."""
        engine = out.engine
        source = w.parts[filters] if isinstance(w, PackedFilters) else w
        launch = self.launch(engine, plan, engine.traits.serial or is_wide(out, source, x))
        left = self.filters(engine, plan, w, filters)
        if bias is None:
            launch(plan.items, out.buffer, left, x.buffer, plan.first, *plan.numbers)
        else:
            launch(plan.items, out.buffer, left, x.buffer, bias.buffer, plan.first, bias.offset, *plan.numbers)

    def launch(self, engine: Engine, plan: ConvolutionPlan, wide: bool) -> Launch:
        """Return the compiled kernel of a plan."""
        key = (engine, plan.tile.rows if engine.traits.serial else 0, plan.tiling.value, wide)
        launch = self._launches.get(key)
        if launch is None:
            launch = self._launches[key] = engine.compile(self.source(engine, plan.tile, plan.tiling, wide))
        return launch

    def filters(self, engine: Engine, plan: ConvolutionPlan, w: Weight, filters: StridedRows) -> Buffer:
        """Return the filters in the order in which the kernel reads them."""
        if isinstance(w, PackedFilters):
            return w.parts[filters].buffer
        if engine.traits.serial:
            memory = CTYPES[self.dtype].memory
            return pack_panels(engine, w.buffer, filters, memory, self.dtype.itemsize, plan.tile.rows)
        sizes = (filters.matrices, filters.rows, *filters.sizes)
        return strided_copy(w, sizes, (filters.matrix_step, filters.row_step, *filters.steps), filters.first).buffer

    def of_rank(self, rank: int) -> ConvolutionKernel:
        """Return the kernel for patches of another rank."""
        return convolution_kernel(self.dtype, rank, self.bias)

    def merged(
        self, engine: Engine, rows: int, patches: Patches, results: OutputLayout, slack: bool
    ) -> ConvolutionPlan:
        """Return the plan of a convolution. Images with few output positions are processed as one image."""
        if not self.merges_images(engine.traits, patches, rows):
            return self.planned(engine, rows, patches, results, slack)
        patches, results = patches.merge_images(), results.merge_images()
        return self.of_rank(len(patches.taps)).planned(engine, rows, patches, results, slack)

    def planned(
        self, engine: Engine, rows: int, patches: Patches, results: OutputLayout, slack: bool
    ) -> ConvolutionPlan:
        """Return the plan for patches and results of these layouts."""
        tile = micro_tile_for(rows, self.value, engine.traits.lanes, engine.traits.registers)
        tiling = _cheapest_tiling(patches, rows, tile, slack) if engine.traits.serial else OutputTiling.ANY
        items, extents = self._extents(engine, patches, rows, tile, tiling, slack)
        numbers = (
            rows, results.image_step, results.row_step, *results.position_steps, *patches.numbers(), *extents,
        )  # fmt: skip
        return ConvolutionPlan(self, tile, tiling, items, results.first, numbers)

    def merges_images(self, traits: Traits, patches: Patches, rows: int) -> bool:
        """Whether to process the images as one image with one more dim."""
        if not traits.serial:
            return patches.few_positions
        return patches.wasteful(rows, micro_tile_for(rows, self.value, traits.lanes, traits.registers).columns)

    def _extents(
        self, engine: Engine, patches: Patches, rows: int, tile: MicroTile, tiling: OutputTiling, slack: bool
    ) -> tuple[int, tuple[int, ...]]:
        """Return the number of work-items or groups, and the arguments that determine the positions of each."""
        matrices, count = patches.images * patches.groups, prod(patches.positions)
        if not engine.traits.serial:
            down, across = -(-rows // matmul_tiled.TILE), -(-count // matmul_tiled.TILE)
            return matrices * down * across, (down, across)
        across, tiles = 1, -(-count // tile.columns)
        if tiling is OutputTiling.ROWS:
            across = -(-patches.positions[-1] // tile.columns)
            tiles = across * prod(patches.positions[:-1])
        elif tiling is OutputTiling.RUNS:
            run = (patches.positions[-2] - 1) * patches.position_steps[-2] + patches.positions[-1]
            across = -(-run // tile.columns)
            tiles = across * prod(patches.positions[:-2])
        work = count * rows * max(patches.depth, 1)
        target_items = min(-(-8 * engine.traits.compute_units // matrices), work // MIN_PRODUCTS_PER_ITEM + 1)
        per_item = -(-tiles // min(target_items, tiles))
        if rows * patches.depth > MANY_WEIGHTS:
            per_item = max(per_item, min(REUSE, tiles))
        parts = -(-tiles // per_item)
        row_parts = max(1, min(-(-target_items // parts), rows // MIN_ROWS))
        rows_per_item = round_up(-(-rows // row_parts), tile.rows)
        items = matrices * parts * -(-rows // rows_per_item)
        return items, (parts, tiles, per_item, across, int(slack), rows_per_item)

    def source(self, engine: Engine, tile: MicroTile, tiling: OutputTiling, wide: bool) -> Source:
        """Return the kernel for the device."""
        serial = engine.traits.serial
        memory = CTYPES[self.dtype]
        names = ["out", "w", "x", "bias"] if self.bias else ["out", "w", "x"]
        head = (
            writes("out", memory.memory),
            *[reads(n, memory.memory) for n in names[1:]],
            *[number(n) for n in ("o_from", *(["bias_from"] if self.bias else []))],
            *plan_parameters(self.rank, serial),
        )
        name = f"conv{self.rank}_{tiling.value if serial else 'tiles'}_{self.dtype.name}"
        if serial:
            body = panels.body(tile, memory, tiling, self.rank, self.bias)
            return Source(name, head, body, wide=wide, contract=True)
        body = conv_tiled.body(memory, self.value, self.rank, self.bias)
        return Source(name, head, body, group=matmul_tiled.GROUP, wide=wide, contract=True)


class WeightGradientKernel:
    """``out[row, element]`` is the sum of ``y[image, row, position]`` times the element of the patch."""

    def __init__(self, d: dtype, rank: int) -> None:
        self.dtype = d
        self.rank = rank
        self.value = CTYPES[d].value if d.is_floating_point else "u64" if d.itemsize == 8 else "u32"
        self._launches: dict[Any, tuple[Launch, Launch]] = {}

    def __call__(self, out: StridedArray, x: StridedArray, y: StridedArray, patches: Patches) -> None:
        """Compute the gradient. ``y`` and ``out`` are contiguous; no array is empty."""
        engine, rows = out.engine, out.shape[0] // patches.groups
        serial = engine.traits.serial
        wide = serial or is_wide(out, x, y)
        tile, parts, count, numbers, last = _weight_plan(self, engine, rows, patches, out.offset)
        key = (engine, tile.rows if serial else 0, tile.vectors, wide)
        launches = self._launches.get(key)
        if launches is None:
            sources = self.source(serial, tile, wide), self.reduction(serial, wide)
            launches = self._launches[key] = engine.compile(sources[0]), engine.compile(sources[1])
        sums = engine.allocate(max(parts, 1) * out.size * (8 if self.value[1:] == "64" else 4))
        launches[0](count, sums, x.buffer, y.buffer, y.offset, *numbers)
        launches[1](last[0] if serial else out.size, out.buffer, sums, *last[1:])

    def planned(
        self, engine: Engine, rows: int, patches: Patches, offset: int
    ) -> tuple[MicroTile, int, int, tuple[int, ...], tuple[int, ...]]:
        """Return the tile, the parts of the batch, the work-items and the arguments of the first kernel, and those of
        the second.
        """
        tile = self.tile(patches.depth, rows, engine.traits)
        parts, count, extents = self._extents(engine, patches, rows, tile)
        items = weight_gradient.reduction_items(patches.groups, rows, patches.depth)
        numbers = (rows, patches.images, *patches.numbers(), *extents)
        return tile, parts, count, numbers, (items, offset, parts, patches.groups, rows, patches.depth)

    def tile(self, depth: int, rows: int, traits: Traits) -> MicroTile:
        """Return the micro tile: elements of a patch times channels.

        Elements are read in place by a pointer each, so there are at most six even if there are 32 registers.
        """
        base = micro_tile_for(depth, self.value, traits.lanes, 16)
        widths = [base.vectors * traits.registers // 16]
        while widths[-1] > 1:
            widths.append(widths[-1] // 2)
        vectors = min(widths, key=lambda v: -(-rows // (base.lanes * v)) * (v + 1))
        return MicroTile(base.rows, vectors, self.value, base.lanes)

    def _extents(
        self, engine: Engine, patches: Patches, rows: int, tile: MicroTile
    ) -> tuple[int, int, tuple[int, ...]]:
        """Return the number of parts of the batch, the number of work-items or groups, and the arguments of each."""
        images = patches.images
        if engine.traits.serial:
            blocks = -(-patches.depth // weight_gradient.ROWS)
            per_block = round_up(-(-patches.depth // blocks), tile.rows)
            extents = -(-patches.depth // per_block), -(-rows // tile.columns), per_block
            matrices = patches.groups * blocks * -(-rows // weight_gradient.PART_CHANNELS)
        else:
            extents = -(-rows // matmul_tiled.TILE), -(-patches.depth // matmul_tiled.TILE), patches.depth
            matrices = patches.groups * extents[0] * extents[1]
        work = out_work(patches) * rows
        target_parts = -(-4 * engine.traits.compute_units // matrices)
        per_item = -(-images // min(target_parts, work // MIN_PRODUCTS_PER_ITEM + 1, max(images, 1)))
        parts = -(-images // max(per_item, 1))
        return parts, parts * patches.groups * extents[0] * extents[1], (*extents, max(per_item, 1))

    def source(self, serial: bool, tile: MicroTile, wide: bool) -> Source:
        """Return the kernel that sums over the images of a part."""
        memory = CTYPES[self.dtype]
        last = "rows_per_item" if serial else "elements"
        head = (
            writes("out", self.value),
            *[reads(n, memory.memory) for n in ("x", "y")],
            *[number(n) for n in ("y_from", "m", "images")],
            *patch_parameters(self.rank),
            *[number(n) for n in ("row_blocks", "column_blocks", last, "images_per_item")],
        )
        name = f"conv{self.rank}_weight_{self.dtype.name}"
        if serial:
            body = weight_gradient.body(tile, memory, self.rank)
            return Source(name, head, body, wide=wide, contract=True)
        head = tuple([p._replace(name="whole_depth") if p.name == "depth" else p for p in head])
        body = conv_tiled.weight(memory, self.value, self.rank)
        return Source(name, head, body, group=matmul_tiled.GROUP, wide=wide, contract=True)

    def reduction(self, serial: bool, wide: bool) -> Source:
        """Return the kernel that adds the parts."""
        memory = CTYPES[self.dtype]
        head = (
            writes("out", memory.memory),
            reads("sums", self.value),
            *[number(n) for n in ("out_from", "parts", "groups", "m", "depth")],
        )
        body = weight_gradient.reduction(memory, self.value, serial)
        return Source(f"conv_weight_parts_{self.dtype.name}", head, body, wide=wide)


@lru_cache(4096)
def _weight_plan(kernel: WeightGradientKernel, engine: Engine, rows: int, patches: Patches, offset: int) -> Any:
    return kernel.planned(engine, rows, patches, offset)


def out_work(patches: Patches) -> int:
    """Return the number of products per output channel."""
    return patches.images * prod(patches.positions) * patches.depth


def convolve(
    out: StridedArray, w: Weight, filters: StridedRows, x: StridedArray, bias: StridedArray | None,
    patches: Patches, results: OutputLayout, slack: bool,
) -> None:  # fmt: skip
    """Convolve. ``slack`` is true if elements behind ``x`` may be read."""
    plan = _plan(x.dtype, bias is not None, x.engine, filters.rows, patches, results, slack)
    plan.kernel(out, w, filters, x, bias, plan)


@lru_cache(4096)
def _plan(
    d: dtype, bias: bool, engine: Engine, rows: int, patches: Patches, results: OutputLayout, slack: bool
) -> ConvolutionPlan:
    return convolution_kernel(d, len(patches.taps), bias).merged(engine, rows, patches, results, slack)


@lru_cache(256)
def convolution_kernel(d: dtype, rank: int, bias: bool) -> ConvolutionKernel:
    """Return the convolution of a dtype in ``rank`` dims."""
    return ConvolutionKernel(d, rank, bias)


@lru_cache(256)
def weight_gradient_kernel(d: dtype, rank: int) -> WeightGradientKernel:
    """Return the weight gradient of a dtype in ``rank`` dims."""
    return WeightGradientKernel(d, rank)
