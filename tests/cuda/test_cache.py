"""The cache of machine code on disk, shared by processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from candelabra.errors import BackendError
from candelabra_clike import CUDA, Source
from candelabra_clike.cache import ProgramCache
from candelabra_clike.source import writes
from candelabra_cuda import nvrtc
from candelabra_cuda.compiling import Compiler, cache_key, options, prebuilt_cache, prebuilt_key, usual_cache
from candelabra_cuda.engine import CudaEngine

ONE = Source("one", (writes("out", "u32"),), "out[GLOBAL_ID] = 1;")


def entries(folder: Path) -> list[Path]:
    """Return the entries of the cache."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_program_is_compiled_once_for_all_processes(tmp_path: Path) -> None:
    """Later processes load the machine code; another GPU generation has its own."""
    first, second = Compiler("90", ProgramCache(tmp_path)), Compiler("90", ProgramCache(tmp_path))
    code = first.machine_code(ONE)
    assert code[:4] == b"\x7fELF"
    assert second.machine_code(ONE) == code
    assert (first.built, second.built) == (1, 0)
    other = Compiler("80", ProgramCache(tmp_path))
    assert other.machine_code(ONE) != code
    assert len(entries(tmp_path)) == 2


def test_a_damaged_entry_is_compiled_again(tmp_path: Path) -> None:
    """A truncated entry, or one with other content, is ignored and replaced."""
    code = Compiler("90", ProgramCache(tmp_path)).machine_code(ONE)
    (folder_variable,) = entries(tmp_path)
    whole = folder_variable.read_bytes()
    for damaged in (whole[:-1], b"", whole[:-8] + bytes(8)):
        folder_variable.write_bytes(damaged)
        compiler = Compiler("90", ProgramCache(tmp_path))
        assert compiler.machine_code(ONE) == code
        assert compiler.built == 1
        assert folder_variable.read_bytes() == whole


def test_the_compiler_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer NVRTC compiles again; so do other options and another text."""
    keys = {cache_key("text", ["a"]), cache_key("text", ["b"]), cache_key("other", ["a"])}
    monkeypatch.setattr(type(nvrtc.load()), "version", lambda self: (99, 1))
    assert len(keys | {cache_key("text", ["a"])}) == 4


def test_machine_code_of_another_machine_serves_whatever_compiler_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found without loading NVRTC, and its time is updated at each use."""
    prebuilt = ProgramCache(tmp_path / "prebuilt")
    key = prebuilt_key(ONE.program(CUDA), options(ONE, "90"))
    prebuilt.write(key, b"\x7fELF of another machine")
    os.utime(prebuilt.path(key), (0, 0))
    monkeypatch.setattr(nvrtc, "load", lambda: pytest.fail("NVRTC was asked"))
    compiler = Compiler("90", ProgramCache(tmp_path / "programs"), prebuilt)
    assert compiler.machine_code(ONE) == b"\x7fELF of another machine"
    assert compiler.built == 0
    assert prebuilt.path(key).stat().st_mtime > 0
    assert not (tmp_path / "programs").exists()


def test_what_another_machine_did_not_make_is_made_here(tmp_path: Path) -> None:
    """A missing kernel or compute capability is compiled and kept in the usual folder."""
    prebuilt = ProgramCache(tmp_path / "prebuilt")
    prebuilt.write(prebuilt_key(ONE.program(CUDA), options(ONE, "80")), b"\x7fELF of another machine")
    for built in (1, 0):
        compiler = Compiler("90", ProgramCache(tmp_path / "programs"), prebuilt)
        assert b"another machine" not in compiler.machine_code(ONE)
        assert compiler.built == built


SHARING = """
import sys
from pathlib import Path
from candelabra_clike import Source
from candelabra_clike.cache import ProgramCache
from candelabra_clike.source import writes
from candelabra_cuda.compiling import Compiler
compiler = Compiler("90", ProgramCache(Path(sys.argv[1])))
for i in range(8):
    compiler.machine_code(Source(f"k{i}", (writes("out", "u32"),), f"out[GLOBAL_ID] = {i};"))
"""


def test_two_processes_share_the_folder(tmp_path: Path) -> None:
    """Two processes write the same entries at the same time, and a third one finds complete entries."""
    words = [sys.executable, "-c", SHARING, str(tmp_path)]
    running = [subprocess.Popen(words) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    assert len(entries(tmp_path)) == 8
    compiler = Compiler("90", ProgramCache(tmp_path))
    for i in range(8):
        compiler.machine_code(Source(f"k{i}", (writes("out", "u32"),), f"out[GLOBAL_ID] = {i};"))
    assert compiler.built == 0


def test_the_usual_folder_is_below_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``CANDELABRA_CACHE`` sets another folder, and 0 disables the cache."""
    monkeypatch.setenv("CANDELABRA_CACHE", str(tmp_path))
    cache, prebuilt = usual_cache(), prebuilt_cache()
    assert cache is not None
    assert prebuilt is not None
    assert cache.folder == tmp_path / "cuda" / "programs"
    assert prebuilt.folder == tmp_path / "cuda" / "prebuilt"
    monkeypatch.setenv("CANDELABRA_CACHE", "0")
    assert usual_cache() is prebuilt_cache() is None
    compiler = Compiler("90", None)
    assert compiler.rebuilt(ONE) == compiler.machine_code(ONE)
    assert compiler.built == 2


@pytest.mark.parametrize("folder_variable", ["programs", "prebuilt"])
def test_machine_code_that_the_driver_refuses_is_compiled_again(
    cupy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder_variable: str
) -> None:
    """A complete entry that this driver cannot load costs one compilation, and the program continues."""
    monkeypatch.setenv("CANDELABRA_CACHE", str(tmp_path))
    text, words = ONE.program(CUDA), options(ONE, "90")
    key = cache_key(text, words) if folder_variable == "programs" else prebuilt_key(text, words)
    ProgramCache(tmp_path / "cuda" / folder_variable).write(key, b"of another driver")
    for built in (1, 0):
        engine = CudaEngine(cupy, 0, several=False)
        engine.compile(ONE)(1, engine.allocate(4))
        assert engine.compiler.built == built
    assert len(cupy.cuda.driver.launches) == 2


def test_a_driver_that_takes_no_machine_code_is_said(
    cupy: Any, doubles: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If compiling again does not help, the error names the kernel and the compute capability."""
    monkeypatch.setenv("CANDELABRA_CACHE", str(tmp_path))
    engine = CudaEngine(cupy, 0, several=False)

    def refuses(code: bytes) -> None:
        raise doubles.CUDADriverError("CUDA_ERROR_NO_BINARY_FOR_GPU")

    monkeypatch.setattr(cupy.cuda.driver, "moduleLoadData", refuses)
    words = r"cuda:0: the driver does not take the machine code of 'one' for compute capability 90: .*NO_BINARY"
    with pytest.raises(BackendError, match=words):
        engine.compile(ONE)


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    """Computation works without the cache."""
    (tmp_path / "file").write_text("not a folder")
    compiler = Compiler("90", ProgramCache(tmp_path / "file"))
    assert compiler.machine_code(ONE)[:4] == b"\x7fELF"
    ProgramCache(tmp_path / "file").forget("no such entry")
    assert os.listdir(tmp_path) == ["file"]
