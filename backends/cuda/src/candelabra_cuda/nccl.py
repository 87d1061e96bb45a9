"""The engine ``nccl``: collectives of GPUs by NVIDIA's NCCL, through CuPy. Run on one rank only, of an H200.

The engine of the host's memory, MPI, starts the ranks, which agree on NCCL's unique id through it. NCCL's calls go to
the current stream of the device and return at once. Source: NVIDIA's documentation of NCCL 2.27, "Collective
communication functions" and "Point to point communication".
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

from candelabra import Tensor
from candelabra.distributed.engine import (
    Communicator,
    DeviceCommunicator,
    DeviceEngine,
    EngineUnavailable,
    Message,
    hookimpl,
)

ID_BYTES: Final = 128
INSTALL: Final = 'pip install "candelabra[distributed-nccl]"'
KINDS: Final = {
    "uint8": "NCCL_UINT8", "int8": "NCCL_INT8", "int32": "NCCL_INT32", "uint32": "NCCL_UINT32", "int64": "NCCL_INT64",
    "uint64": "NCCL_UINT64", "float16": "NCCL_FLOAT16", "bfloat16": "NCCL_BFLOAT16", "float32": "NCCL_FLOAT32",
    "float64": "NCCL_FLOAT64",
}  # fmt: skip
OPS: Final = {"sum": "NCCL_SUM", "product": "NCCL_PROD", "min": "NCCL_MIN", "max": "NCCL_MAX"}
PARTS: Final = {"complex64": "float32", "complex128": "float64"}
"""A sum of complex numbers is that of twice as many real ones."""


class NCCLCommunicator(DeviceCommunicator):
    """A communicator of NCCL, of which this process has one rank."""

    def __init__(self, nccl: Any, comm: Any, rank: int, size: int) -> None:
        self._nccl, self._comm = nccl, comm
        self.rank, self.size = rank, size

    def _bytes(self, buffer: Tensor) -> tuple[int, int]:
        """Return the number of bytes and NCCL's type of a byte, for calls that only copy."""
        return buffer.numel() * buffer.dtype.itemsize, self._nccl.NCCL_UINT8

    def _reduction(self, buffer: Tensor, dtype: str, op: str) -> tuple[int, int, int] | None:
        """Return count, type and operation of a reduction, or None if NCCL lacks it."""
        parts = 2 if dtype in PARTS and op == "sum" else 1
        kind = KINDS.get(PARTS[dtype] if parts == 2 else dtype)
        if kind is None or op not in OPS:
            return None
        return parts * buffer.numel(), getattr(self._nccl, kind), getattr(self._nccl, OPS[op])

    def broadcast(self, buffer: Tensor, root: int) -> None:
        if buffer.numel():
            address, stream = location(buffer)
            self._comm.broadcast(address, address, *self._bytes(buffer), root, stream)

    def all_reduce(self, buffer: Tensor, dtype: str, op: str) -> None:
        reduction = self._reduction(buffer, dtype, op)
        if reduction is None:
            self.reduce_gathered(buffer, op)
        elif buffer.numel():
            address, stream = location(buffer)
            self._comm.allReduce(address, address, *reduction, stream)

    def reduce(self, buffer: Tensor, dtype: str, op: str, root: int) -> None:
        reduction = self._reduction(buffer, dtype, op)
        if reduction is None:
            super().reduce(buffer, dtype, op, root)
        elif buffer.numel():
            address, stream = location(buffer)
            self._comm.reduce(address, address, *reduction, root, stream)

    def all_gather(self, send: Tensor, receive: Tensor) -> None:
        if send.numel():
            address, stream = location(send)
            self._comm.allGather(address, location(receive)[0], *self._bytes(send), stream)

    def reduce_scatter(self, send: Tensor, receive: Tensor, dtype: str, op: str) -> None:
        reduction = self._reduction(receive, dtype, op)
        if reduction is None:
            super().reduce_scatter(send, receive, dtype, op)
        elif receive.numel():
            address, stream = location(send)
            self._comm.reduceScatter(address, location(receive)[0], *reduction, stream)

    def exchange(self, messages: Sequence[Message]) -> None:
        self._nccl.groupStart()
        try:
            for message in messages:
                if message.buffer.numel():
                    address, stream = location(message.buffer)
                    call = self._comm.send if message.sends else self._comm.recv
                    call(address, *self._bytes(message.buffer), message.rank, stream)
        finally:
            self._nccl.groupEnd()

    def close(self) -> None:
        self._comm.destroy()


def location(buffer: Tensor) -> tuple[int, int]:
    """Return the address of a flat tensor, and that of the current stream of its device, which becomes current."""
    payload: Any = buffer._payload
    return int(payload.buffer) + payload.offset * payload.dtype.itemsize, payload.engine.enter()


class NCCLEngine(DeviceEngine):
    """NCCL. ``nccl`` is CuPy's module; tests pass a double."""

    name = "nccl"
    device_types = ("cuda",)

    def __init__(self, nccl: Any, cupy: Any) -> None:
        self._nccl, self._cupy = nccl, cupy

    def connect(self, communicator: Communicator, device: str) -> DeviceCommunicator:
        unique = bytearray(self._nccl.get_unique_id() if communicator.rank == 0 else ID_BYTES)
        communicator.broadcast(memoryview(unique), 0)
        with self._cupy.cuda.Device(int(device.partition(":")[2] or 0)):
            comm = self._nccl.NcclCommunicator(communicator.size, bytes(unique), communicator.rank)
        return NCCLCommunicator(self._nccl, comm, communicator.rank, communicator.size)


@hookimpl
def candelabra_engine() -> DeviceEngine:
    """Return the engine. Raise ``EngineUnavailable`` with the extra to install if CuPy or NCCL is missing."""
    try:
        import cupy

        with warnings.catch_warnings():  # CuPy's advice names its own packages
            warnings.simplefilter("ignore")
            from cupy.cuda import nccl
    except ImportError as error:
        raise EngineUnavailable(f"the engine 'nccl' needs CuPy ({error}): {INSTALL}") from error
    if not nccl.available:
        raise EngineUnavailable(f"the engine 'nccl' needs NCCL, whose library CuPy has not found: {INSTALL}")
    return NCCLEngine(nccl, cupy)
