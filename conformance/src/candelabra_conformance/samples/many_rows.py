"""Samples of more rows, columns and batches than 65,535, the largest grid dimension of many devices.

All values are small integers, so that the results are exact and their check needs no perturbed answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, Final

import numpy as np

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import sizes
from candelabra_conformance.samples.sample import Sample, sample

ROWS: Final = 65_539
"""A prime number of rows beyond 65,535."""
PLAIN: Final = {"gradient": False}


def cycle(t: Maker, *shape: int, period: int = 7) -> Array:
    """Return integers that repeat with a period that no block size has: from -3 to 3, or from 0 if unsigned."""
    whole = np.arange(prod(shape)) % period
    if t.is_bool:
        return np.asarray(whole == 0).reshape(shape)
    least = 0 if t.is_integer and not t.dtype.is_signed else -(period // 2)
    return t.array((whole + least).reshape(shape))


@sizes("add", "where", "lt")
def broadcast_rows(t: Maker) -> Iterator[Sample]:
    """Yield rows that are combined with one row, with a column, and with more columns than a grid has."""
    mask = (np.arange(ROWS).reshape(-1, 1) % 5 < 2,) if t.operator == "where" else ()
    yield sample(*mask, cycle(t, ROWS, 3), cycle(t, 3), note="a row", **PLAIN)
    yield sample(*mask, cycle(t, ROWS, 1), cycle(t, 3, period=5), note="a column by a row", **PLAIN)


@sizes("sum", "mean", "amax", "amin", "all", "any")
def reduced_rows(t: Maker) -> Iterator[Sample]:
    """Yield many short rows, many short columns, and a long dim between two others."""
    yield sample(cycle(t, ROWS, 4), (1,), note="rows", **PLAIN)
    yield sample(cycle(t, 4, ROWS), (0,), note="columns", **PLAIN)
    yield sample(cycle(t, 2, ROWS, 2), (1,) if t.operator != "mean" else (0, 2), note="in between", **PLAIN)


@sizes("argmax", "argmin", "max_dim", "min_dim", "sort", "argsort", "median_dim", "mode")
def ordered_rows(t: Maker) -> Iterator[Sample]:
    """Yield many short rows and columns without ties."""
    yield sample(cycle(t, ROWS, 3), 1, note="rows", **PLAIN)
    if t.operator not in ("median_dim", "mode"):  # composites, and the reference takes long
        yield sample(cycle(t, 3, ROWS), 0, note="columns", **PLAIN)


@sizes("kthvalue", "topk")
def picked_rows(t: Maker) -> Iterator[Sample]:
    """Yield many short rows without ties."""
    yield sample(cycle(t, ROWS, 4), 2, 1, note="rows", **PLAIN)


@sizes("cumsum", "cummax", "cummin")
def scanned_rows(t: Maker) -> Iterator[Sample]:
    """Yield many short rows and columns."""
    yield sample(cycle(t, ROWS, 4), 1, note="rows", **PLAIN)
    yield sample(cycle(t, 4, ROWS), 0, note="columns", **PLAIN)


@sizes("softmax", "log_softmax")
def normalized_rows(t: Maker) -> Iterator[Sample]:
    """Yield many short rows."""
    yield sample(cycle(t, ROWS, 3), 1, note="rows", **PLAIN)


@sizes("matmul")
def many_products(t: Maker) -> Iterator[Sample]:
    """Yield a batch of many matrices, a matrix of many rows, and one of many columns."""
    yield sample(cycle(t, ROWS, 1, 2), cycle(t, ROWS, 2, 1, period=5), core=2, note="a batch", **PLAIN)
    yield sample(cycle(t, ROWS, 2), cycle(t, 2, 3), core=2, note="rows", **PLAIN)
    yield sample(cycle(t, 3, 2), cycle(t, 2, ROWS), core=2, note="columns", **PLAIN)


@sizes("matmul", "dot")
def long_sums(t: Maker) -> Iterator[Sample]:
    """Yield a sum of 50,001 products of one sign, whose rounding errors accumulate."""
    yield sample(t(50_001, low=0.1, high=1.0), t(50_001, low=0.1, high=1.0), note="one sign", **PLAIN)


@sizes("scatter_add", "index_add")
def long_additions(t: Maker) -> Iterator[Sample]:
    """Yield 50,001 terms of one sign for one element, whose rounding errors accumulate."""
    if t.is_floating:
        terms = t(50_001, low=0.1, high=1.0)
        yield sample(t(3), 0, np.zeros(50_001, np.int64), terms, note="one sign", **PLAIN)


@sizes("bmm", "baddbmm")
def batches(t: Maker) -> Iterator[Sample]:
    """Yield a batch of many matrices."""
    added = (cycle(t, ROWS, 1, 1),) if t.operator == "baddbmm" else ()
    yield sample(*added, cycle(t, ROWS, 1, 2), cycle(t, ROWS, 2, 1, period=5), core=2, note="a batch", **PLAIN)


@sizes("cat")
def joined(t: Maker) -> Iterator[Sample]:
    """Yield many rows, and more tensors than a kernel has arguments."""
    yield sample((cycle(t, ROWS, 2), cycle(t, ROWS, 1, period=5)), 1, note="rows", **PLAIN)
    yield sample([t.array([i % 7, i % 5, i % 3]) for i in range(300)], 0, note="300 tensors", **PLAIN)


@sizes("stack")
def stacked(t: Maker) -> Iterator[Sample]:
    """Yield many small tensors."""
    yield sample([t.array([i % 7, i % 5, i % 3]) for i in range(300)], 0, note="300 tensors", **PLAIN)


@sizes("tril", "triu")
def triangles(t: Maker) -> Iterator[Sample]:
    """Yield a batch of many matrices, and a matrix of many rows."""
    yield sample(cycle(t, ROWS, 2, 2), note="a batch", **PLAIN)
    yield sample(cycle(t, ROWS, 3), -ROWS + 2, note="rows", **PLAIN)


@sizes("flip", "roll")
def moved_rows(t: Maker) -> Iterator[Sample]:
    """Yield many rows, moved along either dim."""
    for dim in (0, 1):
        rest: tuple[Any, ...] = ((dim,),) if t.operator == "flip" else (1, dim)
        yield sample(cycle(t, ROWS, 3), *rest, note=f"dim {dim}", **PLAIN)


@sizes("conv")
def convolved_batch(t: Maker) -> Iterator[Sample]:
    """Yield a batch of many signals, and a long signal."""
    for shape in ((ROWS, 1, 3), (1, 1, ROWS + 1)):
        yield sample(cycle(t, *shape), cycle(t, 1, 1, 2), None, (1,), (0,), (1,), 1, note=f"{shape}", **PLAIN)


@sizes("max_pool", "sum_pool")
def pooled_batch(t: Maker) -> Iterator[Sample]:
    """Yield a batch of many signals."""
    yield sample(cycle(t, ROWS, 1, 2), (2,), (2,), (0,), (1,), (1,), **PLAIN)


@sizes("normalize")
def normalized_batch(t: Maker) -> Iterator[Sample]:
    """Yield many short rows."""
    yield sample(cycle(t, ROWS, 4), None, None, (1,), 0.5, note="rows", **PLAIN)


@sizes("fft_c2c", dtypes=("complex64",))
def transformed_batch(t: Maker) -> Iterator[Sample]:
    """Yield many signals of two points, whose transforms are exact."""
    yield sample(cycle(t, ROWS, 2), (1,), "backward", True, note="rows", **PLAIN)


@sizes("linalg_cholesky_ex")
def factored_batch(t: Maker) -> Iterator[Sample]:
    """Yield many matrices of one element, a power of two, whose results are exact."""
    matrices = t.array(4.0 ** (np.arange(ROWS) % 5 - 2)).reshape(ROWS, 1, 1)
    yield sample(matrices, note="a batch", **PLAIN)
