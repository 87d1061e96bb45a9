"""Measure the peak memory of training steps: eager, in calls that are traced, and compiled.

Usage: ``python -m benchmarks.memory [--device NAME] [--only TEXT] [--modules] [--calls N] [--json FILE]``. With
``--modules``, the networks are compiled and not the whole steps. The device counts its memory itself, so the figures do
not depend on the load of the machine. A peak contains what lives before the step: the state of the optimizer, and
parameters as far as the device's library has allocated them. Each network has a process of its own.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import candelabra as cd
from rich.console import Console
from rich.table import Table

from benchmarks.processor import CNN, GPT, MLP, RESNET

SETUPS = {
    "MLP, batch 32, 784-128-10, SGD": MLP,
    "CNN, batch 64, 1×28×28, SGD": CNN,
    "GPT 4×128, T 64, batch 12, AdamW": GPT,
    "ResNet-18, 16×3×32×32, SGD with momentum": RESNET,
}
"""The networks whose training steps are measured, as texts over ``xp``."""
LIMIT = 1.003
"""The largest peak that is allowed, in those of eager calls. A compiled function keeps small constants."""
TRACED = 2
"""The calls that are traced: the first one has no gradients before it, and creates the state of the optimizer."""


class Peaks(NamedTuple):
    """Peaks in bytes, of each call."""

    eager: list[int]
    compiled: list[int]

    @property
    def ratios(self) -> list[float]:
        """The peaks of a compiled function in those of the eager one, call by call."""
        return [ours / eager for ours, eager in zip(self.compiled, self.eager, strict=True)]


def setup_of(name: str) -> str:
    """Return the text of the network whose name begins in this way."""
    return next(setup for title, setup in SETUPS.items() if title.startswith(name))


def step_of(setup: str, compiled: str = "") -> Callable[[], object]:
    """Return the training step of a network on the default device. ``compiled``: "", "step" or "model"."""
    names: dict[str, Any] = {"xp": cd}
    exec(setup, names)
    if compiled:
        names[compiled] = cd.compile(names[compiled], fullgraph=True)
    step: Callable[[], object] = names["step"]
    return step


def peaks(step: Callable[[], object], device: cd.device, calls: int) -> list[int]:
    """Return the peak of the device's memory in each call of a function."""
    counters = getattr(cd, device.type)
    found = []
    for _ in range(calls):
        gc.collect()  # what the collector frees in the call, or does not, is no memory of the function
        counters.synchronize(device)
        counters.reset_peak_memory_stats(device)
        step()
        counters.synchronize(device)
        found.append(counters.memory_stats(device)["peak"])
    return found


def compared(setup: str, device: cd.device, calls: int, compiled: str = "step") -> Peaks:
    """Return the peaks of a training step, each side with a network of its own. ``compiled``: "step" or "model"."""
    found = []
    for what in ("", compiled):
        gc.collect()
        with device:
            step = step_of(setup, what)
            found.append(peaks(step, device, calls))
        del step
    return Peaks(*found)


def measured(setup: str, device: str, calls: int, compiled: str) -> Peaks:
    """Return the peaks of a training step, measured in another process."""
    call = f"compared({setup!r}, cd.device({device!r}), {calls}, {compiled!r})"
    program = f"import json; from benchmarks.memory import cd, compared; print(json.dumps({call}))"
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the peaks on {device} were not measured:\n{done.stderr}")
    return Peaks(*json.loads(done.stdout))


def show(results: dict[str, Peaks], device: str) -> bool:
    """Print the table. Return whether no call, traced or compiled, has a larger peak than the eager one."""
    table = Table("step", "eager, MB", "traced, MB", "compiled, MB", "traced / eager", "compiled / eager")
    table.title = f"peak memory of training steps on {device}"
    for name, found in results.items():
        traced, later = found.ratios[:TRACED], found.ratios[TRACED:]
        figures = (found.eager[-1], max(found.compiled[:TRACED]), max(found.compiled[TRACED:]))
        table.add_row(name, *(f"{each / 1e6:.2f}" for each in figures), f"{max(traced):.3f}", f"{max(later):.3f}")
    Console(width=140).print(table)
    return all(ratio <= LIMIT for found in results.values() for ratio in found.ratios)


def main() -> int:
    """Measure and print the peaks. Return 1 if one is larger than that of the eager step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="networks whose name contains this")
    parser.add_argument("--modules", action="store_true", help="compile the networks, and not the whole steps")
    parser.add_argument("--calls", type=int, default=4)
    parser.add_argument("--json", help="write the peaks of all calls, in bytes, to this file")
    arguments = parser.parse_args()
    names = [name for name in SETUPS if arguments.only in name]
    compiled = "model" if arguments.modules else "step"
    results = {name: measured(SETUPS[name], arguments.device, arguments.calls, compiled) for name in names}
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1) + "\n")
    return 0 if show(results, arguments.device) else 1


if __name__ == "__main__":
    raise SystemExit(main())
