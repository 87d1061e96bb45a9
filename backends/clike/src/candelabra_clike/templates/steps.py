"""The loop of an optimiser's step: each element of a parameter with those of all that is kept beside it.

One launch may do several parameters. Its work-items are numbered through, and each finds its parameter by going along
their sizes: arguments are the cheapest memory there is, and a few comparisons cost nothing beside reading elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from candelabra.dtypes import dtype

from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.elementwise.loops import CHUNK
from candelabra_clike.types import CTYPES

ARGUMENTS: Final = 127
"""Of a kernel, beside the count that some engines add. OpenCL's full profile promises 1024 bytes; none takes over 8."""


@dataclass(frozen=True)
class Step:
    """What happens to one element. In the text ``p``, ``g`` … are values of the arrays; ``{W}`` ends SQRT and DIVIDE.

    ``written`` are the arrays that change, ``numbers`` further values.
    """

    name: str
    arrays: tuple[str, ...]
    written: tuple[str, ...]
    numbers: tuple[str, ...]
    text: str

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """For how many parameters there are kernels: powers of two, and as many as the arguments allow."""
        most = (ARGUMENTS - len(self.numbers)) // (len(self.arrays) + 1)
        return (*[1 << i for i in range(1, most.bit_length()) if 1 << i < most], most)

    def single(self, d: dtype, serial: bool) -> Source:
        """The kernel for one parameter: contiguous arrays that begin at ``p_at``, ``g_at`` …, of ``n0`` elements."""
        return self._source(d, serial, 1, tuple(f"{a}_at" for a in self.arrays), "")

    def several(self, d: dtype, serial: bool, width: int) -> Source:
        """The kernel for ``width`` parameters, of ``n0``, ``n1`` … elements: contiguous arrays, whole buffers.

        The buffers come array by array: all parameters, all gradients and so on. A size may be 0.
        """
        return self._source(d, serial, width, (), f"_{width}")

    # -- parts --------------------------------------------------------------------------------------------------------
    def _source(self, d: dtype, serial: bool, width: int, places: tuple[str, ...], ending: str) -> Source:
        type = CTYPES[d].value
        head = (
            *[(writes if a in self.written else reads)(f"{a}{k}", type) for a in self.arrays for k in range(width)],
            *map(number, places),
            *[number(f"n{k}") for k in range(width)],
            *[number(s, type) for s in self.numbers],
        )
        found = "".join(self._found(type, serial, width))
        starts = "".join(f"q{a} += first{f' + {a}_at' if places else ''};\n" for a in self.arrays)
        first = f"const INDEX first = item{f' * {CHUNK}u' if serial else ''};\nif (first >= n) return;\n"
        body = f"{found}{first}{starts}{self._elements(type, serial)}"
        return Source(f"{self.name}{ending}_{d.name}", head, body, group=1 if serial else None, wide=True)

    def _found(self, type: str, serial: bool, width: int) -> Iterator[str]:
        """The text that finds the ``item`` of which parameter a work-item is, its size ``n`` and its arrays."""
        items = f"(n + {CHUNK - 1}u) / {CHUNK}u" if serial else "n"
        yield "INDEX item = GLOBAL_ID, n = n0;\n"
        for a in self.arrays:
            yield f"GLOBAL {'' if a in self.written else 'const '}{type}* q{a} = {a}0;\n"
        if width > 1:
            yield f"INDEX items = {items};\n"
        for k in range(1, width):
            arrays = "".join(f" q{a} = {a}{k};" for a in self.arrays)
            yield f"if (item >= items) {{ item -= items; n = n{k}; items = {items};{arrays} }}\n"

    def _elements(self, type: str, serial: bool) -> str:
        """The step of a chunk of elements, or of one."""
        loads = "".join(f"{type} v{a} = q{a}[i];\n" for a in self.arrays)
        stores = "".join(f"q{a}[i] = v{a};\n" for a in self.written)
        step = f"{loads}{self.text.format(T=type, W=type.upper())}{stores}"
        if not serial:
            return f"{{ const u32 i = 0;\n{step}}}"
        return (
            f"const INDEX rest = n - first;\nconst int trips = rest < {CHUNK} ? (int)rest : {CHUNK};\n"
            f"INDEPENDENT\nfor (int i = 0; i < trips; ++i) {{\n{step}}}"
        )
