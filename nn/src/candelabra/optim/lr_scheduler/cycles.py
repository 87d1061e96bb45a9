"""Cyclical learning rates (Smith, WACV 2017) and the policy of one cycle (Smith & Topin, 2018), with momentum."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any, Literal

from candelabra.optim.lr_scheduler.base import LRScheduler, check_optimizer, per_group, set_option
from candelabra.optim.optimizer import Optimizer

__all__ = ["CyclicLR", "OneCycleLR"]


def _momentum(group: dict[str, Any], use_beta1: bool) -> Any:
    return group["betas"][0] if use_beta1 else group["momentum"]


def _set_momentum(group: dict[str, Any], use_beta1: bool, value: Any) -> None:
    if use_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def _uses_beta1(optimizer: Optimizer) -> bool:
    """Return whether the momentum is ``betas[0]``. Raises ``ValueError`` for optimizers without momentum."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


class CyclicLR(LRScheduler):
    """Moves the rate between ``base_lr`` and ``max_lr``, one value or one per group. Step it after every batch.

    ``step_size_up``, ``step_size_down``: the batches of the two halves of a cycle. ``mode``: "triangular", with a
    constant height; "triangular2", which is halved every cycle; "exp_range", which is multiplied by ``gamma`` every
    batch. ``scale_fn``: a function of the number of the cycle or of the batch (``scale_mode``: "cycle" or
    "iterations"), which gives the height in place of ``mode``. ``cycle_momentum``: move the momentum (or ``betas[0]``)
    from ``max_momentum`` to ``base_momentum`` and back. Raises ``ValueError`` for another mode, for wrong numbers of
    values, and if the optimizer has no momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError("mode is invalid and scale_fn is None")
        groups = optimizer.param_groups
        base_lrs = per_group(optimizer, "base_lr", base_lr)
        if last_epoch == -1:
            for group, rate in zip(groups, base_lrs):
                set_option(group, "lr", rate)
        self.max_lrs = per_group(optimizer, "max_lr", max_lr)
        up = float(step_size_up)
        self.total_size = up + (float(step_size_down) if step_size_down is not None else up)
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta1(optimizer)
            self.base_momentums = per_group(optimizer, "base_momentum", base_momentum)
            self.max_momentums = per_group(optimizer, "max_momentum", max_momentum)
            if last_epoch == -1:
                for group, low, high in zip(groups, self.base_momentums, self.max_momentums):
                    _set_momentum(group, self.use_beta1, high)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the height of the cycle or batch ``x`` over that of the first one."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else float(self.gamma**x)

    def get_lr(self) -> list[Any]:
        """Return the new rates, and set the momentum."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                _set_momentum(group, self.use_beta1, high - (high - low) * height)
        return [base + (top - base) * height for base, top in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer. ``scale_fn`` is saved as the attributes of a callable object."""
        state = super().state_dict()
        custom = state.pop("_scale_fn_custom")
        saved = None if custom is None or isinstance(custom, types.FunctionType) else vars(custom).copy()
        return {**state, "_scale_fn_custom": saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state of :meth:`state_dict`."""
        rest = dict(state_dict)
        custom = rest.pop("_scale_fn_custom")
        super().load_state_dict(rest)
        if custom is not None:
            vars(self._scale_fn_custom).update(custom)


class OneCycleLR(LRScheduler):
    """Raises the rate from ``max_lr / div_factor`` to ``max_lr``, and lowers it to that start over
    ``final_div_factor``. Step it after every batch.

    Give ``total_steps``, or ``epochs`` and ``steps_per_epoch``. ``pct_start``: the share of steps in which the rate
    rises; ``anneal_strategy``: "cos" or "linear"; ``three_phase``: fall to the start in as many steps, then to the end.
    ``cycle_momentum``: move the momentum (or ``betas[0]``) from ``max_momentum`` to ``base_momentum`` and back.
    ``max_lr`` and the momenta are one value, or one per group. Raises ``ValueError`` for options out of range, if the
    optimizer has no momentum, and for steps after the last one.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        tops = per_group(optimizer, "max_lr", max_lr)
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, tops):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta1(optimizer)
            highs = per_group(optimizer, "max_momentum", max_momentum)
            lows = per_group(optimizer, "base_momentum", base_momentum)
            if last_epoch == -1:
                for group, low, high in zip(optimizer.param_groups, lows, highs):
                    _set_momentum(group, self.use_beta1, high)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: float, end: float, share: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (1 + math.cos(math.pi * share))

    def get_lr(self) -> list[Any]:
        """Return the new rates, and set the momentum. Raises ``ValueError`` after the last step."""
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begin = phase["end_step"]
        share = (step - begin) / (phase["end_step"] - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                momentum = self._anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], share)
                _set_momentum(group, self.use_beta1, momentum)
        return rates


def _total_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is not None:
        _check_positive("total_steps", total_steps)
        return total_steps
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    _check_positive("epochs", epochs)
    _check_positive("steps_per_epoch", steps_per_epoch)
    return epochs * steps_per_epoch


def _check_positive(name: str, value: Any) -> None:
    if value <= 0 or not isinstance(value, int):
        raise ValueError(f"Expected positive integer {name}, but got {value}")


def _phases(total: int, share: float, three: bool) -> list[dict[str, Any]]:
    """Return the phases: the step at which each ends, and the options of a group between which it moves."""

    def phase(end: float, rates: str, momenta: str) -> dict[str, Any]:
        (a, b), (c, d) = rates.split(), momenta.split()
        return {
            "end_step": end, "start_lr": f"{a}_lr", "end_lr": f"{b}_lr", "start_momentum": f"{c}_momentum",
            "end_momentum": f"{d}_momentum",
        }  # fmt: skip

    rise = float(share * total) - 1
    if not three:
        return [phase(rise, "initial max", "max base"), phase(total - 1, "max min", "base max")]
    return [
        phase(rise, "initial max", "max base"),
        phase(float(2 * share * total) - 2, "max initial", "base max"),
        phase(total - 1, "initial min", "max max"),
    ]


def __dir__() -> list[str]:
    return sorted(__all__)
