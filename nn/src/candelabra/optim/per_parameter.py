"""The base of optimizers that update one parameter at a time."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor, view_as_real
from candelabra.optim.optimizer import Optimizer
from candelabra.optim.rows import plain
from candelabra.optim.scalars import number_in, scalar
from candelabra.optim.sparse_gradients import refuse_sparse

__all__ = ["PerParameter", "check_limits", "descend", "real"]

State = dict[str, Any]
Group = dict[str, Any]


class PerParameter(Optimizer):
    """An optimizer that defines :meth:`start`, the state of a parameter, and :meth:`move`, one step of it.

    This class does what their steps share: it counts steps in "step", negates the gradient for ``maximize``, applies
    ``weight_decay`` (to the parameter if the option or the attribute ``decoupled_weight_decay`` is set, otherwise to
    the gradient), and passes complex tensors as views of their real and imaginary parts.
    """

    decoupled_weight_decay = False
    takes_complex = True
    takes_sparse = False
    """Whether gradients may be sparse."""
    elementwise = True
    """Whether an element's update depends on no other element, so that a rank may update its shard of a parameter."""
    counts = True
    """Whether the state has "step"."""

    def start(self, p: Tensor, group: Group) -> State:
        """Return the state of a parameter before its first step, without "step"."""
        raise NotImplementedError(f"{type(self).__name__} must define start()")

    def move(self, p: Tensor, g: Tensor, state: State, step: float, group: Group) -> None:
        """Update ``p`` and its state in place, with the gradient ``g``, in the step of the given number from 1 on.

        All tensors are real. Numbers in the state are replaced.
        """
        raise NotImplementedError(f"{type(self).__name__} must define move()")

    def decay(self, p: Tensor, g: Tensor, group: Group) -> Tensor:
        """Apply weight decay to the parameter, in place, or to the gradient. Return the gradient."""
        decay = group.get("weight_decay", 0)
        if decay and group.get("decoupled_weight_decay", self.decoupled_weight_decay):
            p.mul_(1 - group["lr"] * decay)
        elif decay:
            g = g.add(p, alpha=decay)
        return g

    def update(self, group: Group, parameters: list[Any]) -> None:
        """Do one step of one group."""
        options = plain(group, self.defaults.get("differentiable", False))
        counts: dict[float, Tensor] = {}
        if not self.takes_sparse:
            refuse_sparse(f"{type(self).__name__} does not support sparse gradients", parameters)
        if not self.takes_complex and any(p.is_complex() for p in parameters):
            raise RuntimeError(f"{type(self).__name__} does not support complex parameters")
        if not self.elementwise and any(each.is_shard() for p in parameters for each in getattr(p, "placements", ())):
            raise NotImplementedError(
                f"{type(self).__name__} needs whole parameters, but got shards of them. Use an optimizer that updates "
                "each element by itself, such as AdamW"
            )
        for p in parameters:
            kept = self.state[p]
            if not kept:
                if self.counts:
                    kept["step"] = scalar(0.0)
                kept.update(self.start(p, options))
            step = number_in(kept["step"]) + 1 if self.counts else 0.0
            g = -p.grad if group.get("maximize") else p.grad
            self._move(p, self.decay(p, g, options), kept, step, options)
            if self.counts:
                if step not in counts:
                    counts[step] = scalar(step)
                kept["step"] = counts[step]

    def _move(self, p: Tensor, g: Tensor, kept: State, step: float, group: Group) -> None:
        if not p.is_complex():
            self.move(p, g, kept, step, group)
            return
        parts = {name: real(value) for name, value in kept.items()}
        self.move(real(p), real(g), parts, step, group)
        kept.update((name, parts[name]) for name, value in kept.items() if real(value) is value)


def real(value: Any) -> Any:
    """Return a view of a complex tensor's real and imaginary parts, or any other value itself."""
    return view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value


def check_limits(*options: tuple[str, Any, str, float]) -> None:
    """Raise ``ValueError`` for the first option, given as (name, value, ">=" or "<=", limit), that is beyond it."""
    for name, value, relation, limit in options:
        if (value < limit) if relation == ">=" else (value > limit):
            raise ValueError(f"{name} should be {relation} {limit} but is: {value}")


def descend(p: Tensor, direction: Tensor, rate: Any) -> None:
    """``p -= rate * direction``, in place; ``rate`` may be a tensor with a gradient."""
    if isinstance(rate, Tensor):
        p.sub_(direction * rate)
    else:
        p.sub_(direction, alpha=rate)


def __dir__() -> list[str]:
    return sorted(__all__)
