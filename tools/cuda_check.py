"""All that can be checked of a GPU, in one command: ``make cuda-check``.

Every kernel compiles, conformance (level 2, then 3), the tests that need a device, the demo, the marks against PyTorch
in the same run, compute-sanitizer on a short run where it is installed. The report is
docs/reports/<device type>-<chip>-<date>.{json,md}; it is written after each part, and ``--parts`` runs some of
them again.

Exit status: 0 all that ran passed, 1 something failed, 3 there is no such device (it says why), 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import candelabra as cd
from candelabra_conformance.model import BAD
from cuda_report import FAILED, NOT_RUN, PASSED, Part, Report, part

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for `benchmarks`
NO_DEVICE = 3
PACKAGES = ("numpy", "cupy-cuda13x", "cupy-cuda12x", "cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
SANITIZER = "compute-sanitizer"
ID = ("operator", "property", "dtype", "layout")
"""The columns that make a case's id."""
MEMCHECK = ("--tool", "memcheck", "--error-exitcode", "9", "--target-processes", "all")
SHORT = ("add", "softmax", "normalize", "sum", "index_select", "scatter_add", "matmul", "conv", "sort", "cumsum")
"""Operators of a kind of kernel each, for what takes a hundred times as long."""


@dataclass
class Given:
    """What the command line says."""

    device: str
    peer: str
    library: str
    size: str
    jobs: int
    quick: bool
    epochs: int
    compute: str = ""
    """The device's compute capability, as ``9.0``."""

    def runs(self, *command: str, limit: float = 3600.0) -> tuple[int, list[str]]:
        """(exit status, the last lines that were written) of a Python command in the repository's root."""
        return output([sys.executable, *command], limit)


def output(command: Sequence[str], limit: float) -> tuple[int, list[str]]:
    """(exit status, the last 60 lines) of a command; 124 where it took more than ``limit`` seconds."""
    places = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    try:
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": places}, timeout=limit, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        said = error.stdout.decode(errors="replace") if isinstance(error.stdout, bytes) else error.stdout or ""
        return 124, [*said.splitlines()[-60:], f"stopped after {limit:.0f} s"]
    return done.returncode, done.stdout.splitlines()[-60:]


def kernels(given: Given) -> Part:
    """Every kernel becomes machine code for this GPU; without its generation's name, for three of them."""
    words = ["--operator", *SHORT] if given.quick else []
    if given.compute:
        words += ["--capability", given.compute.replace(".", "")]
    code, said = given.runs("tools/cuda_kernels.py", *words)
    counted = "; ".join(line for line in said if line.startswith("sm_"))
    return part(PASSED if code == 0 else FAILED, counted or "nothing was compiled", output=said)


def conformance(level: int) -> Callable[[Given], Part]:
    """The suite up to a level."""

    def run(given: Given) -> Part:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "conformance.json"
            words = ["--device", given.device, "--level", str(level), "--jobs", str(given.jobs), "--json", str(file)]
            if given.quick:
                words += ["--quick", *(word for name in SHORT for word in ("--operator", name))]
            code, said = given.runs("-m", "candelabra", "conformance", *words)
            if not file.exists():
                return part(FAILED, f"the suite wrote no report (exit status {code})", output=said)
            return judged(json.loads(file.read_text()), code, said)

    return run


def judged(found: dict[str, Any], code: int, said: list[str]) -> Part:
    """A conformance report as a part, with what failed first."""
    columns = found["columns"]
    results = [dict(zip(columns, [*row, *[None] * len(columns)])) for row in found["results"]]  # ends may be missing
    failures = [
        "/".join(str(r[key]) for key in ID if r[key]) + f" {r['message'] or ''}" for r in results if r["verdict"] in BAD
    ]
    counts = ", ".join(f"{number} {name}" for name, number in found["counts"].items())
    return part(
        PASSED if code == 0 else FAILED, f"{counts}; {found['seconds']:.0f} s", level=found["level"],
        counts=found["counts"], failures=[each.splitlines()[0][:200] for each in failures[:50]], output=said[-20:],
    )  # fmt: skip


def hardware(given: Given) -> Part:
    """The tests that are about a real device: exchange with other libraries, streams, memory, late errors."""
    code, said = given.runs("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/cuda/test_on_device.py")
    return part(PASSED if code == 0 else FAILED, said[-1] if said else "no output", output=said)


def demo(given: Given) -> Part:
    """The demo learns to read digits on the device."""
    with tempfile.TemporaryDirectory() as folder:
        saved = str(Path(folder) / "digits.safetensors")
        words = ("--device", given.device, "--epochs", str(given.epochs), "--save", saved)
        code, said = given.runs("examples/digits.py", *words)
    row = next((line for line in said if given.device.split(":")[0] in line and "%" in line), "")
    return part(
        PASSED if code == 0 else FAILED, " ".join(row.replace("│", " ").split()) or "see the output", output=said
    )


def benchmarks(given: Given) -> Part:
    """The marks, against the peer in the same run."""
    from benchmarks.accelerator.comparing import HEAD, cells

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "benchmarks.json"
        code, said = given.runs(
            "-m", "benchmarks.accelerator", "--device", given.device, "--peer", given.peer, "--library", given.library,
            "--size", given.size, "--json", str(file),
        )  # fmt: skip
        if not file.exists():
            return part(FAILED, "; ".join(said[-2:]) or "nothing was measured", output=said)
        found = json.loads(file.read_text())
    rows = found["rows"]
    held = sum(row["kept"] for row in rows)
    said_of = f"{held} of {len(rows)} marks hold, against {found['peer']}"
    return part(
        PASSED if code == 0 else FAILED, said_of, peer=found["peer"], measured=rows, head=[*HEAD, "holds"],
        rows=[[*cells(row), "yes" if row["kept"] else "no"] for row in rows],
    )  # fmt: skip


def sanitizer(given: Given) -> Part:
    """A short run under compute-sanitizer: accesses out of bounds that no value shows."""
    found = shutil.which(SANITIZER) or shutil.which(SANITIZER, path="/usr/local/cuda/bin")
    if found is None:
        return part(NOT_RUN, f"{SANITIZER} is not installed: it comes with NVIDIA's CUDA toolkit")
    words = [
        "-m",
        "candelabra",
        "conformance",
        "--device",
        given.device,
        "--level",
        "1",
        "--quick",
        "--jobs",
        "1",
    ]
    words += [word for name in SHORT for word in ("--operator", name)]
    code, said = output([found, *MEMCHECK, sys.executable, *words], 1800.0)
    summary = next((line for line in reversed(said) if "ERROR SUMMARY" in line), "")
    return part(PASSED if code == 0 else FAILED, summary.strip("= ") or f"exit status {code}", output=said)


PARTS: dict[str, Callable[[Given], Part]] = {
    "kernels compile": kernels,
    "conformance, level 2": conformance(2),
    "conformance, level 3": conformance(3),
    "on the device": hardware,
    "demo": demo,
    "benchmarks": benchmarks,
    "sanitizer": sanitizer,
}
"""In the order in which they run."""


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
    code, said = smi()
    if code == 0 and said:
        found["NVIDIA driver"] = said[int(index or 0)] if len(said) > int(index or 0) else said[0]
    for name in ("candelabra", *PACKAGES):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    code, said = output(["git", "describe", "--always", "--dirty"], 20.0)
    return {**found, "commit": said[0]} if code == 0 and said else found


def smi() -> tuple[int, list[str]]:
    """What ``nvidia-smi`` says of the drivers, where there is one."""
    if shutil.which("nvidia-smi") is None:
        return 1, []
    return output(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], 30.0)


def main(words: Sequence[str] | None = None) -> int:
    """Run the parts, write the report, say what came of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--parts", default="", help=f"some of: {', '.join(PARTS)} (parts of their names, between ';')")
    parser.add_argument("--peer", default=".venv-peer/bin/python", help="a Python with PyTorch for the device")
    parser.add_argument("--library", default="torch", help=argparse.SUPPRESS)
    parser.add_argument("--size", default="full", help="of the benchmarks: full, or tiny to try them")
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1), help="processes of the suite")
    parser.add_argument("--quick", action="store_true", help="ten operators only: to try the command")
    parser.add_argument("--epochs", type=int, default=15, help="of the demo")
    parser.add_argument("--look", action="store_true", help="only say whether there is such a device")
    parser.add_argument("--folder", default=str(ROOT / "docs" / "reports"), help="where the report goes")
    parsed = vars(parser.parse_args(words))
    wanted, folder, look = parsed.pop("parts"), Path(parsed.pop("folder")), parsed.pop("look")
    chosen = [name for name in PARTS if not wanted or any(each.strip() in name for each in wanted.split(";"))]
    given = Given(**parsed)
    try:
        known = facts(given.device)
    except Exception as error:
        print(f"cuda-check cannot run on {given.device}: {error}", file=sys.stderr)
        print("Every kernel can be compiled without a GPU: python tools/cuda_kernels.py", file=sys.stderr)
        return NO_DEVICE
    if look:
        print(f"{given.device}: {known['chip']}")
        return 0
    given.compute = known.get("compute", "")
    report = Report(folder, given.device.split(":")[0], known, datetime.now(UTC).date().isoformat())
    return run(report, chosen, given)


def run(report: Report, chosen: Sequence[str], given: Given) -> int:
    """Run the chosen parts; 1 if one of the report's has failed."""
    for name in chosen:
        start = time.monotonic()
        found = PARTS[name](given)
        report.add(name, {**found, "seconds": round(time.monotonic() - start, 1)})
        print(f"{name}: {found['verdict']}: {found['said']}", flush=True)
    print(f"written: {report.path} and {report.path.with_suffix('.md').name}")
    return 0 if report.passed() else 1


if __name__ == "__main__":
    raise SystemExit(main())
