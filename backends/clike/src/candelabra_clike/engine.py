"""The interface that a device implements to run the kernels of this package: memory, and a compiler for one dialect.

An :class:`Engine` is one device. The kernels of :mod:`candelabra_clike.kernels` use nothing else of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from candelabra.backend import contiguous_strides
from candelabra.dtypes import complex128, dtype, float64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.device_errors import DeviceErrors
from candelabra_clike.dialect import Dialect
from candelabra_clike.source import Source

if TYPE_CHECKING:
    from candelabra_clike.templates.indexing.index_arrays import IndexedDim


_new = object.__new__
Buffer = Any
"""The engine's object for a block of memory. It is passed to kernels as it is."""


@dataclass(frozen=True)
class Traits:
    """The properties of a device that determine which form of a kernel it runs.

    ``serial`` is true for CPU devices. There a work-item is a loop on a processor core, not a lane: a kernel has few
    long work-items with plain loops, which the compiler of the driver vectorises, and no work-groups, since a barrier
    costs a pass over all work-items. Such sources have ``group=1``; otherwise Intel's compiler vectorises across
    work-items, which is ten times slower.
    """

    serial: bool
    compute_units: int
    group: int
    """The maximum work-group size along dim 0."""
    local_memory: int
    """Local memory of a work-group, in bytes."""
    float64: bool = True
    exact_division: bool = True
    """Whether division and square root of float32 are correctly rounded if the program requests it."""
    memory: int = 0
    """Global memory of the device, in bytes."""
    largest: int = 0
    """The maximum size of a buffer, in bytes."""
    cache: int = 0
    """The size of the last-level cache, in bytes. Used for ``serial`` devices only."""
    lanes: int = 8
    """The float32 values of a vector register: 8, or 16 if the dialect has vectors of sixteen. Used for ``serial``
    devices only; narrower registers count as parts of one of 8."""
    registers: int = 16
    """The number of vector registers of that size: 16 or 32."""
    multiplies: bool = True
    """Whether the kernels of this package compute matrix products and convolutions on the device, and not a library."""


class Launch(Protocol):
    """A compiled kernel of one device.

    ``count`` is the number of work-items for a source without ``group``, and the number of work-groups along dims 0, 1,
    2 for a source with one. The arguments are buffers and Python numbers, in the order of the source's parameters. The
    work is queued on the current stream of the calling thread. A count of 0 does nothing.
    """

    def __call__(self, count: int | tuple[int, ...], /, *arguments: Any) -> None: ...


class Engine(ABC):
    """One device. All methods are thread-safe."""

    dialect: ClassVar[Dialect]
    traits: Traits
    index: int
    errors: DeviceErrors
    """Errors reported by kernels; synchronisation raises them."""

    # -- memory -------------------------------------------------------------------------------------------------------
    @abstractmethod
    def allocate(self, nbytes: int) -> Buffer:
        """Return uninitialised memory of at least 1 byte. Raises ``OutOfMemoryError``."""

    @abstractmethod
    def read(self, buffer: Buffer, offset: int, nbytes: int) -> memoryview:
        """Return bytes of a buffer when all previously queued work is complete."""

    @abstractmethod
    def write(self, buffer: Buffer, offset: int, data: memoryview) -> None:
        """Write bytes to a buffer, in queue order. ``data`` may change after the call."""

    @abstractmethod
    def copy(self, destination: Buffer, to: int, source: Buffer, start: int, nbytes: int) -> None:
        """Copy bytes between two buffers in queue order. The ranges do not overlap."""

    # -- kernels ------------------------------------------------------------------------------------------------------
    @abstractmethod
    def compile(self, source: Source) -> Launch:
        """Compile a source for this device. Equal sources give the same object."""

    def offers(self, source: Source) -> bool:
        """Return whether the device has a kernel that is faster than another one for the same work."""
        return True

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for all work of the device. Raises an error of the device or driver."""

    checks_indices = False
    """Whether :meth:`before_writing` refuses an index out of bounds, so that the kernels that write need not look."""

    def before_writing(self, indices: Sequence[StridedArray], indexed: Sequence[IndexedDim], wraps: bool) -> None:
        """Called before a kernel writes where index arrays say. A device that reports an index out of bounds after the
        call does nothing; one whose calls raise errors themselves checks the indices, so that nothing is written.
        """

    def lacks(self, d: dtype) -> bool:
        """Return whether the device cannot compute in a dtype. Kernels that are given the dtype then decline."""
        return not self.traits.float64 and d in (float64, complex128)

    # -- arrays -------------------------------------------------------------------------------------------------------
    def empty(self, shape: Shape, dtype: dtype) -> StridedArray:
        """Return an uninitialised contiguous array."""
        size, strides = contiguous(shape)
        out = _new(StridedArray)  # most calls of a kernel make an array, and calling the class takes twice as long
        out.engine = self
        out.buffer = self.allocate(size * dtype.itemsize or 1)
        out.shape = shape
        out.strides = strides
        out.offset = 0
        out.dtype = dtype
        out.size = size
        out.contiguous = True
        return out


@lru_cache(None)
def compiled(engine: Engine, source: Callable[..., Source], *form: Any) -> Launch:
    """Return the kernel with the source ``source(*form)``, which is compiled at the first call."""
    return engine.compile(source(*form))


@lru_cache(4096)
def contiguous(shape: Shape) -> tuple[int, Shape]:
    """Return the size and the strides of a contiguous array. Every call uses this function, so it is cached.

    Raises ``ValueError`` for a negative size, which an even number of them would hide.
    """
    if min(shape, default=0) < 0:
        raise ValueError(f"no array has the shape {shape}")
    return prod(shape), contiguous_strides(shape)
