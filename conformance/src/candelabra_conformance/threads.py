"""Run the same function in several threads at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from candelabra.library import EVERY_SIZE, OWN_KERNELS, mode, state


def in_threads(count: int, work: Callable[[int], object]) -> None:
    """Run ``work(0)`` to ``work(count - 1)`` at the same time, each in its own thread, and wait for all of them.

    The threads start together, in the caller's mode of contributed kernels. If any fail, the exception of the first
    failure is raised after all have ended.
    """
    problems: list[BaseException] = []
    start = threading.Barrier(count)
    modes = state.bits & (OWN_KERNELS | EVERY_SIZE)

    def run(number: int) -> None:
        try:
            start.wait()
            with mode(modes):
                work(number)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
