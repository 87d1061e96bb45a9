"""searchsorted, nonzero and unravel_index; histograms and counts, compared with NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._operators.searching.sorted_search import sorted_place
from candelabra._operators.statistics.histograms import tally

from tests.operators.comparing import close, same

NAN, INF = float("nan"), float("inf")


# -- searchsorted -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted_is_numpys(dtype: str, right: bool, rng: np.random.Generator) -> None:
    """The sequence is a vector for values of any shape, or has a row per row of values; kernel and bisection agree."""
    side: Any = "right" if right else "left"
    a, v = np.sort(rng.integers(0, 30, (2, 3, 20)), -1), rng.integers(0, 33, (2, 3, 7))
    x, w = (cd.tensor(t).to(getattr(cd, dtype)) for t in (a, v))
    rows = np.array([[np.searchsorted(s, q, side) for s, q in zip(*m, strict=True)] for m in zip(a, v, strict=True)])
    same(cd.searchsorted(x, w, right=right), rows, cd.int64)
    same(sorted_place.body(x, w, right), rows)
    line = np.searchsorted(a[0, 0], v, side)
    same(cd.searchsorted(x[0, 0], w, side=side), line)
    same(cd.bucketize(w, x[0, 0], right=right, out_int32=True), line, cd.int32)
    same(sorted_place.body(x[0, 0], w, right), line)


def test_searchsorted_of_numbers_nan_and_nothing() -> None:
    """A number gives a 0-d tensor, NaN is at the end, and indices in an empty sequence are 0."""
    x = cd.tensor([1.0, 2.0, 2.0, INF])
    same(cd.searchsorted(x, 2), 1)
    same(cd.searchsorted(x, 2.0, right=True), 3)
    same(cd.bucketize(-INF, x), 0)
    same(cd.searchsorted(x, cd.tensor([NAN, INF])), [4, 3])
    same(sorted_place.body(x, cd.tensor([NAN, INF]), False), [4, 3])
    same(cd.searchsorted(cd.tensor([1.0, NAN]), NAN), 2)
    same(cd.searchsorted(cd.zeros(0), cd.tensor([[1.0]])), [[0]])
    same(sorted_place.body(cd.zeros(0), cd.tensor([[1.0]]), False), [[0]])
    same(cd.searchsorted(x, cd.zeros(0)), np.zeros(0))
    same(cd.searchsorted(cd.zeros(3, 0), cd.ones(3, 2)), np.zeros((3, 2)))
    same(cd.searchsorted(cd.tensor([1, 3]), cd.tensor([1.5, 3.5])), [1, 2])
    same(cd.searchsorted(cd.tensor([1, 3]), 2.5), 1)


def test_searchsorted_through_an_order_and_into_out() -> None:
    """``sorter`` is the result of ``argsort``."""
    x = cd.tensor([[5.0, 1.0, 3.0], [2.0, 9.0, 4.0]])
    v = cd.tensor([[2.0, 6.0], [3.0, 1.0]])
    same(cd.searchsorted(x, v, sorter=x.argsort()), [[1, 3], [1, 0]])
    out = cd.zeros(2, 2, dtype=cd.int64)
    assert cd.searchsorted(x.sort().values, v, out=out) is out
    same(out, [[1, 3], [1, 0]])


# -- indices ----------------------------------------------------------------------------------------------------------
def test_nonzero_static_has_the_size_that_is_asked_for() -> None:
    """The result is truncated or padded."""
    x = cd.tensor([[0, 1], [2, 0]])
    same(x.nonzero_static(size=3), [[0, 1], [1, 0], [-1, -1]], cd.int64)
    same(cd.nonzero_static(x, size=1, fill_value=7), [[0, 1]])
    same(cd.nonzero_static(cd.zeros(3), size=2, fill_value=7), [[7], [7]])
    same(cd.tensor(2).nonzero_static(size=2), np.zeros((2, 0)))
    out = cd.zeros(1, 2, dtype=cd.int64)
    assert cd.nonzero_static(x, size=1, out=out) is out


def test_unravel_index_is_numpys(rng: np.random.Generator) -> None:
    """The result is int64 for indices of any shape; an int is a shape with one dim."""
    a = rng.integers(0, 60, (2, 5))
    for found, expected in zip(
        cd.unravel_index(cd.tensor(a, dtype=cd.int32), (3, 4, 5)), np.unravel_index(a, (3, 4, 5)), strict=True
    ):
        same(found, expected, cd.int64)
    same(cd.unravel_index(cd.tensor(3), 4)[0], 3)
    same(cd.unravel_index(cd.tensor([250], dtype=cd.uint8), (1000, 2))[0], [125])


@pytest.mark.parametrize("device", ["cpu", "lantern"])
@pytest.mark.parametrize("dtype", ["bool", "int16", "int64"])
def test_tallies_of_whole_weights_are_int64(lantern: Any, dtype: str, device: str) -> None:
    """This equals the dtype of sums of integers; complex weights are refused."""
    places, weights = cd.tensor([1, 1, 0], device=device), cd.ones(3, device=device)
    found = tally.function(places, weights.to(getattr(cd, dtype)), 3)
    assert found.dtype is cd.int64
    assert found.tolist() == [1, 2, 0]
    with pytest.raises(NotImplementedError, match="\"tally\" not implemented for 'ComplexFloat'"):
        tally.function(places, weights.to(cd.complex64), 3)


# -- counting ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_bincount_is_numpys(dtype: str, rng: np.random.Generator) -> None:
    """Counts are int64; weights are summed in float32, otherwise in float64."""
    a = rng.integers(0, 9, 50).astype(dtype)
    w = rng.normal(size=50)
    x = cd.tensor(a)
    same(x.bincount(), np.bincount(a), cd.int64)
    same(cd.bincount(x, minlength=20), np.bincount(a, minlength=20))
    close(cd.bincount(x, cd.tensor(w)), np.bincount(a, w), dtype=cd.float64)
    close(cd.bincount(x, cd.tensor(w, dtype=cd.float32)), np.bincount(a, w), rtol=1e-4, dtype=cd.float32)
    same(cd.bincount(x, x), np.bincount(a, a), cd.float64)
    same(cd.tensor([], dtype=cd.int64).bincount(minlength=2), [0, 0], cd.int64)


def test_tally_agrees_with_its_composition() -> None:
    """Kernel and body agree with integer weights, floating ones and without weights."""
    from candelabra._operators.statistics.histograms import tally

    places = cd.tensor([0, 2, 2, 5])
    for weights in (None, cd.tensor([1, 2, 3, 4]), cd.tensor([0.5, 0.25, 1.0, 2.0])):
        same(tally(places, weights, 7), tally.body(places, weights, 7).numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_histc_is_numpys(dtype: str, rng: np.random.Generator) -> None:
    """The result has the input's dtype; values outside explicit limits, and NaN, are ignored."""
    a = rng.normal(size=(20, 5)).astype(dtype)
    x = cd.tensor(a)
    same(x.histc(7), np.histogram(a, 7)[0], getattr(cd, dtype))
    same(cd.histc(x, 4, min=-1, max=0.5), np.histogram(a, 4, (-1, 0.5))[0])
    same(cd.histc(cd.tensor([1.0, NAN, 2.0, INF, 0.5, 0.0]), 2, 0, 2), [2, 2])
    same(cd.histc(cd.ones(3), 2), [0, 3])
    same(cd.histc(cd.zeros(0), 3), [0, 0, 0])
    same(cd.histc(cd.tensor([0.0, 1.0, 0.999]).to(cd.float16), 2, 0, 1).float(), [1, 2])
    out = cd.zeros(7, dtype=getattr(cd, dtype))
    assert cd.histc(x, 7, out=out) is out


@pytest.mark.parametrize("bins", [5, [-2.0, -0.5, 0.0, 0.3, 4.0]])
@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_histogram_is_numpys(bins: Any, density: bool, weighted: bool, rng: np.random.Generator) -> None:
    """Equal bins, given edges, weights and densities agree."""
    a, w = rng.normal(size=(6, 7)), rng.random((6, 7))
    limits = (-1.0, 2.0) if isinstance(bins, int) else None
    expected = np.histogram(a, bins, range=limits, weights=w if weighted else None, density=density)
    given = bins if isinstance(bins, int) else cd.tensor(bins, dtype=cd.float64)
    options: dict[str, Any] = {"density": density} | ({"range": limits} if limits else {})
    found = cd.tensor(a).histogram(given, weight=cd.tensor(w) if weighted else None, **options)
    close(found.hist, expected[0])
    close(found.bin_edges, expected[1])


def test_histogram_takes_the_extremes_of_the_elements() -> None:
    """A single distinct element, or none, has default limits."""
    same(cd.histogram(cd.tensor([1.0, 2.0, 4.0]), 3).hist, [1, 1, 1])
    same(cd.histogram(cd.ones(3), 2).bin_edges, [0.5, 1, 1.5])
    same(cd.histogram(cd.zeros(0), 2).bin_edges, [0, 0.5, 1])
    assert tuple(cd.tensor([1.0]).histogram().hist.shape) == (100,)
    out = (cd.zeros(2), cd.zeros(3))
    assert cd.histogram(cd.ones(3), 2, out=out).hist is out[0]


def test_histogramdd_is_numpys(rng: np.random.Generator) -> None:
    """Bins for all dims or per dim, edges, limits, weights and densities agree."""
    a, w = rng.normal(size=(40, 3)), rng.random(40)
    x = cd.tensor(a)
    for bins in (3, (2, 3, 4)):
        expected, edges = np.histogramdd(a, bins)
        found = cd.histogramdd(x, bins)
        same(found.hist, expected)
        for mine, theirs in zip(found.bin_edges, edges, strict=True):
            close(mine, theirs)
    limits = [(-1.0, 1.0), (-0.5, 2.0), (0.0, 1.0)]
    expected, _ = np.histogramdd(a, (2, 2, 2), range=limits, weights=w, density=True)
    close(cd.histogramdd(x, [2, 2, 2], sum(limits, ()), cd.tensor(w), True).hist, expected)
    lines = [np.array([-1.0, 0.0, 2.0])] * 3
    expected, _ = np.histogramdd(a, lines)
    same(cd.histogramdd(x.reshape(4, 10, 3), [cd.tensor(line) for line in lines]).hist, expected)
    same(cd.histogramdd(cd.ones(2, 0), []).hist, 0)


# -- errors -----------------------------------------------------------------------------------------------------------
def _ones(*shape: int, dtype: str = "float32") -> Any:
    return cd.ones(*shape, dtype=getattr(cd, dtype))


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "side": (lambda: cd.searchsorted(_ones(2), 1, side="up"), RuntimeError, "side can only be 'left' or 'right'"),
    "opposites": (
        lambda: cd.searchsorted(_ones(2), 1, side="left", right=True),
        RuntimeError,
        "side and right can't be set to opposites",
    ),
    "0-d": (lambda: cd.searchsorted(_ones(), 1), RuntimeError, "boundaries tensor should have positive dimension"),
    "number": (lambda: cd.searchsorted(_ones(2, 2), 1), RuntimeError, "input value can be a scalar only when"),
    "rows": (
        lambda: cd.searchsorted(_ones(2, 2), _ones(3, 2)),
        RuntimeError,
        "must match, but we got boundaries tensor [2, 2] and input value tensor [3, 2]",
    ),
    "bool": (
        lambda: cd.searchsorted(_ones(2, dtype="bool"), True),
        NotImplementedError,
        '"searchsorted" not implemented',
    ),
    "sorter dtype": (
        lambda: cd.searchsorted(_ones(2), 1, sorter=_ones(2)),
        RuntimeError,
        "sorter must be a tensor of long dtype but got dtype Float",
    ),
    "sorter shape": (
        lambda: cd.searchsorted(_ones(2), 1, sorter=_ones(3, dtype="int64")),
        RuntimeError,
        "boundary and sorter must have the same size, but got boundary tensor [2] and got sorter tensor [3]",
    ),
    "sorter range": (
        lambda: cd.searchsorted(_ones(1), 1, sorter=_ones(1, dtype="int64")),
        RuntimeError,
        "index 1 is out of bounds for dimension 0 with size 1",
    ),
    "boundaries": (
        lambda: cd.bucketize(_ones(2), _ones(2, 2)),
        RuntimeError,
        "boundaries tensor must be 1 dimension, but got dim(2)",
    ),
    "static": (
        lambda: cd.nonzero_static(_ones(2), size=-1),
        RuntimeError,
        "nonzero_static: 'size' must be an non-negative integer",
    ),
    "unravel": (
        lambda: cd.unravel_index(_ones(2), (2,)),
        TypeError,
        "expected 'indices' to be integer dtype, but got candelabra.float32",
    ),
    "unravel number": (lambda: cd.unravel_index(3, (2,)), TypeError, "argument 'indices' (position 1) must be Tensor"),
    "unravel shape": (
        lambda: cd.unravel_index(_ones(2, dtype="int64"), _ones(2)),
        TypeError,
        "expected 'shape' to be int or sequence of ints",
    ),
    "unravel negative": (
        lambda: cd.unravel_index(_ones(2, dtype="int64"), (2, -1)),
        ValueError,
        "'shape' cannot have negative values, but got (2, -1)",
    ),
    "bincount": (lambda: _ones(2).bincount(), NotImplementedError, "\"bincount\" not implemented for 'Float'"),
    "bincount dims": (
        lambda: _ones(2, 2, dtype="int64").bincount(),
        RuntimeError,
        "bincount only supports 1-d non-negative integral inputs.",
    ),
    "bincount negative": (
        lambda: cd.tensor([1, -1]).bincount(),
        RuntimeError,
        "bincount only supports 1-d non-negative integral inputs.",
    ),
    "minlength": (lambda: cd.tensor([1]).bincount(minlength=-1), RuntimeError, "minlength should be >= 0"),
    "weights": (
        lambda: cd.tensor([1]).bincount(_ones(2)),
        RuntimeError,
        "weights should be 1-d and have the same length as input",
    ),
    "histc dtype": (lambda: cd.tensor([1]).histc(), NotImplementedError, "\"histc\" not implemented for 'Long'"),
    "histc bins": (lambda: _ones(2).histc(0), RuntimeError, "bins must be > 0"),
    "histc limits": (lambda: _ones(2).histc(2, 3, 1), RuntimeError, "histc: max must be larger than min"),
    "histc nan": (lambda: cd.tensor([NAN]).histc(2), RuntimeError, "histc: range of [nan, nan] is not finite"),
    "bins": (lambda: _ones(2).histogram(0), RuntimeError, "histogram(): bins must be > 0, but got 0 for dimension 0"),
    "bins dims": (lambda: _ones(2).histogram(_ones(2, 2)), RuntimeError, "have one dimension, but got 2 dimensions"),
    "bins none": (lambda: _ones(2).histogram(_ones(0)), RuntimeError, "have at least 1 element, but got 0 elements"),
    "bins dtype": (
        lambda: _ones(2).histogram(_ones(2, dtype="float64")),
        RuntimeError,
        "but got input with dtype float32 and bins for dimension 0 with dtype float64",
    ),
    "bins range": (
        lambda: _ones(2).histogram(cd.tensor(2), range=(0, 1)),
        TypeError,
        "accepts range only if bins is a",
    ),
    "range": (
        lambda: _ones(2).histogram(2, range=(0, INF)),
        RuntimeError,
        "dimension 0's range [0, inf] is not finite",
    ),
    "range order": (
        lambda: _ones(2).histogram(2, range=(2, 0)),
        RuntimeError,
        "min should not exceed max, but got min 2 max 0 for dimension 0",
    ),
    "weight dtype": (
        lambda: _ones(2).histogram(2, weight=_ones(2, dtype="int64")),
        RuntimeError,
        "should have the same dtype, but got input(float32), and weight(int64)",
    ),
    "weight shape": (
        lambda: _ones(2).histogram(2, weight=_ones(3)),
        RuntimeError,
        "but got input with shape [2] and weight with shape [3]",
    ),
    "dd dims": (lambda: cd.histogramdd(_ones(2), 2), RuntimeError, "input tensor should have at least 2 dimensions"),
    "dd bins": (
        lambda: cd.histogramdd(_ones(2, 2), [2]),
        RuntimeError,
        "The size of bins must be equal to the innermost dimension of the input.",
    ),
    "dd range": (
        lambda: cd.histogramdd(_ones(2, 2), 2, (0, 1)),
        RuntimeError,
        "for a 2-dimensional histogram range should have 4 elements, but got 2",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_cannot_be_found_or_counted(case: str) -> None:
    """The errors are PyTorch's."""
    call, kind, text = ERRORS[case]
    with pytest.raises(kind, match=re.escape(text)):
        call()
