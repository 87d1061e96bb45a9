"""Sorting, and operators based on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd.gradcheck import gradcheck, gradgradcheck

NAN = float("nan")
X = [[3.0, NAN, 1.0, 2.0], [0.0, 4.0, 5.0, 5.0]]


def same(actual: Any, expected: Any) -> None:
    """Assert that shape and every element are equal, with NaN equal to NaN."""
    expected = np.asarray(expected)
    assert tuple(actual.shape) == expected.shape
    np.testing.assert_array_equal(actual.detach().numpy(), expected)


def test_nan_sorts_as_the_largest() -> None:
    """NaN is last in ascending and first in descending order."""
    values, indices = cd.tensor(X).sort()
    same(values, [[1, 2, 3, NAN], [0, 4, 5, 5]])
    same(indices, [[2, 3, 0, 1], [0, 1, 2, 3]])
    values, indices = cd.sort(cd.tensor(X), descending=True)
    same(values, [[NAN, 3, 2, 1], [5, 5, 4, 0]])
    same(indices, [[1, 0, 3, 2], [2, 3, 1, 0]])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_every_dtype_sorts_stably(dtype: str, descending: bool, dim: int) -> None:
    """Equal elements keep their order, in both directions, along every dim."""
    numbers = np.random.default_rng(0).integers(0, 4, (5, 6, 7))
    actual = cd.tensor(numbers).to(getattr(cd, dtype)).sort(dim, descending, stable=True)
    keys = (numbers > 0).astype(int) if dtype == "bool" else numbers
    order = np.argsort(-keys if descending else keys, axis=dim, kind="stable")
    same(actual.indices, order)
    same(actual.values.to(cd.int64), np.take_along_axis(keys, order, dim))
    assert actual.values.dtype is getattr(cd, dtype)
    same(cd.argsort(cd.tensor(keys), dim, descending), order)


def test_infinities_and_bfloat16_nan_have_their_place() -> None:
    """The order is -inf, numbers, inf, NaN."""
    for dtype in (cd.float16, cd.bfloat16, cd.float32):
        values = cd.tensor([NAN, float("inf"), 0.0, float("-inf"), NAN], dtype=dtype).sort().values
        same(values.to(cd.float32), [float("-inf"), 0, float("inf"), NAN, NAN])


def test_no_elements_and_no_dims_sort_too() -> None:
    """An empty tensor stays empty, and a 0-d tensor has index 0."""
    assert tuple(cd.zeros(2, 0).sort().values.shape) == (2, 0)
    assert tuple(cd.zeros(0, 3).sort(0).indices.shape) == (0, 3)
    values, indices = cd.tensor(3.0).sort()
    same(values, 3.0)
    same(indices, 0)


def test_results_are_named() -> None:
    """The named tuples have PyTorch's fields."""
    actual = cd.tensor([2, 1]).sort()
    assert actual._fields == ("values", "indices")
    same(cd.msort(cd.tensor(X)), np.sort(X, 0))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dim", [0, 1])
def test_topk_takes_the_ends_of_the_order(largest: bool, dim: int) -> None:
    """The k largest or smallest elements are sorted, with their indices."""
    x = np.random.default_rng(1).permutation(20).reshape(4, 5).astype(float)
    values, indices = cd.topk(cd.tensor(x), 2, dim, largest)
    order = np.argsort(-x if largest else x, axis=dim).take([0, 1], dim)
    same(indices, order)
    same(values, np.take_along_axis(x, order, dim))


def test_kthvalue_and_medians() -> None:
    """kthvalue gives the k-th smallest; median the lower middle; NaN propagates except in nanmedian."""
    x = cd.tensor(X)
    same(x.kthvalue(2).values, [2, 4])
    same(x.kthvalue(2, keepdim=True).indices, [[3], [1]])
    same(x.kthvalue(1, 0).values, [0, 4, 1, 2])
    same(x.median(), NAN)
    same(x.median(1).values, [NAN, 4])
    same(x.median(1).indices, [1, 1])
    same(x.median(0, keepdim=True).values, [[0, NAN, 1, 2]])
    same(x.nanmedian(), 3)
    same(x.nanmedian(1).values, [2, 4])
    same(cd.tensor([5, 1, 4, 2]).median(), 2)
    same(cd.tensor(7.0).median(0).values, 7)
    same(cd.tensor([]).median(), NAN)
    same(cd.tensor([[NAN, NAN]]).nanmedian(1).values, [NAN])


def test_unique_elements_and_slices() -> None:
    """The result has sorted distinct elements, inverse indices and counts; every NaN is distinct."""
    x = np.array([[3, 1], [2, 1]])
    values, inverse, counts = cd.unique(cd.tensor(x), return_inverse=True, return_counts=True)
    expected = np.unique(x, return_inverse=True, return_counts=True)
    for actual, wanted in zip((values, inverse, counts), expected, strict=True):
        same(actual, wanted)
    rows = np.array([[2, 1], [1, 9], [2, 1], [1, 3]])
    values, inverse, counts = cd.unique(cd.tensor(rows), return_inverse=True, return_counts=True, dim=0)
    wanted_rows = np.unique(rows, return_inverse=True, return_counts=True, axis=0)
    for actual, wanted in zip((values, inverse, counts), wanted_rows, strict=True):
        same(actual, wanted)
    same(cd.tensor([NAN, NAN, 1.0]).unique(), [1, NAN, NAN])
    assert tuple(cd.tensor([]).unique().shape) == (0,)
    values, inverse, counts = cd.unique_consecutive(cd.tensor([1, 1, 2, 1]), return_inverse=True, return_counts=True)
    same(values, [1, 2, 1])
    same(inverse, [0, 0, 1, 2])
    same(counts, [2, 1, 1])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sort(0).values ** 2,
        lambda x: x.sort(1, descending=True).values ** 2,
        lambda x: x.topk(2, 1).values ** 2,
        lambda x: x.kthvalue(2, 0).values ** 2,
        lambda x: x.median(1).values ** 2,
        lambda x: x.median() ** 2,
        lambda x: cd.msort(x) ** 2,
    ],
)
def test_gradients_go_to_where_the_values_came_from(function: Callable[[Any], Any]) -> None:
    """First and second derivatives agree with finite differences."""
    x = cd.tensor(np.random.default_rng(2).permutation(12).reshape(3, 4) / 3.0, requires_grad=True)
    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: cd.zeros(2, dtype=cd.complex64).sort(), RuntimeError, "\"sort\" not implemented for 'ComplexFloat'"),
    (
        lambda: cd.zeros(2).sort(1),
        IndexError,
        r"Dimension out of range \(expected to be in range of \[-1, 0\], but got 1",
    ),
    (lambda: cd.zeros(2).topk(3), RuntimeError, "selected index k out of range"),
    (lambda: cd.zeros(2, dtype=cd.bool).topk(1), RuntimeError, "topk does not support bool dtypes"),
    (lambda: cd.zeros(2).kthvalue(0), RuntimeError, r"kthvalue\(\): selected number k out of range for dimension 0"),
    (lambda: cd.zeros(0, 2).median(0), IndexError, r"median\(\): Expected reduction dim 0 to have non-zero size."),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS, ids=[f"{n}" for n in range(len(ERRORS))])
def test_bad_calls_are_errors_in_pytorchs_words(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    """Every invalid call has PyTorch's class of error and its text."""
    with pytest.raises(error, match=text):
        call()
