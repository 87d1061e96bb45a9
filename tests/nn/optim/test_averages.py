"""swa_utils: averages of models, their batch norms, and their rate."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import pytest
from candelabra import nn, optim
from candelabra.optim import swa_utils as swa


def model_with(value: float) -> Any:
    """Return a model whose parameters and buffer have the given value."""
    model = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
    with cd.no_grad():
        for p in model.parameters():
            p.fill_(value)
        model[1].running_mean.fill_(value)
    return model


def averaged(**options: Any) -> Any:
    """Return the averages of models with 1, 2 and 6."""
    average = swa.AveragedModel(model_with(0.0), **options)
    for value in (1.0, 2.0, 6.0):
        average.update_parameters(model_with(value))
    return average


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 3.0),
        ({"avg_fn": swa.get_swa_avg_fn()}, 3.0),
        ({"multi_avg_fn": swa.get_swa_multi_avg_fn()}, 3.0),
        ({"avg_fn": swa.get_ema_avg_fn(0.75)}, 2.4375),
        ({"multi_avg_fn": swa.get_ema_multi_avg_fn(0.75)}, 2.4375),
        ({"avg_fn": lambda average, value, count: average + value * count}, 1 + 2 * 1 + 6 * 2),
    ],
    ids=["default", "mean", "means", "exponential", "exponentials", "own"],
)
def test_parameters_are_averaged(options: dict[str, Any], expected: float) -> None:
    """The first update copies, the others average; buffers are copied."""
    average = averaged(**options)
    for p in average.parameters():
        assert p.flatten()[0].item() == pytest.approx(expected)
        assert p.requires_grad
    assert average.module[1].running_mean.item() == 6.0
    assert average.n_averaged.item() == 3
    assert "n_averaged" in average.state_dict()


def test_buffers_can_be_averaged() -> None:
    """With use_buffers, floating buffers are averages, too."""
    assert averaged(use_buffers=True).module[1].running_mean.item() == pytest.approx(3.0)


def test_the_average_is_a_model_of_its_own() -> None:
    """It computes as the model does, and shares no parameter with it."""
    model = nn.Linear(2, 1)
    average = swa.AveragedModel(model, device=model.weight.device)
    x = cd.ones(3, 2)
    assert average(x).tolist() == model(x).tolist()
    with cd.no_grad():
        model.weight.fill_(9.0)
    assert average.module.weight[0, 0].item() != 9.0


def test_batch_norms_are_computed_anew() -> None:
    """The running statistics become the means over all batches; momentum and mode are as before."""
    model = model_with(1.0)
    model[1].momentum = 0.3
    model.eval()
    x = cd.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 9.0]])
    for loader in ([x[:2], x[2:]], [(x[:2], 0), [x[2:], 1]]):
        swa.update_bn(loader, model, device=x.device)
        assert model[1].running_mean.item() == pytest.approx((4 + 13) / 2)
        assert (model[1].momentum, model.training, model[1].training) == (0.3, False, False)
    swa.update_bn(iter(()), nn.Linear(2, 1))  # there is nothing to do


def test_the_rate_moves_from_the_present_one() -> None:
    """SWALR goes from the rates that other schedulers leave to swa_lr."""
    optimizer = optim.SGD([nn.Parameter(cd.ones(1))], lr=1.0)
    scheduler = swa.SWALR(optimizer, 0.5, anneal_epochs=2, anneal_strategy="linear")
    found = []
    for _ in range(3):
        optimizer.step()
        scheduler.step()
        found.append(scheduler.get_last_lr()[0])
    assert found == [0.75, 0.5, 0.5]
    at_once = optim.SGD([nn.Parameter(cd.ones(1))], lr=1.0)
    assert swa.SWALR(at_once, 0.5, anneal_epochs=0).get_last_lr() == [0.5]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: swa.AveragedModel(nn.Identity(), avg_fn=max, multi_avg_fn=max),
            "Only one of avg_fn and multi_avg_fn should be provided",
        ),
        (lambda: swa.get_ema_avg_fn(1.5), "Invalid decay value 1.5 provided. Please provide a value in [0,1] range."),
        (lambda: swa.get_ema_multi_avg_fn(-1), "Invalid decay value -1 provided"),
        (lambda: swa.SWALR(optim.SGD([cd.ones(1)]), [0.1, 0.2]), "swa_lr must have the same length as optimizer.param"),
        (
            lambda: swa.SWALR(optim.SGD([cd.ones(1)]), 0.1, -1),
            "anneal_epochs must be equal or greater than 0, got -1",
        ),
        (
            lambda: swa.SWALR(optim.SGD([cd.ones(1)]), 0.1, 1, "x"),
            "anneal_strategy must be one of 'cos' or 'linear', instead got x",
        ),
    ],
)
def test_misuse_raises_an_error(call: Any, text: str) -> None:
    """Each is a ValueError with the reason."""
    with pytest.raises(ValueError, match=r".") as caught:
        call()
    assert text in str(caught.value)
