"""Samples of order statistics, top k, running extremes, sorting and binary search.

The contract specifies the index that is returned for equal elements, so integers and bools, which have ties, are as
important as floating values, which have none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from candelabra_conformance.samples.conditioned import cast
from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

NAN, INF = math.nan, math.inf
MANY: Final = 20_001


# -- one element per row ----------------------------------------------------------------------------------------------
PICKS: Final = ("median_dim", "nanmedian_dim", "mode")
ALONG: Final = (((5,), 0), ((2, 3), 0), ((2, 8), -1), ((2, 17, 3), 1), ((3, 1, 4), -3))


@inputs(*PICKS)
def picks(t: Maker) -> Iterator[Sample]:
    """Yield odd and even sizes, any dim, and ``keepdim``."""
    for shape, dim in ALONG:
        for keep in (False, True):
            yield sample(t(*shape), dim, keep, note=f"{shape} {dim} {keep}")
    if t.operator == "mode":
        yield sample(t(3, 4), note="the default dim")
        yield sample(t.array([[2, 1, 1, 0, 2], [0, 0, 1, 1, 1]]), -1, gradient=False, note="several of a kind")
    yield sample(t(), 0, kind=ZERO_DIM)
    yield sample(t(2, 1), -1, kind=LENGTH_ONE)
    yield sample(t(0, 3), 1, kind=ZERO_SIZE)
    yield sample(t(2, MANY), 1, kind=LARGE)


@inputs("kthvalue")
def kth(t: Maker) -> Iterator[Sample]:
    """Yield the first, the last and one between, along any dim."""
    for shape, dim in ALONG:
        for k in sorted({1, (shape[dim] + 1) // 2, shape[dim]}):
            yield sample(t(*shape), k, dim, k % 2 == 0, note=f"{k} of {shape} {dim}")
    yield sample(t(3, 4), 2, note="the default dim")
    yield sample(t(3, 4), 3, 0, keepdim=True)
    yield sample(t(), 1, kind=ZERO_DIM)
    yield sample(t(2, 1), 1, kind=LENGTH_ONE)
    yield sample(t(0, 3), 2, 1, kind=ZERO_SIZE)
    yield sample(t(2, MANY), 777, kind=LARGE)


@inputs("topk")
def largest(t: Maker) -> Iterator[Sample]:
    """Yield none, some and all, largest and smallest, along any dim. Unsorted results are sorted to compare them."""
    for shape, dim in ALONG:
        for k in sorted({1, (shape[dim] + 1) // 2, shape[dim]}):
            yield sample(t(*shape), k, dim, k % 2 == 1, note=f"{k} of {shape} {dim}")
    yield sample(t(3, 8), 4, largest=False, note="the smallest")
    yield sample(t(3, 8), 5, 1, True, False, of=_in_order, note="unsorted")
    yield sample(t(), 1, kind=ZERO_DIM)
    yield sample(t(2, 1), 1, kind=LENGTH_ONE)
    yield sample(t(2, 3), 0, kind=ZERO_SIZE, note="none of them")
    yield sample(t(0, 3), 2, kind=ZERO_SIZE)
    yield sample(t(2, MANY), 33, kind=LARGE)


def _in_order(result: Any) -> Any:
    """Return the values of an unsorted result in order."""
    return result[0].sort(-1).values


@inputs("median_all", "nanmedian_all")
def middles(t: Maker) -> Iterator[Sample]:
    """Yield an odd and an even number of elements."""
    yield sample(t(5))
    yield sample(t(2, 3))
    yield sample(t(2, 17, 3))
    yield sample(t(), kind=ZERO_DIM)
    yield sample(t(1), kind=LENGTH_ONE)
    if t.is_floating:  # the result without elements is NaN, which integers cannot represent
        yield sample(t(0), kind=ZERO_SIZE, gradient=False)
    yield sample(t(3, MANY), kind=LARGE)


@inputs("ordered")
def in_order(t: Maker) -> Iterator[Sample]:
    """Yield any dim."""
    for shape, dim in ALONG:
        yield sample(t(*shape), dim, note=f"{shape} {dim}")
    yield sample(t(), 0, kind=ZERO_DIM)
    yield sample(t(1), 0, kind=LENGTH_ONE)
    yield sample(t(2, 0), 1, kind=ZERO_SIZE)
    yield sample(t(2, MANY), 1, kind=LARGE)


@special(*PICKS, "kthvalue", "topk", "ordered", "median_all", "nanmedian_all")
def orders_of_nan(t: Maker) -> Iterator[Sample]:
    """Yield NaN, which is the largest, infinities, and both zeros, which are equal."""
    rest: dict[str, tuple[Any, ...]] = {
        "kthvalue": (3, 1), "topk": (2, 1), "ordered": (1,), "median_all": (), "nanmedian_all": (),
    }  # fmt: skip
    arguments = rest.get(t.operator, (1,))
    if t.is_floating:
        one = t.array([[NAN, 1.0, 2.0], [-INF, INF, 0.5], [3.0, 1.0, INF]])
        yield sample(one, *arguments, note="one nan")
        if t.operator != "mode":  # for mode every NaN is distinct, so that no index is specified
            all_nan = t.array([[NAN, NAN, NAN], [NAN, 2.0, NAN]])
            yield sample(all_nan, *arguments, note="nan only")
        yield sample(t.array([[0.0, -0.0, 0.0], [-0.0, 0.0, 1.0]]), *arguments, of=_positive_zeros, note="zeros")
    if t.is_integer:
        bits = 8 * t.dtype.itemsize
        low, high = (0, (1 << bits) - 1) if t.dtype.name.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)
        whole = np.array([[low, high, 1, low, high], [high, high, 2, low, low]], dtype=t.numpy)
        yield sample(whole, *arguments, note="extremes")


def _positive_zeros(result: Any) -> Any:
    """Return the values with positive zeros, since either of two zeros may be selected."""
    if isinstance(result, tuple):
        return result[0] + 0.0, result[1]
    return result + 0.0


@mistakes(*PICKS, "kthvalue", "topk", "ordered", "cummax", "cummin", "logcumsumexp")
def no_dim(t: Maker) -> Iterator[Sample]:
    """Yield dims out of range and a list, in a floating dtype, which all of these operators accept."""
    x = t.of("float32")(2, 3)
    first = (x, 1) if t.operator in ("kthvalue", "topk") else (x,)
    yield sample(*first, 2, note="dim out of range")
    yield sample(*first, -3, note="dim out of range")
    yield sample([1.0, 2.0], *first[1:], 0, note="a list")


@mistakes(*PICKS)
def no_elements(t: Maker) -> Iterator[Sample]:
    """Yield tensors without elements, which have no median."""
    yield sample(t.of("float32")(2, 0), 1)


@mistakes("kthvalue", "topk")
def too_many(t: Maker) -> Iterator[Sample]:
    """Yield a k above the number of elements, and 0."""
    x = t.of("float32")
    yield sample(x(2, 3), 4, note="more than there are")
    yield sample(x(2, 3), 3, 0, note="more than there are in the first dim")
    yield sample(x(2, 3), -1, note="negative")
    yield sample(x(), 2, note="of a number")
    if t.operator == "kthvalue":
        yield sample(x(2, 3), 0, note="the zeroth")
    else:
        yield sample(t.of("bool")(2, 3), 1, note="bools")


# -- running ----------------------------------------------------------------------------------------------------------
RUNNING: Final = ("cummax", "cummin", "logcumsumexp")


@inputs(*RUNNING)
def running(t: Maker) -> Iterator[Sample]:
    """Yield any dim."""
    for shape, dim in ALONG:
        yield sample(t(*shape), dim, note=f"{shape} {dim}")
    yield sample(t(4, 33), dim=1)
    yield sample(t(), 0, kind=ZERO_DIM)
    yield sample(t(1), -1, kind=LENGTH_ONE)
    yield sample(t(2, 0), 1, kind=ZERO_SIZE)
    yield sample(t(0, 3), 1, kind=ZERO_SIZE)
    yield sample(t(2, MANY), 1, kind=LARGE)


@special("cummax", "cummin")
def running_nan(t: Maker) -> Iterator[Sample]:
    """Yield NaN, after which the results are NaN with the index of the last one, and infinities."""
    if t.is_floating:
        yield sample(t.array([[1.0, NAN, 3.0, NAN, 0.0], [-INF, INF, INF, 1.0, -INF]]), 1)
        yield sample(t.array([NAN, NAN]), 0, note="from the start")
    else:
        yield sample(t.array([[1, 1, 0, 1, 0], [0, 0, 1, 1, 0]]), 1, note="ties")


@special("logcumsumexp")
def running_sums(t: Maker) -> Iterator[Sample]:
    """Yield large numbers, which must not overflow, small ones, which must not become -inf, and empty sums, which are
    -inf."""
    if t.is_floating:
        limit = 800.0 if t.dtype.name == "float64" else 80.0
        yield sample(t.array([limit, limit, -limit]), 0, note="beyond exp")
        yield sample(t.array([-limit, -limit, -limit]), 0, note="below exp")
        yield sample(t.array([[-INF, -INF, 0.0], [1.0, INF, 2.0], [1.0, NAN, 2.0]]), 1, note="not finite")


# -- binary search ----------------------------------------------------------------------------------------------------
@inputs("sorted_place")
def insertion_indices(t: Maker) -> Iterator[Sample]:
    """Yield both sides of equal elements, one sequence for values of any shape, and one sequence each."""

    def rising(*shape: int) -> Array:
        return cast(t, np.sort(t(*shape).real.astype(np.float64), -1))

    for right in (False, True):
        yield sample(rising(5), t(7), right, note=f"{right}")
        yield sample(rising(17), t(2, 3), right, core=1, note=f"a matrix {right}")
        yield sample(rising(2, 8), t(2, 3), right, core=1, note=f"one each {right}")
        row = rising(5)
        yield sample(row, row.copy(), right, note=f"equal elements {right}")
    yield sample(rising(2, 3, 4), t(2, 3, 5), False, core=1)
    yield sample(rising(3), t(), True, kind=ZERO_DIM)
    yield sample(rising(1), t(1), False, kind=LENGTH_ONE)
    yield sample(rising(0), t(3), True, kind=ZERO_SIZE)
    yield sample(rising(3), t(0, 2), False, kind=ZERO_SIZE)
    yield sample(rising(4001), t(MANY), True, kind=LARGE)


@special("sorted_place")
def insertion_indices_of_nan(t: Maker) -> Iterator[Sample]:
    """Yield NaN, whose index is at the end, with those of the sequence."""
    if t.is_floating:
        values = t.array([-INF, -1.0, 0.0, -0.0, INF])
        yield sample(t.array([-INF, 0.0, 0.0, 2.0, INF]), values, False)
        yield sample(t.array([-INF, 0.0, 0.0, 2.0, INF]), values, True)
        yield sample(t.array([0.0, 2.0]), t.array([NAN, 1.0]), True, note="nan")
