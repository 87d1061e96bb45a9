"""Faults of payloads in the host's memory: content that is missing, lost, of another place, or overwritten."""

from __future__ import annotations

from math import prod
from typing import Any

from candelabra.backend import HostMapping

from candelabra_conformance.fake.arrays import FakeArray
from candelabra_conformance.fake.backend import FakeAccelerator
from candelabra_conformance.fake.mapping import FakeMapping
from candelabra_conformance.fake.streams import FakeEvent
from candelabra_conformance.mutants.catalogue.streams import breaks_order
from candelabra_conformance.mutants.mirror import Image, Mirror, MirrorMapping
from candelabra_conformance.mutants.mutant import breaks_backend
from candelabra_conformance.mutants.storage import as_if_contiguous, read_as


# -- a device whose calls are complete when they return ---------------------------------------------------------------
@breaks_backend(caught_by="device/host-mapping*")
class MappingsAreNotWrittenBack(Mirror):
    """What is written to a mapping of a payload is lost."""

    def map_host(self, payload: Any, index: int, read: bool, write: bool) -> HostMapping | None:
        """Map the payload only to read."""
        return super().map_host(payload, index, read, False)


@breaks_backend(caught_by="device/host-mapping*")
class MappingsForgetTheOffset(Mirror):
    """The mapping of a part of memory is that of the memory's start."""

    def map_host(self, payload: Any, index: int, read: bool, write: bool) -> HostMapping | None:
        """Ignore the offset."""
        offset = self.layout(payload)[1]
        return super().map_host(read_as(self, payload, offset=0) if offset else payload, index, read, write)


@breaks_backend(caught_by="device/host-mapping*")
class MappingsForgetStrides(Mirror):
    """The bytes of a mapping are in the order of the storage."""

    def map_host(self, payload: Any, index: int, read: bool, write: bool) -> HostMapping | None:
        """Ignore the strides."""
        return super().map_host(as_if_contiguous(self, payload), index, read, write)


class _OnlyReading(MirrorMapping):
    def wait(self) -> memoryview:
        return super().wait().toreadonly()


@breaks_backend(caught_by="device/host-mapping*")
class MappingsAreReadOnly(Mirror):
    """The memory of a mapping to write cannot be written."""

    def map_host(self, payload: Any, index: int, read: bool, write: bool) -> HostMapping | None:
        """Return memory that is read only."""
        return _OnlyReading(self, payload, read, write)


@breaks_backend(caught_by="device/host-mapping*")
class MappingsShareMemory(Mirror):
    """All mappings of one size have one block of memory."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.blocks: dict[int, bytearray] = {}

    def map_host(self, payload: Any, index: int, read: bool, write: bool) -> HostMapping | None:
        """Copy to the block of the payload's size."""
        made = MirrorMapping(self, payload, read, write)
        block = self.blocks.setdefault(len(made.memory), made.memory)
        block[:] = made.memory
        made.memory = block
        return made


class _WholeMapping(MirrorMapping):
    """The mapping of a part, which writes the whole memory back."""

    def __init__(self, mirror: Mirror, image: Image, write: bool) -> None:
        dtype = mirror.dtype_of(image)
        whole = mirror.restride(image, (image.memory.size // dtype.itemsize,), (1,), 0)
        super().__init__(mirror, whole, True, write)
        self.start = mirror.layout(image)[1] * dtype.itemsize
        self.end = self.start + prod(image.shape) * dtype.itemsize

    def wait(self) -> memoryview:
        return super().wait()[self.start : self.end]


@breaks_backend(caught_by="device/host-mapping*")
class MappingsOfPartsTakeTheWhole(Mirror):
    """The mapping of a part writes the memory around it back too, as it was."""

    def map_host(self, payload: Any, index: int, read: bool, write: bool) -> HostMapping | None:
        """Map the whole memory of a contiguous part."""
        if self.layout(payload)[0] != (1,):
            return super().map_host(payload, index, read, write)
        return _WholeMapping(self, payload, write)


@breaks_backend(caught_by="device/host-mapping*")
class ImmutableArraysAreMapped(Mirror):
    """Arrays that never change are mapped to be written, and the writes are lost."""

    def __init__(self, name: str) -> None:
        super().__init__(name, mutable=False)

    def map_host(self, payload: Any, index: int, read: bool, write: bool) -> HostMapping | None:
        """Map as if the array were only read."""
        return MirrorMapping(self, payload, read, False)


# -- a device that defers its work ------------------------------------------------------------------------------------
class _UnorderedMapping(FakeMapping):
    """A mapping that copies without regard to the order of the device's work."""

    loads_at_once = stores_at_once = False

    def _submit(self, work: Any) -> FakeEvent:
        if self.loads_at_once if work == self._load else self.stores_at_once:
            work()
            return FakeEvent(self._device.schedule.current(self._payload._block.index), 0)
        return super()._submit(work)


class _LoadsAtOnce(_UnorderedMapping):
    loads_at_once = True


class _StoresAtOnce(_UnorderedMapping):
    stores_at_once = True


class _NeverWaits(FakeMapping):
    def wait(self) -> memoryview:
        return memoryview(self._memory)


class _InOneBlock(FakeMapping):
    """A mapping whose memory serves the next one of its size as soon as it has ended."""

    free: dict[int, bytearray]

    def unmap(self) -> None:
        super().unmap()
        self.free[len(self._memory)] = self._memory


class _Mapping(FakeAccelerator):
    kind: type[FakeMapping] = FakeMapping

    def map_host(self, payload: FakeArray, index: int, read: bool, write: bool) -> FakeMapping | None:
        """Return a mapping of the broken kind."""
        nbytes = prod(payload.shape) * payload._dtype.itemsize
        return self.kind(self, payload, nbytes, read, write)


@breaks_order(caught_by="device/host-mapping*")
class MappingsDoNotSeePendingWork(_Mapping):
    """A mapping has the content of the memory at its creation, without the work that was submitted before."""

    kind = _LoadsAtOnce


@breaks_order(caught_by="device/host-mapping*")
class MappingsAreWrittenAtOnce(_Mapping):
    """The end of a mapping writes the memory before the work that was submitted earlier."""

    kind = _StoresAtOnce


@breaks_order(caught_by="device/host-mapping*")
class MappingsDoNotWait(_Mapping):
    """``wait()`` returns the memory before the content is there."""

    kind = _NeverWaits


@breaks_order(caught_by="device/host-mapping*")
class BlocksOfMappingsAreReusedEarly(_Mapping):
    """The memory of a mapping is free when it ends, although the copy from it has not run."""

    def map_host(self, payload: FakeArray, index: int, read: bool, write: bool) -> FakeMapping | None:
        """Return a mapping in a block that an earlier one has left."""
        blocks: dict[int, bytearray] = self.__dict__.setdefault("blocks", {})
        nbytes = prod(payload.shape) * payload._dtype.itemsize
        made = _InOneBlock(self, payload, nbytes, False, write)
        made.free = blocks
        made._memory = blocks.pop(nbytes, made._memory)
        if read:
            made._event = made._submit(made._load)
        return made
