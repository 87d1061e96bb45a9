"""Data sets that the tests of the loader share. Processes that are not forked import this module."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from random import random as python_random
from typing import Any

import candelabra as cd
import numpy as np
from candelabra.utils.data import Dataset, IterableDataset, get_worker_info
from numpy.random import random as numpy_random  # The generators of a worker's process are what is tested.


class Numbers(Dataset[int]):
    """A data set of the integers below n."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __getitem__(self, index: int) -> int:
        if index >= self.n:
            raise IndexError(f"no number {index}")
        return index

    def __len__(self) -> int:
        return self.n


class Stream(IterableDataset[int]):
    """A stream of the integers below n, divided among workers."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.n, step))

    def __len__(self) -> int:
        return self.n


class Calls(Dataset[Any]):
    """A data set whose items a function computes."""

    def __init__(self, function: Callable[[int], Any], n: int = 8) -> None:
        self.function = function
        self.n = n

    def __getitem__(self, index: int) -> Any:
        return self.function(index)

    def __len__(self) -> int:
        return self.n


def drawn(_: int) -> tuple[float, float, float, int, int]:
    """A number of each generator, the seed of the worker, and its process."""
    info = get_worker_info()
    assert info is not None
    return python_random(), float(numpy_random()), cd.rand(1).item(), info.seed, os.getpid()


def array(index: int) -> np.ndarray[Any, Any]:
    """An array that is large enough to go through shared memory."""
    return np.full((64, 64), index, np.float32)


def die(index: int) -> int:
    """Item 1 kills the worker."""
    if index == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return index


def leave(index: int) -> int:
    """Item 1 ends the worker's process."""
    if index == 1:
        sys.exit(3)
    return index


class TwoArguments(Exception):
    """An exception whose constructor takes two arguments."""

    def __init__(self, first: Any, second: Any) -> None:
        super().__init__(first, second)
