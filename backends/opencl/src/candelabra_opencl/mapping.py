"""Content of payloads in the host's memory: the buffer itself, mapped without a copy, or page-locked memory.

A device that shares the host's memory (a processor, an integrated GPU) maps the buffer. Other devices copy to memory
that the driver has allocated (``CL_MEM_ALLOC_HOST_PTR``), which is page-locked there: the device reads and writes it
directly, while the driver copies pageable memory a second time, and the host waits. Blocks are mapped once, and kept.
Source: OpenCL 3.0, "Mapping buffer objects"; NVIDIA's "OpenCL Best Practices Guide", "Pinned Memory".
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyopencl as cl
from candelabra.backend import HostMapping
from pyopencl import _cl

if TYPE_CHECKING:
    from candelabra_clike import StridedArray

    from candelabra_opencl.engine import OpenCLEngine

SMALLEST: Final = 1 << 16
"""The size of the smallest block in bytes. Others are the powers of two above it."""
KEPT: Final = 1 << 28
"""The number of bytes of free blocks that a device keeps: page-locked memory is taken from the whole machine."""


class PinnedBlock:
    """Page-locked memory of the driver, mapped into this process."""

    def __init__(self, engine: OpenCLEngine, size: int) -> None:
        flags = cl.mem_flags
        self.size: Final = size
        self._buffer: Final = cl.Buffer(engine.context, flags.READ_WRITE | flags.ALLOC_HOST_PTR, size)
        access = cl.map_flags.READ | cl.map_flags.WRITE
        self.array: Final = _map_buffer(engine.streams.default.queue, self._buffer, access, 0, size, blocking=True)[0]


def _map_buffer(queue: Any, buffer: Any, access: Any, start: int, size: int, blocking: bool) -> tuple[Any, Any]:
    """Return an array over mapped bytes, and the event after which it may be used."""
    enqueue: Any = cl.enqueue_map_buffer  # its declared types accept neither combined flags nor NumPy's types
    array, event = enqueue(queue, buffer, access, start, (size,), np.uint8, is_blocking=blocking)
    return array, event


class PinnedMemory:
    """The blocks of one device. A block that is given back is free once the copy from it is complete."""

    def __init__(self, engine: OpenCLEngine) -> None:
        self._engine: Final = engine
        self._lock: Final = threading.Lock()
        self._free: Final[dict[int, list[PinnedBlock]]] = {}
        self._copying: Final[deque[tuple[Any, PinnedBlock]]] = deque()
        self.free_bytes = 0

    def take(self, nbytes: int) -> PinnedBlock:
        """Return a block of at least ``nbytes`` bytes."""
        size = max(SMALLEST, 1 << (nbytes - 1).bit_length())
        with self._lock:
            while self._copying and self._copying[0][0].command_execution_status <= 0:
                self._put(self._copying.popleft()[1])
            blocks = self._free.get(size)
            if blocks:
                self.free_bytes -= size
                return blocks.pop()
        return PinnedBlock(self._engine, size)

    def give(self, block: PinnedBlock, copied: Any = None) -> None:
        """Take a block back. ``copied``: the event of the copy from it that may still run."""
        with self._lock:
            if copied is None:
                self._put(block)
            else:
                self._copying.append((copied, block))

    def _put(self, block: PinnedBlock) -> None:
        if self.free_bytes + block.size <= KEPT:
            self._free.setdefault(block.size, []).append(block)
            self.free_bytes += block.size


class PinnedMapping(HostMapping):
    """The content of a payload in page-locked memory, copied in the order of the current stream."""

    def __init__(self, payload: StridedArray, read: bool, write: bool) -> None:
        engine: Any = payload.engine
        self._engine: Final[OpenCLEngine] = engine
        self._buffer, self._write = payload.buffer, write
        self._start = payload.offset * payload.dtype.itemsize
        size = payload.size * payload.dtype.itemsize
        block: PinnedBlock = engine.pinned.take(size)
        self._block: PinnedBlock | None = block
        self._array: Final = block.array[:size]
        self._event: Any = None
        if read:
            queue = engine.streams.current().queue
            self._event = _cl._enqueue_read_buffer(queue, self._buffer, self._array, self._start, None, False)
            queue.flush()  # the thread that waits is another one

    def wait(self) -> memoryview:
        if self._event is not None:
            self._engine.streams.wait_and_check(self._event.wait)
        return memoryview(self._array)

    def unmap(self) -> None:
        block, self._block = self._block, None
        if block is None:
            return
        if not self._write:
            self._engine.pinned.give(block)
            return
        streams = self._engine.streams
        stream = streams.current()
        event = _cl._enqueue_write_buffer(stream.queue, self._buffer, self._array, self._start, None, False)
        if not streams.single:
            stream.keep(event, self._buffer)
        self._engine.pinned.give(block, event)

    def __del__(self) -> None:
        block, self._block = getattr(self, "_block", None), None
        if block is not None:  # without unmap() nothing is written; a read that still runs ends first
            self._engine.pinned.give(block, self._event)


class SharedBufferMapping(HostMapping):
    """A buffer in memory that device and host share, mapped for the host."""

    def __init__(self, payload: StridedArray, read: bool, write: bool) -> None:
        engine: Any = payload.engine
        self._engine: Final[OpenCLEngine] = engine
        self._buffer: Final = payload.buffer
        flags = cl.map_flags
        access = (flags.READ if read or not write else 0) | (flags.WRITE if write else 0)
        if write and not read:
            access = flags.WRITE_INVALIDATE_REGION
        queue = engine.streams.current().queue
        size, start = payload.size * payload.dtype.itemsize, payload.offset * payload.dtype.itemsize
        self._array, self._event = _map_buffer(queue, self._buffer, access, start, size, blocking=False)
        queue.flush()

    def wait(self) -> memoryview:
        self._engine.streams.wait_and_check(self._event.wait)
        return memoryview(self._array)

    def unmap(self) -> None:
        array, self._array = self._array, None
        if array is None:
            return
        streams = self._engine.streams
        stream = streams.current()
        event = array.base.release(stream.queue)
        if not streams.single:
            stream.keep(event, self._buffer)


def mapping(payload: StridedArray, read: bool, write: bool) -> HostMapping:
    """Map a contiguous payload that is not empty.

    A part of a buffer goes through page-locked memory: while a buffer is mapped, OpenCL does not define what kernels
    find in its other parts. The pool's buffers are up to an eighth larger than what was asked for.
    """
    engine: Any = payload.engine
    whole = not payload.offset and 8 * payload.size * payload.dtype.itemsize >= 7 * payload.buffer.size
    return (SharedBufferMapping if engine.shares_memory and whole else PinnedMapping)(payload, read, write)
