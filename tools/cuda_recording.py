"""A device without a device: it takes the kernels that operators would launch and runs none.

Its memory is the host's and full of zeros. What it computes means nothing; what it was asked to compile is what a GPU
would be given, and a compiler can take that where there is no GPU. ``cuda_needed`` makes the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from mmap import mmap
from typing import Final

from candelabra.backend import Capabilities, DeviceInfo
from candelabra.dtypes import ALL
from candelabra_clike import CUDA, CLikeBackend, Engine, Launch, Source, Traits
from candelabra_clike.device_errors import DeviceErrors

GPU = Traits(serial=False, compute_units=132, group=1024, local_memory=48 * 1024, memory=80 * 2**30, largest=80 * 2**30)
"""What a GPU says of itself."""
Memory = bytearray | mmap
LARGE: Final = 1 << 20
"""From so many bytes on memory is mapped: its pages take no time and no room until they are touched."""


class RecordingEngine(Engine):
    """Its ``sources`` are those of every kernel that was wanted, each once."""

    dialect = CUDA
    traits = GPU
    index = 0

    def __init__(self) -> None:
        self.errors = DeviceErrors(self)
        self.sources: dict[Source, None] = {}
        self.operator = ""
        self.launched: set[str] = set()
        """The operators that launched a kernel, of those that ``operator`` was set to."""

    def allocate(self, nbytes: int) -> Memory:
        return bytearray(nbytes) if nbytes < LARGE else mmap(-1, nbytes)

    def read(self, buffer: Memory, offset: int, nbytes: int) -> memoryview:
        return memoryview(bytes(buffer[offset : offset + nbytes]))

    def write(self, buffer: Memory, offset: int, data: memoryview) -> None:
        buffer[offset : offset + data.nbytes] = data.cast("B")

    def copy(self, destination: Memory, to: int, source: Memory, start: int, nbytes: int) -> None:
        destination[to : to + nbytes] = source[start : start + nbytes]

    def compile(self, source: Source) -> Launch:
        self.sources[source] = None
        return lambda count, *arguments: self.launched.add(self.operator)

    def synchronize(self) -> None:
        """There is nothing to wait for."""


class RecordingBackend(CLikeBackend):
    """One device that records."""

    name = "recording"
    capabilities = Capabilities(storage=frozenset(ALL), arithmetic=frozenset(ALL), asynchronous=True)

    def __init__(self) -> None:
        self.recorder = RecordingEngine()

    def devices(self) -> Sequence[DeviceInfo]:
        return [DeviceInfo("a device that runs nothing")]

    def engine(self, index: int) -> RecordingEngine:
        return self.recorder
