"""The contract of an engine, which moves bytes between ranks for ``candelabra.distributed``.

An engine is registered in the entry point group ``candelabra.engines``. The entry's name is what programs pass to
``init_process_group``, and its value is an object (module or instance) with the hook ``candelabra_engine() -> Engine``.
It is imported when a program names it.

All calls block: ``candelabra.distributed`` makes them on a thread of its own per group, one after another, in the same
order on every rank. Calls on different communicators, and the point-to-point calls, come from other threads at the same
time. Buffers are flat memoryviews of bytes in the host's memory, in native byte order; those that are written are
writable. A reduction is called with ``dtype``, one of :data:`DTYPES`, and ``op``, one of :data:`REDUCTIONS`: bools come
as uint8, half types as float32. Logical and bitwise reductions come with integers only, and only sums and products with
complex numbers. Means are calls of ``average``, or sums that are divided afterwards.

A call that cannot be completed raises an exception of any type. ``candelabra.distributed`` adds the rank, the
collective and the user's line.

A :class:`DeviceEngine` takes the memory of devices as it is. It is used with an :class:`Engine`, which has started
the ranks and serves the host's memory. Without one, tensors of devices are copied to the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pluggy

if TYPE_CHECKING:
    from candelabra import Tensor

API_VERSION: Final = (1, 2)
"""The version of this contract. A new major version breaks engines, a new minor version only adds to the contract. 1.1
added engines of devices, 1.2 means (``average``)."""

DTYPES: Final = (
    "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
"""The dtypes of reductions, by NumPy's names."""
REDUCTIONS: Final[dict[str, Callable[..., np.ndarray]]] = {
    "sum": np.add,
    "product": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}
"""The reductions, and their definitions. Sums and products of integers wrap around."""


def divide(array: np.ndarray, number: int, out: np.ndarray) -> None:
    """Write the elements of an array, divided by a number of ranks, to ``out``, which may be the array."""
    if number == 1:
        np.copyto(out, array)
    elif number & (number - 1):
        np.divide(array, number, out=out)
    else:  # the reciprocal of a power of two is exact, and products take half the time
        np.multiply(array, array.dtype.type(1 / number), out=out)


hookspec = pluggy.HookspecMarker("candelabra.distributed")
hookimpl = pluggy.HookimplMarker("candelabra.distributed")


class EngineUnavailable(RuntimeError):
    """The engine cannot work here, for example because a library is missing. The text contains the reason."""


class Request(ABC):
    """One nonblocking point-to-point operation. Its thread alone calls the methods."""

    @abstractmethod
    def test(self) -> bool:
        """Return whether the operation has completed. Raise its error."""

    @abstractmethod
    def source(self) -> int:
        """Return the rank that a completed receive has received from."""


class Communicator(ABC):
    """One rank's end of a group of ranks. Ranks below are those of the group, from 0."""

    rank: int
    size: int

    # -- required -----------------------------------------------------------------------------------------------------
    @abstractmethod
    def subset(self, ranks: Sequence[int]) -> Communicator | None:
        """Return a communicator of some ranks, in this order, or None if this rank is not one of them.

        Every rank of this communicator calls it with the same ranks.
        """

    @abstractmethod
    def broadcast(self, buffer: memoryview, root: int) -> None:
        """Copy the root's buffer to all others."""

    @abstractmethod
    def all_reduce(self, buffer: memoryview, dtype: str, op: str) -> None:
        """Replace every rank's buffer by the reduction of all, which has the same bits on every rank."""

    @abstractmethod
    def all_gather(self, send: memoryview, receive: memoryview) -> None:
        """Write every rank's buffer into ``receive``, in the order of ranks. All have the same size."""

    @abstractmethod
    def all_to_all(
        self, send: memoryview, receive: memoryview, send_counts: Sequence[int], receive_counts: Sequence[int]
    ) -> None:
        """Send ``send_counts[i]`` bytes to rank ``i``, and receive ``receive_counts[i]`` bytes from it."""

    @abstractmethod
    def send(self, buffer: memoryview, destination: int, tag: int) -> Request:
        """Begin to send a buffer, which stays unchanged until the request has completed."""

    @abstractmethod
    def receive(self, buffer: memoryview, source: int | None, tag: int) -> Request:
        """Begin to receive into a buffer from a rank, or with None from any."""

    @abstractmethod
    def abort(self, reason: str) -> None:
        """End all ranks of the job, also those that wait for this one. May return."""

    # -- optional -----------------------------------------------------------------------------------------------------
    def average(self, buffers: Sequence[memoryview], dtype: str) -> None:
        """Replace each of every rank's buffers by the mean of all, which has the same bits on every rank."""
        for buffer in buffers:
            self.all_reduce(buffer, dtype, "sum")
            array = np.frombuffer(buffer, dtype)
            divide(array, self.size, array)

    def barrier(self) -> None:
        """Return once every rank has called this."""
        self.all_reduce(memoryview(bytearray(1)), "uint8", "max")

    def reduce(self, buffer: memoryview, dtype: str, op: str, root: int) -> None:
        """Replace the root's buffer by the reduction of all. The others' buffers stay as they are."""
        reduced = buffer if self.rank == root else memoryview(bytearray(buffer))
        self.all_reduce(reduced, dtype, op)

    def gather(self, send: memoryview, receive: memoryview | None, root: int) -> None:
        """Write every rank's buffer into the root's ``receive``, None on the others. All have the same size."""
        received = memoryview(bytearray(len(send) * self.size)) if receive is None else receive
        self.all_gather(send, received)

    def scatter(self, send: memoryview | None, receive: memoryview, root: int) -> None:
        """Divide the root's ``send``, which is None on the others, among the ranks. All parts have the same size."""
        count = len(receive)
        sent = memoryview(b"") if send is None else send
        sends = [count if self.rank == root else 0] * self.size
        self.all_to_all(sent, receive, sends, [count if rank == root else 0 for rank in range(self.size)])

    def reduce_scatter(self, send: memoryview, receive: memoryview, dtype: str, op: str) -> None:
        """Reduce ``send`` over the ranks, and write this rank's part, all of one size, into ``receive``."""
        whole = memoryview(bytearray(send))
        self.all_reduce(whole, dtype, op)
        count = len(receive)
        receive[:] = whole[self.rank * count : (self.rank + 1) * count]

    def close(self) -> None:
        """Release what the communicator holds. Every rank of it calls this."""


class Engine(ABC):
    """A way to move bytes between ranks."""

    name: str
    """What ``init_process_group`` names. It must be equal to the name of the entry point."""
    api: tuple[int, int] = API_VERSION
    """The :data:`API_VERSION` that the engine was built for."""

    @abstractmethod
    def start(self, rank: int, world_size: int, timeout: timedelta) -> Communicator:
        """Return this process's end of the group of all ranks.

        ``rank`` and ``world_size`` are -1 if the program does not give them. Raise ``ValueError`` if they differ from
        what the engine knows, and :class:`EngineUnavailable` if the engine cannot start.
        """


# -- the memory of devices ---------------------------------------------------------------------------------------------
class Message(NamedTuple):
    """A send or a receive of a device's memory."""

    sends: bool
    buffer: Tensor
    rank: int


class DeviceCommunicator(ABC):
    """One rank's end of a group for the memory of one device.

    Buffers are flat, contiguous tensors of the device without history; those of one call have one dtype, and counts are
    numbers of elements. A call submits its work to the device's current stream and may return before that is complete.
    ``candelabra.distributed`` calls on the group's thread, in the same order on every rank, with a stream of its own,
    which waits for the work that has produced the buffers.

    Reductions are called with the dtypes of :data:`DTYPES`, and with float16 and bfloat16, which devices add up
    themselves.
    """

    rank: int
    size: int

    # -- required -----------------------------------------------------------------------------------------------------
    @abstractmethod
    def broadcast(self, buffer: Tensor, root: int) -> None:
        """Copy the root's buffer to all others."""

    @abstractmethod
    def all_reduce(self, buffer: Tensor, dtype: str, op: str) -> None:
        """Replace every rank's buffer by the reduction of all, which has the same bits on every rank."""

    @abstractmethod
    def all_gather(self, send: Tensor, receive: Tensor) -> None:
        """Write every rank's buffer into ``receive``, in the order of ranks. All have the same size."""

    @abstractmethod
    def exchange(self, messages: Sequence[Message]) -> None:
        """Send and receive at once: no message waits for another one of the call. A rank may send to itself.

        Messages between two ranks arrive in their order.
        """

    # -- optional -----------------------------------------------------------------------------------------------------
    def average(self, buffers: Sequence[Tensor], dtype: str) -> None:
        """Replace each of every rank's buffers by the mean of all, which has the same bits on every rank."""
        for buffer in buffers:
            self.all_reduce(buffer, dtype, "sum")
            buffer.div_(self.size)

    def reduce(self, buffer: Tensor, dtype: str, op: str, root: int) -> None:
        """Replace the root's buffer by the reduction of all. The others' buffers stay as they are."""
        self.all_reduce(buffer if self.rank == root else buffer.clone(), dtype, op)

    def reduce_scatter(self, send: Tensor, receive: Tensor, dtype: str, op: str) -> None:
        """Reduce ``send`` over the ranks, and write this rank's part, all of one size, into ``receive``."""
        whole, count = send.clone(), receive.numel()
        self.all_reduce(whole, dtype, op)
        receive.copy_(whole[self.rank * count : (self.rank + 1) * count])

    def gather(self, send: Tensor, receive: Tensor | None, root: int) -> None:
        """Write every rank's buffer into the root's ``receive``, None on the others. All have the same size."""
        messages = [Message(True, send, root)]
        if receive is not None:
            messages += [Message(False, part, rank) for rank, part in enumerate(self._split(receive))]
        self.exchange(messages)

    def scatter(self, send: Tensor | None, receive: Tensor, root: int) -> None:
        """Divide the root's ``send``, which is None on the others, among the ranks. All parts have the same size."""
        parts = [] if send is None else self._split(send)
        sent = [Message(True, part, rank) for rank, part in enumerate(parts)]
        self.exchange([*sent, Message(False, receive, root)])

    def all_to_all(
        self, send: Tensor, receive: Tensor, send_counts: Sequence[int], receive_counts: Sequence[int]
    ) -> None:
        """Send ``send_counts[i]`` elements to rank ``i``, and receive ``receive_counts[i]`` elements from it."""
        sent = [Message(True, part, rank) for rank, part in enumerate(send.split(list(send_counts)))]
        received = [Message(False, part, rank) for rank, part in enumerate(receive.split(list(receive_counts)))]
        self.exchange([each for each in (*sent, *received) if each.buffer.numel()])

    def _split(self, buffer: Tensor) -> list[Tensor]:
        """Return one equal piece of a buffer for each rank."""
        return list(buffer.split([buffer.numel() // self.size] * self.size))

    def reduce_gathered(self, buffer: Tensor, op: str) -> None:
        """Do what :meth:`all_reduce` does, for a reduction that the library lacks: gather all, and reduce here."""
        import candelabra as cd

        operators = {
            "sum": cd.add, "product": cd.mul, "min": cd.minimum, "max": cd.maximum, "band": cd.bitwise_and,
            "bor": cd.bitwise_or, "bxor": cd.bitwise_xor,
        }  # fmt: skip
        rows = buffer.new_empty((self.size, buffer.numel()))
        self.all_gather(buffer, rows.view(-1))
        buffer.copy_(reduce(operators[op], rows.unbind(0)))

    def close(self) -> None:
        """Release what the communicator holds, when its work is complete. Every rank of it calls this."""


class DeviceEngine(ABC):
    """A way to move the memory of devices between ranks that another engine has started."""

    name: str
    """What ``init_process_group`` names. It must be equal to the name of the entry point."""
    api: tuple[int, int] = API_VERSION
    """The :data:`API_VERSION` that the engine was built for."""
    device_types: tuple[str, ...] = ()
    """The device types that the engine serves if a program names it alone. ``"TYPE:NAME"`` names it for another one."""

    @abstractmethod
    def connect(self, communicator: Communicator, device: str) -> DeviceCommunicator:
        """Return this rank's end of a group for a device, ``"type:index"``.

        ``communicator`` is the group's in the host's memory, by which the ranks agree. Every rank calls this on the
        group's thread, before the group's first call on memory of the device type.
        """


class Hooks:
    """The hook that an engine's object implements."""

    @hookspec(firstresult=True)
    def candelabra_engine(self) -> Engine | DeviceEngine:  # type: ignore[empty-body]
        """Return the engine. Raise :class:`EngineUnavailable` with the reason if it cannot work here."""


__all__ = [
    "API_VERSION", "Communicator", "DTYPES", "DeviceCommunicator", "DeviceEngine", "Engine", "EngineUnavailable",
    "Hooks", "Message", "REDUCTIONS", "Request", "divide", "hookimpl", "hookspec",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
