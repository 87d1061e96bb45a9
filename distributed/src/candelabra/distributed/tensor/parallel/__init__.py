"""Tensor parallelism: layers whose weights are divided among ranks (Shoeybi et al., Megatron-LM, 2019).

As ``torch.distributed.tensor.parallel``.
"""

from __future__ import annotations

from candelabra.distributed.tensor.parallel._api import parallelize_module as parallelize_module
from candelabra.distributed.tensor.parallel._styles import ColwiseParallel as ColwiseParallel
from candelabra.distributed.tensor.parallel._styles import ParallelStyle as ParallelStyle
from candelabra.distributed.tensor.parallel._styles import RowwiseParallel as RowwiseParallel
from candelabra.distributed.tensor.parallel._styles import SequenceParallel as SequenceParallel

__all__ = ["ColwiseParallel", "ParallelStyle", "RowwiseParallel", "SequenceParallel", "parallelize_module"]


def __dir__() -> list[str]:
    return sorted(__all__)
