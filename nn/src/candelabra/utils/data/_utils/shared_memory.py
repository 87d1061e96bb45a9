"""Batches from a worker's process to the program's: the elements go through shared memory, the rest through a pipe.

A batch is pickled with its arrays and the memory of its tensors left out (protocol 5, PEP 574). A worker writes these
buffers one after the other into a segment of shared memory; the program makes tensors over that memory without a copy.
When the last of them is gone, the segment goes back to the worker for another batch. A program that keeps many batches
gets copies, so that shared memory and file descriptors stay bounded.

The pickles are made by this library's own processes and never leave the machine's memory: no file is unpickled here.
"""

from __future__ import annotations

import ctypes
import errno
import io
import os
import shutil
import weakref
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from multiprocessing.shared_memory import SharedMemory
from typing import Any, Final

from candelabra import Tensor
from candelabra.library import public_function

__all__ = ["PackedBatch", "SegmentReader", "SegmentWriter"]

ALIGNMENT: Final = 64
INLINE_BYTES: Final = 1 << 14
"""Buffers of fewer bytes together go through the pipe."""
MAX_LEASES: Final = 8
"""Of each worker's segments, the number that the program's tensors may hold; further batches are copied."""
SHARED_MEMORY: Final = "/dev/shm"
"""Where Linux keeps shared memory."""


@dataclass(frozen=True)
class PackedBatch:
    """A pickle without its buffers, and where they are: in a segment of that number at ``spans``, or ``inline``.

    ``removed`` is a segment that the worker has removed for this one.
    """

    pickle: bytes
    inline: Sequence[bytearray] = ()
    segment: int | None = None
    spans: Sequence[tuple[int, int]] = ()
    removed: int | None = None


# -- pickling ---------------------------------------------------------------------------------------------------------
class _BatchPickler(ForkingPickler):
    """Pickles a tensor as the array of its elements, which NumPy leaves out of the pickle."""

    def __init__(self, file: io.BytesIO, buffers: list[Any]) -> None:
        super().__init__(file, 5, True, buffers.append)

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return NotImplemented
        if value.requires_grad and not value.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
                "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor "
                "before serializing (e.g., putting it on the queue)."
            )
        array = value.detach().numpy(force=True)
        return _rebuilt, (array, type(value), str(value.device), value.requires_grad, dict(value.__dict__))


def _rebuilt(array: Any, cls: Any, device: str, requires_grad: bool, attributes: dict[str, Any]) -> Any:
    """Return the tensor that was pickled, over the array's memory where its device is the host."""
    tensor = public_function("from_numpy")(array)
    if str(tensor.device) != device:
        tensor = tensor.to(device)
    if cls is not type(tensor):
        tensor = tensor.as_subclass(cls)
    if requires_grad:
        tensor.requires_grad_()
    if attributes:
        tensor.__dict__.update(attributes)
    return tensor


# -- the worker's side ------------------------------------------------------------------------------------------------
class SegmentWriter:
    """Packs batches. ``prefix`` begins the names of the segments, numbered from 0, that this worker creates."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._created = 0
        self._segments: dict[int, SharedMemory] = {}
        self._free: list[int] = []

    def pack(self, batch: Any) -> PackedBatch:
        """Pickle a batch and write its buffers into a segment.

        Raises ``RuntimeError`` if shared memory has no room, and what the batch's own pickling raises.
        """
        file = io.BytesIO()
        buffers: list[Any] = []
        _BatchPickler(file, buffers).dump(batch)
        views = [buffer.raw() for buffer in buffers]
        spans, size = [], 0
        for view in views:
            spans.append((size, size + view.nbytes))
            size += -(-view.nbytes // ALIGNMENT) * ALIGNMENT
        if size < INLINE_BYTES:
            return PackedBatch(file.getvalue(), [bytearray(view) for view in views])
        number, removed = self._take(size)
        target: Any = self._segments[number].buf
        for (start, stop), view in zip(spans, views):
            target[start:stop] = view
        return PackedBatch(file.getvalue(), (), number, spans, removed)

    def recycle(self, numbers: Sequence[int]) -> None:
        """Take back segments that the program no longer uses."""
        self._free.extend(numbers)

    def _take(self, size: int) -> tuple[int, int | None]:
        """Return a segment with room for ``size`` bytes, and the one that was removed for it, if any."""
        fitting = [number for number in self._free if self._segments[number].size >= size]
        if fitting:
            number = min(fitting, key=lambda n: self._segments[n].size)
            self._free.remove(number)
            return number, None
        removed = None
        if self._free:  # All that are free are too small: a larger one replaces one of them.
            removed = self._free.pop()
            small = self._segments.pop(removed)
            small.close()
            small.unlink()
        number, self._created = self._created, self._created + 1
        # Rounded up, so that batches whose sizes differ a little share segments.
        grain = max(4096, 1 << (size.bit_length() - 4))
        self._segments[number] = _create(_segment_name(self._prefix, number), -(-size // grain) * grain)
        return number, removed


def _segment_name(prefix: str, number: int) -> str:
    return f"{prefix}_{number}"


def _create(name: str, size: int) -> SharedMemory:
    segment = SharedMemory(name, create=True, size=size)
    try:
        _reserve(name, size)
    except OSError as error:
        segment.close()
        segment.unlink()
        if error.errno != errno.ENOSPC:
            raise
        usage = shutil.disk_usage(SHARED_MEMORY)
        raise RuntimeError(
            f"a batch of {size / 2**20:.1f} MiB finds no room in shared memory: {SHARED_MEMORY} has "
            f"{usage.total / 2**20:.1f} MiB, of which {usage.free / 2**20:.1f} MiB are free. Give it more (in a "
            "container: --shm-size or --ipc=host), use fewer workers, smaller batches or a smaller prefetch_factor, or "
            "num_workers=0"
        ) from None
    return segment


def _reserve(name: str, size: int) -> None:
    """Allocate the pages now. Without this, writing where the file system has no room kills the process (SIGBUS)."""
    path = os.path.join(SHARED_MEMORY, name)
    if not hasattr(os, "posix_fallocate") or not os.path.exists(path):
        return
    file = os.open(path, os.O_RDWR)
    try:
        os.posix_fallocate(file, 0, size)
    finally:
        os.close(file)


# -- the program's side -----------------------------------------------------------------------------------------------
class SegmentReader:
    """Unpacks the batches of one worker and counts which of its segments the program's tensors still hold."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._segments: dict[int, SharedMemory] = {}
        self._returned: deque[int] = deque()  # Tensors may die in any thread; append and popleft are atomic.
        self._leased: set[int] = set()
        self._is_closed = False

    def unpack(self, packed: PackedBatch) -> Any:
        """Return the batch, over the segment's memory, or over a copy if the program holds many segments already."""
        self._forget(packed)
        buffers: Sequence[Any] = packed.inline
        if packed.segment is not None:
            segment = self._open(packed.segment)
            view = self._lease(packed.segment, segment)
            buffers = [view[start:stop] for start, stop in packed.spans]
            if len(self._leased) > MAX_LEASES:
                buffers = [bytearray(buffer) for buffer in buffers]
            del view
        return ForkingPickler.loads(packed.pickle, buffers=buffers)

    def discard(self, packed: PackedBatch) -> None:
        """Give a batch's segment back unread."""
        self._forget(packed)
        if packed.segment is not None:
            self._open(packed.segment)
            self._returned.append(packed.segment)

    def take_returned(self) -> list[int]:
        """Return the segments that have become free since the last call."""
        numbers = []
        while self._returned:
            numbers.append(self._returned.popleft())
        self._leased.difference_update(numbers)
        return numbers

    def close(self, unread: int) -> None:
        """Remove all segments, of which the worker may have created ``unread`` ones unheard of. Tensors keep theirs."""
        if self._is_closed:
            return
        self._is_closed = True
        self.take_returned()
        first = max(self._segments, default=-1) + 1
        for number in range(first, first + unread):
            with suppress(FileNotFoundError):
                self._open(number)
        for number, segment in self._segments.items():
            with suppress(FileNotFoundError):  # The worker has removed it, and died before it said so.
                segment.unlink()
            if number not in self._leased:
                segment.close()
        self._segments.clear()

    def _forget(self, packed: PackedBatch) -> None:
        if packed.removed in self._segments:
            self._segments.pop(packed.removed).close()

    def _open(self, number: int) -> SharedMemory:
        found = self._segments.get(number)
        if found is None:
            found = self._segments[number] = SharedMemory(_segment_name(self._prefix, number))
        return found

    def _lease(self, number: int, segment: SharedMemory) -> memoryview:
        """Return the segment's memory as a view. When the view and all tensors over it are gone, the segment is free.

        The array that owns the view is created from the address and not from the segment's buffer: a segment cannot be
        closed while a view of its buffer exists, and the finalizer runs just before the array releases its view.
        """
        memory: Any = segment.buf
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        owner = (ctypes.c_ubyte * segment.size).from_address(address)
        self._leased.add(number)
        weakref.finalize(owner, self._end_lease, number, segment).atexit = False
        return memoryview(owner).cast("B")

    def _end_lease(self, number: int, segment: SharedMemory) -> None:
        if self._is_closed:
            segment.close()
        else:
            self._returned.append(number)
