"""Sparse tensors from indices and values, from dense tensors, and back; and coalescing."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.creation.from_data import as_tensor
from candelabra._operators.shapes.joining import stack
from candelabra._sparse.tensor import SparseTensor, assembled
from candelabra.dtypes import int64

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """Return a sparse tensor with ``values[n]`` at the position ``indices[:, n]``; elements elsewhere are 0.

    ``indices``: integers of shape (sparse dims, nnz). ``values``: shape (nnz, *dense dims). ``size``: the shape, by
    default the smallest that contains all indices. With a size only, the result has no elements. Values at equal
    positions are added up. Operators on the result are recorded if ``values`` requires grad; with ``requires_grad`` the
    result is a leaf. ``is_coalesced=True`` promises sorted indices without duplicates. ``pin_memory`` has no effect,
    and indices are always checked.

    Raises ``RuntimeError`` for shapes that do not fit each other and for indices outside of ``size``, ``TypeError``
    for indices without values and values without indices.
    """
    if indices is None or values is None:  # sparse_coo_tensor(size)
        if values is not None or (indices is None) is (size is None):
            raise TypeError("sparse_coo_tensor() needs indices and values, or only a size")
        shape = tuple(indices if size is None else size)
        if any(n < 0 for n in shape):
            raise RuntimeError(f"sparse_coo_tensor(): sizes must not be negative, but got {list(shape)}")
        values = as_tensor([], dtype=dtype, device=device)
        indices = values.new_zeros((len(shape), 0), dtype=int64)
    else:
        values = as_tensor(values, dtype=dtype, device=device)
        indices = as_tensor(indices, dtype=int64, device=values.device)
        if values.ndim == 0:
            values = values.expand(indices.shape[-1:])
        shape = _checked_shape(indices, values, size)
    out = assembled(indices, values, shape, bool(is_coalesced))
    if requires_grad:  # a leaf is coalesced, so that its gradient has one value at each position
        out = coalesced(assembled(indices, values.detach(), shape, bool(is_coalesced)))
        out.requires_grad_()
    return out


def _checked_shape(indices: Tensor, values: Tensor, size: Sequence[int] | None) -> tuple[int, ...]:
    """Return the shape of a sparse tensor. Raise ``RuntimeError`` if indices, values and ``size`` do not fit."""
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    sparse_dim, nnz = indices.shape
    if values.shape[0] != nnz:
        raise RuntimeError(f"indices and values must have same nnz, but got nnz from indices: {nnz}, "
                           f"nnz from values: {values.shape[0]}")  # fmt: skip
    if size is not None and len(size) != sparse_dim + values.ndim - 1:
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({values.ndim - 1}), but got "
            f"{len(size)}"
        )
    highest = (indices.amax(1) + 1).tolist() if nnz else [0] * sparse_dim
    if nnz and sparse_dim and int(indices.amin()) < 0:
        raise RuntimeError(f"found negative index {int(indices.amin())}")
    if size is None:
        return (*highest, *values.shape[1:])
    for dim, (limit, needed) in enumerate(zip(size, highest)):
        if needed > limit:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {limit} but found index {needed - 1}"
            )
    if tuple(size[sparse_dim:]) != tuple(values.shape[1:]):
        raise RuntimeError(f"values has incorrect size, expected {[nnz, *size[sparse_dim:]]}, got {list(values.shape)}")
    return tuple(size)


def rebuilt(indices: Tensor, values: Tensor, shape: tuple[int, ...], coalesced: bool) -> Tensor:
    """Return a sparse tensor that was pickled."""
    return assembled(indices, values, shape, coalesced)


def loaded(indices: Any, values: Any, shape: Any, is_coalesced: Any) -> SparseTensor:
    """Return a sparse tensor from a file. Raise ``ValueError`` unless indices, values and shape fit each other."""
    from candelabra._tensor import Tensor

    if not isinstance(indices, Tensor) or not isinstance(values, Tensor) or not isinstance(shape, list | tuple):
        raise ValueError("a sparse tensor without indices, values or shape")
    if indices.dtype is not int64 or not values.ndim or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError("a sparse tensor with indices, values or a shape of another kind")
    try:
        _checked_shape(indices, values, shape)
    except RuntimeError as error:
        raise ValueError(f"a sparse tensor: {error}") from None
    flat = flat_positions(indices, shape)
    if is_coalesced and not bool((flat[1:] > flat[:-1]).all()):
        raise ValueError("a sparse tensor as coalesced whose positions are not sorted, or not distinct")
    return assembled(indices, values, shape, bool(is_coalesced))


def flat_positions(indices: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return each position as one number: its index in the flattened sparse dims."""
    flat = indices.new_zeros(indices.shape[1:])
    for row, size in zip(indices.unbind(0), sizes):
        flat = flat * size + row
    return flat


def from_flat(flat: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return the indices of positions that are given as one number each."""
    rows = []
    for size in reversed(sizes):
        rows.append(flat % size)
        flat = flat // size
    return stack(rows[::-1]) if rows else flat.new_zeros((0, *flat.shape))


def coalesced(tensor: SparseTensor) -> SparseTensor:
    """Return a sparse tensor with sorted positions, each once, and the sums of the values at equal positions."""
    shape, indices, values, known = tensor._payload
    if known:
        return tensor
    if values.shape[0] < 2:
        return assembled(indices, values, shape, True)
    sizes = shape[: indices.shape[0]]
    positions, inverse = flat_positions(indices, sizes).unique(sorted=True, return_inverse=True)
    total = summed(values, inverse, positions.shape[0])
    return assembled(from_flat(positions, sizes), total, shape, True)


def summed(values: Tensor, groups: Tensor, count: int) -> Tensor:
    """Return the sums of the values of each group, of shape (count, *values.shape[1:]); for booleans, their OR."""
    out = values.new_zeros((count, *values.shape[1:]))
    if values.dtype.name == "bool":
        return out.index_put((groups[values.reshape((values.shape[0], -1)).any(1)],), values.new_ones(()))
    return out.index_add(0, groups, values)


def dense(tensor: SparseTensor) -> Tensor:
    """Return the elements of a sparse tensor as a dense tensor."""
    shape, indices, values, _ = tensor._payload
    sizes = shape[: indices.shape[0]]
    return summed(values, flat_positions(indices, sizes), prod(sizes)).reshape(shape)


def sparse(tensor: Tensor, sparse_dim: int | None = None) -> SparseTensor:
    """Return the elements of a dense tensor that are not 0 as a sparse tensor.

    Its first ``sparse_dim`` dims are sparse, by default all. Raises ``RuntimeError`` for a number out of range.
    """
    rank = tensor.ndim if sparse_dim is None else sparse_dim
    if not 0 <= rank <= tensor.ndim or (tensor.ndim and not rank):
        raise RuntimeError(f"to_sparse(): sparse_dim must be in [1, {tensor.ndim}], but got {sparse_dim}")
    mask = tensor.detach() != 0
    if rank < tensor.ndim:
        mask = mask.flatten(rank).any(rank)
    indices = mask.nonzero().t().contiguous()
    return assembled(indices, tensor[tuple(indices.unbind(0))] if rank else tensor.reshape((1,)), tensor.shape, True)
