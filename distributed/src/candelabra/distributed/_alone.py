"""The communicator of one rank: every collective is a copy, and messages have no receiver."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra.distributed.engine import Communicator, Request


class AloneCommunicator(Communicator):
    """The only rank of its group."""

    rank, size = 0, 1

    def subset(self, ranks: Sequence[int]) -> Communicator | None:
        return AloneCommunicator() if list(ranks) == [0] else None

    def broadcast(self, buffer: memoryview, root: int) -> None:
        return None

    def all_reduce(self, buffer: memoryview, dtype: str, op: str) -> None:
        return None

    def all_gather(self, send: memoryview, receive: memoryview) -> None:
        receive[:] = send

    def all_to_all(
        self, send: memoryview, receive: memoryview, send_counts: Sequence[int], receive_counts: Sequence[int]
    ) -> None:
        receive[:] = send

    def send(self, buffer: memoryview, destination: int, tag: int) -> Request:
        raise ValueError("a group of one rank has no other rank for a message")

    def receive(self, buffer: memoryview, source: int | None, tag: int) -> Request:
        raise ValueError("a group of one rank has no other rank for a message")

    def abort(self, reason: str) -> None:
        return None
