"""Losses: values, derivatives, errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from candelabra.autograd import grad
from candelabra.autograd.gradcheck import gradcheck, gradgradcheck
from candelabra.nn import functional as F
from scipy import special

from tests.nn.network_samples import array, check_gradients, normal, tensor


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (2, 3, 2, 2)])
def test_cross_entropy_of_classes(shape: tuple[int, ...], weighted: bool, smoothing: float, reduction: str) -> None:
    """cross_entropy agrees with its definition for weights, ignored targets, smoothing, reductions and all ranks."""
    x = normal(*shape)
    target = np.random.default_rng(1).integers(0, 3, (shape[0], *shape[2:]))
    target.reshape(-1)[1] = -100
    w = np.array([0.5, 2.0, 1.0])
    used = w if weighted else np.ones(3)
    logs = np.moveaxis(special.log_softmax(x, 1), 1, -1)
    kept = target != -100
    safe = np.where(kept, target, 0)
    picked = -np.take_along_axis(logs, safe[..., None], -1)[..., 0] * used[safe]
    losses = ((1 - smoothing) * picked - smoothing / 3 * (logs * used).sum(-1)) * kept
    expected = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / (used[safe] * kept).sum()}[reduction]

    def loss(x: Any) -> Any:
        given = tensor(w) if weighted else None
        return F.cross_entropy(x, tensor(target), given, reduction=reduction, label_smoothing=smoothing)

    np.testing.assert_allclose(array(loss(tensor(x))), expected, rtol=1e-10, atol=1e-12)
    check_gradients(loss, x)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy_of_probabilities(smoothing: float) -> None:
    """A floating target in the logits' shape is a distribution, and has a gradient."""
    x, t, w = normal(4, 3, 2), special.softmax(normal(4, 3, 2, seed=1), 1), np.array([0.5, 2.0, 1.0])
    mixed = t * (1 - smoothing) + smoothing / 3
    expected = -(special.log_softmax(x, 1) * mixed * w[:, None]).sum() / 8
    out = F.cross_entropy(tensor(x), tensor(t), tensor(w), label_smoothing=smoothing)
    np.testing.assert_allclose(array(out), expected, rtol=1e-10)
    check_gradients(lambda x, t: F.cross_entropy(x, t, label_smoothing=smoothing), x, t)


def test_cross_entropy_of_special_inputs() -> None:
    """One sample needs no batch; the mean of no losses is NaN; an ignored -inf does not affect the others."""
    x = normal(3)
    np.testing.assert_allclose(array(F.cross_entropy(tensor(x), tensor(np.array(1)))), -special.log_softmax(x)[1])
    assert np.isnan(array(F.cross_entropy(tensor(normal(2, 3)), tensor(np.array([-100, -100])))))
    assert np.isnan(array(F.cross_entropy(tensor(np.zeros((0, 3))), tensor(np.zeros(0, np.int64)))))
    logs = tensor(np.array([[-np.inf, -1.0], [-np.inf, -2.0]]), True)
    out = F.nll_loss(logs, tensor(np.array([0, 1])), ignore_index=0)
    assert array(out) == 2.0
    (g,) = grad(out, [logs])
    np.testing.assert_array_equal(array(g), [[0.0, 0.0], [0.0, -1.0]])


LOSS_ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda x, t: F.cross_entropy(x, t([0, 3])), IndexError, "Target 3 is out of bounds."),
    (lambda x, t: F.cross_entropy(x, t([0, -3])), IndexError, "Target -3 is out of bounds."),
    (
        lambda x, t: F.cross_entropy(x, t([0, 1, 1])),
        ValueError,
        r"Expected input batch_size \(2\) to match target batch_size \(3\)",
    ),
    (
        lambda x, t: F.cross_entropy(x, t([0.0, 1.0])),
        RuntimeError,
        "expected target dtype to be Long or Byte, but got Double",
    ),
    (
        lambda x, t: F.cross_entropy(x, t([[0], [1]])),
        RuntimeError,
        "0D or 1D target tensor expected, multi-target not supported",
    ),
    (
        lambda x, t: F.cross_entropy(x, t([0, 1]), tensor(normal(4))),
        RuntimeError,
        "either for all 3 classes or no classes",
    ),
    (
        lambda x, t: F.cross_entropy(x, t([0, 1]), label_smoothing=1.5),
        RuntimeError,
        "label_smoothing must be between 0.0 and 1.0. Got: 1.5",
    ),
    (lambda x, t: F.cross_entropy(x, t([0, 1]), reduction="x"), ValueError, "x is not a valid value for reduction"),
    (lambda x, t: F.cross_entropy(x, x, reduction="x"), ValueError, "x is not a valid value for reduction"),
    (
        lambda x, t: F.cross_entropy(x, x, ignore_index=1),
        RuntimeError,
        "ignore_index is not supported for floating point target",
    ),
    (lambda x, t: F.cross_entropy(tensor(np.array(1.0)), t(0)), RuntimeError, "input must have a dimension of classes"),
    (
        lambda x, t: F.cross_entropy(tensor(normal(3)), t([0, 1])),
        ValueError,
        "For 1D input, 1D target must have size 1, but got target size: 2",
    ),
    (
        lambda x, t: F.cross_entropy(x, t([0.0, 1.0, 1.0])),
        ValueError,
        r"Expected input batch_size \(2\) to match target batch_size \(3\)",
    ),
    (
        lambda x, t: F.cross_entropy(x, t(0)),
        ValueError,
        r"Expected input batch_size \(2\) to match target batch_size \(0\)",
    ),
    (
        lambda x, t: F.cross_entropy(tensor(normal(2, 3, 4)), t(np.zeros((2, 5), int))),
        RuntimeError,
        r"Expected target size \[2, 4\], got \[2, 5\]",
    ),
    (
        lambda x, t: F.cross_entropy(tensor(normal(2, 3, 4, 4)), t(np.zeros((2, 4), int))),
        RuntimeError,
        "only batches of spatial targets supported",
    ),
    (
        lambda x, t: F.cross_entropy(tensor(normal(2, 3, 4, 4)), t(np.zeros((2, 4, 5), int))),
        RuntimeError,
        "size mismatch .got input",
    ),
    (lambda x, t: F.nll_loss(tensor(np.array(1.0)), t(0)), ValueError, r"Expected 1 or more dimensions \(got 0\)"),
    (
        lambda x, t: F.smooth_l1_loss(x, x, beta=-1.0),
        RuntimeError,
        "smooth_l1_loss does not support negative values for beta.",
    ),
    (
        lambda x, t: F.huber_loss(x, x, delta=0.0),
        RuntimeError,
        "huber_loss does not support non-positive values for delta.",
    ),
    (lambda x, t: F.mse_loss(x, x, reduction="foo"), ValueError, "foo is not a valid value for reduction"),
    (lambda x, t: F.mse_loss(x, x, weight=tensor(normal(3))), ValueError, "Weights and input must have the same size."),
    (lambda x, t: F.binary_cross_entropy(x * 9, x), RuntimeError, "all elements of input should be between 0 and 1"),
    (lambda x, t: F.binary_cross_entropy(x, tensor(normal(3))), ValueError, "that is different to the input size"),
    (lambda x, t: F.binary_cross_entropy(x, t([[0, 1, 1]] * 2)), RuntimeError, "Found dtype Long but expected Double"),
    (
        lambda x, t: F.binary_cross_entropy_with_logits(x, tensor(normal(3))),
        ValueError,
        "must be the same as input size",
    ),
    (lambda x, t: F.dropout(x, 1.5), ValueError, "dropout probability has to be between 0 and 1, but got 1.5"),
]


@pytest.mark.parametrize("case", range(len(LOSS_ERRORS)))
def test_losses_refuse_bad_arguments(case: int) -> None:
    """Bad targets and arguments raise PyTorch's error class with its text."""
    call, error, text = LOSS_ERRORS[case]
    with pytest.raises(error, match=text):
        call(tensor(normal(2, 3)), lambda values: tensor(np.array(values)))


D = np.abs(normal(4, 3) - normal(4, 3, seed=1))
DISTANCES: dict[str, tuple[Any, np.ndarray]] = {
    "mse": (F.mse_loss, D * D),
    "l1": (F.l1_loss, D),
    "smooth_l1": (lambda *a, **k: F.smooth_l1_loss(*a, beta=0.5, **k), np.where(D < 0.5, D * D, D - 0.25)),
    "smooth_l1_0": (lambda *a, **k: F.smooth_l1_loss(*a, beta=0.0, **k), D),
    "huber": (lambda *a, **k: F.huber_loss(*a, delta=0.5, **k), np.where(D <= 0.5, D * D / 2, 0.5 * (D - 0.25))),
}


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_distances_and_their_derivatives(name: str, reduction: str) -> None:
    """Each distance agrees with its formula, in each reduction, with gradients of input and target."""
    function, losses = DISTANCES[name]
    x, y = normal(4, 3), normal(4, 3, seed=1)
    expected = {"mean": losses.mean(), "sum": losses.sum(), "none": losses}[reduction]
    np.testing.assert_allclose(array(function(tensor(x), tensor(y), reduction=reduction)), expected, rtol=1e-10)
    check_gradients(lambda x, y: function(x, y, reduction=reduction), x, y)


def test_binary_cross_entropy_of_probabilities_and_logits() -> None:
    """Both agree with the formula; logits do not overflow, and logarithms are at least -100."""
    z, t, w = normal(4, 3), (normal(4, 3, seed=1) > 0).astype(float), np.abs(normal(4, 3, seed=2))
    p = special.expit(z)
    expected = -(t * np.log(p) + (1 - t) * np.log(1 - p)) * w
    np.testing.assert_allclose(
        array(F.binary_cross_entropy(tensor(p), tensor(t), tensor(w))), expected.mean(), rtol=1e-10
    )
    np.testing.assert_allclose(
        array(F.binary_cross_entropy_with_logits(tensor(z), tensor(t), tensor(w))), expected.mean(), rtol=1e-10
    )
    heavy = -(3 * t * np.log(p) + (1 - t) * np.log(1 - p))
    out = F.binary_cross_entropy_with_logits(tensor(z), tensor(t), pos_weight=tensor(np.array([3.0])))
    np.testing.assert_allclose(array(out), heavy.mean(), rtol=1e-10)
    sure = F.binary_cross_entropy(tensor(np.array([0.0, 1.0])), tensor(np.array([1.0, 1.0])), reduction="none")
    np.testing.assert_array_equal(array(sure), [100.0, 0.0])
    far = F.binary_cross_entropy_with_logits(
        tensor(np.array([1e4, -1e4])), tensor(np.array([0.0, 0.0])), reduction="none"
    )
    np.testing.assert_array_equal(array(far), [1e4, 0.0])
    check_gradients(lambda z: F.binary_cross_entropy_with_logits(z, tensor(t)), z)
    check_gradients(lambda p: F.binary_cross_entropy(p, tensor(t)), p)


def test_kl_div_of_logarithms() -> None:
    """Targets are probabilities or logarithms, losses per element or per sample, and 0 log 0 is 0."""
    q, p = special.log_softmax(normal(4, 3), 1), special.softmax(normal(4, 3, seed=1), 1)
    expected = p * (np.log(p) - q)
    np.testing.assert_allclose(array(F.kl_div(tensor(q), tensor(p), reduction="batchmean")), expected.sum() / 4)
    np.testing.assert_allclose(array(F.kl_div(tensor(q), tensor(np.log(p)), log_target=True)), expected.mean())
    assert array(F.kl_div(tensor(np.zeros(2)), tensor(np.array([0.0, 1.0])), reduction="sum")) == 0.0


def test_losses_warn_about_different_shapes_and_deprecated_arguments() -> None:
    """A target of another size, and size_average, give PyTorch's warnings."""
    x = tensor(normal(2, 3))
    with pytest.warns(UserWarning, match="Using a target size .* that is different to the input size"):
        F.mse_loss(x, tensor(normal(3)))
    with pytest.warns(UserWarning, match="please use reduction='none' instead"):
        assert F.l1_loss(x, x, reduce=False).shape == (2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert array(F.l1_loss(x, x * 0 + 1, size_average=False)) == np.abs(array(x) - 1).sum()


def test_class_losses_needs_a_target_for_each_vector() -> None:
    """Targets of another shape are an error, even if they would broadcast."""
    from candelabra.nn._operators.classification import class_losses

    with pytest.raises(RuntimeError, match=r"expected a target for each vector along dim 1 of \[2, 3\], got .* \[1\]"):
        class_losses(tensor(np.zeros((2, 3))), tensor(np.array([0])), -100)


def test_weighted_class_losses_need_a_weight_for_each_class() -> None:
    """Weights of another number are an error, even if they would broadcast."""
    from candelabra.nn._operators.classification import weighted_class_losses

    with pytest.raises(RuntimeError, match=r"expected a weight for each of 3 classes, got weights of shape \[1\]"):
        weighted_class_losses(tensor(np.zeros((2, 3))), tensor(np.array([0, 1])), tensor(np.ones(1)), -100)


def test_weights_of_classes_have_gradients() -> None:
    """The mean by weights is differentiable in scores and weights, to second order; ignored targets add nothing."""
    scores, weight = tensor(normal(5, 3)).requires_grad_(), tensor(normal(3) ** 2 + 0.5).requires_grad_()
    target = tensor(np.array([0, 2, -100, 1, 2]))
    assert gradcheck(lambda x, w: F.nll_loss(x, target, w), (scores, weight))
    assert gradcheck(lambda x, w: F.nll_loss(x, target, w, reduction="none"), (scores, weight))
    assert gradgradcheck(lambda x, w: F.cross_entropy(x, target, w), (scores, weight))
