"""Scatter into planes of zeros: the gradient of pooling.

On serial devices a work-item fills a plane with zeros and then scatters into it while it is in the cache. On other
devices there is a work-item per element, if all indices of a plane are distinct. If they are not, a work-group
processes a plane, a value per lane at a time: the first lane of those with one index adds the values of all. Values are
added in the order of the index.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from candelabra.dtypes import COMPLEX

from candelabra_clike.array import StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.language import printing
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.indexing.scatter import ScatterRule
from candelabra_clike.types import CTYPES

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
    compiled(engine, rule, distinct)(
        items, out.buffer, x.buffer, index.buffer, errors, ticket, x.offset, index.offset, planes, planes_per_item,
        size, count, dim,
    )  # fmt: skip


@lru_cache(None)
def compiled(engine: Engine, rule: ScatterRule, distinct: bool) -> Launch:
    """Return the compiled kernel."""
    return engine.compile(text(rule, engine.traits.serial, distinct))


def text(rule: ScatterRule, serial: bool, distinct: bool) -> Source:
    """Return the kernel: a work-item processes several planes, or one element, or a work-group one plane."""
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
        f"{destination} = {rule.stored[0]}; }}\n"
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
    elif not distinct:
        body = f"{declare_error}const INDEX plane = GROUP_ID;\n{pointers}{_rounds(rule)}{report}"
        return Source(f"planes_group_{rule.name}", parameters, body, group=LANES)
    else:
        body = f"{declare_error}const INDEX plane = GLOBAL_ID / count, i = GLOBAL_ID % count;\n{pointers}{one}{report}"
    return Source(f"planes_{rule.name}", parameters, body, group=1 if serial else None)


def _rounds(rule: ScatterRule) -> str:
    """Return the loop of a work-group over the values of a plane, which loads the next ones while it adds."""
    target, source = CTYPES[rule.target], CTYPES[rule.source]
    nowhere = "0xFFFFFFFFu"
    return (
        f"LOCAL u32 places[{LANES}];\nLOCAL {source.value} values[{LANES}];\nconst u32 lane = LOCAL_ID;\n"
        f"i64 position = lane < count ? from_index[lane] : 0;\n"
        f"{source.value} loaded = {source.load('from_x[lane < count ? lane : 0]')};\n"
        f"for (INDEX start = 0; start < count; start += {LANES}u) {{\n"
        f"const INDEX i = start + lane, after = i + {LANES}u < count ? i + {LANES}u : count - 1;\n"
        f"u32 place = {nowhere};\n"
        "if (i < count) {\nif ((u64)position >= (u64)size) { wrong = 1; value = position; }\n"
        "else place = (u32)position;\n}\n"
        "places[lane] = place;\nvalues[lane] = loaded;\nBARRIER;\n"
        f"position = from_index[after];\nloaded = {source.load('from_x[after]')};\nu32 same = 0;\n"
        f"UNROLL for (u32 j = 0; j < {LANES}u; ++j) same |= places[j] == place ? 1u << j : 0u;\n"
        f"if (place != {nowhere} && (same & ((1u << lane) - 1u)) == 0) {{\n"
        f"{target.value} sum = {target.load('to[place]')};\nu32 j = lane;\n"
        "for (u32 left = same >> lane; left; left >>= 1, ++j) if (left & 1u) {\n"
        f"const {target.value} va = sum;\nconst {source.value} vb = values[j];\n"
        f"sum = {printing.text(rule.values[0])};\n}}\n"
        f"to[place] = {target.store('sum')};\n}}\nBARRIER;\n}}\n"
    )
