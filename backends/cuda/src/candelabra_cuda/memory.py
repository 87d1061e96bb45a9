"""The memory of a CUDA device: CuPy's stream-ordered pool, and pinned host memory for asynchronous copies."""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from candelabra.errors import OutOfMemoryError

PINNED_LIMIT: Final = 64 * 2**20
"""Larger copies to the device are synchronous instead of staged, because pinned memory is scarce."""


class DeviceMemory(int):
    """An address on the device, which is a kernel argument as it is. ``owner`` keeps the memory alive."""

    owner: Any

    def __new__(cls, owner: Any) -> DeviceMemory:
        memory = super().__new__(cls, owner.ptr)
        memory.owner = owner
        return memory

    __hash__ = int.__hash__


class PoolBlock(DeviceMemory):
    """A block of the pool.

    When it is deleted, its size is appended to ``freed``, and its owner to ``dropped``, if that is set.
    """

    size: int
    freed: ClassVar[deque[int]]
    dropped: ClassVar[deque[Any] | None] = None

    def __del__(self) -> None:
        self.freed.append(self.size)
        if self.dropped is not None:
            self.dropped.append(self.owner)


_at: Final = int.__new__  # bypasses DeviceMemory.__new__, which takes an owner
ALLOCATION_UNIT: Final = 512
"""CuPy allocates multiples of this size."""


class DeferredFrees:
    """Deleted blocks that another stream may still use. CuPy's pool would reuse them on the stream that allocated them.

    A block is kept until every stream has passed the point at which the block was found deleted.
    """

    def __init__(self, cupy: Any) -> None:
        self._event: Final = cupy.cuda.Event
        self._streams: Final[list[Any]] = [cupy.cuda.Stream.null]
        self._lock: Final = threading.Lock()
        self._waiting: Final[deque[tuple[list[Any], list[Any]]]] = deque()
        self.dropped: Final[deque[Any]] = deque()

    def add(self, stream: Any) -> None:
        """Add a stream that uses the device's memory."""
        with self._lock:
            self._streams.append(stream)

    def release_completed(self, wait: bool = False) -> None:
        """Release blocks that all streams have finished with; with ``wait``, wait for the streams and release all
        blocks.
        """
        with self._lock:
            dropped = [self.dropped.popleft() for _ in range(len(self.dropped))]
            if dropped:
                events = [self._event(disable_timing=True) for _ in self._streams]
                for event, stream in zip(events, self._streams, strict=True):
                    event.record(stream)
                self._waiting.append((events, dropped))
            while self._waiting:
                for event in self._waiting[0][0]:
                    if wait:
                        event.synchronize()
                    elif not event.done:
                        return
                self._waiting.popleft()


class CudaMemoryPool:
    """The memory of one device. ``enter`` makes the device current; CuPy's pool allocates on the current device.

    The used memory is counted here: CuPy would iterate over all live blocks, which is too slow for every allocation. A
    block may be deleted at any point of any thread, even during an allocation, so it is only appended to a queue then.
    """

    def __init__(self, cupy: Any, device: str, enter: Callable[[], object]) -> None:
        self._enter: Final = enter
        self._cupy: Final = cupy
        self._deferred: DeferredFrees | None = None
        """Set when there is a second stream."""
        self._lock: Final = threading.Lock()
        self._freed: Final[deque[int]] = deque()
        self._kind: Final[type[PoolBlock]] = type("Block", (PoolBlock,), {"freed": self._freed})
        self._used = 0
        self._pool: Final = cupy.cuda.MemoryPool()
        self._malloc: Final = self._pool.malloc
        self._exhausted: Final = cupy.cuda.memory.OutOfMemoryError
        self._using_allocator: Final = cupy.cuda.using_allocator
        self._device: Final = device
        self.peak = 0

    def share(self, stream: Any) -> None:
        """Allow a stream of CuPy to use this memory."""
        if self._deferred is None:
            self._deferred = DeferredFrees(self._cupy)
            self._kind.dropped = self._deferred.dropped
        self._deferred.add(stream)

    def allocate(self, nbytes: int) -> DeviceMemory:
        """Return memory for work on the current stream. CuPy releases its unused memory before it fails."""
        if self._deferred is not None:
            self._deferred.release_completed()
        try:
            owner = self._malloc(nbytes)
        except self._exhausted as error:
            owner = self._retry(nbytes)
            if owner is None:
                raise self._out_of_memory(f"tried to allocate {nbytes} bytes") from error
        block = _at(self._kind, owner.ptr)
        block.owner = owner
        block.size = size = -(-nbytes // ALLOCATION_UNIT) * ALLOCATION_UNIT
        freed = self._freed
        with self._lock:
            used = self._used + size
            while freed:
                used -= freed.popleft()
            self._used = used
            if used > self.peak:
                self.peak = used
        return block

    def owns(self, buffer: Any) -> bool:
        """Return whether :meth:`allocate` returned a buffer, and not another pool."""
        return type(buffer) is self._kind

    def adopt(self, owner: Any) -> DeviceMemory:
        """Return memory that CuPy has allocated for a result.

        It is not counted here, but its release is deferred like that of blocks.
        """
        block = _at(self._kind, owner.ptr)
        block.owner, block.size = owner, 0
        return block

    def _retry(self, nbytes: int) -> Any:
        """Allocate after all deferred blocks have been released. Returns None if memory is still missing."""
        if self._deferred is None:
            return None
        self._deferred.release_completed(wait=True)
        try:
            return self._malloc(nbytes)
        except self._exhausted:
            return None

    @contextmanager
    def serving_cupy(self) -> Iterator[None]:
        """Let CuPy allocate from this pool within the block, so that its memory is counted and a failure raises our
        error.
        """
        try:
            with self._using_allocator(self._pool.malloc):
                yield
        except self._exhausted as error:
            raise self._out_of_memory(f"{error}") from error

    def _out_of_memory(self, request: str) -> OutOfMemoryError:
        return OutOfMemoryError(
            f"{self._device} is out of memory: {request}, {self._pool.used_bytes()} are in use and "
            f"{self._pool.free_bytes()} are kept unused; {self._device.split(':')[0]}.empty_cache() gives those back"
        )

    def reset_peak(self) -> None:
        """Count the peak from now on."""
        self.peak = self.statistics(False)["allocated"]

    def statistics(self, release: bool) -> dict[str, int]:
        """Return the statistics of the contract's ``memory``."""
        self._enter()
        if self._deferred is not None:
            self._deferred.release_completed(wait=release)
        if release:
            self._pool.free_all_blocks()
        used = self._pool.used_bytes()
        return {"allocated": used, "reserved": self._pool.total_bytes(), "peak": max(self.peak, used)}


class Staging:
    """Copies from the host: pinned memory of copies in progress, which is released when their event is complete."""

    def __init__(self, cupy: Any) -> None:
        self._cuda: Final = cupy.cuda
        self._running: Final[deque[tuple[Any, Any]]] = deque()
        self.shared = False
        """Whether there are several streams. No other stream waits for the event of a copy, so the host waits then."""

    def share(self) -> None:
        """Make this and all later copies visible to all streams."""
        self.shared = True
        while self._running:
            self._running.popleft()[0].synchronize()

    def write(self, to: int, data: memoryview, stream: Any) -> None:
        """Write bytes to an address in stream order. ``data`` may change after the call."""
        runtime = self._cuda.runtime
        size = data.nbytes
        if size > PINNED_LIMIT:
            # In the order of the stream: a synchronous copy would be queued on the default stream, for which streams
            # that do not block do not wait.
            runtime.memcpyAsync(to, address(data), size, runtime.memcpyHostToDevice, stream.ptr)
            stream.synchronize()
            return
        while self._running and self._running[0][0].done:
            self._running.popleft()
        pinned = self._cuda.alloc_pinned_memory(size)
        ctypes.memmove(pinned.ptr, address(data), size)
        runtime.memcpyAsync(to, pinned.ptr, size, runtime.memcpyHostToDevice, stream.ptr)
        event = self._cuda.Event(disable_timing=True)
        event.record(stream)
        if self.shared:
            event.synchronize()
        else:
            self._running.append((event, pinned))


def address(data: Any) -> int:
    """Return the address of a host buffer, whether it is writable or not."""
    import numpy as np

    return int(np.frombuffer(data, np.uint8).ctypes.data)
