"""Collectives as operators: each returns a new tensor and has a derivative. ``candelabra.distributed.nn`` calls them.

The argument ``group`` is the name of a process group: ``"world"``, that of ``new_group``, or ``"self"``, the group of
this rank alone, which exists without ``init_process_group`` (MPI's COMM_SELF). The conformance suite calls the
operators on it. Ranks are those of the group. Where the number of ranks affects a shape, it is an argument, so that the
shape rule needs no group.

Derivatives: the loss is the sum of the ranks' losses, and a rank's gradient is the derivative of that sum by its own
input. So the gradient of a sum that every rank gets is the sum of all gradients, and that of a tensor that is copied
to all ranks is the same sum, on the source. A tensor that is sent to another rank has a gradient that is sent back.

All operators are linear, so forward mode calls them on the tangents. The batch dim of ``vmap`` travels with the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra import Tensor
from candelabra.library import batching, by, like_input, operator, shape_of, unpromoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra.distributed._process_group import ProcessGroup

SUMS = ("sum", "avg")
"""The reductions with derivatives."""
Shape = tuple[int, ...]
Marks = list[Any]


def _group(name: str) -> ProcessGroup:
    from candelabra.distributed._process_group import group_named

    return group_named(name)


def _op(name: str) -> Any:
    from candelabra.library import ReduceOp

    return ReduceOp[name.upper()]


def _check_sum(reduce_op: str) -> None:
    if reduce_op not in SUMS:
        raise ValueError(f"a reduction with a derivative is 'sum' or 'avg', got {reduce_op!r}")


@by
def _one_for_each(input: Tensor, ranks: int, *_: Any) -> Shape:
    """The input's with a dim of the ranks in front."""
    return (ranks, *shape_of(input))


@by
def _own_row(input: Tensor, *_: Any) -> Shape:
    """The input's without its first dim, that of the ranks."""
    shape = shape_of(input)
    if not shape:
        raise RuntimeError("a collective that divides its input needs a dim of the ranks in front, got a 0-d tensor")
    return shape[1:]


def _check_rows(input: Tensor, g: ProcessGroup, call: str) -> None:
    rows = shape_of(input)[0] if shape_of(input) else 0
    if rows != g.size():
        raise RuntimeError(f"{call}: the input must have a row for each of the {g.size()} ranks, got {rows}")


def _check_ranks(ranks: int, g: ProcessGroup, call: str) -> None:
    if ranks != g.size():
        raise RuntimeError(f"{call}: the group has {g.size()} ranks, but the argument ranks is {ranks}")


# -- the input's shape ------------------------------------------------------------------------------------------------
@operator(like_input, promote=unpromoted, accepts="floating", ordered=True, method=False, public=False, out=False)
def c10d_all_reduce(input: Tensor, reduce_op: str, group: str) -> Tensor:
    """The sum (``"sum"``) or the average (``"avg"``) over the ranks, on every rank."""
    from candelabra.distributed import _collectives

    _check_sum(reduce_op)
    out = input.contiguous().clone()
    _collectives.all_reduce(out, _op(reduce_op), _group(group))
    return out


@operator(like_input, promote=unpromoted, ordered=True, method=False, public=False, out=False)
def c10d_broadcast(input: Tensor, src: int, group: str) -> Tensor:
    """The tensor of the rank ``src``, on every rank."""
    from candelabra.distributed import _collectives

    out = input.contiguous().clone()
    _collectives.broadcast(out, group=_group(group), group_src=src)
    return out


@operator(like_input, promote=unpromoted, accepts="floating", ordered=True, method=False, public=False, out=False)
def c10d_reduce(input: Tensor, dst: int, reduce_op: str, group: str) -> Tensor:
    """The sum or the average over the ranks, on the rank ``dst``; zeros elsewhere."""
    from candelabra.distributed import _collectives

    _check_sum(reduce_op)
    g = _group(group)
    out = input.contiguous().clone()
    _collectives.reduce(out, op=_op(reduce_op), group=g, group_dst=dst)
    return out if g.rank() == dst else out.zero_()


c10d_all_reduce.vjp(input=lambda g, reduce_op, group: c10d_all_reduce(g, reduce_op, group))
c10d_broadcast.vjp(input=lambda g, src, group: c10d_reduce(g, src, "sum", group))


def _reduce_vjp(g: Tensor, dst: int, reduce_op: str, group: str) -> Tensor:
    found = c10d_broadcast(g, dst, group)
    return found if reduce_op == "sum" else found / _group(group).size()


c10d_reduce.vjp(input=_reduce_vjp)
for _same in (c10d_all_reduce, c10d_broadcast, c10d_reduce):
    _same.batched(batching.in_front(_same))


# -- a dim of the ranks in front --------------------------------------------------------------------------------------
@operator(_one_for_each, promote=unpromoted, ordered=True, method=False, public=False, out=False)
def c10d_all_gather(input: Tensor, ranks: int, group: str) -> Tensor:
    """The tensors of all ranks, stacked, on every rank."""
    from candelabra.distributed import _collectives

    g = _group(group)
    _check_ranks(ranks, g, "all_gather")
    out = input.new_empty((ranks, *input.shape))
    _collectives.all_gather_into_tensor(out, input, g)
    return out


@operator(_own_row, promote=unpromoted, accepts="floating", ordered=True, method=False, public=False, out=False)
def c10d_reduce_scatter(input: Tensor, reduce_op: str, group: str) -> Tensor:
    """This rank's row of the sum or the average of the inputs, which have a row for each rank."""
    from candelabra.distributed import _collectives

    _check_sum(reduce_op)
    g = _group(group)
    _check_rows(input, g, "reduce_scatter")
    out = input.new_empty(input.shape[1:])
    _collectives.reduce_scatter_tensor(out, input, _op(reduce_op), g)
    return out


@operator(_one_for_each, promote=unpromoted, ordered=True, method=False, public=False, out=False)
def c10d_gather(input: Tensor, ranks: int, dst: int, group: str) -> Tensor:
    """The tensors of all ranks, stacked, on the rank ``dst``; zeros elsewhere."""
    from candelabra.distributed import _collectives

    g = _group(group)
    _check_ranks(ranks, g, "gather")
    out = input.new_zeros((ranks, *input.shape))
    _collectives.gather(input, list(out.unbind(0)) if g.rank() == dst else None, group=g, group_dst=dst)
    return out


@operator(_own_row, promote=unpromoted, ordered=True, method=False, public=False, out=False)
def c10d_scatter(input: Tensor, src: int, group: str) -> Tensor:
    """This rank's row of the tensor of the rank ``src``. The others' tensors give shape and dtype."""
    from candelabra.distributed import _collectives

    g = _group(group)
    _check_rows(input, g, "scatter")
    out = input.new_empty(input.shape[1:])
    _collectives.scatter(out, list(input.unbind(0)) if g.rank() == src else None, group=g, group_src=src)
    return out


def _all_gather_vjp(g: Tensor, group: str) -> Tensor:
    return c10d_reduce_scatter(g, "sum", group)


def _reduce_scatter_vjp(g: Tensor, reduce_op: str, group: str) -> Tensor:
    size = _group(group).size()
    found = c10d_all_gather(g, size, group)
    return found if reduce_op == "sum" else found / size


def _scatter_vjp(g: Tensor, src: int, group: str) -> Tensor:
    return c10d_gather(g, _group(group).size(), src, group)


c10d_all_gather.vjp(input=_all_gather_vjp)
c10d_reduce_scatter.vjp(input=_reduce_scatter_vjp)
c10d_gather.vjp(input=lambda g, dst, group: c10d_scatter(g, dst, group))
c10d_scatter.vjp(input=_scatter_vjp)


@c10d_all_gather.batched
def _(size: int, batched: Marks, input: Tensor, ranks: int, group: str) -> Tensor:
    return batching.moved(c10d_all_gather(input, ranks, group), 1, 0)


@c10d_gather.batched
def _(size: int, batched: Marks, input: Tensor, ranks: int, dst: int, group: str) -> Tensor:
    return batching.moved(c10d_gather(input, ranks, dst, group), 1, 0)


@c10d_reduce_scatter.batched
def _(size: int, batched: Marks, input: Tensor, reduce_op: str, group: str) -> Tensor:
    return c10d_reduce_scatter(batching.moved(input, 0, 1), reduce_op, group)


@c10d_scatter.batched
def _(size: int, batched: Marks, input: Tensor, src: int, group: str) -> Tensor:
    return c10d_scatter(batching.moved(input, 0, 1), src, group)


# -- other rows -------------------------------------------------------------------------------------------------------
@by
def _exchanged(input: Tensor, outputs: Sequence[int] | None, inputs: Sequence[int] | None, group: str) -> Shape:
    """The input's, with the sum of ``outputs`` as its first size."""
    shape = shape_of(input)
    if not shape:
        raise RuntimeError("all_to_all needs rows to divide among the ranks, got a 0-d tensor")
    return shape if outputs is None else (sum(outputs), *shape[1:])


@operator(_exchanged, promote=unpromoted, ordered=True, method=False, public=False, out=False)
def c10d_all_to_all(input: Tensor, outputs: Sequence[int] | None, inputs: Sequence[int] | None, group: str) -> Tensor:
    """The rows that the ranks send to this one, in their order.

    ``inputs``: the numbers of rows for each rank; ``outputs``: those from each rank; None for equal numbers.
    """
    from candelabra.distributed import _collectives

    out = input.new_empty(_exchanged(c10d_all_to_all, (input, outputs, inputs, group)))
    sent, received = (None if sizes is None else list(sizes) for sizes in (inputs, outputs))
    _collectives.all_to_all_single(out, input, received, sent, _group(group))
    return out


c10d_all_to_all.vjp(input=lambda g, outputs, inputs, group: c10d_all_to_all(g, inputs, outputs, group))


@c10d_all_to_all.batched
def _(
    size: int,
    batched: Marks,
    input: Tensor,
    outputs: Sequence[int] | None,
    inputs: Sequence[int] | None,
    group: str,
) -> Tensor:
    return batching.moved(c10d_all_to_all(batching.moved(input, 0, 1), outputs, inputs, group), 1, 0)
