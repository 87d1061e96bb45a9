"""Reductions of the CPU backend: accuracy along every axis, NaN, ties, and layouts."""

from typing import Any

import candelabra as cd
import ml_dtypes
import numpy as np
import pytest
from candelabra_cpu import reductions, scans

BFLOAT16 = ml_dtypes.bfloat16
KERNELS = {**reductions.KERNELS, **scans.KERNELS}


def ulps(actual: np.ndarray, exact: np.ndarray) -> float:
    """Return the largest distance from the exact values, in units of the last place of the result's dtype."""
    real = actual.real.dtype
    return float(np.max(np.abs(actual - exact) / np.spacing(np.abs(exact).astype(real))))


@pytest.mark.parametrize("shape", [(300_000,), (300_000, 2), (100_000, 7), (64, 1, 5000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("axis", [0, -1, None])
def test_sums_keep_their_digits_along_every_axis(shape: tuple[int, ...], dtype: Any, axis: int | None) -> None:
    """Sums of numbers near 1 are within a few units of the last place along every axis."""
    x = (1 + 0.1 * np.random.default_rng(0).random(shape)).astype(dtype)
    wide = np.clongdouble if dtype is np.complex64 else np.longdouble
    dims = None if axis is None else (axis % x.ndim,)
    assert ulps(KERNELS["sum"](x, dims, False, None), x.sum(axis=dims, dtype=wide)) <= 4


@pytest.mark.parametrize("shape", [(0, 3), (200, 0), (129, 128), (129, 1), (1000, 3), (5000, 100)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_rows_short_and_few(shape: tuple[int, int], keepdim: bool) -> None:
    """Short, few and zero rows are summed correctly, with the dtype and shape of a sum."""
    actual = KERNELS["sum"](np.ones(shape, np.float32), (0,), keepdim, None)
    assert actual.dtype == np.float32
    assert actual.shape == ((1, shape[1]) if keepdim else (shape[1],))
    assert (actual == shape[0]).all()


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16])
@pytest.mark.parametrize("name", ["sum", "mean", "cumsum"])
def test_half_types_are_added_in_float32(dtype: Any, name: str) -> None:
    """A thousand ones of a half type add up to 1000, along either axis."""
    ones = np.ones((1000, 2), dtype)
    if name == "cumsum":
        actual = KERNELS[name](ones, 0, None)[-1]
    else:
        actual = KERNELS[name](ones, (0,), False, None)
    assert actual.dtype == dtype
    assert actual.astype(float).tolist() == [1.0, 1.0] if name == "mean" else [1000.0, 1000.0]


def test_a_half_mean_does_not_overflow() -> None:
    """The mean of large float16 numbers is correct, though their sum is out of range."""
    x = np.full(4, 60000, np.float16)
    assert KERNELS["mean"](x, None, False, None) == np.float16(60000)
    assert KERNELS["sum"](x, None, False, None) == np.inf


@pytest.mark.parametrize("dims", [None, (0,), (1,), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int32, np.bool_, np.complex128])
def test_sums_of_any_layout(dims: tuple[int, ...] | None, keepdim: bool, dtype: Any) -> None:
    """The sum of a transposed, strided array equals NumPy's, in PyTorch's dtype."""
    x = (np.random.default_rng(1).random((6, 301, 8)) * 4).astype(dtype).transpose(2, 1, 0)[:, ::2]
    actual = KERNELS["sum"](x, dims, keepdim, None)
    exact = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64).sum(axis=dims, keepdims=keepdim)
    assert isinstance(actual, np.ndarray)
    assert actual.shape == exact.shape
    assert actual.dtype == (np.int64 if x.dtype.kind in "bi" else x.dtype)
    np.testing.assert_allclose(actual, exact, rtol={2: 2e-3, 4: 1e-6}.get(x.dtype.itemsize, 1e-12))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, BFLOAT16])
def test_nan_propagates_to_extremes(dtype: Any) -> None:
    """The extreme of numbers with a NaN is NaN, and its index that of the first NaN."""
    x = np.array([1, np.nan, 3, np.nan], dtype)
    for name in ("amax", "amin"):
        assert np.isnan(KERNELS[name](x, None, False))
    for name in ("argmax", "argmin"):
        actual = KERNELS[name](x, None, False)
        assert (actual.dtype, int(actual)) == (np.int64, 1)


def test_ties_go_to_the_first() -> None:
    """Among equal elements the index is that of the first."""
    x = np.array([[3, 1, 3], [0, 0, 5]])
    assert KERNELS["argmax"](x, 1, False).tolist() == [0, 2]
    assert KERNELS["argmin"](x, 1, True).tolist() == [[1], [0]]


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "all", "any", "argmax", "cumsum"])
def test_results_without_dims_are_arrays(name: str) -> None:
    """No kernel returns a NumPy scalar, since in-place operators on it would be lost."""
    x = np.array(2.0)
    arguments: dict[str, tuple[Any, ...]] = {
        "sum": (None, False, None), "mean": (None, False, None), "prod": (None, False, None), "cumsum": (0, None),
        "argmax": (0, False),
    }  # fmt: skip
    actual = KERNELS[name](x, *arguments.get(name, (None, False)))
    assert isinstance(actual, np.ndarray)
    assert actual.shape == ()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: cd.zeros(0, 3).amax(0), IndexError, r"amax\(\): Expected reduction dim 0 to have non-zero size\."),
        (lambda: cd.zeros(0, 3).argmin(0), IndexError, r"argmin\(\): Expected reduction dim 0 to have non-zero size\."),
        (lambda: cd.zeros(0).argmax(), IndexError, r"Expected reduction dim to be specified for input\.numel\(\) == 0"),
        (lambda: cd.zeros(0).amin(), RuntimeError, r"Specify the reduction dim with the 'dim' argument"),
    ],
)
def test_extremes_of_nothing(call: Any, error: type[Exception], text: str) -> None:
    """The error of an empty maximum names the function and the dim."""
    with pytest.raises(error, match=text):
        call()


def test_sums_of_nothing() -> None:
    """The empty sum is 0, the empty product 1, the empty mean NaN, and all() of an empty array is True."""
    x = np.zeros((0, 3), np.float32)
    assert KERNELS["sum"](x, (0,), False, None).tolist() == [0, 0, 0]
    assert KERNELS["prod"](x, (0,), False, None).tolist() == [1, 1, 1]
    assert np.isnan(KERNELS["mean"](x, (0,), False, None)).all()
    assert KERNELS["all"](x, (0,), False).tolist() == [True] * 3
    assert KERNELS["amax"](x, (1,), False).shape == (0,)


def test_the_mean_has_the_gradient_of_a_mean() -> None:
    """Every element of a mean gets an equal share of its gradient."""
    x = cd.ones(2, 4, requires_grad=True)
    (x.mean(1) * 2).sum().backward()
    assert x.grad is not None
    assert x.grad._payload.tolist() == [[0.5] * 4] * 2


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint32", "uint64", "float16", "float32"])
@pytest.mark.parametrize("size", [3, 1 << 17])
def test_a_product_has_the_dtype_that_was_asked_for(dtype: str, size: int) -> None:
    """NumPy promotes products of small integers unless the dtype is passed."""
    wanted = getattr(cd, dtype)
    for name in ("prod", "sum"):
        actual = getattr(cd.ones(size, dtype=cd.int16), name)(dtype=wanted)
        assert actual.dtype is wanted
        assert actual.numpy().dtype.name == dtype


@pytest.mark.parametrize("dtype", [cd.float16, cd.bfloat16])
def test_spreads_of_many_halves_do_not_overflow(dtype: Any) -> None:
    """Neither the sum of squares nor the count of 100,000 halves fits float16; variance and deviation do."""
    x = cd.ones(100_000, dtype=dtype)
    x[::2] = -1
    assert [x.var().item(), x.std().item(), x.var(correction=0).item()] == [1, 1, 1]
    assert x.var().dtype is dtype


def test_the_body_of_the_mean_computes_halves_in_float32() -> None:
    """A device without a kernel for the mean gets 2 for 100,000 times 2, not infinity."""
    from candelabra.library import OPERATORS

    body = OPERATORS["mean"].body
    assert body is not None
    assert body(cd.full((100_000,), 2.0, dtype=cd.float16)).item() == 2
