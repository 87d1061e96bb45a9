"""The cross entropy of a linear map: agreement with the two functions, pieces, options, errors."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.autograd.gradcheck import gradcheck, gradgradcheck
from candelabra.nn import functional as F
from candelabra.nn._functional.linear_cross_entropy import _rows_per_piece
from candelabra.nn._operators.linear_cross_entropy import linear_class_losses

from tests.nn.network_samples import array, normal, tensor

X, W, B = normal(7, 3), normal(5, 3, seed=1), normal(5, seed=2)
Y, CLASSES = np.array([0, 4, 2, 2, 1, 0, 3]), np.array([0.5, 1.0, 2.0, 0.25, 1.5])


@pytest.mark.parametrize("rows", [1, 3, 7, 100])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_pieces_of_the_batch_give_the_loss_of_the_whole(rows: int, reduction: str) -> None:
    """Values and gradients agree with linear and cross_entropy, with class weights and an ignored class."""
    arguments: dict[str, Any] = {"weight": tensor(CLASSES), "reduction": reduction, "ignore_index": 2}
    leaves = [tensor(a, True) for a in (X, W, B)]
    want = F.cross_entropy(F.linear(*leaves), tensor(Y), **arguments)
    expected = cd.autograd.grad(want.sum(), leaves)
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=rows)
    found = F.linear_cross_entropy(leaves[0], leaves[1], tensor(Y), linear_bias=leaves[2], options=options, **arguments)
    np.testing.assert_allclose(array(found.detach()), array(want.detach()), rtol=1e-12)
    for g, h in zip(cd.autograd.grad(found.sum(), leaves), expected, strict=True):
        np.testing.assert_allclose(array(g), array(h), rtol=1e-10, atol=1e-12)


def test_the_reference_is_cross_entropy_of_logits() -> None:
    """Smoothing, more dims, probabilities and inputs without a batch are those of cross_entropy."""
    x, w, y = tensor(X), tensor(W), tensor(Y)
    found = F.linear_cross_entropy(x, w, y, label_smoothing=0.1)
    assert found.item() == F.cross_entropy(F.linear(x, w), y, label_smoothing=0.1).item()
    wide, bias = tensor(normal(5, 2, 3)), tensor(normal(5, 2))
    targets = cd.tensor(np.stack([Y, Y[::-1]], 1) % 5)
    logits = F.linear(x, wide.reshape(10, 3), bias.reshape(10)).reshape(7, 5, 2)
    found = F.linear_cross_entropy(x, wide, targets, linear_bias=bias)
    assert found.item() == F.cross_entropy(logits, targets).item()
    probabilities = F.linear(x, w).softmax(1)
    found = F.linear_cross_entropy(x, w, probabilities)
    assert found.item() == F.cross_entropy(F.linear(x, w), probabilities).item()
    for options in (None, nn.LinearCrossEntropyOptions()):
        alone = F.linear_cross_entropy(x[0], w, y[0], options=options)
        assert alone.shape == ()
        np.testing.assert_allclose(alone.item(), F.cross_entropy(F.linear(x[0], w), y[0]).item(), rtol=1e-12)


def test_derivatives_in_pieces() -> None:
    """First and second derivatives by input, weight and bias agree with finite differences."""
    leaves = [cd.tensor(a[:n]).requires_grad_() for a, n in ((X, 4), (W, 3), (B, 3))]
    target = cd.tensor([0, 2, 1, 2])
    assert gradcheck(lambda *a: linear_class_losses(*a, target, 3), leaves)
    assert gradgradcheck(lambda *a: linear_class_losses(*a, target, 3), leaves)
    assert gradcheck(lambda x: linear_class_losses(x, leaves[1].detach(), None, target, 2), leaves[:1])


def test_what_has_no_pieces_warns() -> None:
    """Options are ignored for label smoothing, probabilities and more dims, with a warning that says so."""
    options, x, w = nn.LinearCrossEntropyOptions(), tensor(X), tensor(W)
    for target, weight, smoothing in (
        (tensor(Y), w, 0.1), (x @ w.t(), w, 0.0), (cd.zeros(7, 1, dtype=cd.int64), w[:, None], 0.0),
    ):  # fmt: skip
        with pytest.warns(UserWarning, match="``options`` ignored; chunked path needs reduction in"):
            F.linear_cross_entropy(x, weight, target, label_smoothing=smoothing, options=options)


@pytest.mark.parametrize(
    ("options", "sizes", "rows"),
    [
        ({}, (64, 8, 32), 8), ({"chunking_method": "aspect_ratio"}, (64, 8, 32), 16), ({}, (3, 8, 4), 2),
        ({"chunking_method": "aspect_ratio:4"}, (60, 8, 64), 2), ({"chunking_method": None}, (9, 8, 4), 9),
        ({"batch_chunk_size": 5}, (9, 8, 4), 5), ({"batch_chunk_size": 5}, (3, 8, 4), 3), ({}, (0, 8, 4), 1),
        ({"batch_chunk_size": 16, "chunking_method": "aspect_ratio"}, (64, 8, 32), 16),
    ],
)  # fmt: skip
def test_rows_of_a_piece(options: dict[str, Any], sizes: tuple[int, int, int], rows: int) -> None:
    """By default, the logits of a piece take about half of the memory of the input (figures from PyTorch 2.13)."""
    assert _rows_per_piece(nn.LinearCrossEntropyOptions(**options), *sizes) == rows


def test_the_module() -> None:
    """The module owns the linear map; keys and printed form are PyTorch's."""
    module = nn.LinearCrossEntropyLoss(3, 5, out_features=(2,), bias=True, dtype=cd.float64, ignore_index=1)
    assert list(module.state_dict()) == ["linear.weight", "linear.bias"]
    assert module.linear.weight.shape == (10, 3)
    targets = cd.tensor(np.stack([Y, Y[::-1]], 1) % 5)
    logits = module.linear(tensor(X)).reshape(7, 5, 2)
    assert module(tensor(X), targets).item() == F.cross_entropy(logits, targets, ignore_index=1).item()
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=2, chunking_method=None)
    other = nn.LinearCrossEntropyLoss(3, 5, weight=tensor(CLASSES), reduction="sum", options=options)
    assert list(other.state_dict()) == ["weight", "linear.weight"]
    assert repr(other) == (
        "LinearCrossEntropyLoss(\n  in_features=3, num_classes=5, out_features=(), bias=False, reduction=sum, "
        "ignore_index=None, label_smoothing=0.0, options=LinearCrossEntropyOptions(allow_retain_graph=False, "
        "batch_chunk_size=2, chunking_method=None, acc_policy='auto', acc_dtype=None)\n"
        "  (linear): Linear(in_features=3, out_features=5, bias=False)\n)"
    )


Z, V = cd.zeros(2, 3), cd.zeros(4, 3)
T = cd.tensor([0, 1])
CALLS: list[tuple[Any, type[Exception], str]] = [
    (lambda: F.linear_cross_entropy(Z[None], V, T), RuntimeError, "expected input with dimensionality 1 or 2, got 3"),
    (lambda: F.linear_cross_entropy(Z, V[0], T), RuntimeError, "linear_weight with dimensionality at least 2, got 1"),
    (lambda: F.linear_cross_entropy(Z, V[:, :2], T), RuntimeError, r"\(in_features\), got 3 and 2, respectively"),
    (lambda: F.linear_cross_entropy(Z, V, T, linear_bias=Z), RuntimeError, r"linear_bias shape \(4,\), got \(2, 3\)"),
    (lambda: F.linear_cross_entropy(Z[0], V[:, None], T), RuntimeError, "K-dimensional loss .* requires batched input"),
    (lambda: F.linear_cross_entropy(Z, V, Z @ V.t(), ignore_index=1), RuntimeError, "ignore_index cannot be specified"),
    (lambda: F.linear_cross_entropy(Z, V, 4 * T, options=nn.LinearCrossEntropyOptions()), IndexError, "Target 4 is"),
    (lambda: F.linear_cross_entropy(Z, V, T, options=nn.LinearCrossEntropyOptions(False, 9, "aspect_ratio")),
     ValueError, r"batch_chunk_size \(=9\) and chunking_method \('aspect_ratio'\) give different .* \(9 vs 1\)"),
    (lambda: linear_class_losses(Z, V, None, T[:1], 2), RuntimeError, r"losses takes an input \(N"),
    (lambda: linear_class_losses(Z, V, Z[0], T, 2), RuntimeError, r"takes a bias of shape \[4\], got \[3\]"),
    (lambda: nn.LinearCrossEntropyLoss(3, 4, weight=Z[0]), RuntimeError, r"weight shape to be \(4,\), got \(3,\)"),
    (lambda: nn.LinearCrossEntropyLoss(3, 4, label_smoothing=2), RuntimeError, r"in range \[0, 1\], got 2"),
    (lambda: nn.LinearCrossEntropyOptions(acc_policy="best"), ValueError, "invalid acc_policy: 'best'"),
    (lambda: nn.LinearCrossEntropyOptions(chunking_method="aspect_ratio:0"), ValueError, "invalid chunking_method"),
    (lambda: nn.LinearCrossEntropyOptions(batch_chunk_size=0), ValueError, "must be positive int or None, got 0"),
    (lambda: nn.LinearCrossEntropyOptions(acc_dtype=cd.int64), ValueError, "acc_dtype must be one of .* got cand"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), CALLS, ids=[str(n) for n in range(len(CALLS))])
def test_mistakes(call: Any, error: type[Exception], text: str) -> None:
    """Shapes and options that do not match raise PyTorch's errors."""
    with pytest.raises(error, match=text):
        call()
