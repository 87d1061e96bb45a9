"""Cross entropy on OpenCL devices, in the forms for processors and for GPUs."""

from typing import Any

import candelabra as cd
import pytest
from candelabra.library import plugins
from candelabra.nn import functional

pytestmark = pytest.mark.rounding

SHAPES = ((130, 70), (2, 3, 4, 5))


def loss_and_gradient(where: cd.device, shape: tuple[int, ...], **options: Any) -> list[Any]:
    """Return the loss and the gradient of fixed scores and targets."""
    count = cd.Size(shape).numel()
    scores = (cd.arange(count).remainder(13) / 4).reshape(shape).to(where).requires_grad_()
    targets = cd.arange(count // shape[1]).remainder(shape[1]).reshape(shape[0], *shape[2:]).to(where)
    loss = functional.cross_entropy(scores, targets, **options)
    loss.backward(cd.full(loss.shape, 2.0).to(where))
    assert scores.grad is not None
    return [x.to(plugins.reference_device()) for x in (loss.detach(), scores.grad)]


@pytest.mark.parametrize("form", ["device", "lanes"])
@pytest.mark.parametrize("shape", SHAPES)
def test_losses_and_gradients_are_the_hosts(form: str, shape: tuple[int, ...], request: pytest.FixtureRequest) -> None:
    """There is one class per row or per pixel, with or without an ignored class, reduced or not."""
    for options in ({}, {"ignore_index": 1, "reduction": "none"}):
        expected = loss_and_gradient(plugins.reference_device(), shape, **options)
        given = loss_and_gradient(request.getfixturevalue(form), shape, **options)
        for one, other in zip(given, expected, strict=True):
            assert cd.allclose(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("form", ["device", "lanes"])
def test_a_target_that_is_no_class_is_named(form: str, request: pytest.FixtureRequest) -> None:
    """An ignored target may be any number; another invalid one is an error at the next synchronisation."""
    where = request.getfixturevalue(form)
    scores = cd.zeros(3, 4, device=where)
    assert functional.cross_entropy(scores, cd.tensor([0, -100, 3], device=where)).isfinite().item()
    with pytest.raises(IndexError, match=r"Target 4 is out of bounds\."):
        functional.cross_entropy(scores, cd.tensor([0, -100, 4], device=where)).item()
