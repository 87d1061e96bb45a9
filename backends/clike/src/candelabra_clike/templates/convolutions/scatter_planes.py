"""Scatter into planes of zeros: the gradient of pooling.

On serial devices a work-item fills a plane with zeros and then scatters into it while it is in the cache. On other
devices there is a work-item per element, if all indices of a plane are distinct. Values are added in the order of the
index.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from candelabra.dtypes import COMPLEX

from candelabra_clike.array import StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.indexing.scatter import ScatterRule
from candelabra_clike.types import CTYPES

GRAIN = 4096
"""Elements of the planes of a work-item."""


def is_applicable(x: StridedArray, index: StridedArray, size: int, distinct: bool) -> bool:
    """Whether this form applies: there are enough planes for all processors, and offsets fit in 32 bits."""
    planes, traits = prod(x.shape[:-1]), x.engine.traits
    small = max(planes * size, x.span[1], index.span[1]) < WIDE
    return small and (planes >= traits.compute_units if traits.serial else distinct)


def fill(out: StridedArray, x: StridedArray, index: StridedArray, rule: ScatterRule, error: IndexOutOfBounds) -> None:
    """Fill the planes along the last dim of ``out``. All arrays are contiguous.

    On devices whose work-items are lanes, ``out`` must be zero. Invalid indices are reported and nothing is written for
    them.
    """
    engine, size, count, planes = x.engine, out.shape[-1], x.shape[-1], prod(x.shape[:-1])
    dim = len(out.shape) - 1
    errors, ticket = engine.errors.register(error, [(index, dim, size)])
    planes_per_item = max(1, min(GRAIN // max(size, 1), planes // (4 * engine.traits.compute_units)))
    items = -(-planes // planes_per_item) if engine.traits.serial else planes * count
    compiled(engine, rule)(
        items, out.buffer, x.buffer, index.buffer, errors, ticket, x.offset, index.offset, planes, planes_per_item,
        size, count, dim,
    )  # fmt: skip


@lru_cache(None)
def compiled(engine: Engine, rule: ScatterRule) -> Launch:
    """Return the compiled kernel."""
    return engine.compile(text(rule, engine.traits.serial))


def text(rule: ScatterRule, serial: bool) -> Source:
    """Return the kernel: a work-item processes several planes, or one element."""
    target, source = CTYPES[rule.target], CTYPES[rule.source]
    parameters = (
        writes("out", target.memory), reads("x", source.memory), reads("index", "i64"), writes("errors", "i64"),
        number("ticket", "u32"),
        *map(number, ("x_at", "index_at", "planes", "planes_per_item", "size", "count", "dim")),
    )  # fmt: skip
    destination = "to[position]"
    old = f"const {target.value} va = {target.load(destination)}; " if rule.reads("va") else ""
    one = (
        "const i64 position = from_index[i];\n"
        "if ((u64)position >= (u64)size) { wrong = 1; value = position; }\n"
        f"else {{ const {source.value} vb = {source.load('from_x[i]')}; {old}"
        f"{destination} = {rule.stored}; }}\n"
    )
    pointers = (
        f"GLOBAL {target.memory}* const to = out + plane * size;\n"
        f"GLOBAL const {source.memory}* const from_x = x + (x_at + plane * count);\n"
        "GLOBAL const i64* const from_index = index + (index_at + plane * count);\n"
    )
    zero = f"{target.value.upper()}(0, 0)" if rule.target.category == COMPLEX else "0"
    declare_error = "u32 wrong = 0; i64 value = 0;\n"
    report = "if (wrong) report_error(errors, ticket, value, (i64)dim, (i64)size);\n"
    if serial:
        body = (
            f"{declare_error}const INDEX begin = GLOBAL_ID * planes_per_item;\n"
            "const INDEX end = begin + planes_per_item < planes ? begin + planes_per_item : planes;\n"
            f"for (INDEX plane = begin; plane < end; ++plane) {{\n{pointers}"
            "const int all = (int)size, many = (int)count;\n"
            f"INDEPENDENT\nfor (int i = 0; i < all; ++i) to[i] = {zero};\n"
            f"for (int i = 0; i < many; ++i) {{\n{one}}}\n}}\n{report}"
        )
    else:
        body = f"{declare_error}const INDEX plane = GLOBAL_ID / count, i = GLOBAL_ID % count;\n{pointers}{one}{report}"
    return Source(f"planes_{rule.name}", parameters, body, group=1 if serial else None)
