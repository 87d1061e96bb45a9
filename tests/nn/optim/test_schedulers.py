"""Schedulers, compared with figures of PyTorch, alone and together, with rates and groups that change on the way."""

from __future__ import annotations

import math
import warnings
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn, optim
from candelabra.optim import lr_scheduler as s

from tests.nn.optim.figures import RATES
from tests.nn.optim.problem import SCHEDULES, rates, two_groups


def sgd(lr: Any = 1.0) -> Any:
    """Return an optimizer with one group."""
    return optim.SGD([nn.Parameter(cd.ones(1))], lr=lr)


def advance(optimizer: Any, *schedulers: Any) -> float:
    """Do a step of all. Return the rate."""
    optimizer.step()
    for scheduler in schedulers:
        scheduler.step()
    rate: float = optimizer.param_groups[0]["lr"]
    return rate


@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_are_those_of_pytorch(name: str) -> None:
    """The rates of 50 epochs are PyTorch's."""
    assert rates(name) == [pytest.approx(rate, rel=1e-9) for rate in RATES[name]]


@pytest.mark.parametrize("name", [name for name in SCHEDULES if "Plateau" not in name])
def test_states_go_on_in_another_scheduler(name: str) -> None:
    """After the states of optimizer and scheduler are loaded into new ones, the rates go on as before."""
    first, second = two_groups(), two_groups()
    a, b = (SCHEDULES[name](s, optimizer) for optimizer in (first, second))
    for _ in range(12):
        advance(first, a)
    second.load_state_dict(first.state_dict())
    b.load_state_dict(a.state_dict())
    assert b.get_last_lr() == a.get_last_lr()
    for _ in range(12):
        advance(first, a)
        advance(second, b)
        assert b.get_last_lr() == a.get_last_lr()


def test_two_schedulers_combine() -> None:
    """Two schedulers on one optimizer multiply their factors."""
    optimizer = sgd()
    schedulers = s.ExponentialLR(optimizer, 0.5), s.StepLR(optimizer, 2, 0.1)
    found = [advance(optimizer, *schedulers) for _ in range(4)]
    assert found == [pytest.approx(rate) for rate in (0.5, 0.025, 0.0125, 0.000625)]


def test_a_rate_set_by_hand_survives() -> None:
    """The next rates are computed from the one that the program has set."""
    optimizer = sgd()
    scheduler = s.ExponentialLR(optimizer, 0.5)
    advance(optimizer, scheduler)
    optimizer.param_groups[0]["lr"] = 8.0
    assert advance(optimizer, scheduler) == 4.0


def test_a_group_that_is_added_later_is_scheduled() -> None:
    """Its rate changes from the one it came with."""
    for make, expected in (
        (lambda o: s.ExponentialLR(o, 0.5), [2.0, 1.0]),
        (lambda o: s.CosineAnnealingWarmRestarts(o, 4), [2.0, 4.0 * (1 - math.sqrt(0.5)) / 2]),
        (lambda o: s.CosineAnnealingLR(o, 2), [0.0, 2.0]),
    ):
        optimizer = sgd()
        scheduler = make(optimizer)
        advance(optimizer, scheduler)
        optimizer.add_param_group({"params": [nn.Parameter(cd.ones(1))], "lr": 4.0})
        found = []
        for _ in range(2):
            advance(optimizer, scheduler)
            found.append(scheduler.get_last_lr()[1])
        assert found == [pytest.approx(rate, abs=1e-12) for rate in expected]


def test_a_state_loaded_with_another_rate_does_not_jump_back() -> None:
    """The rate in the optimizer is what the next rate is computed from."""
    optimizer = sgd()
    scheduler = s.StepLR(optimizer, 5, 0.5)
    for _ in range(4):
        advance(optimizer, scheduler)
    other = sgd(16.0)
    resumed = s.StepLR(other, 5, 0.5)
    resumed.load_state_dict(scheduler.state_dict())
    assert advance(other, resumed) == 8.0


def test_a_rate_that_is_a_tensor_is_filled() -> None:
    """Schedulers write into a tensor that the program holds, and return copies of it."""
    rate = cd.tensor(1.0)
    optimizer = sgd(rate)
    scheduler = s.ExponentialLR(optimizer, 0.5)
    advance(optimizer, scheduler)
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate.item() == 0.5
    assert scheduler.get_last_lr()[0] is not rate


class Halving(s._LRScheduler):
    """A scheduler as programs define them."""

    def get_lr(self) -> list[float]:
        if self._step_count == 1:
            return [group["lr"] for group in self.optimizer.param_groups]
        return [group["lr"] / 2 for group in self.optimizer.param_groups]


def test_schedulers_of_users_define_get_lr() -> None:
    """A class that defines get_lr works with the base's step, state, and with other schedulers."""
    optimizer = sgd()
    scheduler = Halving(optimizer)
    assert isinstance(scheduler, s.LRScheduler)
    assert scheduler._step_count == 1
    assert [advance(optimizer, scheduler) for _ in range(2)] == [0.5, 0.25]
    assert scheduler.state_dict() == {
        "base_lrs": [1.0], "last_epoch": 2, "_step_count": 3, "_is_initial": False, "_get_lr_called_within_step": False,
        "_last_lr": [0.25],
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scheduler.step(7)  # get_lr, because there is no closed form
    assert (scheduler.last_epoch, scheduler.get_last_lr()) == (7, [0.125])


def test_the_wrong_order_gives_a_warning() -> None:
    """A scheduler that steps before the optimizer warns once; any optimizer's step counts."""
    optimizer = sgd()
    scheduler = s.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        scheduler.step()
    scheduler.step()
    optimizer = sgd()
    scheduler = s.StepLR(optimizer, 2)
    optimizer.step()
    scheduler.step()


def test_get_lr_warns_outside_of_step() -> None:
    """The rates that are in force are those of get_last_lr()."""
    for name, make in SCHEDULES.items():
        scheduler = make(s, two_groups())
        if type(scheduler).get_lr is s.LRScheduler.get_lr:
            continue
        with pytest.warns(UserWarning, match="please use `get_last_lr"):
            scheduler.get_lr()
        assert scheduler.get_last_lr() == [g["lr"] for g in scheduler.optimizer.param_groups], name


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda o: s.StepLR(o, 2, 0.5), 0.125),
        (lambda o: s.MultiStepLR(o, [1, 3, 3, 9], 0.5), 0.125),
        (lambda o: s.ExponentialLR(o, 0.5), 1 / 64),
        (lambda o: s.ConstantLR(o, 0.5, 9), 0.5),
        (lambda o: s.LinearLR(o, 0.5, 1.0, 12), 0.75),
        (lambda o: s.PolynomialLR(o, 12, 2.0), 0.25),
        (lambda o: s.CosineAnnealingLR(o, 12), 0.5),
        (lambda o: s.LambdaLR(o, lambda e: e / 2), 3.0),
    ],
    ids=["step", "multistep", "exponential", "constant", "linear", "polynomial", "cosine", "lambda"],
)
def test_an_epoch_sets_the_rate_in_closed_form(make: Any, expected: float) -> None:
    """step(epoch) warns, and computes the rate from the initial one."""
    optimizer = sgd()
    scheduler = make(optimizer)
    optimizer.step()
    with pytest.warns(UserWarning, match=r"The epoch parameter in `scheduler.step\(\)` was not necessary"):
        scheduler.step(6)
    assert scheduler.get_last_lr() == [pytest.approx(expected)]
    assert scheduler.last_epoch == 6


def test_warm_restarts_take_fractions_of_epochs() -> None:
    """step(epoch) finds the period and the place in it."""
    scheduler = s.CosineAnnealingWarmRestarts(sgd(), 2, T_mult=2)
    for epoch, place, period in ((0.5, 0.5, 2), (2, 0, 2 * 2), (5.5, 3.5, 4), (6, 0, 8), (20.25, 6.25, 16)):
        scheduler.step(epoch)
        assert (scheduler.T_cur, scheduler.T_i) == (place, period)
        assert scheduler.get_last_lr() == [pytest.approx((1 + math.cos(math.pi * place / period)) / 2)]
    scheduler = s.CosineAnnealingWarmRestarts(sgd(), 4)
    scheduler.step(6)
    assert (scheduler.T_cur, scheduler.last_epoch) == (2, 6)


class Scale:
    """A callable object, whose attributes are part of a scheduler's state."""

    def __init__(self, base: float) -> None:
        self.base = base

    def __call__(self, x: float) -> float:
        return float(self.base**x)


def test_functions_are_saved_as_the_attributes_of_objects() -> None:
    """Attributes of callable objects are saved and loaded; functions are not."""
    for make in (
        lambda f: s.LambdaLR(sgd(), f),
        lambda f: s.MultiplicativeLR(sgd(), f),
        lambda f: s.CyclicLR(sgd(), 0.1, 1.0, 4, scale_fn=f, cycle_momentum=False),
    ):
        scale = Scale(0.25)
        make(scale).load_state_dict(make(Scale(0.5)).state_dict())
        assert scale.base == 0.5
        make(abs_of := (lambda e: 1.0)).load_state_dict(make(abs_of).state_dict())
    assert s.LambdaLR(sgd(), lambda e: 1.0).state_dict()["lr_lambdas"] == [None]


def test_milestones_survive_a_file(tmp_path: Any) -> None:
    """The keys of a state that was saved are strings, and become epochs again."""
    optimizer = sgd()
    scheduler = s.MultiStepLR(optimizer, [2, 2], 0.5)
    cd.save(scheduler.state_dict(), tmp_path / "scheduler.safetensors")
    scheduler.load_state_dict(cd.load(tmp_path / "scheduler.safetensors"))
    assert [advance(optimizer, scheduler) for _ in range(3)] == [1.0, 0.25, 0.25]


def test_cycles_move_the_momentum() -> None:
    """The momentum, or Adam's first beta, goes against the rate."""
    optimizer = sgd()
    optimizer.defaults["momentum"] = 0.0
    scheduler = s.CyclicLR(optimizer, 0.1, 1.0, 2, base_momentum=0.5, max_momentum=0.75)
    momenta = []
    for _ in range(5):
        momenta.append(optimizer.param_groups[0]["momentum"])
        advance(optimizer, scheduler)
    assert momenta == [pytest.approx(m) for m in (0.75, 0.625, 0.5, 0.625, 0.75)]
    adam = optim.Adam([nn.Parameter(cd.ones(1))])
    one = s.OneCycleLR(adam, 1.0, 11, pct_start=0.5, anneal_strategy="linear")
    assert adam.param_groups[0]["betas"] == (0.95, 0.999)
    for _ in range(10):
        advance(adam, one)
    assert adam.param_groups[0]["betas"] == (pytest.approx(0.95), 0.999)


def test_plateaus_wait_and_cool_down() -> None:
    """The rate falls after more than `patience` bad epochs, not below min_lr, and not by less than eps."""
    optimizer = two_groups()
    scheduler = s.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=2, min_lr=0.2)
    found = []
    for value in (1.0, 1.0, 1.0, cd.tensor(1.0), 1.0, 1.0, 1.0, 0.5, 0.5, 0.5):
        scheduler.step(value)
        found.append(scheduler.get_last_lr())
    assert found == [[1.0, 0.5]] * 2 + [[0.5, 0.25]] * 4 + [[0.25, 0.2]] * 4
    assert scheduler.best == 0.5
    scheduler.step(0.1, epoch=30)
    assert scheduler.last_epoch == 30
    optimizer.add_param_group({"params": [nn.Parameter(cd.ones(1))], "lr": 4.0})
    for _ in range(8):
        scheduler.step(9.0)
    assert scheduler.get_last_lr()[2] < 4.0
    assert scheduler.min_lrs == [0.2] * 3


def test_plateaus_keep_rates_that_would_hardly_change() -> None:
    """A change below eps is not made."""
    optimizer = sgd(1e-9)
    scheduler = s.ReduceLROnPlateau(optimizer, patience=0)
    for _ in range(3):
        scheduler.step(1.0)
    assert optimizer.param_groups[0]["lr"] == 1e-9


def test_schedulers_of_schedulers_nest() -> None:
    """A chain inside a sequence starts at its milestone."""
    optimizer = sgd()
    chain = s.ChainedScheduler([s.LinearLR(optimizer, 0.5, 1.0, 2), s.ConstantLR(optimizer, 0.5, 2)])
    scheduler = s.SequentialLR(optimizer, [s.ConstantLR(optimizer, 0.25, 9), chain], [2])
    found = [optimizer.param_groups[0]["lr"]] + [advance(optimizer, scheduler) for _ in range(4)]
    assert found == [pytest.approx(rate) for rate in (0.25, 0.25, 0.25, 0.375, 1.0)]
    assert scheduler.get_last_lr() == [found[-1]]


def test_a_sequence_may_be_part_of_a_sequence() -> None:
    """It begins with its first part at the outer milestone."""
    optimizer = sgd()
    inner = s.SequentialLR(optimizer, [s.ConstantLR(optimizer, 0.5, 9), s.ExponentialLR(optimizer, 0.5)], [2])
    scheduler = s.SequentialLR(optimizer, [s.ConstantLR(optimizer, 0.25, 9), inner], [2])
    found = [optimizer.param_groups[0]["lr"]] + [advance(optimizer, scheduler) for _ in range(5)]
    assert found == [pytest.approx(rate) for rate in (0.25, 0.25, 0.5, 0.5, 1.0, 0.5)]


def _in_sequence(make: Any) -> Any:
    o = sgd()
    return s.SequentialLR(o, make(o), [2])


def _late_group(make: Any) -> Any:
    o = two_groups()
    scheduler = make(o)
    o.add_param_group({"params": [nn.Parameter(cd.ones(1))], "lr": 4.0})
    o.step()
    for _ in range(12):
        scheduler.step(*([1.0] if isinstance(scheduler, s.ReduceLROnPlateau) else []))


class _Factorless(s.factors._Factor):
    pass


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: s.MultiplicativeLR(sgd(), []), ValueError, "Expected 1 lr_lambdas, but got 0"),
        (lambda: _Factorless(sgd()), NotImplementedError, "_Factorless must define factor_of()"),
        (lambda: s.CosineAnnealingWarmRestarts(sgd(), 0), ValueError, "Expected positive integer T_0, but got 0"),
        (lambda: s.CosineAnnealingWarmRestarts(sgd(), 2, 1.5), ValueError, "Expected integer T_mult >= 1, but got 1.5"),
        (
            lambda: s.CosineAnnealingWarmRestarts(sgd(), 2).step(-1),
            ValueError,
            "Expected non-negative epoch, but got -1",
        ),
        (lambda: s.CyclicLR(sgd(), 0.1, 0.2, mode="x"), ValueError, "mode is invalid and scale_fn is None"),
        (
            lambda: s.CyclicLR(two_groups(), [0.1], 0.2),
            ValueError,
            "base_lr must have the same length as optimizer.param_groups. base_lr has 1 values, param_groups has 2.",
        ),
        (
            lambda: s.CyclicLR(optim.Adagrad([cd.ones(1)]), 0.1, 0.2),
            ValueError,
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled",
        ),
        (lambda: s.CyclicLR(3, 0.1, 0.2), TypeError, "int is not an Optimizer"),
        (
            lambda: s.OneCycleLR(sgd(), 0.1),
            ValueError,
            "You must define either total_steps OR (epochs AND steps_per_epoch)",
        ),
        (lambda: s.OneCycleLR(sgd(), 0.1, 0), ValueError, "Expected positive integer total_steps, but got 0"),
        (
            lambda: s.OneCycleLR(sgd(), 0.1, epochs=1, steps_per_epoch=0),
            ValueError,
            "Expected positive integer steps_per_epoch, but got 0",
        ),
        (
            lambda: s.OneCycleLR(sgd(), 0.1, 5, pct_start=2),
            ValueError,
            "Expected float between 0 and 1 pct_start, but got 2",
        ),
        (
            lambda: s.OneCycleLR(sgd(), 0.1, 5, anneal_strategy="x"),
            ValueError,
            "anneal_strategy must be one of 'cos' or 'linear', instead got x",
        ),
        (
            lambda: _late_group(lambda o: s.CyclicLR(o, 0.1, 0.2, 4)),
            ValueError,
            "CyclicLR has rates for 2 parameter groups, and the optimizer has 3",
        ),
        (lambda: _past_the_end(), ValueError, "Tried to step 3 times. The specified number of total steps is 2"),
        (lambda: s.ReduceLROnPlateau(sgd(), factor=1.0), ValueError, "Factor should be < 1.0."),
        (lambda: s.ReduceLROnPlateau(sgd(), mode="x"), ValueError, "mode x is unknown!"),
        (lambda: s.ReduceLROnPlateau(sgd(), threshold_mode="x"), ValueError, "threshold mode x is unknown!"),
        (lambda: s.ReduceLROnPlateau(sgd(), min_lr=[0, 0]), ValueError, "expected 1 min_lrs, got 2"),
        (
            lambda: _late_group(lambda o: s.ReduceLROnPlateau(o, min_lr=[0, 0], patience=1)),
            RuntimeError,
            "ReduceLROnPlateau has 2 min_lrs, and the optimizer has 3 parameter groups",
        ),
        (lambda: s.SequentialLR(sgd(), [], []), ValueError, "SequentialLR expects at least one scheduler, but got no"),
        (
            lambda: _in_sequence(lambda o: [s.ConstantLR(o)]),
            ValueError,
            "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone",
        ),
        (
            lambda: _in_sequence(lambda o: [s.ReduceLROnPlateau(o), s.ConstantLR(o)]),
            ValueError,
            "SequentialLR does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs",
        ),
        (
            lambda: _in_sequence(lambda o: [s.ConstantLR(o), s.ConstantLR(sgd())]),
            ValueError,
            "SequentialLR expects all schedulers to belong to the same optimizer, but got scheduler ConstantLR at inde",
        ),
        (
            lambda: _in_sequence(lambda o: [abs, s.ConstantLR(o)]),
            TypeError,
            "SequentialLR at index 0 should have `optimizer` as its attribute.",
        ),
        (lambda: s.ChainedScheduler([]), ValueError, "ChainedScheduler expects at least one scheduler to be chained"),
    ],
)
def test_misuse_of_schedulers_raises_an_error(call: Any, error: type[Exception], text: str) -> None:
    """Each has PyTorch's class of error with the reason."""
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def _past_the_end() -> None:
    optimizer = two_groups()
    scheduler = s.OneCycleLR(optimizer, 0.1, 2)
    for _ in range(3):
        advance(optimizer, scheduler)
