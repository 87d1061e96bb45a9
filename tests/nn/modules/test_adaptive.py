"""Adaptive softmax: probabilities of all classes, losses, predictions, errors."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import nn
from candelabra.autograd.gradcheck import gradcheck, gradgradcheck

from tests.nn.network_samples import array, normal, tensor


def new_module(**options: Any) -> nn.AdaptiveLogSoftmaxWithLoss:
    """Return a module of 8 classes: 3 in the head, and clusters of 2 and 3."""
    cd.manual_seed(2)
    return nn.AdaptiveLogSoftmaxWithLoss(6, 8, [3, 5], div_value=2.0, dtype=cd.float64, **options)


def log_softmax(x: np.ndarray) -> np.ndarray:
    """Return log-softmax along the last dim."""
    return x - x.max(-1, keepdims=True) - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True))


def log_probabilities(module: nn.AdaptiveLogSoftmaxWithLoss, x: np.ndarray) -> np.ndarray:
    """Return the log-probabilities by the definition: those of the head, times those within the cluster."""
    state = {name: array(value) for name, value in module.state_dict().items()}
    head = log_softmax(x @ state["head.weight"].T + state.get("head.bias", 0))
    columns = [head[:, :3]]
    for i in range(2):
        scores = x @ state[f"tail.{i}.0.weight"].T @ state[f"tail.{i}.1.weight"].T
        columns.append(log_softmax(scores) + head[:, 3 + i : 4 + i])
    return np.concatenate(columns, 1)


@pytest.mark.parametrize("head_bias", [False, True])
def test_log_probabilities_losses_and_predictions(head_bias: bool) -> None:
    """All agree with the definition; the probabilities of an input have the sum 1."""
    module, x = new_module(head_bias=head_bias), 3 * normal(9, 6)
    logs = log_probabilities(module, x)
    np.testing.assert_allclose(array(module.log_prob(tensor(x)).detach()), logs, rtol=1e-10)
    np.testing.assert_allclose(np.exp(logs).sum(1), 1.0, rtol=1e-12)
    target = np.array([0, 7, 3, 2, 5, 4, 4, 1, 6])
    found = module(tensor(x), tensor(target))
    np.testing.assert_allclose(array(found.output.detach()), logs[range(9), target], rtol=1e-10)
    np.testing.assert_allclose(found.loss.item(), -logs[range(9), target].mean(), rtol=1e-10)
    alone = module(tensor(x[1]), cd.tensor(7))
    assert alone.output.shape == ()
    np.testing.assert_allclose(alone.loss.item(), -logs[1, 7], rtol=1e-10)
    head = x @ array(module.head.weight.detach()).T + (array(module.head.bias.detach()) if head_bias else 0)
    best = np.where(head.argmax(1) < 3, head.argmax(1), logs.argmax(1))
    assert {int(b) // 3 for b in best} >= {0, 1}
    assert module.predict(tensor(x)).tolist() == best.tolist()
    short = x[head.argmax(1) < 3]
    assert module.predict(tensor(short)).tolist() == best[head.argmax(1) < 3].tolist()


def test_only_the_clusters_of_the_targets_are_computed() -> None:
    """Clusters without a target have no gradient; first and second derivatives agree with finite differences."""
    module = new_module()
    module(tensor(normal(3, 6)), cd.tensor([0, 3, 4])).loss.backward()
    assert [name for name, p in module.named_parameters() if p.grad is None] == ["tail.1.0.weight", "tail.1.1.weight"]
    target = cd.tensor([1, 4, 7])
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    x = cd.tensor(normal(3, 6)).requires_grad_()
    assert gradcheck(lambda x: module(x, target).output, [x])
    assert gradgradcheck(lambda x: module(x, target).output, [x])
    empty = module(cd.zeros(0, 6, dtype=cd.float64), cd.zeros(0, dtype=cd.int64))
    assert empty.output.shape == (0,)


def test_construction() -> None:
    """The tail becomes narrower with each cluster; keys and printed form are PyTorch's; weights can be drawn again."""
    module = new_module(head_bias=True)
    assert {name: tuple(p.shape) for name, p in module.state_dict().items()} == {
        "head.weight": (5, 6), "head.bias": (5,), "tail.0.0.weight": (3, 6), "tail.0.1.weight": (2, 3),
        "tail.1.0.weight": (1, 6), "tail.1.1.weight": (3, 1),
    }  # fmt: skip
    assert repr(module).startswith(
        "AdaptiveLogSoftmaxWithLoss(\n  (head): Linear(in_features=6, out_features=5, bias=T"
    )
    before = module.tail[1][0].weight.tolist()
    module.reset_parameters()
    assert module.tail[1][0].weight.tolist() != before
    assert (module.cutoffs, module.shortlist_size, module.n_clusters, module.head_size) == ([3, 5, 8], 3, 2, 5)


@pytest.mark.parametrize("cutoffs", [[5, 3], [0, 3], [3, 8], [3, 3], [2.5]])
def test_cutoffs_increase(cutoffs: list[int]) -> None:
    """Cutoffs are integers between 1 and n_classes - 1, in increasing order."""
    with pytest.raises(
        ValueError, match="cutoffs should be a sequence of unique, positive integers sorted in an incre"
    ):
        nn.AdaptiveLogSoftmaxWithLoss(6, 8, cutoffs)


X = cd.zeros(3, 6, dtype=cd.float64)
CALLS: list[tuple[Any, Any, str]] = [
    (X, cd.tensor([0, 1]), "Input and target should have the same size in the batch dimension"),
    (X[0, :3], cd.tensor([0, 1, 2]), "1D target tensor expects 2D input tensors, but found inputs with size"),
    (X, cd.tensor(1), "0D target tensor expects 1D input tensors, but found inputs with size"),
    (X, cd.zeros(3, 1, dtype=cd.int64), "0D or 1D target tensor expected, multi-target not supported"),
    (X, cd.tensor([0, -2, 8]), r"Target values should be in \[0, 7\], but values in range \[-2, 8\] were found"),
]


@pytest.mark.parametrize(("input", "target", "text"), CALLS, ids=[str(n) for n in range(len(CALLS))])
def test_mistakes(input: Any, target: Any, text: str) -> None:
    """Shapes that do not match, and targets that are no classes, raise PyTorch's errors."""
    with pytest.raises(RuntimeError, match=text):
        new_module()(input, target)


def test_no_cutoffs() -> None:
    """Without clusters there is nothing to adapt."""
    with pytest.raises(ValueError, match="cutoffs should be a sequence of length larger than 0"):
        nn.AdaptiveLogSoftmaxWithLoss(6, 8, [])
