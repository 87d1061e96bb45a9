"""Clipping of gradients, and parameters as one vector."""

from __future__ import annotations

import math

import candelabra as cd
import pytest
from candelabra import nn
from candelabra.nn.utils import clip_grad


def layer() -> nn.Linear:
    """Return a layer whose gradients are 3 (four) and 4 (two)."""
    m = nn.Linear(2, 2)
    m.weight.grad, m.bias.grad = cd.full((2, 2), 3.0), cd.full((2,), 4.0)
    return m


def test_the_norm_of_all_gradients_is_limited() -> None:
    """Returns the norm before, and scales all gradients by the same factor; foreach= is accepted."""
    m = layer()
    total = nn.utils.clip_grad_norm_(m.parameters(), 1.0, foreach=True)
    assert math.isclose(total.item(), math.sqrt(68), rel_tol=1e-6)
    assert m.bias.grad is not None
    assert math.isclose(m.bias.grad[0].item(), 4 / math.sqrt(68), rel_tol=1e-5)
    assert math.isclose(nn.utils.clip_grad_norm_(m.parameters(), 5.0).item(), 1, rel_tol=1e-5)
    assert clip_grad.clip_grad_norm_ is nn.utils.clip_grad_norm_


def test_the_norm_may_be_given() -> None:
    """clip_grads_with_norm_ scales by the given norm, and never up."""
    m = layer()
    nn.utils.clip_grads_with_norm_(m.parameters(), 1.0, cd.tensor(4.0))
    assert m.bias.grad is not None
    assert math.isclose(m.bias.grad[0].item(), 1, rel_tol=1e-5)
    nn.utils.clip_grads_with_norm_(m.parameters(), 100.0, cd.tensor(1.0))
    assert math.isclose(m.bias.grad[0].item(), 1, rel_tol=1e-5)
    nn.utils.clip_grads_with_norm_([nn.Parameter(cd.ones(1))], 1.0, cd.tensor(1.0))


def test_norms_of_other_orders_and_of_nothing() -> None:
    """Any order is possible; the norm of no tensors is 0."""
    tensors = [cd.ones(3), cd.full((2,), 2.0)]
    assert nn.utils.get_total_norm(tensors, math.inf).item() == 2
    assert nn.utils.get_total_norm(tensors, 1).item() == 7
    assert nn.utils.get_total_norm(cd.ones(4)).item() == 2
    assert nn.utils.get_total_norm([]).item() == 0
    with pytest.warns(UserWarning, match="`parameters` is an empty generator, no gradient clipping will occur"):
        assert nn.utils.clip_grad_norm_((p for p in ()), 1.0).item() == 0


def test_a_norm_that_is_not_finite_is_an_error_if_asked() -> None:
    """The gradients are then not scaled."""
    m = layer()
    m.bias.grad = cd.tensor([math.nan, 1.0])
    with pytest.raises(
        RuntimeError, match=r"The total norm of order 2\.0 for gradients from `parameters` is non-finite"
    ):
        nn.utils.clip_grad_norm_(m.parameters(), 1.0, error_if_nonfinite=True)
    assert m.bias.grad[1].item() == 1


def test_deprecated_name() -> None:
    """clip_grad_norm works with a warning."""
    with pytest.warns(FutureWarning, match="is now deprecated in favor of"):
        nn.utils.clip_grad_norm(layer().parameters(), 1.0)


@pytest.mark.usefixtures("lantern")
def test_a_vector_needs_parameters_on_one_device() -> None:
    """Parameters on two devices are refused in both directions."""
    parameters = [nn.Parameter(cd.ones(1)), nn.Parameter(cd.ones(1, device="lantern:0"))]
    for call in (
        lambda: nn.utils.parameters_to_vector(parameters),
        lambda: nn.utils.vector_to_parameters(cd.ones(2), parameters),
    ):
        with pytest.raises(TypeError, match="Found two parameters on different devices, this is currently not suppor"):
            call()
