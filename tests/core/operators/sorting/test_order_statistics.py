"""kthvalue, median, mode, topk; cumulative extremes, sums and log-sum-exps."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._operators import cumulative
from candelabra._operators.sorting import order_statistics
from candelabra._operators.sorting.sort import ordered, sort
from scipy import stats

from tests.operators.comparing import close, same

NAN, INF = float("nan"), float("inf")
REAL = ["uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def tied(rng: np.random.Generator, dtype: str, *shape: int) -> tuple[Any, np.ndarray]:
    """Return a tensor with many ties, and NaN if the dtype has it, and the same values in float64."""
    a = rng.integers(0, 5, shape).astype(np.float64)
    if "float" in dtype:
        a[rng.random(shape) < 0.1] = NAN
    return cd.tensor(a).to(getattr(cd, dtype)), a


def body(record: Any) -> Callable[..., Any]:
    """Return the composite body of an operator."""
    return record.body  # type: ignore[no-any-return]


# -- k-th, median -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_the_kth_value_is_the_kth_of_the_sorted(dtype: str, dim: int, keepdim: bool, rng: np.random.Generator) -> None:
    """The index is that of a stable sort."""
    x, a = tied(rng, dtype, 5, 6, 7)
    order = np.argsort(a, axis=dim, kind="stable")
    for k in (1, 3, 5):
        values, indices = x.kthvalue(k, dim, keepdim)
        places = np.take(order, [k - 1], dim)
        expected = np.take_along_axis(a, places, dim)
        same(values.to(cd.float64), expected if keepdim else expected.squeeze(dim))
        same(indices, places if keepdim else places.squeeze(dim), cd.int64)
        assert values.dtype is x.dtype


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_medians_are_the_lower_middle(dtype: str, dim: int, rng: np.random.Generator) -> None:
    """median returns the first NaN if there is one; nanmedian ignores NaN."""
    x, a = tied(rng, dtype, 6, 5, 8)
    order = np.argsort(a, axis=dim, kind="stable")
    size, absent = a.shape[dim], np.isnan(a).sum(dim, keepdims=True)
    index = np.where(absent > 0, size - absent, (size - 1) // 2)
    rest = np.maximum(size - absent - 1, 0) // 2
    for function, at in ((cd.median, index), (cd.nanmedian, rest)):
        values, indices = function(x, dim, keepdim=True)
        same(indices, np.take_along_axis(order, at, dim))
        same(values.to(cd.float64), np.take_along_axis(np.sort(a, dim), at, dim))
        same(function(x, dim).indices, np.take_along_axis(order, at, dim).squeeze(dim))


def test_many_distinct_numbers_of_nan_are_a_nanmedian_each(rng: np.random.Generator) -> None:
    """Each row has another number of NaN, more than the kernel handles one by one."""
    a = rng.normal(size=(40, 40))
    for row in range(40):
        a[row, :row] = NAN
    values = cd.tensor(a).nanmedian(1).values
    close(values, [np.sort(row[~np.isnan(row)])[(np.sum(~np.isnan(row)) - 1) // 2] for row in a])
    same(cd.tensor(a).median(1).indices, [0 if row else np.argsort(a[0])[19] for row in range(40)])


def test_the_median_of_all_elements() -> None:
    """NaN and empty input give NaN; an empty integer tensor gives the minimum of the dtype, as in PyTorch."""
    same(cd.tensor([[5, 1], [4, 2]]).median(), 2)
    same(cd.tensor([1.0, NAN, 3.0]).median(), NAN)
    same(cd.tensor([1.0, NAN, 3.0]).nanmedian(), 1)
    same(cd.tensor([NAN, NAN]).nanmedian(), NAN)
    same(cd.zeros(0).median(), NAN)
    same(cd.zeros(0, dtype=cd.int32).median(), -(2**31), cd.int32)
    same(cd.tensor(3.0).median(0).indices, 0)


def test_ties_share_the_gradient_of_the_median_of_all() -> None:
    """The gradient is shared equally, also among NaN."""
    x = cd.tensor([2.0, 1.0, 2.0, 3.0], requires_grad=True)
    x.median().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.5, 0, 0.5, 0]


# -- mode -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["bool", *REAL])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_mode_is_scipys(dtype: str, dim: int, keepdim: bool, rng: np.random.Generator) -> None:
    """The result is the smallest of the most frequent values, and an index of it."""
    a = rng.integers(0, 2 if dtype == "bool" else 4, (9, 11))
    x = cd.tensor(a).to(getattr(cd, dtype))
    values, indices = x.mode(dim, keepdim)
    same(values.to(cd.int64), stats.mode(a, axis=dim, keepdims=keepdim).mode)
    there = np.take_along_axis(a, indices.numpy() if keepdim else np.expand_dims(indices.numpy(), dim), dim)
    same(values.to(cd.int64), there if keepdim else there.squeeze(dim))


def test_every_nan_is_a_value_of_its_own() -> None:
    """NaN is the mode only of a slice of NaN."""
    same(cd.tensor([NAN, NAN, NAN, 2.0, 2.0]).mode().values, 2)
    assert cd.tensor([NAN, NAN]).mode().values.isnan().item()
    values, indices = cd.tensor(3.0).mode()
    assert [values.item(), indices.item()] == [3, 0]
    assert tuple(cd.zeros(2, 0).mode(0).values.shape) == (0,)


# -- topk -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("shape", "dim", "k"), [((300,), 0, 7), ((4, 200), 1, 9), ((130, 3), 0, 100), ((5, 6), 1, 6)])
def test_topk_is_the_beginning_of_the_sorted(
    dtype: str, largest: bool, shape: Any, dim: int, k: int, rng: np.random.Generator
) -> None:
    """The order is sorted and ties keep their order, by partition or by sorting."""
    x, _ = tied(rng, dtype, *shape)
    values, indices = x.topk(k, dim, largest)
    ordered = x.sort(dim, largest, stable=True)
    same(indices, ordered.indices.narrow(dim, 0, k).numpy())
    same(values.float(), ordered.values.narrow(dim, 0, k).float().numpy())
    assert values.dtype is x.dtype


def test_topk_of_distinct_elements_by_partition(rng: np.random.Generator) -> None:
    """There are no ties at the bound, and k = 0 gives an empty result."""
    a = rng.normal(size=(3, 500))
    values, indices = cd.tensor(a).topk(5)
    same(indices, np.argsort(-a)[:, :5])
    same(values, -np.sort(-a)[:, :5])
    assert tuple(cd.tensor(a).topk(0).values.shape) == (3, 0)
    out = (cd.zeros(3, 2, dtype=cd.float64), cd.zeros(3, 2, dtype=cd.int64))
    assert cd.topk(cd.tensor(a), 2, out=out).values is out[0]
    same(out[1], indices[:, :2].numpy())


# -- sorting, large ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", ["float32", "float64", "wide", "narrow", "uint64", "bool", "float16"])
def test_long_vectors_sort_stably(kind: str, descending: bool, rng: np.random.Generator) -> None:
    """Values are packed with their indices if they fit, else ties are sorted later; dtype limits are included."""
    size = 300_000
    a: Any
    if kind in ("float32", "float64", "float16"):
        a = rng.integers(-1000, 1000, size).astype(kind) / 4
        a[::1000] = NAN
        a[1::1000] = -NAN
        a[2::1000], a[3::1000], a[4::5000] = -0.0, INF, -INF
        keys = np.where(np.isnan(a), INF, a).astype(np.float64)
        keys = keys + np.isnan(a) * 1.0
        order = np.lexsort((np.isnan(a), keys)) if not descending else np.lexsort((~np.isnan(a), -keys))
    elif kind == "bool":
        a = rng.random(size) < 0.5
        order = np.argsort(-a.astype(int) if descending else a, kind="stable")
    else:
        info = np.iinfo(np.uint64 if kind == "uint64" else np.int64)
        low, high = (info.min, info.max) if kind != "narrow" else (-5, 5)
        a = rng.integers(low, high, size, dtype=info.dtype, endpoint=True)
        a[::3] = a[0]
        a[1], a[2] = low, high
        order = np.argsort(~a if descending else a, kind="stable")
    values, indices = sort(cd.tensor(a), 0, descending)
    same(indices, order)
    same(values, a[order])
    if not descending:
        same(cd.msort(cd.tensor(a)), a[order] + (0 if kind == "bool" else a.dtype.type(0)))


def test_sort_and_argsort_write_into_what_is_given() -> None:
    """``out=`` is a pair, or one tensor."""
    x = cd.tensor([3.0, 1.0, 2.0])
    pair = (cd.zeros(3), cd.zeros(3, dtype=cd.int64))
    assert cd.sort(x, out=pair).values is pair[0]
    same(pair[0], [1, 2, 3])
    out = cd.zeros(3, dtype=cd.int64)
    assert cd.argsort(x, out=out) is out
    same(out, [1, 2, 0])
    lines = cd.zeros(3)
    assert cd.msort(x, out=lines) is lines
    same(lines, [1, 2, 3])


# -- scans ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("dtype", ["bool", *REAL])
@pytest.mark.parametrize(("shape", "dim"), [((6,), 0), ((7, 300), 0), ((7, 300), 1), ((5, 6, 7), 1)])
def test_running_extremes(name: str, dtype: str, shape: Any, dim: int, rng: np.random.Generator) -> None:
    """The result is the extreme so far and its last index; after a NaN it is the last NaN."""
    x, a = (cd.tensor(rng.random(shape) < 0.3), None) if dtype == "bool" else tied(rng, dtype, *shape)
    a = x.numpy().astype(np.float64) if a is None else a
    extreme = np.maximum if name == "cummax" else np.minimum
    expected = extreme.accumulate(a, dim)
    hits = (a == expected) | np.isnan(a)
    along = np.arange(shape[dim]).reshape([-1 if i == dim else 1 for i in range(len(shape))])
    values, indices = getattr(x, name)(dim)
    same(values.to(cd.float64), expected)
    same(indices, np.maximum.accumulate(np.where(hits, along, 0), dim), cd.int64)
    assert values.dtype is x.dtype
    values, indices = body(getattr(cumulative, name))(x, dim)
    same(values.to(cd.float64), expected)
    same(indices, np.maximum.accumulate(np.where(hits, along, 0), dim))


@pytest.mark.parametrize("kind", ["random", "ascending", "descending", "ties", "nan", "half", "int64"])
@pytest.mark.parametrize("shape", [(8192,), (3, 5000), (4096,)])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_long_running_extremes(name: str, kind: str, shape: Any, rng: np.random.Generator) -> None:
    """Blocks with and without a new extreme are correct."""
    a = rng.normal(size=shape)
    if kind in ("ascending", "descending"):
        a = np.sort(a, -1)[..., :: 1 if kind == "ascending" else -1]
    elif kind != "random":
        a = np.round(a * 2) if kind != "int64" else rng.integers(-(2**62), 2**62, shape)
    if kind == "nan":
        a[..., [1500, 4090]] = NAN
    if kind == "half":
        a = a.astype(np.float16)
    extreme = np.maximum if name == "cummax" else np.minimum
    expected = extreme.accumulate(a, -1)
    hits = (a == expected) | np.isnan(a)
    values, indices = getattr(cd.tensor(a.copy()), name)(-1)
    same(values, expected)
    same(indices, np.maximum.accumulate(np.where(hits, np.arange(shape[-1]), 0), -1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(("shape", "dim"), [((9,), 0), ((5, 300), 0), ((3, 4, 5), 1)])
def test_logcumsumexp_is_a_sum_of_exponentials(dtype: str, shape: Any, dim: int, rng: np.random.Generator) -> None:
    """The direct sum is compared where it does not overflow; kernel and composite agree."""
    a = rng.normal(size=shape).astype(dtype)
    if dtype == "complex128":
        a = a + 1j * rng.normal(size=shape)
    expected = np.log(np.cumsum(np.exp(a), dim, dtype=np.result_type(a, np.float64)))
    x = cd.tensor(a)
    for found in (x.logcumsumexp(dim), body(cumulative.logcumsumexp)(x, dim)):
        difference = np.exp(found.numpy() - expected)  # The imaginary part is unique up to a multiple of 2 pi.
        np.testing.assert_allclose(difference, np.ones(shape), rtol=2e-6 if dtype == "float32" else 1e-12)


def test_logcumsumexp_of_extremes() -> None:
    """There is no overflow or underflow; infinities and NaN propagate; an empty sum is -inf."""
    same(cd.tensor([1000.0, 1000.0]).logcumsumexp(0), np.float32([1000, 1000 + np.log(2)]))
    same(cd.tensor([-INF, -INF, 1.0, INF, 2.0, NAN]).logcumsumexp(0), [-INF, -INF, 1, INF, INF, NAN])
    same(cd.tensor(2.5).logcumsumexp(0), 2.5)
    same(cd.zeros(2, 0).logcumsumexp(1), np.zeros((2, 0)))
    found = cd.tensor([complex(-INF, 2), complex(1, 1), complex(INF, 1), 3j]).logcumsumexp(0)
    assert found.real.tolist() == [-INF, 1, INF, INF]
    x = cd.tensor([-INF, 2.0, 1.0], requires_grad=True)
    x.logcumsumexp(0).sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all().item()


LENGTHS = [((40_000,), 0), ((12_345,), 0), ((3, 4099), 1), ((60, 300), 0), ((70, 9), 0), ((6, 33), 1)]


def fixed_point(a: Any) -> Any:
    """Return numbers as Python integers in units of 2**-64, whose sums are exact."""
    return np.vectorize(lambda x: int(float(x) * 2.0**64), otypes=[object])(a)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64"])
@pytest.mark.parametrize(("shape", "dim"), LENGTHS)
def test_cumulative_sums_keep_their_digits(dtype: str, shape: Any, dim: int, rng: np.random.Generator) -> None:
    """Short and long sums along any dim are compared with exact sums.

    The kernel may sum rows of 32 in the dtype (31 errors of at most 32 u times the largest element), and adds their
    sums in the next wider dtype, of unit roundoff w. These up to n errors of at most w times the largest sum have no
    common sign, so by Hoeffding's inequality they stay below 8 sqrt(n) of one with a probability of 1 - 3e-14.
    Rounding that to the dtype, and adding it to the row, are two more errors of at most u times the sum.
    """
    a = (rng.random(shape) * 3 - 1).astype(dtype)
    if dtype == "complex64":
        a += 1j * rng.random(shape).astype("float32")
    found = cd.tensor(a).cumsum(dim).numpy()
    u = np.finfo(dtype).eps / 2
    w = {"float16": 2.0**-24}.get(dtype, 2.0**-53)
    for part in ("real", "imag"):
        elements, sums = getattr(a, part), getattr(found, part)
        exact = np.cumsum(fixed_point(elements), dim)
        error = np.abs(fixed_point(sums) - exact).astype(np.float64) / 2.0**64
        size = np.abs(exact).astype(np.float64) / 2.0**64
        rows = 31 * 32 * u * np.max(np.abs(elements)) if dtype in ("float32", "float64") else 0
        assert np.all(error <= 2 * u * size + rows + 8 * np.sqrt(shape[dim]) * w * np.max(size))


@pytest.mark.parametrize(("shape", "dim"), LENGTHS)
def test_cumulative_sums_of_integers_are_exact(shape: Any, dim: int, rng: np.random.Generator) -> None:
    """Short and long sums along any dim equal Python's."""
    a = rng.integers(-(2**40), 2**40, shape)
    same(cd.tensor(a).cumsum(dim), np.cumsum(a.astype(object), dim).astype(np.int64))


@pytest.mark.parametrize("bad", [INF, -INF, NAN])
@pytest.mark.parametrize("index", [0, 31, 32, 5000, 8191])
def test_an_infinity_spoils_what_follows_only(bad: float, index: int) -> None:
    """Elements before an infinity are not affected in a long cumulative sum."""
    a = np.ones(8192, np.float32)
    a[index] = bad
    same(cd.tensor(a).cumsum(0), np.cumsum(a))


def test_scans_in_place() -> None:
    """``cumsum_`` and ``cumprod_`` write to the tensor, in its dtype, and are recorded."""
    x = cd.tensor([1, 2, 3], dtype=cd.int32)
    assert x.cumsum_(0) is x
    same(x, [1, 3, 6], cd.int32)
    same(x.cumprod_(0), [1, 3, 18])
    leaf = cd.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = leaf * 1
    y.cumprod_(0)
    y.sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [9, 4, 2]
    out = cd.zeros(3)
    assert cd.cumsum(cd.tensor([1.0, 2.0, 3.0]), 0, out=out) is out
    same(out, [1, 3, 6])


# -- bodies and errors ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("dim", [0, 1])
def test_kernels_agree_with_the_compositions_that_they_replace(dtype: str, dim: int, rng: np.random.Generator) -> None:
    """Values and indices agree, also with ties and NaN."""
    x, _ = tied(rng, dtype, 40, 50)
    for record, arguments in (
        (order_statistics.kthvalue, (7, dim, False)),
        (order_statistics.median_dim, (dim, True)),
        (order_statistics.nanmedian_dim, (dim, False)),
        (order_statistics.topk, (6, dim, True, True)),
        (order_statistics.topk, (6, dim, False, True)),
    ):
        for found, expected in zip(record(x, *arguments), body(record)(x, *arguments), strict=True):
            same(found, expected.numpy())
    same(ordered(x, dim), body(ordered)(x, dim).numpy())


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "kth": (
        lambda: cd.zeros(2, 3).kthvalue(4),
        RuntimeError,
        "kthvalue(): selected number k out of range for dimension 1",
    ),
    "kth bool": (lambda: cd.zeros(2, dtype=cd.bool).kthvalue(1), NotImplementedError, "it takes real numeric dtypes"),
    "median": (
        lambda: cd.zeros(0, 2).median(0),
        IndexError,
        "median(): Expected reduction dim 0 to have non-zero size.",
    ),
    "nanmedian": (
        lambda: cd.zeros(2, 0).nanmedian(1),
        IndexError,
        "nanmedian(): Expected reduction dim 1 to have non-zero size.",
    ),
    "mode": (lambda: cd.zeros(0).mode(), IndexError, "mode(): Expected reduction dim 0 to have non-zero size."),
    "topk": (lambda: cd.zeros(2, 3).topk(4), RuntimeError, "selected index k out of range"),
    "topk negative": (lambda: cd.zeros(3).topk(-1), RuntimeError, "selected index k out of range"),
    "topk bool": (lambda: cd.zeros(3, dtype=cd.bool).topk(1), RuntimeError, "topk does not support bool dtypes"),
    "cummax": (lambda: cd.zeros(3, dtype=cd.complex64).cummax(0), NotImplementedError, "it takes real dtypes"),
    "dim": (lambda: cd.zeros(3).cummin(2), IndexError, "Dimension out of range (expected to be in range of [-1, 0]"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_cannot_be_selected(case: str) -> None:
    """The errors are PyTorch's."""
    call, kind, text = ERRORS[case]
    with pytest.raises(kind, match=re.escape(text)):
        call()
