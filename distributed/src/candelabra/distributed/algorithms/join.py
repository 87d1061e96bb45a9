"""Uneven inputs: ranks that have no more batches go on taking part in the collectives of those that have.

Inside ``with Join([model, optimizer]):`` each step of a rank begins with an all-reduce that counts the ranks that still
have inputs. At the end of the block, a rank calls the main hooks of the joinables, which mirror one step of the others,
until that count is 0. Then every rank calls the post hooks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

import candelabra as cd
from candelabra import distributed as dist
from candelabra.distributed._process_group import ProcessGroup, resolved

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a rank does for a joinable after its last input."""

    def main_hook(self) -> None:
        """Take part in the collectives of one step of the other ranks."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Finish once all ranks have joined. ``is_last_joiner``: this rank was among the last."""


class JoinConfig(NamedTuple):
    """How a joinable takes part: the first of a context notifies the others at each step."""

    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False


class Joinable(ABC):
    """Something with collectives in each step, such as a data parallel module. Objects with its members are, too."""

    _join_config: JoinConfig = JoinConfig()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook of this rank; ``kwargs`` are those of :class:`Join`."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the joinable's tensors."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The process group of the joinable's collectives."""


class Join:
    """A context for training with a different number of inputs on each rank.

    Args:
        joinables: the objects with collectives in each step, in the order of their collectives.
        enable: whether to do anything; False for inputs that are known to be even.
        throw_on_early_termination: raise RuntimeError on all ranks as soon as one has no more inputs.
        kwargs: for the hooks, such as ``divide_by_initial_world_size``.

    Raises:
        ValueError: there are no joinables, or their process groups differ.
        TypeError: one of them is not joinable.
        RuntimeError: ``throw_on_early_termination``, and a rank has no more inputs.
    """

    def __init__(
        self,
        joinables: Sequence[Any],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        for each in joinables:
            missing = [n for n in ("join_hook", "join_device", "join_process_group") if not hasattr(each, n)]
            if missing:
                raise TypeError(f"Join: {type(each).__name__} is not a Joinable: it has no {', '.join(missing)}")
        groups = [resolved(each.join_process_group, "Join") for each in joinables]
        if any(group is not groups[0] for group in groups):
            raise ValueError("Using join context manager with multiple process groups")
        self._joinables = list(joinables)
        self._enable = enable
        self._throw = throw_on_early_termination
        self._group: ProcessGroup = groups[0]
        self._hooks = [each.join_hook(**kwargs) for each in joinables]

    def __enter__(self) -> None:
        for number, each in enumerate(self._joinables):
            each._join_config = JoinConfig(self._enable, self._throw, number == 0)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._joinables:
            each._join_config = JoinConfig()
        if not self._enable or kind is not None:
            return
        is_last_joiner = True
        while _sum(0, self._group):
            if self._throw:
                _sum(1, self._group)
                raise RuntimeError(f"Rank {self._group.global_rank} exhausted all inputs.")
            is_last_joiner = False
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(is_last_joiner)

    @staticmethod
    def notify_join_context(joinable: Any) -> int | None:
        """Count the ranks that have inputs, this one among them, at the beginning of a step.

        Returns None outside a context, and if another joinable of the context counts.
        """
        config: JoinConfig = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        group = resolved(joinable.join_process_group, "Join")
        active = _sum(1, group)
        if config.throw_on_early_termination and active < group.size():
            _sum(0, group)
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return active


def _sum(number: int, group: ProcessGroup) -> int:
    """Return the sum of a number over the ranks."""
    total = cd.tensor([number])
    dist.all_reduce(total, group=group)
    return int(total.item())


def __dir__() -> list[str]:
    return sorted(__all__)
