"""Optimizers, compared with their formulas in Python floats; groups, state and schedulers."""

from __future__ import annotations

import math
import re
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn, optim

GRADIENTS = [0.5, -1.25, 2.0, 0.0, 0.125]


def final_value(make: Any, dtype: Any = cd.float64) -> float:
    """Return the final value of a parameter that starts at 1."""
    p = nn.Parameter(cd.ones(1, dtype=dtype))
    optimizer = make([p])
    for g in GRADIENTS:
        p.grad = cd.full((1,), g, dtype=dtype)
        optimizer.step()
    return p.item()


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
def test_sgd_follows_its_formula(nesterov: bool, maximize: bool) -> None:
    """The steps with momentum, weight decay and both directions are those of the formula."""
    p, buffer = 1.0, None
    for g in GRADIENTS:
        g = (-g if maximize else g) + 0.01 * p
        buffer = g if buffer is None else 0.9 * buffer + g
        p -= 0.1 * (g + 0.9 * buffer if nesterov else buffer)
    options = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": nesterov, "maximize": maximize}
    assert final_value(lambda ps: optim.SGD(ps, **options)) == pytest.approx(p, rel=1e-12)


def test_sgd_without_momentum_and_with_dampening() -> None:
    """The steps are plain descent without momentum; dampening weights new gradients."""
    assert final_value(lambda ps: optim.SGD(ps, lr=0.1)) == pytest.approx(1 - 0.1 * sum(GRADIENTS))
    p, buffer = 1.0, None
    for g in GRADIENTS:
        buffer = g if buffer is None else 0.5 * buffer + 0.75 * g
        p -= 0.1 * buffer
    assert final_value(lambda ps: optim.SGD(ps, 0.1, 0.5, 0.25)) == pytest.approx(p, rel=1e-12)


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("decoupled", [False, True])
def test_adam_follows_its_formula(amsgrad: bool, decoupled: bool) -> None:
    """Averages, bias correction, both kinds of decay and amsgrad are those of the formula."""
    p, mean, square, largest = 1.0, 0.0, 0.0, 0.0
    for step, g in enumerate(GRADIENTS, 1):
        if decoupled:
            p -= 0.1 * 0.01 * p
        else:
            g += 0.01 * p
        mean = 0.9 * mean + 0.1 * g
        square = 0.99 * square + 0.01 * g * g
        largest = max(largest, square)
        root = math.sqrt((largest if amsgrad else square) / (1 - 0.99**step)) + 1e-8
        p -= 0.1 * mean / (1 - 0.9**step) / root
    kind = optim.AdamW if decoupled else optim.Adam
    options: dict[str, Any] = {"lr": 0.1, "betas": (0.9, 0.99), "weight_decay": 0.01, "amsgrad": amsgrad}
    assert final_value(lambda ps: kind(ps, **options)) == pytest.approx(p, rel=1e-12)


def test_adam_can_maximize() -> None:
    """maximize=True negates the steps."""
    down, up = (final_value(lambda ps, m=m: optim.Adam(ps, 0.1, maximize=m)) for m in (False, True))
    assert up - 1 == pytest.approx(1 - down)


def test_parameters_without_gradient_do_not_change() -> None:
    """A parameter without a gradient is not updated and has no state."""
    a, b = nn.Parameter(cd.ones(1)), nn.Parameter(cd.ones(1))
    optimizer = optim.AdamW([a, b], lr=0.1)
    a.grad = cd.ones(1)
    optimizer.step()
    assert a.item() != 1
    assert b.item() == 1
    assert list(optimizer.state) == [a]


def test_a_step_does_not_disturb_a_graph_or_the_gradient() -> None:
    """Gradients keep their values, parameters remain leaves, and the closure's loss is returned."""
    p = nn.Parameter(cd.ones(1))
    optimizer = optim.SGD([p], lr=0.5, weight_decay=0.1, momentum=0.9)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (p * 3).sum()
        loss.backward()
        return loss

    with cd.no_grad():
        assert optimizer.step(closure).item() == 3
    assert p.grad.item() == 3
    assert p.is_leaf
    assert p.requires_grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.item() == 0


def test_groups_have_options_of_their_own() -> None:
    """A group's options replace the defaults; names are kept; groups can be added later."""
    a, b, c = (nn.Parameter(cd.ones(1)) for _ in range(3))
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 1.0}], lr=0.1)
    optimizer.add_param_group({"params": c, "lr": 2.0})
    for p in (a, b, c):
        p.grad = cd.ones(1)
    optimizer.step()
    assert [p.item() for p in (a, b, c)] == [pytest.approx(0.9), 0, -1]
    assert repr(optimizer).startswith("SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n")


def test_names_are_kept_in_the_groups() -> None:
    """Pairs of names and parameters give "param_names", which are in the saved state and survive loading."""
    a, b = nn.Parameter(cd.ones(1)), nn.Parameter(cd.ones(1))
    optimizer = optim.SGD([("a", a)])
    optimizer.add_param_group({"params": [("b", b)]})
    assert [group["param_names"] for group in optimizer.state_dict()["param_groups"]] == [["a"], ["b"]]
    state = optim.SGD([{"params": [a]}, {"params": [b]}], lr=2.0).state_dict()
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[1]["param_names"] == ["b"]
    assert optimizer.param_groups[1]["lr"] == 2.0


def test_a_group_is_the_dict_that_was_given() -> None:
    """As in PyTorch, a program that keeps the dict of a group changes the group's options with it."""
    group: dict[str, Any] = {"params": [nn.Parameter(cd.ones(1))]}
    optimizer = optim.SGD([group], lr=0.5)
    assert optimizer.param_groups[0] is group
    assert group["lr"] == 0.5


def test_a_parameter_that_is_listed_twice_gives_a_warning() -> None:
    """PyTorch warns, too."""
    p = nn.Parameter(cd.ones(1))
    with pytest.warns(UserWarning, match="optimizer contains a parameter group with duplicate parameters"):
        optim.SGD([p, p])


def _late() -> Any:
    return optim.SGD([nn.Parameter(cd.ones(1))], lr=0.1)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: optim.SGD([]), ValueError, "optimizer got an empty parameter list"),
        (
            lambda: optim.SGD(cd.ones(1)),
            TypeError,
            "params argument given to the optimizer should be an iterable of Tensors or dicts",
        ),
        (lambda: optim.SGD([3]), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
        (lambda: optim.SGD([cd.ones(1).requires_grad_() * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: optim.SGD([cd.ones(1)] * 2, lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.SGD([cd.ones(1)], momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda: optim.SGD([cd.ones(1)], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (
            lambda: optim.SGD([cd.ones(1)], nesterov=True),
            ValueError,
            "Nesterov momentum requires a momentum and zero dampening",
        ),
        (lambda: optim.Adam([cd.ones(1)], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: optim.Adam([cd.ones(1)], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda: optim.Adam([cd.ones(1)], betas=(0.9, 1.0)), ValueError, "Invalid beta parameter at index 1: 1.0"),
        (
            lambda: optim.SGD([("a", cd.ones(1)), cd.ones(1)]),
            ValueError,
            "all optimizer params should be with/without names. Some param names are missing",
        ),
        (
            lambda: _late().add_param_group({"params": [("a", cd.ones(1))]}),
            ValueError,
            "all optimizer param groups should be with/without names. cannot add param group with names to the optim",
        ),
        (
            lambda: optim.SGD([("a", cd.ones(1))]).add_param_group({"params": [cd.ones(1)]}),
            ValueError,
            "all optimizer param groups should be with/without names. cannot add param group without names to the",
        ),
        (lambda: optim.SGD([cd.ones(1)], lr=cd.ones(2)), ValueError, "Tensor lr must be 1-element"),
        (
            lambda: optim.Adam([cd.ones(1)], betas=(0.9, cd.tensor(0.99))),
            ValueError,
            "betas must be either both floats or both Tensors",
        ),
        (
            lambda: optim.Adam([cd.ones(1)], cd.tensor(0.1), foreach=True),
            ValueError,
            "lr as a Tensor is not supported for capturable=False and foreach=True",
        ),
        (
            lambda: optim.Adam([cd.ones(1)], betas=(cd.tensor(0.9), cd.tensor(0.9)), foreach=True),
            ValueError,
            "betas[0] as a Tensor is not supported for capturable=False and foreach=True",
        ),
        (
            lambda: optim.SGD([cd.ones(1)], fused=True, differentiable=True),
            RuntimeError,
            "`fused` does not support `differentiable`",
        ),
        (
            lambda: optim.SGD([cd.ones(1)], fused=True, foreach=True),
            RuntimeError,
            "`fused` and `foreach` cannot be `True` together.",
        ),
        (
            lambda: optim.SGD([{"params": [(t := cd.ones(1))]}, {"params": [t]}]),
            ValueError,
            "some parameters appear in more than one",
        ),
        (
            lambda: optim.SGD([{"params": {cd.ones(1)}}]),
            TypeError,
            "optimizer parameters need to be organized in ordered collections",
        ),
        (lambda: _late().add_param_group([1]), TypeError, "param_group must be a dict, but got <class 'list'>"),
        (
            lambda: _late().load_state_dict({"state": {}, "param_groups": []}),
            ValueError,
            "loaded state dict has a different number",
        ),
        (
            lambda: _late().load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]}),
            ValueError,
            "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
        ),
        (lambda: optim.lr_scheduler.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (
            lambda: optim.lr_scheduler.StepLR(_late(), 1, last_epoch=2),
            KeyError,
            "param 'initial_lr' is not specified in param_groups[0] when resuming scheduler with last_epoch >= 0",
        ),
        (lambda: optim.lr_scheduler.LambdaLR(_late(), []), ValueError, "Expected 1 lr_lambdas, but got 0"),
        (
            lambda: optim.lr_scheduler.ConstantLR(_late(), 2),
            ValueError,
            "Constant multiplicative factor expected to be between 0 and 1.",
        ),
        (
            lambda: optim.lr_scheduler.LinearLR(_late(), 0),
            ValueError,
            "Starting multiplicative factor expected to be greater than 0",
        ),
        (
            lambda: optim.lr_scheduler.LinearLR(_late(), 1, 2),
            ValueError,
            "Ending multiplicative factor expected to be between 0 and 1.",
        ),
        (
            lambda: optim.lr_scheduler.LRScheduler(_late()),
            NotImplementedError,
            "LRScheduler must define get_lr()",
        ),
        (
            lambda: optim.Optimizer([cd.ones(1)], {}).step(),
            NotImplementedError,
            "Optimizer must define update() or step()",
        ),
    ],
)
def test_misuse_of_optimizers_raises_an_error(call: Any, error: type[Exception], text: str) -> None:
    """Each wrong call raises PyTorch's class of error with the reason."""
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value.args[0])


def test_a_required_option_must_be_given() -> None:
    """An option without a default has to be given."""
    from candelabra.optim.optimizer import required

    with pytest.raises(
        ValueError, match="parameter group didn't specify a value of required optimization parameter lr"
    ):
        optim.Optimizer([cd.ones(1)], {"lr": required})
    assert repr(required) == "<required parameter>"


def test_training_goes_on_from_a_saved_state(tmp_path: Any) -> None:
    """Training that is resumed from a file gives the same bits."""

    def steps(model: Any, optimizer: Any, count: int) -> None:
        for number in range(count):
            optimizer.zero_grad()
            (model(cd.full((2, 3), 1.0 + number)) ** 2).sum().backward()
            optimizer.step()

    a = nn.Linear(3, 2)
    first = optim.AdamW(a.parameters(), lr=0.01, amsgrad=True)
    steps(a, first, 3)
    cd.save({"model": a.state_dict(), "optimizer": first.state_dict()}, tmp_path / "half.safetensors")
    steps(a, first, 2)

    b = nn.Linear(3, 2)
    second = optim.AdamW(b.parameters())
    half = cd.load(tmp_path / "half.safetensors")
    b.load_state_dict(half["model"])
    second.load_state_dict(half["optimizer"])
    assert second.param_groups[0]["lr"] == 0.01
    assert second.param_groups[0]["betas"] == (0.9, 0.999)
    steps(b, second, 2)
    assert b.weight.tolist() == a.weight.tolist()


def test_loaded_state_is_a_copy_of_the_parameters_dtype() -> None:
    """Loaded state has the parameter's dtype and shares no memory with its source."""
    a, b = nn.Parameter(cd.ones(1)), nn.Parameter(cd.ones(1, dtype=cd.float64))
    first, second = optim.SGD([a], 0.1, 0.9), optim.SGD([b], 0.1, 0.9)
    a.grad = cd.ones(1)
    first.step()
    second.load_state_dict(first.state_dict())
    buffer = second.state[b]["momentum_buffer"]
    assert buffer.dtype is cd.float64
    buffer.add_(1)
    assert first.state[a]["momentum_buffer"].item() == 1


def test_hooks_run_around_steps_and_states() -> None:
    """Hooks run before and after steps, saving and loading, and some may replace the state."""
    optimizer = _late()
    calls: list[str] = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append("pre"))
    removed = optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append("removed"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append("post"))
    removed.remove()
    optimizer.step()
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("save"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "note": 1})
    assert optimizer.state_dict()["note"] == 1
    optimizer.register_load_state_dict_pre_hook(lambda o, state: calls.append("load"))
    optimizer.register_load_state_dict_post_hook(lambda o: calls.append("loaded"))
    optimizer.load_state_dict(optimizer.state_dict())
    assert calls == ["pre", "post", "save", "save", "load", "loaded"]


def test_hooks_may_replace_the_arguments_of_a_step() -> None:
    """A hook before the step gets the optimizer and the step's arguments, and may return others."""
    optimizer = _late()
    seen: list[Any] = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 7), {}))
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append((args[0] is o, len(args), kwargs)))
    assert optimizer.step(closure=lambda: 3) == 7
    assert seen == [(True, 2, {})]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match=r"a hook of SGD.step must return None or a tuple of \(new_args, new_kwarg"):
        optimizer.step()


def test_hooks_of_all_optimizers_and_prepended_ones() -> None:
    """Hooks can be registered for every optimizer; a prepended hook of the state runs before earlier ones."""
    calls: list[str] = []
    optimizer = _late()
    optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append("own"))
    with (
        optim.optimizer.register_optimizer_step_pre_hook(lambda o, args, kwargs: calls.append("all")),
        optim.optimizer.register_optimizer_step_post_hook(lambda o, args, kwargs: calls.append("after all")),
    ):
        optimizer.step()
    optimizer.step()
    assert calls == ["all", "own", "after all", "own"]
    calls.clear()
    for name, prepend in (("a", False), ("b", True), ("c", True), ("d", False)):
        optimizer.register_state_dict_pre_hook(lambda o, name=name: calls.append(name), prepend=prepend)
    optimizer.state_dict()
    assert calls == ["c", "b", "a", "d"]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda o: optim.lr_scheduler.StepLR(o, 2, 0.5), [1, 1, 0.5, 0.5, 0.25]),
        (lambda o: optim.lr_scheduler.MultiStepLR(o, [1, 3], 0.5), [1, 0.5, 0.5, 0.25, 0.25]),
        (lambda o: optim.lr_scheduler.ExponentialLR(o, 0.5), [1, 0.5, 0.25, 0.125, 0.0625]),
        (lambda o: optim.lr_scheduler.LambdaLR(o, lambda epoch: 1 / (1 + epoch)), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]),
        (lambda o: optim.lr_scheduler.ConstantLR(o, 0.5, 2), [0.5, 0.5, 1, 1, 1]),
        (lambda o: optim.lr_scheduler.LinearLR(o, 0.5, 1.0, 2), [0.5, 0.75, 1, 1, 1]),
        (
            lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 4, 0.2),
            [1, 0.2 + 0.4 * (1 + math.sqrt(0.5)), 0.6, 0.2 + 0.4 * (1 - math.sqrt(0.5)), 0.2],
        ),
    ],
    ids=["step", "multistep", "exponential", "lambda", "constant", "linear", "cosine"],
)
def test_schedules_set_the_rate_per_epoch(make: Any, expected: list[float]) -> None:
    """The rates of the first five epochs are as expected, and go on from loaded states."""
    optimizer = optim.SGD([nn.Parameter(cd.ones(1))], lr=1.0)
    scheduler = make(optimizer)
    rates = []
    for _ in expected:
        assert scheduler.get_last_lr() == [optimizer.param_groups[0]["lr"]]
        rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    assert rates == [pytest.approx(rate) for rate in expected]
    another = optim.SGD([nn.Parameter(cd.ones(1))], lr=1.0)
    other = make(another)
    another.load_state_dict(optimizer.state_dict())
    other.load_state_dict(scheduler.state_dict())
    other.step()
    scheduler.step()
    assert other.get_last_lr() == scheduler.get_last_lr()


def test_errors_name_the_pattern_literally() -> None:
    """A message with brackets is matched literally."""
    with pytest.raises(ValueError, match=re.escape("Invalid beta parameter at index 0: -0.5")):
        optim.AdamW([cd.ones(1)], betas=(-0.5, 0.9))
