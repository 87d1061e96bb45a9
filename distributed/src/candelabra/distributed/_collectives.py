"""Collectives of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributed import _in_graphs
from candelabra.distributed._buffers import StagedBuffer, check_list, check_tensor
from candelabra.distributed._memory import Memory, StagedMemory, memory_of
from candelabra.distributed._process_group import ProcessGroup, resolved
from candelabra.distributed._reductions import EngineReduction
from candelabra.distributed._work import Work
from candelabra.library import ReduceOp


def _described(tensor: Tensor) -> str:
    return f"{tensor.dtype.name}{list(tensor.shape)}"


def _result(work: Work, async_op: bool, *outputs: Tensor) -> Work | None:
    work.tensors = list(outputs)
    if async_op:
        return work
    work.wait()
    return None


def root_of(group: ProcessGroup, rank: int | None, group_rank: int | None, name: str, call: str) -> int:
    """Return the rank in the group of a root, which is given by its global rank or by its rank in the group."""
    if rank is not None and group_rank is not None:
        raise ValueError(f"{call}: can't specify both group_{name} and {name}")
    if rank is None and group_rank is None:
        raise ValueError(f"{call}: must specify {name} or group_{name}")
    if group_rank is not None:
        if not 0 <= group_rank < group.size():
            raise ValueError(f"{call}: group_{name} must be a rank of the group of {group.size()}, got {group_rank}")
        return group_rank
    if rank not in group.ranks:
        raise ValueError(f"{call}: Global rank {rank} is not part of group {group}")
    return group.ranks.index(rank)


def _average(memory: Memory, reduction: EngineReduction, access: StagedMemory) -> None:
    if reduction.average:
        access.divide(memory, reduction.dtype, access.group.size())


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Copy the tensor of the rank ``src`` to all others, whose tensors have the same shape and dtype.

    Args:
        tensor: written in place, except on ``src``.
        src: a global rank; or ``group_src``, a rank of the group.
        async_op: return a :class:`Work` at once, whose ``wait()`` must be called before the tensor is used.
    """
    check_tensor(tensor, "tensor", "broadcast")
    g = resolved(group, "broadcast")
    root = root_of(g, src, group_src, "src", "broadcast")
    if _in_graphs.broadcast(tensor, root, g, async_op):
        return None
    access = memory_of(g, tensor)
    buffer = access.buffer(tensor, read=g.rank() == root, write=g.rank() != root)
    work = g.submit(
        "broadcast",
        f"{_described(tensor)}, src={g.ranks[root]}",
        lambda: access.communicator().broadcast(buffer.memory, root),
        None if g.rank() == root else buffer.store,
        access.device,
    )
    return _result(work, async_op, tensor)


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Replace the tensor of every rank by the reduction of all. All have the same shape and dtype."""
    check_tensor(tensor, "tensor", "all_reduce")
    return _all_reduce("all_reduce", [tensor], op, group, async_op)


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Do what :func:`all_reduce` does with several tensors, one after another, as one work.

    Every rank has tensors of the same shapes and dtypes, in the same order. One work for many tensors costs less than
    a work for each.
    """
    if not isinstance(tensors, (list, tuple)) or not tensors:
        raise ValueError(f"all_reduce_coalesced: tensors must be a list of at least one tensor, got {tensors!r}")
    for tensor in tensors:
        check_tensor(tensor, "tensors", "all_reduce_coalesced")
    return _all_reduce("all_reduce_coalesced", tensors, op, group, async_op)


def _all_reduce(name: str, tensors: Sequence[Tensor], op: ReduceOp, group: Any, async_op: bool) -> Work | None:
    g = resolved(group, name)
    if _in_graphs.all_reduce(tensors, op, g, async_op):
        return None
    access = memory_of(g, *tensors)
    by_dtype = {dtype: EngineReduction(name, op, dtype, access.halves) for dtype in {t.dtype for t in tensors}}
    reductions = [by_dtype[tensor.dtype] for tensor in tensors]
    buffers = [access.buffer(tensor, r.cast) for tensor, r in zip(tensors, reductions, strict=True)]

    def task() -> None:
        communicator = access.communicator()
        if op is ReduceOp.AVG:  # of all tensors of a dtype at once
            for dtype in dict.fromkeys(r.dtype for r in reductions):
                pairs = zip(buffers, reductions, strict=True)
                communicator.average([buffer.memory for buffer, r in pairs if r.dtype == dtype], dtype)
        else:
            for buffer, r in zip(buffers, reductions, strict=True):
                communicator.all_reduce(buffer.memory, r.dtype, r.op)

    def finish() -> None:
        for buffer in buffers:
            buffer.store()

    work = g.submit(name, f"{', '.join(map(_described, tensors))}, {op}", task, finish, access.device)
    return _result(work, async_op, *tensors)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Replace the tensor of the rank ``dst`` by the reduction of all. The others' tensors stay as they are."""
    check_tensor(tensor, "tensor", "reduce")
    g = resolved(group, "reduce")
    root = root_of(g, dst, group_dst, "dst", "reduce")
    if _in_graphs.reduce(tensor, root, op, g, async_op):
        return None
    access = memory_of(g, tensor)
    r = EngineReduction("reduce", op, tensor.dtype, access.halves)
    at_root = g.rank() == root
    buffer = access.buffer(tensor, r.cast, write=at_root)

    def task() -> None:
        memory = buffer.memory
        access.communicator().reduce(memory, r.dtype, r.op, root)
        if at_root:
            _average(memory, r, access)

    signature = f"{_described(tensor)}, {op}, dst={g.ranks[root]}"
    work = g.submit("reduce", signature, task, buffer.store if at_root else None, access.device)
    return _result(work, async_op, tensor)


def _copied_into(tensors: Sequence[Tensor], buffer: StagedBuffer) -> None:
    """Write the parts of a buffer's flat tensor, which an engine has written, into tensors."""
    buffer.store()
    start, flat = 0, buffer.tensor
    with cd.no_grad():
        for tensor in tensors:
            tensor.copy_(flat[start : start + tensor.numel()].view(tensor.shape))
            start += tensor.numel()


def _check_sizes(tensors: Sequence[Tensor], like: Tensor, name: str, call: str) -> None:
    wrong = next((tensor for tensor in tensors if tensor.numel() != like.numel()), None)
    if wrong is not None:
        raise ValueError(
            f"{call}: each tensor of {name} must have the size of tensor, {list(like.shape)}, got {list(wrong.shape)}"
        )


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Write the tensor of every rank into ``tensor_list``, in the order of ranks. All have the same shape and dtype."""
    check_tensor(tensor, "tensor", "all_gather")
    g = resolved(group, "all_gather")
    check_list(tensor_list, "tensor_list", "all_gather", g.size(), tensor)
    _check_sizes(tensor_list, tensor, "tensor_list", "all_gather")
    if _in_graphs.all_gather(tensor_list, tensor, g, async_op):
        return None
    access = memory_of(g, tensor, *tensor_list)
    sent, received = access.buffer(tensor, write=False), access.flat(tensor_list, read=False)
    work = g.submit(
        "all_gather",
        _described(tensor),
        lambda: access.communicator().all_gather(sent.memory, received.memory),
        lambda: _copied_into(tensor_list, received),
        access.device,
    )
    return _result(work, async_op, *tensor_list)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all ranks into one, concatenated or stacked along dim 0."""
    for name, value in (("output_tensor", output_tensor), ("input_tensor", input_tensor)):
        check_tensor(value, name, "all_gather_into_tensor")
    g = resolved(group, "all_gather_into_tensor")
    _check_pair(output_tensor, input_tensor, "all_gather_into_tensor")
    if output_tensor.numel() != input_tensor.numel() * g.size():
        raise ValueError(
            "all_gather_into_tensor: output tensor size must be equal to world_size times input tensor size, got "
            f"{list(output_tensor.shape)} for {g.size()} times {list(input_tensor.shape)}"
        )
    if _in_graphs.all_gather([output_tensor], input_tensor, g, async_op):
        return None
    access = memory_of(g, output_tensor, input_tensor)
    sent, received = access.buffer(input_tensor, write=False), access.buffer(output_tensor, read=False)
    work = g.submit(
        "all_gather_into_tensor",
        _described(input_tensor),
        lambda: access.communicator().all_gather(sent.memory, received.memory),
        received.store,
        access.device,
    )
    return _result(work, async_op, output_tensor)


def _check_pair(output: Tensor, input: Tensor, call: str) -> None:
    if output.dtype is not input.dtype:
        raise TypeError(f"{call}: output tensor must have the same type as input tensor: {output.dtype}, {input.dtype}")


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Write the tensor of every rank into ``gather_list`` on the rank ``dst``, by default 0."""
    check_tensor(tensor, "tensor", "gather")
    g = resolved(group, "gather")
    root = 0 if dst is None and group_dst is None else root_of(g, dst, group_dst, "dst", "gather")
    if g.rank() != root:
        if gather_list:
            raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    else:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        check_list(gather_list, "gather_list", "gather", g.size(), tensor)
        _check_sizes(gather_list, tensor, "gather_list", "gather")
    if _in_graphs.gather(gather_list or (), tensor, root, g, async_op):
        return None
    access = memory_of(g, tensor, *(gather_list or ()))
    sent = access.buffer(tensor, write=False)
    signature = f"{_described(tensor)}, dst={g.ranks[root]}"
    if not gather_list:
        work = g.submit(
            "gather", signature, lambda: access.communicator().gather(sent.memory, None, root), device=access.device
        )
        return _result(work, async_op)
    received, outputs = access.flat(gather_list, read=False), gather_list
    work = g.submit(
        "gather",
        signature,
        lambda: access.communicator().gather(sent.memory, received.memory, root),
        lambda: _copied_into(outputs, received),
        access.device,
    )
    return _result(work, async_op, *outputs)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Write one tensor of ``scatter_list`` on the rank ``src``, by default 0, into the tensor of each rank."""
    check_tensor(tensor, "tensor", "scatter")
    g = resolved(group, "scatter")
    root = 0 if src is None and group_src is None else root_of(g, src, group_src, "src", "scatter")
    if g.rank() != root:
        if scatter_list:
            raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    else:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        check_list(scatter_list, "scatter_list", "scatter", g.size(), tensor)
        _check_sizes(scatter_list, tensor, "scatter_list", "scatter")
    if _in_graphs.scatter(tensor, scatter_list or (), root, g, async_op):
        return None
    access = memory_of(g, tensor, *(scatter_list or ()))
    sent: StagedBuffer | None = access.flat(scatter_list, write=False) if scatter_list else None
    received = access.buffer(tensor, read=False)
    signature = f"{_described(tensor)}, src={g.ranks[root]}"
    work = g.submit(
        "scatter",
        signature,
        lambda: access.communicator().scatter(None if sent is None else sent.memory, received.memory, root),
        received.store,
        access.device,
    )
    return _result(work, async_op, tensor)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce the lists of all ranks, and write this rank's element of the result into ``output``."""
    check_tensor(output, "output", "reduce_scatter")
    g = resolved(group, "reduce_scatter")
    check_list(input_list, "input_list", "reduce_scatter", g.size(), output)
    _check_sizes(input_list, output, "input_list", "reduce_scatter")
    if _in_graphs.reduce_scatter(output, input_list, op, g, async_op):
        return None
    access = memory_of(g, output, *input_list)
    r = EngineReduction("reduce_scatter", op, output.dtype, access.halves)
    sent = access.flat(input_list, r.cast, write=False)
    return _result(_reduce_scatter(access, "reduce_scatter", output, sent, r, op), async_op, output)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce the tensors of all ranks, and write this rank's part along dim 0 of the result into ``output``."""
    for name, value in (("output", output), ("input", input)):
        check_tensor(value, name, "reduce_scatter_tensor")
    g = resolved(group, "reduce_scatter_tensor")
    _check_pair(output, input, "reduce_scatter_tensor")
    if input.numel() != output.numel() * g.size():
        raise ValueError(
            "reduce_scatter_tensor: input tensor must be the same size as output size times world size, got "
            f"{list(input.shape)} for {g.size()} times {list(output.shape)}"
        )
    if _in_graphs.reduce_scatter(output, [input], op, g, async_op):
        return None
    access = memory_of(g, output, input)
    r = EngineReduction("reduce_scatter_tensor", op, output.dtype, access.halves)
    sent = access.buffer(input, r.cast, write=False)
    return _result(_reduce_scatter(access, "reduce_scatter_tensor", output, sent, r, op), async_op, output)


def _reduce_scatter(
    access: StagedMemory, name: str, output: Tensor, sent: StagedBuffer, r: EngineReduction, op: ReduceOp
) -> Work:
    buffer = access.buffer(output, r.cast, read=False)

    def task() -> None:
        received = buffer.memory
        access.communicator().reduce_scatter(sent.memory, received, r.dtype, r.op)
        _average(received, r, access)

    return access.group.submit(name, f"{_described(output)}, {op}", task, buffer.store, access.device)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """Send the tensor ``i`` of one list to rank ``i``, and receive the tensor ``i`` of the other list from it."""
    g = resolved(group, "all_to_all")
    check_list(output_tensor_list, "output_tensor_list", "all_to_all", g.size())
    check_list(input_tensor_list, "input_tensor_list", "all_to_all", g.size(), output_tensor_list[0])
    access = memory_of(g, *output_tensor_list, *input_tensor_list)
    size = access.unit(input_tensor_list[0].dtype)
    sent, received = access.flat(input_tensor_list, write=False), access.flat(output_tensor_list, read=False)
    sends = [tensor.numel() * size for tensor in input_tensor_list]
    receives = [tensor.numel() * size for tensor in output_tensor_list]
    work = g.submit(
        "all_to_all",
        input_tensor_list[0].dtype.name,
        lambda: access.communicator().all_to_all(sent.memory, received.memory, sends, receives),
        lambda: _copied_into(output_tensor_list, received),
        access.device,
    )
    return _result(work, async_op, *output_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send the part ``i`` of ``input`` along dim 0 to rank ``i``, and write what each rank sends into ``output``.

    Split sizes are numbers of rows for each rank; by default the parts are equal.
    """
    for name, value in (("output", output), ("input", input)):
        check_tensor(value, name, "all_to_all_single")
    g = resolved(group, "all_to_all_single")
    _check_pair(output, input, "all_to_all_single")
    access = memory_of(g, output, input)
    sends = _split_counts(input, input_split_sizes, access)
    receives = _split_counts(output, output_split_sizes, access)
    if _in_graphs.all_to_all_single(output, input, output_split_sizes, input_split_sizes, g, async_op):
        return None
    sent, received = access.buffer(input, write=False), access.buffer(output, read=False)
    work = g.submit(
        "all_to_all_single",
        input.dtype.name,
        lambda: access.communicator().all_to_all(sent.memory, received.memory, sends, receives),
        received.store,
        access.device,
    )
    return _result(work, async_op, output)


def _split_counts(tensor: Tensor, sizes: list[int] | None, access: StagedMemory) -> list[int]:
    count = access.group.size()
    rows = tensor.shape[0] if tensor.dim() else 1
    if not sizes:
        if rows % count:
            raise ValueError(f"Tensor's dim 0 does not divide equally across group size: {rows} rows, {count} ranks")
        sizes = [rows // count] * count
    if len(sizes) != count:
        raise ValueError(f"Number of tensor splits not equal to group size: {len(sizes)} splits, {count} ranks")
    if sum(sizes) != rows:
        raise ValueError(f"Split sizes doesn't match total dim 0 size: {sizes} for {rows} rows")
    row = prod(tensor.shape[1:]) * access.unit(tensor.dtype)
    return [size * row for size in sizes]


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Return once every rank of the group has called this."""
    g = resolved(group, "barrier")
    communicator = g.communicator
    return _result(g.submit("barrier", "", communicator.barrier), async_op)
