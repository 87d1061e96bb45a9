"""Optimizers whose state is divided among ranks: the first stage of ZeRO (Rajbhandari et al., 2020)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra import distributed as dist
from candelabra.distributed._process_group import resolved
from candelabra.distributed.algorithms.join import Join, Joinable, JoinHook
from candelabra.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class _JoinedOptimizer(JoinHook):
    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self._optimizer = optimizer

    def main_hook(self) -> None:
        self._optimizer._step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Makes the steps of another optimizer, whose state is divided among the ranks of a process group.

    Every rank has all parameters and all gradients, for instance of ``DistributedDataParallel``. Each parameter has an
    owner, which updates it and sends it to the others. Owners have about as many elements each.

    Args:
        params: as for any optimizer, in the same order on every rank.
        optimizer_class: the class of the optimizer.
        process_group: the ranks, by default all.
        parameters_as_bucket_view: not used.
        overlap_with_ddp: must be False.
        defaults: the options of the optimizer.

    Raises:
        NotImplementedError: ``overlap_with_ddp`` is set.
        RuntimeError: ``state_dict()`` on a rank to which ``consolidate_state_dict()`` has not sent the state.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp is not supported yet")
        self.process_group = resolved(process_group, "ZeroRedundancyOptimizer")
        self.rank = self.process_group.rank()
        self._sizes = [0] * self.process_group.size()
        self._owners: dict[Tensor, int] = {}
        self._inner: Optimizer | None = None
        self._gathered: list[Any] | None = None
        super().__init__(params, defaults)
        for group in self.param_groups:
            self._assign(group["params"])
        self._inner = self.optim = optimizer_class([self._own(group) for group in self.param_groups], **defaults)
        self.state = self.optim.state
        self._copy_options(self.optim.param_groups, self.param_groups)

    # -- shares -------------------------------------------------------------------------------------------------------
    def _assign(self, parameters: list[Any]) -> None:
        """Give each parameter, the largest first, to the rank that has the fewest elements."""
        for parameter in sorted(parameters, key=lambda p: -p.numel()):
            owner = self._sizes.index(min(self._sizes))
            self._owners[parameter] = owner
            self._sizes[owner] += parameter.numel()

    def _own(self, group: dict[str, Any]) -> dict[str, Any]:
        """Return a group with this rank's parameters only."""
        return {**group, "params": [p for p in group["params"] if self._owners[p] == self.rank]}

    @staticmethod
    def _copy_options(source: list[dict[str, Any]], destination: list[dict[str, Any]]) -> None:
        for one, other in zip(source, destination, strict=True):
            other.update({name: value for name, value in one.items() if name != "params"})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, which get their owners."""
        super().add_param_group(param_group)
        if self._inner is not None:
            group = self.param_groups[-1]
            self._assign(group["params"])
            self._inner.add_param_group(self._own(group))
            self._copy_options(self._inner.param_groups, self.param_groups)

    # -- steps --------------------------------------------------------------------------------------------------------
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update this rank's parameters, and receive those of the others."""
        Join.notify_join_context(self)
        return self._step(closure)

    def _step(self, closure: Callable[[], Any] | None = None) -> Any:
        self._copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step() if closure is None else self.optim.step(closure)
        self._copy_options(self.optim.param_groups, self.param_groups)
        self._exchange()
        return loss

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return what this optimizer does on a rank without further batches: the same steps."""
        return _JoinedOptimizer(self)

    @property
    def join_device(self) -> Any:
        """The device of the first parameter."""
        return next(iter(self._owners)).device

    @property
    def join_process_group(self) -> Any:
        """The ranks that divide the state."""
        return self.process_group

    def _exchange(self) -> None:
        """Send every parameter from its owner to the other ranks: one collective per owner, dtype and device."""
        shares: dict[Any, list[Tensor]] = {}
        for parameter, owner in self._owners.items():
            shares.setdefault((owner, parameter.dtype, parameter.device), []).append(parameter.detach())
        with cd.no_grad():
            sent = []
            for (owner, _, _), members in shares.items():
                flat = cd.cat([member.reshape(-1) for member in members])
                work = dist.broadcast(flat, group_src=owner, group=self.process_group, async_op=True)
                sent.append((owner, members, flat, work))
            for owner, members, flat, work in sent:
                work.wait()  # type: ignore[union-attr]
                if owner != self.rank:
                    for member, part in zip(members, flat.split([m.numel() for m in members]), strict=True):
                        member.copy_(part.view(member.shape))

    # -- states -------------------------------------------------------------------------------------------------------
    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather the whole state on a rank of the group, for :meth:`state_dict`. Every rank calls it."""
        self._copy_options(self.param_groups, self.optim.param_groups)
        gathered: list[Any] | None = [None] * len(self._sizes) if self.rank == to else None
        dist.gather_object(self.optim.state_dict()["state"], gathered, group_dst=to, group=self.process_group)
        self._gathered = gathered

    def _numbers(self, rank: int) -> list[int]:
        """Return the numbers, among all parameters, of those that a rank owns, in the order of its optimizer."""
        parameters = [p for group in self.param_groups for p in group["params"]]
        return [number for number, p in enumerate(parameters) if self._owners[p] == rank]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all parameters, as of one process, after ``consolidate_state_dict``."""
        if self._gathered is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global "
                "state."
            )
        state = {
            numbers[own]: entry
            for rank, entries in enumerate(self._gathered)
            for numbers in [self._numbers(rank)]
            for own, entry in entries.items()
        }
        groups, first = [], 0
        for group in self.param_groups:
            count = len(group["params"])
            groups.append({**group, "params": list(range(first, first + count))})
            first += count
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state of all parameters: each rank keeps its share. Every rank is given the whole state."""
        numbers = self._numbers(self.rank)
        state = {own: state_dict["state"][n] for own, n in enumerate(numbers) if n in state_dict["state"]}
        groups, first = [], 0
        for saved, group in zip(state_dict["param_groups"], self.optim.param_groups, strict=True):
            count = len(group["params"])
            groups.append({**saved, "params": list(range(first, first + count))})
            first += count
        self.optim.load_state_dict({"state": state, "param_groups": groups})
        self.state = self.optim.state
        self._copy_options(self.optim.param_groups, self.param_groups)
        self._gathered = None


def __dir__() -> list[str]:
    return sorted(__all__)
