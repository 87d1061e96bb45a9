"""The recursions of connectionist temporal classification in C, against the operators' bodies."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.library import own_kernels
from candelabra.nn import functional as F

T, N, C, S = 40, 5, 7, 12


def _loss_and_gradient(d: cd.dtype, zero_infinity: bool) -> tuple[Any, Any]:
    random = np.random.default_rng(3)
    scores = cd.tensor(random.standard_normal((T, N, C))).to(d).requires_grad_()
    targets = cd.tensor(random.integers(1, C, (N, S)))
    # The first sequence has no time, the second too little for its labels, the third no labels.
    lengths, spelled = cd.tensor([0, 8, T, T - 1, 30]), cd.tensor([2, 12, 0, 12, 5])
    losses = F.ctc_loss(scores.log_softmax(2), targets, lengths, spelled, reduction="none", zero_infinity=zero_infinity)
    losses.sum().backward()
    assert scores.grad is not None
    return losses.detach().numpy(), scores.grad.numpy()


@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("d", [cd.float32, cd.float64], ids=str)
def test_losses_and_gradients_are_those_of_the_operators_bodies(d: cd.dtype, zero_infinity: bool) -> None:
    """Also of sequences without time, with too little of it, and without labels."""
    found = _loss_and_gradient(d, zero_infinity)
    with own_kernels():
        due = _loss_and_gradient(d, zero_infinity)
    tolerance = 1e-4 if d is cd.float32 else 1e-12
    for values, wanted in zip(found, due, strict=True):
        np.testing.assert_allclose(values, wanted, rtol=tolerance, atol=tolerance)


def test_a_label_that_is_no_class_is_an_error() -> None:
    """The error is that of the operator's body."""
    scores, one = cd.zeros(2, 1, 3), cd.tensor([1])
    with pytest.raises(RuntimeError, match="index 5 is out of bounds for dimension 2 with size 3"):
        F.ctc_loss(scores, cd.tensor([[5]]), one, one)
