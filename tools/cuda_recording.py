"""A simulated device, which records the kernels that operators would launch and runs none of them.

Its memory is host memory full of zeros, and its results are meaningless. The recorded kernels are those that a GPU
would get, and a compiler can compile them without a GPU. ``cuda_needed`` makes the calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from mmap import mmap
from typing import Final

from candelabra.backend import Capabilities, DeviceInfo, Kernel
from candelabra.dtypes import ALL, COMPLEX, FLOATING, dtype
from candelabra_clike import CUDA, CLikeBackend, Engine, Launch, Source, Traits, convolution_products
from candelabra_clike.device_errors import DeviceErrors
from candelabra_clike.kernels import attention
from candelabra_clike.kernels.attention import Multiply

GPU = Traits(serial=False, compute_units=132, group=1024, local_memory=48 * 1024, memory=80 * 2**30, largest=80 * 2**30)
"""The properties of a typical GPU."""
Memory = bytearray | mmap
LARGE: Final = 1 << 20
"""The size in bytes from which memory is mapped: its pages need no time and no memory until they are used."""


class RecordingEngine(Engine):
    """An engine whose ``sources`` are the requested kernels, each once."""

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
        if nbytes < LARGE:  # no call depends on the values of large arrays
            destination[to : to + nbytes] = source[start : start + nbytes]

    def compile(self, source: Source) -> Launch:
        self.sources[source] = None
        return lambda count, *arguments: self.launched.add(self.operator)

    def synchronize(self) -> None:
        """Do nothing: no work is pending."""


def multiplying(d: dtype) -> Multiply | None:
    """Return the matrix product of a library, which launches no kernel of ours."""
    return (lambda out, a, b, added: None) if d.category in (FLOATING, COMPLEX) else None


class RecordingBackend(CLikeBackend):
    """The backend of one recording device."""

    name = "recording"
    capabilities = Capabilities(storage=frozenset(ALL), arithmetic=frozenset(ALL), asynchronous=True)

    def __init__(self) -> None:
        self.recorder = RecordingEngine()

    def kernels(self) -> Mapping[str, Kernel]:
        return {**super().kernels(), **attention.kernels(multiplying), **convolution_products.kernels(multiplying)}

    def devices(self) -> Sequence[DeviceInfo]:
        return [DeviceInfo("a device that runs nothing")]

    def engine(self, index: int) -> RecordingEngine:
        return self.recorder
