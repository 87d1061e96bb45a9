"""All checks of a GPU in one command: ``make cuda-check``.

A first kernel, the demo, conformance (level 1 quickly, then 2, then 3), the marks against PyTorch in the same run, the
tests that need a device, and compute-sanitizer on a short run if it is installed. The report is docs/reports/<device
type>-<chip>-<date>.{json,md}; it is written after each part, and ``--parts`` runs some of them again. With
``--minutes`` the run ends in time, and the next run continues with the remaining parts.

Exit status: 0 if all parts that ran passed, 1 if one failed, 2 for wrong arguments, 3 if the device does not exist.
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
from candelabra.backend import DeviceInfo
from candelabra_conformance.running.run import cores
from candelabra_cuda import nvrtc
from candelabra_cuda.compiling import prebuilt_cache, usual_cache
from cuda_archive import ArchiveError, kernel_name, unpack, used
from cuda_parts import PARTS, ROOT, CheckRun, TimeUp
from cuda_report import UNFINISHED, Part, Report, part, slug

NO_DEVICE = 3
PACKAGES = (
    "numpy", "scipy", "cupy-cuda13x", "cupy-cuda12x", "cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12",
)  # fmt: skip
LEAST = 40.0
"""The minimum number of seconds that must be left for a part to begin."""
NAMED = 50
"""The maximum number of compiled kernels that the report names."""


def facts(device: str) -> dict[str, str]:
    """Return chip, driver and versions. Raise ``DeviceUnavailable`` if the device does not exist."""
    kind, _, index = device.partition(":")
    properties = getattr(cd, kind).get_device_properties(int(index or 0))
    result = {
        "chip": properties.name,
        **DeviceInfo(properties.name, properties.facts).texts,
        "system": platform.platform(),
        "Python": sys.version.split()[0],
    }
    output = lines("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    if output:
        result["NVIDIA driver"] = output[int(index or 0)] if len(output) > int(index or 0) else output[0]
    for name in ("candelabra", *PACKAGES):
        try:
            result[name] = version(name)
        except PackageNotFoundError:
            continue
    output = lines("git", "describe", "--always", "--dirty")
    return {**result, "commit": output[0]} if output else result


def lines(*command: str) -> list[str]:
    """Return the output of a program that runs in the repository's root, or an empty list if it is missing or fails."""
    if shutil.which(command[0]) is None:
        return []
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30.0, check=False)
    except subprocess.TimeoutExpired:
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def kernels(capability: str, file: Path | None) -> dict[str, str]:
    """Unpack the archive of ``make cuda-kernels``, if it exists, and return facts about it and NVRTC.

    Raises :class:`ArchiveError` for another file.
    """
    result = {}
    try:
        binding = nvrtc.load()
        result["NVRTC"] = f"{'.'.join(map(str, binding.version()))}, through {binding.name}"
    except nvrtc.CompilationError as error:
        result["NVRTC"] = str(error)
    cache, usual = prebuilt_cache(), ROOT / f"cuda-kernels-{capability}.tar.xz"
    if cache is not None and (file or usual.exists()):
        result["kernels"] = f"{unpack(file or usual, cache)} from {(file or usual).name}"
    return result


def main(words: Sequence[str] | None = None) -> int:
    """Run the parts, write the report and print the result of each part."""
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
    options = parser.parse_args(words)
    try:
        known = facts(options.device)
    except Exception as error:
        print(f"cuda-check cannot run on {options.device}: {error}", file=sys.stderr)
        print("What needs no GPU: make cuda-kernels compiles all kernels, make test runs the tests", file=sys.stderr)
        return NO_DEVICE
    if options.look:
        print(f"{options.device}: {known['chip']}")
        return 0
    try:
        known |= kernels(known.get("compute", "").replace(".", ""), options.kernels)
    except (ArchiveError, OSError) as error:
        parser.error(f"--kernels: {error}")
    kind, date, going_on = (
        options.device.split(":")[0],
        datetime.now(UTC).date().isoformat(),
        options.minutes < math.inf,
    )
    report = Report(options.folder, kind, known, date, list(PARTS), going_on, options.fresh)
    chosen = [
        name for name in PARTS if not options.parts or any(each.strip() in name for each in options.parts.split(";"))
    ]
    if going_on and not options.parts:
        chosen = report.remaining
    peer = shutil.which(options.peer) or options.peer
    return run(report, chosen, CheckRun(
        options.device, peer, options.library, options.size, options.jobs, options.quick, options.epochs, report.state,
        until=start + options.minutes * 60, started=started,
    ))  # fmt: skip


def run(report: Report, chosen: Sequence[str], check: CheckRun) -> int:
    """Run the chosen parts while there is time. Return 1 if any part of the report failed."""
    for name in chosen:
        if check.left() < LEAST:
            break
        check.again = name not in report.remaining
        check.log = slug(name)
        result = one(name, check)
        report.add(name, result)
        print(f"{name}: {result['verdict']}: {result['said']}", flush=True)
        if result.get("fatal"):
            print("Nothing else can work then.", flush=True)
            break
    print(f"written: {report.path} and {report.path.with_suffix('.md').name}")
    if report.remaining:
        print(f"still to run: {'; '.join(report.remaining)}")
    return 0 if report.passed() else 1


def one(name: str, check: CheckRun) -> Part:
    """Run a part and add its duration and the kernels that it was the first to need."""
    caches = usual_cache(), prebuilt_cache()
    before, start = used(*caches), time.monotonic()
    try:
        result = PARTS[name](check)
    except TimeUp as stopped:
        result = part(UNFINISHED, "stopped when the time was up", output=stopped.output)
    new = used(*caches).since(before)
    names = sorted(kernel_name(caches[0], key) for key in new.compiled) if caches[0] is not None else []
    return result | {
        "seconds": round(time.monotonic() - start, 1), "ready": len(new.prebuilt), "compiled": names[:NAMED],
        "compilations": len(names),
    }  # fmt: skip


if __name__ == "__main__":
    # If a scheduler ends this process, its commands end, too; the report has all completed parts.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    raise SystemExit(main())
