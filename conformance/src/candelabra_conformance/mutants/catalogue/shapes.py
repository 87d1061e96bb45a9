"""Faults at edges: last blocks, lengths 0 and 1, 0-d tensors, dims and ``keepdim``."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from candelabra.backend import Kernel

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import array_of, breaks, breaks_kernel, payload_of

Dims = tuple[int, ...] | None


def _without_tail(out: Any, block: int) -> Any:
    """Set the elements of a last, incomplete block to 0, if there is a complete block before it."""
    flat = np.array(out).reshape(-1)
    if flat.size > block and flat.size % block:
        flat[flat.size - flat.size % block :] = 0
    return flat.reshape(np.shape(out))


@breaks("mul", "exp", caught_by="mul/value/* exp/value/*")
def last_block_of_16_is_forgotten(right: Kernel, *args: Any) -> Any:
    """Vectors of 16 are computed, the remainder is not."""
    return _without_tail(right(*args), 16)


@breaks("add", "sqrt", caught_by="add/value/* sqrt/value/*")
def last_element_of_a_block_of_256_is_forgotten(right: Kernel, *args: Any) -> Any:
    """A work group of 256 omits its last element."""
    out = np.array(right(*args))
    out.reshape(-1)[255::256] = 0
    return out


@breaks("sum", caught_by="sum/value/*")
def last_block_of_a_sum_is_forgotten(right: Kernel, x: Any, dim: Dims, *rest: Any) -> Any:
    """The remainder after the last 8 elements of a row is not added."""
    last = x.ndim - 1
    if not x.ndim or (dim is not None and last not in dim) or x.shape[-1] < 8 or not x.shape[-1] % 8:
        return right(x, dim, *rest)
    x[..., x.shape[-1] - x.shape[-1] % 8 :] = 0
    return right(x, dim, *rest)


@breaks("amax", "argmax", caught_by="amax/* argmax/*")
def large_rows_are_cut(right: Kernel, x: Any, *rest: Any) -> Any:
    """Elements of a row after the first 65,535 are ignored."""
    if x.ndim and x.shape[-1] > 65535:
        x[..., 65535:] = x[..., :1]
        x[..., 0] = x.min()
    return right(x, *rest)


@breaks("matmul", caught_by="matmul/value/*")
def inner_tail_of_a_product_is_forgotten(right: Kernel, x: Any, y: Any) -> Any:
    """If the inner dim is larger than 4, only multiples of 4 of it are summed."""
    inner = x.shape[-1]
    if inner > 4 and inner % 4:
        x[..., inner - inner % 4 :] = 0
    return right(x, y)


@breaks("matmul", caught_by="matmul/value/*")
def batches_share_the_first_matrix(right: Kernel, x: Any, y: Any) -> Any:
    """Every product of a batch uses the first matrix of the second factor."""
    return right(x, np.broadcast_to(y[:1], y.shape) if y.ndim > 2 and y.shape[0] else y)


@breaks("sum", "amin", caught_by="*/value/*/length-1 */value/*")
def rows_of_one_are_0(right: Kernel, x: Any, dim: Dims, *rest: Any) -> Any:
    """A reduction over one element gives 0."""
    out = right(x, dim, *rest)
    axes = range(x.ndim) if dim is None else dim
    return np.zeros_like(out) if axes and prod(x.shape[d] for d in axes) == 1 else out


@breaks("prod", "all", caught_by="prod/value/*/zero-size all/value/*/zero-size")
def empty_products_are_0(right: Kernel, x: Any, dim: Dims, *rest: Any) -> Any:
    """The product of no elements is 0, and all() of no elements is false."""
    out = right(x, dim, *rest)
    return out if x.size else np.zeros_like(out)


def _refused(out: Any, edge: bool, error: Exception) -> Any:
    """Return the result, or raise the error if the result is at the edge of the fault."""
    if edge:
        raise error
    return out


@breaks("sub", "cat", "softmax", caught_by="*/*/*/zero-size")
def nothing_is_an_error(right: Kernel, *args: Any) -> Any:
    """A launch over no elements raises an error."""
    out = right(*args)
    return _refused(out, not np.size(out), RuntimeError("invalid launch configuration"))


@breaks("neg", "sum", caught_by="*/*/*/0-d */result/*")
def no_dims_become_one(right: Kernel, *args: Any) -> Any:
    """A 0-d result has one dim, of size 1."""
    out = right(*args)
    return np.reshape(out, (1,)) if not np.ndim(out) else out


@breaks("exp", "mul", caught_by="*/value/*/0-d */result/*/0-d")
def no_dims_are_an_error(right: Kernel, *args: Any) -> Any:
    """Kernels index their first dim, and raise an error for 0-d tensors."""
    out = right(*args)
    return _refused(out, not np.ndim(out), IndexError("tuple index out of range"))


@breaks("amax", "mean", caught_by="*/result/* */value/*")
def keepdim_is_ignored(right: Kernel, x: Any, dim: Dims, keepdim: bool, *rest: Any) -> Any:
    """The reduced dim is dropped despite ``keepdim``."""
    return right(x, dim, False, *rest)


@breaks("sum", "amin", caught_by="sum/value/* amin/value/*")
def middle_dims_are_taken_for_the_last(right: Kernel, x: Any, dim: Dims, *rest: Any) -> Any:
    """A reduction over a dim with others on both sides uses neighbours in memory."""
    if dim is not None and len(dim) == 1 and 0 < dim[0] < x.ndim - 1:
        order = [d for d in range(x.ndim) if d != dim[0]] + [dim[0]]
        x = np.moveaxis(x.reshape([x.shape[d] for d in order]), -1, dim[0])
    return right(np.ascontiguousarray(x), dim, *rest)


@breaks("mean", "any", caught_by="mean/value/* any/value/*")
def of_several_dims_the_first_is_reduced_well(right: Kernel, x: Any, dim: Dims, keepdim: bool, *rest: Any) -> Any:
    """Over several dims, only the first element along all but the first is used."""
    if dim is None or len(dim) < 2 or not x.size:
        return right(x, dim, keepdim, *rest)
    for d in dim[1:]:
        x = np.repeat(x.take([0], d), x.shape[d], d)
    return right(x, dim, keepdim, *rest)


@breaks("flip", caught_by="flip/value/*")
def only_the_first_dim_is_flipped(right: Kernel, x: Any, dims: Any) -> Any:
    """Of several dims, only one is flipped."""
    return right(x, dims[:1])


@breaks("cat", caught_by="cat/value/*")
def empty_parts_end_a_joining(right: Kernel, inputs: Any, dim: int) -> Any:
    """All elements after an empty tensor are 0."""
    out = np.array(right(inputs, dim))
    empty = next((i for i, part in enumerate(inputs) if not part.size), None)
    if empty is not None and out.size:
        out[...] = 0
    return out


@breaks("tril", "triu", caught_by="tri*/value/*")
def the_diagonal_is_always_the_main_one(right: Kernel, x: Any, diagonal: int) -> Any:
    """The parameter ``diagonal`` is clamped to -1 … 1."""
    return right(x, max(-1, min(1, diagonal)))


@breaks("arange", caught_by="arange/value/*")
def ranges_are_added_up(right: Kernel, start: Any, step: Any, length: int, dtype: Any, device: Any) -> Any:
    """Each number of a range is the previous one plus the step, with an error that grows."""
    out = right(start, step, length, dtype, device)
    if out.dtype.kind != "f" or not length:
        return out
    steps = np.full(length, step, out.dtype)
    steps[0] = start
    return np.add.accumulate(steps)


@breaks("linspace", caught_by="linspace/value/*")
def the_last_point_is_missed(right: Kernel, start: Any, end: Any, steps: int, dtype: Any, device: Any) -> Any:
    """The interval is divided by the number of points, not of gaps."""
    return (
        right(start, start + (end - start) * (steps - 1) / steps, steps, dtype, device)
        if steps > 1
        else right(start, end, steps, dtype, device)
    )


@breaks("nonzero", caught_by="nonzero/value/*")
def places_come_column_by_column(right: Kernel, x: Any) -> Any:
    """The indices of nonzero elements are returned in Fortran order."""
    out = right(x)
    return out[np.lexsort(out.T)] if out.ndim == 2 and out.shape[1] else out


@breaks_kernel("conv", "max_pool", caught_by="conv/value/* max_pool/value/*")
def paddings_are_swapped(mirror: Mirror, right: Kernel, *args: Any) -> Any:
    """Of two spatial dims, each has the padding and the stride of the other."""

    def flipped(value: Any) -> Any:
        if isinstance(value, tuple) and len(value) == 2 and not isinstance(value[0], Image):
            return value[::-1]
        return value

    try:
        out = right(*(flipped(a) for a in args))
    except Exception:
        return right(*args)
    due = right(*args)
    several = isinstance(due, tuple)
    pairs = zip(out, due, strict=True) if several else [(out, due)]
    fitted = tuple(
        o if o.shape == d.shape else payload_of(mirror, np.resize(array_of(mirror, o), d.shape), d.index)
        for o, d in pairs
    )
    return fitted if several else fitted[0]
