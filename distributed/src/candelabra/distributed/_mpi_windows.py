"""All-reduces of ranks on one machine through a window of memory that MPI shares among them.

MPI's own all-reduce of a large buffer copies every message between the processes, and a mean needs another pass over
the buffer. In a window (``MPI_Win_allocate_shared``) each rank reads the others' contributions where they are, and
reduces and divides its share of a chunk while that is in the cache. Source: MPI 4.1, section 12.2.3; Hoefler et al.,
"MPI + MPI: a new hybrid approach to parallel programming with MPI plus shared memory", Computing 95 (2013).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from candelabra.distributed.engine import REDUCTIONS, divide
from mpi4py import MPI

SMALLEST: Final = 1 << 17
"""The smallest number of bytes for which a window is faster than MPI's all-reduce."""
CHUNK: Final = 1 << 19
"""Bytes of each rank's memory in the window, which remain in a core's cache. The mean of gradients of 8 MB that are not
in the cache takes 1.9 to 2.2 ms on two cores of a Xeon, with other sizes 2.0 to 2.5, by MPI 3.4 to 3.6."""
ALL_CHUNKS: Final = 1 << 25
"""The largest size of a window in bytes. Containers often have only 64 MiB of shared memory."""
SHARED_MEMORY: Final = "/dev/shm"


class BufferPiece:
    """A piece of a buffer of this rank, of which each rank reduces a share.

    ``start`` is its place in each slot: the shares of several pieces follow one another.
    """

    __slots__ = ("shares", "start")

    def __init__(self, array: Any, ranks: int, start: int) -> None:
        bounds = [array.size * rank // ranks for rank in range(ranks + 1)]
        self.shares = [array[low:high] for low, high in pairwise(bounds)]
        self.start = start

    def of(self, slot: Any, rank: int) -> Any:
        """Return a rank's share in a slot."""
        return slot[self.start : self.start + self.shares[rank].size]


class SharedWindow:
    """The window of a communicator. Each rank has a slot in it for each rank: for what it contributes to that one's
    shares, and, in its own slot, for the results of its shares.
    """

    def __init__(self, comm: Any) -> None:
        self._comm, self._rank, self._size = comm, comm.Get_rank(), comm.Get_size()
        slot = min(CHUNK, ALL_CHUNKS // self._size) // self._size // 64 * 64
        self._window: Any = MPI.Win.Allocate_shared(slot * self._size, 1, comm=comm)
        self._window.Lock_all(MPI.MODE_NOCHECK)
        buffers: list[Any] = [self._window.Shared_query(rank)[0] for rank in range(self._size)]
        shared = [np.frombuffer(buffer, np.uint8) for buffer in buffers]
        self._memory = [memory[: slot * self._size].reshape(self._size, slot) for memory in shared]
        self._slots: dict[str, list[Any]] = {}
        """The slots in each rank's memory, as arrays of a dtype."""

    @classmethod
    def of(cls, comm: Any) -> SharedWindow | None:
        """Return a window of all ranks of a communicator, or None if MPI's all-reduce is the better choice.

        That is so for ranks on several machines, for ranks that share cores, which would wait long for each other, and
        if memory is short. Every rank calls this.
        """
        machine = comm.Split_type(MPI.COMM_TYPE_SHARED)
        cores = os.cpu_count() or 1
        possible = machine.Get_size() == comm.Get_size() <= min(cores, ALL_CHUNKS >> 16) and _has_room()
        machine.Free()
        return cls(comm) if comm.allreduce(int(possible), MPI.MIN) else None

    def all_reduce(self, buffers: Sequence[memoryview], dtype: str, op: str, divisor: int = 1) -> None:
        """Replace every rank's buffers by the reductions of all, divided by a number.

        A rank computes its shares in the order of ranks, and all ranks divide the same numbers, so they have the same
        bits.
        """
        if dtype not in self._slots:
            self._slots[dtype] = [memory.view(dtype) for memory in self._memory]
        slots = self._slots[dtype]
        with np.errstate(all="ignore"):
            for pieces in self._chunks([np.frombuffer(buffer, dtype) for buffer in buffers], slots[0].shape[1]):
                self._reduce(pieces, slots, op, divisor)

    def _chunks(self, arrays: Sequence[Any], length: int) -> Iterator[list[BufferPiece]]:
        """Yield pieces of arrays whose shares fill slots of ``length`` elements."""
        pieces: list[BufferPiece] = []
        used = 0
        for array in arrays:
            start = 0
            while start < array.size:
                if used == length:
                    yield pieces
                    pieces, used = [], 0
                piece = array[start : start + (length - used) * self._size]
                pieces.append(BufferPiece(piece, self._size, used))
                used += -(-piece.size // self._size)
                start += piece.size
        if pieces:
            yield pieces

    def _reduce(self, pieces: Sequence[BufferPiece], slots: Sequence[Any], op: str, divisor: int) -> None:
        rank, mine, reduction = self._rank, slots[self._rank], REDUCTIONS[op]
        for piece in pieces:
            for other, share in enumerate(piece.shares):
                if other != rank:
                    piece.of(mine[other], other)[:] = share
        self._wait_for_all()
        for piece in pieces:
            terms = [piece.shares[r] if r == rank else piece.of(slots[r][rank], rank) for r in range(self._size)]
            result = piece.of(mine[rank], rank)
            reduction(terms[0], terms[1], out=result)
            for term in terms[2:]:
                reduction(result, term, out=result)
        self._wait_for_all()
        for piece in pieces:
            for owner, share in enumerate(piece.shares):
                divide(piece.of(slots[owner][owner], owner), divisor, share)

    def _wait_for_all(self) -> None:
        """Wait for all ranks, and for what they have written.

        Two waits per chunk suffice: the contributions to the next chunk go to slots whose readers have finished, and
        its results are written after its first wait.
        """
        self._window.Sync()
        self._comm.Barrier()
        self._window.Sync()

    def close(self) -> None:
        """Release the memory. Every rank calls this."""
        self._memory, self._slots = [], {}
        self._window.Unlock_all()
        self._window.Free()


def _has_room() -> bool:
    """Return whether shared memory has room for the window: a process that uses more than there is is killed."""
    try:
        found = os.statvfs(SHARED_MEMORY)
    except OSError:  # another system, whose shared memory is elsewhere
        return True
    return found.f_bavail * found.f_frsize >= 2 * ALL_CHUNKS
