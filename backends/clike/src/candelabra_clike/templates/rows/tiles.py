"""Row kernels in tiles, for devices whose work-items are lanes.

The lanes of a row process it in *tiles*: each lane loads a constant number of elements of every operand into registers,
so that many loads are in flight, and then evaluates the expressions. There are three forms:

``registers``: a row is one tile, so every element is read once. A group has one long row or several short ones.
``groups``: a group processes a longer row, and reads it again for each stage.
``split``: several groups process a row, if there are too few rows to occupy the device. There is a launch for each
stage, which stores the totals of each part, and one for the results and the output.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from candelabra_clike.language import Value, Variable, text
from candelabra_clike.language.kernels import statements
from candelabra_clike.language.lane_vectors import LaneVector
from candelabra_clike.source import Source, writes
from candelabra_clike.templates.lane_totals import LaneTotal, combine_lanes, declare_memory
from candelabra_clike.templates.rows.program import NAMES, RowProgram, RowReduction
from candelabra_clike.templates.rows.serial import Stage, stages
from candelabra_clike.templates.rows.source import RowLayout, RowSourceBuilder, variables
from candelabra_clike.types import CType

VECTOR = 4
"""Adjacent elements of a lane, if they are adjacent in memory."""


class Tile(NamedTuple):
    """The shape of a tile: ``lanes`` of a row, of a work-group of ``group``, have ``each`` elements of it."""

    lanes: int
    each: int
    vector: int
    """1, or :data:`VECTOR`: then rows consist of whole vectors, aligned if the first elements of all arrays are."""
    group: int

    @property
    def mark(self) -> str:
        """A short description, used in the names of kernels."""
        return f"{self.lanes}_{self.each}{'v' if self.vector > 1 else ''}"


class TiledRowSourceBuilder(RowSourceBuilder):
    """The sources of a row program in tiles. ``constant`` are the operands with one value per row, and ``shared`` those
    with the same values in all rows, both counted from 1. Shared operands are in the cache, and are not kept in
    registers. ``warp`` is the number of lanes that exchange values directly.
    """

    def __init__(
        self,
        program: RowProgram,
        elements: tuple[CType, ...],
        layout: RowLayout,
        float64: bool,
        tile: Tile,
        constant: frozenset[int],
        shared: frozenset[int],
        warp: int,
    ) -> None:
        super().__init__(program, elements, layout, float64)
        self.tile = tile
        self.constant = constant
        self.shared = shared
        self.warp = warp
        self.stages = stages(program.passes)

    # -- forms --------------------------------------------------------------------------------------------------------
    def registers(self, wide: bool) -> Source:
        """Return the kernel in which each row is one tile, and a group has ``group / lanes`` rows."""
        tile = self.tile
        rows = tile.group // tile.lanes
        held = self._held(self._values())
        start = (
            f"const u32 lane = LOCAL_ID % {tile.lanes}u;\n"
            f"const INDEX row = GROUP_ID * {rows}u + LOCAL_ID / {tile.lanes}u;\n"
            "const INDEX o = row < outputs ? row : outputs - 1, from = 0, stop = row < outputs ? count : 0;\n"
        )
        body = self._declared_totals() + start + self._row_start()
        body += self._stored_elements() + self._load_tile(held, "from")
        for stage in self.stages:
            body += self._stage_start(stage) + self._accumulate(stage, "from", held, kept=True)
            body += self._add_lanes(stage) + self._combined_totals(stage) + self._results(stage, "lane == 0 && stop")
        if self.program.last is not None:
            body += self._store_tile("from", held, kept=True)
        return self.source(f"registers_{tile.mark}", body, (), wide, tile.group)

    def groups(self, wide: bool) -> Source:
        """Return the kernel in which work-group ``o`` processes row ``o``."""
        body = self._declared_totals() + self._group_start("1u") + self._row_start()
        for stage in self.stages:
            body += self._stage_start(stage) + self._tiles(stage)
            body += self._combined_totals(stage) + self._results(stage, self.first)
        return self.source(f"groups_{self.tile.mark}", body + self._last_tiles(), self.own, wide, self.tile.group)

    def split(self, wide: bool) -> list[Source]:
        """Return the kernels in which group ``g`` processes part ``g % parts`` of row ``g / parts``: ``size`` elements.

        The last of them has a group per row, as if ``parts`` was 1, if the program has no last expression.
        """
        return [self._part(k, wide) for k in range(len(self.stages) + 1)]

    def _part(self, k: int, wide: bool) -> Source:
        """Return the kernel of stage ``k``, or the one of the output."""
        final = k == len(self.stages)
        several = "1u" if final and self.program.last is None else "parts"
        body = self._declared_totals(self.stages[: k + 1]) + self._group_start(several) + self._row_start()
        for stage in self.stages[:k]:
            body += self._stage_start(stage) + self._read_totals(stage) + self._combined_totals(stage)
            body += self._results(stage, f"{self.first} && part == 0" if final else "")
        if final:
            body += self._last_tiles()
        else:
            stage = self.stages[k]
            stores = "".join(f"{self._stored_total(i)} = total{i};\n" for i, _ in stage)
            body += self._stage_start(stage) + self._tiles(stage) + self._combined_totals(stage)
            body += f"if ({self.first}) {{\n{stores}}}\n"
        source = self.source(f"parts{k}_{self.tile.mark}", body, ("parts", "size", *self.own), wide, self.tile.group)
        totals = [writes(f"t{i}", self.total_type(p)) for i, p in enumerate(self.program.passes)]
        return Source(
            source.name, (*totals, *source.parameters), body, source.group, wide, contract=self.program.contract
        )

    own: tuple[str, ...] = ()
    """The arguments of the forms with groups that other builders do not have."""
    first = "lane == 0"
    """The condition for the lane that stores the totals and results of a row."""

    def _group_start(self, splits: str) -> str:
        """Return statements with the row ``o``, the ``part`` and its range of elements."""
        size = "size" if splits != "1u" else "count"
        return (
            f"const u32 lane = LOCAL_ID;\nconst INDEX o = GROUP_ID / {splits}, part = GROUP_ID % {splits};\n"
            f"const INDEX from = part * {size}, stop = count - from < {size} ? count : from + {size};\n"
        )

    def _stored_total(self, i: int) -> str:
        """Return the place of the total of a part in memory."""
        return f"t{i}[GROUP_ID]"

    def _read_totals(self, stage: Stage) -> str:
        """Return statements that distribute the totals of all parts to the lanes."""
        return "".join(f"if (LOCAL_ID < parts) total{i} = t{i}[o * parts + LOCAL_ID];\n" for i, _ in stage)

    # -- operands -----------------------------------------------------------------------------------------------------
    def _values(self) -> list[Value]:
        return [self.element(position) for position in range(self.program.expressions)]

    def _moving(self) -> list[str]:
        """Return the letters of the operands that differ between the elements of a row."""
        return [NAMES[k - 1] for k in range(1, len(self.names)) if k not in self.constant]

    def _read(self, values: Iterable[Value]) -> list[str]:
        """Return the letters of the moving operands that expressions read."""
        read = variables(values)
        return [letter for letter in self._moving() if f"v{letter}" in read]

    def _held(self, values: Iterable[Value]) -> list[str]:
        """Return the letters of the operands of expressions that are kept in registers."""
        return [letter for letter in self._read(values) if NAMES.index(letter) + 1 not in self.shared]

    def _row_start(self) -> str:
        """Return statements with the offsets of row ``o``, and the operands that are constant in it."""
        statements = self.rows("o", range(self.layout.kept))
        read = variables(self._values())
        for k in sorted(self.constant):
            name, letter = self.names[k], NAMES[k - 1]
            if f"v{letter}" in read:
                loaded = self.elements[k].load(f"{name}[{name}_row]")
                statements += f"const {self.value} v{letter} = {loaded};\n"
        if self.tile.vector > 1:
            vectors = [(name, LaneVector(name, self.elements[k].memory, VECTOR)) for k, name in self._vectors()]
            tests = [vector.is_aligned(f"{name} + {self.start(name)}") for name, vector in vectors]
            statements += f"const u32 aligned = {' && '.join(tests)};\n"
        return statements

    def _vectors(self) -> list[tuple[int, str]]:
        """Return the arrays that are accessed in vectors, with their positions."""
        arrays = [
            (k, name) for k, name in enumerate(self.names) if k not in self.constant and self.layout.inner[k] == 1
        ]
        return [each for each in arrays if each[0] or self.program.last is not None]

    def _stored_elements(self) -> str:
        stored = any(p.store_elements for p in self.program.passes)
        return f"{self.value} ko[{self.tile.each}];\n" if stored else ""

    # -- tiles --------------------------------------------------------------------------------------------------------
    def _chunks(self, base: str, statements: str, otherwise: str = "") -> str:
        """Return a loop over the chunks ``q`` of a lane, whose first element is ``r``."""
        tile = self.tile
        rest = f" else {{\n{otherwise}}}" if otherwise else ""
        return (
            f"UNROLL for (u32 q = 0; q < {tile.each // tile.vector}u; ++q) {{\n"
            f"const INDEX r = {base} + (q * {tile.lanes}u + lane) * {tile.vector}u;\n"
            f"if (r < stop) {{\n{statements}}}{rest}\n}}\n"
        )

    def _offsets(self, positions: Collection[int]) -> str:
        """Return statements for the offsets of element ``r`` in some arrays."""
        if self.layout.reduced > 1:
            return self.run_offsets(positions)
        steps = ("", " + r", " + r * {}_r0")
        offsets = [(self.names[k], steps[self.layout.inner[k]].format(self.names[k])) for k in positions]
        return "".join(f"const INDEX {name}_run = {name}_row{step};\n" for name, step in offsets)

    def run_offsets(self, positions: Collection[int]) -> str:
        """Return statements for the offsets of element ``r`` in some arrays, along any reduced dims."""
        addressed, self.addressed = self.addressed, tuple([self.names[k] for k in positions])
        statements = self.runs("r", range(self.layout.reduced))
        self.addressed = addressed
        return statements

    def _element_at(self, k: int, j: int) -> str:
        """Return element ``j`` of the chunk in array ``k``."""
        return f"{self.names[k]}[{self.names[k]}_run{f' + {j}' if j and self.layout.inner[k] else ''}]"

    def _load_chunk(self, letters: Sequence[str], target: str, aligned: bool) -> str:
        """Return statements that load a chunk of operands to ``target``, in which ``{}`` and ``{j}`` stand for the
        operand and the element.
        """
        positions = [NAMES.index(letter) + 1 for letter in letters]
        statements = self._offsets(positions)
        for k, letter in zip(positions, letters, strict=True):
            element, name = self.elements[k], self.names[k]
            if aligned and self.layout.inner[k] == 1:
                vector = LaneVector(f"t{letter}", element.memory, VECTOR)
                statements += vector.declaration() + vector.load(f"{name} + {name}_run")
                sources = [vector.element(j) for j in range(VECTOR)]
            else:
                sources = [self._element_at(k, j) for j in range(self.tile.vector)]
            for j, source in enumerate(sources):
                statements += f"{target.format(letter, j=j)} = {element.load(source)};\n"
        return statements

    def _load_tile(self, letters: Sequence[str], base: str) -> str:
        """Return statements that load operands of a tile into the arrays ``ka`` … in registers."""
        if not letters:
            return ""
        vector = self.tile.vector
        declared = "".join(f"{self.value} k{letter}[{self.tile.each}];\n" for letter in letters)
        target = f"k{{0}}[q * {vector}u + {{j}}u]"
        zero = "".join(f"{target.format(letter, j=j)} = 0;\n" for letter in letters for j in range(vector))
        scalar = self._chunks(base, self._load_chunk(letters, target, False), zero)
        if vector == 1:
            return declared + scalar
        vectors = self._chunks(base, self._load_chunk(letters, target, True), zero)
        return f"{declared}if (aligned) {{\n{vectors}}} else {{\n{scalar}}}\n"

    def _operands(self, values: Iterable[Value], loaded: Sequence[str]) -> str:
        """Return statements that declare arrays of a chunk with the operands that are not in registers."""
        letters = [letter for letter in self._read(values) if letter not in loaded]
        if not letters:
            return ""
        declared = "".join(f"{self.value} c{letter}[{self.tile.vector}];\n" for letter in letters)
        scalar = self._load_chunk(letters, "c{0}[{j}]", False)
        if self.tile.vector == 1:
            return declared + scalar
        return f"{declared}if (aligned) {{\n{self._load_chunk(letters, 'c{0}[{j}]', True)}}} else {{\n{scalar}}}\n"

    def _chunk_values(self, values: Sequence[Value], loaded: Sequence[str], kept: bool, j: int) -> str:
        """Return statements that declare ``va`` … for element ``j`` of a chunk."""
        place = f"q * {self.tile.vector}u + {j}u"
        statements = ""
        for letter in self._read(values):
            source = f"k{letter}[{place}]" if letter in loaded else f"c{letter}[{j}]"
            statements += f"const {self.value} v{letter} = {source};\n"
        if "vo" in variables(values):
            statements += f"const {self.value} vo = {f'ko[{place}]' if kept else f'co[{j}]'};\n"
        return statements

    def _accumulate(self, stage: Stage, base: str, loaded: Sequence[str], kept: bool) -> str:
        """Return statements that combine the elements of a tile with ``lane0`` …; ``kept``: stored elements stay in
        registers.
        """
        values = [self.element(i) for i, _ in stage]
        store = next((i for i, p in stage if p.store_elements), None)
        statements = self._operands(values, loaded) + self._stored_chunk(values, kept)
        if store is not None and not kept:
            statements += f"{self.value} w[{self.tile.vector}];\n"
        for j in range(self.tile.vector):
            each = self._chunk_values(values, loaded, kept, j)
            for (i, p), value in zip(stage, values, strict=True):
                each += f"const {self.value} e{i} = {text(value)};\n"
                each += f"lane{i} = {self.combine(p, f'lane{i}', f'e{i}')};\n"
            if store is not None:
                each += f"{f'ko[q * {self.tile.vector}u + {j}u]' if kept else f'w[{j}]'} = e{store};\n"
            statements += f"{{\n{each}}}\n"
        if store is not None and not kept:
            statements += self._store_chunk()
        return self._chunks(base, statements)

    def _stored_chunk(self, values: Sequence[Value], kept: bool) -> str:
        """Return statements that load the stored elements of a chunk from the output."""
        if kept or "vo" not in variables(values):
            return ""
        loads = "".join(f"co[{j}] = {self._element_at(0, j)};\n" for j in range(self.tile.vector))
        return f"{self.value} co[{self.tile.vector}];\n{{\n{self._offsets([0])}{loads}}}\n"

    def _store_chunk(self) -> str:
        """Return statements that store the elements ``w`` of a chunk."""
        element = self.elements[0]
        stores = "".join(f"{self._element_at(0, j)} = {element.store(f'w[{j}]')};\n" for j in range(self.tile.vector))
        if self.tile.vector == 1:
            return self._offsets([0]) + stores
        vector = LaneVector("t", element.memory, VECTOR)
        put = "".join(f"{vector.element(j)} = {element.store(f'w[{j}]')};\n" for j in range(VECTOR))
        whole = vector.declaration() + put + vector.store("out + out_run")
        return f"{self._offsets([0])}if (aligned) {{\n{whole}}} else {{\n{stores}}}\n"

    def _store_tile(self, base: str, loaded: Sequence[str], kept: bool) -> str:
        """Return statements that store the last expression for the elements of a tile."""
        values = [self.element(len(self.program.passes))]
        statements = self._operands(values, loaded) + self._stored_chunk(values, kept)
        statements += f"{self.value} w[{self.tile.vector}];\n"
        for j in range(self.tile.vector):
            each = self._chunk_values(values, loaded, kept, j)
            statements += f"{{\n{each}w[{j}] = {text(values[0])};\n}}\n"
        return self._chunks(base, statements + self._store_chunk())

    def _loop(self, statements: str) -> str:
        tile = self.tile
        return f"for (INDEX base = from; base < stop; base += {tile.lanes * tile.each}u) {{\n{statements}}}\n"

    def _tiles(self, stage: Stage) -> str:
        """Return a loop over tiles that adds a stage to the totals of the lane."""
        loaded = self._held([self.element(i) for i, _ in stage])
        return self._loop(
            self._load_tile(loaded, "base")
            + "".join(f"lane{i} = {self.identity(p)};\n" for i, p in stage)
            + self._accumulate(stage, "base", loaded, kept=False)
            + self._add_lanes(stage)
        )

    def _last_tiles(self) -> str:
        """Return a loop over tiles that stores the output."""
        if self.program.last is None:
            return ""
        loaded = self._held([self.element(len(self.program.passes))])
        return self._loop(self._load_tile(loaded, "base") + self._store_tile("base", loaded, kept=False))

    # -- totals -------------------------------------------------------------------------------------------------------
    def _total(self, i: int, p: RowReduction) -> LaneTotal:
        return LaneTotal(Variable(self.total_type(p), f"total{i}"), p.operation.function)

    def _declared_totals(self, of: Sequence[Stage] | None = None) -> str:
        """Return the local memory of the combination of totals."""
        chosen = self.stages if of is None else of
        totals = [self._total(i, p) for stage in chosen for i, p in stage]
        return statements((), lambda k: declare_memory(k, totals, self.tile.lanes, self.tile.group, self.warp))

    def _stage_start(self, stage: Stage) -> str:
        """Declare the lanes and the totals of a stage."""
        return "".join(
            f"{self.value} lane{i} = {self.identity(p)};\n{self.total_type(p)} total{i} = {self.identity(p)};\n"
            for i, p in stage
        )

    def _add_lanes(self, stage: Stage) -> str:
        return "".join(
            f"total{i} = {self.combine(p, f'total{i}', f'({self.total_type(p)})lane{i}')};\n" for i, p in stage
        )

    def _combined_totals(self, stage: Stage) -> str:
        totals = [self._total(i, p) for i, p in stage]
        known = [name for t in totals for name in (t.variable.name, t.shared)]
        return statements(known, lambda k: combine_lanes(k, totals, self.tile.lanes, self.warp))

    def _results(self, stage: Stage, storing: str) -> str:
        """Declare the results of a stage; the lanes for which the condition ``storing`` holds store those that are
        outputs.
        """
        statements = stores = ""
        for i, _ in stage:
            statements += f"const {self.value} r{i} = {self.result(i, f'total{i}')};\n"
            stores += self.stored_result(i, "o", f"r{i}")
        return statements + (f"if ({storing}) {{\n{stores}}}\n" if stores and storing else "")
