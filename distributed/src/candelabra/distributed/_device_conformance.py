"""The conformance level of engines of devices: the checks of the host's engines, on memory of a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import candelabra as cd
import numpy as np
from candelabra import Tensor
from candelabra.distributed import conformance
from candelabra.distributed._buffers import host_device
from candelabra.distributed._memory import Queue
from candelabra.distributed.engine import Communicator, DeviceCommunicator, Message, Request

SHARED: Final = (
    "all_reduce", "same_bits", "averages", "reduce_to_one", "reduce_scatter", "broadcast", "gathers", "all_to_all",
)  # fmt: skip
"""The checks of :mod:`candelabra.distributed.conformance` that devices share."""


class Copied(Communicator):
    """A device's end with the interface of the host's: it copies buffers to the device, calls, and copies back."""

    def __init__(self, end: DeviceCommunicator, device: str) -> None:
        self.end, self.device = end, cd.device(device)
        self.rank, self.size = end.rank, end.size
        self._queue = Queue(self.device)

    def submit(self, task: Callable[[], Any]) -> None:
        """Make calls as candelabra.distributed does: on a stream that waits for the current one, which then waits."""
        event = self._queue.run(self._queue.mark(), task)
        if event is not None:
            event.wait()

    def _uploaded(self, memory: memoryview, dtype: str = "uint8") -> Tensor:
        return cd.from_numpy(np.frombuffer(bytearray(memory), dtype)).to(self.device)

    def _call(self, task: Callable[[], Any], *written: tuple[memoryview, Tensor]) -> None:
        self.submit(task)
        for memory, tensor in written:
            memory[:] = tensor.to(host_device()).numpy().tobytes()

    def broadcast(self, buffer: memoryview, root: int) -> None:
        x = self._uploaded(buffer)
        self._call(lambda: self.end.broadcast(x, root), (buffer, x))

    def all_reduce(self, buffer: memoryview, dtype: str, op: str) -> None:
        x = self._uploaded(buffer, dtype)
        self._call(lambda: self.end.all_reduce(x, dtype, op), (buffer, x))

    def average(self, buffers: Sequence[memoryview], dtype: str) -> None:
        tensors = [self._uploaded(buffer, dtype) for buffer in buffers]
        self._call(lambda: self.end.average(tensors, dtype), *zip(buffers, tensors, strict=True))

    def reduce(self, buffer: memoryview, dtype: str, op: str, root: int) -> None:
        x = self._uploaded(buffer, dtype)
        self._call(lambda: self.end.reduce(x, dtype, op, root), (buffer, x))

    def reduce_scatter(self, send: memoryview, receive: memoryview, dtype: str, op: str) -> None:
        x, y = self._uploaded(send, dtype), self._uploaded(receive, dtype)
        self._call(lambda: self.end.reduce_scatter(x, y, dtype, op), (receive, y))

    def all_gather(self, send: memoryview, receive: memoryview) -> None:
        x, y = self._uploaded(send), self._uploaded(receive)
        self._call(lambda: self.end.all_gather(x, y), (receive, y))

    def gather(self, send: memoryview, receive: memoryview | None, root: int) -> None:
        x, y = self._uploaded(send), None if receive is None else self._uploaded(receive)
        written = [] if receive is None or y is None else [(receive, y)]
        self._call(lambda: self.end.gather(x, y, root), *written)

    def scatter(self, send: memoryview | None, receive: memoryview, root: int) -> None:
        x, y = None if send is None else self._uploaded(send), self._uploaded(receive)
        self._call(lambda: self.end.scatter(x, y, root), (receive, y))

    def all_to_all(
        self, send: memoryview, receive: memoryview, send_counts: Sequence[int], receive_counts: Sequence[int]
    ) -> None:
        x, y = self._uploaded(send), self._uploaded(receive)
        self._call(lambda: self.end.all_to_all(x, y, send_counts, receive_counts), (receive, y))

    def subset(self, ranks: Sequence[int]) -> Communicator | None:
        raise NotImplementedError("groups of a device are those of the host's engine")

    def send(self, buffer: memoryview, destination: int, tag: int) -> Request:
        raise NotImplementedError("messages of a device are exchanged")

    def receive(self, buffer: memoryview, source: int | None, tag: int) -> Request:
        raise NotImplementedError("messages of a device are exchanged")

    def abort(self, reason: str) -> None:
        raise NotImplementedError("the host's engine ends the ranks")


def exchanges(c: Copied) -> conformance.Comparisons:
    """Every rank sends to every one, itself included, twice, and more than fits into buffers of a network."""
    counts = (5, 300_000)
    sent = [cd.full((n,), float(10 * c.rank + i), device=c.device) for i, n in enumerate(counts)]
    got = [[cd.zeros(n, device=c.device) for n in counts] for _ in range(c.size)]
    messages = [Message(True, x, rank) for rank in range(c.size) for x in sent]
    messages += [Message(False, x, rank) for rank, row in enumerate(got) for x in row]
    c.submit(lambda: c.end.exchange(messages))
    for rank, row in enumerate(got):
        for i, x in enumerate(row):
            found = x.to(host_device()).numpy()
            yield found, np.full_like(found, 10 * rank + i), f"message {i} of rank {rank}"


def halves(c: Copied) -> conformance.Comparisons:
    """Half types are reduced on the device; these sums are exact in any order."""
    for dtype in (cd.float16, cd.bfloat16):
        x = cd.arange(7, device=c.device).to(dtype) + c.rank
        c.submit(lambda x=x, dtype=dtype: c.end.all_reduce(x, dtype.name, "sum"))  # type: ignore[misc]
        found = x.float().to(host_device()).numpy()
        expected = np.arange(7, dtype="float32") * c.size + sum(range(c.size))
        yield found, expected, f"sum of {dtype.name}"


def order(c: Copied) -> conformance.Comparisons:
    """A call comes after the work that has been submitted before it, and before that which waits for it."""
    x = cd.ones(10_000, device=c.device)
    for _ in range(5):
        x = x * 2
        c.submit(lambda x=x: c.end.all_reduce(x, "float32", "max"))  # type: ignore[misc]
        x = x + 1
    found = x.to(host_device()).numpy()
    yield found, np.full_like(found, 63), "work before and after calls"


def _shared(name: str) -> Callable[[Copied], conformance.Comparisons]:
    def check(c: Copied) -> Iterator[Any]:
        yield from conformance.CHECKS[name](c)

    return check


CHECKS: Final[dict[str, Callable[[Copied], conformance.Comparisons]]] = {
    **{name: _shared(name) for name in SHARED},
    **{check.__name__: check for check in (exchanges, halves, order)},
}
"""The checks by name. Each is called on every rank."""
