"""Reading and writing by index arrays over any namespace that can assign to ``x[integers]`` in a fresh array.

All of it comes down to three steps on rows: take rows, put rows where no row is named twice, and add rows. Where a row
is named several times the writes happen in rounds, the n-th round taking every row's n-th occurrence; so the result is
the same on every device, whatever its assignment does with repeated places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any


def kernels(xp: Any, dtypes: Mapping[Any, Any]) -> dict[str, Callable[..., Any]]:
    """The kernels over a namespace; ``dtypes`` maps the core's dtypes to the namespace's."""
    named = {k.name: v for k, v in dtypes.items()}
    int64 = named["int64"]
    halves = [named[n] for n in ("float16", "bfloat16") if n in named]

    # -- rows ---------------------------------------------------------------------------------------------------------
    def within(index: Any, size: int) -> None:
        if prod(index.shape) and bool(xp.any((index < 0) | (index >= size))):
            raise IndexError("index out of range")

    def occurrences(rows: Any) -> tuple[Any, Any]:
        """(how often each entry's row was named before it, how often after)."""
        order = xp.argsort(rows, stable=True)
        ordered = xp.take(rows, order)
        back = xp.argsort(order, stable=True)
        places = xp.arange(rows.shape[0], dtype=int64)
        before = places - xp.searchsorted(ordered, ordered, side="left")
        after = xp.searchsorted(ordered, ordered, side="right") - places - 1
        return xp.take(before, back), xp.take(after, back)

    def put_rows(work: Any, rows: Any, values: Any) -> None:
        """``work[rows] = values``, the last of a row's values staying."""
        if rows.shape[0]:
            last = xp.nonzero(occurrences(rows)[1] == 0)[0]
            work[xp.take(rows, last)] = xp.take(values, last, axis=0)

    def add_rows(work: Any, rows: Any, values: Any) -> None:
        """``work[rows] += values`` with every occurrence of a row, in order."""
        if rows.shape[0]:
            before = occurrences(rows)[0]
            for turn in range(int(xp.max(before)) + 1):
                now = xp.nonzero(before == turn)[0]
                place = xp.take(rows, now)
                work[place] = xp.take(work, place, axis=0) + xp.take(values, now, axis=0)

    def accumulator(x: Any) -> Any:
        if any(x.dtype == h for h in halves):
            return xp.astype(x, named["float32"])
        if xp.isdtype(x.dtype, "bool"):
            return xp.astype(x, int64)
        return xp.asarray(x, copy=True)

    def narrowed(work: Any, x: Any) -> Any:
        return work if work.dtype == x.dtype else xp.astype(work, x.dtype)

    # -- along one dim ------------------------------------------------------------------------------------------------
    def places(shape: tuple[int, ...], dim: int, index: Any) -> Any:
        """Where ``index`` points to in an array of ``shape``, flattened in C order."""
        if index.ndim != len(shape) or any(i > s for d, (s, i) in enumerate(zip(shape, index.shape)) if d != dim):
            raise ValueError("the index is larger than the array, or has other dims")
        within(index, shape[dim])
        step, found = 1, xp.zeros_like(index)
        for d in range(len(shape) - 1, -1, -1):
            sizes = tuple(-1 if i == d else 1 for i in range(len(shape)))
            found = found + (index if d == dim else xp.reshape(xp.arange(index.shape[d], dtype=int64), sizes)) * step
            step *= shape[d]
        return xp.reshape(found, (-1,))

    def flat(x: Any) -> Any:
        return xp.reshape(x, (-1,))

    def gather(x: Any, dim: int, index: Any) -> Any:
        if 0 in index.shape:  # of whatever rank, as in PyTorch
            return xp.empty(index.shape, dtype=x.dtype)
        x1, i1 = (x, index) if x.ndim and index.ndim else (flat(x), flat(index))
        return xp.reshape(xp.take(flat(x1), places(x1.shape, dim, i1)), index.shape)

    def scattering(write: Callable[..., None], widen: Callable[[Any], Any]) -> Callable[..., Any]:
        def scatter(x: Any, dim: int, index: Any, src: Any) -> Any:
            if 0 in index.shape:
                return xp.asarray(x, copy=True)
            x1, index, src = (
                (x, index, src) if x.ndim and index.ndim and src.ndim else (flat(x), flat(index), flat(src))
            )
            if src.ndim != index.ndim or any(i > s for s, i in zip(src.shape, index.shape)):
                raise ValueError("the index is larger than the source")
            work = flat(widen(x1))
            values = xp.astype(flat(src[tuple(slice(0, n) for n in index.shape)]), work.dtype)
            write(work, places(x1.shape, dim, index), values)
            return xp.reshape(narrowed(work, x), x.shape)

        return scatter

    def index_select(x: Any, dim: int, index: Any) -> Any:
        if index.ndim > 1:
            raise ValueError("the index must be a vector")
        within(index, x.shape[dim] if x.ndim else 1)
        if not x.ndim and index.shape not in ((), (1,)):
            raise ValueError("a 0-d array has one slice")
        if not x.ndim:
            return xp.asarray(x, copy=True)
        return xp.take(x, flat(index), axis=dim)

    def index_add(x: Any, dim: int, index: Any, source: Any) -> Any:
        rows = flat(index)
        x1, source = (x, source) if x.ndim else (flat(x), flat(source))
        if index.ndim > 1 or tuple(source.shape) != (*x1.shape[:dim], rows.shape[0], *x1.shape[dim + 1 :]):
            raise ValueError("the index must be a vector and the source must fit")
        within(rows, x1.shape[dim])
        front = xp.moveaxis(accumulator(x1), dim, 0)
        work = xp.reshape(xp.asarray(front, copy=True), (front.shape[0], prod(front.shape[1:])))
        values = xp.astype(xp.reshape(xp.moveaxis(source, dim, 0), (rows.shape[0], work.shape[1])), work.dtype)
        add_rows(work, rows, values)
        return xp.reshape(xp.moveaxis(xp.reshape(narrowed(work, x), front.shape), 0, dim), x.shape)

    # -- index arrays for several dims --------------------------------------------------------------------------------
    def layout(x: Any, indices: Sequence[Any]) -> tuple[list[int], list[int], tuple[int, ...], Any, int]:
        """(indexed dims, other dims, the index's shape, rows among the indexed dims, where the index's dims stand)."""
        used = [d for d, i in enumerate(indices) if i is not None]
        if len(indices) > x.ndim:
            raise IndexError("too many indices")
        picked = xp.broadcast_arrays(*[indices[d] for d in used])
        rows: Any = 0
        for d, place in zip(used, picked):
            place = xp.where(place < 0, place + x.shape[d], place)
            within(place, x.shape[d])
            rows = rows * x.shape[d] + place
        kept = [d for d in range(x.ndim) if d not in used]
        front = used[0] if used[-1] - used[0] + 1 == len(used) else 0
        return used, kept, tuple(picked[0].shape), flat(rows), front

    def as_rows(x: Any, used: list[int], kept: list[int]) -> Any:
        turned = xp.permute_dims(x, (*used, *kept))
        return xp.reshape(turned, (prod(x.shape[d] for d in used), prod(x.shape[d] for d in kept)))

    def index(x: Any, indices: Sequence[Any]) -> Any:
        if all(i is None for i in indices):
            return xp.asarray(x, copy=True)
        used, kept, picked, rows, front = layout(x, indices)
        out = xp.reshape(xp.take(as_rows(x, used, kept), rows, axis=0), (*picked, *[x.shape[d] for d in kept]))
        return xp.moveaxis(out, tuple(range(len(picked))), tuple(range(front, front + len(picked))))

    def index_put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool) -> Any:
        if all(i is None for i in indices):
            return x + values if accumulate else xp.asarray(xp.broadcast_to(values, x.shape), copy=True)
        used, kept, picked, rows, front = layout(x, indices)
        others = [x.shape[d] for d in kept]
        wide = xp.broadcast_to(values, (*others[:front], *picked, *others[front:]))
        wide = xp.moveaxis(wide, tuple(range(front, front + len(picked))), tuple(range(len(picked))))
        work = xp.asarray(as_rows(accumulator(x) if accumulate else x, used, kept), copy=True)
        values = xp.astype(xp.reshape(wide, (rows.shape[0], work.shape[1])), work.dtype)
        (add_rows if accumulate else put_rows)(work, rows, values)
        turned = xp.reshape(narrowed(work, x), tuple(x.shape[d] for d in (*used, *kept)))
        order = (*used, *kept)
        return xp.permute_dims(turned, tuple(order.index(d) for d in range(x.ndim)))

    def nonzero(x: Any) -> Any:
        if not x.ndim:
            return xp.zeros((int(bool(x != 0)), 0), dtype=int64)
        return xp.astype(xp.stack(xp.nonzero(x), axis=1), int64)

    # -- basic indices ------------------------------------------------------------------------------------------------
    def basic_index_adjoint(x: Any, shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
        out = xp.zeros(shape, dtype=x.dtype)
        out[(*index, ...)] = x
        return out

    def basic_index_scatter(x: Any, src: Any, index: tuple[Any, ...]) -> Any:
        out = xp.asarray(x, copy=True)
        out[(*index, ...)] = src
        return out

    return {
        "gather": gather, "scatter_add": scattering(add_rows, accumulator),
        "scatter_src": scattering(put_rows, lambda x: xp.asarray(x, copy=True)), "index_select": index_select,
        "index_add": index_add, "index": index, "index_put": index_put, "nonzero": nonzero,
        "basic_index_adjoint": basic_index_adjoint, "basic_index_scatter": basic_index_scatter,
    }  # fmt: skip
