"""Reductions: sums without NaN, counts, pairs of extremes and moments, quantiles, compared with NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd import gradcheck, gradgradcheck

from tests.operators.comparing import close, same

NAN, INF = float("nan"), float("inf")


# -- sums, means, counts ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_nansum_and_nanmean_are_numpys(axis: Any, keepdim: bool, rng: np.random.Generator) -> None:
    """NaN is ignored, along any dims."""
    i, j, k = np.indices((3, 4, 5))
    holes = (rng.random((3, 4, 5)) < 0.3) & ((j + k) % 3 != i)  # Every slice has at least one number.
    holed = np.where(holes, NAN, rng.normal(size=(3, 4, 5)))
    x = cd.tensor(holed)
    close(cd.nansum(x, axis, keepdim), np.nansum(holed, axis=axis, keepdims=keepdim))
    close(x.nanmean(dim=axis, keepdim=keepdim), np.nanmean(holed, axis=axis, keepdims=keepdim))


def test_nothing_but_nan_sums_to_zero_and_has_no_mean() -> None:
    """The results equal those of an empty tensor."""
    x = cd.tensor([[NAN, NAN], [1.0, NAN]])
    same(x.nansum(1), [0, 1])
    same(x.nanmean(1), [NAN, 1])
    same(cd.zeros(0).nansum(), 0)
    same(cd.zeros(0).nanmean(), NAN)
    same(cd.tensor([INF, -INF, 1.0]).nansum(), NAN)


def test_nansum_of_integers_is_their_sum() -> None:
    """The result is int64, or the requested dtype."""
    same(cd.tensor([1, 2], dtype=cd.int8).nansum(), 3, cd.int64)
    same(cd.tensor([True, True]).nansum(dtype=cd.float32), 2, cd.float32)
    same(cd.tensor([1.5, NAN]).to(cd.bfloat16).nansum().float(), 1.5)
    same(cd.tensor([1, 2]).nanmean(dtype=cd.float64), 1.5, cd.float64)


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64", "bool", "float16"])
def test_count_nonzero_counts(dtype: str, rng: np.random.Generator) -> None:
    """No dim, one or several; NaN counts as nonzero."""
    a = rng.integers(0, 2, (3, 4, 5)).astype(dtype)
    x = cd.tensor(a)
    same(x.count_nonzero(), np.count_nonzero(a), cd.int64)
    same(cd.count_nonzero(x, 1), np.count_nonzero(a, axis=1))
    same(cd.count_nonzero(x, (0, 2)), np.count_nonzero(a, axis=(0, 2)))
    same(cd.tensor([NAN, 0.0, -0.0]).count_nonzero(), 1)


def test_mean_of_integers_needs_a_dtype() -> None:
    """The input is converted to the floating dtype first."""
    same(cd.tensor([1, 2]).mean(dtype=cd.float32), 1.5, cd.float32)
    with pytest.raises(RuntimeError, match="it takes floating dtypes"):
        cd.tensor([1, 2]).mean()
    with pytest.raises(RuntimeError, match=r"mean\(\): could not infer output dtype. Optional dtype must be"):
        cd.tensor([1.0, 2.0]).mean(dtype=cd.int64)
    with pytest.raises(RuntimeError, match="it takes floating dtypes"):
        cd.tensor([1, 2]).mean(dtype=cd.int64)


def test_all_and_any_answer_in_uint8_for_uint8() -> None:
    """As in PyTorch; other dtypes give bool; an empty tuple of dims works element by element."""
    same(cd.tensor([1, 2], dtype=cd.uint8).all(), 1, cd.uint8)
    same(cd.tensor([[0, 2], [0, 0]], dtype=cd.uint8).any(1), [1, 0], cd.uint8)
    same(cd.tensor([[0, 2], [0, 0]]).any((0, 1)), True, cd.bool)
    same(cd.tensor([0.0, 2.0]).all(()), [False, True], cd.bool)
    same(cd.tensor([0, 2], dtype=cd.uint8).any(dim=()), [0, 1], cd.uint8)
    out = cd.zeros((), dtype=cd.bool)
    assert cd.all(cd.tensor([1]), out=out) is out
    assert out.item() is True


# -- pairs ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float64", "int32", "bool"])
def test_aminmax_is_the_pair_of_extremes(dtype: str, rng: np.random.Generator) -> None:
    """All elements, or one dim, are reduced."""
    a = rng.integers(-9, 9, (3, 4)).astype(dtype)
    low, high = cd.aminmax(cd.tensor(a))
    same(low, a.min())
    same(high, a.max())
    found = cd.tensor(a).aminmax(dim=1, keepdim=True)
    same(found.min, a.min(1, keepdims=True))
    same(found.max, a.max(1, keepdims=True))
    assert [t.item() for t in cd.tensor([1.0, NAN]).aminmax()] == pytest.approx([NAN, NAN], nan_ok=True)
    same(cd.tensor(3.0).aminmax(dim=0).max, 3)


def test_aminmax_writes_into_a_pair() -> None:
    """``out=`` is a tuple of two tensors with the correct dtypes."""
    low, high = cd.zeros(()), cd.zeros(())
    found = cd.aminmax(cd.tensor([2.0, 5.0]), out=(low, high))
    assert found.min is low
    assert [low.item(), high.item()] == [2, 5]
    with pytest.raises(RuntimeError, match=r"Expected out tensor to have dtype candelabra\.float32, but got"):
        cd.aminmax(cd.tensor([2.0, 5.0]), out=(cd.zeros((), dtype=cd.float64), high))
    with pytest.raises(TypeError, match=r"aminmax\(\): argument 'out' must be a tuple of 2 Tensors"):
        cd.aminmax(cd.tensor([2.0, 5.0]), out=low)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        cd.aminmax(cd.tensor([2.0, 5.0], requires_grad=True), out=(low, high))


@pytest.mark.parametrize("options", [{}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}, {"axis": 0, "keepdims": True}])
@pytest.mark.parametrize("correction", [None, 0, 1, 2])
def test_var_mean_and_std_mean_are_numpys(options: dict[str, Any], correction: Any, rng: np.random.Generator) -> None:
    """A correction of None is 1."""
    a = rng.normal(size=(3, 4, 5))
    said = {"axis": options.get("dim", options.get("axis")), "keepdims": len(options) > 1}
    ddof = 1 if correction is None else correction
    variance, mean = cd.var_mean(cd.tensor(a), correction=correction, **options)
    close(variance, a.var(ddof=ddof, **said))
    close(mean, a.mean(**said))
    deviation, mean = cd.std_mean(cd.tensor(a), correction=correction, **options)
    close(deviation, a.std(ddof=ddof, **said))
    close(mean, a.mean(**said))


def test_moments_take_the_older_name_of_correction(rng: np.random.Generator) -> None:
    """``unbiased`` is the second or third argument."""
    a = rng.normal(size=(3, 4))
    x = cd.tensor(a)
    close(cd.var_mean(x, False)[0], a.var())
    close(cd.std_mean(x, 1, True)[0], a.std(1, ddof=1))
    close(cd.std_mean(x, dim=1, unbiased=False, keepdim=True)[1], a.mean(1, keepdims=True))
    close(cd.var(x, unbiased=True), a.var(ddof=1))
    out = cd.zeros(3, dtype=cd.float64)
    assert cd.std(x, 1, out=out) is out
    close(out, a.std(1, ddof=1))
    close(x.var(correction=None), a.var(ddof=1))
    same(cd.tensor([1.0]).var(), NAN)
    same(cd.tensor([1.0, 2.0]).var(correction=3), INF)


def test_sum_to_size_undoes_an_expansion(rng: np.random.Generator) -> None:
    """Dims that are missing or have size 1 are summed."""
    a = rng.normal(size=(2, 3, 4))
    x = cd.tensor(a)
    close(x.sum_to_size(3, 1), a.sum(0).sum(1, keepdims=True))
    close(x.sum_to_size((2, 3, 4)), a)
    close(x.sum_to_size(1, 1, 1), a.sum(keepdims=True))
    close(cd.tensor(2.0).sum_to_size(()), 2)
    for size in ((2, 4), (5, 2, 3, 4), (0,)):
        with pytest.raises(RuntimeError, match=re.escape(f"size {list(size)} is not expandable to size [2, 3, 4].")):
            x.sum_to_size(size)


# -- max, min ---------------------------------------------------------------------------------------------------------
def test_max_and_min_take_numpys_names_and_out() -> None:
    """``axis``, ``keepdims``, ``other`` and a pair as ``out`` are accepted."""
    x = cd.tensor([[1.0, 5.0], [7.0, 2.0]])
    same(cd.max(x, axis=1).values, [5, 7])
    same(x.min(axis=0, keepdims=True).indices, [[0, 1]])
    same(cd.max(x, other=cd.tensor([3.0, 3.0])), [[3, 5], [7, 3]])
    values, indices = cd.zeros(2), cd.zeros(2, dtype=cd.int64)
    assert cd.max(x, 1, out=(values, indices)).values is values
    same(values, [5, 7])
    same(indices, [1, 0])
    total = cd.zeros(())
    assert cd.min(x, out=total) is total
    assert total.item() == 1
    assert cd.max(x, cd.ones(2), out=cd.zeros(2, 2)).tolist() == [[1, 5], [7, 2]]


# -- quantiles --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("dim", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_quantiles_are_numpys(method: str, dim: Any, keepdim: bool, rng: np.random.Generator) -> None:
    """One quantile or several, which become the first dim; with and without NaN."""
    a = rng.normal(size=(4, 3, 6))
    holed = a.copy()
    holed[1:, 1:, 1:][rng.random((3, 2, 5)) < 0.4] = NAN
    q = np.array([0.0, 0.1, 0.5, 0.77, 1.0])
    for name, data in (("quantile", a), ("nanquantile", holed)):
        function, peer = getattr(cd, name), getattr(np, name)
        x = cd.tensor(data)
        options: dict[str, Any] = {"axis": dim, "method": method, "keepdims": keepdim}
        close(function(x, cd.tensor(q), dim, keepdim, interpolation=method), peer(data, q, **options))
        close(function(x, 0.3, dim, keepdim, interpolation=method), peer(data, 0.3, **options))


def test_a_nan_spoils_the_quantile_of_its_slice() -> None:
    """nanquantile ignores it; for slices of NaN both are NaN."""
    x = cd.tensor([[1.0, NAN, 3.0], [1.0, 2.0, 4.0], [NAN, NAN, NAN]])
    same(x.quantile(0.5, 1), [NAN, 2, NAN])
    same(x.nanquantile(0.5, 1), [2, 2, NAN])
    same(cd.tensor(2.0).quantile(0.25), 2)
    same(cd.tensor(2.0).quantile(cd.tensor([0.1, 0.2]), keepdim=True), [2, 2])
    same(x.quantile(cd.tensor([]), 1), np.zeros((0, 3)))
    out = cd.zeros(3)
    assert cd.quantile(x, 0.5, axis=1, out=out) is out
    assert x.quantile(0.5, 1).dtype is cd.float32


QUANTILE_ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "dtype": (lambda: cd.tensor([1, 2]).quantile(0.5), "quantile() input tensor must be either float or double dtype"),
    "empty": (lambda: cd.zeros(0).quantile(0.5), "quantile() input tensor must be non-empty"),
    "q": (lambda: cd.ones(2).quantile(1.5), "quantile() q must be in the range [0, 1] but got 1.5"),
    "q tensor": (lambda: cd.ones(2).quantile(cd.tensor([2.0])), "quantile() q values must be in the range [0, 1]"),
    "q dims": (lambda: cd.ones(2).nanquantile(cd.ones(1, 1)), "nanquantile() q must be a scalar or 1D tensor"),
    "q dtype": (
        lambda: cd.ones(2).quantile(cd.ones(1, dtype=cd.float64)),
        "quantile() q tensor must be same dtype as the input tensor",
    ),
    "interpolation": (
        lambda: cd.ones(2).quantile(0.5, interpolation="cubic"),
        "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got cubic",
    ),
}


@pytest.mark.parametrize("case", QUANTILE_ERRORS)
def test_quantiles_say_what_they_cannot_take(case: str) -> None:
    """The errors are PyTorch's."""
    call, text = QUANTILE_ERRORS[case]
    with pytest.raises(RuntimeError, match=re.escape(text)):
        call()


# -- derivatives ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "function",
    [
        lambda x: cd.nansum(x, 0) ** 2,
        lambda x: cd.nanmean(x, 1) ** 2,
        lambda x: cd.aminmax(x, dim=1).min ** 2 * cd.aminmax(x, dim=1).max,
        lambda x: cd.var_mean(x, 1)[0] * cd.std_mean(x, 1)[0],
        lambda x: cd.quantile(x, cd.tensor([0.3, 0.9], dtype=cd.float64), 1) ** 2,
        lambda x: cd.nanquantile(x, 0.4, 0, interpolation="midpoint") ** 2,
        lambda x: x.sum_to_size(1, 3) ** 2,
        lambda x: x.cumprod(1) ** 2,
    ],
)
def test_reductions_are_differentiable_twice(function: Callable[[Any], Any]) -> None:
    """The gradient is assigned to the selected elements."""
    x = cd.tensor([[0.3, 0.9, 0.5], [1.4, -0.2, 0.7]], dtype=cd.float64, requires_grad=True)
    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


@pytest.mark.parametrize("row", [[2.0, 0.0, 3.0, 4.0], [0.0, 0.0, 3.0, 1.0], [2.0, 3.0, 4.0, 0.0]])
def test_cumprods_gradient_knows_zeros(row: list[float]) -> None:
    """Elements before, at and after the first zero agree with the quadratic formula, in linear time."""
    weights = cd.tensor([0.3, -0.7, 1.1, 0.9], dtype=cd.float64)
    x = cd.tensor([row], dtype=cd.float64, requires_grad=True)
    (fast,) = cd.autograd.grad((x.cumprod(1) * weights).sum(), x)
    (slow,) = cd.autograd.grad((x.cumprod(1) * weights).sum(), x, create_graph=True)
    close(fast, slow.detach().numpy())
    assert gradgradcheck(lambda y: y.cumprod(1) * weights, (x,))


def test_an_infinity_spoils_the_gradient_of_no_other_element_of_a_product() -> None:
    """No factor is multiplied by 0, whatever its position."""
    for row, expected in (([INF, 2.0, 3.0], [6, INF, INF]), ([2.0, INF, 3.0], [INF, 6, INF])):
        x = cd.tensor(row, requires_grad=True)
        x.prod().backward()
        assert x.grad is not None
        assert x.grad.tolist() == expected


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 17])
def test_cumprods_gradient_is_that_of_the_outer_products(size: int) -> None:
    """Sizes that are powers of two and others, along any dim; complex numbers too."""
    values = np.random.default_rng(size).normal(size=(2, size)) + 1j * np.random.default_rng(size + 1).normal(
        size=(2, size)
    )
    for x in (cd.tensor(values, requires_grad=True), cd.tensor(values.real.copy().T, requires_grad=True)):
        dim = 1 if x.is_complex() else 0
        weights = cd.ones_like(x).cumsum(dim).detach()
        parts = [x.narrow(dim, 0, i + 1).prod(dim) for i in range(size)]
        (found,) = cd.autograd.grad((x.cumprod(dim) * weights).sum().real, x)
        (expected,) = cd.autograd.grad((cd.stack(parts, dim) * weights).sum().real, x)
        close(found, expected.numpy(), rtol=1e-10)


def test_nan_gets_no_gradient_from_a_sum_without_it() -> None:
    """NaN does not affect the gradients of other elements either."""
    x = cd.tensor([1.0, NAN, 2.0], requires_grad=True)
    x.nansum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1, 0, 1]


AMINMAX_ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "all": (lambda: cd.zeros(0).aminmax(), RuntimeError, "cannot compute aminmax over an empty dimension"),
    "dim": (lambda: cd.zeros(0, 2).aminmax(dim=0), IndexError, "Expected reduction dim 0 to have non-zero size"),
    "complex": (lambda: cd.zeros(2, dtype=cd.complex64).aminmax(), NotImplementedError, "it takes real dtypes"),
    "nansum": (lambda: cd.zeros(2, dtype=cd.complex64).nansum(), NotImplementedError, "it takes real dtypes"),
    "nanmean": (lambda: cd.zeros(2, dtype=cd.int64).nanmean(), NotImplementedError, "it takes floating dtypes"),
}


@pytest.mark.parametrize("case", AMINMAX_ERRORS)
def test_reductions_say_what_they_cannot_take(case: str) -> None:
    """Empty tensors, dtypes without an order, and complex dtypes are errors."""
    call, kind, text = AMINMAX_ERRORS[case]
    with pytest.raises(kind, match=text):
        call()
