"""The step of an optimizer as a part of a compiled function's graph.

A compiled function records the step of a :class:`~candelabra.optim.batches.BatchOptimizer` as nodes of its graph. The
learning rate, the number of the step and the other numbers are inputs of the graph, which each run computes from
``param_groups`` and ``state``. The groups, their other options and the tensors of the state decide which kernels run on
which tensors, so they are checked before each run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from operator import is_
from typing import Any, Final, NamedTuple

from candelabra import Tensor, set_grad_enabled
from candelabra.library import Operator, has_one_kernel
from candelabra.optim.batches import BatchOptimizer, Group, StepBatch

__all__ = ["record_step"]

CHOICES: Final = (bool, tuple)
"""The types of arguments that select operators, and are not numbers of a run."""


class RecordedBatch(NamedTuple):
    """A batch of a group, and what selected its operators when it was recorded. The rows are cleared then."""

    group: Group
    operator: Operator[..., Any] | None
    batch: StepBatch
    choices: tuple[Any, ...]


class RecordedStep:
    """One step that a graph repeats: its conditions, and the numbers of each run."""

    def __init__(self, optimizer: BatchOptimizer, batches: list[RecordedBatch], fresh: bool) -> None:
        self.optimizer = optimizer
        self.batches = batches
        self.fresh = fresh
        """Whether the step has created state, which a later one does not."""
        self.groups = list(optimizer.param_groups)
        self.parameters = [[*group["params"]] for group in self.groups]
        parameters = [row[0] for recorded in batches for row in recorded.batch.rows]
        self.states = [(p, optimizer.state[p]) for p in parameters if p in optimizer.state]
        numbers = optimizer.kept_numbers
        self.values = [[(kept, name, kept[name]) for name in kept if name not in numbers] for _, kept in self.states]

    def holds(self) -> bool:
        """Return whether a step would update the same tensors by the same kernels as the recorded one."""
        optimizer, state = self.optimizer, self.optimizer.state
        if self.fresh or optimizer.has_hooks() or not _same(optimizer.param_groups, self.groups):
            return False
        if not all(_same(group["params"], known) for group, known in zip(self.groups, self.parameters, strict=True)):
            return False
        if not all(state.get(p) is kept for p, kept in self.states):
            return False
        if not all(kept.get(name) is value for each in self.values for kept, name, value in each):
            return False
        for group, operator, batch, choices in self.batches:
            for name in optimizer.kept_numbers if batch.states else ():
                first = batch.states[0][name]
                if any(kept[name] is not first for kept in batch.states):
                    return False
            if not _takes(group) or optimizer.operator(group) is not operator:
                return False
            if _choices(optimizer.arguments(group, self._current(batch))) != choices:
                return False
        return True

    def _current(self, batch: StepBatch) -> StepBatch:
        """Return a batch with the numbers that its states have now."""
        return batch._replace(known=self.optimizer.known_in(batch.states[0])) if batch.states else batch

    def numbers(self) -> list[float]:
        """Return the arguments of this step's kernels that are numbers, and count the step in the state."""
        found: list[float] = []
        for group, _, batch, _ in self.batches:
            batch = self._current(batch)
            arguments = self.optimizer.arguments(group, batch)
            self.optimizer.count(group, batch)
            found += [value for value in arguments if value.__class__ not in CHOICES]
        if self.optimizer._opt_called is False:
            self.optimizer._opt_called = True
        return found


def record_step(recorder: Any, optimizer: Any, *args: Any, **kwargs: Any) -> bool:
    """Do a step of which a compiled function records the kernels. Return False, having done nothing, if they are not
    the same at each run: for steps with a closure, hooks, tensors as options, or without a kernel for all rows.
    """
    if args or kwargs or not isinstance(optimizer, BatchOptimizer) or optimizer.has_hooks():
        return False
    if type(optimizer).update is not BatchOptimizer.update or optimizer._is_stepping or recorder.segments:
        return False  # a call outside of the graph may change the optimizer after the guards have held
    groups = [(group, [p for p in group["params"] if p._grad is not None]) for group in optimizer.param_groups]
    with set_grad_enabled(False):
        if not all(_takes(group) and _fits(optimizer.operator(group), parameters) for group, parameters in groups):
            return False
        if len({id(p) for _, parameters in groups for p in parameters}) != sum(len(each) for _, each in groups):
            return False
        for group, _ in groups:
            for p in group["params"]:
                recorder.watch(p)
        known = {id(t) for kept in optimizer.state.values() for t in kept.values()}
        batches = [
            RecordedBatch(group, optimizer.operator(group), batch, ())
            for group, parameters in groups
            for batch in recorder.outside(optimizer.batches, group, parameters)
        ]
        used = chain.from_iterable((t for row in each.batch.rows for t in row[2:]) for each in batches)
        kept = chain.from_iterable(state.values() for each in batches for state in each.batch.states)
        step = RecordedStep(
            optimizer,
            [each._replace(choices=_choices(optimizer.arguments(each.group, each.batch))) for each in batches],
            not known.issuperset(map(id, chain(used, kept))),
        )
        recorder.depends_on(step.holds, f"the state of {type(optimizer).__name__}")
        before = [optimizer.arguments(group, batch) for group, _, batch, _ in step.batches]
        numbers = iter(recorder.numbers(step.numbers))
        for (group, _, batch, _), arguments in zip(step.batches, before, strict=True):
            optimizer.apply(group, batch, _with_numbers(arguments, numbers))
            batch.rows.clear()  # they have the gradients of this step
    return True


def _takes(group: Group) -> bool:
    """Return whether the options of a group are numbers, and its step is not asked to be one of separate operators."""
    values = chain(group.values(), group.get("betas", ()))
    tensors = any(isinstance(value, Tensor) for value in values)
    return not tensors and group.get("fused") is not False and not group.get("differentiable")


def _fits(op: Operator[..., Any] | None, parameters: list[Any]) -> bool:
    """Return whether parameters are real and local, with dense gradients, and one kernel serves the record, if any."""
    if any(p.is_complex() or p._grad.layout is not p.layout or hasattr(type(p), "to_local") for p in parameters):
        return False
    return op is None or not parameters or has_one_kernel(op, [t for p in parameters for t in (p, p._grad)])


def _same(now: Any, then: list[Any]) -> bool:
    """Return whether two lists have the same objects."""
    return len(now) == len(then) and all(map(is_, now, then))


def _choices(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([value for value in arguments if value.__class__ in CHOICES])


def _with_numbers(arguments: tuple[Any, ...], numbers: Iterator[float]) -> list[Any]:
    """Return arguments with the numbers of the run in place of those that are no choices."""
    return [value if value.__class__ in CHOICES else next(numbers) for value in arguments]


def __dir__() -> list[str]:
    return sorted(__all__)
