"""Steps on the rows of a matrix over any namespace.

Where a row is named several times the writes happen in rounds, the n-th round taking every row's n-th occurrence; so
the result is the same on every device, whatever its assignment does with repeated places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

Assign = Callable[[Any, Any, Any], Any]
"""``assign(x, index, values)`` is ``x`` with ``values`` at ``[index]``: ``x`` itself, or an array in its place."""


def written(x: Any, index: Any, values: Any) -> Any:
    """The :data:`Assign` of arrays that can be written to."""
    x[index] = values
    return x


class Rows:
    """Take rows, put rows, add rows. ``dtypes`` maps the core's dtypes to the namespace's.

    ``assign`` writes; it is only called with fresh arrays, and with indices that name no place twice. ``accumulate``,
    where the namespace has such a function, adds instead, in order, wherever a place is named twice.
    """

    def __init__(
        self, xp: Any, dtypes: Mapping[Any, Any], assign: Assign = written, accumulate: Assign | None = None
    ) -> None:
        named = {k.name: v for k, v in dtypes.items()}
        self.xp = xp
        self.assign = assign
        self.accumulate = accumulate
        self.int64 = named["int64"]
        self.float32 = named.get("float32")
        self.halves = [named[n] for n in ("float16", "bfloat16") if n in named]

    def check(self, index: Any, size: int) -> None:
        """Raise ``IndexError`` unless all of ``index`` lies in [0, size)."""
        if prod(index.shape) and bool(self.xp.any((index < 0) | (index >= size))):
            raise IndexError("index out of range")

    def flat(self, x: Any) -> Any:
        """The array as a vector, in C order."""
        return self.xp.reshape(x, (-1,))

    def copy(self, x: Any) -> Any:
        """An array of the same values that can be written to."""
        return self.xp.asarray(x, copy=True)

    def occurrences(self, rows: Any) -> tuple[Any, Any]:
        """(how often each entry's row was named before it, how often after)."""
        xp = self.xp
        order = xp.argsort(rows, stable=True)
        ordered = xp.take(rows, order)
        back = xp.argsort(order, stable=True)
        places = xp.arange(rows.shape[0], dtype=self.int64)
        before = places - xp.searchsorted(ordered, ordered, side="left")
        after = xp.searchsorted(ordered, ordered, side="right") - places - 1
        return xp.take(before, back), xp.take(after, back)

    def put(self, work: Any, rows: Any, values: Any) -> Any:
        """``work`` with ``work[rows] = values``, the last of a row's values staying."""
        if not rows.shape[0]:
            return work
        last = self.xp.nonzero(self.occurrences(rows)[1] == 0)[0]
        return self.assign(work, self.xp.take(rows, last), self.xp.take(values, last, axis=0))

    def add(self, work: Any, rows: Any, values: Any) -> Any:
        """``work`` with ``work[rows] += values``, every occurrence of a row counting, in order."""
        xp = self.xp
        if not rows.shape[0]:
            return work
        if self.accumulate is not None:
            return self.accumulate(work, rows, values)
        before = self.occurrences(rows)[0]
        for turn in range(int(xp.max(before)) + 1):
            now = xp.nonzero(before == turn)[0]
            place = xp.take(rows, now)
            work = self.assign(work, place, xp.take(work, place, axis=0) + xp.take(values, now, axis=0))
        return work

    def accumulator(self, x: Any) -> Any:
        """A copy of ``x`` in the dtype that sums are made in."""
        if any(x.dtype == h for h in self.halves):
            return self.xp.astype(x, self.float32)
        if self.xp.isdtype(x.dtype, "bool"):
            return self.xp.astype(x, self.int64)
        return self.copy(x)

    def narrowed(self, work: Any, x: Any) -> Any:
        """``work`` in the dtype of ``x``."""
        return work if work.dtype == x.dtype else self.xp.astype(work, x.dtype)
