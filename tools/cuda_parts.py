"""The parts of ``make cuda-check``: each runs commands and returns their result."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from candelabra_clike.cache import cache_folder
from candelabra_conformance.model import BAD
from cuda_report import FAILED, NOT_RUN, PASSED, UNFINISHED, Part, part

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for `benchmarks`
SANITIZER = "compute-sanitizer"
ID = ("operator", "property", "dtype", "layout")
"""The columns that form a case's id."""
MEMCHECK = ("--tool", "memcheck", "--error-exitcode", "9", "--target-processes", "all")
SHORT = ("add", "softmax", "normalize", "sum", "index_select", "scatter_add", "matmul", "conv", "sort", "cumsum")
"""Operators with different kinds of kernels, for checks that take a hundred times as long."""
HANGS = 120.0
"""Seconds after which a case is considered to hang."""
RESERVE = 30.0
"""Seconds before the end of the time at which a command is asked to stop by itself."""
SLOWLY = 90.0
"""The same under compute-sanitizer."""
LINES = 60
"""The number of last lines of a command's output in the report; the folder of the state has the whole output."""


class TimeUp(Exception):
    """The error if the time is up before a command ends; ``output`` has its last lines."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("the time was up")
        self.output = lines


@dataclass
class CheckRun:
    """The options of the command line, and the state of this run."""

    device: str
    peer: str
    library: str
    size: str
    jobs: int
    quick: bool
    epochs: int
    state: Path
    """The folder with the state for the next run, and the whole output of the commands."""
    until: float = math.inf
    """The end of the time, as of ``time.monotonic``."""
    again: bool = False
    """Whether the part runs from its beginning, regardless of earlier runs."""
    started: float = 0.0
    """The start of the run, as of ``time.time``."""
    log: str = "output"
    """The name of the file for the part's output."""

    def left(self) -> float:
        """Return the remaining seconds."""
        return self.until - time.monotonic()

    def runs(
        self, *words: str, limit: float = 3600.0, variables: Mapping[str, str] | None = None
    ) -> tuple[int, list[str]]:
        """Run a Python command as :func:`output` does. Raise :class:`TimeUp`."""
        return self.output([sys.executable, *words], limit, variables)

    def output(
        self, command: Sequence[str], limit: float, variables: Mapping[str, str] | None = None
    ) -> tuple[int, list[str]]:
        """Run a command as the function :func:`output` does, at most for the remaining time. Raise :class:`TimeUp`."""
        left = self.left()
        code, lines = output(command, min(limit, max(left, 0.0)), self.state / f"{self.log}.log", variables)
        if code == 124 and left < limit:
            raise TimeUp(lines)
        return code, lines

    def stopping(self, reserve: float = RESERVE) -> list[str]:
        """Return the arguments with which a command stops by itself before the time is up."""
        return [] if self.until == math.inf else ["--minutes", f"{max(self.left() - reserve, 0.0) / 60:.3f}"]

    def known(self, pattern: str) -> list[Path]:
        """Return the files of the state with which a part continues, the newest last."""
        files = sorted((path.stat().st_mtime, path) for path in self.state.glob(pattern))
        return [path for time, path in files if not self.again or time >= self.started]


def output(
    command: Sequence[str], limit: float, log: Path, variables: Mapping[str, str] | None = None
) -> tuple[int, list[str]]:
    """Run a command in the repository's root, with output to a file. Return its exit status and its last lines.

    The status is 124 after more than ``limit`` seconds. All processes that the command started are ended.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {"CUPY_CACHE_DIR": str(cache_folder("cuda") / "cupy"), **os.environ, **(variables or {})}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = 124
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LINES:]
    return code, [*lines, f"stopped after {limit:.0f} s"] if code == 124 else lines


# -- the parts --------------------------------------------------------------------------------------------------------
def first(check: CheckRun) -> Part:
    """Check a kernel and each of the libraries, without which nothing else works."""
    code, lines = check.runs("tools/cuda_first.py", check.device, limit=180.0, variables={"CANDELABRA_BLOCKING": "1"})
    wrong = [line for line in lines if ": wrong" in line]
    right = sum(": right" in line for line in lines)
    words = "; ".join([f"{right} calls are right", *wrong]) if code in (0, 1, 2) else f"exit status {code}"
    return part(PASSED if code == 0 else FAILED, words, output=lines, fatal=code not in (0, 1))


def conformance(level: int, quick: bool = False) -> Callable[[CheckRun], Part]:
    """Return the part that runs the suite up to a level, without the cases of earlier runs."""

    def run(check: CheckRun) -> Part:
        file = check.state / f"conformance-{level}{'-quick' if quick else ''}.json"
        words = [*suite(check, level, file, check.known("conformance-*.json")), "--jobs", str(check.jobs)]
        words += ["--timeout", f"{HANGS:g}"]
        if quick or check.quick:
            words.append("--quick")
        words += operators(SHORT) if check.quick else []
        # The oracle computes on the host, where too many threads in each process would slow each other down.
        alone = {} if check.jobs == 1 else {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        code, lines = check.runs(*words, variables=alone)
        if code not in (0, 1, 3):
            return part(FAILED, f"the suite wrote no report (exit status {code})", output=lines)
        return judged(json.loads(file.read_text(encoding="utf-8")), code, lines)

    return run


def suite(check: CheckRun, level: int, file: Path, known: Sequence[Path], reserve: float = RESERVE) -> list[str]:
    """Return the command that runs the suite and writes its report to a file."""
    words = ["-m", "candelabra", "conformance", "--device", check.device, "--level", str(level)]
    words += [word for path in known for word in ("--resume", str(path))]
    return [*words, "--json", str(file), *check.stopping(reserve)]


def operators(names: Sequence[str]) -> list[str]:
    """Return the arguments that restrict the suite to some operators."""
    return [word for name in names for word in ("--operator", name)]


def judged(report: dict[str, Any], code: int, lines: list[str]) -> Part:
    """Return a conformance report as a part, with the first failures."""
    columns = report["columns"]
    results = [
        dict(zip(columns, [*row, *[None] * len(columns)])) for row in report["results"]
    ]  # trailing values may be missing
    failures = [
        "/".join(str(r[key]) for key in ID if r[key]) + f" {r['message'] or ''}" for r in results if r["verdict"] in BAD
    ]
    counts = ", ".join(f"{number} {name}" for name, number in report["counts"].items()) or "no case"
    remaining = sum(report.get("remaining", {}).values())
    verdict = UNFINISHED if remaining else PASSED if code == 0 else FAILED
    return part(
        verdict, f"{counts}; {report['seconds']:.0f} s" + (f"; {remaining} cases remain" if remaining else ""),
        level=report["level"], counts=report["counts"], failures=[each.splitlines()[0][:200] for each in failures[:50]],
        output=lines[-20:],
    )  # fmt: skip


def hardware(check: CheckRun) -> Part:
    """Run the tests of a real device: exchange with other libraries, streams, memory, late errors, NCCL."""
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests" / "cuda").glob("test_*on_device.py"))
    code, lines = check.runs("-m", "pytest", "-q", "-p", "no:cacheprovider", *files, limit=900.0)
    last = lines[-1] if lines else "no output"
    return part(FAILED if code else PASSED if " passed" in last else NOT_RUN, last, output=lines)


def demo(check: CheckRun) -> Part:
    """Run the demo, which learns to read digits, on the device."""
    with tempfile.TemporaryDirectory() as folder:
        saved = str(Path(folder) / "digits.safetensors")
        words = ("--device", check.device, "--epochs", str(check.epochs), "--save", saved)
        code, lines = check.runs("examples/digits.py", *words, limit=900.0)
    row = next((line for line in lines if check.device.split(":")[0] in line and "%" in line), "")
    return part(
        PASSED if code == 0 else FAILED, " ".join(row.replace("│", " ").split()) or "see the output", output=lines
    )


def benchmarks(check: CheckRun) -> Part:
    """Measure the marks, with the peer in the same run."""
    from benchmarks.accelerator.comparing import HEAD, cells

    file = check.state / "benchmarks.json"
    words = ["--device", check.device, "--peer", check.peer, "--library", check.library, "--size", check.size]
    words += [word for path in check.known(file.name) for word in ("--resume", str(path))]
    if "--resume" not in words:
        file.unlink(missing_ok=True)
    code, lines = check.runs("-m", "benchmarks.accelerator", *words, "--json", str(file), *check.stopping())
    if not file.exists() and code == 3:
        raise TimeUp(lines)
    if not file.exists():
        return part(FAILED, "; ".join(lines[-2:]) or "nothing was measured", output=lines)
    report = json.loads(file.read_text(encoding="utf-8"))
    rows, remaining = report["rows"], report["remaining"]
    held = sum(row["kept"] for row in rows)
    said_of = f"{held} of {len(rows)} marks hold, against {report['peer']}"
    return part(
        UNFINISHED if remaining else PASSED if code == 0 else FAILED,
        said_of + (f"; {len(remaining)} remain" if remaining else ""),
        peer=report["peer"], measured=rows, head=[*HEAD, "holds"], output=lines[-20:],
        failures=[] if held == len(rows) else [f"{row['name']} does not hold" for row in rows if not row["kept"]],
        rows=[[*cells(row), "yes" if row["kept"] else "no"] for row in rows],
    )  # fmt: skip


def sanitizer(check: CheckRun) -> Part:
    """Run some cases under compute-sanitizer, which detects accesses out of bounds."""
    program = sanitizer_path()
    if program is None:
        return part(NOT_RUN, f"{SANITIZER} is not installed: it comes with NVIDIA's CUDA toolkit")
    file = check.state / "sanitizer.json"
    words = [*suite(check, 1, file, check.known(file.name), SLOWLY), "--quick", "--jobs", "1", *operators(SHORT)]
    code, lines = check.output([program, *MEMCHECK, sys.executable, *words], 1800.0)
    summary = next((line for line in reversed(lines) if "ERROR SUMMARY" in line), "").strip("= ")
    if code == 3:
        return part(UNFINISHED, summary or "cases remain", output=lines)
    return part(PASSED if code == 0 else FAILED, summary or f"exit status {code}", output=lines)


def sanitizer_path() -> str | None:
    """Return the path of compute-sanitizer: on the path, in CUDA's usual folder, or in one of NVIDIA's wheels."""
    program = shutil.which(SANITIZER) or shutil.which(SANITIZER, path="/usr/local/cuda/bin")
    wheels = (path for folder in site.getsitepackages() for path in Path(folder).glob(f"nvidia/**/{SANITIZER}"))
    return program or next((str(path) for path in wheels if path.is_file() and os.access(path, os.X_OK)), None)


PARTS: dict[str, Callable[[CheckRun], Part]] = {
    "a first kernel": first,
    "demo": demo,
    "conformance, level 1 quick": conformance(1, quick=True),
    "benchmarks": benchmarks,
    "conformance, level 2": conformance(2),
    "on the device": hardware,
    "conformance, level 3": conformance(3),
    "sanitizer": sanitizer,
}
"""The parts in the order in which they run: the most informative and fastest first."""
