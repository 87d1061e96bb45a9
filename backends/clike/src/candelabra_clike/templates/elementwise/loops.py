"""The loop nests of elementwise kernels: contiguous arrays, rows of several dims, and one lane per element. Vectors of
lanes, tiles of two dims and stores past the caches are in modules of their own.

On devices whose work-items are lanes, a lane processes a vector of contiguous arrays: one load of 16 bytes per array
keeps four times as many bytes in flight as one of an element, which is what the bandwidth of their memory takes.

On serial devices a work-item processes a chunk of elements. Its innermost loop has a 32-bit counter from 0 over
pointers to the start of the chunk and is marked ``INDEPENDENT``, so that the compiler of every driver vectorises it.

An expression that costs more for rare values has a :func:`~candelabra_clike.language.rare` choice. A serial work-item
first looks for such values in a block of elements. If there is none, as in most blocks, its loop has the usual
expression alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from candelabra.dtypes import dtype

from candelabra_clike.language import Value, Variable, reasons_in, text, value_type
from candelabra_clike.language.lane_vectors import VECTOR_BYTES
from candelabra_clike.language.printing import type_name
from candelabra_clike.language.values import Select
from candelabra_clike.library import needed
from candelabra_clike.source import KernelParameter, Source, number, reads, writes
from candelabra_clike.templates.elementwise.vectors import contiguous_vectors
from candelabra_clike.templates.index_walker import declare_coordinates
from candelabra_clike.templates.random_numbers import DRAWN, Draw
from candelabra_clike.types import CTYPES

CHUNK = 4096
"""Elements of a work-item on serial devices."""
RARE_BLOCK = 128
"""Elements that a serial work-item searches for rare values before it computes them: so few that the processor loads
the next block while it computes. With a whole chunk, it would wait for memory in one loop and compute in the next.
"""
LONGEST_STEP = 3000
"""Characters of library functions, without those for rare values, up to which a lane processes a vector. Longer ones
are bound by computation, and a copy of them per element would take long to compile.
"""
NAMES = "abcdefgh"
"""The names of the arrays of operators, in order. The numbers are ``s0``, ``s1`` …"""
HOISTED, UNIT, STEP, TRANSPOSED = range(4)
"""The kinds of stride along the innermost dim: 0 (the element is loaded before the loop), 1, or any other.

``TRANSPOSED`` is any other of an array that is contiguous along the dim before it; only tiles distinguish it.
"""


def input_names(count: int) -> tuple[str, ...]:
    """Return the names of the arrays that a kernel reads. Only fused kernels have more than operators."""
    return tuple(NAMES[:count]) if count <= len(NAMES) else tuple(f"in{i}" for i in range(count))


def operands(inputs: Sequence[dtype]) -> tuple[Variable, ...]:
    """Return the elements of the arrays of a kernel as values."""
    return tuple(Variable(value_type(d), f"v{n}") for n, d in zip(input_names(len(inputs)), inputs))


AT = Variable("u64", "at")
"""The index of the element in a contiguous output, for kernels without arrays to read."""


@dataclass(frozen=True, eq=False)
class LoopNest:
    """The loop nests of a kernel. Every element of the outputs is computed from the elements of the inputs at its
    position, and from numbers.

    ``values`` are those of the outputs: expressions of :func:`operands`, of numbers ``s0`` …, and of the variables that
    ``steps`` define in order. With ``contract``, ``a * b + c`` may be fused.
    """

    name: str
    values: tuple[Value, ...]
    inputs: tuple[dtype, ...]
    outputs: tuple[dtype, ...]
    numbers: tuple[str, ...] = ()
    contract: bool = False
    steps: tuple[tuple[Variable, Value], ...] = ()
    draws: tuple[Draw, ...] = ()
    """Random numbers of the elements, which only kernels for contiguous arrays have: a counter gives several."""

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return ("out",) if len(self.outputs) == 1 else tuple(f"out{i}" for i in range(len(self.outputs)))

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return input_names(len(self.inputs))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arrays, the outputs first."""
        return (*self.written, *self.read)

    @cached_property
    def dtypes(self) -> dict[str, dtype]:
        """The dtype of each array."""
        return dict(zip(self.names, (*self.outputs, *self.inputs), strict=True))

    @cached_property
    def memory(self) -> dict[str, str]:
        """The type of each array's elements in memory."""
        return {n: CTYPES[d].memory for n, d in self.dtypes.items()}

    @cached_property
    def nodes(self) -> tuple[Value, ...]:
        """The nodes of all expressions."""
        return tuple(node for value in (*[v for _, v in self.steps], *self.values) for node in value.walk())

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """The reasons for which an expression refuses values, see :mod:`candelabra_clike.device_errors`."""
        return reasons_in(*[v for _, v in self.steps], *self.values)

    @cached_property
    def rare(self) -> tuple[Value, ...]:
        """The conditions of rare values."""
        return tuple(node.condition for node in self.nodes if isinstance(node, Select) and node.rare)

    @cached_property
    def uses_library(self) -> bool:
        """Whether the kernel for contiguous arrays on serial devices calls functions of the library."""
        return bool(needed(self.flat(serial=True).body))

    # -- forms --------------------------------------------------------------------------------------------------------
    def flat(self, serial: bool) -> Source:
        """Return the kernel for contiguous arrays of ``n`` elements."""
        if self.draws:
            return self.source(self.name, (number("n"),), self._drawing(serial), wide=True)
        if serial:
            body = self.chunk(self.names) + self.chunk_loop((UNIT,) * len(self.names), at="first + i")
        else:
            body = contiguous_vectors(self, self.per_lane)
        return self.source(self.name, (number("n"),), body, wide=True)

    @cached_property
    def per_lane(self) -> int:
        """The elements of contiguous arrays that a lane processes on devices that are not serial."""
        if self.draws:
            return self.per_counter
        step = self.element_step({n: n for n in self.names}, rare="usual")
        if len(needed(step)) > LONGEST_STEP:
            return 1
        return max(1, VECTOR_BYTES // max(d.itemsize for d in (*self.outputs, *self.inputs)))

    def _drawing(self, serial: bool) -> str:
        """Return the body of a kernel with random numbers: a work-item first draws those of a block of elements.

        On devices that are not serial, a block has the elements of one counter.
        """
        per = self.per_counter
        if serial:
            return f"{self.chunk(self.names)}{self.drawn((UNIT,) * len(self.names))}"
        elements = {n: f"{n}[{n}_at + at]" for n in self.names}
        numbers = "".join(draw.block(1, "GLOBAL_ID", "MULTIPLY_HIGH") for draw in self.draws)
        return (
            f"const INDEX first = GLOBAL_ID * {per}u;\nif (first < n) {{\n{numbers}"
            f"UNROLL for (u32 i = 0; i < {per}u; ++i) {{\nconst INDEX at = first + i;\n"
            f"if (at < n) {{\n{self.element_step(elements)}}}\n}}\n}}\n"
        )

    def drawn(self, inner: Sequence[int], block: int = DRAWN) -> str:
        """Return the loop over ``m`` elements from ``first`` on, a multiple of the elements of a counter, with random
        numbers, which are drawn for ``block`` elements at a time. It moves the pointers.
        """
        per = self.per_counter
        numbers = "".join(d.block(block // per, f"(first + from) / {per}u", "multiply_high_u64") for d in self.draws)
        return self._blocks(block, numbers + self.loop("many", inner), inner)

    def chunk_loop(self, inner: Sequence[int], last: int = 0, at: str = "0") -> str:
        """Return the loop over the ``m`` elements of a chunk. If there may be rare values, it moves the pointers."""
        if not self.rare:
            return self.loop("m", inner, last, at=at)
        return self._blocks(
            RARE_BLOCK, self.loop("many", inner, last, at=f"{at} + from", whole=RARE_BLOCK), inner, last
        )

    def _blocks(self, block: int, statements: str, inner: Sequence[int], last: int = 0) -> str:
        """Return the loop over blocks of ``m`` elements, each of which has ``many``, with statements that process one.

        It moves the pointers.
        """
        steps = {UNIT: "many", STEP: f"many * {{n}}_s{last}"}
        ahead = "".join(f"p{n} += {steps[kind].format(n=n)}; " for n, kind in zip(self.names, inner) if kind in steps)
        return (
            f"for (u32 from = 0; from < m; from += {block}u) {{\n"
            f"const u32 left = m - from, many = left < {block}u ? left : {block}u;\n"
            f"{statements}{ahead}\n}}\n"
        )

    @property
    def per_counter(self) -> int:
        """The elements whose random numbers come of one counter."""
        return len(self.draws[0].values)

    def rows(self, rank: int, inner: Sequence[int]) -> Source:
        """Return the kernel for serial devices: a work-item processes ``rows_per_item`` rows, or a segment of ``width``
        of one row.

        ``inner`` is the kind of stride of each array along the last dim.
        """
        starts = "".join(self.pointer(n, start) for n, start in self.row_starts(rank, inner).items())
        return self.over_rows(f"{self.name}_rows{rank}", rank, starts + self.chunk_loop(inner, rank - 1))

    def row_starts(self, rank: int, inner: Sequence[int]) -> dict[str, str]:
        """Return where the segment of a row starts in each array."""
        kinds = zip(self.names, inner, strict=True)
        return {n: f"{n} + ({n}_row{stride_term('start', n, rank - 1, kind)})" for n, kind in kinds}

    def over_rows(self, name: str, rank: int, row: str, before: str = "") -> Source:
        """Return the kernel of work-items that process ``m`` elements of rows by the statements ``row``."""
        last = rank - 1
        body = (
            "const INDEX item = GLOBAL_ID / segments, start = GLOBAL_ID % segments * width;\n"
            f"const INDEX beyond = n{last} - start;\nconst u32 m = beyond < width ? (u32)beyond : (u32)width;\n"
            "const INDEX first = item * rows_per_item, after = rows - first;\n"
            "const INDEX end = first + (after < rows_per_item ? after : rows_per_item);\n"
            f"{before}{self.row_offsets(rank, 'first', last)}"
            f"for (INDEX row = first; row < end; ++row) {{\n{row}{self._advance(last)}}}\n"
        )
        head = (number("rows"), number("rows_per_item"), number("segments"), number("width"), *self.dims(rank))
        return self.source(name, head, body, wide=True)

    def lanes(self, rank: int, wide: bool) -> Source:
        """Return the kernel in which a work-item is one element; for any strides."""
        elements = {n: f"{n}[{n}_row]" for n in self.names}
        body = (
            "const INDEX element = GLOBAL_ID;\nif (element < n) {\n"
            f"{self.row_offsets(rank, 'element', rank)}{self.element_step(elements)}}}\n"
        )
        return self.source(f"{self.name}_{rank}d", (number("n"), *self.dims(rank)), body, wide)

    # -- helpers ------------------------------------------------------------------------------------------------------
    def source(self, name: str, head: Sequence[KernelParameter], body: str, wide: bool) -> Source:
        memory = self.memory
        parameters = [
            *[writes(n, memory[n]) for n in self.written],
            *[reads(n, memory[n]) for n in self.read],
            *[number(f"{n}_at") for n in self.names],
            *head,
            *[number(f"s{i}", type) for i, type in enumerate(self.numbers)],
        ]
        if self.reasons:
            parameters += [writes("errors", "i64"), *[number(reason, "u32") for reason in self.reasons]]
            body = f"u32 refused = 0;\n{body}if (refused) report_error(errors, refused, 0, 0, 0);"
        return Source(name, tuple(parameters), body, None, wide, self.contract)

    def dims(self, rank: int) -> tuple[KernelParameter, ...]:
        return (
            *[number(f"n{d}") for d in range(rank)],
            *[number(f"{n}_s{d}") for n in self.names for d in range(rank)],
        )

    def chunk(self, names: Sequence[str]) -> str:
        """Return statements for the chunk of a serial work-item over contiguous arrays: its size ``m`` and pointers."""
        head = f"const INDEX first = GLOBAL_ID * {CHUNK}u, rest = n - first;\n"
        count = f"const u32 m = rest < {CHUNK}u ? (u32)rest : {CHUNK}u;\n"
        return head + count + "".join(self.pointer(n, f"{n} + ({n}_at + first)") for n in names)

    def pointer(self, n: str, start: str, kind: int = UNIT, step: str = "") -> str:
        """Return the declaration of the pointer to the elements of an array, and of its stride if it has any."""
        stride = f"const INDEX {n}_s0 = {step};\n" if kind == STEP and step else ""
        return f"GLOBAL {'' if n in self.written else 'const '}{self.memory[n]}* p{n} = {start};\n{stride}"

    def row_offsets(self, rank: int, number: str, dims: int) -> str:
        """Return statements for the offset of each array at a flat index along the first ``dims`` dims, and coordinates
        ``p0`` …
        """
        lines = [f"INDEX {n}_row = {n}_at;\n" for n in self.names]
        if dims:
            lines.append(f"INDEX rest_of = {number};\n")
        lines.append(declare_coordinates("p", "rest_of", dims, "n", outermost=True))
        for d in range(dims - 1, -1, -1):
            lines.append(" ".join(f"{n}_row += p{d} * {n}_s{d};" for n in self.names) + "\n")
        return "".join(lines)

    def _advance(self, dims: int) -> str:
        """Return statements that move to the next row: the last of ``dims`` coordinates is incremented with carry."""
        text = ""
        for d in range(dims):
            ahead = " ".join(f"{n}_row += {n}_s{d};" for n in self.names)
            back = " ".join(f"{n}_row -= n{d} * {n}_s{d};" for n in self.names) + f" p{d} = 0;\n{text}"
            text = f"++p{d}; {ahead}\n" + (f"if (p{d} == n{d}) {{ {back}}}\n" if d else "")
        return text

    def loop(self, count: str, inner: Sequence[int], last: int = 0, i: str = "i", at: str = "0", whole: int = 0) -> str:
        """Return the innermost loop over the pointers. Elements with stride 0 are loaded before it.

        Where values may be rare, loops over ``whole`` elements, the usual number, are unrolled.
        """
        offsets = {UNIT: i, STEP: f"{i} * {{n}}_s{last}"}
        kinds = dict(zip(self.names, inner, strict=True))
        elements = {n: f"p{n}[{offsets[k].format(n=n)}]" for n, k in kinds.items() if k != HOISTED}
        before = "".join(self._load(n, f"*p{n}") for n, k in kinds.items() if k == HOISTED)

        def each(statements: str, count: str = count) -> str:
            return f"INDEPENDENT\nfor (u32 {i} = 0; {i} < {count}; ++{i}) {{\n{statements}}}\n"

        def unrolled(statements: str) -> str:
            if not whole:
                return each(statements)
            return f"if ({count} == {whole}u) {{\n{each(statements, f'{whole}u')}}} else {{\n{each(statements)}}}\n"

        if not self.rare:
            return before + each(self.element_step(elements, at))
        return (
            f"{before}u32 rare = 0;\n{unrolled(self.rare_step(elements))}"
            f"if (rare) {{\n{each(self.element_step(elements, at))}}} else {{\n"
            f"{unrolled(self.element_step(elements, at, rare='usual'))}}}\n"
        )

    def _load(self, n: str, element: str) -> str:
        ctype = CTYPES[self.dtypes[n]]
        return f"const {ctype.value} v{n} = {ctype.load(element)};\n"

    def element_step(self, elements: dict[str, str], at: str = "0", rare: str = "") -> str:
        """Return statements that load, compute and store one element. ``elements`` are the element expressions of the
        arrays. ``rare`` is passed to :func:`~candelabra_clike.language.text`.
        """
        lines = [self._computed(elements, at, rare)]
        for n, value in zip(self.written, self.values):
            lines.append(f"{elements[n]} = {CTYPES[self.dtypes[n]].store(text(value, rare))};\n")
        return "".join(lines)

    def _computed(self, elements: dict[str, str], at: str = "0", rare: str = "") -> str:
        """Return statements that load one element of each input and compute the steps."""
        lines = [self._load(n, elements[n]) for n in self.read if n in elements]
        lines += [draw.statement for draw in self.draws]
        lines += [f"const INDEX at = {at};\n"] if any(node is AT for node in self.nodes) else []
        lines += [_definition(variable, value, rare) for variable, value in self.steps]
        return "".join(lines)

    def inlined(self, elements: dict[str, str], result: str) -> str:
        """Return statements that compute one element and define the variable ``result`` as its first value."""
        stores = "".join(
            f"{elements[n]} = {CTYPES[self.dtypes[n]].store(text(value))};\n"
            for n, value in zip(self.written[1:], self.values[1:])
        )
        first = CTYPES[self.outputs[0]].value
        return f"{self._computed(elements)}{stores}const {first} {result} = {text(self.values[0])};\n"

    def rare_step(self, elements: dict[str, str]) -> str:
        """Return statements that compute the conditions of rare values, and what these need."""
        wanted = {node.name for condition in self.rare for node in condition.walk() if isinstance(node, Variable)}
        steps = []
        for variable, value in reversed(self.steps):
            if variable.name in wanted:
                wanted |= {node.name for node in value.walk() if isinstance(node, Variable)}
                steps.append(_definition(variable, value, "usual"))
        loads = [self._load(n, elements[n]) for n in self.read if n in elements and f"v{n}" in wanted]
        tests = [f"rare |= {text(condition)} ? ~0u : 0u;\n" for condition in self.rare]
        draws = [draw.statement for draw in self.draws if draw.variable.name in wanted]
        return "".join([*loads, *draws, *reversed(steps), *tests])


def _definition(variable: Variable, value: Value, rare: str) -> str:
    """Return the statement that computes a variable."""
    return f"const {type_name(variable.type)} {variable.name} = {text(value, rare)};\n"


def stride_kind(step: int) -> int:
    """Return the kind of a stride."""
    return step if step in (HOISTED, UNIT) else STEP


def stride_term(index: str, n: str, last: int, kind: int) -> str:
    """Return the term of an offset for an index along the last dim."""
    return {HOISTED: "", UNIT: f" + {index}", STEP: f" + {index} * {n}_s{last}"}[kind]
