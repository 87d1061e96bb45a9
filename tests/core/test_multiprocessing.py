"""`multiprocessing`: Python's module with PyTorch's additions."""

from __future__ import annotations

import multiprocessing
import os
from typing import Any

import candelabra as cd
import candelabra.multiprocessing as mp
import pytest


def put_number(number: int, queue: Any) -> None:
    """Put the number of the process and a tensor into a queue."""
    queue.put((number, cd.ones(2) * number))


def fail_if_second(number: int) -> None:
    """Raise in the second process."""
    if number:
        raise ValueError("the second one failed")


def end_with_status(number: int) -> None:
    """End the process without an exception."""
    os._exit(3)


def test_names_are_those_of_python() -> None:
    """Everything of Python's module is there."""
    assert mp.Process is multiprocessing.Process
    assert mp.cpu_count() == multiprocessing.cpu_count()
    assert set(multiprocessing.__all__) <= set(dir(mp))


def test_sharing_strategies() -> None:
    """PyTorch's names are accepted, others are not."""
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    mp.set_sharing_strategy("file_system")
    with pytest.raises(ValueError, match="unknown sharing strategy 'pigeons'"):
        mp.set_sharing_strategy("pigeons")


def test_spawned_processes_send_tensors() -> None:
    """Each process gets its number; a tensor arrives by value."""
    queue: Any = multiprocessing.get_context("fork").SimpleQueue()
    assert mp.start_processes(put_number, (queue,), nprocs=2, start_method="fork") is None
    got = {number: tensor.tolist() for number, tensor in (queue.get(), queue.get())}
    assert got == {0: [0.0, 0.0], 1: [1.0, 1.0]}


def test_errors_of_processes_are_raised_here() -> None:
    """The traceback of a process that raises is in the error; so is the status of one that just ends."""
    with pytest.raises(mp.ProcessRaisedException, match=r"process 1 terminated with the following error:\s+Traceback"):
        mp.start_processes(fail_if_second, nprocs=2, start_method="fork")
    context = mp.start_processes(end_with_status, join=False, start_method="fork")
    assert context is not None
    assert len(context.pids()) == 1
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with exit code 3"):
        context.join()
