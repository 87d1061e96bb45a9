"""Vectors of lanes: a lane loads 16 bytes of an array at once, computes their elements one by one, and stores 16 bytes.

Any two dtypes have as many elements in a lane, so vectors of narrower ones have fewer bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from candelabra_clike.language.lane_vectors import LaneVector
from candelabra_clike.source import Source, number

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
    vectors, each = _vectors(nest, nest.names), _each(width)
    aligned = " && ".join(vector.is_aligned(f"{n} + {n}_at") for n, vector in vectors.items())
    lines = [
        f"const INDEX lanes = (n + {width - 1}u) / {width}u, lane = GLOBAL_ID;\nif (lane < lanes) {{\n"
        f"const u32 aligned = {aligned};\n"
        f"const u32 whole = aligned && n - lane * {width}u >= {width}u;\n"
        "const INDEX group = lane - LOCAL_ID, others = lanes - group;\n"
        f"const INDEX first = aligned ? lane * {width}u : group * {width}u + LOCAL_ID;\n"
        "const INDEX step = aligned ? 1 : others < GROUP_SIZE ? others : GROUP_SIZE;\n",
        *[vector.declaration() for vector in vectors.values()],
    ]
    if nest.read:
        loads = "".join(vectors[n].load(f"{n} + ({n}_at + lane * {width}u)") for n in nest.read)
        one = "const INDEX at = first + i * step < n ? first + i * step : n - 1;\n"
        one += "".join(f"{vectors[n].element('i')} = {n}[{n}_at + at];\n" for n in nest.read)
        lines.append(f"if (whole) {{\n{loads}}} else {each} {{\n{one}}}\n")
    lines.append(_unrolled(nest, each, {n: vectors[n].element("i") for n in nest.names}, "first + i * step"))
    stores = "".join(vectors[n].store(f"{n} + ({n}_at + lane * {width}u)") for n in nest.written)
    one = "".join(f"{n}[{n}_at + first + i * step] = {vectors[n].element('i')};\n" for n in nest.written)
    lines.append(f"if (whole) {{\n{stores}}} else {each} if (first + i * step < n) {{\n{one}}}\n}}\n")
    return "".join(lines)


def rows_of_vectors(nest: LoopNest, rank: int, inner: Sequence[int], wide: bool) -> Source:
    """Return the kernel in which a lane processes ``per_lane`` elements along the last dim, whose size is given in
    vectors.

    ``inner`` is the stride of each array along the last dim: 1, or 0 for an element that a lane loads once. All other
    strides of arrays with 1 are multiples of the vector.
    """
    each = _each(nest.per_lane)
    vectors = _vectors(nest, [n for n, step in zip(nest.names, inner, strict=True) if step])
    loaded = [n for n in nest.read if n in vectors]
    aligned = " && ".join(vector.is_aligned(f"{n} + {n}_row") for n, vector in vectors.items())
    loads = "".join(vectors[n].load(f"{n} + {n}_row") for n in loaded)
    singles = "".join(f"{vectors[n].element('i')} = {n}[{n}_row + i];\n" for n in loaded)
    stores = "".join(vectors[n].store(f"{n} + {n}_row") for n in nest.written)
    single = "".join(f"{n}[{n}_row + i] = {vectors[n].element('i')};\n" for n in nest.written)
    elements = {n: vectors[n].element("i") if n in vectors else f"x{n}" for n in nest.names}
    body = (
        f"const INDEX element = GLOBAL_ID;\nif (element < n) {{\n{nest.row_offsets(rank, 'element', rank)}"
        + "".join(vector.declaration() for vector in vectors.values())
        + "".join(f"const {nest.memory[n]} x{n} = {n}[{n}_row];\n" for n in nest.read if n not in vectors)
        + f"const u32 aligned = {aligned};\n"
        + (f"if (aligned) {{\n{loads}}} else {each} {{\n{singles}}}\n" if loaded else "")
        + _unrolled(nest, each, elements, "0")
        + f"if (aligned) {{\n{stores}}} else {each} {{\n{single}}}\n}}\n"
    )
    name = f"{nest.name}_{rank}d_{''.join(map(str, inner))}"
    return nest.source(name, (number("n"), *nest.dims(rank)), body, wide)


def _vectors(nest: LoopNest, names: Iterable[str]) -> dict[str, LaneVector]:
    return {n: LaneVector(f"x{n}", nest.memory[n], nest.per_lane) for n in names}


def _each(width: int) -> str:
    return f"UNROLL for (u32 i = 0; i < {width}u; ++i)"


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
