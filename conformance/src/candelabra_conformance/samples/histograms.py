"""Samples of counts of integers and of histograms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from candelabra.dtypes import FLOATING

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

NAN, INF = math.nan, math.inf
HISTOGRAMS: Final = ("histogram_bins", "histogram_edges")
MOST: Final = 3.0
only(lambda d: d.category == FLOATING, *HISTOGRAMS)


@inputs("bincount")
def counted(t: Maker) -> Iterator[Sample]:
    """Yield numbers with many and with no occurrences, weights of several dtypes, and a large minimum length."""

    def numbers(size: int) -> Array:
        return t(size, low=0, high=9)

    yield sample(numbers(8))
    yield sample(numbers(17), minlength=20)
    yield sample(numbers(5), t.of("float32")(5, low=0, high=1), note="float32")
    yield sample(numbers(5), t.of("float64")(5, low=0, high=1), 4, note="float64")
    yield sample(numbers(6), t.of("int64")(6, low=0, high=9), note="integers")
    yield sample(numbers(1), kind=LENGTH_ONE)
    yield sample(t(0), kind=ZERO_SIZE)
    yield sample(t(0), t.of("float32")(0), 3, kind=ZERO_SIZE)
    yield sample(numbers(20_001), kind=LARGE)


@mistakes("bincount")
def not_counted(t: Maker) -> Iterator[Sample]:
    """Yield negative numbers, matrices, and weights of another length."""
    whole = t.of("int64")
    yield sample(whole.array([1, -1]), note="negative")
    yield sample(whole.array([[1, 2]]), note="a matrix")
    yield sample(whole.array([1, 2]), t.of("float32")(3), note="weights")
    yield sample(whole.array([1, 2]), minlength=-1, note="minlength")


def _between(t: Maker, *shape: int) -> Array:
    """Return values that are not at an edge of the bins below, nor near one."""
    places = t.random.permutation(math.prod(shape)) % 29
    return np.asarray(t.array((places - 14) / 5 + 0.05).reshape(shape))


EDGES: Final = (-MOST, -1.0, 0.0, 0.5, MOST)


@inputs("histc", *HISTOGRAMS)
def binned(t: Maker) -> Iterator[Sample]:
    """Yield equal bins between limits, and edges, with some values outside."""
    edges: dict[str, tuple[Any, ...]] = {
        "histc": (6, -MOST, MOST), "histogram_bins": (6,), "histogram_edges": (t.array(EDGES),)
    }  # fmt: skip
    options: dict[str, Any] = {"range": (-MOST, MOST)} if t.operator == "histogram_bins" else {}
    rest = edges[t.operator]
    plain: dict[str, Any] = {"gradient": False}
    yield sample(_between(t, 8), *rest, **options, **plain)
    yield sample(_between(t, 2, 17), *rest, **options, **plain)
    yield sample(_between(t, 3, 4, 2), *rest, **options, **plain)
    if t.operator != "histogram_edges":
        yield sample(t.array([0.0, 1.0, 2.0, 4.0, 4.0]), 4, note="the extrema of the elements", **plain)
        yield sample(t.array([2.0, 2.0]), 2, note="one value", **plain)
    if t.operator == "histc":
        yield sample(_between(t, 9), bins=3, min=-1, max=2, **plain)
    else:
        other = {"histogram_bins": (3,), "histogram_edges": (t.array([-2.0, 2.0]),)}[t.operator]
        yield sample(_between(t, 9), *other, weight=t.array(np.arange(9) / 4), **options, **plain)
        yield sample(_between(t, 9), *rest, density=True, **options, **plain)
    yield sample(_between(t), *rest, kind=ZERO_DIM, **options, **plain)
    yield sample(_between(t, 1), *rest, kind=LENGTH_ONE, **options, **plain)
    yield sample(t(0, 3), *rest, kind=ZERO_SIZE, **options, **plain)
    if t.dtype.itemsize > 2:  # half precision cannot represent the counts
        yield sample(_between(t, 20_001), *rest, kind=LARGE, **options, **plain)


@special("histc", *HISTOGRAMS)
def at_the_edges(t: Maker) -> Iterator[Sample]:
    """Yield values at the upper edge, which the last bin includes, NaN and infinities, which are not counted."""
    values = t.array([-1.0, 0.0, 1.0, 1.0, NAN, INF, -INF, 0.5, -0.0])
    if t.operator == "histc":
        yield sample(values, 4, -1, 1)
    elif t.operator == "histogram_bins":
        yield sample(values, 4, range=(-1, 1))
    else:
        yield sample(values, t.array([-1.0, 0.0, 0.5, 1.0]))


@mistakes("histc")
def no_bins(t: Maker) -> Iterator[Sample]:
    """Yield no bins, reversed limits, and infinite ones."""
    x = t.of("float32")
    yield sample(x(3), 0, note="bins")
    yield sample(x(3), 2, 3, 1, note="min > max")
    yield sample(x(3), 2, 0, INF, note="infinite")
    yield sample(x.array([NAN, 1.0]), 2, note="extrema that are NaN")


@mistakes(*HISTOGRAMS)
def no_histogram(t: Maker) -> Iterator[Sample]:
    """Yield no bins or edges, reversed limits, and weights that do not match."""
    x = t.of("float32")
    if t.operator == "histogram_bins":
        yield sample(x(3), 0, note="bins")
        yield sample(x(3), 2, range=(2, 0), note="min > max")
        yield sample(x(3), 2, range=(0, INF), note="infinite")
        yield sample(x.array([NAN, 1.0]), 2, note="extrema that are NaN")
    else:
        yield sample(x(3), x(2, 2), note="a matrix of edges")
        yield sample(x(3), x(0), note="no edges")
        yield sample(x(3), t.of("float64")(2), note="edges in another dtype")
    edges = 2 if t.operator == "histogram_bins" else x.array([0.0, 1.0])
    yield sample(x(3), edges, weight=x(2), note="weights of another shape")
    yield sample(x(3), edges, weight=t.of("float64")(3), note="weights in another dtype")


@inputs("histogramdd")
def in_several_dims(t: Maker) -> Iterator[Sample]:
    """Yield a number of bins, one per dim, and edges, with limits, weights and density."""
    if not t.is_floating:
        return
    plain: dict[str, Any] = {"gradient": False}
    yield sample(_between(t, 9, 2), 3, (-MOST, MOST, -MOST, MOST), **plain)
    yield sample(_between(t, 2, 4, 3), [2, 3, 1], (-MOST, MOST) * 3, note="rows of points", **plain)
    yield sample(_between(t, 9, 2), [t.array(EDGES), t.array([-2.0, 2.0])], note="edges", **plain)
    weight = t.array(np.arange(9) / 4)
    yield sample(_between(t, 9, 1), 4, (-MOST, MOST), weight, True, note="weights and density", **plain)
    yield sample(t.array([[0.0, 2.0], [1.0, 2.0], [4.0, 3.0]]), 2, note="the extrema", **plain)
    yield sample(t(0, 2), 2, kind=ZERO_SIZE, **plain)


@mistakes("histogramdd")
def no_histogram_in_several_dims(t: Maker) -> Iterator[Sample]:
    """Yield a vector, and other numbers of bins or limits than dims."""
    x = t.of("float32")
    yield sample(x(3), 2, note="a vector")
    yield sample(x(3, 2), [2], note="bins for one dim")
    yield sample(x(3, 2), 2, (0, 1), note="limits for one dim")
