"""Modules of losses: figures of PyTorch 2.13, printed forms, states, errors; connectionist temporal classification."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.nn import functional as F

from tests.nn.network_samples import array, check_gradients, normal, tensor


def waves(*shape: int, phase: float = 0.0) -> cd.Tensor:
    """Return sines of equidistant numbers."""
    return cd.sin(cd.arange(math.prod(shape), dtype=cd.float64) * 1.7 + phase).reshape(shape)


A, B, C = waves(3, 4), waves(3, 4, phase=1), waves(3, 4, phase=2)
SCORES = waves(4, 3, 4).log_softmax(2)
FIGURES: list[tuple[str, tuple[Any, ...], float]] = [
    ("CosineEmbeddingLoss(0.2)", (A, B, cd.tensor([1.0, -1, 1], dtype=cd.float64)), 0.4212913425),
    ("MarginRankingLoss(0.3)", (A, B, C.sign()), 0.9291547311),
    ("HingeEmbeddingLoss(0.5)", (A, C.sign()), 0.0631335059),
    ("SoftMarginLoss()", (A, C.sign()), 0.8543368071),
    ("TripletMarginLoss(2.0, p=1.5, swap=True)", (A, B, C), 2.1227649791),
    ("TripletMarginWithDistanceLoss(margin=2.0)", (A, B, C), 1.0422465988),
    ("MultiLabelMarginLoss()", (A, cd.tensor([[3, 0, -1, 1], [1, -1, 0, 2], [0, 1, 2, 3]])), 0.6682919183),
    ("MultiLabelSoftMarginLoss()", (A, (B > 0).double()), 0.6144303917),
    ("MultiMarginLoss(2, 0.7)", (A, cd.tensor([3, 0, 1])), 1.146325669),
    ("PoissonNLLLoss(full=True)", (A, (B * 4).abs().round()), 2.8822602143),
    ("GaussianNLLLoss(full=True)", (A, B, C.abs()), 0.9222355787),
    ("NLLLoss(ignore_index=2)", (A, cd.tensor([1, 2, 3])), -0.4213328923),
    (
        "CTCLoss()",
        (SCORES, cd.tensor([[1, 2], [3, 3], [2, 0]]), cd.tensor([4, 3, 2]), cd.tensor([2, 2, 1])),
        1.8023102227,
    ),
    (
        'CTCLoss(reduction="sum", zero_infinity=True)',
        (SCORES, cd.tensor([1, 2, 3, 3, 2]), (4, 2, 2), (2, 2, 1)),
        4.4664436249,
    ),
]


@pytest.mark.parametrize(("expression", "arguments", "expected"), FIGURES, ids=[case[0] for case in FIGURES])
def test_losses_have_the_figures_of_pytorch(expression: str, arguments: tuple[Any, ...], expected: float) -> None:
    """Each loss agrees with PyTorch 2.13, also for a view with other strides, and backward gives a finite gradient."""
    module = eval(f"nn.{expression}")
    first, *rest = arguments
    strided = first.mT.contiguous().mT.detach().requires_grad_()
    out = module(strided, *rest)
    assert out.item() == pytest.approx(expected, abs=1e-9)
    out.backward()
    assert strided.grad.isfinite().all().item()
    assert strided.grad.abs().sum().item() > 0


def test_losses_print_their_names_and_keep_weights_as_buffers() -> None:
    """The printed form is the name; only weights are in the state; a distance that is a module is a child."""
    assert repr(nn.CTCLoss(blank=1)) == "CTCLoss()"
    assert repr(nn.TripletMarginWithDistanceLoss()) == (
        "TripletMarginWithDistanceLoss(\n  (distance_function): PairwiseDistance()\n)"
    )
    weight = cd.ones(3)
    for made in (nn.MultiMarginLoss(weight=weight), nn.MultiLabelSoftMarginLoss(weight), nn.NLLLoss(weight)):
        assert list(made.state_dict()) == ["weight"]
    assert list(nn.BCEWithLogitsLoss(weight, pos_weight=weight).state_dict()) == ["weight", "pos_weight"]
    assert not nn.MultiMarginLoss().state_dict()


def test_reductions_and_empty_batches() -> None:
    """``reduction="none"`` keeps the batch, and the sum over no rows is 0."""
    target = cd.ones(3, dtype=cd.float64)
    assert nn.CosineEmbeddingLoss(reduction="none")(A, B, target).shape == (3,)
    assert nn.TripletMarginLoss(reduction="sum")(A[:0], B[:0], C[:0]).item() == 0
    assert nn.MultiMarginLoss(reduction="sum")(A[:0], cd.zeros(0, dtype=cd.int64)).item() == 0
    assert nn.GaussianNLLLoss(reduction="none")(A, B, 0.5).shape == (3, 4)


def test_the_older_name_of_the_likelihood_loss_warns() -> None:
    """NLLLoss2d is NLLLoss with a warning."""
    with pytest.warns(FutureWarning, match="NLLLoss2d has been deprecated"):
        made = nn.NLLLoss2d(reduction="sum")
    assert made(A, cd.tensor([1, 2, 3])).item() == nn.NLLLoss(reduction="sum")(A, cd.tensor([1, 2, 3])).item()


def test_older_arguments_of_a_module_name_the_reduction() -> None:
    """size_average=False warns and means the sum."""
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        assert nn.MarginRankingLoss(size_average=False).reduction == "sum"


def test_kl_div_of_a_negative_target_is_nan() -> None:
    """A negative probability has no logarithm; one of 0 counts as 0."""
    out = nn.KLDivLoss(reduction="none")(cd.zeros(3), cd.tensor([-1.0, 0.0, 1.0]))
    assert out.isnan().tolist() == [True, False, False]
    assert out[1:].tolist() == [0, 0]


X = cd.ones(2, 3)
BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: nn.MultiMarginLoss(3), ValueError, "only p == 1 and p == 2 supported"),
    (lambda: nn.MultiMarginLoss(weight=X), ValueError, "expected weight to be None or 1D tensor, got 2D instead"),
    (lambda: nn.TripletMarginLoss(0.0), ValueError, "TripletMarginLoss: expected margin to be greater than 0, got 0.0"),
    (lambda: nn.TripletMarginWithDistanceLoss(margin=-1.0), ValueError, "WithDistanceLoss: expected margin to be"),
    (lambda: nn.HuberLoss(delta=1j), TypeError, "delta must be a float or int, got: <class 'complex'>"),
    (lambda: F.huber_loss(X, X, delta=1j), TypeError, "huber_loss.*'delta'.* must be float, not complex"),
    (lambda: F.smooth_l1_loss(X, X, beta=1j), TypeError, "smooth_l1_loss.*'beta'.* must be float, not complex"),
    (lambda: F.mse_loss(X * 1j, X * 1j), NotImplementedError, "not implemented for 'ComplexFloat'"),
    (lambda: F.huber_loss(X * 1j, X * 1j), NotImplementedError, "not implemented for 'ComplexFloat'"),
    (
        lambda: F.nll_loss(X, cd.tensor([0, 1]), cd.ones(3, dtype=cd.float64)),
        RuntimeError,
        "expected scalar type Float but found Double",
    ),
    (
        lambda: F.cross_entropy(X, X.long()),
        RuntimeError,
        "Expected floating point type for target with class probabilities, got Long",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), BAD)
def test_wrong_arguments_of_losses(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    """Wrong arguments raise PyTorch's classes of errors."""
    with pytest.raises(kind, match=text):
        call()


# -- connectionist temporal classification ----------------------------------------------------------------------------
def test_ctc_gradients_to_second_order() -> None:
    """Through log_softmax, first and second derivatives are exact."""
    labels, lengths, counts = tensor(np.array([[1, 2], [1, 1]])), (4, 3), (2, 2)
    check_gradients(lambda x: F.ctc_loss(x.log_softmax(2), labels, lengths, counts, reduction="none"), normal(4, 2, 3))


def test_ctc_gradient_of_log_probabilities_is_that_of_pytorch() -> None:
    """The gradient contains ``exp(log_probs)``, as if they were normalized: its sum over the classes is then 0."""
    x = tensor(normal(4, 2, 3), True).log_softmax(2).detach().requires_grad_()
    F.ctc_loss(x, tensor(np.array([[1], [2]])), (4, 3), (1, 1), reduction="sum").backward()
    g = array(x.grad)
    np.testing.assert_allclose(g.sum(2), 0, atol=1e-12)
    assert (g[3, 1] == 0).all()
    assert (g[2, 1] != 0).any()


def test_ctc_of_labels_that_do_not_fit() -> None:
    """They have an infinite loss and a gradient of NaN, or 0 and 0; the other sequences are not affected."""
    labels = cd.tensor([[1, 1], [1, 2]])
    for zero in (False, True):
        x = SCORES[:2, :2].detach().requires_grad_()
        out = F.ctc_loss(x, labels, (2, 2), (2, 2), reduction="none", zero_infinity=zero)
        assert out[0].item() == (0 if zero else math.inf)
        out.sum().backward()
        assert x.grad[:, 0].isnan().all().item() is (not zero)
        assert x.grad[:, 1].isfinite().all().item()


def test_ctc_of_no_labels_and_of_no_input() -> None:
    """No labels are blanks at every time; without input, only they are possible."""
    empty = cd.zeros(3, 0, dtype=cd.int64)
    out = F.ctc_loss(SCORES, empty, (4, 1, 0), (0, 0, 0), reduction="none")
    expected = [-SCORES[:4, 0, 0].sum().item(), -SCORES[0, 1, 0].item(), 0.0]
    assert out.tolist() == pytest.approx(expected)
    assert F.ctc_loss(SCORES, empty.reshape(0), (4, 1, 0), (0, 0, 0), reduction="none").tolist() == out.tolist()
    assert F.ctc_loss(SCORES[:, :1], cd.tensor([[1]]), (0,), (1,)).item() == math.inf


def test_ctc_without_a_batch() -> None:
    """(T, C) and one vector of labels give a 0-d loss; the mean divides by the number of labels."""
    one = F.ctc_loss(SCORES[:, 0], cd.tensor([1, 2]), cd.tensor(4), cd.tensor(2), reduction="none")
    assert one.shape == ()
    total = sum(
        math.exp(sum(SCORES[t, 0, c].item() for t, c in enumerate(path)))
        for path in product(range(4), repeat=4)
        if [c for i, c in enumerate(path) if c and (i == 0 or path[i - 1] != c)] == [1, 2]
    )
    assert one.item() == pytest.approx(-math.log(total))
    mean = F.ctc_loss(SCORES[:, 0], cd.tensor([1, 2]), cd.tensor(4), cd.tensor(2))
    assert mean.item() == pytest.approx(one.item() / 2)


ROWS = cd.tensor([[1, 2], [1, 1], [1, 3]])
BAD_CTC: list[tuple[tuple[Any, ...], type[Exception], str]] = [
    ((SCORES[0, 0], ROWS, (4,), (2,)), RuntimeError, "Expected 2 or 3 dimensions, but got 1-dimensional tensor"),
    ((SCORES[:0], ROWS, (0, 0, 0), (0, 0, 0)), RuntimeError, "log_probs tensor must not be empty"),
    ((SCORES.half(), ROWS, (4, 4, 4), (2, 2, 2)), NotImplementedError, "not implemented for Half"),
    ((SCORES, ROWS, (4, 4), (2, 2, 2)), RuntimeError, "input_lengths must be of size batch_size"),
    ((SCORES, ROWS, (4, 4, 4), (2, 2)), RuntimeError, "target_lengths must be of size batch_size"),
    ((SCORES, ROWS, (4, 5, 4), (2, 2, 2)), RuntimeError, "Expected input_lengths to have value at most 4, but got"),
    ((SCORES, ROWS, (4, 4, 4), (2, -1, 2)), RuntimeError, "Expected target_lengths to have value at least 0, but got"),
    ((SCORES, ROWS, cd.ones(3), (2, 2, 2)), RuntimeError, "input_lengths must be integral"),
    ((SCORES, ROWS, (4, 4, 4), (2, 2, 3)), RuntimeError, "to have size at least 3 at dimension 1, but got size 2"),
    ((SCORES, ROWS[:2], (4, 4, 4), (2, 2, 2)), RuntimeError, "to have size 3 at dimension 0, but got size 2"),
    ((SCORES, ROWS.reshape(-1), (4, 4, 4), (2, 2, 1)), RuntimeError, "to have size 5 at dimension 0, but got size 6"),
    ((SCORES, ROWS[None], (4, 4, 4), (2, 2, 1)), RuntimeError, "Expected 1 to 2 dimensions, but got 3-dimensional"),
    ((SCORES, ROWS, (4, 4, 4), (2, 2, 2), 4), RuntimeError, "blank must be in label range"),
    ((SCORES, ROWS, (4, 4, 4), (2, 2, 2), 0, "median"), ValueError, "median is not a valid value for reduction"),
]


@pytest.mark.parametrize(("arguments", "kind", "text"), BAD_CTC)
def test_wrong_arguments_of_ctc_loss(arguments: tuple[Any, ...], kind: type[Exception], text: str) -> None:
    """Sizes, lengths and classes that do not belong together raise PyTorch's errors."""
    with pytest.raises(kind, match=text):
        F.ctc_loss(*arguments)


def test_alignments_check_their_shapes() -> None:
    """The operator refuses log-probabilities without a batch and labels of another batch."""
    from candelabra.nn._operators.temporal_classification import alignment_losses

    ones = cd.ones(3, dtype=cd.int64)
    with pytest.raises(RuntimeError, match=r"expected log-probabilities of shape \(T, N, C\)"):
        alignment_losses(SCORES[0], ROWS, ones, ones, 0, False)
    with pytest.raises(RuntimeError, match="expected targets of 2 dims for 3 sequences"):
        alignment_losses(SCORES, ROWS[:2], ones, ones, 0, False)


def test_ctc_loss_of_the_top_namespace_numbers_its_reductions() -> None:
    """0 is none, 1 the mean, 2 the sum, as in PyTorch."""
    for number, reduction in enumerate(("none", "mean", "sum")):
        found = cd.ctc_loss(SCORES, ROWS, (4, 4, 4), (2, 2, 2), 0, number)
        wanted = F.ctc_loss(SCORES, ROWS, (4, 4, 4), (2, 2, 2), reduction=reduction)
        assert (found == wanted).all().item()
    with pytest.raises(ValueError, match="3 is not a valid value for reduction"):
        cd.ctc_loss(SCORES, ROWS, (4, 4, 4), (2, 2, 2), 0, 3)


def test_reductions_as_numbers() -> None:
    """Losses of programs import PyTorch's internal module of reductions: words, numbers, the two older arguments."""
    from candelabra.nn import _reduction

    assert [_reduction.get_enum(word) for word in ("none", "mean", "sum")] == [0, 1, 2]
    with pytest.raises(ValueError, match="max is not a valid value for reduction"):
        _reduction.get_enum("max")
    for given, word in {(None, None): "mean", (False, True): "sum", (True, False): "none"}.items():
        with pytest.warns(UserWarning, match=f"please use reduction='{word}' instead"):
            assert _reduction.legacy_get_string(*given) == word
        assert _reduction.legacy_get_enum(*given, emit_warning=False) == _reduction.get_enum(word)
