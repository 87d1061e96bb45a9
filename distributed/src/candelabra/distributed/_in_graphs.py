"""Collectives of a function that is traced: the operators, which are nodes of the graph, and copies of their results.

A function of this module stands for the rest of a call whose arguments have been checked. It writes the results into
the tensors that the call names, so later nodes see them. It returns False, and does nothing, for a call that is no
node: one that returns a work under way, or a reduction that the operators do not have. Such a call breaks the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.distributed._process_group import ProcessGroup
from candelabra.library import ReduceOp, is_compiling


def _is_node(async_op: bool, op: ReduceOp | None = None, dtype: Any = None) -> bool:
    """Return whether a call in this thread is traced and has an operator."""
    if async_op or not is_compiling():
        return False
    return op is None or (op in (ReduceOp.SUM, ReduceOp.AVG) and dtype.is_floating_point)


def _write(tensors: Sequence[Tensor], results: Sequence[Tensor]) -> None:
    """Copy a result, which may have another shape of as many elements, to each tensor."""
    with cd.no_grad():
        for tensor, result in zip(tensors, results, strict=True):
            tensor.copy_(result if result.shape == tensor.shape else result.reshape(tensor.shape))


def broadcast(tensor: Tensor, root: int, g: ProcessGroup, async_op: bool) -> bool:
    """Have a node for ``broadcast``."""
    if not _is_node(async_op):
        return False
    from candelabra_distributed.collectives import c10d_broadcast

    found = c10d_broadcast(tensor.detach(), root, g.group_name)
    if g.rank() != root:
        _write([tensor], [found])
    return True


def all_reduce(tensors: Sequence[Tensor], op: ReduceOp, g: ProcessGroup, async_op: bool) -> bool:
    """Have a node for ``all_reduce`` of each tensor."""
    if not all(_is_node(async_op, op, tensor.dtype) for tensor in tensors):
        return False
    from candelabra_distributed.collectives import c10d_all_reduce

    for tensor in tensors:
        _write([tensor], [c10d_all_reduce(tensor.detach(), op.name.lower(), g.group_name)])
    return True


def reduce(tensor: Tensor, root: int, op: ReduceOp, g: ProcessGroup, async_op: bool) -> bool:
    """Have a node for ``reduce``."""
    if not _is_node(async_op, op, tensor.dtype):
        return False
    from candelabra_distributed.collectives import c10d_reduce

    found = c10d_reduce(tensor.detach(), root, op.name.lower(), g.group_name)
    if g.rank() == root:
        _write([tensor], [found])
    return True


def all_gather(outputs: Sequence[Tensor], tensor: Tensor, g: ProcessGroup, async_op: bool) -> bool:
    """Have a node for ``all_gather`` into a tensor for each rank, or into one."""
    if not _is_node(async_op):
        return False
    from candelabra_distributed.collectives import c10d_all_gather

    rows = c10d_all_gather(tensor.detach(), g.size(), g.group_name)
    _write(outputs, [rows] if len(outputs) == 1 else rows.unbind(0))
    return True


def gather(outputs: Sequence[Tensor], tensor: Tensor, root: int, g: ProcessGroup, async_op: bool) -> bool:
    """Have a node for ``gather``. ``outputs``: those of the root, empty elsewhere."""
    if not _is_node(async_op):
        return False
    from candelabra_distributed.collectives import c10d_gather

    rows = c10d_gather(tensor.detach(), g.size(), root, g.group_name)
    if outputs:
        _write(outputs, rows.unbind(0))
    return True


def scatter(tensor: Tensor, inputs: Sequence[Tensor], root: int, g: ProcessGroup, async_op: bool) -> bool:
    """Have a node for ``scatter``. ``inputs``: those of the root, empty elsewhere."""
    if not _is_node(async_op):
        return False
    from candelabra_distributed.collectives import c10d_scatter

    rows = cd.stack([each.detach().reshape(tensor.shape) for each in inputs or [tensor] * g.size()])
    _write([tensor], [c10d_scatter(rows, root, g.group_name)])
    return True


def reduce_scatter(output: Tensor, inputs: Sequence[Tensor], op: ReduceOp, g: ProcessGroup, async_op: bool) -> bool:
    """Have a node for ``reduce_scatter`` of a tensor for each rank, or of one."""
    if not _is_node(async_op, op, output.dtype):
        return False
    from candelabra_distributed.collectives import c10d_reduce_scatter

    whole = cd.cat([each.detach().reshape(-1) for each in inputs])
    rows = whole.reshape(g.size(), *output.shape)
    _write([output], [c10d_reduce_scatter(rows, op.name.lower(), g.group_name)])
    return True


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    received: Sequence[int] | None,
    sent: Sequence[int] | None,
    g: ProcessGroup,
    async_op: bool,
) -> bool:
    """Have a node for ``all_to_all_single``, of rows."""
    if not _is_node(async_op) or not input.dim() or not output.dim():
        return False
    from candelabra_distributed.collectives import c10d_all_to_all

    _write([output], [c10d_all_to_all(input.detach(), received or None, sent or None, g.group_name)])
    return True
