"""Row programs between loops over the elements of a row, on serial devices.

A work-item computes the operands that are not in memory into *strips*, arrays of a row's size in private memory, runs
the program on them, and computes later results from its output and from other strips. The program adds in the order
of :mod:`candelabra_clike.templates.rows.serial`, so its results have the same bits as those of a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from candelabra_clike.source import KernelParameter, Source, number, reads, writes
from candelabra_clike.templates.elementwise.loops import UNIT, LoopNest
from candelabra_clike.templates.random_numbers import DRAWN
from candelabra_clike.templates.rows.program import RowProgram
from candelabra_clike.templates.rows.serial import SerialRowSourceBuilder
from candelabra_clike.templates.rows.source import RowLayout
from candelabra_clike.types import CType

EVEN = 16
"""Random numbers are drawn in blocks of one size, a multiple of this, so that few are drawn without use."""


@dataclass(frozen=True)
class RowLoop:
    """A loop nest over a row. ``places`` has the array or the strip of each of ``nest.names``."""

    nest: LoopNest
    places: tuple[str, ...]


@dataclass(frozen=True)
class FusedRow:
    """A row program and the loops around it.

    ``arrays`` are the parameters in order, with the type of their elements; the first ``written`` of them are written.
    ``out`` and ``operands`` are the arrays or strips of the program, ``stored`` the arrays of its stored results by
    their position. ``numbers`` are the types of all numbers.
    """

    name: str
    program: RowProgram
    arrays: Mapping[str, CType]
    written: int
    strips: Mapping[str, CType]
    out: str
    operands: tuple[str, ...]
    stored: Mapping[int, str]
    before: RowLoop | None
    after: RowLoop | None
    numbers: tuple[str, ...]

    @property
    def addressed(self) -> tuple[str, ...]:
        """The arrays that have elements for those of a row."""
        return tuple(name for name in self.arrays if name not in self.stored.values())

    @property
    def contract(self) -> bool:
        """Whether ``a * b + c`` may be fused."""
        loops = (self.before, self.after)
        return self.program.contract or any(loop.nest.contract for loop in loops if loop is not None)


class FusedRowSourceBuilder(SerialRowSourceBuilder):
    """The source of a row program between loops, for rows of ``count`` elements.

    ``kinds`` are the kinds of stride of the arrays along a row.
    """

    def __init__(
        self, row: FusedRow, d: CType, kinds: Mapping[str, int], kept: int, count: int, float64: bool, lanes: int
    ) -> None:
        operands = (row.out, *row.operands)
        layout = RowLayout(kept, 1, tuple(kinds.get(name, UNIT) for name in operands))
        super().__init__(row.program, (d,) * len(operands), layout, float64, lanes)
        self.row = row
        self.kinds = kinds
        self.count = count
        self.names = operands
        self.addressed = row.addressed

    def start(self, name: str) -> str:
        """All arrays have an offset."""
        return f"{name}_at"

    def offset(self, k: int, i: str) -> str:
        """Return the offset of element ``i`` of a row in an array, or in a strip."""
        return i if self.names[k] in self.row.strips else super().offset(k, i)

    def load_word(self, k: int) -> str:
        """Return the word for strips, which lie in private memory."""
        return "PRIVATE" if self.names[k] in self.row.strips else "LOAD"

    def store(self, i: str, value: str, k: int = 0, lanes: int = 1) -> str:
        """Return the statement that stores elements of an output."""
        if lanes == 1 or self.output(k) not in self.row.strips:
            return super().store(i, value, k, lanes)
        place = f"PRIVATE_X{lanes}({self.elements[0].memory}, {self.output(k)} + {i})"
        return f"{place} = {self.in_memory(value, lanes)};\n"

    def stored_result(self, index: int, offset: str, result: str) -> str:
        """Return the statement that stores the result of a reduction, if the group has it."""
        name = self.row.stored.get(index)
        return f"{name}[{offset}] = {self.elements[0].store(result)};\n" if name else ""

    def fused(self, wide: bool) -> Source:
        """Return the kernel in which a work-item processes ``per_item`` rows."""
        row = self.row
        strips = "".join(f"{c.memory} {name}[{self.count}];\n" for name, c in row.strips.items())
        before, after = (self._loop(loop) if loop else "" for loop in (row.before, row.after))
        body = (
            "const INDEX first_row = GLOBAL_ID * per_item;\n"
            f"const INDEX end = outputs - first_row < per_item ? outputs : first_row + per_item;\n{strips}"
            f"for (INDEX o = first_row; o < end; ++o) {{\n{self.rows('o', range(self.layout.kept))}"
            f"{before}{''.join(map(self.stage, self.stages))}{self.last()}{after}}}"
        )
        return Source(row.name, self._parameters(), body, 1, wide, row.contract)

    def _loop(self, loop: RowLoop) -> str:
        """Return statements that run a loop nest over the row."""
        nest, pointers = loop.nest, ""
        kinds = [self.kinds.get(place, UNIT) for place in loop.places]
        for n, place, kind in zip(nest.names, loop.places, kinds, strict=True):
            if place in self.row.strips:
                pointers += f"{'' if n in nest.written else 'const '}{nest.memory[n]}* p{n} = {place};\n"
            else:
                pointers += nest.pointer(n, f"{place} + {place}_row", kind, f"{place}_r0")
        blocks = -(-self.count // DRAWN)
        block = -(-self.count // (blocks * EVEN)) * EVEN
        text = nest.drawn(kinds, block) if nest.draws else nest.loop("m", kinds)
        return f"{{\n{pointers}const INDEX first = o * count;\nconst u32 m = (u32)count;\n{text}}}\n"

    def _parameters(self) -> tuple[KernelParameter, ...]:
        row = self.row
        buffers = [
            (writes if i < row.written else reads)(name, c.memory) for i, (name, c) in enumerate(row.arrays.items())
        ]
        head = [*[f"{name}_at" for name in row.arrays], "outputs", "count", "per_item"]
        head += [*[f"k{d}" for d in range(self.layout.kept)], "span0"]
        head += [f"{name}_k{d}" for name in row.addressed for d in range(self.layout.kept)]
        head += [f"{name}_r0" for name in row.addressed]
        numbers = [number(f"s{i}", type) for i, type in enumerate(row.numbers)]
        return (*buffers, *map(number, head), *numbers)
