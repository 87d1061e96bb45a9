"""Deterministic writes to the rows of a matrix, for any namespace.

An index array may contain a row several times. The order in which a namespace's assignment writes such a row is not
specified, so :class:`RowUpdates` assigns in rounds: round n writes the n-th occurrence of every row. The result is the
same on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from candelabra_arrayapi.placement import same_device

Assign = Callable[[Any, Any, Any], Any]
"""``assign(x, index, values)`` performs ``x[index] = values`` and returns the result: ``x`` itself or a new array.

An attribute ``needs`` may name the functions of the namespace that it uses.
"""


def assign_in_place(x: Any, index: Any, values: Any) -> Any:
    """The :data:`Assign` of mutable arrays."""
    x[index] = values
    return x


SEARCH_NEEDS = frozenset(
    {"arange", "argsort", "asarray", "broadcast_to", "expand_dims", "reshape", "searchsorted", "take", "where"}
)
"""The functions of the standard that :func:`assign_by_search` uses."""


def assign_by_search(xp: Any) -> Assign:
    """Return an :data:`Assign` for immutable arrays of a namespace that has no such function.

    Each element of the result is found by a binary search for its position among the positions that ``index`` selects,
    which must be unique. That takes O((n + m) log m) for m values in an array of n elements, and no writes. It uses
    :data:`SEARCH_NEEDS`.
    """

    def assign(x: Any, index: Any, values: Any) -> Any:
        positions = xp.arange(prod(x.shape), **same_device(x))
        if not isinstance(index, tuple):  # the index array of rows
            width = prod(x.shape[1:])
            columns = xp.arange(width, **same_device(x))
            selected = xp.expand_dims(index, axis=1) * width + columns
            selected = xp.reshape(selected, (*index.shape, *x.shape[1:]))
        else:
            selected = xp.reshape(positions, x.shape)[index]
        values = xp.reshape(xp.broadcast_to(values, selected.shape), (-1,))
        selected = xp.reshape(selected, (-1,))
        if not selected.shape[0]:
            return xp.asarray(x, copy=True)
        order = xp.argsort(selected)
        ordered = xp.take(selected, order)
        found = xp.searchsorted(ordered, positions)
        found = xp.where(found < ordered.shape[0], found, 0)
        written = xp.take(ordered, found) == positions
        values = xp.take(values, xp.take(order, found))
        return xp.reshape(xp.where(written, values, xp.reshape(x, (-1,))), x.shape)

    assign.needs = SEARCH_NEEDS  # type: ignore[attr-defined]
    return assign


class RowUpdates:
    """Assigns to and accumulates into the rows of a matrix.

    ``dtypes`` maps the dtypes of candelabra to those of the namespace ``xp``. ``assign`` is called with newly created
    arrays and unique indices only. ``accumulate(x, index, values)``, if the namespace has such a function, adds
    ``values`` in order, and an index that occurs twice receives both values.
    """

    def __init__(
        self, xp: Any, dtypes: Mapping[Any, Any], assign: Assign = assign_in_place, accumulate: Assign | None = None
    ) -> None:
        by_name = {k.name: v for k, v in dtypes.items()}
        self.xp = xp
        self.assign = assign
        self.accumulate = accumulate
        self.int64 = by_name["int64"]
        self.float32 = by_name.get("float32")
        self.halves = [by_name[n] for n in ("float16", "bfloat16") if n in by_name]

    def check_bounds(self, index: Any, size: int) -> None:
        """Raise ``IndexError`` unless every element of ``index`` is in [0, size)."""
        if prod(index.shape) and bool(self.xp.any((index < 0) | (index >= size))):
            raise IndexError(f"index out of range for a dim of size {size}")

    def flatten(self, x: Any) -> Any:
        """Return ``x`` as a 1-d array in C order."""
        return self.xp.reshape(x, (-1,))

    def copy(self, x: Any) -> Any:
        """Return a copy of ``x``."""
        return self.xp.asarray(x, copy=True)

    def occurrences(self, rows: Any) -> tuple[Any, Any]:
        """Return, for each element of ``rows``, how often the same row occurs before it and after it."""
        xp = self.xp
        order = xp.argsort(rows, stable=True)
        ordered = xp.take(rows, order)
        inverse = xp.argsort(order, stable=True)
        positions = xp.arange(rows.shape[0], dtype=self.int64, **same_device(rows))
        before = positions - xp.searchsorted(ordered, ordered, side="left")
        after = xp.searchsorted(ordered, ordered, side="right") - positions - 1
        return xp.take(before, inverse), xp.take(after, inverse)

    def put(self, work: Any, rows: Any, values: Any) -> Any:
        """Perform ``work[rows] = values`` and return the result; the last value of a repeated row wins."""
        if not rows.shape[0]:
            return work
        last = self.xp.nonzero(self.occurrences(rows)[1] == 0)[0]
        return self.assign(work, self.xp.take(rows, last), self.xp.take(values, last, axis=0))

    def add(self, work: Any, rows: Any, values: Any) -> Any:
        """Perform ``work[rows] += values`` in order and return the result; a repeated row receives all its values."""
        xp = self.xp
        if not rows.shape[0]:
            return work
        if self.accumulate is not None:
            return self.accumulate(work, rows, values)
        before = self.occurrences(rows)[0]
        for round in range(int(xp.max(before)) + 1):
            selected = xp.nonzero(before == round)[0]
            unique = xp.take(rows, selected)
            work = self.assign(work, unique, xp.take(work, unique, axis=0) + xp.take(values, selected, axis=0))
        return work

    def accumulator(self, x: Any) -> Any:
        """Return a copy of ``x`` in the dtype of accumulation: float32 for half types, int64 for bool."""
        if any(x.dtype == h for h in self.halves):
            return self.xp.astype(x, self.float32)
        if self.xp.isdtype(x.dtype, "bool"):
            return self.xp.astype(x, self.int64)
        return self.copy(x)

    def cast_back(self, work: Any, x: Any) -> Any:
        """Return ``work`` in the dtype of ``x``."""
        return work if work.dtype == x.dtype else self.xp.astype(work, x.dtype)
