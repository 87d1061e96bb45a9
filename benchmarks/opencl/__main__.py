"""Measure every installed OpenCL driver, compared with the same peers, and write a report for each.

Usage: ``python -m benchmarks.opencl [--driver WORDS] [--peer PYTHON] [--tinygrad PYTHON] [--only TEXT]``. A peer that
is not installed is omitted. A missed mark is not a failure: it is printed in red.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyopencl
from candelabra_opencl.discovery import VARIABLE, OpenCLDevice, find
from candelabra_opencl.icd import driver_search_path
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.machine import load, processor
from benchmarks.opencl.cases import BATCHES, CASES, SIZES, Compared
from benchmarks.opencl.report import PEERS, Measured, slug_of, write
from benchmarks.sides import Side

LIBRARIES = {"torch": "torch", "pyopencl": "pyopencl.array", "tinygrad": "tinygrad"}
VERSIONS = {
    "torch": "import torch; print(f'{torch.__version__}, {torch.get_num_threads()} threads')",
    "pyopencl": "import pyopencl; print(pyopencl.VERSION_TEXT)",
    "tinygrad": "import importlib.metadata as m; print(m.version('tinygrad'))",
}
BUSY = 1.5
"""The load per core above which a report warns that the machine was busy; a measurement itself causes about 0.5."""
OTHERS = (
    "other programs were running on these cores. That costs PyTorch more than a queue of kernels, since its threads "
    "wait for each other within every operator: on a quiet machine ratios are higher, and times lower on both sides"
)
SLACK = {"3.0-rc2": 3.0}
"""The allowed factor to the marks, by the driver's version: PoCL's wheel of 2022 is for tests."""


def devices(words: str) -> list[OpenCLDevice]:
    """Return the first device of each driver whose line in ``candelabra devices`` contains the words."""
    result: dict[str, OpenCLDevice] = {}
    for one in find():
        if words.lower() in one.line.lower():
            result.setdefault(one.pattern, one)
    return list(result.values())


def environment(one: OpenCLDevice) -> dict[str, str]:
    """Return the variables of a worker, which select one driver, also for tinygrad."""
    variables: dict[str, str] = {}
    with driver_search_path():
        variables.update(os.environ)
    loader = next(Path(pyopencl.__file__).parent.glob(".libs/libOpenCL*"), None)
    if loader is not None:
        variables["OPENCL_PATH"] = str(loader)
        variables["LD_LIBRARY_PATH"] = f"{loader.parent}{os.pathsep}{variables.get('LD_LIBRARY_PATH', '')}"
    return variables | {
        VARIABLE: one.pattern,
        "DEV": "CL",
        "TRAINING": "1",
        "PLATFORM_OF_OURS": str(pyopencl.get_platforms().index(one.device.platform)),
        "DRIVER_OF_OURS": one.facts["driver"],
    }


def version_of(peer: str, python: str) -> str:
    """Return a peer's name and version, or an empty text if it is not installed."""
    if not python or not Path(python).exists():
        return ""
    process = subprocess.run([python, "-c", VERSIONS[peer]], capture_output=True, text=True, check=False)
    return process.stdout.strip()


def compare(case: Compared, own: Side, peer: Side | None, arguments: argparse.Namespace) -> Measured:
    """Return the times of both sides, one per turn. An error is part of the report, and the run continues."""
    own_times: list[float] = []
    peer_times: list[float] = []
    own_case, peer_case = case.case(True, arguments.sizes), case.case(False, arguments.sizes)
    seconds = arguments.seconds * case.tune
    try:
        own.time(own_case, 0.0)
        if peer is not None:
            peer.time(peer_case, 0.0)
        for _ in range(arguments.rounds):
            own_times.append(own.time(own_case, seconds) / case.calls)
            if peer is not None:
                peer_times.append(peer.time(peer_case, seconds) / case.calls)
    except RuntimeError as error:
        return Measured(case, own_times, peer_times, str(error))
    return Measured(case, own_times, peer_times)


def measure(
    cases: Sequence[Compared],
    environment_of_device: Mapping[str, str],
    pythons: Mapping[str, str],
    arguments: argparse.Namespace,
) -> list[Measured]:
    """Measure all cases on one device, with one process of a peer at a time."""
    own = Side(sys.executable, "candelabra", environment_of_device)
    measured: list[Measured] = []
    name, peer = "", None
    try:
        for case in track(cases, description="measuring", console=Console(stderr=True)):
            if case.peer != name:
                name = case.peer
                if peer is not None:
                    peer.close()
                peer = Side(pythons[name], LIBRARIES[name], environment_of_device) if pythons.get(name) else None
            measured.append(compare(case, own, peer, arguments))
    finally:
        own.close()
        if peer is not None:
            peer.close()
    return measured


def show(title: str, measured: Sequence[Measured], slack: float) -> None:
    """Print the table."""
    table = Table("case", "beside", "ours, µs", "theirs, µs", "ratio", "mark", title=title)
    for one in measured:
        case, held = one.case, one.holds(slack)
        colour = "white" if held is None else "green" if held else "red"
        mark = f"≤ {case.limit * slack:g} µs" if case.limit else "" if case.mark is None else f"{case.mark * slack:.2f}"
        table.add_row(
            case.name, case.peer, f"{min(one.ours) * 1e6:.2f}" if one.ours else one.trouble[:40],
            f"{min(one.theirs) * 1e6:.2f}" if one.theirs else "",
            f"[{colour}]{'–' if one.ratio is None else f'{one.ratio:.2f}'}[/]", mark,
        )  # fmt: skip
    Console(width=120).print(table)


def run(one: OpenCLDevice, arguments: argparse.Namespace) -> Path:
    """Measure one driver's first device, print the table, write the report and return its path."""
    pythons = {"torch": arguments.peer, "pyopencl": sys.executable, "tinygrad": arguments.tinygrad}
    versions = {peer: version_of(peer, python) for peer, python in pythons.items()}
    present = {peer: python for peer, python in pythons.items() if versions[peer]}
    cases = [case for case in CASES if arguments.only in case.name]
    before = load()
    measured = measure(cases, environment(one), present, arguments)
    driver = f"{one.facts['platform']} {one.facts['driver']}"
    facts = {
        "driver": driver,
        "device": f"{one.name}, {one.facts['version']}",
        "processor": f"{processor()}, {os.cpu_count()} cores",
        "load before and after": f"{before:.1f} and {load():.1f}",
        "Python": f"{platform.python_version()}, {platform.system()}",
        "turns": f"{arguments.rounds}, of {BATCHES} batches each",
        **{PEERS[peer]: words or "not installed" for peer, words in versions.items()},
    }
    if max(before, load()) > BUSY * (os.cpu_count() or 1):
        facts["beware"] = OTHERS
    slack = SLACK.get(one.facts["driver"], 1.0)
    show(driver, measured, slack)
    return write(Path(arguments.report), slug_of(one.facts["platform"], one.facts["driver"]), facts, measured, slack)


def main(words: Sequence[str] | None = None) -> int:
    """Measure every driver whose description contains the given words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--driver", default="", help="drivers on whose line in `candelabra devices` these words stand")
    parser.add_argument("--peer", default=".venv-peer/bin/python", help="a Python with PyTorch")
    parser.add_argument("--tinygrad", default=".venv-tinygrad/bin/python", help="a Python with tinygrad")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.25, help="to spend on a case, each side and turn")
    parser.add_argument("--sizes", choices=SIZES, default="full")
    parser.add_argument("--report", default="docs/reports", help="the folder to write to")
    arguments = parser.parse_args(words)
    selected = devices(arguments.driver)
    for one in selected:
        print(f"written: {run(one, arguments)}")
    if not selected:
        print(f"no OpenCL driver has {arguments.driver!r} in its description")
    return 0 if selected else 1


if __name__ == "__main__":
    raise SystemExit(main())
