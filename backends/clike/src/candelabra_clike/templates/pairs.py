"""Kernels over all pairs of rows of one matrix: a reduction of each pair, and the gradient of the rows.

The rows are *points*. Their coordinates are *packed*: those of ``LANES`` adjacent points are adjacent. So a vector has
one coordinate of several points, however few coordinates there are, and no vector is reduced. Pairs of points i < j are
numbered row by row of the upper triangle of their matrix.

On serial devices a work-item computes every ``GLOBAL_SIZE``-th stripe of points, so that all have similar numbers of
pairs. On other devices there is a work-item for each pair, or for each element of the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from candelabra.dtypes import dtype

from candelabra_clike.language import Value, Variable, declared, parameters_of, text
from candelabra_clike.source import KernelParameter, Source, number, reads, writes
from candelabra_clike.templates.rows.program import RowProgram, RowReduction, RowTypes
from candelabra_clike.types import CTYPES, CType

LANES: Final = 16
"""Points whose coordinates are adjacent: the elements of the widest vectors of float32."""
STRETCH: Final = 32
"""Coordinates that are accumulated before the totals are updated."""
POINTS: Final = 64
"""Points whose slopes are accumulated before the totals are updated. A multiple of ``LANES``."""
EACH_LANE: Final = f"INDEPENDENT\nfor (int l = 0; l < {LANES}; ++l) "


def _pair_index(i: str, j: str) -> str:
    """Return the number of the pair of points i < j."""
    return f"{i} * (2u * points - {i} - 1) / 2u + {j} - {i} - 1"


def _coordinates(point: str) -> str:
    """Return the address of the first coordinate of a point. The next one is ``LANES`` elements later."""
    return f"packed + ({point} / {LANES}u * {LANES}u * depth + {point} % {LANES}u)"


# -- packing ----------------------------------------------------------------------------------------------------------
def _parameters(c: CType, written: str, *read: str) -> tuple[KernelParameter, ...]:
    """Return the parameters of a kernel: an array that it writes, the packed points, the matrix of points, arrays that
    it reads; their offsets, the strides of the matrix, and its sizes.
    """
    return (
        *([writes(written, c.memory)] if written else []), writes("packed", c.value), reads("x", c.memory),
        *[reads(n, c.memory) for n in read], *[number(f"{n}_at") for n in ("x", *read)],
        *map(number, ("x_s0", "x_s1", "points", "depth")),
    )  # fmt: skip


def _pack(c: CType, block: str) -> str:
    """Return statements that pack a block of points. The lanes after the last point are 0."""
    element = c.load("x[x_at + (first + l) * x_s0 + c * x_s1]")
    return (
        f"const INDEX first = ({block}) * {LANES}u, left = points - first;\n"
        f"GLOBAL {c.value}* const to = packed + first * depth;\n"
        f"for (INDEX l = 0; l < {LANES}u; ++l) for (INDEX c = 0; c < depth; ++c)\n"
        f"to[c * {LANES}u + l] = l < left ? {element} : 0;\n"
    )


@lru_cache(None)
def packing(d: dtype, wide: bool) -> Source:
    """Return the kernel in which a work-item packs a block of points."""
    return Source(f"pack_points_{d.name}", _parameters(CTYPES[d], ""), _pack(CTYPES[d], "GLOBAL_ID"), 1, wide)


def _pack_if_alone(c: CType) -> str:
    """Return statements by which the only work-item packs all points, which saves a launch."""
    return f"if (GLOBAL_SIZE == 1) for (INDEX b = 0; b * {LANES}u < points; ++b) {{\n{_pack(c, 'b')}}}\n"


# -- reductions -------------------------------------------------------------------------------------------------------
class PairReduction:
    """The kernel of a row program of two operands, in which no reduction reads the result of an earlier one for its
    elements. The last result is stored.

    ``rows`` is the number of points that are paired with ``LANES`` others at a time on serial devices.
    """

    def __init__(self, program: RowProgram, d: dtype, float64: bool, rows: int) -> None:
        self.program = program
        self.dtype = d
        self.element = CTYPES[d]
        self.type = self.element.value
        self.types = RowTypes(self.type, "f64" if float64 else "f32")
        self.rows = rows

    def source(self, serial: bool, wide: bool) -> Source:
        """Return the kernel: one work-item for several stripes on ``serial`` devices, otherwise one for a pair."""
        parameters = _parameters(self.element, "out")
        parameters += tuple([number(f"s{i}", self.type) for i in range(self.program.numbers)])
        body = self._stripes() if serial else self._pair()
        name = f"pairs_{self.program.name}_{self.dtype.name}"
        return Source(name, parameters, body, 1 if serial else None, wide, self.program.contract)

    def _lines(self, line: Callable[[int, RowReduction], str]) -> str:
        return "".join(f"{line(i, p)}\n" for i, p in enumerate(self.program.passes))

    def _declare(self, total: bool, name: str, size: str = "") -> str:
        """Declare totals, or the lanes that are added to them, for each reduction, with the identity unless they are
        arrays.
        """

        def line(i: int, p: RowReduction) -> str:
            type = p.operation.total(self.types) if total else self.type
            return f"{type} {name.format(i)}{size or f' = {p.operation.identity(self.type)}'};"

        return self._lines(line)

    def _clear(self, name: str) -> str:
        return self._lines(lambda i, p: f"{name.format(i)} = {p.operation.identity(self.type)};")

    def _accumulate(self, lane: str) -> str:
        """Combine the elements of coordinates ``va`` and ``vb`` with the lanes of each reduction."""

        def line(i: int, p: RowReduction) -> str:
            element = f"({text(self.program.element(i, self.type))})"
            return f"{lane.format(i)} = {p.operation.combine(self.type, lane.format(i), element)};"

        return self._lines(line)

    def _to_totals(self, total: str, lane: str) -> str:
        def line(i: int, p: RowReduction) -> str:
            wide = p.operation.total(self.types)
            return f"{total.format(i)} = {p.operation.combine(wide, total.format(i), f'({wide}){lane.format(i)}')};"

        return self._lines(line)

    def _results(self, total: str) -> str:
        """Declare the results ``r0`` …"""
        return self._lines(
            lambda i, _: f"const {self.type} r{i} = {text(self.program.result(i, self.types, total.format(i)))};"
        )

    @property
    def _stored(self) -> str:
        return f"r{len(self.program.passes) - 1}"

    def _stripes(self) -> str:
        rows, type = range(self.rows), self.type
        steps = "".join(
            f"{{ const {type} va = own[c * {LANES}u + {r}u];\n{EACH_LANE}{{\n"
            f"const {type} vb = other[c * {LANES}u + l];\n{self._accumulate(f'lane{{}}_{r}[l]')}}} }}\n"
            for r in rows
        )
        return (
            f"{_pack_if_alone(self.element)}for (INDEX first = GLOBAL_ID * {self.rows}u; first + 1 < points; "
            f"first += GLOBAL_SIZE * {self.rows}u) {{\nGLOBAL const {type}* const own = {_coordinates('first')};\n"
            f"for (INDEX block = (first + 1) / {LANES}u * {LANES}u; block < points; block += {LANES}u) {{\n"
            f"GLOBAL const {type}* const other = packed + block * depth;\n"
            f"{self._declare(True, 'total{}', f'[{self.rows * LANES}]')}"
            f"for (int l = 0; l < {self.rows * LANES}; ++l) {{\n{self._clear('total{}[l]')}}}\n"
            f"for (INDEX begin = 0; begin < depth; begin += {STRETCH}u) {{\n"
            f"const INDEX end = depth - begin < {STRETCH}u ? depth : begin + {STRETCH}u;\n"
            f"{''.join(self._declare(False, f'lane{{}}_{r}', f'[{LANES}]') for r in rows)}"
            f"{EACH_LANE}{{\n{''.join(self._clear(f'lane{{}}_{r}[l]') for r in rows)}}}\n"
            f"for (INDEX c = begin; c < end; ++c) {{\n{steps}}}\n{EACH_LANE}{{\n"
            f"{''.join(self._to_totals(f'total{{}}[{r * LANES} + l]', f'lane{{}}_{r}[l]') for r in rows)}}}\n}}\n"
            f"for (INDEX i = first; i < first + {self.rows}u; ++i) {{\n"
            f"const INDEX from = i < block ? block : i + 1;\n"
            f"const INDEX to = points - block < {LANES}u ? points : block + {LANES}u;\n"
            f"{type} result[{LANES}];\n{EACH_LANE}{{\n{self._results(f'total{{}}[(i - first) * {LANES}u + l]')}"
            f"result[l] = {self._stored};\n}}\n"
            f"for (INDEX j = from; j < to; ++j) out[{_pair_index('i', 'j')}] = "
            f"{self.element.store('result[j - block]')};\n}}\n}}\n}}\n"
        )

    def _pair(self) -> str:
        """Return the body for one pair. The triangle is folded into a rectangle, whose rows have the pairs of a point,
        then those of another one as far from the end.
        """
        type = self.type
        return (
            "const INDEX width = (points - 1) | 1u, r = GLOBAL_ID / width, q = GLOBAL_ID % width;\n"
            "if (r < points / 2u) {\nconst INDEX length = points - 1 - r, folded = q >= length;\n"
            "const INDEX i = folded ? points / 2u * 2u - 1 - r : r, j = i + 1 + (folded ? q - length : q);\n"
            f"GLOBAL const {type}* const own = {_coordinates('i')};\n"
            f"GLOBAL const {type}* const other = {_coordinates('j')};\n{self._declare(True, 'total{}')}"
            f"for (INDEX begin = 0; begin < depth; begin += {STRETCH}u) {{\n"
            f"const INDEX end = depth - begin < {STRETCH}u ? depth : begin + {STRETCH}u;\n"
            f"{self._declare(False, 'lane{}')}for (INDEX c = begin; c < end; ++c) {{\n"
            f"const {type} va = own[c * {LANES}u], vb = other[c * {LANES}u];\n{self._accumulate('lane{}')}}}\n"
            f"{self._to_totals('total{}', 'lane{}')}}}\n{self._results('total{}')}"
            f"out[{_pair_index('i', 'j')}] = {self.element.store(self._stored)};\n}}\n"
        )


# -- gradients --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class PairGradient:
    """The gradient of points: for each coordinate, the sum of the slopes of the pairs with all other points.

    The ``weight`` of a pair is a function of ``g``, the gradient of its result, and ``d``, the result. The ``slope`` is
    one of the weight ``w``, of ``d``, and of the coordinates ``a`` of the point and ``b`` of the other one. Both may
    ask for the numbers ``s0`` …, as the expressions of row programs do. Raises ``ExpressionError`` for a wrong one.
    """

    name: str
    weight: Callable[..., Value]
    slope: Callable[..., Value]
    numbers: int = 0
    types: tuple[str, ...] = ("f32", "f64")

    def __post_init__(self) -> None:
        for type in self.types:
            self.expressions(type)

    def expressions(self, type: str) -> tuple[str, str]:
        """Return the texts of weight and slope, of variables ``vg``, ``vd``, ``vw``, ``va`` and ``vb``."""
        known = {n: Variable(type, f"v{n}") for n in "gdwab"}
        known |= {f"s{i}": Variable(type, f"s{i}") for i in range(self.numbers)}
        name = f"{self.name!r} in {type}"
        return text(declared(name, self.weight, known, type)), text(declared(name, self.slope, known, type))

    @property
    def slope_reads_result(self) -> bool:
        """Whether the slope depends on the result of the pair in other ways than by the weight."""
        return "d" in parameters_of(self.slope)

    @property
    def scratch(self) -> int:
        """The values of scratch memory for each point that a serial work-item needs."""
        return LANES * (2 if self.slope_reads_result else 1)

    def source(self, d: dtype, float64: bool, wide: bool, coordinates: int | None) -> Source:
        """Return the kernel: one work-item for several blocks of points, or for each element of the gradient if
        ``coordinates`` is None. Otherwise they are the coordinates that are summed at a time, a power of 2.
        """
        c, serial = CTYPES[d], coordinates is not None
        body = _GradientSource(self, c, "f64" if float64 else c.value)
        parameters = (
            *([writes("scratch", c.value)] if serial else []), *_parameters(c, "out", "g", "d"),
            *[number(f"s{i}", c.value) for i in range(self.numbers)],
        )  # fmt: skip
        name = f"pairs_{self.name}_backward_{d.name}"
        statements = body.element() if coordinates is None else body.blocks(coordinates)
        return Source(name, parameters, statements, 1 if serial else None, wide, contract=True)


class _GradientSource:
    """The bodies of the kernel of a gradient. ``total`` is the type of totals."""

    def __init__(self, gradient: PairGradient, c: CType, total: str) -> None:
        self.c = c
        self.type = c.value
        self.total = total
        self.weight, self.slope = gradient.expressions(c.value)
        self.slope_reads_result = gradient.slope_reads_result

    def _load_pair(self, index: str) -> str:
        """Declare the gradient and the result of a pair."""
        return (
            f"const INDEX pair = {index};\n"
            f"const {self.type} vg = {self.c.load('g[g_at + pair]')}, vd = {self.c.load('d[d_at + pair]')};\n"
        )

    def element(self) -> str:
        """Return the body for one element of the gradient."""
        type = self.type
        return (
            "const INDEX i = GLOBAL_ID / depth, c = GLOBAL_ID % depth;\n"
            f"if (i < points) {{\nconst {type} va = ({_coordinates('i')})[c * {LANES}u];\n{self.total} total = 0;\n"
            f"for (INDEX begin = 0; begin < points; begin += {POINTS}u) {{\n"
            f"const INDEX end = points - begin < {POINTS}u ? points : begin + {POINTS}u;\n{type} lane = 0;\n"
            "for (INDEX j = begin; j < end; ++j) if (j != i) {\n"
            "const INDEX low = i < j ? i : j, high = i < j ? j : i;\n"
            f"{self._load_pair(_pair_index('low', 'high'))}"
            f"const {type} vb = ({_coordinates('j')})[c * {LANES}u], vw = {self.weight};\nlane += {self.slope};\n}}\n"
            f"total += ({self.total})lane;\n}}\nout[GLOBAL_ID] = {self.c.store(f'({type})total')};\n}}\n"
        )

    def blocks(self, coordinates: int) -> str:
        """Return the body for blocks of ``LANES`` points. It stores the weights of the pairs of a block as a matrix
        with a row for each other point, since the triangle has half of them in columns.
        """
        arrays = f"GLOBAL {self.type}* const weights = scratch + GLOBAL_ID * points * {LANES}u;\n"
        if self.slope_reads_result:
            arrays = arrays.replace(f"{LANES}u", f"{2 * LANES}u")
            arrays += f"GLOBAL {self.type}* const results = weights + points * {LANES}u;\n"
        sums, width = "INDEX c = 0;\n", coordinates
        while width:
            sums += f"for (; depth - c >= {width}u; c += {width}u) {{\n{self._sums(width)}}}\n"
            width //= 2
        return (
            f"{_pack_if_alone(self.c)}{arrays}for (INDEX first = GLOBAL_ID * {LANES}u; first < points; "
            f"first += GLOBAL_SIZE * {LANES}u) {{\n"
            f"const INDEX here = points - first < {LANES}u ? points - first : {LANES}u, next = first + here;\n"
            f"{self._weights()}{sums}}}\n"
        )

    def _store_weight(self, at: str) -> str:
        results = f"results[{at}] = vd;\n" if self.slope_reads_result else ""
        return f"weights[{at}] = {self.weight};\n{results}"

    def _weights(self) -> str:
        """Return statements that compute the weights of a block, for earlier points and for later ones."""
        absent = f"weights[j * {LANES}u + l] = 0;" + (
            f" results[j * {LANES}u + l] = 0;" if self.slope_reads_result else ""
        )
        earlier = self._load_pair("before + (INDEX)m") + self._store_weight(f"j * {LANES}u + (from - first) + (INDEX)m")
        later = self._load_pair("after + (INDEX)m") + self._store_weight(f"(i + 1 + (INDEX)m) * {LANES}u + (i - first)")
        return (
            f"for (INDEX j = 0; j < points; ++j) for (INDEX l = here; l < {LANES}u; ++l) {{ {absent} }}\n"
            f"for (INDEX l = 0; l < here; ++l) {{ const INDEX j = first + l; {absent} }}\n"
            "for (INDEX j = 0; j < next; ++j) {\n"
            f"const INDEX from = j < first ? first : j + 1, before = {_pair_index('j', 'from')};\n"
            f"const int count = (int)(next - from);\nINDEPENDENT\nfor (int m = 0; m < count; ++m) {{\n{earlier}}}\n}}\n"
            "for (INDEX i = first; i < next; ++i) {\n"
            f"const INDEX after = {_pair_index('i', '(i + 1)')};\nconst int count = (int)(points - i - 1);\n"
            f"INDEPENDENT\nfor (int m = 0; m < count; ++m) {{\n{later}}}\n}}\n"
        )

    def _sums(self, width: int) -> str:
        """Return statements that sum the slopes of ``width`` coordinates from ``c`` on."""
        type, every = self.type, range(width)
        totals = "".join(f"{self.total} total{q}[{LANES}];\n" for q in every)
        lanes = "".join(f"{type} lane{q}[{LANES}];\n" for q in every)
        other_only = f"j == first + (INDEX)l ? 0 : {self.slope}"  # the difference of infinities is NaN
        return (
            f"GLOBAL const {type}* const own = packed + (first * depth + c * {LANES}u);\n"
            f"{totals}{EACH_LANE}{{ {' '.join(f'total{q}[l] = 0;' for q in every)} }}\n"
            f"for (INDEX begin = 0; begin < points; begin += {POINTS}u) {{\n"
            f"const INDEX end = points - begin < {POINTS}u ? points : begin + {POINTS}u;\n"
            f"{lanes}{EACH_LANE}{{ {' '.join(f'lane{q}[l] = 0;' for q in every)} }}\n"
            f"if (begin <= first && first < end) {{\n{self._slopes(width, other_only)}}}\n"
            f"else {{\n{self._slopes(width, self.slope)}}}\n"
            f"{EACH_LANE}{{ {' '.join(f'total{q}[l] += ({self.total})lane{q}[l];' for q in every)} }}\n}}\n"
            "for (INDEX l = 0; l < here; ++l) {\n"
            + "".join(f"out[(first + l) * depth + c + {q}u] = {self.c.store(f'({type})total{q}[l]')};\n" for q in every)
            + "}\n"
        )

    def _slopes(self, width: int, slope: str) -> str:
        """Return a loop that adds the slopes for points ``begin`` to ``end``."""
        result = f", vd = results[j * {LANES}u + (INDEX)l]" if self.slope_reads_result else ""
        steps = "".join(
            f"{{ const {self.type} vb = other[{q * LANES}u + (j - block)];\n{EACH_LANE}{{\n"
            f"const {self.type} va = own[{q * LANES} + l], vw = weights[j * {LANES}u + (INDEX)l]{result};\n"
            f"lane{q}[l] += {slope};\n}} }}\n"
            for q in range(width)
        )
        return (
            f"for (INDEX block = begin; block < end; block += {LANES}u) {{\n"
            f"const INDEX to = end - block < {LANES}u ? end : block + {LANES}u;\n"
            f"GLOBAL const {self.type}* const other = packed + (block * depth + c * {LANES}u);\n"
            f"for (INDEX j = block; j < to; ++j) {{\n{steps}}}\n}}\n"
        )
