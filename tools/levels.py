"""Run the numerical tests again as on older processors, so that one machine covers several.

``python tools/levels.py`` (``make test-levels``) runs

- the tests that depend on NumPy's arithmetic once for each lower level of instructions that NumPy offers here: NumPy
  has other code for ``exp`` with AVX-512 than without it, OpenBLAS other products of matrices, and candelabra-native
  other kernels;
- the tests of OpenCL with PoCL as on a processor without fused multiply-add, and with Intel's driver, where it is
  installed, as on processors with AVX2 and with SSE 4.2.

``--opencl`` runs the latter only, ``--list`` only prints the runs. Other arguments go to pytest.
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
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

import numpy as np
from candelabra_clike.cache import cache_folder
from candelabra_opencl.discovery import VARIABLE

REFERENCE = "tests/conformance/test_reference.py::test_the_numbers_of_the_reference_are_right"
NUMERICAL = [
    "tests/cpu", "tests/operators", "tests/core/operators", "tests/nn", "tests/core/autograd", "tests/core/random",
    REFERENCE,
]  # fmt: skip
NOT_NUMERICAL = [
    "tests/core/operators/indexing", "tests/core/operators/sets", "tests/core/operators/shapes", "tests/nn/data",
    "tests/nn/compile", "tests/nn/modules", "tests/nn/parallel", "tests/nn/utils",
]  # fmt: skip
"""Folders in those of :data:`NUMERICAL` whose tests are about layouts, processes and modules, not numbers."""
FUNCTIONS = ["tests/cpu", REFERENCE]
"""Those that call every function of NumPy's that the reference uses."""
OPENCL = ["-m", "rounding and not variant and not thorough", "tests/clike", "tests/opencl"]
"""The tests that say of themselves that they depend on how a processor rounds, on the device's own forms of kernels:
`make test` runs the variants, which no processor uses.
"""


class Core(NamedTuple):
    """OpenBLAS's name of an x86 processor, NumPy's names, new and old, of its instruction sets, and the processor level
    of candelabra-native.
    """

    name: str
    levels: frozenset[str]
    native: str


CORES = (
    Core("SkylakeX", frozenset({"X86_V4", "AVX512_SKX"}), "x86_64_v4"),
    Core("Haswell", frozenset({"X86_V3", "AVX2"}), "x86_64_v3"),
    Core("Nehalem", frozenset(), "0"),
)
"""The processors, the newest first. The last has neither an optional instruction set in NumPy nor native kernels."""


class Run(NamedTuple):
    """A run of pytest with these arguments."""

    title: str
    environment: dict[str, str]
    tests: list[str]


def compiled_levels() -> frozenset[str]:
    """Return the levels for which NumPy has code of its own for some function of numbers. Functions of float16 do not
    count: the kernels compute half types in float32.
    """
    functions = np.lib.introspect.opt_func_info().values()
    loops = [loop for signatures in functions for types, loop in signatures.items() if "e" not in types]
    return frozenset(level for loop in loops for level in loop["available"].split())


def numpy_levels(
    baseline: Sequence[str], available: Sequence[str], machine: str, compiled: Container[str]
) -> Iterator[Run]:
    """Yield a run for each level below this machine's, the highest first.

    ``available`` are NumPy's levels in ascending order. One that is not in ``compiled`` computes what the next lower
    one computes (of AVX512_ICL, NumPy uses only what sorts), so there is no run for it, nor for one above which none is
    compiled: it computes what the machine itself computes. One at which OpenBLAS and native kernels are the machine's
    own runs only the tests of NumPy's functions.
    """
    own = _core([*baseline, *available])
    for i in reversed(range(len(available))):
        left, disabled = [*baseline, *available[:i]], available[i:]
        if (i and available[i - 1] not in compiled) or not any(level in compiled for level in disabled):
            continue
        environment, tests = {"NPY_DISABLE_CPU_FEATURES": " ".join(disabled)}, NUMERICAL
        if machine in ("x86_64", "AMD64"):
            core = _core(left)
            environment |= {"OPENBLAS_CORETYPE": core.name, "CANDELABRA_NATIVE_LEVEL": core.native}
            tests = FUNCTIONS if core == own else NUMERICAL
        yield Run(f"NumPy with {left[-1] if left else 'no level'}", environment, tests)


def _core(levels: Sequence[str]) -> Core:
    """Return the newest processor all of whose features are among NumPy's levels."""
    return next(core for core in CORES if not core.levels or core.levels & set(levels))


@contextmanager
def pocl_without_fma() -> Iterator[Run | None]:
    """Yield a run with PoCL's wheel as on a processor without fused multiply-add, or None if the wheel is not
    installed.

    PoCL 3.0 asks the processor for its name, and no variable overrides the answer. Of its effects, only whether ``a * b
    + c`` is rounded once changes results. So the driver is linked into a folder where the header of all programs
    forbids that.
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
        for library in (theirs / "share/pocl").glob("kernel-*.bc"):
            (data / library.name).symlink_to(library)
        shutil.copytree(theirs / "share/pocl/include", data / "include")
        with (data / "include" / "_kernel.h").open("a") as header:
            header.write("\n#pragma OPENCL FP_CONTRACT OFF\n")
        vendors = folder / "vendors"
        vendors.mkdir()
        (vendors / "pocl.icd").write_text(f"{beside / driver.name}\n")
        environment = {"OCL_ICD_VENDORS": f"{vendors}{os.sep}", "CANDELABRA_CACHE": kept("no-fma")}
        yield Run("PoCL without fused multiply-add", environment, OPENCL)


@contextmanager
def intel_names(available: Sequence[str]) -> Iterator[list[Run]]:
    """Yield a list with a run for each older processor that Intel's driver supports, empty without the driver.

    The driver's variable accepts the names of processors, whose mathematical functions have different errors.
    """
    try:
        distribution("intel-opencl-rt")
    except PackageNotFoundError:
        yield []
        return
    from opencl_drivers import drivers

    (driver,) = drivers("Intel")
    names = ["corei7", *(["core-avx2"] if CORES[0].levels & set(available) else [])]
    yield [
        Run(
            f"Intel's OpenCL for {name}",
            {"CL_CONFIG_CPU_TARGET_ARCH": name, VARIABLE: driver, "CANDELABRA_CACHE": kept(name)},
            OPENCL,
        )
        for name in reversed(names)
    ]


def kept(processor: str) -> str:
    """Return the folder of the kernels compiled for a processor, which the next run reads.

    Kernels are cached by driver and device, whose names are equal for all processors, so each has a folder of its own.
    """
    return str(cache_folder("levels") / processor)


def main() -> int:
    """Return the worst of the exit codes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--opencl", action="store_true")
    arguments, rest = parser.parse_known_args()
    simd = np.show_config("dicts")["SIMD Extensions"]  # type: ignore[index]
    baseline, available = simd["baseline"], simd.get("found", [])
    worst = 0
    ignored = [f"--ignore={folder}" for folder in NOT_NUMERICAL]
    with pocl_without_fma() as pocl, intel_names(available) as intel:
        numpy = [] if arguments.opencl else numpy_levels(baseline, available, platform.machine(), compiled_levels())
        runs = [*numpy, *([pocl] if pocl else []), *intel]
        for run in runs:
            print(f"== {run.title} ==", flush=True)
            if not arguments.list:
                options = ["-q", "-n", "2", "--dist", "worksteal", *ignored]
                command = [sys.executable, "-m", "pytest", *options, *run.tests, *rest]
                worst = max(
                    worst, subprocess.run(command, env={**os.environ, **run.environment}, check=False).returncode
                )
    return worst


if __name__ == "__main__":
    sys.exit(main())
