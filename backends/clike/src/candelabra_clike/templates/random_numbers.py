"""Random-number kernels: each work-item converts full Philox counters to values, for any launch size.

Each of the values of a counter is an expression of its four words ``w0`` to ``w3``, which
:mod:`candelabra_clike.kernels.random` defines. Specification: ``docs/notes/0001-random-numbers.md``, section 11.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Buffer, Engine, Launch
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import KernelParameter, Source, number, writes
from candelabra_clike.types import VECTOR_BYTES, VECTOR_TYPES

COUNTERS_PER_ITEM = 512
"""Counters of a work-item on serial devices."""


@dataclass(frozen=True, eq=False)
class RandomKernel:
    """A kernel for random numbers of one kind and dtype. ``values`` are the expressions of the values of a counter, in
    order.

    ``steps`` are statements that precede them. ``{i}`` in either is the index of the value. ``arrays`` and ``numbers``
    are further parameters, to which the expressions may refer. ``parts`` is the number of values per element: 2 for
    complex numbers.
    """

    name: str
    memory: str
    values: tuple[str, ...]
    steps: str = ""
    numbers: tuple[KernelParameter, ...] = ()
    arrays: tuple[KernelParameter, ...] = ()
    parts: int = 1
    launches: dict[tuple[Engine, bool], Launch] = field(default_factory=dict)

    def source(self, serial: bool, wide: bool) -> Source:
        """Return the source. Its parameters are ``out``, the arrays, the number of values, seed and offset, and the
        numbers.
        """
        head = (
            writes("out", self.memory), *self.arrays, number("n"), number("seed", "u64"), number("offset", "u64"),
            *self.numbers,
        )  # fmt: skip
        per = len(self.values)
        body = f"const INDEX full = n / {per}u;\n"
        if serial:
            body += (
                f"const INDEX first = GLOBAL_ID * {COUNTERS_PER_ITEM}u;\nif (first > full) return;\n"
                f"const INDEX last = full - first < {COUNTERS_PER_ITEM}u ? full : first + {COUNTERS_PER_ITEM}u;\n"
                f"for (INDEX c = first; c < last; ++c) {{\n{self._counter('multiply_high_u64', checked=False)}}}\n"
                f"if (full - first < {COUNTERS_PER_ITEM}u && full * {per}u < n) {{\nconst INDEX c = full;\n"
            )
        elif self.arrays:
            body += "const INDEX c = GLOBAL_ID;\nif (c <= full) {\n"
        else:
            return Source(self.name, head, body + self._vector(), wide=wide)
        body += f"{self._counter('MULTIPLY_HIGH', checked=True)}}}"
        return Source(self.name, head, body, wide=wide)

    def _vector(self) -> str:
        """Return the statements of a lane, which stores the values of its counter as vectors.

        Stores of single values would be far apart from those of the adjacent lanes: each would write to as many parts
        of a cache line as there are lanes.
        """
        per = len(self.values)
        size = per * int(self.memory[1:]) // 8
        vector = min(size, VECTOR_BYTES)
        vectors, type = size // vector, VECTOR_TYPES[vector]
        values = "".join(f"x.each[{j}] = {value.replace('{i}', f'i + {j}')};\n" for j, value in enumerate(self.values))
        return (
            "const INDEX c = GLOBAL_ID;\nif (c <= full) {\n"
            f"const INDEX i = c * {per}u;\nPHILOX(MULTIPLY_HIGH, offset + 1 + c, seed)\n{self.steps}\n"
            f"union {{ {type} all[{vectors}]; {self.memory} each[{per}]; }} x;\n{values}"
            f"if (c < full) UNROLL for (u32 j = 0; j < {vectors}u; ++j) "
            f"((GLOBAL {type}*)out)[c * {vectors}u + j] = x.all[j];\n"
            f"else UNROLL for (u32 j = 0; j < {per}u; ++j) if (i + j < n) out[i + j] = x.each[j];\n}}"
        )

    def _counter(self, high: str, checked: bool) -> str:
        """Return statements for the values of counter ``c``; with ``checked``, values beyond ``n`` are not stored."""
        lines = [f"const INDEX i = c * {len(self.values)}u;", f"PHILOX({high}, offset + 1 + c, seed)", self.steps]
        for j, value in enumerate(self.values):
            guard = f"if (i + {j} < n) " if checked else ""
            lines.append(f"{guard}out[i + {j}] = {value.replace('{i}', f'i + {j}')};")
        return "\n".join(lines) + "\n"

    def __call__(
        self, engine: Engine, shape: Shape, d: dtype, seed: int, offset: int, *numbers: Any,
        buffers: tuple[Buffer, ...] = (),
    ) -> StridedArray:  # fmt: skip
        """Return a new array of ``shape``; ``buffers`` are the arguments of ``arrays``."""
        out = engine.empty(tuple(shape), d)
        count = prod(shape) * self.parts
        if count:
            launch = self._launch(engine, count >= WIDE)
            counters = -(-count // len(self.values))
            launch(
                -(-counters // COUNTERS_PER_ITEM) if engine.traits.serial else counters,
                out.buffer, *buffers, count, seed, offset, *numbers,
            )  # fmt: skip
        return out

    def _launch(self, engine: Engine, wide: bool) -> Launch:
        launch = self.launches.get((engine, wide))
        if launch is None:
            launch = self.launches[engine, wide] = engine.compile(self.source(engine.traits.serial, wide))
        return launch
