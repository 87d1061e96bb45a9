"""Kernels of optimizer steps: update each element of a parameter from its gradient and its state.

One launch may update several parameters. Its work-items have consecutive ids, and each finds its parameter by comparing
its id with the sizes of the parameters. Sizes and buffers are arguments of the kernel, so these comparisons take no
time compared with reading elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from candelabra.dtypes import dtype, float32, float64

from candelabra_clike.language import INDEX, Value, cast, constant
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.source import Source
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
        for d in (float32, float64):
            self.single(d, serial=True)

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
        return self._source(d, serial, f"{self.name}_{d.name}", 1, tuple(f"{a}_at" for a in self.arrays))

    def several(self, d: dtype, serial: bool, width: int) -> Source:
        """Return the kernel for ``width`` parameters of ``n0``, ``n1`` … elements: contiguous arrays that start at
        their buffers.

        The buffers are ordered by array: all parameters, all gradients and so on. A size may be 0.
        """
        return self._source(d, serial, f"{self.name}_{width}_{d.name}", width, ())

    def _source(self, d: dtype, serial: bool, name: str, width: int, offsets: tuple[str, ...]) -> Source:
        return built(self.name)(self._built)(d, serial, name, width, offsets)

    def _built(self, d: dtype, serial: bool, name: str, width: int, offsets: tuple[str, ...]) -> Source:
        type = CTYPES[d].value
        k = KernelBuilder(name, wide=True)
        buffers = {a: [self._buffer(k, a, f"{a}{i}", type) for i in range(width)] for a in self.arrays}
        starts = dict(zip(self.arrays, k.numbers(*offsets)))
        sizes, numbers = k.numbers(*[f"n{i}" for i in range(width)]), {s: k.number(s, type) for s in self.numbers}

        def items(size: Value) -> Value:
            return (size + (CHUNK - 1)) // CHUNK if serial else size

        # Find the parameter of the work-item: its size, its arrays, and its item within them.
        item, n = k.variable("item", k.item), k.variable("n", sizes[0])
        arrays = {a: k.pointer(f"q{a}", every[0]) for a, every in buffers.items()}
        taken = k.variable("items", items(n)) if width > 1 else n
        for i in range(1, width):
            with k.when(item >= taken):
                k.assign(item, item - taken)
                k.assign(n, sizes[i])
                k.assign(taken, items(n))
                for a, array in arrays.items():
                    k.point(array, buffers[a][i])
        first = k.let("first", item * CHUNK if serial else item)
        with k.when(first < n):
            for a, array in arrays.items():
                k.point(array, array, starts[a] + first if starts else first)
            if serial:
                with k.loop("i", 0, k.let("trips", cast("i32", least(n - first, CHUNK))), independent=True) as at:
                    self._update(arrays, at, numbers)
            else:
                self._update(arrays, constant(INDEX, 0), numbers)
        return k.source(group=1 if serial else None)

    def _buffer(self, k: KernelBuilder, array: str, name: str, type: str) -> KernelArray:
        return k.writes(name, type) if array in self.written else k.reads(name, type)

    def _update(self, arrays: Mapping[str, KernelArray], i: Value, numbers: Mapping[str, Value]) -> None:
        """Update element ``i`` of the arrays."""
        k, type = arrays["p"].kernel, arrays["p"].type
        known = {a: k.let(f"v{a}", array[i]) for a, array in arrays.items()}
        targets = [(arrays[a], i) for a in self.written]
        k.compute(f"{self.name!r} in {type}", self.update, {**known, **numbers}, targets)
