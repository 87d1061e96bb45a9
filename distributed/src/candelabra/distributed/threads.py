"""Ranks that are threads of one process, for tests: ``run(function, world_size)``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from candelabra.distributed import _groups, _threads
from candelabra.distributed._state import Ranks, enter

__all__ = ["run"]


def run(
    function: Callable[..., Any],
    world_size: int,
    *args: Any,
    init: bool = True,
    timeout: timedelta = timedelta(seconds=60),
) -> list[Any]:
    """Call ``function(*args)`` in ``world_size`` threads, which are ranks, and return the results in their order.

    The process groups of each thread are its own: ``get_rank()`` differs between them. With ``init`` it calls
    ``init_process_group("threads", timeout=timeout)`` first, and ``destroy_process_group()`` at the end. Raises the
    error of the rank that failed first; the others are released with an error that names it.
    """
    job = _threads.Job(world_size)
    results: list[Any] = [None] * world_size
    failed: list[BaseException] = []

    def rank_of(rank: int) -> None:
        _threads.enter(job, rank)
        enter(Ranks())
        try:
            if init:
                _groups.init_process_group("threads", timeout=timeout)
            results[rank] = function(*args)
            if init:
                _groups.destroy_process_group()
        except BaseException as error:
            error.add_note(f"This error was raised in rank {rank} of {world_size}.")
            failed.append(error)
            job.fail(f"rank {rank} has ended with {type(error).__name__}: {error}")
        finally:
            _groups.forget()
            enter(None)
            _threads.enter(None)

    threads = [threading.Thread(target=rank_of, args=(rank,), name=f"rank {rank}") for rank in range(world_size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    job.fail("the run has ended")  # releases threads of groups whose collectives have not been completed
    if failed:
        raise failed[0]
    return results


def __dir__() -> list[str]:
    return sorted(__all__)
