"""Averages of a model's parameters over training (Izmailov et al., UAI 2018), and the rate for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any, Literal

from candelabra import Tensor, no_grad, tensor
from candelabra.nn import Module
from candelabra.nn.modules.batchnorm import _BatchNorm
from candelabra.optim.lr_scheduler.base import LRScheduler, per_group
from candelabra.optim.optimizer import Optimizer

__all__ = [
    "AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip

Average = Callable[[Tensor, Tensor, Any], Any]
MultiAverage = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return ``f(average, value, count)`` for an exponential average. Raises ``ValueError`` for another decay rate."""
    _check_decay(decay)

    def average(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Any:
        with no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return average


def get_swa_avg_fn() -> Average:
    """Return ``f(average, value, count)`` for the mean of all values."""

    def average(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Any:
        with no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """Return ``f(averages, values, count)``, which updates exponential averages in place.

    Raises ``ValueError`` for a decay rate outside of 0 to 1.
    """
    _check_decay(decay)
    average, weight = get_ema_avg_fn(decay), 1 - decay

    def update(averages: Sequence[Tensor], values: Sequence[Tensor], count: Any) -> None:
        with no_grad():
            for old, value in zip(averages, values):
                if old.dtype is value.dtype and (old.is_floating_point() or old.is_complex()):
                    old.lerp_(value, weight)
                else:
                    old.copy_(average(old, value, count))

    return update


def get_swa_multi_avg_fn() -> MultiAverage:
    """Return ``f(averages, values, count)``, which updates the means of all values in place."""
    return _in_place(get_swa_avg_fn())


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _in_place(average: Average) -> MultiAverage:
    def update(averages: Sequence[Tensor], values: Sequence[Tensor], count: Any) -> None:
        with no_grad():
            for old, value in zip(averages, values):
                old.copy_(average(old, value, count))

    return update


class AveragedModel(Module):
    """A copy of ``model`` whose parameters are averages over calls of :meth:`update_parameters`.

    ``device``: of the averages. ``avg_fn(average, value, count)`` returns a new average;
    ``multi_avg_fn(averages, values, count)`` updates all of one dtype and device. Default: the mean. ``use_buffers``:
    average buffers, too; otherwise they are copied. Raises ``ValueError`` if both functions are given.
    """

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the model of averages returns."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of ``model`` into the averages."""
        averages, values = (
            [t.detach() for t in (chain(m.parameters(), m.buffers()) if self.use_buffers else m.parameters())]
            for m in (self.module, model)
        )
        with no_grad():
            values = [value.to(average.device) for value, average in zip(values, averages)]
            if int(self.n_averaged):
                self._average(averages, values)
            else:
                for average, value in zip(averages, values):
                    average.copy_(value)
            if not self.use_buffers:
                for mine, other in zip(self.module.buffers(), model.buffers()):
                    mine.copy_(other.to(mine.device))
            self.n_averaged += 1

    def _average(self, averages: list[Tensor], values: list[Tensor]) -> None:
        if self.avg_fn is not None:
            for average, value in zip(averages, values):
                average.copy_(self.avg_fn(average, value, self.n_averaged.to(average.device)))
            return
        update = self.multi_avg_fn or get_swa_multi_avg_fn()
        groups: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
        for average, value in zip(averages, values):
            group_averages, group_values = groups.setdefault((average.device, average.dtype), ([], []))
            group_averages.append(average)
            group_values.append(value)
        for (device, _), (group_averages, group_values) in groups.items():
            update(group_averages, group_values, self.n_averaged.to(device))


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of the batch norms of ``model`` again, over all batches of ``loader``.

    A batch is an input, or a list or tuple that begins with it; it is moved to ``device``, if that is given.
    """
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    momenta = [m.momentum for m in norms]
    was_training = model.training
    model.train()
    for m in norms:
        m.reset_running_stats()
        m.momentum = None  # the mean of all batches
    try:
        with no_grad():
            for batch in loader:
                x = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(x if device is None else x.to(device))
    finally:
        for m, momentum in zip(norms, momenta):
            m.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """Moves the rate to ``swa_lr``, one value or one per group, in ``anneal_epochs``, and keeps it there.

    ``anneal_strategy``: "cos" or "linear". Raises ``ValueError`` for another one, for epochs that are not an integer
    from 0 on, and for a wrong number of rates.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        for group, rate in zip(optimizer.param_groups, per_group(optimizer, "swa_lr", swa_lr)):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """Return how much of the way to ``swa_lr`` has been made at a step."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            lr, end = group["lr"], group["swa_lr"]
            start = end if before == 1 else (lr - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates


def __dir__() -> list[str]:
    return sorted(__all__)
