"""What a device brings to run the kernels of this package: memory, and a compiler for one dialect.

An :class:`Engine` is one device. The kernels of :mod:`candelabra_clike.kernels` are written against this page and know
nothing else about it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, ClassVar, Protocol

from candelabra.backend import contiguous_strides
from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.dialect import Dialect
from candelabra_clike.faults import Faults
from candelabra_clike.source import Source

Buffer = Any
"""The engine's own object for a piece of memory. Arguments of kernels are such, as they are."""


@dataclass(frozen=True)
class Traits:
    """What of a device decides which form of a kernel is right for it.

    ``serial``: a work-item is a loop of a processor core, not a lane (CPU devices): few long work-items with plain
    loops that the driver's compiler vectorises, and no work-groups, which cost a pass over all work-items per barrier.
    Sources of this form say ``group=1``: Intel's compiler else spreads its vectors over work-items, ten times slower.
    """

    serial: bool
    compute_units: int
    group: int
    """The largest work-group, along dim 0."""
    local_memory: int
    """Bytes that a work-group shares."""
    float64: bool = True
    exact_division: bool = True
    """Division and square root of float32 are correctly rounded when the program asks for it."""
    memory: int = 0
    """Bytes of the device's memory."""
    largest: int = 0
    """Bytes of its largest possible buffer."""
    cache: int = 0
    """Bytes of the last cache before its memory. Only for ``serial`` devices."""


class Launch(Protocol):
    """A compiled kernel of one device.

    ``count`` is the number of work-items of a source without ``group``, the number of work-groups along dims 0, 1, 2
    of a source with one. The arguments are buffers and Python numbers, in the order of the source's parameters. Work is
    queued on the calling thread's current stream. A count of 0 does nothing.
    """

    def __call__(self, count: int | tuple[int, ...], /, *arguments: Any) -> None: ...


class Engine(ABC):
    """One device. Everything here may be called by several threads at once."""

    dialect: ClassVar[Dialect]
    traits: Traits
    index: int
    faults: Faults
    """What kernels found wrong in values, until somebody synchronises."""

    # -- memory -------------------------------------------------------------------------------------------------------
    @abstractmethod
    def allocate(self, nbytes: int) -> Buffer:
        """Memory of unspecified content, at least 1 byte. ``OutOfMemoryError`` where there is none."""

    @abstractmethod
    def read(self, buffer: Buffer, offset: int, nbytes: int) -> memoryview:
        """Bytes of a buffer, once all work queued before is done."""

    @abstractmethod
    def write(self, buffer: Buffer, offset: int, data: memoryview) -> None:
        """Put bytes into a buffer, in the order of the queue. ``data`` may change after the call."""

    @abstractmethod
    def copy(self, destination: Buffer, to: int, source: Buffer, start: int, nbytes: int) -> None:
        """Copy bytes between two buffers that do not overlap there, in the order of the queue."""

    # -- kernels ------------------------------------------------------------------------------------------------------
    @abstractmethod
    def compile(self, source: Source) -> Launch:
        """The source as a kernel of this device. The same object for equal sources."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for all work of the device; raise what went wrong in it."""

    # -- arrays -------------------------------------------------------------------------------------------------------
    def empty(self, shape: Shape, dtype: dtype) -> StridedArray:
        """A contiguous array of unspecified content."""
        size, strides = contiguous(shape)
        return StridedArray(self, self.allocate(size * dtype.itemsize or 1), shape, strides, 0, dtype, size, True)


@lru_cache(4096)
def contiguous(shape: Shape) -> tuple[int, Shape]:
    """The size and the strides of a contiguous array: on the path of every call."""
    return prod(shape), contiguous_strides(shape)
