"""The loop nests of elementwise kernels: contiguous arrays, rows of several dims, tiles of two dims, and one lane per
element.

On serial devices a work-item processes a chunk of elements. Its innermost loop has a 32-bit counter from 0 over
pointers to the start of the chunk and is marked ``INDEPENDENT``, so that the compiler of every driver vectorises it.

An expression that costs more for rare values says ``RARE(condition) ? costly : usual``. A serial work-item first looks
for such values. If there is none, as in most chunks, its loop has the usual expression alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from candelabra.dtypes import dtype

from candelabra_clike.refusals import reasons_in
from candelabra_clike.source import Parameter, Source, number, reads, writes
from candelabra_clike.types import CTYPES

CHUNK = 4096
"""Elements of a work-item on serial devices."""
BLOCK_BYTES = 1024
"""The size of the block of results that a work-item buffers before non-temporal stores."""
LINE_BYTES = 64
"""The size of a non-temporal store: a cache line."""
TILE = 32
"""Rows and columns of a tile of two dims along which different arrays are contiguous. A tile fits in any cache."""
NAMES = "abcdefgh"
"""The names of operands in an expression, in order. Its numbers are ``s0``, ``s1`` …"""
RARE = re.compile(r"RARE\(([^()]*)\)")
HOISTED, UNIT, STEP = range(3)
"""The kinds of stride along the innermost dim: 0 (the element is loaded before the loop), 1, or any other."""


@dataclass(frozen=True)
class LoopNest:
    """The loop nests of one expression: ``out = expression(a, b, …, s0, s1, …)``.

    In a nest without operands, ``AT`` in the expression is the index of the element in a contiguous output.
    """

    name: str
    expression: str
    inputs: tuple[dtype, ...]
    output: dtype
    numbers: tuple[str, ...] = ()
    contract: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arrays, the output first."""
        return ("out", *NAMES[: len(self.inputs)])

    @property
    def memory(self) -> dict[str, str]:
        """The type of each array's elements in memory."""
        return {n: CTYPES[d].memory for n, d in zip(self.names, (self.output, *self.inputs), strict=True)}

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """The reasons for which the expression refuses values, see :mod:`candelabra_clike.refusals`."""
        return reasons_in(self.expression)

    # -- the five forms -----------------------------------------------------------------------------------------------
    def flat(self, serial: bool) -> Source:
        """Return the kernel for contiguous arrays of ``n`` elements."""
        if serial:
            body = self._chunk(self.names) + self._loop("m", (UNIT,) * len(self.names), at="first + i")
        else:
            elements = {n: f"{n}[{n}_at + i]" for n in self.names}
            body = f"const INDEX i = GLOBAL_ID;\nif (i < n) {{\n{self._element_step(elements, 'i')}}}\n"
        return self._source(self.name, (number("n"),), body, wide=True)

    def nontemporal(self) -> Source:
        """Return the kernel for contiguous arrays on serial devices that writes the result, which is aligned, past the
        caches.

        To write part of a cache line, a processor first reads the line: a quarter of all memory traffic of ``a + b``.
        Therefore a block of the result is computed in private memory by the usual loop, and stored by whole lines.
        """
        type = self.memory["out"]
        per_line, per_block = (size // self.output.itemsize for size in (LINE_BYTES, BLOCK_BYTES))
        ahead = "".join(f" p{n} += many;" for n in self.names[1:])
        body = (
            f"{self._chunk(self.names[1:])}GLOBAL {type}* to = out + (out_at + first);\n"
            f"union {{ {type} each[{per_block}]; CACHE_LINE lines[{per_block // per_line}]; }} block;\n"
            f"{type}* pout = block.each;\n"
            f"for (u32 from = 0; from < m; from += {per_block}u) {{\n"
            f"const u32 left = m - from, many = left < {per_block}u ? left : {per_block}u;\n"
            f"{self._loop('many', (UNIT,) * len(self.names))}"
            f"const u32 lines = many / {per_line}u;\n"
            "for (u32 i = 0; i < lines; ++i) STORE_NONTEMPORAL((GLOBAL CACHE_LINE*)to + i, block.lines[i]);\n"
            f"for (u32 i = lines * {per_line}u; i < many; ++i) to[i] = block.each[i];\n"
            f"to += many;{ahead}\n}}\n"
        )
        return self._source(f"{self.name}_past_caches", (number("n"),), body, wide=True)

    def rows(self, rank: int, inner: Sequence[int]) -> Source:
        """Return the kernel for serial devices: a work-item processes ``rows_per_item`` rows, or a segment of ``width``
        of one row.

        ``inner`` is the kind of stride of each array along the last dim.
        """
        last = rank - 1
        starts = "".join(
            self._pointer(n, f"{n} + ({n}_row{_stride_term('start', n, last, kind)})")
            for n, kind in zip(self.names, inner)
        )
        body = (
            "const INDEX item = GLOBAL_ID / segments, start = GLOBAL_ID % segments * width;\n"
            f"const INDEX beyond = n{last} - start;\nconst u32 m = beyond < width ? (u32)beyond : (u32)width;\n"
            "const INDEX first = item * rows_per_item, after = rows - first;\n"
            "const INDEX end = first + (after < rows_per_item ? after : rows_per_item);\n"
            f"{self._row_offsets(rank, 'first', last)}"
            f"for (INDEX row = first; row < end; ++row) {{\n{starts}{self._loop('m', inner, last)}"
            f"{self._advance(last)}}}\n"
        )
        head = (number("rows"), number("rows_per_item"), number("segments"), number("width"), *self._dims(rank))
        return self._source(f"{self.name}_rows{rank}", head, body, wide=True)

    def tiles(self, rank: int, inner: Sequence[int]) -> Source:
        """Return the kernel for serial devices in which a work-item processes the tiles of a band of ``TILE`` rows."""
        last, across = rank - 1, rank - 2
        starts = "".join(
            self._pointer(n, f"{n} + ({n}_row + (band + i) * {n}_s{across}{_stride_term('left', n, last, kind)})")
            for n, kind in zip(self.names, inner)
        )
        body = (
            f"const INDEX bands = (n{across} + {TILE - 1}u) / {TILE}u, first = GLOBAL_ID / bands;\n"
            f"const INDEX band = GLOBAL_ID % bands * {TILE}u, below = n{across} - band;\n"
            f"const u32 height = below < {TILE}u ? (u32)below : {TILE}u;\n"
            f"{self._row_offsets(rank, 'first', across)}"
            f"for (INDEX left = 0; left < n{last}; left += {TILE}u) {{\n"
            f"const INDEX beyond = n{last} - left;\nconst u32 m = beyond < {TILE}u ? (u32)beyond : {TILE}u;\n"
            f"for (u32 i = 0; i < height; ++i) {{\n{starts}{self._loop('m', inner, last, 'j')}}}\n}}\n"
        )
        return self._source(f"{self.name}_tiles{rank}", self._dims(rank), body, wide=True)

    def lanes(self, rank: int, wide: bool) -> Source:
        """Return the kernel in which a work-item is one element; for any strides."""
        elements = {n: f"{n}[{n}_row]" for n in self.names}
        body = (
            "const INDEX element = GLOBAL_ID;\nif (element < n) {\n"
            f"{self._row_offsets(rank, 'element', rank)}{self._element_step(elements)}}}\n"
        )
        return self._source(f"{self.name}_{rank}d", (number("n"), *self._dims(rank)), body, wide)

    # -- helpers ------------------------------------------------------------------------------------------------------
    def _source(self, name: str, head: Sequence[Parameter], body: str, wide: bool) -> Source:
        memory = self.memory
        parameters = [
            writes("out", memory["out"]),
            *[reads(n, memory[n]) for n in self.names[1:]],
            *[number(f"{n}_at") for n in self.names],
            *head,
            *[number(f"s{i}", type) for i, type in enumerate(self.numbers)],
        ]
        if self.reasons:
            parameters += [writes("errors", "i64"), *[number(reason, "u32") for reason in self.reasons]]
            body = f"u32 refused = 0;\n{body}if (refused) report_error(errors, refused, 0, 0, 0);"
        return Source(name, tuple(parameters), body, None, wide, self.contract)

    def _dims(self, rank: int) -> tuple[Parameter, ...]:
        return (
            *[number(f"n{d}") for d in range(rank)],
            *[number(f"{n}_s{d}") for n in self.names for d in range(rank)],
        )

    def _chunk(self, names: Sequence[str]) -> str:
        """Return statements for the chunk of a serial work-item over contiguous arrays: its size ``m`` and pointers."""
        head = f"const INDEX first = GLOBAL_ID * {CHUNK}u, rest = n - first;\n"
        count = f"const u32 m = rest < {CHUNK}u ? (u32)rest : {CHUNK}u;\n"
        return head + count + "".join(self._pointer(n, f"{n} + ({n}_at + first)") for n in names)

    def _pointer(self, n: str, start: str) -> str:
        return f"GLOBAL {'' if n == 'out' else 'const '}{self.memory[n]}* p{n} = {start};\n"

    def _row_offsets(self, rank: int, number: str, dims: int) -> str:
        """Return statements for the offset of each array at a flat index along the first ``dims`` dims, and coordinates
        ``p0`` …
        """
        lines = [f"INDEX {n}_row = {n}_at;\n" for n in self.names]
        if dims:
            lines.append(f"INDEX rest_of = {number};\n")
        for d in range(dims - 1, -1, -1):
            coordinate = f"rest_of % n{d}; rest_of /= n{d}" if d else "rest_of"
            lines.append(f"INDEX p{d} = {coordinate};")
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

    def _loop(self, count: str, inner: Sequence[int], last: int = 0, i: str = "i", at: str = "0") -> str:
        """Return the innermost loop over the pointers. Elements with stride 0 are loaded before it."""
        offsets = {UNIT: i, STEP: f"{i} * {{n}}_s{last}"}
        kinds = dict(zip(self.names, inner, strict=True))
        elements = {n: f"p{n}[{offsets[k].format(n=n)}]" for n, k in kinds.items() if k != HOISTED}
        before = "".join(self._load(n, f"*p{n}") for n, k in kinds.items() if k == HOISTED)
        head = f"INDEPENDENT\nfor (u32 {i} = 0; {i} < {count}; ++{i}) {{\n"
        rare = RARE.search(self.expression)
        if rare is None:
            return f"{before}{head}{self._element_step(elements, at)}}}\n"
        names = [n for n in self.names[1:] if n in elements and f"{{{n}}}" in rare[1]]
        loads = "".join(self._load(n, elements[n]) for n in names)
        return (
            f"{before}u32 rare = 0;\n{head}{loads}rare |= {self._filled(rare[1])} ? ~0u : 0u;\n}}\n"
            f"if (rare) {{\n{head}{self._element_step(elements, at)}}}\n}} else {{\n"
            f"{head}{self._element_step(elements, at, rare='0')}}}\n}}\n"
        )

    def _load(self, n: str, element: str) -> str:
        ctype = CTYPES[self.inputs[NAMES.index(n)]]
        return f"const {ctype.value} v{n} = {ctype.load(element)};\n"

    def _element_step(self, elements: dict[str, str], at: str = "0", rare: str = r"(\1)") -> str:
        """Return statements that load, compute and store one element. ``elements`` are the element
        expressions of the arrays. ``rare`` replaces the condition of rare values.
        """
        loads = "".join(self._load(n, elements[n]) for n in self.names[1:] if n in elements)
        value = re.sub(r"\bAT\b", f"({at})", self._filled(RARE.sub(rare, self.expression)))
        return f"{loads}{elements['out']} = {CTYPES[self.output].store(value)};\n"

    def _filled(self, expression: str) -> str:
        """Return the expression of the values that are loaded."""
        return expression.format(**{n: f"v{n}" for n in self.names[1:]})


def _stride_term(index: str, n: str, last: int, kind: int) -> str:
    """Return the term of an offset for an index along the last dim."""
    return {HOISTED: "", UNIT: f" + {index}", STEP: f" + {index} * {n}_s{last}"}[kind]
