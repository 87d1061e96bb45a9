"""Faults of memory: allocation, copies from and to the host, exchange, and statistics."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from candelabra.dtypes import BY_NAME, dtype

from candelabra_conformance.mutants.mirror import EXTENSION, Image, Mirror
from candelabra_conformance.mutants.mutant import array_of, breaks_backend, payload_of
from candelabra_conformance.mutants.storage import as_if_contiguous, read_as
from candelabra_conformance.numpy_dtypes import host_dtype

Shape = tuple[int, ...]


# -- allocation -------------------------------------------------------------------------------------------------------
@breaks_backend(caught_by="device/memory*")
class NothingIsFreed(Mirror):
    """No payload is ever freed."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.kept: list[Any] = []

    def wrapped(self, inner: Any, index: int) -> Image:
        """Keep a reference to the payload for ever."""
        image = super().wrapped(inner, index)
        self.kept.append(image.memory)
        return image


@breaks_backend(caught_by="device/memory*")
class MemoryIsCountedOnce(Mirror):
    """Freed memory is not subtracted from the statistics."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.total = 0

    def wrapped(self, inner: Any, index: int) -> Image:
        """Add the payload to the total."""
        image = super().wrapped(inner, index)
        self.total += image.memory.size
        return image

    def memory(self, index: int, release: bool = False) -> Mapping[str, int]:
        """Return the total of all allocations."""
        return {"allocated": self.total}


@breaks_backend(caught_by="device/memory*")
class PeakIsNotReset(Mirror):
    """The peak is that since the start of the process, also after it was reset."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.peak = 0

    def wrapped(self, inner: Any, index: int) -> Image:
        """Count the peak."""
        image = super().wrapped(inner, index)
        self.peak = max(self.peak, super().memory(index)["allocated"])
        return image

    def memory(self, index: int, release: bool = False) -> Mapping[str, int]:
        """Return the peak too."""
        return {**super().memory(index, release), "peak": self.peak}

    def reset_peak(self, index: int) -> bool:
        """Do nothing."""
        return True


@breaks_backend(caught_by="device/allocate* device/memory*")
class MemoryIsGivenTwice(Mirror):
    """An allocation gets the memory of the last one of that shape, whether it is free or not."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.last: dict[Any, Image] = {}

    def empty(self, index: int, shape: Shape, dtype: dtype) -> Any:
        """Take the memory from the pool."""
        known = self.last.setdefault((index, shape, dtype), super().empty(index, shape, dtype))
        return Image(known.inner, index, known.memory)


@breaks_backend(caught_by="device/allocate* device/roundtrip* device/copy*")
class NothingTakesOneElement(Mirror):
    """An allocation of no elements has one."""

    def empty(self, index: int, shape: Shape, dtype: dtype) -> Any:
        """Replace sizes of 0 by 1."""
        return super().empty(index, tuple(n or 1 for n in shape), dtype)


# -- copies from and to the host --------------------------------------------------------------------------------------
@breaks_backend(caught_by="device/roundtrip* device/copy* device/allocate*")
class TheHostsMemoryIsKept(Mirror):
    """``from_host`` keeps the caller's memory instead of copying it."""

    def from_host(self, index: int, data: memoryview, shape: Shape, dtype: dtype) -> Any:
        """Create an array over the caller's bytes."""
        array = np.frombuffer(data, host_dtype(dtype)).reshape(shape)
        return self.wrapped(self.reference.from_dlpack(array, 0, False), index)


@breaks_backend("add", caught_by="device/roundtrip* device/copy* */inplace/* */aliasing/*")
class ReadsAreRemembered(Mirror):
    """The first read of a payload is cached, and later reads return it, although the payload has changed."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.reads: dict[int, tuple[Any, bytes]] = {}

    def to_host(self, payload: Any) -> memoryview:
        """Return the cached content. The cache keeps the payload, so that its identity stays unique."""
        if id(payload) not in self.reads:
            self.reads[id(payload)] = payload, bytes(super().to_host(payload))
        return memoryview(self.reads[id(payload)][1])


def _inwards(*dtypes: str) -> Callable[[Any], Any]:
    """Return a class decorator that applies the class's ``change`` to arrays of these dtypes as they are stored."""

    def mark(cls: Any) -> Any:
        cls.changed = dtypes
        return cls

    return mark


class _ChangingMemory(Mirror):
    changed: tuple[str, ...] = ()

    def from_host(self, index: int, data: memoryview, shape: Shape, dtype: dtype) -> Any:
        """Apply the change, then call the reference's ``from_host``."""
        if dtype.name not in self.changed:
            return super().from_host(index, data, shape, dtype)
        with np.errstate(all="ignore"):
            array: Any = self.change(np.frombuffer(data, host_dtype(dtype)).copy())
        return super().from_host(index, memoryview(array.view(np.uint8)), shape, dtype)

    @abstractmethod
    def change(self, array: Any) -> Any:
        """Return the array to store, given one with at least one dim."""


@breaks_backend(caught_by="device/roundtrip/float64* device/copy/float64*")
@_inwards("float64")
class DoublesAreSingles(_ChangingMemory):
    """float64 is declared, but stored in 32 bits."""

    def change(self, array: Any) -> Any:
        """Convert to float32 and back."""
        return array.astype(np.float32).astype(np.float64)


@breaks_backend(caught_by="device/roundtrip/*int64* device/copy/*int64*")
@_inwards("int64", "uint64")
class LongIntegersAreDoubles(_ChangingMemory):
    """64-bit integers pass through float64 when they are stored."""

    def change(self, array: Any) -> Any:
        """Convert to float64 and back; a float beyond the largest integer becomes that integer."""
        rounded = array.astype(np.float64)
        inside = (rounded < 2.0**63) & (rounded > -(2.0**63))
        return np.where(inside, np.where(inside, rounded, 0).astype(array.dtype), array)


@breaks_backend(caught_by="device/roundtrip/float* device/copy/float*")
@_inwards("float16", "float32", "float64")
class ZerosLoseTheirSignOnTheWayIn(_ChangingMemory):
    """-0.0 is stored as 0.0."""

    def change(self, array: Any) -> Any:
        """Add 0, which removes the sign."""
        return array + np.zeros(1, array.dtype)


@breaks_backend(caught_by="device/roundtrip/bfloat16* device/copy/bfloat16*")
@_inwards("bfloat16")
class BfloatsAreCutHalves(_ChangingMemory):
    """bfloat16 is stored as float16."""

    def change(self, array: Any) -> Any:
        """Convert to float16 and back."""
        return array.astype(np.float16).astype(array.dtype)


@breaks_backend(caught_by="device/roundtrip/complex* device/copy/complex*")
@_inwards("complex64", "complex128")
class PartsAreSwapped(_ChangingMemory):
    """Real and imaginary components are exchanged."""

    def change(self, array: Any) -> Any:
        """Exchange the components."""
        return (array.imag + 1j * array.real).astype(array.dtype)


@breaks_backend(caught_by="device/result* device/roundtrip* device/allocate*")
class UnsignedIsSaidToBeSigned(Mirror):
    """``dtype_of`` returns int32 for uint32."""

    def dtype_of(self, payload: Any) -> dtype:
        """Derive the dtype from the size alone."""
        d = super().dtype_of(payload)
        return BY_NAME["int32"] if d.name == "uint32" else d


# -- between devices, and other libraries -----------------------------------------------------------------------------
@breaks_backend(caught_by="device/transfer*")
class TransfersShareMemory(Mirror):
    """A tensor that was moved to another device of the type shares its memory."""

    def transfer(self, payload: Any, source: int, destination: int) -> Any:
        """Change only the device of the payload."""
        return Image(payload.inner, destination, payload.memory)


@breaks_backend(caught_by="device/transfer*")
class TransfersForgetStrides(Mirror):
    """A transfer copies the storage in its order, and the result is read as contiguous."""

    def transfer(self, payload: Any, source: int, destination: int) -> Any:
        """Ignore the strides."""
        return super().transfer(as_if_contiguous(self, payload), source, destination)


@breaks_backend(caught_by="device/dlpack*")
class ExportsAreCopies(Mirror):
    """A DLPack capsule contains a copy, so that the importer does not see writes."""

    def to_dlpack(self, payload: Any, index: int, **options: Any) -> Any:
        """Export a copy of the current content."""
        return super().to_dlpack(payload_of(self, array_of(self, payload), index), index, **options)


@breaks_backend(caught_by="device/dlpack*")
class ExportsForgetStrides(Mirror):
    """A DLPack capsule has the strides of a contiguous tensor."""

    def to_dlpack(self, payload: Any, index: int, **options: Any) -> Any:
        """Export with the correct offset and the wrong strides."""
        wrong = payload if self._plain(payload) else as_if_contiguous(self, payload)
        return super().to_dlpack(wrong, index, **options)

    def _plain(self, payload: Any) -> bool:
        from candelabra_conformance.mutants.storage import is_contiguous

        return is_contiguous(self, payload)


@breaks_backend(caught_by="device/dlpack*")
class ExportsForgetTheOffset(Mirror):
    """A DLPack capsule has no offset."""

    def to_dlpack(self, payload: Any, index: int, **options: Any) -> Any:
        """Omit the byte offset."""
        offset = self.layout(payload)[1]
        return super().to_dlpack(read_as(self, payload, offset=0) if offset else payload, index, **options)


@breaks_backend(caught_by="device/dlpack*")
class ImportsAreTranslatedBadly(Mirror):
    """float32 that is imported through DLPack becomes int32."""

    def from_dlpack(self, source: Any, index: int, copy: bool | None) -> Any:
        """Ignore the type code."""
        image = super().from_dlpack(source, index, copy)
        if image is None or self.dtype_of(image).name != "float32":
            return image
        return payload_of(self, array_of(self, image).view(np.int32), index)


@breaks_backend(caught_by="device/dlpack*")
class ImportsTakeForeignMemory(Mirror):
    """Memory of any device type is imported as this one's."""

    def from_dlpack(self, source: Any, index: int, copy: bool | None) -> Any:
        """Read the bytes whatever the device type."""
        kind, _ = source.__dlpack_device__()
        if int(kind) == EXTENSION:
            return super().from_dlpack(source, index, copy)
        inner = self.reference.from_dlpack(source, 0, copy)
        return None if inner is None else self.wrapped(inner, index)
