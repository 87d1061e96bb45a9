"""Gathering and scattering by index arrays, for any namespace.

Every operator here is reduced to one of three operations on the rows of a matrix: take rows, assign to rows, add to
rows. :class:`~candelabra_arrayapi.rows.RowUpdates` implements the latter two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from candelabra_arrayapi.placement import same_device
from candelabra_arrayapi.rows import Assign, RowUpdates, assign_in_place

Kernel = Callable[..., Any]


def kernels(
    xp: Any, dtypes: Mapping[Any, Any], assign: Assign = assign_in_place, accumulate: Assign | None = None
) -> dict[str, Kernel]:
    """Return the kernels over the namespace ``xp``; ``dtypes`` maps the dtypes of candelabra to those of ``xp``.

    :class:`~candelabra_arrayapi.rows.RowUpdates` describes ``assign`` and ``accumulate``.
    """
    rows = RowUpdates(xp, dtypes, assign, accumulate)
    single, advanced = _SingleDimIndexing(rows), _AdvancedIndexing(rows)

    def nonzero(x: Any) -> Any:
        if not x.ndim:
            return xp.zeros((int(bool(x != 0)), 0), dtype=rows.int64, **same_device(x))
        return xp.astype(xp.stack(xp.nonzero(x), axis=1), rows.int64)

    def basic_index_adjoint(x: Any, shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
        return assign(xp.zeros(shape, dtype=x.dtype, **same_device(x)), (*index, ...), x)

    def basic_index_scatter(x: Any, src: Any, index: tuple[Any, ...]) -> Any:
        return assign(rows.copy(x), (*index, ...), src)

    return {
        "gather": single.gather, "scatter_add": single.scatter_kernel(rows.add, rows.accumulator),
        "scatter_src": single.scatter_kernel(rows.put, rows.copy), "index_select": single.select,
        "index_add": single.add, "index": advanced.index, "index_put": advanced.put, "nonzero": nonzero,
        "basic_index_adjoint": basic_index_adjoint, "basic_index_scatter": basic_index_scatter,
    }  # fmt: skip


class _SingleDimIndexing:
    """Operators with one index array, which indexes one dim."""

    def __init__(self, rows: RowUpdates) -> None:
        self.rows = rows
        self.xp = rows.xp

    def flat_index(self, shape: tuple[int, ...], dim: int, index: Any) -> Any:
        """Return the C-order index of every element of an array of ``shape`` that ``index`` selects along ``dim``."""
        xp = self.xp
        if index.ndim != len(shape) or any(i > s for d, (s, i) in enumerate(zip(shape, index.shape)) if d != dim):
            raise ValueError(
                f"an index of shape {tuple(index.shape)} does not fit an input of shape {tuple(shape)} along dim {dim}:"
                " it must have as many dims and must not be larger along the other dims"
            )
        self.rows.check_bounds(index, shape[dim])
        stride, flat = 1, xp.zeros_like(index)
        for d in range(len(shape) - 1, -1, -1):
            sizes = tuple(-1 if i == d else 1 for i in range(len(shape)))
            numbers = xp.arange(index.shape[d], dtype=self.rows.int64, **same_device(index))
            along = index if d == dim else xp.reshape(numbers, sizes)
            flat = flat + along * stride
            stride *= shape[d]
        return self.rows.flatten(flat)

    def gather(self, x: Any, dim: int, index: Any) -> Any:
        xp, flatten = self.xp, self.rows.flatten
        if 0 in index.shape:  # an empty index may have any rank, as in PyTorch
            return xp.empty(index.shape, dtype=x.dtype, **same_device(x))
        x1, i1 = (x, index) if x.ndim and index.ndim else (flatten(x), flatten(index))
        return xp.reshape(xp.take(flatten(x1), self.flat_index(x1.shape, dim, i1)), index.shape)

    def scatter_kernel(self, write: Callable[..., Any], widen: Callable[[Any], Any]) -> Kernel:
        """Return a scatter kernel that calls ``write(widen(x), flat indices, values)``."""
        xp, rows, flatten = self.xp, self.rows, self.rows.flatten

        def scatter(x: Any, dim: int, index: Any, src: Any) -> Any:
            if 0 in index.shape:
                return rows.copy(x)
            all_have_dims = x.ndim and index.ndim and src.ndim
            x1, index, src = (x, index, src) if all_have_dims else (flatten(x), flatten(index), flatten(src))
            if src.ndim != index.ndim or any(i > s for s, i in zip(src.shape, index.shape)):
                raise ValueError(
                    f"an index of shape {tuple(index.shape)} is larger than the source of shape {tuple(src.shape)}"
                )
            work = flatten(widen(x1))
            values = xp.astype(flatten(src[tuple(slice(0, n) for n in index.shape)]), work.dtype)
            work = write(work, self.flat_index(x1.shape, dim, index), values)
            return xp.reshape(rows.cast_back(work, x), x.shape)

        return scatter

    def select(self, x: Any, dim: int, index: Any) -> Any:
        if index.ndim > 1:
            raise ValueError(f"the index must be a vector, got {index.ndim} dims")
        self.rows.check_bounds(index, x.shape[dim] if x.ndim else 1)
        if not x.ndim and index.shape not in ((), (1,)):
            raise ValueError(f"the index of a 0-d input must have one element, got {index.shape[0]}")
        if not x.ndim:
            return self.rows.copy(x)
        return self.xp.take(x, self.rows.flatten(index), axis=dim)

    def add(self, x: Any, dim: int, index: Any, source: Any) -> Any:
        xp, rows, flatten = self.xp, self.rows, self.rows.flatten
        indexed = flatten(index)
        x1, source = (x, source) if x.ndim else (flatten(x), flatten(source))
        expected = (*x1.shape[:dim], indexed.shape[0], *x1.shape[dim + 1 :])
        if index.ndim > 1 or tuple(source.shape) != expected:
            raise ValueError(
                f"the index must be a vector and the source of shape {expected}, got an index of shape "
                f"{tuple(index.shape)} and a source of shape {tuple(source.shape)}"
            )
        rows.check_bounds(indexed, x1.shape[dim])
        dim_first = xp.moveaxis(rows.accumulator(x1), dim, 0)
        work = xp.reshape(rows.copy(dim_first), (dim_first.shape[0], prod(dim_first.shape[1:])))
        values = xp.astype(xp.reshape(xp.moveaxis(source, dim, 0), (indexed.shape[0], work.shape[1])), work.dtype)
        work = rows.add(work, indexed, values)
        return xp.reshape(xp.moveaxis(xp.reshape(rows.cast_back(work, x), dim_first.shape), 0, dim), x.shape)


class _IndexedDims(NamedTuple):
    """The dims of an advanced index, and the rows that it selects."""

    indexed: list[int]
    """The dims that have an index array."""
    others: list[int]
    shape: tuple[int, ...]
    """The shape to which the index arrays broadcast."""
    rows: Any
    """The selected rows of the matrix that :meth:`_AdvancedIndexing.as_rows` makes, as a vector."""
    position: int
    """The position of the dims of the index in the result: that of adjacent indexed dims, 0 for separated ones."""


class _AdvancedIndexing:
    """Operators with index arrays for several dims, which broadcast with each other."""

    def __init__(self, rows: RowUpdates) -> None:
        self.rows = rows
        self.xp = rows.xp

    def resolve(self, x: Any, indices: Sequence[Any]) -> _IndexedDims:
        """Check the index arrays against the shape of ``x``; negative indices count from the end."""
        indexed = [d for d, i in enumerate(indices) if i is not None]
        arrays = self.xp.broadcast_arrays(*[indices[d] for d in indexed])
        selected: Any = 0
        for d, array in zip(indexed, arrays):
            array = self.xp.where(array < 0, array + x.shape[d], array)
            self.rows.check_bounds(array, x.shape[d])
            selected = selected * x.shape[d] + array
        others = [d for d in range(x.ndim) if d not in indexed]
        position = indexed[0] if indexed[-1] - indexed[0] + 1 == len(indexed) else 0
        return _IndexedDims(indexed, others, tuple(arrays[0].shape), self.rows.flatten(selected), position)

    def as_rows(self, x: Any, dims: _IndexedDims) -> Any:
        """Return ``x`` as a matrix: the indexed dims are flattened into its rows, the others into its columns."""
        permuted = self.xp.permute_dims(x, (*dims.indexed, *dims.others))
        return self.xp.reshape(
            permuted, (prod(x.shape[d] for d in dims.indexed), prod(x.shape[d] for d in dims.others))
        )

    def index(self, x: Any, indices: Sequence[Any]) -> Any:
        xp = self.xp
        if all(i is None for i in indices):
            return self.rows.copy(x)
        dims = self.resolve(x, indices)
        selected = xp.take(self.as_rows(x, dims), dims.rows, axis=0)
        out = xp.reshape(selected, (*dims.shape, *[x.shape[d] for d in dims.others]))
        rank = len(dims.shape)
        return xp.moveaxis(out, tuple(range(rank)), tuple(range(dims.position, dims.position + rank)))

    def put(self, x: Any, indices: Sequence[Any], values: Any, accumulate: bool) -> Any:
        xp, rows = self.xp, self.rows
        if all(i is None for i in indices):
            return x + values if accumulate else rows.copy(xp.broadcast_to(values, x.shape))
        dims = self.resolve(x, indices)
        rank, position = len(dims.shape), dims.position
        sizes = [x.shape[d] for d in dims.others]
        expanded = xp.broadcast_to(values, (*sizes[:position], *dims.shape, *sizes[position:]))
        expanded = xp.moveaxis(expanded, tuple(range(position, position + rank)), tuple(range(rank)))
        work = rows.copy(self.as_rows(rows.accumulator(x) if accumulate else x, dims))
        values = xp.astype(xp.reshape(expanded, (dims.rows.shape[0], work.shape[1])), work.dtype)
        work = (rows.add if accumulate else rows.put)(work, dims.rows, values)
        order = (*dims.indexed, *dims.others)
        permuted = xp.reshape(rows.cast_back(work, x), tuple(x.shape[d] for d in order))
        return xp.permute_dims(permuted, tuple(order.index(d) for d in range(x.ndim)))
