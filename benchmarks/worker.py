"""One side of a comparison, in its own process, because two thread pools in one process slow each other down.

It reads a line of JSON per request (library, setup, statement, seconds; prepare: a statement before each batch of
calls; batches: their number; cpu_time: whether to measure the time of the processor) and answers with the best time of
one call, in seconds. The garbage collector stays on.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
import timeit
from typing import Any


def best_time(
    xp: Any, setup: str, statement: str, seconds: float, prepare: str = "", batches: int = 4, cpu_time: bool = False
) -> float:
    """Return the smallest mean time of a call over batches that fill ``seconds``; with 0 seconds it is called once.

    ``prepare`` runs before each batch and is not timed; it can wait for queued work. Short batches are more likely to
    run without disturbance by other processes.
    """
    clock = time.process_time if cpu_time else time.perf_counter
    timer = timeit.Timer(statement, f"gc.enable(); {prepare}", clock, globals=_namespace(xp, setup))
    if not seconds:
        return timer.timeit(1)
    count, took = timer.autorange(lambda *_: None) if seconds > 1 else _calibrate(timer, seconds / (batches + 1))
    if took > 4 * seconds:  # one call is long enough
        return took / count
    return min(timer.timeit(count) / count for _ in range(batches))


_prepared: dict[str, dict[str, Any]] = {}


def _namespace(xp: Any, setup: str) -> dict[str, Any]:
    """Return the names that the setup defines; the last setup is cached for the cases that share it."""
    if setup not in _prepared:
        _prepared.clear()
        names: dict[str, Any] = {"xp": xp, "gc": gc}
        exec(setup, names)
        _prepared[setup] = names
    return dict(_prepared[setup])


def _calibrate(timer: timeit.Timer, seconds: float) -> tuple[int, float]:
    count = 1
    while (took := timer.timeit(count)) < seconds:
        count = max(count + 1, int(count * min(10.0, 1.2 * seconds / max(took, 1e-9))))
    return count, took


def main() -> None:
    """Answer requests until the input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        try:
            xp = importlib.import_module(request["library"])
            answer: dict[str, Any] = {
                "seconds": best_time(
                    xp,
                    request["setup"],
                    request["statement"],
                    request["seconds"],
                    request.get("prepare", ""),
                    request.get("batches", 4),
                    request.get("cpu_time", False),
                )
            }
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
