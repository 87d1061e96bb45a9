"""The k-th, the middle, the most frequent, the largest few; running extremes; places in what is in order: samples.

Which of equal elements' indices is reported is part of the contract, so integers and bools, which tie, are as good as
floating values, which do not.
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


# -- one of each row --------------------------------------------------------------------------------------------------
PICKS: Final = ("median_dim", "nanmedian_dim", "mode")
ALONG: Final = (((5,), 0), ((2, 3), 0), ((2, 8), -1), ((2, 17, 3), 1), ((3, 1, 4), -3))


@inputs(*PICKS)
def picks(t: Maker) -> Iterator[Sample]:
    """Odd and even sizes along any dim, kept and not."""
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
    """The first, the last and one between, along any dim."""
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
    """None, some and all, largest and smallest, along any dim. Unsorted results come in order all the same."""
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


def _in_order(found: Any) -> Any:
    """Of an unsorted choice: the values in order."""
    return found[0].sort(-1).values


@inputs("median_all", "nanmedian_all")
def middles(t: Maker) -> Iterator[Sample]:
    """Of an odd and an even number of elements."""
    yield sample(t(5))
    yield sample(t(2, 3))
    yield sample(t(2, 17, 3))
    yield sample(t(), kind=ZERO_DIM)
    yield sample(t(1), kind=LENGTH_ONE)
    if t.is_floating:  # of none it is NaN, which integers do not have
        yield sample(t(0), kind=ZERO_SIZE, gradient=False)
    yield sample(t(3, MANY), kind=LARGE)


@inputs("ordered")
def in_order(t: Maker) -> Iterator[Sample]:
    """Along any dim."""
    for shape, dim in ALONG:
        yield sample(t(*shape), dim, note=f"{shape} {dim}")
    yield sample(t(), 0, kind=ZERO_DIM)
    yield sample(t(1), 0, kind=LENGTH_ONE)
    yield sample(t(2, 0), 1, kind=ZERO_SIZE)
    yield sample(t(2, MANY), 1, kind=LARGE)


@special(*PICKS, "kthvalue", "topk", "ordered", "median_all", "nanmedian_all")
def orders_of_nan(t: Maker) -> Iterator[Sample]:
    """NaN is the largest; infinities are in their places; the zeros are equal."""
    rest: dict[str, tuple[Any, ...]] = {
        "kthvalue": (3, 1), "topk": (2, 1), "ordered": (1,), "median_all": (), "nanmedian_all": (),
    }  # fmt: skip
    arguments = rest.get(t.operator, (1,))
    if t.is_floating:
        one = t.array([[NAN, 1.0, 2.0], [-INF, INF, 0.5], [3.0, 1.0, INF]])
        yield sample(one, *arguments, note="one nan")
        if t.operator != "mode":  # every NaN is distinct there, and no place is the right one
            all_nan = t.array([[NAN, NAN, NAN], [NAN, 2.0, NAN]])
            yield sample(all_nan, *arguments, note="nan only")
        yield sample(t.array([[0.0, -0.0, 0.0], [-0.0, 0.0, 1.0]]), *arguments, of=_positive_zeros, note="zeros")
    if t.is_integer:
        bits = 8 * t.dtype.itemsize
        low, high = (0, (1 << bits) - 1) if t.dtype.name.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)
        whole = np.array([[low, high, 1, low, high], [high, high, 2, low, low]], dtype=t.numpy)
        yield sample(whole, *arguments, note="extremes")


def _positive_zeros(found: Any) -> Any:
    """Which of the two zeros is picked is not said."""
    if isinstance(found, tuple):
        return found[0] + 0.0, found[1]
    return found + 0.0


@mistakes(*PICKS, "kthvalue", "topk", "ordered", "cummax", "cummin", "logcumsumexp")
def no_dim(t: Maker) -> Iterator[Sample]:
    """Dims that are not there, in floating numbers, which each of them takes."""
    x = t.of("float32")(2, 3)
    first = (x, 1) if t.operator in ("kthvalue", "topk") else (x,)
    yield sample(*first, 2, note="dim out of range")
    yield sample(*first, -3, note="dim out of range")
    yield sample([1.0, 2.0], *first[1:], 0, note="a list")


@mistakes(*PICKS)
def no_elements(t: Maker) -> Iterator[Sample]:
    """Of no elements there is no middle one."""
    yield sample(t.of("float32")(2, 0), 1)


@mistakes("kthvalue", "topk")
def too_many(t: Maker) -> Iterator[Sample]:
    """More than there are; the zeroth."""
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
    """Along any dim."""
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
    """After a NaN, NaN, at the place of the last one; infinities stay."""
    if t.is_floating:
        yield sample(t.array([[1.0, NAN, 3.0, NAN, 0.0], [-INF, INF, INF, 1.0, -INF]]), 1)
        yield sample(t.array([NAN, NAN]), 0, note="from the start")
    else:
        yield sample(t.array([[1, 1, 0, 1, 0], [0, 0, 1, 1, 0]]), 1, note="ties")


@special("logcumsumexp")
def running_sums(t: Maker) -> Iterator[Sample]:
    """No overflow of large ones, no -inf of small ones; sums of nothing are -inf."""
    if t.is_floating:
        limit = 800.0 if t.dtype.name == "float64" else 80.0
        yield sample(t.array([limit, limit, -limit]), 0, note="beyond exp")
        yield sample(t.array([-limit, -limit, -limit]), 0, note="below exp")
        yield sample(t.array([[-INF, -INF, 0.0], [1.0, INF, 2.0], [1.0, NAN, 2.0]]), 1, note="not finite")


# -- places -----------------------------------------------------------------------------------------------------------
@inputs("sorted_place")
def places(t: Maker) -> Iterator[Sample]:
    """To the left and right of equal elements; one sequence for values of any shape, and one each."""

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
def places_of_nan(t: Maker) -> Iterator[Sample]:
    """NaN goes to the end, where those of the sequence are."""
    if t.is_floating:
        values = t.array([-INF, -1.0, 0.0, -0.0, INF])
        yield sample(t.array([-INF, 0.0, 0.0, 2.0, INF]), values, False)
        yield sample(t.array([-INF, 0.0, 0.0, 2.0, INF]), values, True)
        yield sample(t.array([0.0, 2.0]), t.array([NAN, 1.0]), True, note="nan")
