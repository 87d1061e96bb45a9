"""Random-number kernels: each work-item converts full Philox counters to values, for any launch size.
Elementwise kernels draw theirs by :class:`Draw`.

Specification: ``docs/notes/0001-random-numbers.md``, section 11.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, compiled
from candelabra_clike.language import Value, Variable, cast, constant, text
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source

COUNTERS_PER_ITEM: Final = 512
"""Counters of a work-item on serial devices."""
WORDS: Final = tuple([Variable("u64", f"w{k}") for k in range(4)])
"""The words of a counter."""
HALVES: Final = tuple([cast("u32", half) for word in WORDS for half in (word, word >> 32)])
"""The 32-bit words of a counter, the low half of each word first."""
Indices: TypeAlias = Sequence[Value]
"""The index of each value of a counter; those beyond the last value repeat it."""
Values: TypeAlias = Callable[[Indices], Sequence[Value]]


@dataclass(frozen=True, eq=False)
class RandomKernel:
    """A kernel for random numbers of one kind and dtype, ``per`` values from each counter.

    ``parameters`` adds further parameters, and returns the function of the values: they are expressions of
    :data:`WORDS` in the order of their indices. ``parts`` is the number of values per element: 2 for complex numbers,
    whose parts have the dtype ``d``.
    """

    name: str
    d: dtype | str
    per: int
    parameters: Callable[[KernelBuilder], Values]
    parts: int = 1

    def source(self, serial: bool, wide: bool) -> Source:
        """Return the source. Its parameters are ``out``, the number of values, seed and offset, and further ones."""
        return built(self.name)(self._built)(serial, wide)

    def _built(self, serial: bool, wide: bool) -> Source:
        k = KernelBuilder(self.name, wide)
        out, n, seed, offset = (
            k.writes("out", self.d),
            k.number("n"),
            k.number("seed", "u64"),
            k.number("offset", "u64"),
        )
        values, full = self.parameters(k), k.let("full", n // self.per)

        def draw(high: str, counter: Value, last: Value | None = None) -> tuple[Value, Sequence[Value]]:
            """Compute the values of a counter. Return the index of the first one, and the values."""
            i = k.let("i", counter * self.per)
            k.expand("PHILOX", high, offset + 1 + counter, seed, declares=WORDS)
            return i, values([i + j if last is None else least(i + j, last) for j in range(self.per)])

        if serial:
            first = k.let("first", k.item * COUNTERS_PER_ITEM)
            with k.when(first <= full):
                with k.loop("c", first, k.let("stop", first + least(full - first, COUNTERS_PER_ITEM))) as c:
                    i, drawn = draw("multiply_high_u64", c)
                    for j, value in enumerate(drawn):
                        out[i + j] = value
                with k.when((full - first < COUNTERS_PER_ITEM) & (full * self.per < n)):
                    i, drawn = draw("MULTIPLY_HIGH", full, n - 1)
                    for j, value in enumerate(drawn):
                        with k.when(i + j < n):
                            out[i + j] = value
            return k.source()
        # Stores of single values would be far apart from those of the adjacent lanes: each would write to as many parts
        # of a cache line as there are lanes.
        with k.when(k.item <= full):
            i, drawn = draw("MULTIPLY_HIGH", k.item, n - 1)
            vector = k.vector("x", out, self.per)
            for j, value in enumerate(drawn):
                vector[j] = value
            with k.when(k.item < full):
                vector.store(out, i)
            with k.otherwise(), k.loop("j", constant("u32", 0), self.per, unrolled=True) as at, k.when(i + at < n):
                k.copy(out, i + at, vector, at)
        return k.source()

    def __call__(self, engine: Engine, shape: Shape, d: dtype, seed: int, offset: int, *arguments: Any) -> StridedArray:
        """Return a new array of ``shape``; the arguments are those of the further parameters."""
        out = engine.empty(tuple(shape), d)
        count = prod(shape) * self.parts
        if count:
            counters = -(-count // self.per)
            items = -(-counters // COUNTERS_PER_ITEM) if engine.traits.serial else counters
            compiled(engine, self.source, engine.traits.serial, count >= WIDE)(
                items, out.buffer, count, seed, offset, *arguments
            )
        return out


DRAWN = 256
"""Elements of the block for which a work-item of a serial device draws random numbers first."""


class Draw(NamedTuple):
    """Random numbers, one per element in C order: values of the words ``w0`` … of Philox counters.

    ``seed`` and ``offset`` are names of numbers.
    """

    variable: Variable
    values: tuple[Value, ...]
    seed: str
    offset: str

    def block(self, counters: int, first: str, high: str) -> str:
        """Return statements that fill an array with the numbers of ``counters`` counters from ``first`` on."""
        name, per = f"{self.variable.name}_block", len(self.values)
        stored = "".join(f"{name}[c * {per}u + {i}u] = {text(value)};\n" for i, value in enumerate(self.values))
        return (
            f"{self.variable.type} {name}[{counters * per}];\nfor (u32 c = 0; c < {counters}u; ++c) {{\n"
            f"PHILOX({high}, {self.offset} + 1 + ({first}) + c, {self.seed})\n{stored}}}\n"
        )

    @property
    def statement(self) -> str:
        """The statement that reads the random number of element ``i`` of a block."""
        return f"const {self.variable.type} {self.variable.name} = {self.variable.name}_block[i];\n"
