"""Windows over the last dims of an array: the largest element of each with its place, sums, and the adjoint of sums.

All of them gather: an element of the result is folded by one work-item, position by position in C order, so that
results depend on nothing but the values. Where windows are small their geometry is part of the text, and the compiler
unrolls them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from candelabra.dtypes import COMPLEX, FLOATING, dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import WIDE, collapsed
from candelabra_clike.source import Parameter, Source, number, reads, writes
from candelabra_clike.templates import walking
from candelabra_clike.templates.walks import reach
from candelabra_clike.types import CTYPES

GRAIN = 2048
"""Elements of the result that a work-item which is a loop makes."""
SMALL = 16
"""Windows of no more positions are part of the text, where there is enough to do."""

LANES = 8
"""Rows of fewer elements are put into one vector, partly empty."""


class Geometry(NamedTuple):
    """Windows: their sizes, the steps from one to the next, the padding before the first, the steps within."""

    window: Shape
    stride: Shape
    padding: Shape
    dilation: Shape

    @property
    def named(self) -> Iterator[tuple[str, int]]:
        """What the texts call these numbers: ``w0 w1 …``, ``t0 …``, ``q0 …``, ``d0 …``."""
        for letter, values in zip("wtqd", self, strict=True):
            for dim, value in enumerate(values):
                yield f"{letter}{dim}", value


class Fold(NamedTuple):
    """What becomes of the elements ``v`` of a window. ``first``: variables; ``more``: one element inside.

    ``near`` and ``nearer`` are the same for windows that lie inside as a whole, whose first element is ``v`` in
    ``near``; there ``AT`` is the element's place from the window's first. ``last`` stores.
    """

    name: str
    first: str
    more: str
    near: str
    nearer: str
    last: str
    places: bool = False
    adjoint: bool = False


class Form(NamedTuple):
    """What a kernel is compiled for. ``unit``: elements along the last dim lie side by side."""

    fold: Fold
    dtype: dtype
    rank: int
    lead: int
    unit: bool
    serial: bool
    wide: bool
    fixed: Geometry | None
    apart: bool
    """Whether something lies between the elements of a window."""
    short: bool
    """Whether rows of the result are shorter than vectors."""


class Planned(NamedTuple):
    """A kernel for arrays of certain shapes and strides, and what it is given after buffers and offset."""

    launch: Launch
    items: int
    numbers: tuple[int, ...]


def largest(d: dtype, places: bool) -> Fold:
    """The first of the largest, but the last NaN; -1 and the lowest number where a window has nothing inside."""
    c = CTYPES[d]
    above = "v > best || v != v" if d.category == FLOATING else "v > best"
    keep = "found = better ? ({at}) : found; " if places else ""
    more = f"const u32 better = none || {above}; best = better ? v : best; none = 0; "
    nearer = f"const u32 better = {above}; best = better ? v : best; "
    ends = "at[to] = found == (INDEX)-1 ? (i64)-1 : (i64)found; " if places else ""
    place = f"INDEX found = {'{at}'}; " if places else ""
    return Fold(
        f"max_pool{'' if places else '_values'}_{d.name}",
        f"{c.value} best = LOWEST_{c.value.upper()}; u32 none = 1; {place.format(at='(INDEX)-1')}",
        more + keep.format(at="FLAT"),
        f"{c.value} best = v; {place.format(at=0)}",
        nearer + keep.format(at="AT"),
        f"out[to] = {c.store('best')}; {ends}",
        places,
    )


def total(d: dtype, adjoint: bool = False) -> Fold:
    """The sum of what lies inside; that of integers wraps around."""
    c = CTYPES[d]
    if d.category == COMPLEX:
        first, add = f"{c.value} sum = {c.value.upper()}(0, 0);", "sum.x += v.x; sum.y += v.y;"
    elif d.category == FLOATING:
        first, add = f"{c.value} sum = 0;", "sum += v;"
    else:
        first, add = f"u{c.value[1:]} sum = 0;", f"sum += (u{c.value[1:]})v;"
    name = f"sum_pool{'_adjoint' if adjoint else ''}_{d.name}"
    return Fold(name, first, add, first, add, f"out[to] = {c.store('sum')};", adjoint=adjoint)


# -- plans ------------------------------------------------------------------------------------------------------------
def pool(x: StridedArray, geometry: Geometry, extents: Shape, fold: Fold, outs: Sequence[StridedArray]) -> None:
    """Fold the windows of ``x`` into contiguous results, whose last dims are ``extents``."""
    if not outs[0].size:
        return
    plan = planned(x.engine, x.shape, x.strides, x.dtype, geometry, extents, fold, x.offset >= WIDE // 2)
    plan.launch(plan.items, *[out.buffer for out in outs], x.buffer, x.offset, *plan.numbers)


@lru_cache(4096)
def planned(
    engine: Engine, shape: Shape, strides: Shape, d: dtype, geometry: Geometry, extents: Shape, fold: Fold, far: bool
) -> Planned:
    """The kernel for a call, compiled."""
    rank = len(extents)
    lead = len(shape) - rank
    planes, (steps,) = collapsed(shape[:lead], (strides[:lead],))
    rows = prod(planes) * prod(extents[:-1])
    size = rows * extents[-1]
    # Places outside count too: down to the padding below 0, which wraps around, and up to what hangs over.
    margin = sum(map(prod, zip(geometry.window, geometry.dilation))) + sum(geometry.padding)
    furthest = max(size, reach(shape, strides), prod(shape[lead:]), *[m * t for m, t in zip(extents, geometry.stride)])
    wide = far or furthest + margin >= WIDE // 2
    serial = engine.traits.serial
    fixed = geometry if prod(geometry.window) <= SMALL and size >= GRAIN else None
    form = Form(
        fold, d, rank, len(planes), strides[-1] == 1, serial, wide, fixed, any(k > 1 for k in geometry.dilation),
        fixed is not None and extents[-1] < LANES,
    )  # fmt: skip
    numbers = (*planes, *extents, *shape[lead:], *steps, *strides[lead:])
    if fixed is None:
        numbers += tuple(value for _, value in geometry.named)
    launch = engine.compile(text(form))
    if not serial:
        return Planned(launch, size, numbers)
    pieces = max(1, min(size // GRAIN, 16 * engine.traits.compute_units))
    together = -(-rows // pieces)
    low, high = inside(geometry, shape[-1], extents[-1])
    return Planned(launch, -(-rows // together), (rows, together, low, high, *numbers))


def inside(geometry: Geometry, size: int, windows: int) -> tuple[int, int]:
    """The first window along the last dim that lies inside, and the one after the last that does."""
    window, stride, padding, dilation = (row[-1] for row in geometry)
    low = min(-(-padding // stride), windows)
    high = (size - 1 + padding - (window - 1) * dilation) // stride + 1
    return low, min(max(high, low), windows)


# -- texts ------------------------------------------------------------------------------------------------------------
def text(form: Form) -> Source:
    """A work-item makes some rows of the result, or an element."""
    fold, last = form.fold, form.rank - 1
    memory = CTYPES[form.dtype].memory
    own = ("rows", "together", "low", "high") if form.serial else ()
    geometry = () if form.fixed else tuple([f"{letter}{d}" for letter in "wtqd" for d in range(form.rank)])
    parameters: tuple[Parameter, ...] = (
        writes("out", memory), *([writes("at", "i64")] if fold.places else []), reads("x", memory),
        number("x_at"), *map(number, own), *walking.sizes(form.lead, "l"), *walking.sizes(form.rank, "m"),
        *walking.sizes(form.rank), *walking.strides(("x",), form.lead, "_l"), *walking.strides(("x",), form.rank),
        *map(number, geometry),
    )  # fmt: skip
    fixed = "".join([f"const INDEX {n} = {v};\n" for n, v in (form.fixed.named if form.fixed else ())])
    one = f"const INDEX to = row * m{last} + o{last};\n{element(form)}"
    if form.serial:
        body = (
            f"{fixed}const INDEX begin = GLOBAL_ID * together;\n"
            "const INDEX end = begin + together < rows ? begin + together : rows;\n"
            f"for (INDEX row = begin; row < end; ++row) {{\n{where(form)}{row(form, one)}}}"
        )
    else:
        body = (
            f"{fixed}const INDEX row = GLOBAL_ID / m{last}, o{last} = GLOBAL_ID % m{last};\n{where(form)}{one}"
        )  # fmt: skip
    name = f"{fold.name}_{form.rank}d{'_apart' if form.apart else ''}{'_fixed' if form.fixed else ''}"
    return Source(name, parameters, body, group=1 if form.serial else None, wide=form.wide)


def where(form: Form) -> str:
    """Of the row ``row`` of the result: its places ``o0 …`` along all dims but the last, and its plane ``x_row``."""
    lines = ["INDEX plane = row;"]
    for d in range(form.rank - 2, -1, -1):
        lines.append(f"const INDEX o{d} = plane % m{d}; plane /= m{d};")
    return "\n".join(lines) + "\n" + walking.starts(("x",), form.lead, "plane", "l", "_l")


def element(form: Form) -> str:
    """One element of the result, from the elements that lie inside."""
    fold, c = form.fold, CTYPES[form.dtype]
    lines, flat = [fold.first], "0"
    for d in range(form.rank):
        lines.append(positions(form, d))
        flat = f"({flat}) * n{d} + i{d}" if d else "i0"
    place = " + ".join(["x_row", *[f"i{d} * {step(form, d)}" for d in range(form.rank)]])
    lines.append(f"const {c.value} v = {c.load(f'x[{place}]')};\n{fold.more.replace('FLAT', flat)}")
    return "\n".join([*lines, "}}" * form.rank, fold.last]) + "\n"


def positions(form: Form, d: int) -> str:
    """The loop along a dim over those positions ``k`` of a window that lie inside: at ``i`` in what is read."""
    if not form.fold.adjoint:
        inside = f"const INDEX i{d} = o{d} * t{d} + k{d} * d{d} - q{d};\nif (i{d} < n{d}) {{"
    elif form.apart:
        inside = (
            f"const INDEX u{d} = o{d} + q{d} - k{d} * d{d}, i{d} = u{d} / t{d};\n"
            f"if (i{d} * t{d} == u{d} && i{d} < n{d}) {{"
        )
    else:  # every t-th position is that of a window, the next position that of the window before
        start = f"INDEX i{d} = (o{d} + q{d}) / t{d}, k{d} = (o{d} + q{d}) % t{d}"
        return f"for ({start}; k{d} < w{d}; k{d} += t{d}, --i{d}) {{ if (i{d} < n{d}) {{"
    return f"for (INDEX k{d} = 0; k{d} < w{d}; ++k{d}) {{\n{inside}"


def step(form: Form, d: int) -> str:
    """The stride of ``x`` along a dim."""
    return "1" if form.unit and d == form.rank - 1 else f"x_s{d}"


def row(form: Form, one: str) -> str:
    """A row of the result: the windows that lie inside in a loop without conditions, the others one by one."""
    last = form.rank - 1
    if form.fold.adjoint:
        each = f"const INDEX o{last} = (INDEX)j;\n{one}"
        return f"const int many = (int)m{last};\nINDEPENDENT\nfor (int j = 0; j < many; ++j) {{\n{each}}}\n"
    outer = [f"o{d} * t{d} - q{d} < n{d} && o{d} * t{d} - q{d} + (w{d} - 1) * d{d} < n{d}" for d in range(last)]
    return (
        f"const u32 good = {' && '.join(outer) or '1'};\n"
        f"const INDEX from = good ? low : m{last}, until = good ? high : m{last};\n"
        f"for (INDEX o{last} = 0; o{last} < m{last}; ++o{last}) {{\n"
        f"if (o{last} == from) o{last} = until;\nif (o{last} < m{last}) {{\n{one}}}\n}}\n"
        f"if (from < until) {{\n{near(form)}}}\n"
    )


def near(form: Form) -> str:
    """The windows ``low`` to ``high`` of a row, which lie inside as a whole: all with the same code."""
    fold, c, last = form.fold, CTYPES[form.dtype], form.rank - 1
    outer = [f"(o{d} * t{d} - q{d}) * {step(form, d)}" for d in range(last)]
    start = " + ".join(["x_row", *outer, f"(low * t{last} - q{last}) * {step(form, last)}"])
    places = [f"(o{d} * t{d} - q{d}) * {plane_step(d, last)}" for d in range(last)]
    first = " + ".join([*places, f"low * t{last} - q{last}"])
    along = f"j * ({'i64' if form.wide else 'int'})(t{last} * {step(form, last)})"
    within = " + ".join([f"k{d} * d{d} * {step(form, d)}" for d in range(form.rank)])
    at = " + ".join([f"k{d} * d{d} * {plane_step(d, last)}" for d in range(form.rank)])
    unroll = "UNROLL\n" if form.fixed else ""
    loops = "".join([f"{unroll}for (INDEX k{d} = 0; k{d} < w{d}; ++k{d})\n" for d in range(form.rank)])
    stores = f"GLOBAL {c.memory}* const out_near = out + (row * m{last} + low);\n"
    ending = fold.last.replace("out[to]", "out_near[j]")
    if fold.places:
        stores += f"GLOBAL i64* const at_near = at + (row * m{last} + low);\nconst INDEX first = {first};\n"
        ending = ending[: ending.index("at[to]")] + f"at_near[j] = (i64)(first + (INDEX)j * t{last} + found);"
    return (
        f"GLOBAL const {c.memory}* const from_here = x + ({start});\n{stores}"
        "const int many = (int)(high - low);\n"
        f"INDEPENDENT{'_FEW' if form.short else ''}\nfor (int j = 0; j < many; ++j) {{\n"
        f"GLOBAL const {c.memory}* const p = from_here + {along};\n"
        f"{c.value} v = {c.load('p[0]')}; {fold.near}\n"
        f"{loops}{{ v = {c.load(f'p[{within}]')}; {fold.nearer.replace('AT', at)} }}\n{ending}\n}}\n"
    )


def plane_step(d: int, last: int) -> str:
    """How many elements of a plane lie between neighbours along a dim."""
    return " * ".join([f"n{e}" for e in range(d + 1, last + 1)]) or "1"
