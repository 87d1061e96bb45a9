"""Memory of a CUDA device: CuPy's stream-ordered pool, and host memory that copies may run from on their own."""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from candelabra.errors import OutOfMemoryError

PINNED_LIMIT: Final = 64 * 2**20
"""Larger copies to the device wait instead of being staged: pinned memory is taken from everybody."""


class DeviceMemory(int):
    """An address on the device. As a number it is a kernel's argument as it is; ``owner`` keeps the memory."""

    owner: Any

    def __new__(cls, owner: Any) -> DeviceMemory:
        made = super().__new__(cls, owner.ptr)
        made.owner = owner
        return made

    __hash__ = int.__hash__


class Counted(DeviceMemory):
    """Memory of our pool: where it is dropped, its size goes to ``freed``, and itself to ``dropped``, if that is."""

    size: int
    freed: ClassVar[deque[int]]
    dropped: ClassVar[deque[Any] | None] = None

    def __del__(self) -> None:
        self.freed.append(self.size)
        if self.dropped is not None:
            self.dropped.append(self.owner)


_at: Final = int.__new__  # past our own, which takes an owner
UNIT: Final = 512
"""CuPy gives memory in multiples of this."""


class Held:
    """Dropped memory that some stream may still work with: CuPy's pool would give it to the stream that it came from.

    It is held until every stream has come past the point where it was found dropped.
    """

    def __init__(self, cupy: Any) -> None:
        self._event: Final = cupy.cuda.Event
        self._streams: Final[list[Any]] = [cupy.cuda.Stream.null]
        self._lock: Final = threading.Lock()
        self._waiting: Final[deque[tuple[list[Any], list[Any]]]] = deque()
        self.dropped: Final[deque[Any]] = deque()

    def add(self, stream: Any) -> None:
        """One more stream that works with the device's memory."""
        with self._lock:
            self._streams.append(stream)

    def settle(self, wait: bool = False) -> None:
        """Let go of what all streams are done with; with ``wait`` of everything, when they are."""
        with self._lock:
            found = [self.dropped.popleft() for _ in range(len(self.dropped))]
            if found:
                events = [self._event(disable_timing=True) for _ in self._streams]
                for event, stream in zip(events, self._streams, strict=True):
                    event.record(stream)
                self._waiting.append((events, found))
            while self._waiting:
                for event in self._waiting[0][0]:
                    if wait:
                        event.synchronize()
                    elif not event.done:
                        return
                self._waiting.popleft()


class Pool:
    """The memory of one device; ``enter`` makes that the thread's, for CuPy's pool serves whichever is.

    What is in use is counted here: CuPy would walk over all live blocks to say so, too much for every allocation. A
    block may be dropped at any point of any thread, in the middle of an allocation too, so it only joins a queue then.
    """

    def __init__(self, cupy: Any, place: str, enter: Callable[[], object]) -> None:
        self._enter: Final = enter
        self._cupy: Final = cupy
        self._held: Held | None = None
        """From the second stream on."""
        self._lock: Final = threading.Lock()
        self._freed: Final[deque[int]] = deque()
        self._kind: Final[type[Counted]] = type("Block", (Counted,), {"freed": self._freed})
        self._used = 0
        self._pool: Final = cupy.cuda.MemoryPool()
        self._malloc: Final = self._pool.malloc
        self._exhausted: Final = cupy.cuda.memory.OutOfMemoryError
        self._using_allocator: Final = cupy.cuda.using_allocator
        self._place: Final = place
        self.peak = 0

    def share(self, stream: Any) -> None:
        """Let a stream of CuPy's work with this memory too."""
        if self._held is None:
            self._held = Held(self._cupy)
            self._kind.dropped = self._held.dropped
        self._held.add(stream)

    def allocate(self, nbytes: int) -> DeviceMemory:
        """Memory for work on the current stream. CuPy gives its unused memory back before it gives up."""
        if self._held is not None:
            self._held.settle()
        try:
            owner = self._malloc(nbytes)
        except self._exhausted as error:
            owner = self._again(nbytes)
            if owner is None:
                raise self._failure(f"tried to allocate {nbytes} bytes") from error
        made = _at(self._kind, owner.ptr)
        made.owner = owner
        made.size = size = -(-nbytes // UNIT) * UNIT
        freed = self._freed
        with self._lock:
            used = self._used + size
            while freed:
                used -= freed.popleft()
            self._used = used
            if used > self.peak:
                self.peak = used
        return made

    def adopt(self, owner: Any) -> DeviceMemory:
        """What CuPy has allocated for a result of its own: not counted here, but held for other streams as ours is."""
        made = _at(self._kind, owner.ptr)
        made.owner, made.size = owner, 0
        return made

    def _again(self, nbytes: int) -> Any:
        """What there is when no stream holds anything any more; None if that is not enough."""
        if self._held is None:
            return None
        self._held.settle(wait=True)
        try:
            return self._malloc(nbytes)
        except self._exhausted:
            return None

    @contextmanager
    def serving_cupy(self) -> Iterator[None]:
        """What CuPy allocates in the block comes from this pool, so that it is counted and its want is our error."""
        try:
            with self._using_allocator(self._pool.malloc):
                yield
        except self._exhausted as error:
            raise self._failure(f"{error}") from error

    def _failure(self, wanted: str) -> OutOfMemoryError:
        return OutOfMemoryError(
            f"{self._place} is out of memory: {wanted}, {self._pool.used_bytes()} are in use and "
            f"{self._pool.free_bytes()} are kept unused; {self._place.split(':')[0]}.empty_cache() gives those back"
        )

    def statistics(self, release: bool) -> dict[str, int]:
        """As the contract's ``memory``."""
        self._enter()
        if self._held is not None:
            self._held.settle(wait=release)
        if release:
            self._pool.free_all_blocks()
        used = self._pool.used_bytes()
        return {"allocated": used, "reserved": self._pool.total_bytes(), "peak": max(self.peak, used)}


class Staging:
    """Pinned memory of copies that are still running; it is given back when their event is done."""

    def __init__(self, cupy: Any) -> None:
        self._cuda: Final = cupy.cuda
        self._running: Final[deque[tuple[Any, Any]]] = deque()

    def write(self, to: int, data: memoryview, stream: Any) -> None:
        """Put bytes at an address, in the order of the stream. ``data`` may change after the call."""
        runtime = self._cuda.runtime
        size = data.nbytes
        if size > PINNED_LIMIT:
            stream.synchronize()
            runtime.memcpy(to, address(data), size, runtime.memcpyHostToDevice)
            return
        while self._running and self._running[0][0].done:
            self._running.popleft()
        pinned = self._cuda.alloc_pinned_memory(size)
        ctypes.memmove(pinned.ptr, address(data), size)
        runtime.memcpyAsync(to, pinned.ptr, size, runtime.memcpyHostToDevice, stream.ptr)
        event = self._cuda.Event(disable_timing=True)
        event.record(stream)
        self._running.append((event, pinned))


def address(data: Any) -> int:
    """Where a buffer of the host lies, writable or not."""
    import numpy as np

    return int(np.frombuffer(data, np.uint8).ctypes.data)
