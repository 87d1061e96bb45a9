"""The C of programs over rows: some reductions of each row, one after the other, then a value for every element.

A row is what the reduced dims of one output span. Operands have a step along each dim, 0 where they broadcast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from candelabra_clike.source import Parameter, Source, number, reads, writes
from candelabra_clike.types import CType

NAMES = "abcdef"
"""What expressions call the operands."""


class Pass(NamedTuple):
    """A reduction of a row: of ``each`` element, joined (``max`` or ``sum``), with a ``result``.

    ``each`` is of operands ``{a}``, ``{b}`` … and earlier results ``{r0}``, ``{r1}`` …; ``result`` is of the total
    ``{t}``, of ``count``, of earlier results and of the program's numbers ``s0`` …. ``keep``: each element is also
    written to the output, where later expressions find it as ``{o}``. ``written``: the result is an output too.
    """

    each: str
    join: str
    result: str = "{t}"
    keep: bool = False
    written: bool = False

    def joined(self, a: str, b: str) -> str:
        """The expression of two that have become one."""
        return f"(({a}) > ({b}) ? ({a}) : ({b}))" if self.join == "max" else f"({a} + {b})"


@dataclass(frozen=True)
class Program:
    """Passes, and the ``last`` expression: the output's element; without one there is only what passes write.

    ``EXP``, ``LOG``, ``SQRT`` and ``POWER`` in expressions are the functions of the type; ``T`` is the type of values.
    ``scalar``: expressions do not hold for vectors of eight as they stand.
    """

    name: str
    operands: int
    passes: tuple[Pass, ...]
    last: str = ""
    numbers: int = 0
    scalar: bool = False


class Layout(NamedTuple):
    """What the text depends on beside the program: numbers of dims, and the last steps (2: neither 0 nor 1)."""

    kept: int
    reduced: int
    inner: tuple[int, ...]
    """Along the innermost loop: of the output, then of each operand."""
    columns: bool = False

    @property
    def mark(self) -> str:
        """A short form, for the names of kernels."""
        return f"{self.kept}{self.reduced}_{''.join(map(str, self.inner))}{'c' if self.columns else ''}"


class RowText:
    """What all forms share: loads, stores, places. ``elements`` are the types of the output and of the operands."""

    def __init__(self, program: Program, elements: tuple[CType, ...], layout: Layout, float64: bool) -> None:
        self.program = program
        self.elements = elements
        self.layout = layout
        self.value = elements[0].value
        self.total = "f64" if float64 else "f32"
        self.names = ("out", *[f"in_{n}" for n in NAMES[: program.operands]])
        self.scalar_words = {
            "EXP": f"exp_{self.value}",
            "LOG": f"log_{self.value}",
            "SQRT": f"SQRT_{self.value.upper()}",
            "POWER": f"power_{self.value}",
        }

    def parameters(self, *own: str) -> tuple[Parameter, ...]:
        """Buffers, offsets and sizes, then all steps of the kept dims, then of the reduced ones, then numbers."""
        written = [i for i, p in enumerate(self.program.passes) if p.written]
        buffers = [writes("out", self.elements[0].memory)] if self.program.last else []
        buffers += [writes(f"w{i}", self.elements[0].memory) for i in written]
        buffers += [reads(n, e.memory) for n, e in zip(self.names[1:], self.elements[1:], strict=True)]
        head = [f"{n}_at" for n in self.names[1:]] + ["outputs", "count", *own]
        dims = [f"k{d}" for d in range(self.layout.kept)] + [f"span{d}" for d in range(self.layout.reduced)]
        steps = [f"{n}_k{d}" for n in self.names for d in range(self.layout.kept)]
        steps += [f"{n}_r{d}" for n in self.names for d in range(self.layout.reduced)]
        numbers = [number(f"s{i}", self.value) for i in range(self.program.numbers)]
        return (*buffers, *[number(n) for n in (*head, *dims, *steps)], *numbers)

    def source(self, form: str, body: str, own: tuple[str, ...], wide: bool, group: int | None) -> Source:
        """The kernel of one form."""
        name = f"{self.program.name}_{self.elements[1].memory}_{self.elements[1].converts}_{form}_{self.layout.mark}"
        return Source(name, self.parameters(*own), body, wide=wide, group=group, contract=True)

    # -- places -------------------------------------------------------------------------------------------------------
    def rows(self, flat: str, dims: range) -> str:
        """Where the row of output number ``flat`` begins in each array: ``a_row`` …, for some of the kept dims."""
        starts = "".join(f"INDEX {n}_row = {'0' if n == 'out' else f'{n}_at'};\n" for n in self.names)
        return starts + self._moved("row", flat, "k", dims)

    def runs(self, flat: str, dims: range) -> str:
        """Where the run number ``flat`` of a row begins: ``a_run`` …, for some of the reduced dims."""
        return "".join(f"INDEX {n}_run = {n}_row;\n" for n in self.names) + self._moved("run", flat, "r", dims)

    def _moved(self, what: str, flat: str, prefix: str, dims: range) -> str:
        if not dims:
            return ""
        size = "k" if prefix == "k" else "span"
        lines = [f"INDEX left = {flat};"]
        for d in reversed(dims):
            place = f"left % {size}{d}" if d else "left"
            adds = " ".join(f"{n}_{what} += p * {n}_{prefix}{d};" for n in self.names)
            lines.append(f"{{ const INDEX p = {place}; {adds} }}" + (f" left /= {size}{d};" if d else ""))
        return "{ " + "\n".join(lines) + " }\n"

    def place(self, k: int, i: str) -> str:
        """The place of element ``i`` of the innermost loop in array number ``k``."""
        name, inner = self.names[k], self.layout.inner[k]
        last = f"k{self.layout.kept - 1}" if self.layout.columns else f"r{self.layout.reduced - 1}"
        return f"{name}_run" + ("", f" + {i}", f" + ({i}) * {name}_{last}")[inner]

    # -- one element --------------------------------------------------------------------------------------------------
    def loads(self, expression: str, i: str) -> str:
        """The operands that an expression names, as scalars ``va`` …, and ``vo``, what was kept of the output."""
        text = ""
        for k, name in enumerate(self.names[1:], 1):
            if f"{{{name[3:]}}}" in expression:
                text += f"const {self.value} v{name[3:]} = {self.elements[k].load(f'{name}[{self.place(k, i)}]')};\n"
        if "{o}" in expression:
            text += f"const {self.value} vo = out[{self.place(0, i)}];\n"
        return text

    def words(self, expression: str, results: str = "r{}") -> str:
        """An expression of scalars with everything filled in but the total."""
        names = {n: f"v{n}" for n in (*NAMES, "o")}
        names |= {f"r{i}": results.format(i) for i in range(len(self.program.passes))}
        text = expression.format(t="total", **names)
        for word, function in self.scalar_words.items():
            text = text.replace(word, function)
        return text.replace("(T)", f"({self.value})").replace("(W)", f"({self.total})")

    def stored(self, i: str, value: str) -> str:
        """The statement that writes an element of the output."""
        return f"out[{self.place(0, i)}] = {self.elements[0].store(f'({value})')};\n"

    def first(self, p: Pass) -> str:
        """What a pass begins with."""
        if p.join == "sum":
            return "0"
        return "BITS_F32(0xFF800000u)" if self.value == "f32" else "BITS_F64(0xFFF0000000000000ul)"

    def written(self, index: int, place: str, result: str) -> str:
        """The statement that writes the result of a pass, if it is an output."""
        if not self.program.passes[index].written:
            return ""
        return f"w{index}[{place}] = {self.elements[0].store(result)};\n"
