"""Masked reductions, normalisations and scans, compared with NumPy's masked arrays and loops."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd import gradcheck, gradgradcheck

from tests.operators.comparing import close, same

INF, NAN = float("inf"), float("nan")
DIMS = [None, (), 0, -1, (0, 2), (2, 0)]


@pytest.fixture
def values(rng: np.random.Generator) -> Any:
    """Return normal numbers of shape (3, 4, 5)."""
    return rng.normal(size=(3, 4, 5))


@pytest.fixture
def selected(rng: np.random.Generator) -> Any:
    """Return a mask of that shape with an empty row, and a column that is full except for its first element."""
    mask = rng.random((3, 4, 5)) < 0.6
    mask[0, 0] = False
    mask[:, 1:, 0] = True
    return mask


def peer(name: str, masked: Any, axis: Any, keepdims: bool) -> Any:
    """Return NumPy's masked reduction, with masked results filled."""
    fill = {"sum": 0, "prod": 1, "max": -INF, "min": INF}.get(name, NAN)
    axis = None if axis in (None, ()) else axis
    function: Any = getattr(np.ma, name)
    return np.ma.filled(function(masked, axis=axis, keepdims=keepdims), fill)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize(
    ("name", "other"), [("sum", "sum"), ("prod", "prod"), ("amax", "max"), ("amin", "min"), ("mean", "mean")]
)
def test_reductions_leave_out_what_the_mask_says(
    name: str, other: str, dim: Any, keepdim: bool, values: Any, selected: Any
) -> None:
    """Any dims may be reduced; slices without elements give the identity, or NaN."""
    function = getattr(cd.masked, name)
    close(
        function(cd.tensor(values), dim, keepdim=keepdim, mask=cd.tensor(selected)),
        peer(other, np.ma.masked_array(values, ~selected), dim, keepdim),
    )
    without = getattr(np, other)(values, axis=None if dim == () else dim, keepdims=keepdim)
    close(function(cd.tensor(values), dim, keepdim=keepdim), without)


@pytest.mark.parametrize("dim", [None, 1, (0, 2)])
@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("masked", [False, True])
def test_variance_of_what_is_selected(dim: Any, correction: int, masked: bool, values: Any, selected: Any) -> None:
    """``correction`` and its older name work, and so do complex numbers."""
    mask = selected if masked else np.ones_like(selected)
    x, m = cd.tensor(values), cd.tensor(selected) if masked else None
    expected = np.ma.filled(np.ma.var(np.ma.masked_array(values, ~mask), axis=dim, ddof=correction), NAN)
    close(cd.masked.var(x, dim, correction=correction, mask=m), expected)
    close(cd.masked.std(x, dim, bool(correction), mask=m), np.sqrt(expected))
    kept = cd.masked.var(x, dim, bool(correction), keepdim=True, mask=m)
    assert kept.ndim == 3
    z = values + 1j * values[::-1]
    first = np.var(z[selected], ddof=correction)
    found = cd.masked.var(cd.tensor(z), correction=correction, mask=cd.tensor(selected))
    np.testing.assert_allclose(found.item(), first, rtol=1e-12)


def test_the_same_for_integers() -> None:
    """Sums and products are int64, extremes keep the dtype, moments are floats."""
    x, m = cd.tensor([[1, 2, 3], [4, 5, 6]], dtype=cd.int8), cd.tensor([True, False, True])
    same(cd.masked.sum(x, 1, mask=m), [4, 10], cd.int64)
    same(cd.masked.prod(x, 1, mask=m), [3, 24], cd.int64)
    same(cd.masked.amax(x, 0, mask=m), [4, -128, 6], cd.int8)
    same(cd.masked.amin(x, 0, mask=m), [1, 127, 3], cd.int8)
    same(cd.masked.amin(x.to(cd.uint8), 0, mask=m), [1, 255, 3], cd.uint8)
    same(cd.masked.mean(x, 1, dtype=cd.float32, mask=m), [2, 5], cd.float32)
    same(cd.masked.var(x, 1, mask=m), [2, 2], cd.float32)
    same(cd.masked.median(x, 1, mask=m), [1, 4], cd.int8)
    same(cd.masked.argmax(x, 1, dtype=cd.int64, mask=m), [2, 2], cd.int64)
    same(cd.masked.argmin(x, mask=m), 0, cd.int8)
    same(cd.masked.cumsum(x, 1, mask=m), [[1, 1, 4], [4, 4, 10]], cd.int8)
    close(cd.masked.logsumexp(x, 1, dtype=cd.float64, mask=m), np.log(np.exp([[1, 3], [4, 6]]).sum(1)), rtol=1e-6)


def test_places_of_extremes_are_among_what_is_selected() -> None:
    """The result has the input's dtype by default, as in PyTorch."""
    x, m = cd.tensor([[9.0, 1.0, 5.0], [0.0, 2.0, 3.0]]), cd.tensor([[False, True, True], [False, True, True]])
    same(cd.masked.argmax(x, 1, mask=m), [2, 2], cd.float32)
    same(cd.masked.argmin(x, 1, keepdim=True, dtype=cd.int64, mask=m), [[1], [1]], cd.int64)
    same(cd.masked.argmax(x), 0)


def test_medians_of_what_is_selected() -> None:
    """The lower middle is returned; empty slices give NaN, and are an error for integers."""
    x, m = cd.tensor([[9.0, 1.0, 5.0], [0.0, 2.0, 3.0]]), cd.tensor([[True, True, True], [False, False, False]])
    same(cd.masked.median(x, mask=m), [5, NAN])
    same(cd.masked.median(x, 0, keepdim=True, mask=m), [[9, 1, 5]])
    with pytest.raises(ValueError, match="masked median expects no fully masked out rows if dtype is not floating"):
        cd.masked.median(x.to(cd.int64), mask=m)


@pytest.mark.parametrize("order", [2.0, 1.0, 3.0, INF, -INF, 0.0])
def test_norms_of_what_is_selected(order: float, values: Any, selected: Any) -> None:
    """An empty norm is 0, or infinity for the order minus infinity."""
    found = cd.masked.norm(cd.tensor(values), order, 1, mask=cd.tensor(selected))
    empty = INF if order == -INF else 0.0
    for i in range(3):
        for j in range(5):
            chosen = values[i, selected[i, :, j], j]
            expected = np.linalg.norm(chosen, order) if chosen.size else empty
            np.testing.assert_allclose(found[i, j].item(), expected, rtol=1e-12)


def test_log_sum_exps_of_what_is_selected(values: Any, selected: Any) -> None:
    """An empty slice gives minus infinity."""
    with np.errstate(divide="ignore"):
        expected = np.log(np.where(selected, np.exp(values), 0).sum(2))
    close(cd.masked.logsumexp(cd.tensor(values), 2, mask=cd.tensor(selected)), expected)
    a, b = cd.tensor([-100.0, -200.0, -300.0]), cd.tensor([-1.0, -2.0, -3.0])
    m = cd.tensor([True, False, True])
    same(cd.masked.logaddexp(a, b, input_mask=m, other_mask=m), [-1, -INF, -3])


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_normalisations_leave_the_shape(dim: int, values: Any, selected: Any) -> None:
    """Masked elements are 0 (minus infinity in logarithms), and the others are normalised among themselves."""
    x, m = cd.tensor(values), cd.tensor(selected)
    with np.errstate(invalid="ignore", divide="ignore"):
        powers = np.where(selected, np.exp(values), 0)
        soft = powers / powers.sum(dim, keepdims=True)
        inverse = np.where(selected, np.exp(-values), 0)
        softmin = inverse / inverse.sum(dim, keepdims=True)
        close(cd.masked.softmax(x, dim, mask=m), soft)
        close(cd.masked.log_softmax(x, dim, mask=m).exp(), soft)
        close(cd.masked.softmin(x, dim, mask=m), softmin)
    length = np.sqrt(np.where(selected, values**2, 0).sum(dim, keepdims=True))
    close(cd.masked.normalize(x, 2.0, dim, mask=m), np.where(selected, values, 0) / np.maximum(length, 1e-12))
    close(cd.masked.cumsum(x, dim, mask=m), np.cumsum(np.where(selected, values, 0), dim))
    close(cd.masked.cumprod(x, dim, mask=m), np.cumprod(np.where(selected, values, 1), dim))
    assert cd.masked.softmax(x, dim, dtype=cd.float32).dtype is cd.float32


def test_masks_broadcast(values: Any) -> None:
    """A mask with fewer dims is broadcast; uint8 is read as bool."""
    m = cd.tensor([1, 0, 1, 0, 1], dtype=cd.uint8)
    close(cd.masked.sum(cd.tensor(values), 2, mask=m), values[..., [0, 2, 4]].sum(2))
    with pytest.raises(IndexError, match="expected broadcastable mask"):
        cd.masked.sum(cd.ones(2), mask=cd.ones(2, 2) > 0)


def test_the_mask_of_a_result(values: Any, selected: Any) -> None:
    """It is True for slices with elements, or the input's mask if the shape does not change."""
    x, m = cd.tensor(values), cd.tensor(selected)
    same(cd.masked._output_mask(cd.masked.sum, x, 2, mask=m), selected.any(2))
    same(
        cd.masked._output_mask(cd.masked.norm, x, 2.0, (0, 1), keepdim=True, mask=m),
        selected.any((0, 1), keepdims=True),
    )
    same(cd.masked._output_mask(cd.masked.median, x, mask=m), selected.any(2))
    same(cd.masked._output_mask(cd.masked.softmax, x, 2, mask=m), selected)
    with pytest.raises(ValueError, match="_input_mask requires explicit mask"):
        cd.masked._input_mask(x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, m: cd.masked.sum(x, 1, mask=m) ** 2,
        lambda x, m: cd.masked.prod(x, 1, mask=m) ** 2,
        lambda x, m: cd.masked.amax(x, mask=m) ** 2,
        lambda x, m: cd.masked.mean(x, 1, mask=m) ** 2,
        lambda x, m: cd.masked.median(x, 1, mask=m) ** 2,
        lambda x, m: cd.masked.std(x, 1, mask=m) ** 2,
        lambda x, m: cd.masked.logsumexp(x, 1, mask=m) ** 2,
        lambda x, m: cd.masked.norm(x, 2, 1, mask=m) ** 2,
        lambda x, m: cd.masked.softmax(x, 1, mask=m) ** 2,
        lambda x, m: cd.masked.normalize(x, 2, 1, mask=m) ** 2,
        lambda x, m: cd.masked.cumprod(x, 1, mask=m) ** 2,
    ],
)
def test_masked_operations_are_differentiable_twice(function: Callable[[Any, Any], Any]) -> None:
    """Masked elements have no gradient."""
    x = cd.tensor([[0.3, 0.9, 0.5], [1.4, -0.2, 0.7]], dtype=cd.float64, requires_grad=True)
    m = cd.tensor([[True, False, True], [True, True, True]])
    assert gradcheck(lambda y: function(y, m), (x,))
    assert gradgradcheck(lambda y: function(y, m), (x,))
    (g,) = cd.autograd.grad(function(x, m).sum(), x)
    assert g[0, 1].item() == 0


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "twice": (lambda: cd.masked.sum(cd.ones(2, 2), (0, -2)), RuntimeError, "dim 0 appears multiple times"),
    "dim": (lambda: cd.masked.sum(cd.ones(2), 1), IndexError, "Dimension out of range (expected to be in range of [-1"),
    "mean": (
        lambda: cd.masked.mean(cd.tensor([1])),
        ValueError,
        "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype.",
    ),
    "mean dtype": (
        lambda: cd.masked.mean(cd.ones(2), dtype=cd.int64),
        ValueError,
        "mean(): Could not infer output dtype. Optional dtype must be",
    ),
    "variance": (
        lambda: cd.masked.var(cd.ones(2), None, True, correction=1),
        ValueError,
        "Only one of unbiased and correction may be given",
    ),
    "identity": (
        lambda: cd.masked.amax(cd.ones(2, dtype=cd.complex64)),
        NotImplementedError,
        "the identity of an extremum is not defined for candelabra.complex64",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_masked_operations_cannot_take(case: str) -> None:
    """Invalid arguments are errors."""
    call, kind, text = ERRORS[case]
    with pytest.raises(kind, match=re.escape(text)):
        call()
