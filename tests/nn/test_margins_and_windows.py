"""Margin losses, likelihoods, shuffles, unfold and fold, alpha dropout: values, derivatives, errors."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.nn import functional as F

from tests.nn.network_samples import array, check_gradients, normal, tensor

X, Y, Z = normal(4, 5), normal(4, 5, seed=1), normal(4, 5, seed=2)
SIGNS = np.where(normal(4, 5, seed=3) > 0, 1.0, -1.0)
CLASSES = np.array([1, 0, 4, 2])


def _distance(a: np.ndarray, b: np.ndarray, p: float = 2) -> np.ndarray:
    return np.linalg.norm(a - b + 1e-6, p, -1)


def _of_classes(x: np.ndarray, p: int) -> np.ndarray:
    others = np.maximum(0, 1 - x[np.arange(4), CLASSES][:, None] + x) ** p
    others[np.arange(4), CLASSES] = 0
    return others.sum(1) / 5


COSINE = (X * Y).sum(1) / np.sqrt((X * X).sum(1) * (Y * Y).sum(1))
LOSSES: dict[str, tuple[Any, Any, tuple[np.ndarray, ...]]] = {
    "margin_ranking": (
        lambda x, y, **k: F.margin_ranking_loss(x, y, tensor(SIGNS), 0.5, **k),
        np.maximum(0, 0.5 - SIGNS * (X - Y)),
        (X, Y),
    ),
    "hinge_embedding": (
        lambda x, **k: F.hinge_embedding_loss(x, tensor(SIGNS), 0.7, **k),
        np.where(SIGNS == 1, X, np.maximum(0, 0.7 - X)),
        (X,),
    ),
    "cosine_embedding": (
        lambda x, y, **k: F.cosine_embedding_loss(x, y, tensor(SIGNS[:, 0]), 0.1, **k),
        np.where(SIGNS[:, 0] == 1, 1 - COSINE, np.maximum(0, COSINE - 0.1)),
        (X, Y),
    ),
    "triplet": (
        lambda x, y, z, **k: F.triplet_margin_loss(x, y, z, 2.0, 3.0, **k),
        np.maximum(0, _distance(X, Y, 3) - _distance(X, Z, 3) + 2),
        (X, Y, Z),
    ),
    "triplet swapped": (
        lambda x, y, z, **k: F.triplet_margin_with_distance_loss(x, y, z, margin=2.0, swap=True, **k),
        np.maximum(0, _distance(X, Y) - np.minimum(_distance(X, Z), _distance(Y, Z)) + 2),
        (X, Y, Z),
    ),
    "soft_margin": (
        lambda x, **k: F.soft_margin_loss(x, tensor(SIGNS), **k),
        np.log1p(np.exp(-SIGNS * X)),
        (X,),
    ),
    "multilabel_soft_margin": (
        lambda x, **k: F.multilabel_soft_margin_loss(x, tensor((SIGNS + 1) / 2), **k),
        np.log1p(np.exp(-SIGNS * X)).mean(1),
        (X,),
    ),
    "multi_margin": (lambda x, **k: F.multi_margin_loss(x, tensor(CLASSES), **k), _of_classes(X, 1), (X,)),
    "multi_margin squared": (
        lambda x, **k: F.multi_margin_loss(x, tensor(CLASSES), 2, weight=tensor(np.arange(5.0)), **k),
        _of_classes(X, 2) * CLASSES,
        (X,),
    ),
    "gaussian_nll": (
        lambda x, v, **k: F.gaussian_nll_loss(x, tensor(Y), v, True, **k),
        0.5 * (np.log(2 * np.pi * np.exp(Z)) + (X - Y) ** 2 / np.exp(Z)),
        (X, np.exp(Z)),
    ),
    "poisson_nll": (lambda x, **k: F.poisson_nll_loss(x, tensor(Y * Y), **k), np.exp(X) - Y * Y * X, (X,)),
    "poisson_nll of rates": (
        lambda x, **k: F.poisson_nll_loss(x, tensor(np.full((4, 5), 3.0)), False, True, **k),
        np.exp(X) - 3 * np.log(np.exp(X) + 1e-8) + 3 * math.log(3) - 3 + 0.5 * math.log(6 * math.pi),
        (np.exp(X),),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_by_their_definitions(name: str) -> None:
    """Values with every reduction, and first and second derivatives, agree with the definition."""
    call, expected, inputs = LOSSES[name]
    given = [tensor(x) for x in inputs]
    np.testing.assert_allclose(array(call(*given, reduction="none")), expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(array(call(*given)), expected.mean(), rtol=1e-6)
    np.testing.assert_allclose(array(call(*given, reduction="sum")), expected.sum(), rtol=1e-6)
    check_gradients(call, *inputs)
    with pytest.raises(ValueError, match="abc is not"):
        call(*given, reduction="abc")


def test_multilabel_margin_loss_reads_labels_up_to_the_first_negative_one() -> None:
    """Entries after -1 are not labels, and labels are not compared with one another."""
    x = np.array([0.1, 0.2, 0.4, 0.8])
    target = np.array([3, 0, -1, 1])
    expected = 0.25 * (1 - (0.8 - 0.2) + 1 - (0.8 - 0.4) + 1 - (0.1 - 0.2) + 1 - (0.1 - 0.4))
    np.testing.assert_allclose(array(F.multilabel_margin_loss(tensor(x), tensor(target))), expected)
    both = F.multilabel_margin_loss(tensor(np.stack([x, x])), tensor(np.stack([target, target])), reduction="none")
    np.testing.assert_allclose(array(both), [expected, expected])
    check_gradients(lambda x: F.multilabel_margin_loss(x, tensor(target)), x)


def test_soft_margin_loss_does_not_overflow() -> None:
    """The loss of a score of a thousand with the wrong sign is a thousand."""
    assert F.soft_margin_loss(cd.tensor([-1000.0]), cd.ones(1)).item() == 1000.0


def test_a_variance_below_eps_still_gets_a_gradient() -> None:
    """The gradient does not depend on the lower limit of the variance."""
    var = cd.zeros(2, requires_grad=True)
    F.gaussian_nll_loss(cd.ones(2), cd.zeros(2), var, eps=0.5, reduction="sum").backward()
    assert var.grad.tolist() == [-1.0, -1.0]
    assert F.gaussian_nll_loss(cd.ones(2, 3), cd.zeros(2, 3), cd.ones(2)).item() == 0.5
    assert F.gaussian_nll_loss(cd.ones(2), cd.zeros(2), 1.0).item() == 0.5


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, math.inf])
def test_normalize_divides_by_the_norm(p: float) -> None:
    """Results have norm 1; vectors of zeros do not change, and their gradient is finite."""
    norms = (np.abs(X) ** p).sum(1) ** (1 / p) if p < math.inf else np.abs(X).max(1)
    np.testing.assert_allclose(array(F.normalize(tensor(X), p)), X / norms[:, None], rtol=1e-12)
    check_gradients(lambda x: F.normalize(x, p), X)
    zero = cd.zeros(1, 3, requires_grad=True)
    F.normalize(zero, p).sum().backward()
    assert zero.grad.isfinite().all()
    out = cd.empty(0, dtype=cd.float64)
    assert F.normalize(tensor(X), p, out=out) is out


def test_normalize_by_the_number_of_entries() -> None:
    """The 0-norm is the number of elements other than 0."""
    assert F.normalize(cd.tensor([[2.0, 0.0, 4.0]]), 0).tolist() == [[1.0, 0.0, 2.0]]


def test_shuffles_permute_pixels_and_channels() -> None:
    """Each shuffle is the permutation of its definition, and pixel_unshuffle inverts pixel_shuffle."""
    x = normal(2, 8, 3, 2)
    out = F.pixel_shuffle(tensor(x), 2)
    expected = np.zeros((2, 2, 6, 4))
    for i in range(2):
        for j in range(2):
            expected[:, :, i::2, j::2] = x[:, 2 * i + j :: 4]
    np.testing.assert_array_equal(array(out), expected)
    np.testing.assert_array_equal(array(F.pixel_unshuffle(out, 2)), x)
    order = [0, 4, 1, 5, 2, 6, 3, 7]
    np.testing.assert_array_equal(array(F.channel_shuffle(tensor(x), 2)), x[:, order])


@pytest.mark.parametrize(("kernel", "dilation", "padding", "stride"), [(2, 1, 0, 1), ((2, 3), (2, 1), (1, 0), (1, 2))])
def test_unfold_is_convolution_without_the_weights(kernel: Any, dilation: Any, padding: Any, stride: Any) -> None:
    """Unfolded windows times weights are a convolution; :func:`fold` is the adjoint; derivatives are exact."""
    pair = (kernel, kernel) if isinstance(kernel, int) else kernel
    x, w = normal(2, 3, 6, 5), normal(4, 3, *pair)
    seen = F.unfold(tensor(x), kernel, dilation, padding, stride)
    out = F.conv2d(tensor(x), tensor(w), None, stride, padding, dilation)
    np.testing.assert_allclose(
        array(tensor(w).reshape((4, -1)) @ seen), array(out).reshape(2, 4, -1), rtol=1e-10, atol=1e-12
    )
    y = normal(*seen.shape, seed=5)
    back = F.fold(tensor(y), (6, 5), kernel, dilation, padding, stride)
    np.testing.assert_allclose((array(seen) * y).sum(), (x * array(back)).sum(), rtol=1e-10)
    check_gradients(lambda x: F.unfold(x, kernel, dilation, padding, stride), x)
    check_gradients(lambda y: F.fold(y, (6, 5), kernel, dilation, padding, stride), y)
    assert F.unfold(tensor(x[0]), kernel, dilation, padding, stride).shape == seen.shape[1:]
    assert F.fold(tensor(y[0]), (6, 5), kernel, dilation, padding, stride).shape == (3, 6, 5)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_lp_pool_is_the_norm_of_each_window(rank: int) -> None:
    """p = 1 gives the sum, p = inf the largest absolute value, and p = 2 the Euclidean norm of each window."""
    x = np.abs(normal(2, 3, *[4] * rank)) + 0.1
    call = (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)[rank - 1]
    parts = x.reshape(2, 3, *[2] * (2 * rank))
    dims = tuple(range(3, 3 + 2 * rank, 2))
    np.testing.assert_allclose(array(call(tensor(x), 1, 2)), parts.sum(dims), rtol=1e-10)
    np.testing.assert_allclose(array(call(tensor(x), 2, 2)), np.sqrt((parts**2).sum(dims)), rtol=1e-10)
    np.testing.assert_allclose(array(call(tensor(-x), math.inf, 2)), parts.max(dims), rtol=1e-10)
    np.testing.assert_allclose(array(call(tensor(-x), -math.inf, 2)), parts.min(dims), rtol=1e-10)


def test_local_response_norm_uses_neighboring_channels() -> None:
    """The sum is over three channels; channels beyond the ends count as 0."""
    x = normal(2, 4, 3)
    padded = np.pad(x * x, ((0, 0), (1, 1), (0, 0)))
    mean = (padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]) / 3
    out = F.local_response_norm(tensor(x), 3, 0.1, 0.5, 2.0)
    np.testing.assert_allclose(array(out), x / (2 + 0.1 * mean) ** 0.5, rtol=1e-10)
    empty = cd.empty(0, 2, 3)
    assert F.local_response_norm(empty, 3) is empty


# -- random -----------------------------------------------------------------------------------------------------------
def test_alpha_dropout_keeps_mean_and_variance() -> None:
    """Mean and variance of normal numbers stay, also for channels; in evaluation or with p = 0 nothing changes."""
    cd.manual_seed(0)
    x = cd.randn(40, 50, 10)
    out = F.alpha_dropout(x, 0.3, True)
    assert abs(out.mean().item()) < 0.03
    assert abs(out.var().item() - 1) < 0.05
    assert F.alpha_dropout(x, 0.3) is x
    assert F.alpha_dropout(x, 1.0, True).abs().sum().item() == 0
    whole = F.feature_alpha_dropout(cd.zeros(40, 50, 10), 0.3, True)
    assert (whole == whole[:, :, :1]).all()
    assert len(set(whole[:, :, 0].reshape(-1).tolist())) == 2
    assert F.alpha_dropout(x, 0.3, True, inplace=True) is x


def test_rrelu_draws_slopes_between_its_bounds() -> None:
    """Positive numbers do not change; in evaluation the slope is the mean; the in-place form writes into its input."""
    x = cd.tensor([-1.0] * 100 + [2.0])
    drawn = F.rrelu(x, 0.1, 0.3, True)
    assert drawn[-1].item() == 2.0
    assert len(set(drawn[:-1].tolist())) > 50
    assert ((drawn[:-1] <= -0.1) & (drawn[:-1] >= -0.3)).all()
    np.testing.assert_allclose(array(F.rrelu(x, 0.1, 0.3))[0], -0.2, rtol=1e-6)
    assert cd.rrelu_(x, 0.1, 0.3) is x


ONE = cd.ones(1)
ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda: F.margin_ranking_loss(ONE, ONE, cd.ones(1, 1)), RuntimeError, "should have same dimension but got sizes"),
    (lambda: F.cosine_embedding_loss(ONE, ONE, ONE), RuntimeError, "1D target tensor expects 2D input tensors"),
    (lambda: F.cosine_embedding_loss(ONE, ONE, cd.ones(1, 1)), RuntimeError, "multi-target not supported"),
    (lambda: F.triplet_margin_loss(ONE, ONE, ONE, 0.0), ValueError, "margin must be greater than 0, got 0.0"),
    (lambda: F.triplet_margin_loss(ONE, ONE, cd.ones(1, 1)), RuntimeError, "same number of dimensions, but got: anc"),
    (lambda: F.multilabel_margin_loss(ONE, cd.tensor([0, 0])), RuntimeError, "inconsistent target size: .2. for"),
    (lambda: F.multilabel_margin_loss(ONE, ONE), RuntimeError, "expected scalar type Long but found Float"),
    (lambda: F.multilabel_margin_loss(ONE, cd.tensor([1])), RuntimeError, "argument #2 'target' is out of range"),
    (lambda: F.multi_margin_loss(ONE, cd.tensor(0), 3), ValueError, "only p == 1 and p == 2 supported"),
    (lambda: F.multi_margin_loss(ONE, cd.tensor(0), weight=cd.ones(1, 1)), ValueError, "must be one-dimensional"),
    (lambda: F.multi_margin_loss(ONE, cd.tensor(0), weight=cd.ones(2)), RuntimeError, "inconsistent weight size"),
    (lambda: F.multi_margin_loss(ONE, cd.tensor([0, 0])), RuntimeError, "target tensor should be 1-D with size equal"),
    (lambda: F.multi_margin_loss(ONE, cd.tensor(1)), RuntimeError, "target out of range"),
    (lambda: F.multi_margin_loss(cd.ones(1, 1, 1), cd.tensor(0)), RuntimeError, "Expected non-empty vector or matrix"),
    (lambda: F.gaussian_nll_loss(ONE, ONE, -ONE), ValueError, "var has negative entry/entries"),
    (lambda: F.gaussian_nll_loss(ONE, ONE, cd.ones(3, 3)), ValueError, "var is of incorrect size"),
    (lambda: F.normalize(cd.ones(1, 2, dtype=cd.int64)), RuntimeError, "floating point or complex tensor as input"),
    (lambda: F.pixel_shuffle(ONE, 2), RuntimeError, "at least 3 dimensions, but got input with 1 dimension"),
    (lambda: F.pixel_shuffle(cd.ones(1, 1, 1), 0), RuntimeError, "expects a positive upscale_factor, but got 0"),
    (lambda: F.pixel_shuffle(cd.ones(3, 1, 1), 2), RuntimeError, "is not divisible by 4"),
    (lambda: F.pixel_unshuffle(cd.ones(1, 2, 3), 2), RuntimeError, "expects width to be divisible by downscale"),
    (lambda: F.channel_shuffle(cd.ones(1, 2), 1), RuntimeError, "expects input with > 2 dims"),
    (lambda: F.channel_shuffle(cd.ones(1, 3, 1), 0), RuntimeError, "must be positive. Value of groups:0"),
    (lambda: F.channel_shuffle(cd.ones(1, 3, 1), 2), RuntimeError, "Got 3 channels and 2 groups"),
    (lambda: F.unfold(cd.ones(1, 2, 2), 3), RuntimeError, "its components must be at least one"),
    (lambda: F.unfold(cd.ones(2, 2), 3), RuntimeError, "Expected 3D or 4D .batch mode. tensor"),
    (lambda: F.unfold(cd.ones(1, 2, 2), 0), RuntimeError, "kernel size should be greater than zero, but got kernel_h"),
    (lambda: F.unfold(cd.ones(1, 2, 2), 1, padding=-1), RuntimeError, "padding should be non-negative, but got pad_he"),
    (lambda: F.unfold(cd.ones(1, 2, 2), (1, 1, 1)), RuntimeError, "expected kernel_size equals to 2, but got size 3"),
    (lambda: F.unfold(cd.arange(4).reshape(1, 2, 2), 1), NotImplementedError, "\"unfold\" not implemented for 'Long'"),
    (lambda: F.fold(cd.ones(3, 1), 2, 2), RuntimeError, "to be divisible by the product of kernel_size"),
    (lambda: F.fold(cd.ones(4, 2), 2, 2), RuntimeError, "calculated number of sliding blocks 1 . 1 = 1, but got inp"),
    (lambda: F.fold(cd.ones(4, 1), (2, 2, 2), 2), RuntimeError, "expected output_size equals to 2, but got size 3"),
    (lambda: F.local_response_norm(cd.ones(1, 1), 2), ValueError, "Expected 3D or higher dimensionality input .got 2"),
    (lambda: F.alpha_dropout(ONE, 2.0), ValueError, "dropout probability has to be between 0 and 1, but got 2.0"),
    (lambda: F.feature_alpha_dropout(ONE, 0.5, True), RuntimeError, "requires at least 2 dimensions in the input"),
    (lambda: F.rrelu(ONE, math.inf), RuntimeError, "rrelu: lower bound must be finite, got inf"),
    (lambda: F.rrelu(ONE, 0.3, 0.1), RuntimeError, "Lower bound should be less than or equal to the upper bound"),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_bad_arguments_are_named(case: int) -> None:
    """Bad arguments raise PyTorch's class of error with its text."""
    call, error, text = ERRORS[case]
    with pytest.raises(error, match=text):
        call()
