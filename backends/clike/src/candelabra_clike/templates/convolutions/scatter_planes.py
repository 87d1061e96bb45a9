"""Scatter into planes of zeros: the gradient of pooling.

On serial devices a work-item fills a plane with zeros and then scatters into it while it is in the cache. On other
devices there is a work-item per element, if all indices of a plane are distinct. If they are not, a work-group
processes a plane, a value per lane at a time: the first lane of those with one index adds the values of all. Values are
added in the order of the index.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from candelabra_clike.array import StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import compiled
from candelabra_clike.language import Value, cast, constant, select
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source
from candelabra_clike.templates.indexing.index_arrays import IndexErrors
from candelabra_clike.templates.indexing.scatter import ScatterRule

GRAIN = 4096
"""Elements of the planes of a work-item."""
LANES = 32
"""The size of the work-group of a plane: one bit of a word per lane, and one vector of lanes on most GPUs."""
PLANES_PER_UNIT = 4
"""The planes per compute unit from which a work-group per plane is worthwhile."""


def is_applicable(x: StridedArray, index: StridedArray, size: int, distinct: bool) -> bool:
    """Whether this form applies: there are enough planes for all processors, and offsets fit in 32 bits."""
    planes, traits = prod(x.shape[:-1]), x.engine.traits
    if max(planes * size, x.span[1], index.span[1]) >= WIDE:
        return False
    if traits.serial:
        return planes >= traits.compute_units
    return distinct or planes >= PLANES_PER_UNIT * traits.compute_units


def fill(
    out: StridedArray,
    x: StridedArray,
    index: StridedArray,
    rule: ScatterRule,
    error: IndexOutOfBounds,
    distinct: bool,
) -> None:
    """Fill the planes along the last dim of ``out``. All arrays are contiguous. ``distinct``: so are the indices of a
    plane.

    On devices whose work-items are lanes, ``out`` must be zero. Invalid indices are reported and nothing is written for
    them.
    """
    engine, size, count, planes = x.engine, out.shape[-1], x.shape[-1], prod(x.shape[:-1])
    dim = len(out.shape) - 1
    errors, ticket = engine.errors.register(error, [(index, dim, size)])
    planes_per_item = max(1, min(GRAIN // max(size, 1), planes // (4 * engine.traits.compute_units)))
    if engine.traits.serial:
        items = -(-planes // planes_per_item)
    else:
        items = planes * (count if distinct else min(count, 1))
    compiled(engine, text, rule, engine.traits.serial, distinct)(
        items, out.buffer, x.buffer, index.buffer, errors, ticket, x.offset, index.offset, planes, planes_per_item,
        size, count, dim,
    )  # fmt: skip


@built("scatter_planes")
def text(rule: ScatterRule, serial: bool, distinct: bool) -> Source:
    """Return the kernel: a work-item processes several planes, or one element, or a work-group one plane."""
    grouped = not serial and not distinct
    k = KernelBuilder(f"planes_{'group_' * grouped}{rule.name}", wide=False)
    out, x, index = k.writes("out", rule.target), k.reads("x", rule.source), k.reads("index", "i64")
    errors = IndexErrors(k)
    x_at, index_at, planes, planes_per_item, size, count, dim = k.numbers(
        "x_at", "index_at", "planes", "planes_per_item", "size", "count", "dim"
    )
    errors.declare()

    def plane_arrays(plane: Value) -> Plane:
        to = k.pointer("to", out, plane * size)
        from_x = k.pointer("from_x", x, x_at + plane * count)
        return Plane(to, from_x, k.pointer("from_index", index, index_at + plane * count), size, count)

    if serial:
        with k.share("plane", planes, planes_per_item) as plane:
            arrays = plane_arrays(plane)
            every, many = k.let("every", cast("i32", size)), k.let("many", cast("i32", count))
            k.fill(arrays.to, every, independent=True)
            with k.loop("i", 0, many) as i:
                _scatter(k, rule, arrays, i, errors)
    elif distinct:
        plane, i = k.let("plane", k.item // count), k.let("i", k.item % count)
        _scatter(k, rule, plane_arrays(plane), i, errors)
    else:
        _rounds(k, rule, plane_arrays(k.group), errors)
    errors.report(dim, size)
    return k.source(group=1 if serial else LANES if grouped else None)


class Plane(NamedTuple):
    """The arrays of a plane of ``size`` elements, and of its ``length`` values and their positions."""

    to: KernelArray
    from_x: KernelArray
    from_index: KernelArray
    size: Value
    length: Value


def _scatter(k: KernelBuilder, rule: ScatterRule, plane: Plane, i: Value, errors: IndexErrors) -> None:
    """Update the element at the position of value ``i``."""
    position = k.let("position", plane.from_index[i])
    with k.when(cast("u64", position) >= plane.size):
        errors.note(position)
    with k.otherwise():
        k.let("vb", plane.from_x[i])
        if rule.reads("va"):
            k.let("va", plane.to[position])
        plane.to[position] = rule.values[0]


def _rounds(k: KernelBuilder, rule: ScatterRule, plane: Plane, errors: IndexErrors) -> None:
    """The loop of a work-group over the values of a plane, which loads the next ones while it adds."""
    nowhere = constant("u32", 0xFFFFFFFF)
    places = k.array("places", "u32", LANES, shared=True)
    values = k.array("values", plane.from_x.type, LANES, shared=True)
    lane, count = k.let("lane", k.lane), plane.length
    own = k.let("own", select(lane < count, lane, 0))
    position, loaded = k.variable("position", plane.from_index[own]), k.variable("loaded", plane.from_x[own])
    with k.loop("start", 0, count, LANES) as start:
        i = k.let("i", start + lane)
        after, place = k.let("after", least(i + LANES, count - 1)), k.variable("place", nowhere)
        with k.when(i < count):
            with k.when(cast("u64", position) >= plane.size):
                errors.note(position)
            with k.otherwise():
                k.assign(place, cast("u32", position))
        places[lane] = place
        values[lane] = loaded
        k.barrier()
        k.assign(position, plane.from_index[after])
        k.assign(loaded, plane.from_x[after])
        same = k.variable("same", constant("u32", 0))
        with k.loop("j", constant("u32", 0), LANES, unrolled=True) as j:
            k.assign(same, same | select(places[j] == place, constant("u32", 1) << j, 0))
        before = same & (constant("u32", 1) << lane) - 1
        with k.when((place != nowhere) & (before == 0)):  # the first of the lanes with this place adds for all
            total = k.variable("va", plane.to[place])
            j, left = k.variable("j", lane), k.variable("left", same >> lane)
            with k.repeat(left != 0):
                with k.when((left & constant("u32", 1)) != 0):
                    k.let("vb", values[j])
                    k.assign(total, rule.values[0])
                k.assign(left, left >> 1)
                k.assign(j, j + 1)
            plane.to[place] = total
        k.barrier()
