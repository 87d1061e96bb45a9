"""Messages from one rank to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

import candelabra as cd
from candelabra import Tensor
from candelabra.distributed._buffers import EngineBuffer, check_tensor
from candelabra.distributed._collectives import root_of
from candelabra.distributed._process_group import ProcessGroup, resolved
from candelabra.distributed._work import DistBackendError, PointToPoint

_BARRIER_TAG: Final = 32001


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> PointToPoint:
    """Begin to send a tensor to a rank. It must not change before the work's ``wait()``."""
    check_tensor(tensor, "tensor", "isend")
    g = resolved(group, "isend")
    place = root_of(g, dst, group_dst, "dst", "isend")
    if place == g.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    g.check("isend")
    buffer = EngineBuffer(tensor)
    request = g.communicator.send(buffer.memory, place, tag)
    # The buffer may be a copy, which must live until it is sent.
    return PointToPoint(
        g, f"isend({tensor.dtype.name}{list(tensor.shape)}, dst={g.ranks[place]})", request, lambda: buffer
    )


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> PointToPoint:
    """Begin to receive into a tensor from a rank, by default from any."""
    check_tensor(tensor, "tensor", "irecv")
    g = resolved(group, "irecv")
    any_source = src is None and group_src is None
    place = None if any_source else root_of(g, src, group_src, "src", "irecv")
    if place == g.rank():
        raise ValueError("Invalid source rank: source rank should not be the same as the rank of the current process.")
    g.check("irecv")
    buffer = EngineBuffer(tensor, read=False)
    request = g.communicator.receive(buffer.memory, place, tag)
    source = "any" if place is None else g.ranks[place]
    return PointToPoint(g, f"irecv({tensor.dtype.name}{list(tensor.shape)}, src={source})", request, buffer.store)


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor to a rank."""
    isend(tensor, dst, group, tag, group_dst).wait()


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive a tensor from a rank, by default from any, and return the rank that has sent it."""
    work = irecv(tensor, src, group, tag, group_src)
    work.wait()
    return work.source_rank()


class P2POp:
    """A message of :func:`batch_isend_irecv`: ``isend`` or ``irecv``, the tensor, and the other rank."""

    def __init__(
        self,
        op: Callable[..., PointToPoint],
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``candelabra.distributed.isend`` or "
                "``candelabra.distributed.irecv``."
            )
        check_tensor(tensor, "tensor", "P2POp")
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = (
            op,
            tensor,
            peer,
            group,
            tag,
            group_peer,
        )


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[PointToPoint]:
    """Begin several messages and return their works."""
    if not p2p_op_list or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to be of type ``candelabra.distributed.P2POp``.")
    return [each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer) for each in p2p_op_list]


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """Return once every rank has called this. Rank 0 raises an error if one has not within the timeout.

    The error names the first missing rank, with ``wait_all_ranks`` all of them.
    """
    g = resolved(group, "monitored_barrier")
    limit = g.timeout if timeout is None else timeout
    token = cd.zeros(1, dtype=cd.uint8)
    if g.rank() != 0:
        irecv_or_isend(g, token, 0, isend).wait(limit)
        irecv_or_isend(g, token, 0, irecv).wait(limit + limit)
        return
    arriving = {rank: irecv_or_isend(g, token.clone(), rank, irecv) for rank in range(1, g.size())}
    missing: list[int] = []
    for rank, work in arriving.items():
        try:
            work.wait(timedelta(0) if missing else limit)
        except DistBackendError:
            missing.append(g.ranks[rank])
            if not wait_all_ranks:
                break
    if missing:
        names = f"rank{'s' * (len(missing) > 1)} {', '.join(map(str, missing))}"
        raise DistBackendError(
            f"Rank {g.global_rank} waited {limit.total_seconds():g} s in monitored_barrier for {names}, "
            "which did not arrive"
        )
    for rank in arriving:
        irecv_or_isend(g, token, rank, isend).wait(limit)


def irecv_or_isend(g: ProcessGroup, tensor: Tensor, index: int, op: Callable[..., PointToPoint]) -> PointToPoint:
    """Begin a message of the barrier, with a tag of its own."""
    return op(tensor, group=g, tag=_BARRIER_TAG, **{"group_dst" if op is isend else "group_src": index})
