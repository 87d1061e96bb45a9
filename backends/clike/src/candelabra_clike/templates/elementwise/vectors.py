"""Vectors of lanes: a lane loads 16 bytes of an array at once, computes their elements one by one, and stores 16 bytes.

A union of a vector and its elements is declared for each array, so that any two dtypes have as many elements in a lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from candelabra_clike.source import Source, number
from candelabra_clike.types import VECTOR_TYPES

if TYPE_CHECKING:
    from candelabra_clike.templates.elementwise.loops import LoopNest


def contiguous_vectors(nest: LoopNest, width: int) -> str:
    """Return the body of the kernel for contiguous arrays in which a lane processes ``width`` elements.

    Where an address is not a multiple of the vector's size, as of arrays with an offset, adjacent lanes access
    adjacent elements one by one. So does the lane of the last elements. Elements beyond the last one repeat it, so
    that they report no other errors.
    """
    if width == 1:
        elements = {n: f"{n}[{n}_at + i]" for n in nest.names}
        return f"const INDEX i = GLOBAL_ID;\nif (i < n) {{\n{nest.element_step(elements, 'i')}}}\n"
    types, each = _vector_types(nest, width), _each(width)
    lines = [
        f"const INDEX lanes = (n + {width - 1}u) / {width}u, lane = GLOBAL_ID;\nif (lane < lanes) {{\n"
        f"const u32 aligned = {_are_aligned(nest, width, nest.names, 'at')};\n"
        f"const u32 whole = aligned && n - lane * {width}u >= {width}u;\n"
        "const INDEX group = lane - LOCAL_ID, others = lanes - group;\n"
        f"const INDEX first = aligned ? lane * {width}u : group * {width}u + LOCAL_ID;\n"
        "const INDEX step = aligned ? 1 : others < GROUP_SIZE ? others : GROUP_SIZE;\n",
        _unions(nest, width, nest.names),
    ]
    if nest.read:
        loads = "".join(f"x{n}.all = ((GLOBAL const {types[n]}*)({n} + {n}_at))[lane];\n" for n in nest.read)
        one = "const INDEX at = first + i * step < n ? first + i * step : n - 1;\n"
        one += "".join(f"x{n}.each[i] = {n}[{n}_at + at];\n" for n in nest.read)
        lines.append(f"if (whole) {{\n{loads}}} else {each} {{\n{one}}}\n")
    lines.append(_unrolled(nest, each, {n: f"x{n}.each[i]" for n in nest.names}, "first + i * step"))
    stores = "".join(f"((GLOBAL {types[n]}*)({n} + {n}_at))[lane] = x{n}.all;\n" for n in nest.written)
    one = "".join(f"{n}[{n}_at + first + i * step] = x{n}.each[i];\n" for n in nest.written)
    lines.append(f"if (whole) {{\n{stores}}} else {each} if (first + i * step < n) {{\n{one}}}\n}}\n")
    return "".join(lines)


def rows_of_vectors(nest: LoopNest, rank: int, inner: Sequence[int], wide: bool) -> Source:
    """Return the kernel in which a lane processes ``per_lane`` elements along the last dim, whose size is given in
    vectors.

    ``inner`` is the stride of each array along the last dim: 1, or 0 for an element that a lane loads once. All other
    strides of arrays with 1 are multiples of the vector.
    """
    width = nest.per_lane
    types, each = _vector_types(nest, width), _each(width)
    units = [n for n, step in zip(nest.names, inner, strict=True) if step]
    loaded = [n for n in nest.read if n in units]
    vectors = "".join(f"x{n}.all = *(GLOBAL const {types[n]}*)({n} + {n}_row);\n" for n in loaded)
    singles = "".join(f"x{n}.each[i] = {n}[{n}_row + i];\n" for n in loaded)
    stores = "".join(f"*(GLOBAL {types[n]}*)({n} + {n}_row) = x{n}.all;\n" for n in nest.written)
    single = "".join(f"{n}[{n}_row + i] = x{n}.each[i];\n" for n in nest.written)
    body = (
        f"const INDEX element = GLOBAL_ID;\nif (element < n) {{\n{nest.row_offsets(rank, 'element', rank)}"
        + _unions(nest, width, units)
        + "".join(f"const {nest.memory[n]} x{n} = {n}[{n}_row];\n" for n in nest.read if n not in units)
        + f"const u32 aligned = {_are_aligned(nest, width, units, 'row')};\n"
        + (f"if (aligned) {{\n{vectors}}} else {each} {{\n{singles}}}\n" if loaded else "")
        + _unrolled(nest, each, {n: f"x{n}.each[i]" if n in units else f"x{n}" for n in nest.names}, "0")
        + f"if (aligned) {{\n{stores}}} else {each} {{\n{single}}}\n}}\n"
    )
    name = f"{nest.name}_{rank}d_{''.join(map(str, inner))}"
    return nest.source(name, (number("n"), *nest.dims(rank)), body, wide)


def _vector_types(nest: LoopNest, width: int) -> dict[str, str]:
    return {n: VECTOR_TYPES[width * d.itemsize] for n, d in nest.dtypes.items()}


def _each(width: int) -> str:
    return f"UNROLL for (u32 i = 0; i < {width}u; ++i)"


def _unions(nest: LoopNest, width: int, names: Iterable[str]) -> str:
    """Return the declaration of the elements of a lane: ``all`` is the vector, and ``each`` its elements."""
    types = _vector_types(nest, width)
    return "".join(f"union {{ {types[n]} all; {nest.memory[n]} each[{width}]; }} x{n};\n" for n in names)


def _are_aligned(nest: LoopNest, width: int, names: Iterable[str], start: str) -> str:
    """Return the condition that the first elements of arrays are at addresses of vectors."""
    sizes = {n: width * nest.dtypes[n].itemsize for n in names}
    return " && ".join(f"((u64)({n} + {n}_{start}) & {size - 1}u) == 0" for n, size in sizes.items())


def _unrolled(nest: LoopNest, head: str, elements: dict[str, str], at: str) -> str:
    """Return the loop over the elements of a lane. If one is rare, all are computed as rare ones: a branch for each
    element would keep their instructions from overlapping.
    """
    if not nest.rare:
        return f"{head} {{\n{nest.element_step(elements, at)}}}\n"
    return (
        f"u32 rare = 0;\n{head} {{\n{nest.rare_step(elements)}}}\n"
        f"if (rare) {head} {{\n{nest.element_step(elements, at)}}}\n"
        f"else {head} {{\n{nest.element_step(elements, at, rare='usual')}}}\n"
    )
