"""The engine ``mpi``: MPI through mpi4py, on as many machines as ``mpiexec`` starts."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Sequence
from datetime import timedelta
from multiprocessing.util import Finalize  # runs in forked and spawned processes too
from typing import Any, Final

import mpi4py
import numpy as np
from candelabra.distributed import _rendezvous
from candelabra.distributed._failures import announce, end_all, install_hook
from candelabra.distributed._state import ranks
from candelabra.distributed.engine import (
    API_VERSION,
    Communicator,
    DeviceCommunicator,
    DeviceEngine,
    Engine,
    EngineUnavailable,
    Request,
    divide,
    hookimpl,
)

mpi4py.rc.initialize = False  # start() does it: a process that mpiexec has not started must find the others first
mpi4py.rc.finalize = True

from mpi4py import MPI  # noqa: E402 - reads rc

_DTYPES: Final[dict[str, Any]] = {
    "uint8": MPI.UINT8_T, "int8": MPI.INT8_T, "int16": MPI.INT16_T, "int32": MPI.INT32_T, "int64": MPI.INT64_T,
    "uint16": MPI.UINT16_T, "uint32": MPI.UINT32_T, "uint64": MPI.UINT64_T, "float32": MPI.FLOAT,
    "float64": MPI.DOUBLE, "complex64": MPI.C_FLOAT_COMPLEX, "complex128": MPI.C_DOUBLE_COMPLEX,
}  # fmt: skip
_OPS: Final[dict[str, Any]] = {
    "sum": MPI.SUM, "product": MPI.PROD, "min": MPI.MIN, "max": MPI.MAX, "band": MPI.BAND, "bor": MPI.BOR,
    "bxor": MPI.BXOR,
}  # fmt: skip

_NAMED: Final = "debug mode (CANDELABRA_DISTRIBUTED_DEBUG=DETAIL) says which rank has called what, and where"

LAST_WAIT: Final = 10.0
"""Seconds for which a process that ends with open groups waits for the others."""


class MPIRequest(Request):
    """A request of MPI. ``expected``: the bytes that a receive has room for."""

    def __init__(self, request: Any, expected: int | None = None) -> None:
        self._request, self._expected = request, expected
        self._status = MPI.Status()

    def test(self) -> bool:
        try:
            done = bool(self._request.Test(self._status))
        except MPI.Exception as error:
            if error.Get_error_class() == MPI.ERR_TRUNCATE:
                raise ValueError(f"a rank has sent more bytes than the buffer has, {self._expected}") from error
            raise
        if done and self._expected not in (None, self._status.Get_count(MPI.BYTE)):
            raise ValueError(
                f"rank {self.source()} has sent {self._status.Get_count(MPI.BYTE)} bytes, but the buffer has "
                f"{self._expected}"
            )
        return done

    def source(self) -> int:
        return int(self._status.Get_source())


def _displacements(counts: Sequence[int]) -> list[int]:
    found, total = [], 0
    for count in counts:
        found.append(total)
        total += count
    return found


class MPICommunicator(Communicator):
    """A communicator of MPI.

    MPI does not define what happens if the ranks' calls differ: some end the process, others give wrong results. So
    the ranks first compare their calls and sizes, by a reduction of 32 bytes.
    """

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.rank = comm.Get_rank()
        self.size = comm.Get_size()
        self._call = np.zeros(4, "int64")
        self._window: Any = None
        """The window of ranks of one machine, once a large buffer has been reduced; False if there is none."""

    def _agree(self, call: str, size: int = 0) -> None:
        """Raise ValueError on every rank if the ranks make different calls, or with buffers of different sizes."""
        if self.size == 1:
            return
        code = zlib.crc32(call.encode())
        self._call[:] = code, -code, size, -size
        self._comm.Allreduce(MPI.IN_PLACE, self._call, MPI.MAX)
        last, first, largest, smallest = self._call.tolist()
        if last != -first:
            raise ValueError(
                f"this rank calls {call}, another one calls another collective, or the same in another dtype, with "
                f"another operation or root; {_NAMED}"
            )
        if largest != -smallest:
            raise ValueError(f"the ranks have buffers of different sizes, {-smallest} to {largest} bytes; {_NAMED}")

    def subset(self, ranks: Sequence[int]) -> Communicator | None:
        self._agree(f"subset {list(ranks)}")
        inside = self.rank in ranks
        comm = self._comm.Split(0 if inside else MPI.UNDEFINED, ranks.index(self.rank) if inside else 0)
        return MPICommunicator(comm) if inside else None

    def barrier(self) -> None:
        self._agree("barrier")
        self._comm.Barrier()

    def broadcast(self, buffer: memoryview, root: int) -> None:
        self._agree(f"broadcast from {root}", len(buffer))
        self._comm.Bcast([buffer, MPI.BYTE], root)

    def all_reduce(self, buffer: memoryview, dtype: str, op: str) -> None:
        self._agree(f"all_reduce {dtype} {op}", len(buffer))
        window = self._shared(len(buffer))
        if window:
            window.all_reduce([buffer], dtype, op)
        else:
            self._comm.Allreduce(MPI.IN_PLACE, [buffer, _DTYPES[dtype]], _OPS[op])

    def average(self, buffers: Sequence[memoryview], dtype: str) -> None:
        size = sum(map(len, buffers))
        self._agree(f"average {dtype} of {list(map(len, buffers))} bytes", size)
        window = self._shared(size)
        if window:
            window.all_reduce(buffers, dtype, "sum", self.size)
            return
        for buffer in buffers:
            self._comm.Allreduce(MPI.IN_PLACE, [buffer, _DTYPES[dtype]], MPI.SUM)
            array = np.frombuffer(buffer, dtype)
            divide(array, self.size, array)

    def _shared(self, size: int) -> Any:
        """Return the window for a buffer of a size, or a false value if MPI's all-reduce is to be used."""
        from candelabra.distributed._mpi_windows import SMALLEST, SharedWindow

        if size < SMALLEST or self.size == 1:
            return None
        if self._window is None:
            self._window = SharedWindow.of(self._comm) or False
        return self._window

    def reduce(self, buffer: memoryview, dtype: str, op: str, root: int) -> None:
        self._agree(f"reduce {dtype} {op} to {root}", len(buffer))
        at_root = self.rank == root
        sent = MPI.IN_PLACE if at_root else [buffer, _DTYPES[dtype]]
        self._comm.Reduce(sent, [buffer, _DTYPES[dtype]] if at_root else None, _OPS[op], root)

    def all_gather(self, send: memoryview, receive: memoryview) -> None:
        self._agree("all_gather", len(send))
        self._comm.Allgather([send, MPI.BYTE], [receive, MPI.BYTE])

    def gather(self, send: memoryview, receive: memoryview | None, root: int) -> None:
        self._agree(f"gather to {root}", len(send))
        self._comm.Gather([send, MPI.BYTE], None if receive is None else [receive, MPI.BYTE], root)

    def scatter(self, send: memoryview | None, receive: memoryview, root: int) -> None:
        self._agree(f"scatter from {root}", len(receive))
        self._comm.Scatter(None if send is None else [send, MPI.BYTE], [receive, MPI.BYTE], root)

    def reduce_scatter(self, send: memoryview, receive: memoryview, dtype: str, op: str) -> None:
        self._agree(f"reduce_scatter {dtype} {op}", len(receive))
        kind = _DTYPES[dtype]
        self._comm.Reduce_scatter_block([send, kind], [receive, kind], _OPS[op])

    def all_to_all(
        self, send: memoryview, receive: memoryview, send_counts: Sequence[int], receive_counts: Sequence[int]
    ) -> None:
        self._agree("all_to_all")
        self._check_counts(send_counts, receive_counts)
        self._comm.Alltoallv(
            [send, (list(send_counts), _displacements(send_counts)), MPI.BYTE],
            [receive, (list(receive_counts), _displacements(receive_counts)), MPI.BYTE],
        )

    def _check_counts(self, send_counts: Sequence[int], receive_counts: Sequence[int]) -> None:
        """Raise ValueError on every rank if one expects another number of bytes than it is sent."""
        sent = np.empty(self.size, "int64")
        self._comm.Alltoall(np.array(send_counts, "int64"), sent)
        wrong = [r for r, count in enumerate(receive_counts) if count != sent[r]]
        if self._comm.allreduce(len(wrong)):
            raise ValueError(
                f"rank {wrong[0]} has sent {sent[wrong[0]]} bytes, but {receive_counts[wrong[0]]} were expected from it"
                if wrong
                else "another rank has expected another number of bytes than it was sent"
            )

    def send(self, buffer: memoryview, destination: int, tag: int) -> Request:
        return MPIRequest(self._comm.Isend([buffer, MPI.BYTE], destination, tag))

    def receive(self, buffer: memoryview, source: int | None, tag: int) -> Request:
        request = self._comm.Irecv([buffer, MPI.BYTE], MPI.ANY_SOURCE if source is None else source, tag)
        return MPIRequest(request, len(buffer))

    def abort(self, reason: str) -> None:
        announce(MPI.COMM_WORLD.Get_rank(), f"because of {reason}")
        end_all(self._comm.Abort, 1)

    def close(self) -> None:
        if self._window:
            self._window.close()
        self._comm.Free()


class MPIEngine(Engine, DeviceEngine):
    """MPI, whose ``mpiexec`` (or ``candelabra run``) has started the ranks.

    It serves the host's memory, and that of devices for which a program names it: MPI does not tell which it can read.
    """

    name = "mpi"
    api = API_VERSION

    def connect(self, communicator: Communicator, device: str) -> DeviceCommunicator:
        from candelabra.distributed._mpi_devices import MPIDeviceCommunicator

        assert isinstance(communicator, MPICommunicator)
        made: DeviceCommunicator = MPIDeviceCommunicator(communicator._comm.Dup(), device, _DTYPES, _OPS)
        return made

    def start(self, rank: int, world_size: int, timeout: timedelta) -> Communicator:
        joined = self._initialize(rank, world_size, timeout)
        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            raise EngineUnavailable(
                "this MPI library does not support calls from several threads (MPI_THREAD_MULTIPLE)"
            )
        world = MPI.COMM_WORLD
        for name, given, known in (
            ("rank", rank, world.Get_rank()),
            ("world_size", world_size, world.Get_size()),
            ("RANK", int(os.environ.get("RANK", -1)), world.Get_rank()),
            ("WORLD_SIZE", int(os.environ.get("WORLD_SIZE", -1)), world.Get_size()),
        ):
            if given not in (-1, known):
                raise ValueError(
                    f"init_process_group: {name} is {given}, but MPI has started rank {world.Get_rank()} of "
                    f"{world.Get_size()}; start the program by `candelabra run -n {max(world_size, 2)} …` or mpiexec"
                )
        comm = world.Dup()
        comm.Set_errhandler(MPI.ERRORS_RETURN)  # mpi4py then raises; its subsets inherit this
        install_hook(world.Get_rank(), lambda code: comm.Abort(code))
        if joined:
            end = world.Dup()
            Finalize(None, lambda: _end(end), exitpriority=0)
        return MPICommunicator(comm)

    def _initialize(self, rank: int, world_size: int, timeout: timedelta) -> bool:
        """Start MPI, and return whether this process had to find the other ranks by itself."""
        if MPI.Is_initialized():
            return False
        number, size = (
            int(os.environ.get(name, -1)) if given == -1 else given
            for name, given in (("RANK", rank), ("WORLD_SIZE", world_size))
        )
        joins = size > 1 and not _rendezvous.managed(os.environ)
        if joins:
            if not 0 <= number < size:
                raise ValueError(f"init_process_group: rank must be from 0 to {size - 1}, got {number}")
            _rendezvous.join(number, size, timeout.total_seconds())
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
        return joins


def _end(comm: Any) -> None:
    """Shut MPI down at the end of a process that has joined by itself.

    With groups that are open, the process may end because of an error, which only its parent knows. Then the others are
    waited for, since they may be about to end too; after that, the delegate ends them.
    """
    if ranks().default is not None:
        request, end = comm.Ibarrier(), time.monotonic() + LAST_WAIT
        while not request.Test():
            if time.monotonic() > end:
                return
            time.sleep(0.01)
    MPI.Finalize()
    _rendezvous.leave()


@hookimpl
def candelabra_engine() -> Engine:
    """Return the engine."""
    return MPIEngine()
