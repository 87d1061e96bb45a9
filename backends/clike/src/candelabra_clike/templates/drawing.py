"""Random numbers: each work-item makes whole counters of Philox into values, whatever the launch shape.

What a counter's four words ``w0`` to ``w3`` become is an expression per value; :mod:`candelabra_clike.kernels.random`
has them. Specification: ``docs/notes/0001-random-numbers.md``, section 11.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Buffer, Engine, Launch
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Parameter, Source, number, writes

CHUNK = 512
"""Counters of a work-item that is a loop."""


@dataclass(frozen=True, eq=False)
class Draw:
    """Numbers of one kind and dtype, as C: ``values`` are the expressions of what a counter becomes, in their order.

    ``steps`` are statements before them; ``{i}`` in either is the place of the value. ``arrays`` and ``numbers`` are
    further parameters, which they may name. ``parts``: how many values are one element, 2 for complex numbers.
    """

    name: str
    memory: str
    values: tuple[str, ...]
    steps: str = ""
    numbers: tuple[Parameter, ...] = ()
    arrays: tuple[Parameter, ...] = ()
    parts: int = 1
    launches: dict[tuple[Engine, bool], Launch] = field(default_factory=dict)

    def source(self, serial: bool, wide: bool) -> Source:
        """The kernel: ``out``, the arrays, how many values there are, seed and offset, the numbers."""
        head = (
            writes("out", self.memory), *self.arrays, number("n"), number("seed", "u64"), number("offset", "u64"),
            *self.numbers,
        )  # fmt: skip
        per = len(self.values)
        body = f"const INDEX whole = n / {per}u;\n"
        if serial:
            body += (
                f"const INDEX first = GLOBAL_ID * {CHUNK}u;\nif (first > whole) return;\n"
                f"const INDEX last = whole - first < {CHUNK}u ? whole : first + {CHUNK}u;\n"
                f"for (INDEX c = first; c < last; ++c) {{\n{self._counter('multiply_high_u64', checked=False)}}}\n"
                f"if (whole - first < {CHUNK}u && whole * {per}u < n) {{\nconst INDEX c = whole;\n"
            )
        else:
            body += "const INDEX c = GLOBAL_ID;\nif (c <= whole) {\n"
        body += f"{self._counter('MULTIPLY_HIGH', checked=True)}}}"
        return Source(self.name, head, body, wide=wide)

    def _counter(self, high: str, checked: bool) -> str:
        """The values of counter ``c``; ``checked`` against ``n``."""
        lines = [f"const INDEX i = c * {len(self.values)}u;", f"PHILOX({high}, offset + 1 + c, seed)", self.steps]
        for j, value in enumerate(self.values):
            guard = f"if (i + {j} < n) " if checked else ""
            lines.append(f"{guard}out[i + {j}] = {value.replace('{i}', f'i + {j}')};")
        return "\n".join(lines) + "\n"

    def __call__(
        self, engine: Engine, shape: Shape, d: dtype, seed: int, offset: int, *numbers: Any,
        buffers: tuple[Buffer, ...] = (),
    ) -> StridedArray:  # fmt: skip
        """A new array of ``shape``; ``buffers`` are those of ``arrays``."""
        out = engine.empty(tuple(shape), d)
        count = prod(shape) * self.parts
        if count:
            launch = self._launch(engine, count >= WIDE)
            counters = -(-count // len(self.values))
            launch(
                -(-counters // CHUNK) if engine.traits.serial else counters,
                out.buffer, *buffers, count, seed, offset, *numbers,
            )  # fmt: skip
        return out

    def _launch(self, engine: Engine, wide: bool) -> Launch:
        launch = self.launches.get((engine, wide))
        if launch is None:
            launch = self.launches[engine, wide] = engine.compile(self.source(engine.traits.serial, wide))
        return launch
