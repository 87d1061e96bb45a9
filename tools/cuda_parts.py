"""The parts of ``make cuda-check``: each runs commands of its own, and says what came of them."""

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
"""The columns that make a case's id."""
MEMCHECK = ("--tool", "memcheck", "--error-exitcode", "9", "--target-processes", "all")
SHORT = ("add", "softmax", "normalize", "sum", "index_select", "scatter_add", "matmul", "conv", "sort", "cumsum")
"""Operators of a kind of kernel each, for what takes a hundred times as long."""
HANGS = 120.0
"""Seconds after which a case is taken to hang."""
RESERVE = 30.0
"""Seconds that what can stop by itself is given to do so, before the time is up and it is stopped."""
SLOWLY = 90.0
"""The same under compute-sanitizer."""
LINES = 60
"""So many of the last lines of a command's output are in the report; the whole is in the state's folder."""


class TimeUp(Exception):
    """The time of the run was up before a command ended; ``said`` are its last lines."""

    def __init__(self, said: list[str]) -> None:
        super().__init__("the time was up")
        self.said = said


@dataclass
class Given:
    """What the command line says, and where this run stands."""

    device: str
    peer: str
    library: str
    size: str
    jobs: int
    quick: bool
    epochs: int
    state: Path
    """The folder of what the next run goes on with, and of the commands' whole output."""
    until: float = math.inf
    """When the time is up, of ``time.monotonic``."""
    again: bool = False
    """The part is run from its beginning, whatever earlier runs found."""
    started: float = 0.0
    """When the run began, of ``time.time``."""
    log: str = "output"
    """The name of the file for the part's output."""

    def left(self) -> float:
        """Seconds."""
        return self.until - time.monotonic()

    def runs(
        self, *words: str, limit: float = 3600.0, variables: Mapping[str, str] | None = None
    ) -> tuple[int, list[str]]:
        """As :func:`output`, of a Python command. Raises :class:`TimeUp`."""
        return self.output([sys.executable, *words], limit, variables)

    def output(
        self, command: Sequence[str], limit: float, variables: Mapping[str, str] | None = None
    ) -> tuple[int, list[str]]:
        """As the function, for no longer than there is time. Raises :class:`TimeUp`."""
        left = self.left()
        code, said = output(command, min(limit, max(left, 0.0)), self.state / f"{self.log}.log", variables)
        if code == 124 and left < limit:
            raise TimeUp(said)
        return code, said

    def stopping(self, reserve: float = RESERVE) -> list[str]:
        """The words that let a command stop by itself before the time is up."""
        return [] if self.until == math.inf else ["--minutes", f"{max(self.left() - reserve, 0.0) / 60:.3f}"]

    def known(self, pattern: str) -> list[Path]:
        """The files of the state that a part goes on with, the last one last."""
        files = sorted((path.stat().st_mtime, path) for path in self.state.glob(pattern))
        return [path for time, path in files if not self.again or time >= self.started]


def output(
    command: Sequence[str], limit: float, log: Path, variables: Mapping[str, str] | None = None
) -> tuple[int, list[str]]:
    """(exit status, the last lines) of a command in the repository's root, which writes into a file.

    124 where it took more than ``limit`` seconds. No process that it has started outlives it.
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
    said = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LINES:]
    return code, [*said, f"stopped after {limit:.0f} s"] if code == 124 else said


# -- the parts --------------------------------------------------------------------------------------------------------
def first(given: Given) -> Part:
    """A kernel, and each of the libraries below: where these do not work, nothing else will."""
    code, said = given.runs("tools/cuda_first.py", given.device, limit=180.0, variables={"CANDELABRA_BLOCKING": "1"})
    wrong = [line for line in said if ": wrong" in line]
    right = sum(": right" in line for line in said)
    words = "; ".join([f"{right} calls are right", *wrong]) if code in (0, 1, 2) else f"exit status {code}"
    return part(PASSED if code == 0 else FAILED, words, output=said, fatal=code not in (0, 1))


def conformance(level: int, quick: bool = False) -> Callable[[Given], Part]:
    """The suite up to a level, less what it has found before."""

    def run(given: Given) -> Part:
        file = given.state / f"conformance-{level}{'-quick' if quick else ''}.json"
        words = [*suite(given, level, file, given.known("conformance-*.json")), "--jobs", str(given.jobs)]
        words += ["--timeout", f"{HANGS:g}"]
        if quick or given.quick:
            words.append("--quick")
        words += operators(SHORT) if given.quick else []
        # The oracle computes on the host: as many threads for each process would stand in each other's way.
        alone = {} if given.jobs == 1 else {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        code, said = given.runs(*words, variables=alone)
        if code not in (0, 1, 3):
            return part(FAILED, f"the suite wrote no report (exit status {code})", output=said)
        return judged(json.loads(file.read_text(encoding="utf-8")), code, said)

    return run


def suite(given: Given, level: int, file: Path, known: Sequence[Path], reserve: float = RESERVE) -> list[str]:
    """The command that runs the suite, into a file."""
    words = ["-m", "candelabra", "conformance", "--device", given.device, "--level", str(level)]
    words += [word for path in known for word in ("--resume", str(path))]
    return [*words, "--json", str(file), *given.stopping(reserve)]


def operators(names: Sequence[str]) -> list[str]:
    """The words that restrict the suite to some."""
    return [word for name in names for word in ("--operator", name)]


def judged(found: dict[str, Any], code: int, said: list[str]) -> Part:
    """A conformance report as a part, with what failed first."""
    columns = found["columns"]
    results = [dict(zip(columns, [*row, *[None] * len(columns)])) for row in found["results"]]  # ends may be missing
    failures = [
        "/".join(str(r[key]) for key in ID if r[key]) + f" {r['message'] or ''}" for r in results if r["verdict"] in BAD
    ]
    counts = ", ".join(f"{number} {name}" for name, number in found["counts"].items()) or "no case"
    remaining = sum(found.get("remaining", {}).values())
    verdict = UNFINISHED if remaining else PASSED if code == 0 else FAILED
    return part(
        verdict, f"{counts}; {found['seconds']:.0f} s" + (f"; {remaining} cases remain" if remaining else ""),
        level=found["level"], counts=found["counts"], failures=[each.splitlines()[0][:200] for each in failures[:50]],
        output=said[-20:],
    )  # fmt: skip


def hardware(given: Given) -> Part:
    """The tests that are about a real device: exchange with other libraries, streams, memory, late errors."""
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/cuda/test_on_device.py")
    code, said = given.runs(*words, limit=900.0)
    last = said[-1] if said else "no output"
    return part(FAILED if code else PASSED if " passed" in last else NOT_RUN, last, output=said)


def demo(given: Given) -> Part:
    """The demo learns to read digits on the device."""
    with tempfile.TemporaryDirectory() as folder:
        saved = str(Path(folder) / "digits.safetensors")
        words = ("--device", given.device, "--epochs", str(given.epochs), "--save", saved)
        code, said = given.runs("examples/digits.py", *words, limit=900.0)
    row = next((line for line in said if given.device.split(":")[0] in line and "%" in line), "")
    return part(
        PASSED if code == 0 else FAILED, " ".join(row.replace("│", " ").split()) or "see the output", output=said
    )


def benchmarks(given: Given) -> Part:
    """The marks, against the peer in the same run."""
    from benchmarks.accelerator.comparing import HEAD, cells

    file = given.state / "benchmarks.json"
    words = ["--device", given.device, "--peer", given.peer, "--library", given.library, "--size", given.size]
    words += [word for path in given.known(file.name) for word in ("--resume", str(path))]
    if "--resume" not in words:
        file.unlink(missing_ok=True)
    code, said = given.runs("-m", "benchmarks.accelerator", *words, "--json", str(file), *given.stopping())
    if not file.exists() and code == 3:
        raise TimeUp(said)
    if not file.exists():
        return part(FAILED, "; ".join(said[-2:]) or "nothing was measured", output=said)
    found = json.loads(file.read_text(encoding="utf-8"))
    rows, remaining = found["rows"], found["remaining"]
    held = sum(row["kept"] for row in rows)
    said_of = f"{held} of {len(rows)} marks hold, against {found['peer']}"
    return part(
        UNFINISHED if remaining else PASSED if code == 0 else FAILED,
        said_of + (f"; {len(remaining)} remain" if remaining else ""),
        peer=found["peer"], measured=rows, head=[*HEAD, "holds"], output=said[-20:],
        failures=[] if held == len(rows) else [f"{row['name']} does not hold" for row in rows if not row["kept"]],
        rows=[[*cells(row), "yes" if row["kept"] else "no"] for row in rows],
    )  # fmt: skip


def sanitizer(given: Given) -> Part:
    """A short run under compute-sanitizer: accesses out of bounds that no value shows."""
    found = sanitizer_path()
    if found is None:
        return part(NOT_RUN, f"{SANITIZER} is not installed: it comes with NVIDIA's CUDA toolkit")
    file = given.state / "sanitizer.json"
    words = [*suite(given, 1, file, given.known(file.name), SLOWLY), "--quick", "--jobs", "1", *operators(SHORT)]
    code, said = given.output([found, *MEMCHECK, sys.executable, *words], 1800.0)
    summary = next((line for line in reversed(said) if "ERROR SUMMARY" in line), "").strip("= ")
    if code == 3:
        return part(UNFINISHED, summary or "cases remain", output=said)
    return part(PASSED if code == 0 else FAILED, summary or f"exit status {code}", output=said)


def sanitizer_path() -> str | None:
    """Where it is: on the path, in CUDA's usual folder, or in one of NVIDIA's wheels."""
    found = shutil.which(SANITIZER) or shutil.which(SANITIZER, path="/usr/local/cuda/bin")
    wheels = (path for folder in site.getsitepackages() for path in Path(folder).glob(f"nvidia/**/{SANITIZER}"))
    return found or next((str(path) for path in wheels if path.is_file() and os.access(path, os.X_OK)), None)


PARTS: dict[str, Callable[[Given], Part]] = {
    "a first kernel": first,
    "demo": demo,
    "conformance, level 1 quick": conformance(1, quick=True),
    "benchmarks": benchmarks,
    "conformance, level 2": conformance(2),
    "on the device": hardware,
    "conformance, level 3": conformance(3),
    "sanitizer": sanitizer,
}
"""In the order in which they run: what says most in the least time comes first."""
