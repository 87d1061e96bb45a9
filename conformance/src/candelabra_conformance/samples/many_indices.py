"""Samples of more than 2**18 indices, and of an index out of bounds in the last of many blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.many_elements import MANY
from candelabra_conformance.samples.many_rows import PLAIN, ROWS, cycle
from candelabra_conformance.samples.registry import bounds, sizes
from candelabra_conformance.samples.sample import Sample, sample

LARGE: Final = 1009
"""The size of the dim that is indexed."""


def jumping(count: int, below: int) -> Array:
    """Return indices that visit a dim in jumps."""
    return ((np.arange(count) * 7919) % below).astype(np.int64)


@sizes("gather", "index_select")
def gathered(t: Maker) -> Iterator[Sample]:
    """Yield more than 2**18 results, and many rows."""
    yield sample(cycle(t, LARGE), 0, jumping(MANY, LARGE), note="many indices", **PLAIN)
    if t.operator == "gather":
        yield sample(cycle(t, ROWS, 3), 1, jumping(2 * ROWS, 3).reshape(ROWS, 2), note="rows", **PLAIN)
    else:
        yield sample(cycle(t, ROWS, 2), 1, t.index(1, 0, 1), note="rows", **PLAIN)


@sizes("index")
def indexed(t: Maker) -> Iterator[Sample]:
    """Yield more than 2**18 results, of one dim and of two."""
    yield sample(cycle(t, LARGE), (jumping(MANY, LARGE),), note="one dim", **PLAIN)
    yield sample(cycle(t, LARGE, 3), (jumping(ROWS, LARGE), jumping(ROWS, 3)), note="two dims", **PLAIN)


@sizes("embedding")
def embedded(t: Maker) -> Iterator[Sample]:
    """Yield many indices."""
    yield sample(cycle(t, LARGE, 3), jumping(ROWS, LARGE), **PLAIN)


@sizes("index_put")
def put(t: Maker) -> Iterator[Sample]:
    """Yield more than 2**18 distinct indices, and additions at a few."""
    yield sample(cycle(t, MANY), (jumping(MANY, MANY),), cycle(t, MANY, period=5), note="distinct", **PLAIN)
    yield sample(cycle(t, 5), (jumping(MANY, 5),), cycle(t, MANY, period=5), True, note="added", **PLAIN)


@sizes("scatter_src")
def scattered(t: Maker) -> Iterator[Sample]:
    """Yield more than 2**18 distinct indices."""
    yield sample(cycle(t, MANY), 0, jumping(MANY, MANY), cycle(t, MANY, period=5), **PLAIN)


@sizes("scatter_add", "index_add", dtypes=("float32", "uint8", "int64"))
def added(t: Maker) -> Iterator[Sample]:
    """Yield more than 2**18 additions at a few indices. Sums of bytes wrap, but leave the neighbouring bytes."""
    yield sample(cycle(t, 5), 0, jumping(MANY, 5), np.ones(MANY, t.numpy), **PLAIN)


@sizes("scatter_extreme")
def extremes(t: Maker) -> Iterator[Sample]:
    """Yield more than 2**18 elements for a few indices, the last of which is the extreme."""
    source = t.array(np.arange(MANY) % 1000)
    source[-1] = 2000
    yield sample(cycle(t, 5), 0, jumping(MANY, 5), source, "amax", True, **PLAIN)


# -- out of bounds ----------------------------------------------------------------------------------------------------
def _wrong_at_the_end(below: int, wrong: int) -> Array:
    index = jumping(ROWS, below)
    index[-1] = wrong
    return index


@bounds("gather", "index_select", "scatter_src", "scatter_add", "scatter_extreme", "index_add")
def last_index_of_a_dim(t: Maker) -> Iterator[Sample]:
    """Yield the first index that is out of bounds, and a negative one, at the end of many."""
    source = () if t.operator in ("gather", "index_select") else (t(ROWS),)
    more = ("amax", True) if t.operator == "scatter_extreme" else ()
    for wrong in (LARGE, -1):
        index = _wrong_at_the_end(LARGE, wrong)
        yield sample(t(LARGE), 0, index, *source, *more, note=f"{wrong} at the end")


@bounds("index", "index_put")
def last_index(t: Maker) -> Iterator[Sample]:
    """Yield the first indices out of bounds on either side, at the end of many."""
    source = (t(ROWS),) if t.operator == "index_put" else ()
    for wrong in (LARGE, -LARGE - 1):
        yield sample(t(LARGE), (_wrong_at_the_end(LARGE, wrong),), *source, note=f"{wrong} at the end")


@bounds("embedding")
def last_row(t: Maker) -> Iterator[Sample]:
    """Yield the first index out of bounds, at the end of many."""
    yield sample(t(LARGE, 2), _wrong_at_the_end(LARGE, LARGE), note="at the end")
