"""The common parts of the sources of row kernels, which run the programs of
:mod:`candelabra_clike.templates.rows.program`.

A row consists of the elements of the reduced dims that belong to one output. Operands are broadcast by strides of 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from candelabra_clike.language import Value, Variable, text
from candelabra_clike.source import KernelParameter, Source, number, reads, writes
from candelabra_clike.templates.index_walker import offset_lines
from candelabra_clike.templates.rows.program import NAMES, RowProgram, RowReduction, RowTypes
from candelabra_clike.types import CType

OUTPUTS: Final = ("out", "second")
"""The names of outputs in kernels. They have one layout."""


class RowLayout(NamedTuple):
    """The properties of the layout that the source depends on: numbers of dims, and the innermost strides (2: neither 0
    nor 1).
    """

    kept: int
    reduced: int
    inner: tuple[int, ...]
    """The strides of the innermost loop: of the output, then of each operand."""
    columns: bool = False

    @property
    def mark(self) -> str:
        """A short description, used in the names of kernels."""
        return f"{self.kept}{self.reduced}_{''.join(map(str, self.inner))}{'c' if self.columns else ''}"


class RowSourceBuilder:
    """The common part of all forms: load_operands, stores, offsets. ``elements`` are the types of the output and of the
    operands.
    """

    def __init__(self, program: RowProgram, elements: tuple[CType, ...], layout: RowLayout, float64: bool) -> None:
        self.program = program
        self.elements = elements
        self.layout = layout
        self.value = elements[0].value
        self.types = RowTypes(self.value, "f64" if float64 else "f32")
        self.names = (OUTPUTS[0], *[f"in_{n}" for n in NAMES[: program.operands]])
        self.addressed = self.names
        """The arrays whose offsets the kernel computes."""

    def parameters(self, *own: str) -> tuple[KernelParameter, ...]:
        """Return buffers, offsets and sizes, then the strides of the kept dims, then those of the reduced dims, then
        numbers.
        """
        stored_result = [i for i, p in enumerate(self.program.passes) if p.stored_result]
        buffers = [writes(n, self.elements[0].memory) for n in OUTPUTS[: len(self.program.outputs)]]
        buffers += [writes(f"w{i}", self.elements[0].memory) for i in stored_result]
        buffers += [reads(n, e.memory) for n, e in zip(self.names[1:], self.elements[1:], strict=True)]
        head = [f"{n}_at" for n in self.names[1:]] + ["outputs", "count", *own]
        dims = [f"k{d}" for d in range(self.layout.kept)] + [f"span{d}" for d in range(self.layout.reduced)]
        steps = [f"{n}_k{d}" for n in self.names for d in range(self.layout.kept)]
        steps += [f"{n}_r{d}" for n in self.names for d in range(self.layout.reduced)]
        numbers = [number(f"s{i}", self.value) for i in range(self.program.numbers)]
        return (*buffers, *[number(n) for n in (*head, *dims, *steps)], *numbers)

    def source(self, form: str, body: str, own: tuple[str, ...], wide: bool, group: int | None) -> Source:
        """Return the kernel of one form."""
        name = f"{self.program.name}_{self.elements[1].memory}_{self.elements[1].converts}_{form}_{self.layout.mark}"
        return Source(name, self.parameters(*own), body, wide=wide, group=group, contract=self.program.contract)

    # -- offsets ------------------------------------------------------------------------------------------------------
    def rows(self, flat: str, dims: range) -> str:
        """Return statements for the offset ``a_row`` … of row ``flat`` in each array, along some of the kept dims."""
        starts = "".join(f"INDEX {n}_row = {self.start(n)};\n" for n in self.addressed)
        return starts + self._add_offsets("row", flat, "k", dims)

    def start(self, name: str) -> str:
        """Return the offset of the first element of an array."""
        return "0" if name == "out" else f"{name}_at"

    def runs(self, flat: str, dims: range) -> str:
        """Return statements for the offset ``a_run`` … of run ``flat`` of a row, along some of the reduced dims."""
        return "".join(f"INDEX {n}_run = {n}_row;\n" for n in self.addressed) + self._add_offsets(
            "run", flat, "r", dims
        )

    def _add_offsets(self, unit: str, flat: str, prefix: str, dims: range) -> str:
        sizes = "k" if prefix == "k" else "span"
        lines = offset_lines(self.addressed, len(dims), flat, sizes, f"_{prefix}", f"_{unit}")
        return "".join(f"{line}\n" for line in lines)

    def offset(self, k: int, i: str) -> str:
        """Return the offset of element ``i`` of the innermost loop in array ``k``."""
        name, inner = self.names[k], self.layout.inner[k]
        last = f"k{self.layout.kept - 1}" if self.layout.columns else f"r{self.layout.reduced - 1}"
        return f"{name}_run" + ("", f" + {i}", f" + ({i}) * {name}_{last}")[inner]

    # -- one element --------------------------------------------------------------------------------------------------
    def element(self, position: int, results: str = "r{}") -> Value:
        """Return the expression of an element, see :meth:`RowProgram.element`."""
        return self.program.element(position, self.value, results)

    def result(self, position: int, total: str, results: str = "r{}") -> str:
        """Return the text of the result of a reduction, from the name of its total."""
        return text(self.program.result(position, self.types, total, results))

    def load_operands(self, values: Iterable[Value], i: str) -> str:
        """Return statements that load the operands of expressions as scalars ``va`` …, and stored output elements as
        ``vo``.
        """
        statements, read = "", variables(values)
        for k, (letter, name) in enumerate(zip(NAMES, self.names[1:]), 1):
            if f"v{letter}" in read:
                loaded = self.elements[k].load(f"{name}[{self.offset(k, i)}]")
                statements += f"const {self.value} v{letter} = {loaded};\n"
        if "vo" in read:
            statements += f"const {self.value} vo = {self.names[0]}[{self.offset(0, i)}];\n"
        return statements

    def output(self, k: int) -> str:
        """Return the name of output ``k``."""
        return OUTPUTS[k] if k else self.names[0]

    def store(self, i: str, value: str, k: int = 0) -> str:
        """Return the statement that stores an element of output ``k``."""
        return f"{self.output(k)}[{self.offset(0, i)}] = {self.elements[0].store(f'({value})')};\n"

    def total_type(self, p: RowReduction) -> str:
        """Return the type of the total of a reduction."""
        return p.operation.total(self.types)

    def identity(self, p: RowReduction) -> str:
        """Return the initial value of a reduction."""
        return p.operation.identity(self.value)

    def combine(self, p: RowReduction, *values: str) -> str:
        """Return the text that combines two values of a reduction, or two vectors of them."""
        return p.operation.combine(self.value, *values)

    def stored_result(self, index: int, offset: str, result: str) -> str:
        """Return the statement that stores the result of a reduction, if it is an output."""
        if not self.program.passes[index].stored_result:
            return ""
        return f"w{index}[{offset}] = {self.elements[0].store(result)};\n"


def variables(values: Iterable[Value]) -> set[str]:
    """Return the names of the variables in expressions."""
    return {node.name for value in values for node in value.walk() if isinstance(node, Variable)}
