"""Row kernels for serial devices: a work-item processes some rows, or a block of adjacent columns.

Sums are accumulated in lanes, which are the elements of vectors if possible, or one lane per column. Lanes are added to
a total after a fixed number of elements. A result has the same bits with vectors of eight and of sixteen.

Adjacent reductions of a program that do not use each other's results are one stage: a loop that loads each operand
once. The last loop over a row loads the next row into the cache, while the processor computes. The one before loads the
row of the output, which a processor reads before it writes the first part of a cache line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from candelabra_clike.language import FORMS, Value, parameters_of, text
from candelabra_clike.source import Source
from candelabra_clike.templates.rows.program import NAMES, RowProgram, RowReduction
from candelabra_clike.templates.rows.source import RowLayout, RowSourceBuilder, variables
from candelabra_clike.types import CType

CHUNK = 2048
"""Elements of a row that are accumulated before the total is updated."""
STRETCH = 64
"""Elements that are accumulated at a time, in lanes of their own."""
DEEP = 128
"""Rows of columns that are accumulated before the totals are updated."""
AHEAD = 8
"""Rows of columns between a row and the one that is loaded into the cache meanwhile: each is in another page."""
BLOCK = 128
"""The maximum number of columns of a work-item."""

Stage = tuple[tuple[int, RowReduction], ...]
"""Reductions that are evaluated together, with their positions in the program."""


def stages(passes: tuple[RowReduction, ...]) -> tuple[Stage, ...]:
    """Return the reductions in stages."""
    found: list[list[tuple[int, RowReduction]]] = []
    for i, p in enumerate(passes):
        if found and not any(f"r{j}" in parameters_of(p.each) or other.store_elements for j, other in found[-1]):
            found[-1].append((i, p))
        else:
            found.append([(i, p)])
    return tuple(map(tuple, found))


class SerialRowSourceBuilder(RowSourceBuilder):
    """The sources of a row program for serial devices. ``lanes`` are those of the processor's vectors of f32."""

    def __init__(
        self, program: RowProgram, elements: tuple[CType, ...], layout: RowLayout, float64: bool, lanes: int = 8
    ) -> None:
        super().__init__(program, elements, layout, float64)
        self.lanes = 8 if any(e.converts for e in elements) else lanes
        self.vector = f"f32x{self.lanes}"
        self.stages = stages(program.passes)

    @property
    def vectorizes(self) -> bool:
        """Whether the innermost loop can use vectors: all values are f32 and adjacent in memory, or broadcast."""
        if not self.program.vectorizes or 2 in self.layout.inner or self.layout.inner[0] != 1:
            return False
        return all(e.value == "f32" for e in self.elements)

    def type(self, lanes: int) -> str:
        """Return the type of one element, or of a vector of them."""
        return self.value if lanes == 1 else f"f32x{lanes}"

    def load_operands(self, values: Iterable[Value], i: str, lanes: int = 1) -> str:
        """Return statements that load operands, from element ``i`` on, as scalars or vectors."""
        if lanes == 1:
            return super().load_operands(values, i)
        statements, read = "", variables(values)
        for k, (letter, name) in enumerate(zip(NAMES, self.names[1:]), 1):
            if f"v{letter}" not in read:
                continue
            element = self.elements[k]
            if self.layout.inner[k]:
                loaded = f"{self.load_word(k)}_X{lanes}({element.memory}, {name} + {self.offset(k, i)})"
                loaded = f"load_{element.converts}_x{lanes}({loaded})" if element.converts else loaded
            else:
                loaded = f"(f32x{lanes})({element.load(f'{name}[{self.offset(k, i)}]')})"
            statements += f"const f32x{lanes} v{letter} = {loaded};\n"
        if "vo" in read:
            loaded = f"{self.load_word(0)}_X{lanes}(f32, {self.names[0]} + {self.offset(0, i)})"
            statements += f"const f32x{lanes} vo = {loaded};\n"
        return statements

    def load_word(self, k: int) -> str:
        """Return the first part of the dialect's word that loads vectors from array ``k``."""
        return "LOAD"

    def store(self, i: str, value: str, k: int = 0, lanes: int = 1) -> str:
        """Return the statement that stores an element, or a vector of them, of output ``k``."""
        if lanes == 1:
            return super().store(i, value, k)
        address = f"{self.output(k)} + {self.offset(0, i)}"
        return f"STORE_X{lanes}({self.elements[0].memory}, {address}, {self.in_memory(value, lanes)});\n"

    def in_memory(self, vector: str, lanes: int) -> str:
        """Return a vector as it is in memory."""
        converts = self.elements[0].converts
        return f"store_{converts}_x{lanes}({vector})" if converts else vector

    def prefetch(self, i: str, step: str) -> str:
        """Return statements that load element ``i`` of a later row into the cache. ``step`` is the distance of that
        row, with ``{}`` for an operand.
        """
        return "".join(
            f"PREFETCH({name} + ({self.offset(k, i)} + {step.format(name)}));\n"
            for k, name in enumerate(self.names[1:], 1)
            if self.layout.inner[k] == 1 and name in self.addressed
        )

    def _prefetched_output(self, stage: Stage, i: str) -> str:
        """Return the statement that loads element ``i`` of the output into the cache, in the stage before the loop that
        stores it.
        """
        stores = any(p.store_elements for p in self.program.passes)
        if self.program.last is None or stores or stage is not self.stages[-1]:
            return ""
        return f"PREFETCH({self.names[0]} + {self.offset(0, i)});\n"

    # -- rows ---------------------------------------------------------------------------------------------------------
    def in_rows(self, wide: bool) -> Source:
        """Return the kernel in which a work-item processes ``per_item`` rows."""
        passes = "".join(map(self.stage, self.stages))
        body = (
            "const INDEX first = GLOBAL_ID * per_item, end = outputs - first < per_item ? outputs : first + per_item;\n"
            f"for (INDEX o = first; o < end; ++o) {{\n{self.rows('o', range(self.layout.kept))}{passes}{self.last()}}}"
        )
        return self.source("rows", body, ("per_item",), wide, 1)

    def _runs(self, body: str) -> str:
        """Return a loop over the runs of a row. The elements of a run are adjacent; it has ``n`` of them."""
        last = self.layout.reduced - 1
        if not last:
            return f"{{ const INDEX n = span0;\n{self.runs('0', range(0))}{body}}}\n"
        count = " * ".join(f"span{d}" for d in range(last))
        run = f"const INDEX n = span{last};\n{self.runs('run', range(last))}{body}"
        return f"for (INDEX run = 0; run < {count}; ++run) {{\n{run}}}\n"

    def stage(self, stage: Stage) -> str:
        """Return statements for the reductions of a stage of one row, and their results ``r0`` …"""
        vectors = self._accumulate_vectors(stage) if self.vectorizes else self._accumulate_lanes(stage)
        lanes = "".join(f"{self.value} lane{i} = {self.identity(p)};\n" for i, p in stage)
        to_totals = self._combined(stage, "total{}", "lane{}", totals=True)
        stretch = (
            f"for (INDEX i = 0; i < n;) {{\nconst INDEX stop = n - i < {CHUNK}u ? n : i + {CHUNK}u;\n{lanes}{vectors}"
            f"for (; i < stop; ++i) {{\n{self._accumulate(stage, 'i', 'lane{}')}}}\n{to_totals}}}\n"
        )
        totals = "".join(f"{self.total_type(p)} total{i} = {self.identity(p)};\n" for i, p in stage)
        results = "".join(
            f"const {self.value} r{i} = {self.result(i, f'total{i}')};\n{self.stored_result(i, 'o', f'r{i}')}"
            for i, _ in stage
        )
        return f"{totals}{self._runs(stretch)}{results}"

    def _combined(self, stage: Stage, a: str, b: str, totals: bool = False) -> str:
        """Return statements that combine the values ``b`` of the reductions of a stage into ``a``; ``{}`` stands for
        the position of a reduction. ``totals``: ``a`` are totals.
        """
        statements = ""
        for i, p in stage:
            cast = f"({self.total_type(p)})" if totals else ""
            values = [a.format(i), cast + b.format(i)]
            if p.operation.reads_next:
                values += [a.format(i + 1), cast + b.format(i + 1)]
            statements += f"{values[0]} = {self.combine(p, *values)};\n"
        return statements

    def _accumulate(self, stage: Stage, at: str, lane: str, lanes: int = 1) -> str:
        """Return statements that combine element ``at``, or a vector of them, with the lanes of a stage."""
        values = [self.element(i) for i, _ in stage]
        statements = self.load_operands(values, at, lanes)
        for (i, p), value in zip(stage, values):
            statements += f"const {self.type(lanes)} e{i} = {text(value, FORMS[lanes])};\n"
            statements += self.store(at, f"e{i}", lanes=lanes) if p.store_elements else ""
        return statements + self._combined(stage, lane, "e{}")

    def _accumulate_vectors(self, stage: Stage) -> str:
        """Return statements that accumulate ``STRETCH`` elements at a time, then eight, and reduce them to ``lane0`` …

        The order of additions is the same for any vectors: eights at a distance of four, of two, and adjacent ones.
        """
        several = STRETCH // self.lanes
        declared, whole, joined = "", "", ""
        for i, p in stage:
            declared += f"f32x8 w{i} = (f32x8)({self.identity(p)});\n"
            whole += f"{self.vector} v{i}[{several}];\n"
            whole += f"UNROLL for (u32 q = 0; q < {several}u; ++q) v{i}[q] = ({self.vector})({self.identity(p)});\n"
        distance = several // 2
        while distance:
            joined += "".join(self._combined(stage, f"v{{}}[{x}]", f"v{{}}[{x + distance}]") for x in range(distance))
            distance //= 2
        joined += "".join(f"w{i} = v{i}[0]{'' if self.lanes == 8 else '.lo'};\n" for i, _ in stage)
        joined += "" if self.lanes == 8 else self._combined(stage, "w{}", "v{}[0].hi")
        step = self._prefetched_output(stage, "j") + self._accumulate(stage, "j", "v{}[q]", self.lanes)
        return (
            f"if (stop - i >= 8u) {{\n{declared}if (stop - i >= {STRETCH}u) {{\n{whole}"
            f"for (; i + {STRETCH}u <= stop; i += {STRETCH}u) UNROLL for (u32 q = 0; q < {several}u; ++q) {{\n"
            f"const INDEX j = i + {self.lanes}u * q;\n{step}}}\n{joined}}}\n"
            f"for (; i + 8u <= stop; i += 8u) {{\n{self._accumulate(stage, 'i', 'w{}', 8)}}}\n"
            f"{self._to_lanes(stage)}}}\n"
        )

    def _to_lanes(self, stage: Stage) -> str:
        """Return statements that combine the elements of the vectors ``w0`` … with ``lane0`` …"""
        halves = ", ".join(f"h{i}{k} = w{i}.s{k}" for i, _ in stage for k in range(4))
        joins = "".join(self._combined(stage, f"h{{}}{k}", f"w{{}}.s{k + 4}") for k in range(4))
        joins += "".join(self._combined(stage, f"h{{}}{x}", f"h{{}}{y}") for x, y in ((0, 2), (1, 3), (0, 1)))
        return f"f32 {halves};\n{joins}{self._combined(stage, 'lane{}', 'h{}0')}"

    def _accumulate_lanes(self, stage: Stage) -> str:
        """Return statements that accumulate eight elements at a time in eight lanes; shorter chains have smaller
        rounding errors.
        """
        declared = ""
        pairs = ((0, 4), (1, 5), (2, 6), (3, 7), (0, 2), (1, 3), (0, 1))
        for i, p in stage:
            declared += f"{self.value} v{i}[8];\nUNROLL for (u32 q = 0; q < 8u; ++q) v{i}[q] = {self.identity(p)};\n"
        joined = "".join(self._combined(stage, f"v{{}}[{x}]", f"v{{}}[{y}]") for x, y in pairs)
        joined += self._combined(stage, "lane{}", "v{}[0]")
        return (
            f"if (stop - i >= 64u) {{\n{declared}"
            "for (; i + 8u <= stop; i += 8u) UNROLL for (u32 q = 0; q < 8u; ++q) {\nconst INDEX j = i + q;\n"
            f"{self._accumulate(stage, 'j', 'v{}[q]')}}}\n{joined}}}\n"
        )

    def last(self) -> str:
        """Return statements for the elements of the outputs of one row."""
        if self.program.last is None:
            return ""
        values = [self.element(position) for position in range(len(self.program.passes), self.program.expressions)]
        loop = "INDEX i = 0;\n"
        ahead = self.prefetch("i", f"{{}}_k{self.layout.kept - 1}")

        def stored(lanes: int) -> str:
            texts = [text(value, FORMS[lanes]) for value in values]
            return self.load_operands(values, "i", lanes) + self._outputs(texts, "i", lanes)

        for lanes in dict.fromkeys((self.lanes, 8)) if self.vectorizes else ():
            loop += f"for (; i + {lanes}u <= n; i += {lanes}u) {{\n{ahead}{stored(lanes)}}}\n"
        return self._runs(f"{loop}for (; i < n; ++i) {{\n{stored(1)}}}\n")

    def _outputs(self, texts: Sequence[str], i: str, lanes: int) -> str:
        """Return statements that store the values of all outputs, after the last operand has been loaded."""
        names = [f"e{k or ''}" for k in range(len(texts))]
        statements = "".join(f"const {self.type(lanes)} {n} = {value};\n" for n, value in zip(names, texts))
        return statements + "".join(self.store(i, n, k, lanes) for k, n in enumerate(names))

    # -- columns ------------------------------------------------------------------------------------------------------
    def in_columns(self, wide: bool) -> Source:
        """Return the kernel in which a work-item processes a block of ``size`` columns and all of their rows."""
        last = self.layout.kept - 1
        begins = "".join(f"{n}_row += begin * {n}_k{last};\n" for n in self.names)
        results = "".join(f"{self.value} r{i}[{BLOCK}];\n" for i, _ in enumerate(self.program.passes))
        body = (
            "const INDEX block = GLOBAL_ID % blocks, o = GLOBAL_ID / blocks;\n"
            f"const INDEX begin = block * size, rest = k{last} - begin;\n"
            "const u32 width = (u32)(rest < size ? rest : size);\n"
            f"{self.rows('o', range(last))}{begins}{results}{''.join(map(self._column_stage, self.stages))}"
        )
        if self.program.last is not None:
            body += f"for (INDEX r = 0; r < count; ++r) {{\n{self._row()}{self._across(self._store_last)}}}\n"
        return self.source("columns", body, ("blocks", "size"), wide, 1)

    def _row(self) -> str:
        return self.runs("r", range(self.layout.reduced))

    def _across(self, step: Callable[[int], str]) -> str:
        """Return a loop over the columns of a row. ``step`` returns the statements for 16, 8 or 1 of them."""
        loops = "u32 c = 0;\n"
        for lanes in (*dict.fromkeys((self.lanes, 8)), 1) if self.vectorizes else (1,):
            loops += f"for (; c + {lanes}u <= width; c += {lanes}u) {{\n{step(lanes)}}}\n"
        return loops

    def _column_values(self, positions: Sequence[int], lanes: int) -> tuple[str, list[str]]:
        """Return statements that load the operands of expressions for some columns, and the text of each expression."""
        results = "r{}[c]" if lanes == 1 else f"PRIVATE_X{lanes}(f32, r{{}} + c)"
        values = [self.element(position, results) for position in positions]
        return self.load_operands(values, "c", lanes), [text(value, FORMS[lanes]) for value in values]

    def _store_last(self, lanes: int) -> str:
        """Return statements that store some columns of a row of the outputs."""
        positions = range(len(self.program.passes), self.program.expressions)
        loaded, texts = self._column_values(positions, lanes)
        return loaded + self._outputs(texts, "c", lanes)

    def _accumulate_columns(self, stage: Stage, lanes: int) -> str:
        """Return statements that combine some columns of a row with their lanes."""
        statements, values = self._column_values([i for i, _ in stage], lanes)
        if lanes == self.lanes:
            statements += self.prefetch("c", f"{AHEAD}u * {{}}_r{self.layout.reduced - 1}")
        kept = ""
        for (i, p), value in zip(stage, values):
            type = self.type(lanes)
            lane = f"lane{i}[c]" if lanes == 1 else f"PRIVATE_X{lanes}(f32, lane{i} + c)"
            stored = self.store("c", f"e{i}", lanes=lanes) if p.store_elements else ""
            statements += f"const {type} e{i} = {value};\n{type} l{i} = {lane};\n{stored}"
            kept += f"{lane} = l{i};\n"
        return statements + self._combined(stage, "l{}", "e{}") + kept

    def _column_stage(self, stage: Stage) -> str:
        """Return statements for the reductions of a stage of all columns."""
        last = self.layout.kept - 1
        declared = cleared = reset = results = ""
        for i, p in stage:
            identity, type = self.identity(p), self.total_type(p)
            declared += f"{type} totals{i}[{BLOCK}];\n{self.value} lane{i}[{BLOCK}];\n"
            cleared += f"totals{i}[c] = {identity};\n"
            reset += f"lane{i}[c] = {identity};\n"
            results += f"r{i}[c] = {self.result(i, f'totals{i}[c]', 'r{}[c]')};\n"
            results += self.stored_result(i, f"o * k{last} + begin + c", f"r{i}[c]")
        to_totals = self._combined(stage, "totals{}[c]", "lane{}[c]", totals=True)
        each = "for (u32 c = 0; c < width; ++c)"
        row = f"{self._row()}{self._across(lambda lanes: self._accumulate_columns(stage, lanes))}"
        return (
            f"{{ {declared}{each} {{\n{cleared}}}\nfor (INDEX r = 0; r < count;) {{\n"
            f"const INDEX stop = count - r < {DEEP}u ? count : r + {DEEP}u;\n{each} {{\n{reset}}}\n"
            f"for (; r < stop; ++r) {{\n{row}}}\n{each} {{\n{to_totals}}}\n}}\n{each} {{\n{results}}}\n}}\n"
        )
