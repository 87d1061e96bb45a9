"""Time, bytes and memory per step against the number of ranks, and a model of both for many ranks.

``python -m benchmarks.distributed`` starts each strategy on 1, 2 and 4 ranks and prints a table in Markdown, with the
numbers of the model: from steps of one rank, and from the time of an all-reduce on as many ranks.
``--model`` prints the table of the model, with its assumptions. ``candelabra run`` starts this file as a rank.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

WIDTH, LAYERS, BATCH, STEPS = 768, 16, 32, 12
COUNT: Final = LAYERS * (WIDTH * WIDTH + WIDTH)
"""The number of parameters."""
STRATEGIES: Final = ("ddp", "zero", "fsdp")
FACTORS: Final = {"all_reduce": 2.0, "average": 2.0, "reduce_scatter": 1.0, "all_gather": 1.0, "broadcast": 1.0}
"""What a rank sends for each byte of the largest buffer of a ring collective, as a multiple of (p - 1) / p."""


# -- one rank ---------------------------------------------------------------------------------------------------------
class Counted:
    """A communicator that counts the bytes which a rank sends by ring algorithms."""

    def __init__(self, communicator: Any) -> None:
        self._communicator = communicator
        self.sent = 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._communicator, name)
        if name not in FACTORS:
            return found

        def counted(*args: Any) -> Any:
            buffers = [sum(map(len, each)) if isinstance(each, list) else len(each) for each in args if _bytes(each)]
            largest = max(buffers)
            size = self._communicator.size
            self.sent += FACTORS[name] * largest * (size - 1) / size
            return found(*args)

        return counted


def _bytes(value: Any) -> bool:
    """Return whether an argument is a buffer or a list of buffers."""
    return isinstance(value, (memoryview, list))


def memory(field: str) -> float:
    """Return a number of this process in MB: ``VmRSS`` now, ``VmHWM`` at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith(field))


def rank_of(strategy: str, rows: int) -> None:
    """Train as one rank on some rows, and print the results of the first one as JSON."""
    import candelabra as cd
    import candelabra.distributed as dist
    from candelabra import nn, optim
    from candelabra.distributed.fsdp import fully_shard
    from candelabra.distributed.optim import ZeroRedundancyOptimizer
    from candelabra.nn.parallel import DistributedDataParallel

    dist.init_process_group("mpi")
    world: Any = dist.group.WORLD
    x = cd.randn(rows, WIDTH)
    nn.Linear(WIDTH, WIDTH)(x).sum().backward()
    dist.all_reduce(cd.ones(1000))
    reducing, whole = [], cd.ones(COUNT)
    for _ in range(STEPS):
        dist.barrier()
        started = time.perf_counter()
        dist.all_reduce(whole)
        reducing.append(time.perf_counter() - started)
    del whole
    base = memory("VmRSS")
    world.communicator = counted = Counted(world.communicator)
    net: Any = nn.Sequential(*[nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(LAYERS)])
    if strategy == "fsdp":
        for block in net:
            fully_shard(block)
        fully_shard(net)
    else:
        net = DistributedDataParallel(net)
    optimizer: Any = (
        ZeroRedundancyOptimizer(net.parameters(), optim.AdamW, lr=1e-3)
        if strategy == "zero"
        else optim.AdamW(net.parameters(), lr=1e-3)
    )
    walls, cpus, updates = [], [], []
    for step in range(STEPS):
        if step == 2:  # buffers and states exist, buckets have their order
            Path("/proc/self/clear_refs").write_text("5")
            counted.sent = 0.0
        wall, cpu = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        (net(x) ** 2).mean().backward()
        update = time.perf_counter()
        optimizer.step()
        updates.append(time.perf_counter() - update)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    result = {
        "wall": min(walls[2:]),
        "update": min(updates[2:]),
        "reduce": min(reducing),
        "cpu": min(cpus[2:]),
        "sent": counted.sent / (STEPS - 2),
        "memory": memory("VmHWM") - base,
    }
    if dist.get_rank() == 0:
        print(json.dumps(result))
    dist.destroy_process_group()


# -- the tables -------------------------------------------------------------------------------------------------------
def measured(ranks: tuple[int, ...], repeat: int) -> Iterator[str]:
    """Yield the rows of the table: minima of ``repeat`` runs, which alternate with runs of one rank."""
    yield f"{LAYERS} layers of {WIDTH} x {WIDTH}, {COUNT * 4 / 1e6:.1f} MB of float32 parameters, AdamW, {BATCH} rows\n"
    yield (
        "| strategy | ranks | MB sent per rank | by the model | ms per step | by the model | CPU ms | "
        "MB of memory per rank | by the model |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    cores = len(os.sched_getaffinity(0))
    for strategy in STRATEGIES:
        for size in ranks:
            rows = BATCH // size
            runs = [(started(strategy, 1, rows), started(strategy, size, rows)) for _ in range(repeat)]
            alone, found = (least(each) for each in zip(*runs, strict=True))
            sent = volume(strategy, 4 * COUNT, size)
            rate = found["reduce"] / volume("ddp", 4 * COUNT, size) if size > 1 else 0.0
            seconds = step(strategy, size, alone["wall"] - alone["update"], alone["update"], sent * rate, cores)
            yield (
                f"| {strategy} | {size} | {found['sent'] / 1e6:.1f} | {sent / 1e6:.1f} | {1e3 * found['wall']:.0f} | "
                f"{1e3 * seconds:.0f} | {1e3 * found['cpu']:.0f} | {found['memory']:.0f} | "
                f"{held(strategy, size, COUNT, LAYERS, 4.0, 0.0) / 1e6:.0f} |"
            )


def started(strategy: str, size: int, rows: int) -> dict[str, float]:
    """Return what the first rank of a run measures. Each rank has one thread."""
    line = [sys.executable, "-m", "candelabra", "run", "-n", str(size), __file__, "--rank", strategy]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([*line, "--rows", str(rows)], capture_output=True, text=True, check=True, env=environment)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def least(results: Iterable[dict[str, float]]) -> dict[str, float]:
    """Return the minimum of each number of several runs."""
    every = list(results)
    return {name: min(each[name] for each in every) for name in every[0]}


def step(strategy: str, ranks: int, backward: float, update: float, communication: float, cores: int) -> float:
    """Return the seconds of a step on a machine whose ranks share its cores, without overlap.

    ``backward`` and ``update`` are those of one rank with the rows of each. ``zero`` and ``fsdp`` divide the update.
    """
    share = 1.0 if strategy == "ddp" else 1.0 / ranks
    return (backward + share * update) * max(1.0, ranks / cores) + communication


def held(strategy: str, ranks: int, parameters: float, layers: int, width: float, copies: float) -> float:
    """Return the bytes of parameters, gradients and AdamW's state that a rank holds.

    Parameters and gradients have ``width`` bytes, states 8, float32 copies of the parameters ``copies``. ``zero`` sends
    the parameters from flat copies.
    """
    state = 8.0 + copies
    whole = 2 * width + state
    each = {"ddp": whole, "zero": 2 * width + state / ranks + width * (ranks > 1), "fsdp": whole / ranks}[strategy]
    gathered = 2 * width / layers if strategy == "fsdp" else 0.0
    return (each + gathered) * parameters


def volume(strategy: str, size: float, ranks: int) -> float:
    """Return the bytes that a rank sends in a step, for parameters and gradients of ``size`` bytes each.

    Ring algorithms: an all-reduce of n bytes sends 2 n (p - 1) / p, a gather or scatter half of that. ``ddp`` reduces
    gradients; ``zero`` sends parameters too; ``fsdp`` gathers parameters twice and scatters gradients once.
    """
    share = (ranks - 1) / ranks
    return {"ddp": 2 * size, "zero": 3 * size, "fsdp": 3 * size}[strategy] * share


@dataclass(frozen=True)
class Machine:
    """The assumptions of the model."""

    parameters: float = 7e9
    tokens: int = 8192
    """Per rank and step."""
    flops: float = 0.4 * 989e12
    """Per rank: 40 % of an accelerator with 989 TFLOP/s in bfloat16."""
    bandwidth: float = 25e9
    """Bytes per second and rank, of a network of 200 Gbit/s."""
    latency: float = 10e-6
    """Of one message in seconds."""
    layers: int = 32
    overlap: float = 0.7
    """The share of communication that overlaps with computation at best."""


def modelled(machine: Machine) -> Iterator[str]:
    """Yield the rows of the table of the model: seconds per step, and GB per rank."""
    yield "| ranks | ddp s | ddp GB | zero s | zero GB | fsdp s | fsdp GB |"
    yield "|---|---|---|---|---|---|---|"
    for ranks in (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096):
        cells = [f"{value:.2f}" for strategy in STRATEGIES for value in prediction(strategy, ranks, machine)]
        yield f"| {ranks} | {' | '.join(cells)} |"


def prediction(strategy: str, ranks: int, machine: Machine) -> tuple[float, float]:
    """Return seconds per step and GB per rank: bfloat16 parameters and gradients, AdamW with float32 copies."""
    n = machine.parameters
    compute = 6 * n * machine.tokens / machine.flops
    rings = {"ddp": 2, "zero": 3, "fsdp": 3}[strategy] * machine.layers * (ranks - 1)
    communication = volume(strategy, 2 * n, ranks) / machine.bandwidth + rings * machine.latency
    hidden = min(machine.overlap * communication, compute)
    return compute + communication - hidden, held(strategy, ranks, n, machine.layers, 2.0, 4.0) / 1e9


def main() -> None:
    """Print a table, or train as one rank."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="store_true", help="print the table of the model")
    parser.add_argument("--ranks", default="1,2,4", help="the numbers of ranks to measure")
    parser.add_argument("--repeat", type=int, default=1, help="the number of runs, of which the table has the minima")
    parser.add_argument("--rank", choices=STRATEGIES, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, default=BATCH, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rank:
        rank_of(given.rank, given.rows)
        return
    ranks = tuple(int(each) for each in given.ranks.split(","))
    for row in modelled(Machine()) if given.model else measured(ranks, given.repeat):
        print(row, flush=True)


if __name__ == "__main__":
    main()
