"""Runs with lower processor levels on one machine: the settings that they change take effect in the tests."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import levels

FOUND = ["X86_V3", "X86_V4", "AVX512_ICL"]
FUSED = """
import pyopencl as cl
import numpy as np
from candelabra_opencl.discovery import find

(device,) = [one.device for one in find() if "PoCL" in one.device.version][:1]
context = cl.Context([device])
queue = cl.CommandQueue(context)
source = "kernel void f(global const double *x, global double *y) { y[0] = x[0] * x[0] - x[1]; }"
program = cl.Program(context, source).build(cache_dir=False)
x = np.array([1 + 2.0**-30, 1 + 2.0**-29])
given, made = (cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=a) for a in (x, x.copy()))
program.f(queue, (1,), None, given, made)
cl.enqueue_copy(queue, x, made)
print(x[0] * 2.0**60)
"""
"""Prints 1 if product and difference are rounded together, and 0 if the product is rounded separately."""


def output(program: str, environment: dict[str, str]) -> str:
    """Return the output of a program in an environment."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_each_level_disables_what_is_above_it() -> None:
    """The highest level is disabled first, down to NumPy's baseline; OpenBLAS and native kernels follow."""
    runs = list(levels.numpy_levels(["X86_V2"], FOUND, "x86_64", FOUND))
    assert [run.title for run in runs] == ["NumPy with X86_V4", "NumPy with X86_V3", "NumPy with X86_V2"]
    assert [run.environment["NPY_DISABLE_CPU_FEATURES"] for run in runs] == [
        "AVX512_ICL", "X86_V4 AVX512_ICL", "X86_V3 X86_V4 AVX512_ICL",
    ]  # fmt: skip
    assert [run.environment["OPENBLAS_CORETYPE"] for run in runs] == ["SkylakeX", "Haswell", "Nehalem"]
    assert [run.environment["CANDELABRA_NATIVE_LEVEL"] for run in runs] == ["x86_64_v4", "x86_64_v3", "0"]
    assert [run.tests for run in runs] == [levels.FUNCTIONS, levels.NUMERICAL, levels.NUMERICAL]
    assert set(levels.FUNCTIONS) <= set(levels.NUMERICAL)


def test_a_level_that_changes_no_number_is_left_out() -> None:
    """No loop of NumPy's is compiled for it, so the next lower level has its results, or for none above it, so that the
    machine itself has them.
    """
    for compiled, titles in (
        (("X86_V3", "AVX512_ICL"), ["NumPy with X86_V3", "NumPy with X86_V2"]),
        (("X86_V3", "X86_V4"), ["NumPy with X86_V3", "NumPy with X86_V2"]),
        (("X86_V3",), ["NumPy with X86_V2"]),
        ((), []),
    ):
        assert [run.title for run in levels.numpy_levels(["X86_V2"], FOUND, "x86_64", compiled)] == titles
    assert not {"AVX512_ICL", "AVX512_SPR", "no such level"} & levels.compiled_levels()
    if platform.machine() == "x86_64":
        assert {"X86_V3", "X86_V4"} <= levels.compiled_levels()


def test_other_processors_have_levels_of_other_names() -> None:
    """OpenBLAS selects its kernels there; a machine without features above the baseline has no lower level."""
    (run,) = levels.numpy_levels(["NEON"], ["ASIMDHP"], "aarch64", ["ASIMDHP"])
    assert run.environment == {"NPY_DISABLE_CPU_FEATURES": "ASIMDHP"}
    assert list(levels.numpy_levels(["X86_V2"], [], "x86_64", [])) == []


def test_numpy_does_without_what_is_disabled() -> None:
    """This holds on this machine for each of its levels."""
    simd = np.show_config("dicts")["SIMD Extensions"]  # type: ignore[index]
    for i, run in enumerate(levels.numpy_levels(simd["baseline"], simd.get("found", []), "", simd.get("found", []))):
        program = "import numpy as np; print(len(np.show_config('dicts')['SIMD Extensions'].get('found', [])))"
        assert output(program, run.environment) == str(len(simd["found"]) - i - 1)


def test_every_test_that_is_run_again_exists() -> None:
    """A path that moved would make pytest run nothing, or fail on the first machine that has lower levels."""
    root = Path(__file__).resolve().parents[2]
    for path in (*levels.NUMERICAL, *levels.NOT_NUMERICAL, *levels.OPENCL[2:]):
        file, _, name = path.partition("::")
        assert (root / file).exists(), path
        assert not name or f"def {name}(" in (root / file).read_text(), path


def test_pocl_computes_as_without_fused_multiply_add() -> None:
    """A product and a sum are rounded separately, whatever this processor supports."""
    pytest.importorskip("pocl_binary_distribution", reason="PoCL's wheel is for Linux on x86-64")
    with levels.pocl_without_fma() as run:
        assert run is not None
        assert run.tests == levels.OPENCL
        assert output(FUSED, run.environment) == "0.0"


def test_without_the_wheel_of_pocl_there_is_no_such_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is linked, and NumPy's levels still run."""
    monkeypatch.setattr(levels.importlib.util, "find_spec", lambda name: None)
    with levels.pocl_without_fma() as run:
        assert run is None


@pytest.mark.parametrize(
    ("features", "names"), [(["X86_V3", "X86_V4"], ["core-avx2", "corei7"]), (["AVX2"], ["corei7"])]
)
def test_intels_driver_is_run_for_older_processors(
    features: list[str], names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are older than this one; each has its own cache, since compiled kernels do not record their processor."""
    monkeypatch.setattr(levels, "distribution", lambda name: name)
    monkeypatch.setattr("opencl_drivers.drivers", lambda words: [f"{words} driver"])
    with levels.intel_names(features) as runs:
        assert [run.environment["CL_CONFIG_CPU_TARGET_ARCH"] for run in runs] == names
        assert {run.environment[levels.VARIABLE] for run in runs} == {"Intel driver"}
        assert len({run.environment["CANDELABRA_CACHE"] for run in runs}) == len(names)


def test_without_intels_driver_there_are_no_such_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a large download in a separate environment."""

    def missing(name: str) -> None:
        raise levels.PackageNotFoundError(name)

    monkeypatch.setattr(levels, "distribution", missing)
    with levels.intel_names(FOUND) as runs:
        assert runs == []


def test_the_worst_exit_code_is_the_tools(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One failing level fails the whole run; all other arguments are pytest's."""
    commands = []

    def call(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, int(len(commands) == 1))

    monkeypatch.setattr(levels.subprocess, "run", call)
    monkeypatch.setattr(
        levels.np, "show_config", lambda mode: {"SIMD Extensions": {"baseline": ["a"], "found": ["b", "c"]}}
    )
    monkeypatch.setattr(levels, "compiled_levels", lambda: {"b", "c"})
    monkeypatch.setattr(sys, "argv", ["levels.py", "-k", "exp"])
    assert levels.main() == 1
    assert all(command[-2:] == ["-k", "exp"] for command in commands)
    assert capsys.readouterr().out.startswith("== NumPy with b ==\n== NumPy with a ==\n")
    monkeypatch.setattr(sys, "argv", ["levels.py", "--list", "--opencl"])
    commands.clear()
    assert levels.main() == 0
    assert commands == []
    assert "NumPy" not in capsys.readouterr().out
