"""Messages from one rank to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

import candelabra as cd
from candelabra import Tensor
from candelabra.distributed._buffers import DeviceBuffer, EngineBuffer, check_tensor, host_device
from candelabra.distributed._collectives import root_of
from candelabra.distributed._memory import memory_of
from candelabra.distributed._process_group import ProcessGroup, resolved
from candelabra.distributed._work import DistBackendError, PointToPoint, Work
from candelabra.distributed.engine import Message

_BARRIER_TAG: Final = 32001


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work:
    """Begin to send a tensor to a rank. It must not change before the work's ``wait()``."""
    check_tensor(tensor, "tensor", "isend")
    g = resolved(group, "isend")
    place = root_of(g, dst, group_dst, "dst", "isend")
    if place == g.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    g.check("isend")
    device = memory_of(g, tensor).device
    if device is not None:
        return _exchange(g, device, "isend", [(tensor, place, True)])
    buffer = EngineBuffer(tensor, write=False)
    request = g.communicator.send(buffer.memory, place, tag)
    # The buffer may be a copy, which must live until it is sent.
    return PointToPoint(
        g, f"isend({tensor.dtype.name}{list(tensor.shape)}, dst={g.ranks[place]})", request, lambda: buffer
    )


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work:
    """Begin to receive into a tensor from a rank, by default from any; on an engine's device, from ``src``."""
    check_tensor(tensor, "tensor", "irecv")
    g = resolved(group, "irecv")
    any_source = src is None and group_src is None
    place = None if any_source else root_of(g, src, group_src, "src", "irecv")
    if place == g.rank():
        raise ValueError("Invalid source rank: source rank should not be the same as the rank of the current process.")
    g.check("irecv")
    device = memory_of(g, tensor).device
    if device is not None:
        if place is None:
            raise ValueError(f"irecv: a receive into memory of {device} needs src: it cannot receive from any rank")
        return _exchange(g, device, "irecv", [(tensor, place, False)])
    buffer = EngineBuffer(tensor, read=False)
    request = g.communicator.receive(buffer.memory, place, tag)
    source = "any" if place is None else g.ranks[place]
    return PointToPoint(g, f"irecv({tensor.dtype.name}{list(tensor.shape)}, src={source})", request, buffer.store)


def _exchange(g: ProcessGroup, device: Any, name: str, messages: Sequence[tuple[Tensor, int, bool]]) -> Work:
    """Begin to send and receive memory of a device: tensors, ranks, and whether they are sent. Tags do not exist there.

    A message waits for those before it. Ranks that send to each other do so by :func:`batch_isend_irecv`. Raises
    RuntimeError if the ranks are not connected: all have to take part in that, and only two know of a message.
    """
    if not g.connected(device):
        raise RuntimeError(
            f"{name}: the ranks are not connected for messages of {device}: pass device_id={str(device)!r} to "
            "init_process_group(), or call a collective on the device first"
        )
    buffers = [DeviceBuffer(tensor, read=sends) for tensor, _, sends in messages]
    described = ", ".join(
        f"{tensor.dtype.name}{list(tensor.shape)}, {'dst' if sends else 'src'}={g.ranks[rank]}"
        for tensor, rank, sends in messages
    )

    def task() -> None:
        g.on_device(device).exchange(
            [Message(sends, buffer.memory, rank) for buffer, (_, rank, sends) in zip(buffers, messages, strict=True)]
        )

    def finish() -> None:
        for buffer, (_, _, sends) in zip(buffers, messages, strict=True):
            if not sends:
                buffer.store()

    work = g.submit(name, described, task, finish, device)
    work.tensors = [tensor for tensor, _, _ in messages]
    work.source = next((g.ranks[rank] for _, rank, sends in messages if not sends), None)
    return work


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
        op: Callable[..., Work],
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


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Begin several messages and return their works; one work if all are of one device that an engine serves."""
    if not p2p_op_list or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to be of type ``candelabra.distributed.P2POp``.")
    groups = {id(each.group): each.group for each in p2p_op_list}
    g = resolved(p2p_op_list[0].group, "batch_isend_irecv")
    device = memory_of(g, *[each.tensor for each in p2p_op_list]).device
    if len(groups) > 1 or device is None:
        return [each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer) for each in p2p_op_list]
    messages = [
        (each.tensor, root_of(g, each.peer, each.group_peer, "peer", "batch_isend_irecv"), each.op is isend)
        for each in p2p_op_list
    ]
    return [_exchange(g, device, "batch_isend_irecv", messages)]


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """Return once every rank has called this. Rank 0 raises an error if one has not within the timeout.

    The error names the first missing rank, with ``wait_all_ranks`` all of them.
    """
    g = resolved(group, "monitored_barrier")
    limit = g.timeout if timeout is None else timeout
    token = cd.zeros(1, dtype=cd.uint8, device=host_device())
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


def irecv_or_isend(g: ProcessGroup, tensor: Tensor, index: int, op: Callable[..., Work]) -> Work:
    """Begin a message of the barrier, with a tag of its own."""
    return op(tensor, group=g, tag=_BARRIER_TAG, **{"group_dst" if op is isend else "group_src": index})
