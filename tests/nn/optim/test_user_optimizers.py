"""Optimizers and hooks that programs define against PyTorch's Optimizer."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra import nn, optim
from candelabra.optim.optimizer import Optimizer, required


class Lion(Optimizer):
    """Steps along the sign of a mixture of momentum and gradient, as programs write it."""

    def __init__(self, params: Any, lr: Any = required, betas: tuple[float, float] = (0.9, 0.99)) -> None:
        super().__init__(params, {"lr": lr, "betas": betas})

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("nesterov", False)

    @cd.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with cd.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = cd.zeros_like(p)
                state["step"] += 1
                beta1, beta2 = group["betas"]
                update = state["exp_avg"] * beta1 + p.grad * (1 - beta1)
                p.add_(update.sign(), alpha=-group["lr"])
                state["exp_avg"].mul_(beta2).add_(p.grad, alpha=1 - beta2)
        return loss


class Lookahead(Optimizer):
    """An optimizer around another one, which does not call __init__, as programs write it."""

    def __init__(self, base: Optimizer, k: int = 2, alpha: float = 0.5) -> None:
        self.optimizer = base
        self.k = k
        self.alpha = alpha
        self.param_groups = base.param_groups
        self.defaults = base.defaults
        self.state = defaultdict(dict)
        self.steps = 0

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = self.optimizer.step(closure)
        self.steps += 1
        for group in self.param_groups:
            for p in group["params"]:
                slow = self.state[p].setdefault("slow", p.detach().clone())
                if self.steps % self.k == 0:
                    slow.add_(p.detach() - slow, alpha=self.alpha)
                    p.data.copy_(slow)
        return loss


class Outer(optim.SGD):
    """A subclass that does something around the step of its base."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        return super().step(closure)


def parameter(value: float = 1.0) -> Any:
    """Return a parameter with a gradient."""
    p = nn.Parameter(cd.full((2,), value))
    p.grad = cd.ones(2)
    return p


def test_an_optimizer_of_a_program_runs() -> None:
    """state[p] is a dict from the first use, and the options are in the groups."""
    p, q = parameter(), nn.Parameter(cd.ones(1))
    optimizer = Lion([p, q], lr=0.25)
    assert optimizer.step(lambda: 7) == 7
    optimizer.step()
    assert p.tolist() == [0.5, 0.5]
    assert q.tolist() == [1.0]
    assert optimizer.state[p]["step"] == 2
    assert q not in optimizer.state
    with pytest.raises(
        ValueError, match="parameter group didn't specify a value of required optimization parameter lr"
    ):
        Lion([p])


def test_its_state_is_saved_and_loaded() -> None:
    """Loading calls the program's __setstate__, and counts remain ints."""
    p = parameter()
    optimizer = Lion([p], lr=0.25)
    optimizer.step()
    assert "nesterov" not in optimizer.param_groups[0]
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert optimizer.param_groups[0]["nesterov"] is False
    assert optimizer.state[p]["step"] == 1
    assert optimizer.state[nn.Parameter(cd.ones(1))] == {}
    optimizer.step()
    assert p.tolist() == [0.5, 0.5]


def test_states_with_keys_that_are_no_parameters_survive() -> None:
    """A program may keep values of its own in the state."""
    optimizer = Lion([parameter()], lr=0.25)
    optimizer.state["epoch"] = {"number": 3}
    saved = optimizer.state_dict()
    assert saved["state"] == {"epoch": {"number": 3}}
    other = Lion([parameter()], lr=0.5)
    other.load_state_dict(saved)
    assert other.state["epoch"] == {"number": 3}


def test_an_optimizer_around_another_one_can_be_scheduled() -> None:
    """A class that does not call __init__ has hooks, and works with schedulers without their warning."""
    p = parameter()
    optimizer = Lookahead(optim.SGD([p], lr=1.0))
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    calls: list[str] = []
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))
    optimizer.step()
    scheduler.step()
    optimizer.step()
    assert p.tolist() == [-0.25, -0.25]  # 0 and -0.5 without, and half of the way with Lookahead
    assert calls == ["after", "after"]


def test_hooks_run_once_around_steps_that_call_their_base() -> None:
    """Hooks run around the outermost step, also if it raises the next time."""
    calls: list[str] = []
    optimizer = Outer([parameter()], lr=1.0)
    optimizer.register_step_pre_hook(lambda *_: calls.append("before"))
    optimizer.register_step_post_hook(lambda *_: calls.append("after"))
    optimizer.step()
    assert calls == ["before", "after"]

    def broken() -> Any:
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        optimizer.step(broken)
    optimizer.step()
    assert calls == ["before", "after", "before", "before", "after"]


def test_copies_are_independent() -> None:
    """A deep copy has parameters, options and state of its own, and no hooks."""
    p = parameter()
    optimizer = optim.SGD([p], lr=1.0, momentum=0.5)
    optimizer.register_step_pre_hook(lambda *_: pytest.fail("a hook of the original"))
    copied = copy.deepcopy(optimizer)
    (q,) = copied.param_groups[0]["params"]
    q.grad = cd.ones(2)
    copied.step()
    assert q.tolist() == [0.0, 0.0]
    assert p.tolist() == [1.0, 1.0]
    assert list(copied.state) == [q]
