"""A data parallel module on a rank that has no more batches, while others have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import candelabra as cd
from candelabra.nn.parallel._reducer import broadcast_all

if TYPE_CHECKING:
    from candelabra.nn.parallel.distributed import DistributedDataParallel


def agreed(numbers: Sequence[int], group: Any) -> list[int]:
    """Return the largest of each number over the ranks."""
    from candelabra import distributed as dist

    largest = cd.tensor(list(numbers))
    dist.all_reduce(largest, dist.ReduceOp.MAX, group)
    return [int(number) for number in largest.tolist()]


class JoinedRank:
    """The hook of ``distributed.algorithms.Join`` for a data parallel module."""

    def __init__(self, model: DistributedDataParallel) -> None:
        self.model = model

    def main_hook(self) -> None:
        """Take part in the collectives of one step: those of buffers, and of gradients."""
        model = self.model
        if model.reducer is None:
            return
        synchronize, send_buffers, source = agreed((0, 0, -1), model.process_group)
        if send_buffers:
            broadcast_all(model._buffers_to_send(), model.process_group, source)
        if synchronize:
            model.reducer.mirror()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Copy parameters and buffers of one of the last ranks to all."""
        from candelabra import distributed as dist

        model = self.model
        if model.reducer is None:
            return
        model.reducer.divisor = None
        source = agreed((dist.get_rank(model.process_group) if is_last_joiner else -1,), model.process_group)[0]
        parameters = [p for name, p in model.module.named_parameters() if name not in model._ignored]
        broadcast_all(parameters, model.process_group, source)
        broadcast_all(model._buffers_to_send(), model.process_group, source)
