"""Train a small network for thousands of steps and report the growth of memory, on the host and on the device.

``python -m benchmarks.opencl.leaks [--steps 10000] [--device opencl:0]`` exits with 1 if the second half of the steps
needed more than ``--allowed`` KiB of additional host memory, or any additional device memory. A test runs a short form.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import candelabra as cd
from candelabra import nn, optim
from candelabra.library import open_device

LOOKS = 10
"""The number of times that the memory is measured, at equal distances."""


class Held(NamedTuple):
    """Memory after a number of steps: resident KiB of the process, bytes on the device, Python objects."""

    steps: int
    resident: int
    allocated: int
    reserved: int
    objects: int


def network() -> nn.Sequential:
    """Return two convolutions, a normalisation, pools, dropout and a linear layer."""
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Dropout(0.25), nn.Linear(32, 10),
    )  # fmt: skip


def resident() -> int:
    """Return the resident memory of the process in KiB (0 on systems other than Linux)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmRSS"))


def held(device: cd.device, steps: int) -> Held:
    """Return the memory in use after all work and a garbage collection."""
    gc.collect()
    instance = open_device(device)
    instance.backend.synchronize(instance.index)
    memory = instance.backend.memory(instance.index)
    return Held(steps, resident(), memory["allocated"], memory["reserved"], len(gc.get_objects()))


def watched(device: cd.device, steps: int, looks: int = LOOKS) -> Iterator[Held]:
    """Train, with batches of two sizes, and measure the memory after the first tenth of the steps and then at equal
    distances.
    """
    with cd.device(device):
        cd.manual_seed(11)
        model = network()
        optimizer = optim.AdamW(model.parameters(), lr=1e-3)
        batches = [(cd.randn(n, 1, 8, 8), cd.randint(0, 10, (n,))) for n in (16, 7)]
        for step in range(1, steps + 1):
            images, labels = batches[step % 2]
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                loss.item()
            if step % (steps // looks) == 0:
                yield held(device, step)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each measurement of memory. Return 1 if memory has grown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--allowed", type=int, default=4096, help="KiB by which the host may grow (default 4096)")
    options = parser.parse_args(arguments)
    start, looks = perf_counter(), []
    print(f"{'steps':>8} {'seconds':>8} {'host KiB':>9} {'allocated':>10} {'reserved':>10} {'objects':>8}")
    for look in watched(cd.device(options.device), options.steps):
        looks.append(look)
        print(
            f"{look.steps:>8} {perf_counter() - start:>8.1f} {look.resident:>9} {look.allocated:>10} "
            f"{look.reserved:>10} {look.objects:>8}", flush=True,
        )  # fmt: skip
    middle, last = looks[len(looks) // 2], looks[-1]
    grown = last.resident - middle.resident
    print(f"second half: host {grown:+} KiB, device {last.allocated - middle.allocated:+} bytes")
    return int(grown > options.allowed or last.allocated > middle.allocated)


if __name__ == "__main__":
    raise SystemExit(main())
