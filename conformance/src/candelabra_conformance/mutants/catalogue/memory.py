"""Faults of memory: allocation, copies in and out, exchange, and what is said of them."""

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
    """Every payload is kept for ever."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.kept: list[Any] = []

    def wrapped(self, inner: Any, index: int) -> Image:
        """Noted in a list that nobody empties."""
        image = super().wrapped(inner, index)
        self.kept.append(image.memory)
        return image


@breaks_backend(caught_by="device/memory*")
class MemoryIsCountedOnce(Mirror):
    """What is freed is not taken off the count."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.total = 0

    def wrapped(self, inner: Any, index: int) -> Image:
        """Added to the total."""
        image = super().wrapped(inner, index)
        self.total += image.memory.size
        return image

    def memory(self, index: int, release: bool = False) -> Mapping[str, int]:
        """All that was ever allocated."""
        return {"allocated": self.total}


@breaks_backend(caught_by="device/allocate* device/memory*")
class MemoryIsGivenTwice(Mirror):
    """An allocation gets the memory of the last one of that shape, whether it is free or not."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.last: dict[Any, Image] = {}

    def empty(self, index: int, shape: Shape, dtype: dtype) -> Any:
        """From the pool."""
        known = self.last.setdefault((index, shape, dtype), super().empty(index, shape, dtype))
        return Image(known.inner, index, known.memory)


@breaks_backend(caught_by="device/allocate* device/roundtrip* device/copy*")
class NothingTakesOneElement(Mirror):
    """An allocation of no elements has one."""

    def empty(self, index: int, shape: Shape, dtype: dtype) -> Any:
        """Sizes of 0 are 1."""
        return super().empty(index, tuple(n or 1 for n in shape), dtype)


# -- in and out -------------------------------------------------------------------------------------------------------
@breaks_backend(caught_by="device/roundtrip* device/copy* device/allocate*")
class TheHostsMemoryIsKept(Mirror):
    """``from_host`` keeps the caller's memory instead of copying it."""

    def from_host(self, index: int, data: memoryview, shape: Shape, dtype: dtype) -> Any:
        """An array over the caller's bytes."""
        array = np.frombuffer(data, host_dtype(dtype)).reshape(shape)
        return self.wrapped(self.reference.from_dlpack(array, 0, False), index)


@breaks_backend("add", caught_by="device/roundtrip* device/copy* device/item* */inplace/* */aliasing/*")
class ReadsAreRemembered(Mirror):
    """What was read of a payload once is read again, though it has changed since."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.reads: dict[int, tuple[Any, bytes]] = {}

    def to_host(self, payload: Any) -> memoryview:
        """From the cache, which holds the payload so that its identity stays its own."""
        if id(payload) not in self.reads:
            self.reads[id(payload)] = payload, bytes(super().to_host(payload))
        return memoryview(self.reads[id(payload)][1])


def _inwards(*dtypes: str) -> Callable[[Any], Any]:
    """A subclass's ``change`` is made to arrays of these dtypes as they come in."""

    def mark(cls: Any) -> Any:
        cls.changed = dtypes
        return cls

    return mark


class _Changing(Mirror):
    changed: tuple[str, ...] = ()

    def from_host(self, index: int, data: memoryview, shape: Shape, dtype: dtype) -> Any:
        """The reference's, after the change."""
        if dtype.name not in self.changed:
            return super().from_host(index, data, shape, dtype)
        with np.errstate(all="ignore"):
            array: Any = self.change(np.frombuffer(data, host_dtype(dtype)).copy())
        return super().from_host(index, memoryview(array.view(np.uint8)), shape, dtype)

    @abstractmethod
    def change(self, array: Any) -> Any:
        """What is stored in place of an array without dims but one."""


@breaks_backend(caught_by="device/roundtrip/float64* device/copy/float64*")
@_inwards("float64")
class DoublesAreSingles(_Changing):
    """float64 is claimed, but stored in 32 bits."""

    def change(self, array: Any) -> Any:
        """There and back."""
        return array.astype(np.float32).astype(np.float64)


@breaks_backend(caught_by="device/roundtrip/*int64* device/copy/*int64*")
@_inwards("int64", "uint64")
class LongIntegersAreDoubles(_Changing):
    """64-bit integers pass through float64 on their way in."""

    def change(self, array: Any) -> Any:
        """There and back; the float beyond the largest integer is that integer."""
        rounded = array.astype(np.float64)
        inside = (rounded < 2.0**63) & (rounded > -(2.0**63))
        return np.where(inside, np.where(inside, rounded, 0).astype(array.dtype), array)


@breaks_backend(caught_by="device/roundtrip/float* device/copy/float*")
@_inwards("float16", "float32", "float64")
class ZerosLoseTheirSignOnTheWayIn(_Changing):
    """-0.0 is stored as 0.0."""

    def change(self, array: Any) -> Any:
        """A sum with 0 does it."""
        return array + np.zeros(1, array.dtype)


@breaks_backend(caught_by="device/roundtrip/bfloat16* device/copy/bfloat16*")
@_inwards("bfloat16")
class BfloatsAreCutHalves(_Changing):
    """bfloat16 is kept as float16."""

    def change(self, array: Any) -> Any:
        """There and back."""
        return array.astype(np.float16).astype(array.dtype)


@breaks_backend(caught_by="device/roundtrip/complex* device/copy/complex*")
@_inwards("complex64", "complex128")
class PartsAreSwapped(_Changing):
    """The imaginary part comes first."""

    def change(self, array: Any) -> Any:
        """Real for imaginary."""
        return (array.imag + 1j * array.real).astype(array.dtype)


@breaks_backend(caught_by="device/result* device/roundtrip* device/allocate*")
class UnsignedIsSaidToBeSigned(Mirror):
    """``dtype_of`` says int32 of uint32."""

    def dtype_of(self, payload: Any) -> dtype:
        """By the size alone."""
        d = super().dtype_of(payload)
        return BY_NAME["int32"] if d.name == "uint32" else d


# -- between devices, and other libraries -----------------------------------------------------------------------------
@breaks_backend(caught_by="device/transfer*")
class TransfersShareMemory(Mirror):
    """A tensor on another device of the type has the same memory."""

    def transfer(self, payload: Any, source: int, destination: int) -> Any:
        """Only the name of the device changes."""
        return Image(payload.inner, destination, payload.memory)


@breaks_backend(caught_by="device/transfer*")
class TransfersForgetStrides(Mirror):
    """Memory is moved as it lies, and read there in C order."""

    def transfer(self, payload: Any, source: int, destination: int) -> Any:
        """Strides are left behind."""
        return super().transfer(as_if_contiguous(self, payload), source, destination)


@breaks_backend(caught_by="device/dlpack*")
class ExportsAreCopies(Mirror):
    """A DLPack capsule shows a copy: writes are not seen on the other side."""

    def to_dlpack(self, payload: Any, index: int, **options: Any) -> Any:
        """Of the content as it is now."""
        return super().to_dlpack(payload_of(self, array_of(self, payload), index), index, **options)


@breaks_backend(caught_by="device/dlpack*")
class ExportsForgetStrides(Mirror):
    """A DLPack capsule shows the memory in C order."""

    def to_dlpack(self, payload: Any, index: int, **options: Any) -> Any:
        """From the right place on, in the wrong steps."""
        wrong = payload if self._plain(payload) else as_if_contiguous(self, payload)
        return super().to_dlpack(wrong, index, **options)

    def _plain(self, payload: Any) -> bool:
        from candelabra_conformance.mutants.storage import is_contiguous

        return is_contiguous(self, payload)


@breaks_backend(caught_by="device/dlpack*")
class ExportsForgetTheOffset(Mirror):
    """A DLPack capsule begins where the storage does."""

    def to_dlpack(self, payload: Any, index: int, **options: Any) -> Any:
        """The byte offset is not filled in."""
        offset = self.layout(payload)[1]
        return super().to_dlpack(read_as(self, payload, offset=0) if offset else payload, index, **options)


@breaks_backend(caught_by="device/dlpack*")
class ImportsAreTranslatedBadly(Mirror):
    """float32 that comes through DLPack is taken for int32."""

    def from_dlpack(self, source: Any, index: int, copy: bool | None) -> Any:
        """The type code is not looked at."""
        image = super().from_dlpack(source, index, copy)
        if image is None or self.dtype_of(image).name != "float32":
            return image
        return payload_of(self, array_of(self, image).view(np.int32), index)


@breaks_backend(caught_by="device/dlpack*")
class ImportsTakeForeignMemory(Mirror):
    """Memory of any device type is taken for this one's."""

    def from_dlpack(self, source: Any, index: int, copy: bool | None) -> Any:
        """Whatever the number, the bytes are read."""
        kind, _ = source.__dlpack_device__()
        if int(kind) == EXTENSION:
            return super().from_dlpack(source, index, copy)
        inner = self.reference.from_dlpack(source, 0, copy)
        return None if inner is None else self.wrapped(inner, index)
