"""The base of optimizers that update one parameter at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from candelabra import Tensor, view_as_real
from candelabra.optim.batches import BatchOptimizer, Group, State, StepBatch
from candelabra.optim.scalars import scalar
from candelabra.optim.sparse_gradients import refuse_sparse

__all__ = ["PerParameter", "check_limits", "descend", "real"]


class PerParameter(BatchOptimizer):
    """An optimizer that defines :meth:`start`, the state of a parameter, :meth:`numbers` and :meth:`move`, one step of
    it.

    This class does what their steps share: it counts steps in "step", negates the gradient for ``maximize``, applies
    ``weight_decay`` (to the parameter if the option or the attribute ``decoupled_weight_decay`` is set, otherwise to
    the gradient), and passes complex tensors as views of their real and imaginary parts.
    """

    decays = True
    """Whether ``weight_decay`` is applied before :meth:`move`."""
    decoupled_weight_decay = False
    takes_complex = True
    takes_sparse = False
    """Whether gradients may be sparse."""
    elementwise = True
    """Whether an element's update depends on no other element, so that a rank may update its shard of a parameter."""

    def start(self, p: Tensor, group: Group) -> State:
        """Return the state of a parameter before its first step, without "step"."""
        raise NotImplementedError(f"{type(self).__name__} must define start()")

    def numbers(self, known: Mapping[str, float], group: Group) -> tuple[Any, ...]:
        """Return the arguments of :meth:`move`, as those of :meth:`arguments`; ``known`` are the numbers of the state,
        see :class:`~candelabra.optim.batches.StepBatch`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define numbers()")

    def move(self, p: Tensor, g: Tensor, state: State, *numbers: Any) -> None:
        """Update ``p`` and its state in place, with the gradient ``g``. All tensors are real."""
        raise NotImplementedError(f"{type(self).__name__} must define move()")

    def batches(self, group: Group, parameters: list[Any]) -> list[StepBatch]:
        """Return the batches of the parameters of a group: a row is a parameter and its gradient."""
        if not self.takes_sparse:
            refuse_sparse(f"{type(self).__name__} does not support sparse gradients", parameters)
        if not self.takes_complex and any(p.is_complex() for p in parameters):
            raise RuntimeError(f"{type(self).__name__} does not support complex parameters")
        if not self.elementwise and any(each.is_shard() for p in parameters for each in getattr(p, "placements", ())):
            raise NotImplementedError(
                f"{type(self).__name__} needs whole parameters, but got shards of them. Use an optimizer that updates "
                "each element by itself, such as AdamW"
            )
        found: dict[tuple[float, ...], StepBatch] = {}
        for p in parameters:
            kept = self.state[p]
            if not kept:
                kept.update({"step": scalar(0.0)} if "step" in self.kept_numbers else {})
                kept.update(self.start(p, group))
            known = self.known_in(kept)
            batch = found.setdefault(tuple(known.values()), StepBatch([], [], known))
            batch.rows.append((p, p.grad))
            batch.states.append(kept)
        return [*found.values()]

    def arguments(self, group: Group, batch: StepBatch) -> tuple[Any, ...]:
        """Return whether to maximize, whether weights decay and whether decoupled, the number for it, and the numbers
        of :meth:`move`.
        """
        decay = group.get("weight_decay", 0) if self.decays else 0
        decoupled = bool(group.get("decoupled_weight_decay", self.decoupled_weight_decay))
        share = 1 - group["lr"] * decay if decay and decoupled else decay
        return bool(group.get("maximize")), bool(decay), decoupled, share, *self.numbers(batch.known, group)

    def apply(self, group: Group, batch: StepBatch, arguments: Sequence[Any]) -> None:
        """Update a batch and its state in place, one parameter after another."""
        maximize, decays, decoupled, share, *numbers = arguments
        for (p, g), kept in zip(batch.rows, batch.states):
            if maximize:
                g = -g
            if decays and decoupled:
                p.mul_(share)
            elif decays:
                g = g.add(p, alpha=share)
            if p.is_complex():
                p, g, kept = real(p), real(g), {name: real(value) for name, value in kept.items()}
            self.move(p, g, kept, *numbers)


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
