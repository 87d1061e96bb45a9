"""Kernels of optimizer steps: update each element of a parameter from its gradient and its state.

One launch may update several parameters. Its work-items have consecutive ids, and each finds its parameter by comparing
its id with the sizes of the parameters. Sizes and buffers are arguments of the kernel, so these comparisons take no
time compared with reading elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from candelabra.dtypes import dtype

from candelabra_clike.language import Variable, all_declared, assignments
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.elementwise.loops import CHUNK
from candelabra_clike.types import CTYPES

MAX_ARGUMENTS: Final = 127
"""The maximum number of arguments, without the count that some engines add. OpenCL's full profile guarantees 1024
bytes, and
an argument takes at most 8."""


@dataclass(frozen=True, eq=False)  # one object per step, so that its hash is that of the object
class OptimizerStep:
    """The update of one element, a function of values of the ``arrays`` and of the ``numbers``, by name.

    It returns the new values of the arrays ``written``. Raises ``ExpressionError`` if a value has a wrong type.
    """

    name: str
    arrays: tuple[str, ...]
    written: tuple[str, ...]
    numbers: tuple[str, ...]
    update: Callable[..., Any]

    def __post_init__(self) -> None:
        for type in ("f32", "f64"):
            self._updated(type)

    def _updated(self, type: str) -> str:
        """Return statements that update the values ``vp`` … of the arrays."""
        known = {a: Variable(type, f"v{a}") for a in self.arrays} | {n: Variable(type, n) for n in self.numbers}
        values = all_declared(f"{self.name!r} in {type}", self.update, known, [(type,)] * len(self.written))
        return assignments([f"v{a}" for a in self.written], values)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The numbers of parameters for which there are kernels: powers of two, and the maximum that the arguments
        allow.
        """
        most = (MAX_ARGUMENTS - len(self.numbers)) // (len(self.arrays) + 1)
        return (*[1 << i for i in range(1, most.bit_length()) if 1 << i < most], most)

    def single(self, d: dtype, serial: bool) -> Source:
        """Return the kernel for one parameter: contiguous arrays of ``n0`` elements that start at ``p_at``, ``g_at``
        …
        """
        return self._source(d, serial, 1, tuple(f"{a}_at" for a in self.arrays), "")

    def several(self, d: dtype, serial: bool, width: int) -> Source:
        """Return the kernel for ``width`` parameters of ``n0``, ``n1`` … elements: contiguous arrays that start at
        their buffers.

        The buffers are ordered by array: all parameters, all gradients and so on. A size may be 0.
        """
        return self._source(d, serial, width, (), f"_{width}")

    # -- helpers ------------------------------------------------------------------------------------------------------
    def _source(self, d: dtype, serial: bool, width: int, offset_names: tuple[str, ...], suffix: str) -> Source:
        type = CTYPES[d].value
        head = (
            *[(writes if a in self.written else reads)(f"{a}{k}", type) for a in self.arrays for k in range(width)],
            *map(number, offset_names),
            *[number(f"n{k}") for k in range(width)],
            *[number(s, type) for s in self.numbers],
        )
        lookup = "".join(self._find_parameter(type, serial, width))
        starts = "".join(f"q{a} += first{f' + {a}_at' if offset_names else ''};\n" for a in self.arrays)
        first = f"const INDEX first = item{f' * {CHUNK}u' if serial else ''};\nif (first >= n) return;\n"
        body = f"{lookup}{first}{starts}{self._elements(type, serial)}"
        return Source(f"{self.name}{suffix}_{d.name}", head, body, group=1 if serial else None, wide=True)

    def _find_parameter(self, type: str, serial: bool, width: int) -> Iterator[str]:
        """Return statements that find the parameter of a work-item: its size ``n``, its arrays and its ``item`` within
        them.
        """
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
        """Return the update of a chunk of elements, or of one element."""
        loads = "".join(f"{type} v{a} = q{a}[i];\n" for a in self.arrays)
        stores = "".join(f"q{a}[i] = v{a};\n" for a in self.written)
        step = f"{loads}{self._updated(type)}{stores}"
        if not serial:
            return f"{{ const u32 i = 0;\n{step}}}"
        return (
            f"const INDEX rest = n - first;\nconst int trips = rest < {CHUNK} ? (int)rest : {CHUNK};\n"
            f"INDEPENDENT\nfor (int i = 0; i < trips; ++i) {{\n{step}}}"
        )
