"""Maxima of windows without a stride, with their indices: windows that divide the input, or start at given places.

A work-item computes several rows of the result on serial devices, and one element on others.
"""

from __future__ import annotations

from typing import NamedTuple

from candelabra.dtypes import dtype

from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.index_walker import declare_coordinates
from candelabra_clike.types import CTYPES

LONG = 8
"""The elements of a row of a window from which serial devices find the maximum without branches, before its index."""


class WindowForm(NamedTuple):
    """The properties that a kernel is compiled for. ``placed``: the starts of the windows are given."""

    dtype: dtype
    rank: int
    placed: bool
    serial: bool
    wide: bool


def text(form: WindowForm) -> Source:
    """Return the kernel."""
    c, rank = CTYPES[form.dtype], form.rank
    last = rank - 1
    declare = "u32 wrong = 0; i64 value = 0, dim = 0, limit = 0;\n" if form.placed else ""
    report = "if (wrong) report_error(errors, ticket, value, dim, limit);\n" if form.placed else ""
    plane = " * ".join([f"n{d}" for d in range(rank)])
    row = f"INDEX rest = row;\n{declare_coordinates('o', 'rest', last, 'm')}"
    row += f"GLOBAL const {c.memory}* const from = x + (x_at + rest * ({plane}));\n"
    row += "".join([_bounds(form, d) for d in range(last)])
    each = f"{_bounds(form, last)}{_reduction(form)}out[row * m{last} + o{last}] = {c.store('best')};\n"
    each += f"at[row * m{last} + o{last}] = (i64)found;\n"
    if form.serial:
        body = (
            "const INDEX begin = GLOBAL_ID * per_item, end = begin + per_item < rows ? begin + per_item : rows;\n"
            f"{declare}for (INDEX row = begin; row < end; ++row) {{\n{row}"
            f"for (INDEX o{last} = 0; o{last} < m{last}; ++o{last}) {{\n{each}}}\n}}\n{report}"
        )
    else:
        body = f"{declare}const INDEX row = GLOBAL_ID / m{last}, o{last} = GLOBAL_ID % m{last};\n{row}{each}{report}"
    buffers = [writes("out", c.memory), writes("at", "i64"), reads("x", c.memory)]
    numbers = ["x_at", "rows", "per_item", *[f"{letter}{d}" for letter in "nm" for d in range(rank)]]
    if form.placed:
        buffers += [reads("starts", "i64"), writes("errors", "i64"), number("ticket", "u32")]
        numbers += ["starts_at", *[f"w{d}" for d in range(rank)]]
    name = f"{'placed' if form.placed else 'adaptive'}_max_pool{rank}d_{form.dtype.name}"
    return Source(name, (*buffers, *map(number, numbers)), body, wide=form.wide)


def _bounds(form: WindowForm, d: int) -> str:
    """Declare the first position of a window along a dim, and the position after it."""
    if not form.placed:
        return f"const INDEX lo{d} = o{d} * n{d} / m{d}, hi{d} = ((o{d} + 1) * n{d} + m{d} - 1) / m{d};\n"
    before = " + ".join([f"m{e}" for e in range(d)]) or "0"
    total = " + ".join([f"m{e}" for e in range(form.rank)])
    return (
        f"const i64 start{d} = starts[starts_at + rest * ({total}) + {before} + o{d}];\n"
        f"const u32 out{d} = (u64)start{d} > (u64)(n{d} - w{d});\n"
        f"if (out{d}) {{ wrong = 1; value = start{d}; dim = {d}; limit = (i64)(n{d} - w{d} + 1); }}\n"
        f"const INDEX lo{d} = out{d} ? 0 : (INDEX)start{d}, hi{d} = lo{d} + w{d};\n"
    )


def _reduction(form: WindowForm) -> str:
    """Declare ``best`` and ``found``: the first of the largest elements of a window, or the last NaN."""
    c, rank = CTYPES[form.dtype], form.rank
    last = rank - 1
    loops = "".join([f"for (INDEX i{d} = lo{d}; i{d} < hi{d}; ++i{d})\n" for d in range(last)])
    row = _flat([*[f"i{d}" for d in range(last)], "0"])
    declared = f"INDEX found = {_flat([f'lo{d}' for d in range(rank)])};\n{c.value} best = {c.load('from[found]')};\n"
    short = (
        f"{loops}for (INDEX i = {row} + lo{last}, end_of_row = {row} + hi{last}; i < end_of_row; ++i) {{\n"
        f"const {c.value} v = {c.load('from[i]')};\nconst u32 better = v > best || v != v;\n"
        "best = better ? v : best; found = better ? i : found;\n}\n"
    )
    if not form.serial:
        return declared + short
    bits = c.value[1:]
    key = f"key_{c.value}({c.load('of_row[i]')})"
    pointer = f"GLOBAL const {c.memory}* const of_row = from + ({row} + lo{last});\n"
    long = (
        f"u{bits} most = key_{c.value}(best);\nconst int length = (int)(hi{last} - lo{last});\n"
        f"{loops}{{\n{pointer}for (int i = 0; i < length; ++i) {{\n"
        f"const u{bits} k = {key}; most = k > most ? k : most;\n}}\n}}\n"
        f"const u32 nan = most == ~(u{bits})0;\nu32 searching = 1;\n"
        f"{loops}if (searching) {{\n{pointer}u32 hit = 0;\n"
        f"for (int i = 0; i < length; ++i) hit |= (u32)({key} == most);\n"
        f"for (int i = 0; hit && i < length; ++i) if ({key} == most) {{\n"
        f"found = {row} + lo{last} + (INDEX)i; if (!nan) {{ searching = 0; break; }}\n}}\n}}\n"
        f"best = {c.load('from[found]')};\n"
    )
    return f"{declared}if (hi{last} - lo{last} < {LONG}) {{\n{short}}} else {{\n{long}}}\n"


def _flat(positions: list[str]) -> str:
    """Return the number of an element in its plane."""
    flat = positions[0]
    for d, position in enumerate(positions[1:], 1):
        flat = f"({flat} * n{d} + {position})"
    return flat
