"""All that can be checked of a GPU, in one command: ``make cuda-check``.

A first kernel, the demo, conformance (level 1 quickly, then 2, then 3), the marks against PyTorch in the same run, the
tests that need a device, compute-sanitizer on a short run where it is installed. The report is
docs/reports/<device type>-<chip>-<date>.{json,md}; it is written after each part, and ``--parts`` runs some of them
again. With ``--minutes`` the run ends in time; the next one goes on with what is still to run.

Exit status: 0 all that ran passed, 1 something failed, 3 there is no such device (it says why), 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import math
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import candelabra as cd
from candelabra_conformance.running.run import cores
from candelabra_cuda import nvrtc
from candelabra_cuda.compiling import prebuilt_cache, usual_cache
from cuda_archive import ArchiveError, kernel_name, unpack, used
from cuda_parts import PARTS, ROOT, Given, TimeUp
from cuda_report import UNFINISHED, Part, Report, part, slug

NO_DEVICE = 3
PACKAGES = (
    "numpy", "scipy", "cupy-cuda13x", "cupy-cuda12x", "cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12",
)  # fmt: skip
LEAST = 40.0
"""No part begins with less than so many seconds left."""
NAMED = 50
"""So many of the kernels that had to be compiled are named."""


def facts(device: str) -> dict[str, str]:
    """Chip, driver and versions. ``DeviceUnavailable`` says why there is no such device."""
    kind, _, index = device.partition(":")
    properties = getattr(cd, kind).get_device_properties(int(index or 0))
    found = {
        "chip": properties.name,
        **properties.facts,
        "system": platform.platform(),
        "Python": sys.version.split()[0],
    }
    said = lines("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    if said:
        found["NVIDIA driver"] = said[int(index or 0)] if len(said) > int(index or 0) else said[0]
    for name in ("candelabra", *PACKAGES):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    said = lines("git", "describe", "--always", "--dirty")
    return {**found, "commit": said[0]} if said else found


def lines(*command: str) -> list[str]:
    """What a program writes, in the repository's root; nothing where it is missing or fails."""
    if shutil.which(command[0]) is None:
        return []
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30.0, check=False)
    except subprocess.TimeoutExpired:
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def kernels(capability: str, file: Path | None) -> dict[str, str]:
    """Unpack the machine code that ``make cuda-kernels`` made, if there is any; facts of it and of NVRTC.

    Raises :class:`ArchiveError` for another file.
    """
    found = {}
    try:
        binding = nvrtc.load()
        found["NVRTC"] = f"{'.'.join(map(str, binding.version()))}, through {binding.name}"
    except nvrtc.CompilationError as error:
        found["NVRTC"] = str(error)
    cache, usual = prebuilt_cache(), ROOT / f"cuda-kernels-{capability}.tar.xz"
    if cache is not None and (file or usual.exists()):
        found["kernels"] = f"{unpack(file or usual, cache)} from {(file or usual).name}"
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Run the parts, write the report, say what came of each."""
    start, started = time.monotonic(), time.time()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--parts", default="", help=f"some of: {', '.join(PARTS)} (parts of their names, between ';')")
    parser.add_argument("--minutes", type=float, default=math.inf, help="end in time; go on with the last report")
    parser.add_argument("--fresh", action="store_true", help="begin a new report")
    parser.add_argument("--peer", default=".venv-peer/bin/python", help="a Python with PyTorch for the device")
    parser.add_argument("--library", default="torch", help=argparse.SUPPRESS)
    parser.add_argument("--size", default="full", help="of the benchmarks: full, or tiny to try them")
    parser.add_argument("--jobs", type=int, default=min(16, cores()), help="processes of the suite")
    parser.add_argument("--quick", action="store_true", help="ten operators only: to try the command")
    parser.add_argument("--epochs", type=int, default=15, help="of the demo")
    parser.add_argument("--kernels", type=Path, help="what `make cuda-kernels` made (cuda-kernels-<capability>.tar.xz)")
    parser.add_argument("--look", action="store_true", help="only say whether there is such a device")
    parser.add_argument("--folder", type=Path, default=ROOT / "docs" / "reports", help="where the report goes")
    given = parser.parse_args(words)
    try:
        known = facts(given.device)
    except Exception as error:
        print(f"cuda-check cannot run on {given.device}: {error}", file=sys.stderr)
        print("What needs no GPU: make cuda-kernels compiles all kernels, make test runs the tests", file=sys.stderr)
        return NO_DEVICE
    if given.look:
        print(f"{given.device}: {known['chip']}")
        return 0
    try:
        known |= kernels(known.get("compute", "").replace(".", ""), given.kernels)
    except (ArchiveError, OSError) as error:
        parser.error(f"--kernels: {error}")
    kind, date, going_on = given.device.split(":")[0], datetime.now(UTC).date().isoformat(), given.minutes < math.inf
    report = Report(given.folder, kind, known, date, list(PARTS), going_on, given.fresh)
    chosen = [name for name in PARTS if not given.parts or any(each.strip() in name for each in given.parts.split(";"))]
    if going_on and not given.parts:
        chosen = report.remaining
    peer = shutil.which(given.peer) or given.peer
    return run(report, chosen, Given(
        given.device, peer, given.library, given.size, given.jobs, given.quick, given.epochs, report.state,
        until=start + given.minutes * 60, started=started,
    ))  # fmt: skip


def run(report: Report, chosen: Sequence[str], given: Given) -> int:
    """Run the chosen parts while there is time; 1 if one of the report's has failed."""
    for name in chosen:
        if given.left() < LEAST:
            break
        given.again = name not in report.remaining
        given.log = slug(name)
        found = one(name, given)
        report.add(name, found)
        print(f"{name}: {found['verdict']}: {found['said']}", flush=True)
        if found.get("fatal"):
            print("Nothing else can work then.", flush=True)
            break
    print(f"written: {report.path} and {report.path.with_suffix('.md').name}")
    if report.remaining:
        print(f"still to run: {'; '.join(report.remaining)}")
    return 0 if report.passed() else 1


def one(name: str, given: Given) -> Part:
    """Run a part; how long it took, and which kernels it was the first to need."""
    caches = usual_cache(), prebuilt_cache()
    before, start = used(*caches), time.monotonic()
    try:
        found = PARTS[name](given)
    except TimeUp as stopped:
        found = part(UNFINISHED, "stopped when the time was up", output=stopped.said)
    new = used(*caches).since(before)
    names = sorted(kernel_name(caches[0], key) for key in new.compiled) if caches[0] is not None else []
    return found | {
        "seconds": round(time.monotonic() - start, 1), "ready": len(new.prebuilt), "compiled": names[:NAMED],
        "compilations": len(names),
    }  # fmt: skip


if __name__ == "__main__":
    # Ended by a scheduler it ends its commands too; the report has all parts that were done.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    raise SystemExit(main())
