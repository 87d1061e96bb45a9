"""Random numbers within elementwise kernels, see :mod:`candelabra_clike.templates.random_numbers`."""

from __future__ import annotations

from typing import NamedTuple

from candelabra_clike.language import Value, Variable, text

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
