"""The loop nests of elementwise kernels, as text: contiguous; rows of a few dims; tiles of two dims; lanes.

On a device whose work-items are loops (``serial``) a work-item walks a chunk of the elements. Its innermost loop counts
32 bits from 0 over pointers to where the chunk begins, and is said to be ``INDEPENDENT``: then every driver's compiler
puts it into vectors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from candelabra.dtypes import dtype

from candelabra_clike.source import Parameter, Source, number, reads, writes
from candelabra_clike.types import CTYPES

CHUNK = 4096
"""Elements of a work-item that is a loop."""
BLOCK = 1024
"""Bytes of a result that a work-item keeps before they go past the caches."""
LINE = 64
"""Bytes that go at once: a line of any cache."""
TILE = 32
"""Rows and columns of a tile of two dims that different arrays have contiguous: its lines of memory fit any cache."""
NAMES = "abcdefgh"
"""What an expression calls its operands, in order; its numbers are ``s0``, ``s1`` …"""
HOISTED, UNIT, STEP = range(3)
"""What an array does along the innermost dim: stays where it is, goes on by one element, by any number of them."""


@dataclass(frozen=True)
class Nest:
    """What a loop nest does with each element: ``out = expression(a, b, …, s0, s1, …)``.

    Without arrays to read, ``AT`` in the expression is the element's place in a contiguous output.
    """

    name: str
    expression: str
    inputs: tuple[dtype, ...]
    output: dtype
    numbers: tuple[str, ...] = ()
    contract: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The arrays, the output first."""
        return ("out", *NAMES[: len(self.inputs)])

    @property
    def memory(self) -> dict[str, str]:
        """The type of each array's elements in memory."""
        return {n: CTYPES[d].memory for n, d in zip(self.names, (self.output, *self.inputs), strict=True)}

    @property
    def refuses(self) -> bool:
        """Whether some values are not allowed."""
        return "BAD(" in self.expression

    # -- the five forms -----------------------------------------------------------------------------------------------
    def flat(self, serial: bool) -> Source:
        """All arrays contiguous, ``n`` elements."""
        if serial:
            body = self._chunk(self.names) + self._loop("m", (UNIT,) * len(self.names), at="first + i")
        else:
            places = {n: f"{n}[{n}_at + i]" for n in self.names}
            body = f"const INDEX i = GLOBAL_ID;\nif (i < n) {{\n{self._step(places, 'i')}}}\n"
        return self._source(self.name, (number("n"),), body, wide=True)

    def past_caches(self) -> Source:
        """Serial, as :meth:`flat` of arrays, for results too large to stay in a cache; they begin where a line does.

        To write a part of a line a processor reads that line first: a quarter of all the traffic of ``a + b``. So a
        block of the result is computed beside, in a loop as any other, and goes to memory by whole lines.
        """
        type = self.memory["out"]
        per_line, per_block = (size // self.output.itemsize for size in (LINE, BLOCK))
        ahead = "".join(f" p{n} += many;" for n in self.names[1:])
        body = (
            f"{self._chunk(self.names[1:])}GLOBAL {type}* to = out + (out_at + first);\n"
            f"union {{ {type} each[{per_block}]; LINE lines[{per_block // per_line}]; }} block;\n"
            f"{type}* pout = block.each;\n"
            f"for (u32 from = 0; from < m; from += {per_block}u) {{\n"
            f"const u32 left = m - from, many = left < {per_block}u ? left : {per_block}u;\n"
            f"{self._loop('many', (UNIT,) * len(self.names))}"
            f"const u32 lines = many / {per_line}u;\n"
            "for (u32 i = 0; i < lines; ++i) PUT_PAST_CACHES((GLOBAL LINE*)to + i, block.lines[i]);\n"
            f"for (u32 i = lines * {per_line}u; i < many; ++i) to[i] = block.each[i];\n"
            f"to += many;{ahead}\n}}\n"
        )
        return self._source(f"{self.name}_past_caches", (number("n"),), body, wide=True)

    def rows(self, rank: int, inner: Sequence[int]) -> Source:
        """Serial: a work-item walks ``rows_per_item`` rows along the last dim, or a segment of ``width`` of one.

        ``inner`` says what each array does along it.
        """
        last = rank - 1
        starts = "".join(
            self._pointer(n, f"{n} + ({n}_row{_step_to('start', n, last, kind)})") for n, kind in zip(self.names, inner)
        )
        body = (
            "const INDEX item = GLOBAL_ID / segments, start = GLOBAL_ID % segments * width;\n"
            f"const INDEX beyond = n{last} - start;\nconst u32 m = beyond < width ? (u32)beyond : (u32)width;\n"
            "const INDEX first = item * rows_per_item, after = rows - first;\n"
            "const INDEX end = first + (after < rows_per_item ? after : rows_per_item);\n"
            f"{self._place(rank, 'first', last)}"
            f"for (INDEX row = first; row < end; ++row) {{\n{starts}{self._loop('m', inner, last)}"
            f"{self._advance(last)}}}\n"
        )
        head = (number("rows"), number("rows_per_item"), number("segments"), number("width"), *self._dims(rank))
        return self._source(f"{self.name}_rows{rank}", head, body, wide=True)

    def tiles(self, rank: int, inner: Sequence[int]) -> Source:
        """Serial: a work-item walks the tiles of a band of ``TILE`` along the last dim but one."""
        last, across = rank - 1, rank - 2
        starts = "".join(
            self._pointer(n, f"{n} + ({n}_row + (band + i) * {n}_s{across}{_step_to('left', n, last, kind)})")
            for n, kind in zip(self.names, inner)
        )
        body = (
            f"const INDEX bands = (n{across} + {TILE - 1}u) / {TILE}u, first = GLOBAL_ID / bands;\n"
            f"const INDEX band = GLOBAL_ID % bands * {TILE}u, below = n{across} - band;\n"
            f"const u32 height = below < {TILE}u ? (u32)below : {TILE}u;\n"
            f"{self._place(rank, 'first', across)}"
            f"for (INDEX left = 0; left < n{last}; left += {TILE}u) {{\n"
            f"const INDEX beyond = n{last} - left;\nconst u32 m = beyond < {TILE}u ? (u32)beyond : {TILE}u;\n"
            f"for (u32 i = 0; i < height; ++i) {{\n{starts}{self._loop('m', inner, last, 'j')}}}\n}}\n"
        )
        return self._source(f"{self.name}_tiles{rank}", self._dims(rank), body, wide=True)

    def lanes(self, rank: int, wide: bool) -> Source:
        """A work-item is one element; any strides."""
        places = {n: f"{n}[{n}_row]" for n in self.names}
        body = (
            "const INDEX element = GLOBAL_ID;\nif (element < n) {\n"
            f"{self._place(rank, 'element', rank)}{self._step(places)}}}\n"
        )
        return self._source(f"{self.name}_{rank}d", (number("n"), *self._dims(rank)), body, wide)

    # -- parts --------------------------------------------------------------------------------------------------------
    def _source(self, name: str, head: Sequence[Parameter], body: str, wide: bool) -> Source:
        memory = self.memory
        parameters = [
            writes("out", memory["out"]),
            *[reads(n, memory[n]) for n in self.names[1:]],
            *[number(f"{n}_at") for n in self.names],
            *head,
            *[number(f"s{i}", type) for i, type in enumerate(self.numbers)],
        ]
        if self.refuses:
            parameters += [writes("faults", "i64"), number("refusal", "u32")]
            body = f"u32 bad = 0;\n{body}if (bad) complain(faults, refusal, 0, 0, 0);"
        return Source(name, tuple(parameters), body, None, wide, self.contract)

    def _dims(self, rank: int) -> tuple[Parameter, ...]:
        return (
            *[number(f"n{d}") for d in range(rank)],
            *[number(f"{n}_s{d}") for n in self.names for d in range(rank)],
        )

    def _chunk(self, names: Sequence[str]) -> str:
        """The chunk of a serial work-item where all is contiguous: ``m`` elements, and where these arrays have them."""
        head = f"const INDEX first = GLOBAL_ID * {CHUNK}u, rest = n - first;\n"
        count = f"const u32 m = rest < {CHUNK}u ? (u32)rest : {CHUNK}u;\n"
        return head + count + "".join(self._pointer(n, f"{n} + ({n}_at + first)") for n in names)

    def _pointer(self, n: str, start: str) -> str:
        return f"GLOBAL {'' if n == 'out' else 'const '}{self.memory[n]}* p{n} = {start};\n"

    def _place(self, rank: int, number: str, dims: int) -> str:
        """Where each array stands at a number that counts the first ``dims`` dims; ``p0`` … are its coordinates."""
        lines = [f"INDEX {n}_row = {n}_at;\n" for n in self.names]
        if dims:
            lines.append(f"INDEX rest_of = {number};\n")
        for d in range(dims - 1, -1, -1):
            coordinate = f"rest_of % n{d}; rest_of /= n{d}" if d else "rest_of"
            lines.append(f"INDEX p{d} = {coordinate};")
            lines.append(" ".join(f"{n}_row += p{d} * {n}_s{d};" for n in self.names) + "\n")
        return "".join(lines)

    def _advance(self, dims: int) -> str:
        """Go on to the next row: the last of ``dims`` coordinates counts up, and carries."""
        text = ""
        for d in range(dims):
            ahead = " ".join(f"{n}_row += {n}_s{d};" for n in self.names)
            back = " ".join(f"{n}_row -= n{d} * {n}_s{d};" for n in self.names) + f" p{d} = 0;\n{text}"
            text = f"++p{d}; {ahead}\n" + (f"if (p{d} == n{d}) {{ {back}}}\n" if d else "")
        return text

    def _loop(self, count: str, inner: Sequence[int], last: int = 0, i: str = "i", at: str = "0") -> str:
        """The innermost loop, over the pointers. What stays where it is is read before it."""
        place = {UNIT: i, STEP: f"{i} * {{n}}_s{last}"}
        kinds = dict(zip(self.names, inner, strict=True))
        places = {n: f"p{n}[{place[k].format(n=n)}]" for n, k in kinds.items() if k != HOISTED}
        before = "".join(self._load(n, f"*p{n}") for n, k in kinds.items() if k == HOISTED)
        return f"{before}INDEPENDENT\nfor (u32 {i} = 0; {i} < {count}; ++{i}) {{\n{self._step(places, at)}}}\n"

    def _load(self, n: str, element: str) -> str:
        ctype = CTYPES[self.inputs[NAMES.index(n)]]
        return f"const {ctype.value} v{n} = {ctype.load(element)};\n"

    def _step(self, places: dict[str, str], at: str = "0") -> str:
        """Load what has a place, compute, store one element. The operands are values of the same names in braces."""
        loads = "".join(self._load(n, places[n]) for n in self.names[1:] if n in places)
        value = self.expression.format(**{n: f"v{n}" for n in self.names[1:]})
        value = re.sub(r"\bAT\b", f"({at})", value)
        return f"{loads}{places['out']} = {CTYPES[self.output].store(value)};\n"


def _step_to(place: str, n: str, last: int, kind: int) -> str:
    """What is added to get to a place along the last dim."""
    return {HOISTED: "", UNIT: f" + {place}", STEP: f" + {place} * {n}_s{last}"}[kind]
