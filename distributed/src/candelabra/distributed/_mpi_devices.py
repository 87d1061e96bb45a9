"""Memory of devices for an MPI that takes it as it is (CUDA-aware MPI), which mpi4py finds through DLPack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributed.engine import DeviceCommunicator, Message
from candelabra.library import open_device
from mpi4py import MPI


class MPIDeviceCommunicator(DeviceCommunicator):
    """A communicator of MPI for the memory of one device.

    MPI knows no streams, so each call first waits on the host until the buffers are complete. Half types, for which MPI
    has no reductions, are added up in float32.
    """

    def __init__(self, comm: Any, device: str, dtypes: dict[str, Any], ops: dict[str, Any]) -> None:
        self._comm, self._dtypes, self._ops = comm, dtypes, ops
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._instance = open_device(device)

    def _bytes(self, *buffers: Tensor) -> list[Any]:
        """Return complete buffers as bytes, as mpi4py takes them."""
        self._instance.backend.synchronize(self._instance.index)
        return [[buffer.view(cd.uint8), MPI.BYTE] for buffer in buffers]

    def broadcast(self, buffer: Tensor, root: int) -> None:
        (own,) = self._bytes(buffer)
        self._comm.Bcast(own, root)

    def all_reduce(self, buffer: Tensor, dtype: str, op: str) -> None:
        wide = buffer.float() if buffer.dtype.is_half else buffer
        self._instance.backend.synchronize(self._instance.index)
        self._comm.Allreduce(MPI.IN_PLACE, [wide, self._dtypes[wide.dtype.name]], self._ops[op])
        if wide is not buffer:
            buffer.copy_(wide)

    def all_gather(self, send: Tensor, receive: Tensor) -> None:
        sent, received = self._bytes(send, receive)
        self._comm.Allgather(sent, received)

    def exchange(self, messages: Sequence[Message]) -> None:
        buffers = self._bytes(*[message.buffer for message in messages])
        requests = [
            (self._comm.Isend if message.sends else self._comm.Irecv)(buffer, message.rank)
            for message, buffer in zip(messages, buffers, strict=True)
        ]
        MPI.Request.Waitall(requests)

    def close(self) -> None:
        self._comm.Free()
