"""The marks of distributed training on one machine: overhead of one rank, all-reduce against raw MPI, and two ranks.

``python -m benchmarks.distributed_marks`` starts the ranks of each mark and prints a line for it. Each rank has one
core and one thread. Times are minima of repetitions, in which the two sides alternate. The memory of ``fully_shard`` is
in the table of ``benchmarks.distributed``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

BYTES: Final = 100 * 10**6
BUCKETS: Final = 4
WIDTH, LAYERS, BATCH = 512, 6, 256


def fastest(sides: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the seconds of each side's fastest run; the sides alternate, and the first runs are not counted."""
    found = dict.fromkeys(sides, float("inf"))
    for number in range(repeats + 2):
        for name, side in sides.items():
            start = time.perf_counter()
            side()
            if number >= 2:
                found[name] = min(found[name], time.perf_counter() - start)
    return found


def convolutions() -> Any:
    """Return a network of convolutions for images of 28 x 28, with few parameters for its arithmetic."""
    from candelabra import nn

    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 49, 10),
    )  # fmt: skip


def linear_layers() -> Any:
    """Return a network of linear layers, with many parameters for its arithmetic."""
    from candelabra import nn

    return nn.Sequential(
        nn.Linear(784, WIDTH), *[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(LAYERS)]
    )


NETWORKS: Final = {each.__name__: each for each in (convolutions, linear_layers)}


def step_of(wrapped: bool, network: str) -> Callable[[], None]:
    """Return a training step."""
    import candelabra as cd
    from candelabra import optim
    from candelabra.nn.parallel import DistributedDataParallel

    net: Any = DistributedDataParallel(NETWORKS[network]()) if wrapped else NETWORKS[network]()
    optimizer = optim.SGD(net.parameters(), lr=1e-3)
    x = cd.randn(BATCH, 784)

    def step() -> None:
        optimizer.zero_grad()
        (net(x) ** 2).mean().backward()
        optimizer.step()

    return step


def overhead() -> dict[str, float]:
    """Return the times of a step without and with DistributedDataParallel, on one rank."""
    return fastest({"plain": step_of(False, "linear_layers"), "ddp": step_of(True, "linear_layers")}, 40)


def bandwidth() -> dict[str, float]:
    """Return the times of an all-reduce of 100 MB: in buckets as DistributedDataParallel sends them, and by raw MPI."""
    import candelabra as cd
    import candelabra.distributed as dist
    import numpy as np
    from mpi4py import MPI

    buckets = [cd.ones(BYTES // 4 // BUCKETS) for _ in range(BUCKETS)]
    whole = np.ones(BYTES // 4, np.float32)
    parts = np.split(whole, BUCKETS)
    world = MPI.COMM_WORLD

    def buckets_of_ddp() -> None:
        for work in [dist.all_reduce(bucket, async_op=True) for bucket in buckets]:
            work.wait()  # type: ignore[union-attr]

    def nonblocking() -> None:
        MPI.Request.Waitall([world.Iallreduce(MPI.IN_PLACE, part) for part in parts])

    return fastest(
        {
            "distributed": buckets_of_ddp,
            "Allreduce": lambda: world.Allreduce(MPI.IN_PLACE, whole),
            "Allreduce of buckets": lambda: [world.Allreduce(MPI.IN_PLACE, part) for part in parts],
            "Iallreduce of buckets": nonblocking,
        },
        8,
    )


def scaling() -> dict[str, float]:
    """Return the times of steps on this number of ranks; each rank has a batch of its own."""
    return fastest({name: step_of(True, name) for name in NETWORKS}, 15)


PROGRAMS: Final = {each.__name__: each for each in (overhead, bandwidth, scaling)}


def rank_of(name: str) -> None:
    """Run a program as one rank, on a core of its own; the first rank prints its result."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[int(os.environ["LOCAL_RANK"])]})
    import candelabra.distributed as dist

    dist.init_process_group("mpi")
    found = PROGRAMS[name]()
    if dist.get_rank() == 0:
        print(json.dumps(found))
    dist.destroy_process_group()


def started(name: str, ranks: int) -> dict[str, float]:
    """Start the ranks of a program and return the first one's result."""
    line = [sys.executable, "-m", "candelabra", "run", "-n", str(ranks), __file__, "--rank", name]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def repeated(name: str, sizes: Sequence[int], repeats: int) -> list[dict[str, float]]:
    """Return the fastest times of a program on each number of ranks, which alternate."""
    found: list[dict[str, float]] = [{} for _ in sizes]
    for _ in range(repeats):
        for best, ranks in zip(found, sizes, strict=True):
            for key, seconds in started(name, ranks).items():
                best[key] = min(best.get(key, seconds), seconds)
    return found


def main() -> None:
    """Print the marks, or run as one rank."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rank", choices=PROGRAMS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rank:
        rank_of(given.rank)
        return
    times = started("overhead", 1)
    print(f"DDP on 1 rank: {100 * (times['ddp'] / times['plain'] - 1):+.1f} % (mark 3 %), {times}", flush=True)
    times = started("bandwidth", 2)
    best = min(seconds for name, seconds in times.items() if name != "distributed")
    print(
        f"all-reduce of 100 MB in buckets: {best / times['distributed']:.2f} of the better raw call (mark 0.80), "
        f"{times}",
        flush=True,
    )
    one, two = repeated("scaling", (1, 2), 5)
    for name in NETWORKS:
        print(
            f"2 ranks of one core each, {name}: {2 * one[name] / two[name]:.2f} times one rank (mark 1.7), "
            f"{one[name]:.4f} s and {two[name]:.4f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
