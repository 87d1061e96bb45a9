"""The CPU's kernels of indexing and sorting, compared with the Array API kernels."""

from __future__ import annotations

from typing import Any

import candelabra_arrayapi
import numpy as np
import pytest
from candelabra_cpu import indexing, sorting
from candelabra_cpu.backend import TO_NUMPY

GENERAL = candelabra_arrayapi.kernels(np, TO_NUMPY)
SPECIAL = indexing.KERNELS | sorting.KERNELS
TOLERANCE = {"float16": 2e-2, "float32": 1e-4, "float64": 1e-12}


def agree(name: str, dtype: str, *args: Any) -> None:
    """Assert that both kernels of an operator give the same dtype, shape and values."""
    found, expected = GENERAL[name](*args), SPECIAL[name](*args)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for ours, theirs in pairs:
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("seed", range(25))
def test_both_ways_of_indexing_along_a_dim_agree(dtype: str, seed: int) -> None:
    """gather, the scatters, index_select, index_add, nonzero and sort agree for random shapes and repeated indices."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 4, rng.integers(1, 4)))
    dim = int(rng.integers(len(shape)))
    x = rng.standard_normal(shape).astype(dtype)
    picked = tuple(int(rng.integers(0, 6 if d == dim else n + 1)) for d, n in enumerate(shape))
    index = rng.integers(0, shape[dim], picked)
    src = rng.standard_normal([n + 1 for n in picked]).astype(dtype)
    agree("gather", dtype, x, dim, index)
    agree("scatter_add", dtype, x, dim, index, src)
    agree("scatter_src", dtype, x, dim, index, src)
    agree("index_select", dtype, x, dim, index.ravel())
    agree("sort", dtype, x, dim, bool(seed % 2), True)
    agree("nonzero", dtype, np.round(x))
    rows = rng.integers(0, shape[dim], 5)
    agree("index_add", dtype, x, dim, rows, rng.standard_normal((*shape[:dim], 5, *shape[dim + 1 :])).astype(dtype))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("seed", range(25))
def test_both_ways_of_advanced_indexing_agree(dtype: str, seed: int) -> None:
    """index and index_put agree for index arrays at random dims, adjacent or not, with repeated indices."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 5)))
    x = rng.standard_normal(shape).astype(dtype)
    count = int(rng.integers(0, 5))
    indices = [
        None if rng.random() < 0.4 else rng.integers(-n, n, (count,) if rng.random() < 0.5 else (2, 1)) for n in shape
    ]
    if all(i is None for i in indices):
        indices[0] = rng.integers(-shape[0], shape[0], 3)
    agree("index", dtype, x, indices)
    values = rng.standard_normal(SPECIAL["index"](x, indices).shape).astype(dtype)
    for accumulate in (True, False):
        agree("index_put", dtype, x, indices, values, accumulate)
        if values.size:
            agree("index_put", dtype, x, indices, values.ravel()[:1], accumulate)


@pytest.mark.parametrize("kernels", [GENERAL, SPECIAL], ids=["general", "special"])
def test_every_kernel_checks_bounds(kernels: dict[str, Any]) -> None:
    """No index accesses memory outside its dim; only index and index_put accept negative indices."""
    x, one = np.zeros((2, 3)), np.zeros((1, 1))
    for bad in (-1, 3):
        index = np.full((1, 1), bad)
        for name, args in (
            ("gather", (x, 1, index)),
            ("scatter_add", (x, 1, index, one)),
            ("scatter_src", (x, 1, index, one)),
            ("index_select", (x, 1, index[0])),
            ("index_add", (x, 1, index[0], np.zeros((2, 1)))),
        ):
            with pytest.raises(IndexError, match=r"out of (range|bounds)"):
                kernels[name](*args)
    for bad in (-4, 3):
        for name, rest in (("index", ()), ("index_put", (one, True)), ("index_put", (one, False))):
            with pytest.raises(IndexError, match=r"out of (range|bounds)"):
                kernels[name](x, [None, np.array([bad])], *rest)


def test_ties_and_nan_sort_in_the_same_order() -> None:
    """Both kernels sort NaN last and keep ties in order."""
    x = np.array([[2.0, np.nan, 1.0, np.inf, 1.0, np.nan]])
    for descending in (False, True):
        values, order = SPECIAL["sort"](x, 1, descending, False)
        general = GENERAL["sort"](x, 1, descending, False)
        np.testing.assert_array_equal(order, general[1])
        np.testing.assert_array_equal(values, general[0])
    np.testing.assert_array_equal(SPECIAL["sort"](x, 1, False, False)[1], [[2, 4, 0, 3, 1, 5]])
