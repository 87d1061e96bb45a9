"""Run the numerical tests again as on older processors, so that one machine stands for several.

``python tools/levels.py`` (``make test-levels``) runs

- the tests that depend on NumPy's arithmetic once for each lower level of instructions that NumPy offers here: NumPy
  has other code for ``exp`` with AVX-512 than without it, and OpenBLAS other products of matrices;
- the tests of OpenCL with PoCL as on a processor without fused multiply-add.

``--list`` only prints the runs. Other arguments go to pytest.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

NUMERICAL = [
    "tests/cpu", "tests/operators", "tests/nn", "tests/core/autograd", "tests/core/random",
    "tests/core/test_sorting.py", "tests/conformance/test_reference.py",
]  # fmt: skip
OPENCL = ["tests/clike", "tests/opencl"]
CORES = (("SkylakeX", {"X86_V4", "AVX512_SKX"}), ("Haswell", {"X86_V3", "AVX2"}), ("Nehalem", set[str]()))
"""OpenBLAS's names of x86 processors, best first, with the levels that they need, by NumPy's new or old names."""


class Run(NamedTuple):
    """A run of pytest."""

    title: str
    environment: dict[str, str]
    tests: list[str]


def numpy_levels(baseline: Sequence[str], found: Sequence[str], machine: str) -> Iterator[Run]:
    """A run for each level below this machine's, the highest first: ``found`` are NumPy's levels, in their order."""
    for i in reversed(range(len(found))):
        left, disabled = [*baseline, *found[:i]], found[i:]
        environment = {"NPY_DISABLE_CPU_FEATURES": " ".join(disabled)}
        if machine in ("x86_64", "AMD64"):
            environment["OPENBLAS_CORETYPE"] = next(core for core, needs in CORES if not needs or needs & set(left))
        yield Run(f"NumPy with {left[-1] if left else 'no level'}", environment, NUMERICAL)


@contextmanager
def pocl_without_fma() -> Iterator[Run | None]:
    """A run with PoCL's wheel as on a processor without fused multiply-add; None where the wheel is not installed.

    PoCL 3.0 asks the processor for its name, and no variable overrides the answer. The name decides which of the
    kernel libraries beside the driver is taken, and whether ``a * b + c`` is rounded once. So the driver is linked into
    a folder where each library is the one for SSE2, and where the header of all programs forbids contraction.
    """
    wheel, pyopencl = (importlib.util.find_spec(name) for name in ("pocl_binary_distribution", "pyopencl"))
    if wheel is None or wheel.origin is None or pyopencl is None or pyopencl.origin is None:
        yield None
        return
    theirs = Path(wheel.origin).parent / ".libs"
    (driver,) = (Path(pyopencl.origin).parent / ".libs").glob("libpocl*.so")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        beside, data = (folder / part for part in ("pyopencl/.libs", "pocl_binary_distribution/.libs/share/pocl"))
        beside.mkdir(parents=True)
        data.mkdir(parents=True)
        (beside / driver.name).symlink_to(driver)
        for library in theirs.glob("lib*"):
            (data.parents[1] / library.name).symlink_to(library)
        (lowest,) = (theirs / "share/pocl").glob("kernel-*-sse2.bc")
        for library in (theirs / "share/pocl").glob("kernel-*.bc"):
            (data / library.name).symlink_to(lowest)
        shutil.copytree(theirs / "share/pocl/include", data / "include")
        with (data / "include" / "_kernel.h").open("a") as header:
            header.write("\n#pragma OPENCL FP_CONTRACT OFF\n")
        vendors = folder / "vendors"
        vendors.mkdir()
        (vendors / "pocl.icd").write_text(f"{beside / driver.name}\n")
        environment = {"OCL_ICD_VENDORS": f"{vendors}{os.sep}", "CANDELABRA_CACHE": str(folder / "cache")}
        yield Run("PoCL without fused multiply-add", environment, OPENCL)


def main() -> int:
    """The worst of the exit codes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    arguments, rest = parser.parse_known_args()
    simd = np.show_config("dicts")["SIMD Extensions"]  # type: ignore[index]
    worst = 0
    with pocl_without_fma() as opencl:
        runs = [
            *numpy_levels(simd["baseline"], simd.get("found", []), platform.machine()),
            *([opencl] if opencl else []),
        ]
        for run in runs:
            print(f"== {run.title} ==", flush=True)
            if not arguments.list:
                command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", *run.tests, *rest]
                worst = max(
                    worst, subprocess.run(command, env={**os.environ, **run.environment}, check=False).returncode
                )
    return worst


if __name__ == "__main__":
    sys.exit(main())
