"""The part of a data set that one of several processes reads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeVar

from candelabra.random import Generator
from candelabra.utils.data.sampler import Sampler, permuted

__all__ = ["DistributedSampler"]

_T_co = TypeVar("_T_co", covariant=True)


class DistributedSampler(Sampler[_T_co]):
    """Every ``num_replicas``-th index from ``rank`` on, so that the replicas read disjoint parts of equal length.

    All replicas must be given the same arguments except ``rank``. Call :meth:`set_epoch` before each epoch, or every
    epoch has the same order.

    Args:
        dataset: what has a length.
        num_replicas: the number of processes, by default that of the default process group.
        rank: the number of this process, 0 to ``num_replicas - 1``, by default its rank.
        shuffle: permute the indices; the order follows from ``seed`` and the epoch.
        seed: the same in every process.
        drop_last: drop the last indices, where the length is not divisible; otherwise the first ones are repeated.

    Raises:
        ValueError: ``rank`` is not one of the replicas; or ``num_replicas`` or ``rank`` is not given, and there is no
            process group.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            from candelabra import distributed as dist

            num_replicas = dist.get_world_size() if num_replicas is None else num_replicas
            rank = dist.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        count = len(dataset)
        self.num_samples = count // num_replicas if drop_last else math.ceil(count / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[Any]:
        count = len(self.dataset)
        generator = Generator().manual_seed(self.seed + self.epoch)
        order = permuted(count, generator) if self.shuffle else range(count)
        # Past the end the order begins again, as often as a short data set needs.
        return iter([order[place % count] for place in range(self.rank, self.total_size, self.num_replicas)])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, on which the order depends if ``shuffle`` is set."""
        self.epoch = epoch


def __dir__() -> list[str]:
    return sorted(__all__)
