"""Tensors from one stage to a neighbor: a header with dtypes and shapes, then each tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import candelabra as cd
from candelabra import Tensor
from candelabra import distributed as dist
from candelabra.dtypes import ALL

HEADER: Final = 64
"""The length of a header in integers."""


class StageLink:
    """The messages between this stage and one other. Sends do not wait."""

    def __init__(self, peer: int, group: Any, device: Any) -> None:
        self._peer, self._group, self._device = peer, group, device
        self._sent: list[tuple[Any, Tensor]] = []

    def send(self, tensors: Sequence[Tensor | None]) -> None:
        """Begin to send tensors; None for one that does not exist."""
        numbers = [len(tensors)]
        for tensor in tensors:
            described = [] if tensor is None else [tensor.dim(), tensor.dtype.order, *tensor.shape]
            numbers += described or [-1]
        if len(numbers) > HEADER:
            raise ValueError(f"a stage cannot send {len(tensors)} tensors of {numbers[1::2]} dims in one message")
        self._isend(cd.tensor(numbers + [0] * (HEADER - len(numbers))))
        for tensor in tensors:
            if tensor is not None:
                self._isend(tensor.detach().contiguous())

    def _isend(self, tensor: Tensor) -> None:
        self._sent.append((dist.isend(tensor, group=self._group, group_dst=self._peer), tensor))

    def receive(self) -> list[Tensor | None]:
        """Return the tensors of one message."""
        header = cd.empty(HEADER, dtype=cd.int64)
        dist.recv(header, group=self._group, group_src=self._peer)
        numbers = iter(header.tolist())
        found: list[Tensor | None] = []
        for _ in range(next(numbers)):
            rank = next(numbers)
            if rank < 0:
                found.append(None)
                continue
            dtype = ALL[next(numbers)]
            tensor = cd.empty([next(numbers) for _ in range(rank)], dtype=dtype, device=self._device)
            dist.recv(tensor, group=self._group, group_src=self._peer)
            found.append(tensor)
        return found

    def finish(self) -> None:
        """Wait until everything is sent."""
        for work, _ in self._sent:
            work.wait()
        self._sent.clear()
