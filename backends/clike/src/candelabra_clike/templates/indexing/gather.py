"""Gather: ``out[p] = source[p · strides + index[p] · step + …]``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import collapsed, is_wide
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates import index_walker
from candelabra_clike.templates.elementwise.elementwise import CHUNK, MAX_PLANS, copy_kernel
from candelabra_clike.templates.indexing import index_arrays
from candelabra_clike.templates.indexing.index_arrays import IndexedDim
from candelabra_clike.types import CTYPES, VECTOR_BYTES, VECTOR_TYPES


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
    errors, ticket = engine.errors.register(error, list(zip(indices, plan.dims, plan.sizes)))
    plan.launch(
        plan.items, out.buffer, source.buffer, *[index.buffer for index in indices], errors, ticket,
        out.offset, source.offset, *[index.offset for index in indices], *plan.numbers,
    )  # fmt: skip
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
    launch = compiled(engine, bits(d), len(dims), inner, wraps, wide, vector)
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


@lru_cache(None)
def compiled(engine: Engine, d: dtype, rank: int, inner: Shape, wraps: bool, wide: bool, vector: int) -> Launch:
    """Return the compiled kernel. ``inner`` is the last stride of out, source and each index if it is 0 or 1, and 2
    otherwise. ``vector`` is the number of elements that a lane moves.
    """
    return engine.compile(text(engine.traits.serial, d, rank, inner, wraps, wide, vector))


def text(serial: bool, d: dtype, rank: int, inner: Shape, wraps: bool, wide: bool, vector: int = 1) -> Source:
    """Return the kernel, which processes a row of the last dim at a time, or a vector of it per lane. An index that is
    constant along it is read once.
    """
    count, last = len(inner) - 2, rank - 1
    arrays = ("out", "x", *index_arrays.names(count))
    memory = CTYPES[d].memory
    head = (
        writes("out", memory), reads("x", memory), *index_arrays.buffers(count),
        *index_walker.offset_parameters(arrays), number("rows"), number("rows_per_item"),
        *index_walker.size_parameters(rank), *index_walker.stride_parameters(arrays, rank),
        *index_arrays.extent_parameters(count),
    )  # fmt: skip
    at = {n: ("", " + i", f" + i * {n}_s{last}")[kind] for n, kind in zip(arrays, inner, strict=True)}
    along = any(inner[2:])
    lookup = index_arrays.lookup(count, [f"{n}[{n}_row{at[n] if along else ''}]" for n in arrays[2:]], wraps)
    move = f"out[out_row{at['out']}] = x[x_row + to{at['x']}];\n"
    if vector > 1:
        move = _move_vector(d, vector)
    if serial:
        loop = f"for (INDEX i = 0; i < n{last}; ++i) "
        steps = [f"{'i' if kind == 1 else '0' if kind == 0 else f'i * {n}_s{last}'}" for n, kind in zip(arrays, inner)]
        row = f"{loop}{{\n{lookup}{move}}}\n"
        if not along:  # a loop over elements with one index, which every compiler vectorises
            row = (
                f"{lookup}GLOBAL {memory}* const o = out + out_row;\n"
                f"GLOBAL const {memory}* const s = x + (x_row + to);\n"
                f"INDEPENDENT\n{loop}o[{steps[0]}] = s[{steps[1]}];\n"
            )
        body = (
            "const INDEX first = GLOBAL_ID * rows_per_item, rest = rows - first;\n"
            "const INDEX end = first + (rest < rows_per_item ? rest : rows_per_item);\n"
            f"{index_arrays.declare_error()}for (INDEX row = first; row < end; ++row) {{\n"
            f"{index_walker.row_offsets(arrays, last)}{row}}}\n{index_arrays.report(count)}"
        )
    else:
        body = (
            "const INDEX element = GLOBAL_ID;\n"
            f"if (element < rows * n{last}) {{\nconst INDEX row = element / n{last}, i = element % n{last};\n"
            f"{index_arrays.declare_error()}{index_walker.row_offsets(arrays, last)}{lookup}{move}"
            f"{index_arrays.report(count)}}}"
        )
    return Source(f"gather_{memory}_{count}_{rank}d{'_vectors' * (vector > 1)}", head, body, wide=wide)


def _move_vector(d: dtype, width: int) -> str:
    """Return the statements of a lane that moves ``width`` elements, one by one if an address is not aligned."""
    vector, memory, mask = VECTOR_TYPES[width * d.itemsize], CTYPES[d].memory, width * d.itemsize - 1
    return (
        f"GLOBAL {memory}* const o = out + (out_row + i * {width}u);\n"
        f"GLOBAL const {memory}* const s = x + (x_row + to + i * {width}u);\n"
        f"if ((((u64)o | (u64)s) & {mask}u) == 0) *(GLOBAL {vector}*)o = *(GLOBAL const {vector}*)s;\n"
        f"else UNROLL for (u32 j = 0; j < {width}u; ++j) o[j] = s[j];\n"
    )
