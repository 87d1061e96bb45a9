"""Gather: ``out[p] = source[p · strides + index[p] · step + …]``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import Engine, Launch, compiled
from candelabra_clike.language import INDEX, Value, Variable, constant
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder, built
from candelabra_clike.language.lane_vectors import VECTOR_BYTES
from candelabra_clike.layouts import collapsed, is_wide
from candelabra_clike.source import Source
from candelabra_clike.templates import index_walker
from candelabra_clike.templates.elementwise.elementwise import CHUNK, MAX_PLANS, copy_kernel
from candelabra_clike.templates.indexing import index_arrays
from candelabra_clike.templates.indexing.index_arrays import IndexedDim
from candelabra_clike.types import CTYPES


def gather(
    out: StridedArray,
    source: StridedArray,
    strides: Shape,
    indices: Sequence[StridedArray],
    indexed: tuple[IndexedDim, ...],
    error: IndexOutOfBounds,
) -> StridedArray:
    """Fill ``out``. ``strides`` are those of the source along the dims of ``out``, 0 along those of the index only.

    Results for invalid indices, which are reported, are unspecified. Raises ``IndexError`` if an indexed dim is empty.
    """
    if not out.size:
        return out
    engine, wide = out.engine, is_wide(out, source, *indices)
    plan = gather_plan(engine, source.dtype, out.shape, out.strides, strides, indexed, error.wraps, wide)
    plan.run(out, source, indices, error)
    return out


class IndexPlan(NamedTuple):
    """The launch for arrays of certain shapes and strides: work-items, and the numbers after the offsets.

    ``dims`` and ``sizes`` are those that the index arrays index, for errors.
    """

    launch: Launch
    items: int
    numbers: tuple[int, ...]
    dims: tuple[int, ...]
    sizes: tuple[int, ...]

    def run(
        self, out: StridedArray, source: StridedArray, indices: Sequence[StridedArray], error: IndexOutOfBounds
    ) -> None:
        """Launch the kernel, which reports ``error`` for an invalid index."""
        errors, ticket = out.engine.errors.register(error, list(zip(indices, self.dims, self.sizes)))
        self.launch(
            self.items, out.buffer, source.buffer, *[index.buffer for index in indices], errors, ticket,
            out.offset, source.offset, *[index.offset for index in indices], *self.numbers,
        )  # fmt: skip


@lru_cache(MAX_PLANS)
def gather_plan(
    engine: Engine,
    d: dtype,
    shape: Shape,
    out_strides: Shape,
    strides: Shape,
    indexed: tuple[IndexedDim, ...],
    wraps: bool,
    wide: bool,
) -> IndexPlan:
    """Return the plan of :func:`gather` for an output of a shape and strides."""
    extents = index_arrays.extent_arguments(indexed)
    dims, rows = collapsed(shape, (out_strides, strides, *[each.strides for each in indexed]))
    inner = tuple([min(row[-1], 2) for row in rows])
    total, per_item = prod(shape) // dims[-1], max(1, CHUNK // dims[-1])
    vector = 1 if engine.traits.serial else vector_of(bits(d), dims, rows, indexed)
    dims = (*dims[:-1], dims[-1] // vector)
    launch = compiled(engine, text, engine.traits.serial, bits(d), len(dims), inner, wraps, wide, vector)
    items = -(-total // per_item) if engine.traits.serial else total * dims[-1]
    numbers = (total, per_item, *dims, *[step for row in rows for step in row], *extents)
    return IndexPlan(launch, items, numbers, tuple([e.dim for e in indexed]), tuple([e.size for e in indexed]))


def vector_of(d: dtype, dims: Shape, rows: Sequence[Shape], indexed: Sequence[IndexedDim]) -> int:
    """Return the number of elements that a lane moves: more than one if rows of the last dim, which have one index
    each, are contiguous and start at multiples of it.
    """
    width = max(1, VECTOR_BYTES // d.itemsize)
    starts = [dims[-1], *rows[0][:-1], *rows[1][:-1], *[each.step for each in indexed]]
    contiguous = [row[-1] for row in rows] == [1, 1] + [0] * len(indexed)
    return width if contiguous and not any(start % width for start in starts) else 1


def bits(d: dtype) -> dtype:
    """Return the dtype as which elements of ``d`` are moved."""
    return copy_kernel(d).output


@built("gather")
def text(serial: bool, d: dtype, rank: int, inner: Shape, wraps: bool, wide: bool, vector: int = 1) -> Source:
    """Return the kernel, which processes a row of the last dim at a time, or a vector of it per lane. An index that is
    constant along it is read once.

    ``inner`` is the last stride of out, source and each index if it is 0 or 1, and 2 otherwise. ``vector`` is the
    number of elements that a lane moves.
    """
    count, last, memory = len(inner) - 2, rank - 1, CTYPES[d].memory
    k = KernelBuilder(f"gather_{memory}_{count}_{rank}d{'_vectors' * (vector > 1)}", wide)
    out, x, indices = k.writes("out", memory), k.reads("x", memory), index_arrays.IndexArrays(k, count, wraps)
    arrays = {"out": out, "x": x, **indices.arrays}
    starts = {name: k.number(f"{name}_at") for name in arrays}
    rows, rows_per_item = k.numbers("rows", "rows_per_item")
    sizes = k.per_dim("n", rank)
    strides = {name: k.per_dim(f"{name}_s", rank) for name in arrays}
    indices.add_extents()
    kinds = dict(zip(arrays, inner, strict=True))
    along = any(inner[2:])

    def step(name: str, i: Value) -> Value:
        return (constant(INDEX, 0), i, i * strides[name][last])[kinds[name]]

    def move(row: dict[str, Variable], i: Value) -> None:
        at = {name: row[name] + step(name, i) for name in arrays}
        elements = [array[at[name] if along else row[name]] for name, array in indices.arrays.items()]
        to, _, _ = indices.lookup(elements)
        if vector > 1:
            to_row = k.pointer("to_row", out, row["out"] + i * vector)
            _move_vector(k, to_row, k.pointer("from_row", x, row["x"] + to + i * vector), vector)
        else:
            out[at["out"]] = x[at["x"] + to]

    if not serial:
        with k.when(k.item < rows * sizes[last]):
            row, i = k.let("row", k.item // sizes[last]), k.let("i", k.item % sizes[last])
            indices.errors.declare()
            move(index_walker.declare_offsets(k, starts, strides, row, sizes[:last]), i)
            indices.report()
        return k.source()
    indices.errors.declare()
    with k.share("row", rows, rows_per_item) as row:
        offsets = index_walker.declare_offsets(k, starts, strides, row, sizes[:last])
        if along:
            with k.loop("i", 0, sizes[last]) as i:
                move(offsets, i)
        else:  # a loop over elements with one index, which every compiler vectorises
            to, _, _ = indices.lookup([array[offsets[name]] for name, array in indices.arrays.items()])
            to_row = k.pointer("to_row", out, offsets["out"])
            from_row = k.pointer("from_row", x, offsets["x"] + to)
            with k.loop("i", 0, sizes[last], independent=True) as i:
                to_row[step("out", i)] = from_row[step("x", i)]
    indices.report()
    return k.source()


def _move_vector(k: KernelBuilder, to: KernelArray, source: KernelArray, width: int) -> None:
    """Move ``width`` elements at once, or one by one if an address is not aligned."""
    vector, first = k.vector("moved", to, width), constant(INDEX, 0)
    with k.when((to.address(first) | source.address(first)) & vector.lanes.bytes - 1 == 0):
        vector.load(source, first)
        vector.store(to, first)
    with k.otherwise(), k.loop("j", constant("u32", 0), width, unrolled=True) as j:
        to[j] = source[j]
