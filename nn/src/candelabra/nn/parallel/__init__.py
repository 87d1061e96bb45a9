"""One module on several devices of a process.

``device_ids`` are devices, their names, or indices of the accelerator's devices; by default all of them.
"""

from __future__ import annotations

from candelabra.nn.parallel.data_parallel import DataParallel as DataParallel
from candelabra.nn.parallel.data_parallel import data_parallel as data_parallel
from candelabra.nn.parallel.distributed import DistributedDataParallel as DistributedDataParallel
from candelabra.nn.parallel.parallel_apply import parallel_apply as parallel_apply
from candelabra.nn.parallel.replicate import replicate as replicate
from candelabra.nn.parallel.scatter_gather import gather as gather
from candelabra.nn.parallel.scatter_gather import scatter as scatter

__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
