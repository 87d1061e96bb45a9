"""Reading and writing by index arrays over any namespace.

All of it comes down to three steps on :class:`Rows`: take rows, put rows where no row is named twice, and add rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from candelabra_arrayapi.rows import Assign, Rows, written

Kernel = Callable[..., Any]


def kernels(
    xp: Any, dtypes: Mapping[Any, Any], assign: Assign = written, accumulate: Assign | None = None
) -> dict[str, Kernel]:
    """The kernels over a namespace; ``dtypes`` maps the core's dtypes to the namespace's.

    ``assign`` and ``accumulate`` write, as :class:`~candelabra_arrayapi.rows.Rows` says.
    """
    rows = Rows(xp, dtypes, assign, accumulate)
    along, several = _AlongDim(rows), _AlongDims(rows)

    def nonzero(x: Any) -> Any:
        if not x.ndim:
            return xp.zeros((int(bool(x != 0)), 0), dtype=rows.int64)
        return xp.astype(xp.stack(xp.nonzero(x), axis=1), rows.int64)

    def basic_index_adjoint(x: Any, shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
        return assign(xp.zeros(shape, dtype=x.dtype), (*index, ...), x)

    def basic_index_scatter(x: Any, src: Any, index: tuple[Any, ...]) -> Any:
        return assign(rows.copy(x), (*index, ...), src)

    return {
        "gather": along.gather, "scatter_add": along.scattering(rows.add, rows.accumulator),
        "scatter_src": along.scattering(rows.put, rows.copy), "index_select": along.select, "index_add": along.add,
        "index": several.index, "index_put": several.put, "nonzero": nonzero,
        "basic_index_adjoint": basic_index_adjoint, "basic_index_scatter": basic_index_scatter,
    }  # fmt: skip


class _AlongDim:
    """An index array along one dim."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.xp = rows.xp

    def places(self, shape: tuple[int, ...], dim: int, index: Any) -> Any:
        """Where ``index`` points to in an array of ``shape``, flattened in C order."""
        xp = self.xp
        if index.ndim != len(shape) or any(i > s for d, (s, i) in enumerate(zip(shape, index.shape)) if d != dim):
            raise ValueError("the index is larger than the array, or has other dims")
        self.rows.check(index, shape[dim])
        step, found = 1, xp.zeros_like(index)
        for d in range(len(shape) - 1, -1, -1):
            sizes = tuple(-1 if i == d else 1 for i in range(len(shape)))
            along = index if d == dim else xp.reshape(xp.arange(index.shape[d], dtype=self.rows.int64), sizes)
            found = found + along * step
            step *= shape[d]
        return self.rows.flat(found)

    def gather(self, x: Any, dim: int, index: Any) -> Any:
        xp, flat = self.xp, self.rows.flat
        if 0 in index.shape:  # of whatever rank, as in PyTorch
            return xp.empty(index.shape, dtype=x.dtype)
        x1, i1 = (x, index) if x.ndim and index.ndim else (flat(x), flat(index))
        return xp.reshape(xp.take(flat(x1), self.places(x1.shape, dim, i1)), index.shape)

    def scattering(self, write: Callable[..., Any], widen: Callable[[Any], Any]) -> Kernel:
        """The kernel that writes ``src`` with ``write`` into what ``widen`` makes of ``x``."""
        xp, rows, flat = self.xp, self.rows, self.rows.flat

        def scatter(x: Any, dim: int, index: Any, src: Any) -> Any:
            if 0 in index.shape:
                return rows.copy(x)
            whole = x.ndim and index.ndim and src.ndim
            x1, index, src = (x, index, src) if whole else (flat(x), flat(index), flat(src))
            if src.ndim != index.ndim or any(i > s for s, i in zip(src.shape, index.shape)):
                raise ValueError("the index is larger than the source")
            work = flat(widen(x1))
            values = xp.astype(flat(src[tuple(slice(0, n) for n in index.shape)]), work.dtype)
            work = write(work, self.places(x1.shape, dim, index), values)
            return xp.reshape(rows.narrowed(work, x), x.shape)

        return scatter

    def select(self, x: Any, dim: int, index: Any) -> Any:
        if index.ndim > 1:
            raise ValueError("the index must be a vector")
        self.rows.check(index, x.shape[dim] if x.ndim else 1)
        if not x.ndim and index.shape not in ((), (1,)):
            raise ValueError("a 0-d array has one slice")
        if not x.ndim:
            return self.rows.copy(x)
        return self.xp.take(x, self.rows.flat(index), axis=dim)

    def add(self, x: Any, dim: int, index: Any, source: Any) -> Any:
        xp, rows, flat = self.xp, self.rows, self.rows.flat
        named = flat(index)
        x1, source = (x, source) if x.ndim else (flat(x), flat(source))
        if index.ndim > 1 or tuple(source.shape) != (*x1.shape[:dim], named.shape[0], *x1.shape[dim + 1 :]):
            raise ValueError("the index must be a vector and the source must fit")
        rows.check(named, x1.shape[dim])
        front = xp.moveaxis(rows.accumulator(x1), dim, 0)
        work = xp.reshape(rows.copy(front), (front.shape[0], prod(front.shape[1:])))
        values = xp.astype(xp.reshape(xp.moveaxis(source, dim, 0), (named.shape[0], work.shape[1])), work.dtype)
        work = rows.add(work, named, values)
        return xp.reshape(xp.moveaxis(xp.reshape(rows.narrowed(work, x), front.shape), 0, dim), x.shape)


class _AlongDims:
    """Index arrays for several dims, broadcast with each other."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.xp = rows.xp

    def layout(self, x: Any, indices: Sequence[Any]) -> tuple[list[int], list[int], tuple[int, ...], Any, int]:
        """(indexed dims, other dims, the index's shape, rows among the indexed dims, where the index's dims stand)."""
        used = [d for d, i in enumerate(indices) if i is not None]
        picked = self.xp.broadcast_arrays(*[indices[d] for d in used])
        named: Any = 0
        for d, place in zip(used, picked):
            place = self.xp.where(place < 0, place + x.shape[d], place)
            self.rows.check(place, x.shape[d])
            named = named * x.shape[d] + place
        kept = [d for d in range(x.ndim) if d not in used]
        front = used[0] if used[-1] - used[0] + 1 == len(used) else 0
        return used, kept, tuple(picked[0].shape), self.rows.flat(named), front

    def as_rows(self, x: Any, used: list[int], kept: list[int]) -> Any:
        """The array as a matrix whose rows are what the indexed dims name."""
        turned = self.xp.permute_dims(x, (*used, *kept))
        return self.xp.reshape(turned, (prod(x.shape[d] for d in used), prod(x.shape[d] for d in kept)))

    def index(self, x: Any, indices: Sequence[Any]) -> Any:
        xp = self.xp
        if all(i is None for i in indices):
            return self.rows.copy(x)
        used, kept, picked, named, front = self.layout(x, indices)
        out = xp.reshape(xp.take(self.as_rows(x, used, kept), named, axis=0), (*picked, *[x.shape[d] for d in kept]))
        return xp.moveaxis(out, tuple(range(len(picked))), tuple(range(front, front + len(picked))))

    def put(self, x: Any, indices: Sequence[Any], values: Any, accumulate: bool) -> Any:
        xp, rows = self.xp, self.rows
        if all(i is None for i in indices):
            return x + values if accumulate else rows.copy(xp.broadcast_to(values, x.shape))
        used, kept, picked, named, front = self.layout(x, indices)
        others = [x.shape[d] for d in kept]
        wide = xp.broadcast_to(values, (*others[:front], *picked, *others[front:]))
        wide = xp.moveaxis(wide, tuple(range(front, front + len(picked))), tuple(range(len(picked))))
        work = rows.copy(self.as_rows(rows.accumulator(x) if accumulate else x, used, kept))
        values = xp.astype(xp.reshape(wide, (named.shape[0], work.shape[1])), work.dtype)
        work = (rows.add if accumulate else rows.put)(work, named, values)
        order = (*used, *kept)
        turned = xp.reshape(rows.narrowed(work, x), tuple(x.shape[d] for d in order))
        return xp.permute_dims(turned, tuple(order.index(d) for d in range(x.ndim)))
