"""Data sets, samplers, and loaders of batches."""

from __future__ import annotations

from candelabra.utils.data._utils.collate import default_collate as default_collate
from candelabra.utils.data._utils.collate import default_convert as default_convert
from candelabra.utils.data._utils.worker import get_worker_info as get_worker_info
from candelabra.utils.data.dataloader import DataLoader as DataLoader
from candelabra.utils.data.dataset import ChainDataset as ChainDataset
from candelabra.utils.data.dataset import ConcatDataset as ConcatDataset
from candelabra.utils.data.dataset import Dataset as Dataset
from candelabra.utils.data.dataset import IterableDataset as IterableDataset
from candelabra.utils.data.dataset import StackDataset as StackDataset
from candelabra.utils.data.dataset import Subset as Subset
from candelabra.utils.data.dataset import TensorDataset as TensorDataset
from candelabra.utils.data.dataset import random_split as random_split
from candelabra.utils.data.distributed import DistributedSampler as DistributedSampler
from candelabra.utils.data.sampler import BatchSampler as BatchSampler
from candelabra.utils.data.sampler import RandomSampler as RandomSampler
from candelabra.utils.data.sampler import Sampler as Sampler
from candelabra.utils.data.sampler import SequentialSampler as SequentialSampler
from candelabra.utils.data.sampler import SubsetRandomSampler as SubsetRandomSampler
from candelabra.utils.data.sampler import WeightedRandomSampler as WeightedRandomSampler

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "default_collate", "default_convert",
    "DistributedSampler", "get_worker_info", "IterableDataset", "random_split", "RandomSampler", "Sampler",
    "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
