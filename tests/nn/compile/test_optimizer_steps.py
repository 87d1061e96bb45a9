"""The step of an optimizer is a part of the graph of a compiled training step, with its numbers as inputs."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn, optim
from candelabra._compile.calling import CompiledFunction
from candelabra.nn import functional as F
from candelabra.utils._pytree import tree_flatten

Make = Callable[[Any], optim.Optimizer]
Change = Callable[[optim.Optimizer, nn.Module, int], Any]

RECORDED: dict[str, Make] = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "sgd with weight decay": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.1, maximize=True),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.2),
    "nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: optim.Adam(p, lr=0.01, weight_decay=0.1),
    "adamw": lambda p: optim.AdamW(p, lr=0.01),
    "amsgrad": lambda p: optim.AdamW(p, lr=0.01, amsgrad=True),
}
"""Optimizers whose steps are rows of one operator."""
PER_PARAMETER: dict[str, Make] = {
    "adadelta": lambda p: optim.Adadelta(p, lr=0.5),
    "adafactor": lambda p: optim.Adafactor(p, lr=0.05),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "adamax": lambda p: optim.Adamax(p, lr=0.02, weight_decay=0.1),
    "asgd": lambda p: optim.ASGD(p, lr=0.1, lambd=0.01, t0=3),
    "nadam": lambda p: optim.NAdam(p, lr=0.01, decoupled_weight_decay=True),
    "radam": lambda p: optim.RAdam(p, lr=0.01),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.01),
    "centered rmsprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True, maximize=True),
    "rprop": lambda p: optim.Rprop(p, lr=0.01),
}
"""Optimizers whose steps are several operators for each parameter."""


def small() -> nn.Module:
    """Return a network of four parameters."""
    cd.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def train(make: Make, compiled: bool, change: Change = lambda *_: None, steps: int = 9) -> tuple[Any, Any]:
    """Train with ``change(optimizer, model, i)`` before each step. Return all numbers, and the function."""
    model = small()
    optimizer = make(model.parameters())

    def step(x: cd.Tensor, target: cd.Tensor) -> cd.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        return loss

    called = cd.compile(step, fullgraph=True) if compiled else step
    losses = []
    for i in range(steps):
        change(optimizer, model, i)
        losses.append(called(cd.randn(5, 6), cd.randint(0, 3, (5,))).item())
    state = [{k: v.tolist() for k, v in optimizer.state[p].items()} for p in model.parameters()]
    grads = [p.grad.tolist() for p in model.parameters()]
    return (losses, [p.tolist() for p in model.parameters()], grads, state), called


def operators(function: CompiledFunction) -> list[list[str]]:
    """Return the names of the nodes of each graph of the last program."""
    return [[node.name for node in graph] for graph in function.programs[-1].graphs]


def rate(optimizer: optim.Optimizer, model: nn.Module, i: int) -> None:
    """Change the learning rate and the weight decay."""
    optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)
    optimizer.param_groups[0]["weight_decay"] = 0.01 * (i % 3)


@pytest.mark.parametrize("name", RECORDED)
def test_a_training_step_is_one_graph_with_the_numbers_of_eager_steps(name: str) -> None:
    """Parameters, gradients, losses and the optimizer's state are equal, while its options change at each step."""
    expected, _ = train(RECORDED[name], False, rate)
    found, step = train(RECORDED[name], True, rate)
    assert found == expected
    [nodes] = operators(step)
    assert nodes[-1].endswith("_step_")
    assert len(step.programs) <= 2  # without and with gradients from the step before


@pytest.mark.parametrize("name", PER_PARAMETER)
def test_a_step_of_several_operators_is_in_the_graph_too(name: str) -> None:
    """Its numbers are inputs. What changes the operators, such as RAdam's sixth step, makes another program."""
    expected, _ = train(PER_PARAMETER[name], False, rate, 12)
    found, step = train(PER_PARAMETER[name], True, rate, 12)
    flat_found, flat_expected = tree_flatten(found)[0], tree_flatten(expected)[0]
    assert flat_found == pytest.approx(flat_expected, rel=2e-6, abs=1e-7)
    assert len(operators(step)) == 1
    assert len(step.programs) <= 5


def test_muon_steps_in_the_graph() -> None:
    """Its parameters are matrices."""
    results = []
    for compiled in (False, True):
        w = nn.Parameter(cd.arange(12.0).reshape(3, 4).cos())
        optimizer = optim.Muon([w], lr=0.1)

        def step(x: cd.Tensor, w: Any = w, optimizer: Any = optimizer) -> None:
            optimizer.zero_grad()
            ((x @ w).tanh() ** 2).sum().backward()
            optimizer.step()

        called = cd.compile(step, fullgraph=True) if compiled else step
        for i in range(6):
            optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)
            called(cd.ones(2, 3) * (i + 1))
        results.append(tree_flatten(w.tolist())[0])
        if compiled:
            assert len(operators(called)) == 1
            assert len(called.programs) <= 2
    assert results[1] == pytest.approx(results[0], rel=1e-2, abs=1e-3)  # it computes in bfloat16


def test_schedulers_inside_and_outside_change_the_rate_of_one_program() -> None:
    """A schedule of an optimizer is no reason to trace again."""

    def schedule(optimizer: Any, model: nn.Module, i: int) -> None:
        if not i:
            optimizer.schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # "lr_scheduler.step() before optimizer.step()"
                optimizer.schedule.step()

    found, step = train(RECORDED["adamw"], True, schedule, 20)
    assert found == train(RECORDED["adamw"], False, schedule, 20)[0]
    assert len(step.programs) == 1


def replace_state(optimizer: optim.Optimizer, model: nn.Module, i: int) -> None:
    """Load the optimizer's own state, so that other tensors have it."""
    if i in (4, 6):
        optimizer.load_state_dict(optimizer.state_dict())


def forget_state(optimizer: optim.Optimizer, model: nn.Module, i: int) -> None:
    """Start again without momentum."""
    if i == 5:
        optimizer.state.clear()


def freeze(optimizer: optim.Optimizer, model: Any, i: int) -> None:
    """Train without one of the parameters for some steps, which then counts fewer steps than the others."""
    model[0].bias.requires_grad_(not 3 <= i < 6)
    if 3 <= i < 6:
        model[0].bias.grad = None


def regroup(optimizer: optim.Optimizer, model: Any, i: int) -> None:
    """Take a parameter out of its group."""
    if i == 4:
        optimizer.param_groups[0]["params"].pop(1)


def flag(optimizer: optim.Optimizer, model: nn.Module, i: int) -> None:
    """Ascend in one of the steps."""
    optimizer.param_groups[0]["maximize"] = i == 5


def rebound(optimizer: optim.Optimizer, model: Any, i: int) -> None:
    """Give a parameter other memory."""
    if i == 5:
        model[2].weight.data = model[2].weight.detach() * 0.5


def rate_of_a_tensor(optimizer: optim.Optimizer, model: nn.Module, i: int) -> None:
    """Give the rate as a tensor from the fifth step on."""
    optimizer.param_groups[0]["lr"] = 0.1 if i < 4 else cd.tensor(0.1 / i)


@pytest.mark.parametrize(
    "change", [replace_state, forget_state, regroup, flag, rebound, rate_of_a_tensor, freeze], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("name", ["momentum", "adamw", "nadam", "rmsprop"])
def test_changes_of_the_optimizer_are_seen(name: str, change: Change) -> None:
    """What decides which kernels run on which tensors is guarded."""
    make = (RECORDED | PER_PARAMETER)[name]
    found, expected = (tree_flatten(train(make, compiled, change, 8)[0])[0] for compiled in (True, False))
    assert found == pytest.approx(expected, rel=0 if name in RECORDED else 2e-6, abs=0 if name in RECORDED else 1e-7)


def test_hooks_of_a_step_run_at_each_call() -> None:
    """A step with hooks is Python between two graphs; a hook that is added later is seen."""
    calls: list[int] = []

    def add(optimizer: optim.Optimizer, model: nn.Module, i: int) -> None:
        if i == 4:
            optimizer.register_step_post_hook(lambda *_: calls.append(1))

    found, step = train(RECORDED["adam"], True, add)
    assert found == train(RECORDED["adam"], False, lambda *_: None)[0]
    assert len(calls) == 5
    assert len(operators(step)) == 2


class Halving(optim.SGD):
    """An optimizer with its own update, which calculates with the rate."""

    def update(self, group: dict[str, Any], parameters: list[Any]) -> None:
        super().update({**group, "lr": group["lr"] / 2}, parameters)


class Doubling(optim.RMSprop):
    """An optimizer whose operators have numbers that are calculated from those of the step."""

    def move(self, p: cd.Tensor, g: cd.Tensor, state: dict[str, Any], *numbers: Any) -> None:
        alpha, share, eps, momentum, lr, *flags = numbers
        super().move(p, g, state, alpha, share, eps, momentum, lr * 2, *flags)


def test_an_optimizer_with_its_own_update_runs_as_python() -> None:
    """It may calculate with the numbers of a step."""

    def make(p: Any) -> optim.Optimizer:
        return Halving(p, lr=0.1)

    found, step = train(make, True, rate)
    assert found == train(make, False, rate)[0]
    assert len(operators(step)) == 2


def test_arithmetic_with_the_numbers_of_a_step_breaks_the_graph() -> None:
    """It would become a constant."""
    w = nn.Parameter(cd.ones(3))
    optimizer = Doubling([w], lr=0.1)

    @cd.compile(fullgraph=True)
    def step() -> None:
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()

    with pytest.raises(cd.graph.GraphBreak, match="a number that differs at each run is calculated with"):
        step()


def test_a_step_after_a_call_outside_of_the_graph_is_python() -> None:
    """That call may replace the state, which the guards of the whole call have seen before."""
    results = []
    for compiled in (False, True):
        w = nn.Parameter(cd.ones(3))
        optimizer = optim.Adam([w], lr=0.1)

        @cd.compiler.disable
        def restart(optimizer: optim.Optimizer = optimizer) -> None:
            optimizer.load_state_dict(optimizer.state_dict())
            optimizer.param_groups[0]["maximize"] = not optimizer.param_groups[0]["maximize"]

        def step(x: cd.Tensor, w: Any = w, optimizer: Any = optimizer, restart: Any = restart) -> None:
            optimizer.zero_grad()
            (w * w * x).sum().backward()
            restart()
            optimizer.step()

        called = cd.compile(step, fullgraph=True) if compiled else step
        for _ in range(6):
            called(cd.arange(3.0))
        results.append((w.tolist(), [v.tolist() for v in optimizer.state[w].values()]))
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["momentum", "adamw"])
def test_two_optimizers_step_in_one_graph(name: str) -> None:
    """Each has its numbers."""
    results = []
    for compiled in (False, True):
        a, b = nn.Parameter(cd.ones(3)), nn.Parameter(cd.ones(2, 3))
        first, second = RECORDED[name]([a]), RECORDED["sgd"]([b])

        def step(x: cd.Tensor, a: Any = a, b: Any = b, first: Any = first, second: Any = second) -> cd.Tensor:
            first.zero_grad()
            second.zero_grad()
            loss = (a * b * x).sum()
            loss.backward()
            first.step()
            second.step()
            return loss

        called = cd.compile(step, fullgraph=True) if compiled else step
        losses = []
        for i in range(6):
            second.param_groups[0]["lr"] = 0.5 / (i + 1)
            losses.append(called(cd.arange(3.0)).item())
        results.append((losses, a.tolist(), b.tolist()))
        if compiled:
            assert len(operators(called)) == 1
    assert results[0] == results[1]


def test_an_optimizer_with_its_own_step_runs_as_python() -> None:
    """A subclass may do anything before and after the step of its base."""

    class Counting(optim.SGD):
        steps = 0

        def step(self, closure: Any = None) -> Any:
            self.steps += 1
            return super().step(closure)

    made: list[Counting] = []

    def make(p: Any) -> optim.Optimizer:
        made.append(Counting(p, lr=0.1))
        return made[-1]

    assert train(make, True)[0] == train(make, False)[0]
    assert [each.steps for each in made] == [9, 9]


def test_a_function_of_other_parameters_does_not_move_what_it_does_not_train() -> None:
    """A gradient that appears from elsewhere makes another kind of call."""
    used, other = nn.Parameter(cd.ones(2)), nn.Parameter(cd.ones(2))
    optimizer = optim.SGD([used, other], lr=0.5)

    @cd.compile(fullgraph=True)
    def step() -> None:
        used.grad = None
        used.sum().backward()
        optimizer.step()

    for _ in range(3):
        step()
    assert other.tolist() == [1, 1]
    other.grad = cd.ones(2)
    step()
    assert other.tolist() == [0.5, 0.5]
    assert used.tolist() == [-1, -1]


def test_old_gradients_are_gone_while_a_step_computes_new_ones() -> None:
    """They are removed before the graph, as ``zero_grad()`` does, and nothing of the trace keeps gradients."""
    w = nn.Parameter(cd.ones(3))
    optimizer = optim.Adam([w], lr=0.1)

    @cd.compile(fullgraph=True)
    def step(x: cd.Tensor) -> None:
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()

    gradients: list[weakref.ref[Any]] = []
    for _ in range(3):
        step(cd.ones(3))
        gradients.append(weakref.ref(w.grad))
    gone: list[list[bool]] = []
    kernels: dict[str, Any] = step.programs[-1].runs[0].__globals__
    first = kernels["k0"]
    kernels["k0"] = lambda *args: gone.append([each() is None for each in gradients]) or first(*args)
    step(cd.ones(3))
    assert gone == [[True, True, True]]


def test_programs_do_not_pile_up() -> None:
    """Many optimizers and their compiled steps are collected with their functions."""
    made: list[weakref.ref[Any]] = []
    for i in range(20):
        w = nn.Parameter(cd.ones(2))
        optimizer = optim.Adam([w], lr=0.1)

        def step(x: cd.Tensor, w: Any = w, optimizer: Any = optimizer) -> None:
            (w * x).sum().backward()
            optimizer.step()

        compiled = cd.compile(step, fullgraph=True)
        for _ in range(3):
            compiled(cd.ones(2) * i)
        made += [weakref.ref(optimizer), weakref.ref(compiled.programs[-1].graphs[0])]
    del step, compiled, optimizer
    gc.collect()
    assert [each() for each in made] == [None] * 40
