"""Interpolation at the points of a grid, and its gradients with respect to the input and to the grid.

A work-item finds the neighbours of some points and their weights, and then processes channel by channel. On serial
devices it has a block of points, which the compiler vectorises, on others a single one. The adjoint scatters: a
work-item fills whole planes in the order of the points, so results do not depend on the launch.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from candelabra.dtypes import dtype, float32

from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.types import CTYPES

LINEAR, NEAREST, CUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2
BLOCK = 64
"""Points of a work-item on serial devices."""


class GridForm(NamedTuple):
    """The properties that a kernel is compiled for."""

    dtype: dtype
    rank: int
    mode: int
    padding: int
    align_corners: bool
    serial: bool
    wide: bool

    @property
    def neighbours(self) -> list[tuple[int, ...]]:
        """The neighbours of a point: the number of the neighbour along each dim."""
        return list(product(range({LINEAR: 2, NEAREST: 1, CUBIC: 4}[self.mode]), repeat=self.rank))

    @property
    def name(self) -> str:
        """The part of the name of a kernel that tells forms apart."""
        return f"{self.rank}d_{self.dtype.name}_{self.mode}{self.padding}{int(self.align_corners)}"


# -- kernels ----------------------------------------------------------------------------------------------------------
def sampler(form: GridForm) -> Source:
    """Return the kernel of the interpolated values."""
    c = CTYPES[form.dtype]
    body = (
        f"{_points_of_block(form)}{_neighbours(form)}"
        "for (INDEX channel = 0; channel < channels; ++channel) {\n"
        f"GLOBAL const {c.memory}* const from = x + (x_at + (batch * channels + channel) * plane);\n"
        f"GLOBAL {c.memory}* const to = out + ((batch * channels + channel) * points + first);\n"
        f"INDEPENDENT\nfor (int j = 0; j < many; ++j) {{\n{c.value} sum = 0;\n"
        f"UNROLL\nfor (int k = 0; k < {len(form.neighbours)}; ++k) {{\n{_value(form)}sum += weight[k][j] * v;\n}}\n"
        f"to[j] = {c.store('sum')};\n}}\n}}\n"
    )
    parameters = (writes("out", c.memory), reads("x", c.memory), reads("grid", c.memory), number("x_at"))
    return _source("grid_sampler", form, parameters, body)


def grid_gradient(form: GridForm) -> Source:
    """Return the kernel of the gradient with respect to the grid."""
    c, rank = CTYPES[form.dtype], form.rank
    adds = "".join([f"sum{d} += product * slope{d}[k][j];\n" for d in range(rank)])
    declared = "".join([f"{c.value} sums{d}[{_block(form)}];\n" for d in range(rank)])
    cleared = "".join([f"sums{d}[j] = 0; " for d in range(rank)])
    stores = "".join([f"to[j * {rank} + {rank - 1 - d}] = {c.store(f'sums{d}[j]')};\n" for d in range(rank)])
    body = (
        f"{_points_of_block(form)}{_neighbours(form, slopes=True)}{declared}"
        f"for (int j = 0; j < many; ++j) {{ {cleared}}}\n"
        "for (INDEX channel = 0; channel < channels; ++channel) {\n"
        f"GLOBAL const {c.memory}* const from = x + (x_at + (batch * channels + channel) * plane);\n"
        f"GLOBAL const {c.memory}* const g = grad + (grad_at + (batch * channels + channel) * points + first);\n"
        f"INDEPENDENT\nfor (int j = 0; j < many; ++j) {{\n"
        + "".join([f"{c.value} sum{d} = sums{d}[j];\n" for d in range(rank)])
        + f"const {c.value} gradient = {c.load('g[j]')};\n"
        f"UNROLL\nfor (int k = 0; k < {len(form.neighbours)}; ++k) {{\n{_value(form)}"
        f"const {c.value} product = gradient * v;\n{adds}}}\n"
        + "".join([f"sums{d}[j] = sum{d};\n" for d in range(rank)])
        + f"}}\n}}\nGLOBAL {c.memory}* const to = out + (batch * points + first) * {rank};\n"
        f"for (int j = 0; j < many; ++j) {{\n{stores}}}\n"
    )
    parameters = (
        writes("out", c.memory), reads("grad", c.memory), reads("x", c.memory), reads("grid", c.memory),
        number("grad_at"), number("x_at"),
    )  # fmt: skip
    return _source("grid_sampler_grid_gradient", form, parameters, body)


def adjoint(form: GridForm) -> Source:
    """Return the kernel of the gradient with respect to the input, for serial devices: planes of several channels."""
    c, memory = CTYPES[form.dtype], CTYPES[float32 if form.dtype.is_half else form.dtype].memory
    body = (
        "const INDEX batch = GLOBAL_ID / groups, begin = GLOBAL_ID % groups * per_item;\n"
        "const INDEX end = begin + per_item < channels ? begin + per_item : channels;\n"
        f"GLOBAL {memory}* const planes = out + (batch * channels + begin) * plane;\n"
        "for (INDEX i = 0; i < (end - begin) * plane; ++i) planes[i] = 0;\n"
        f"for (INDEX first = 0; first < points; first += {BLOCK}) {{\n"
        f"const int many = (int)(points - first < {BLOCK} ? points - first : {BLOCK});\n"
        f"{_neighbours(form)}"
        "for (INDEX channel = begin; channel < end; ++channel) {\n"
        f"GLOBAL {memory}* const to = out + (batch * channels + channel) * plane;\n"
        f"GLOBAL const {c.memory}* const g = grad + (grad_at + (batch * channels + channel) * points + first);\n"
        f"for (int j = 0; j < many; ++j) {{\nconst {c.value} gradient = {c.load('g[j]')};\n"
        f"UNROLL\nfor (int k = 0; k < {len(form.neighbours)}; ++k)\n"
        "if (place[k][j] >= 0) to[place[k][j]] += weight[k][j] * gradient;\n}\n}\n}\n"
    )
    parameters = (
        writes("out", memory), reads("grad", c.memory), reads("grid", c.memory), number("grad_at"),
        number("groups"), number("per_item"),
    )  # fmt: skip
    return _source("grid_sampler_adjoint", form, parameters, body)


def _source(name: str, form: GridForm, parameters: tuple[object, ...], body: str) -> Source:
    sizes = [f"n{d}" for d in range(form.rank)]
    numbers = map(number, ("grid_at", "channels", "points", "blocks", "plane", *sizes))
    return Source(f"{name}_{form.name}", (*parameters, *numbers), body, wide=form.wide)  # type: ignore[arg-type]


# -- points -----------------------------------------------------------------------------------------------------------
def _block(form: GridForm) -> int:
    return BLOCK if form.serial else 1


def _points_of_block(form: GridForm) -> str:
    """Declare the block of a work-item: its element of the batch, its first point, and their number."""
    if not form.serial:
        return "const INDEX batch = GLOBAL_ID / points, first = GLOBAL_ID % points;\nconst int many = 1;\n"
    return (
        f"const INDEX batch = GLOBAL_ID / blocks, first = GLOBAL_ID % blocks * {BLOCK};\n"
        f"const int many = (int)(points - first < {BLOCK} ? points - first : {BLOCK});\n"
    )


def _value(form: GridForm) -> str:
    """Declare ``v``, the element of neighbour ``k`` of point ``j``, or 0 outside of the input."""
    c = CTYPES[form.dtype]
    return f"const {_position_type(form)} i = place[k][j];\nconst {c.value} v = i < 0 ? 0 : {c.load('from[i]')};\n"


def _position_type(form: GridForm) -> str:
    """Return the type of the number of an element in its plane."""
    return "i64" if form.wide else "int"


def _neighbours(form: GridForm, slopes: bool = False) -> str:
    """Declare and compute ``place[k][j]``, -1 outside of the input, and ``weight[k][j]``, of each neighbour and point.

    With ``slopes`` also ``slope0[k][j]`` and so on: the derivatives of the weight in the coordinate of each dim.
    """
    value, place, rank, many = CTYPES[form.dtype].value, _position_type(form), form.rank, len(form.neighbours)
    block = _block(form)
    declared = f"{place} place[{many}][{block}];\n{value} weight[{many}][{block}];\n"
    declared += "".join([f"{value} slope{d}[{many}][{block}];\n" for d in range(rank)]) if slopes else ""
    point = f"(grid_at + (batch * points + first + (INDEX)j) * {rank})"
    each = "".join([_along(form, d, point, slopes) for d in range(rank)])
    for k, neighbour in enumerate(form.neighbours):
        taps = list(enumerate(neighbour))
        inside = " && ".join([f"in{d}_{i}" for d, i in taps])
        flat = f"({place})p0_{neighbour[0]}"
        for d, i in taps[1:]:
            flat = f"({flat} * ({place})n{d} + ({place})p{d}_{i})"
        each += f"place[k{k}][j] = {inside} ? {flat} : -1;\n".replace(f"k{k}", str(k))
        each += f"weight[{k}][j] = {' * '.join([f'w{d}_{i}' for d, i in taps])};\n"
        if slopes:
            for d in range(rank):
                factors = [f"s{e}_{i}" if e == d else f"w{e}_{i}" for e, i in taps]
                each += f"slope{d}[{k}][j] = missing{d} ? 0 : {' * '.join(factors)};\n"
    return f"{declared}for (int j = 0; j < many; ++j) {{\n{each}}}\n"


def _along(form: GridForm, d: int, point: str, slopes: bool) -> str:
    """Declare the neighbours along a dim: places ``p{d}_{i}``, whether they are inside, weights and slopes."""
    c = CTYPES[form.dtype]
    t, size = c.value, f"({c.value})n{d}"
    position = f"(c{d} + 1) / 2 * ({size} - 1)" if form.align_corners else f"((c{d} + 1) * {size} - 1) / 2"
    scale = f"({size} - 1) / 2" if form.align_corners else f"{size} / 2"
    lines = [
        f"{t} c{d} = {c.load(f'grid[{point} + {form.rank - 1 - d}]')};",
        f"const u32 missing{d} = c{d} != c{d};",
        f"c{d} = missing{d} ? ({t})-1 : c{d};",
        f"{t} x{d} = {position};",
    ]
    if form.mode == CUBIC:
        lines += [f"const {t} f{d} = floor_{t}(x{d}), t{d} = x{d} - f{d};"]
        lines += _cubic(form, d, scale, slopes)
    else:
        lines += [f"{t} scale{d} = {scale};", *_padded(form, d, f"x{d}", f"scale{d}")]
        if form.mode == NEAREST:
            lines += [f"const {t} q{d}_0 = round_{t}(x{d}), w{d}_0 = 1;"]
        else:
            lines += [
                f"const {t} q{d}_0 = floor_{t}(x{d}), q{d}_1 = q{d}_0 + 1;",
                f"const {t} w{d}_0 = q{d}_1 - x{d}, w{d}_1 = x{d} - q{d}_0;",
            ]
            lines += [f"const {t} s{d}_0 = -scale{d}, s{d}_1 = scale{d};"] if slopes else []
    taps = {LINEAR: 2, NEAREST: 1, CUBIC: 4}[form.mode]
    for i in range(taps):
        lines += [
            f"const u32 in{d}_{i} = q{d}_{i} >= 0 && q{d}_{i} <= {size} - 1;",
            f"const {_position_type(form)} p{d}_{i} = ({_position_type(form)})q{d}_{i};",
        ]
    return "\n".join(lines) + "\n"


def _padded(form: GridForm, d: int, x: str, scale: str = "") -> list[str]:
    """Replace a position outside of the input as the padding mode defines, and multiply ``scale`` by the derivative."""
    t = CTYPES[form.dtype].value
    size = f"({t})n{d}"
    if form.padding == ZEROS:
        return [f"{x} = {x} < -2 ? ({t})-2 : {x} > {size} + 1 ? {size} + 1 : {x};"]
    lines = []
    if form.padding == REFLECTION:
        low, span = ("0", f"({size} - 1)") if form.align_corners else (f"({t})-1 / 2", size)
        lines += [
            "{",
            f"const {t} span = {span}, low = {low}, away = {x} < low ? low - {x} : {x} - low;",
            f"{t} folded = span > 0 ? away - 2 * span * floor_{t}(away / (2 * span)) : 0;",
            "const u32 back = folded > span; folded = back ? 2 * span - folded : folded;",
            *([f"{scale} = back != ({x} < low) ? -{scale} : {scale};"] if scale else []),
            f"{x} = span > 0 ? folded + low : {x} * 0;",
            f"{x} = {x} - {x} == 0 ? {x} : 0;",
            "}",
        ]
    if scale:
        lines += [f"{scale} = {x} > 0 && {x} < {size} - 1 ? {scale} : 0;"]
    return [*lines, f"{x} = {x} < 0 ? 0 : {x} > {size} - 1 ? {size} - 1 : {x};"]


def _cubic(form: GridForm, d: int, scale: str, slopes: bool) -> list[str]:
    """Declare four neighbours along a dim, weighted by Keys' kernel with A = -0.75."""
    t = CTYPES[form.dtype].value
    lines = []
    for i in range(4):
        lines += [f"{t} q{d}_{i} = f{d} + {i - 1};", *_padded(form, d, f"q{d}_{i}")]
    distances = (f"(t{d} + 1)", f"t{d}", f"(1 - t{d})", f"(2 - t{d})")
    a = f"(({t})-3 / 4)"
    for i, u in enumerate(distances):
        if i in (0, 3):
            weight, slope = (
                f"(({a} * {u} - 5 * {a}) * {u} + 8 * {a}) * {u} - 4 * {a}",
                (f"(3 * {a} * {u} - 10 * {a}) * {u} + 8 * {a}"),
            )
        else:
            weight, slope = (
                f"(({a} + 2) * {u} - ({a} + 3)) * {u} * {u} + 1",
                (f"(3 * ({a} + 2) * {u} - 2 * ({a} + 3)) * {u}"),
            )
        lines += [f"const {t} w{d}_{i} = {weight};"]
        lines += [f"const {t} s{d}_{i} = {'-' if i > 1 else ''}({slope}) * ({scale});"] if slopes else []
    return lines
