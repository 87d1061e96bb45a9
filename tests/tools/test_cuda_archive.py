"""Machine code for a GPU of another machine: compiled, packed, and found in that machine's kernel cache."""

from __future__ import annotations

import importlib
import io
import lzma
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from candelabra._plugins import registry
from candelabra_clike.cache import ProgramCache
from candelabra_cuda import nvrtc
from candelabra_cuda.compiling import Compiler

ROOT = Path(__file__).resolve().parents[2]
Load = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def tools() -> Iterator[Load]:
    """Return a function that imports modules of ``tools`` by name."""
    with pytest.MonkeyPatch.context() as changed:
        changed.syspath_prepend(str(ROOT / "tools"))
        yield importlib.import_module


@pytest.fixture(scope="module")
def packed(tools: Load, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an archive of one operator's kernels."""
    folder = tmp_path_factory.mktemp("kernels")
    words = ["--operator", "trunc", "--capability", "90", "--folder", str(folder / "kept")]
    assert tools("cuda_kernels").main([*words, "--archive", str(folder / "kernels.tar.xz")]) == 0
    return folder / "kernels.tar.xz"


def test_a_machine_that_unpacks_it_compiles_nothing(
    tools: Load, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every kernel of the operator is found, in every dtype and layout of the suite, and NVRTC is not loaded."""
    backend = tools("cuda_recording").RecordingBackend()
    remove = registry.add_backend(backend)
    try:
        sources = tools("cuda_needed").needed(backend, ["trunc"])
    finally:
        remove()
    cache = ProgramCache(tmp_path)
    assert tools("cuda_archive").unpack(packed, cache) == len(sources) > 20
    monkeypatch.setattr(nvrtc, "load", lambda: pytest.fail("NVRTC was asked"))
    compiler = Compiler("90", None, cache)
    assert {compiler.machine_code(source)[:4] for source in sources} == {b"\x7fELF"}
    assert compiler.built == 0


def test_what_is_used_and_what_is_compiled_is_counted(tools: Load, packed: Path, tmp_path: Path) -> None:
    """Each kernel is counted once, by its name, between two readings."""
    archive = tools("cuda_archive")
    prebuilt, cache = ProgramCache(tmp_path / "prebuilt"), ProgramCache(tmp_path / "programs")
    assert archive.used(cache, None) == archive.Use()
    archive.unpack(packed, prebuilt)
    before = archive.used(cache, prebuilt)
    assert before == archive.Use()
    first, second = sorted(path.name for path in archive.entries(prebuilt))[:2]
    code = prebuilt.read(first)
    assert code is not None
    cache.write(second, code)
    found = archive.used(cache, prebuilt)
    assert found == archive.Use(frozenset({first}), frozenset({second}))
    assert found.since(found) == archive.Use()
    assert archive.kernel_name(cache, second).startswith("trunc_")
    assert archive.kernel_name(cache, first) == "?"


def test_an_archive_is_unpacked_once(tools: Load, packed: Path, tmp_path: Path) -> None:
    """Entries that were removed as invalid are not restored; another archive is unpacked over the first."""
    archive = tools("cuda_archive")
    cache = ProgramCache(tmp_path)
    count = archive.unpack(packed, cache)
    (path, *_) = archive.entries(cache)
    cache.forget(path.name)
    assert archive.unpack(packed, cache) == count
    assert not path.exists()
    other = tmp_path / "other.tar.xz"
    other.write_bytes(packed.read_bytes() + lzma.compress(b""))
    assert archive.unpack(other, cache) == count
    assert path.exists()


def test_making_it_again_compiles_nothing(
    tools: Load, packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Machine code is cached next to the archive for the NVRTC that compiled it, and the archive is reproducible."""
    words = ["--operator", "trunc", "--capability", "90", "--folder", str(packed.parent / "kept")]
    again = tmp_path / "again.tar.xz"
    assert tools("cuda_kernels").main([*words, "--archive", str(again)]) == 0
    assert " 0 of them compiled" in capsys.readouterr().out
    assert again.read_bytes() == packed.read_bytes()


def test_an_archive_that_is_too_large_is_an_error(
    tools: Load, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its size is limited, because it is copied to the other machine."""
    monkeypatch.setattr(tools("cuda_kernels"), "LARGEST", 1 << 10)
    words = ["--operator", "trunc", "--capability", "90", "--folder", str(packed.parent / "kept")]
    assert tools("cuda_kernels").main([*words, "--archive", str(tmp_path / "large.tar.xz")]) == 1
    assert "large.tar.xz has more than 0 MiB" in capsys.readouterr().err


def test_a_kernel_that_does_not_compile_makes_no_archive(
    tools: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error has the compiler's message."""
    words = ["--operator", "trunc", "--capability", "10", "--folder", str(tmp_path)]
    assert tools("cuda_kernels").main([*words, "--archive", str(tmp_path / "old.tar.xz")]) == 1
    assert "gpu-architecture" in capsys.readouterr().err
    assert not (tmp_path / "old.tar.xz").exists()


def test_an_archive_is_of_one_capability(tools: Load, capsys: pytest.CaptureFixture[str]) -> None:
    """Machine code for another capability would be useless."""
    with pytest.raises(SystemExit, match="2"):
        tools("cuda_kernels").main(["--archive", "any.tar.xz"])
    assert "an archive is of one --capability" in capsys.readouterr().err


def tar(file: Path, name: str) -> Path:
    """Write an archive with one member of that name."""
    with tarfile.open(file, "w:xz") as archive:
        member = tarfile.TarInfo(name)
        member.size = 3
        archive.addfile(member, io.BytesIO(b"abc"))
    return file


def test_what_is_no_archive_is_refused(tools: Load, tmp_path: Path) -> None:
    """No file is written outside the cache, whatever names an archive contains."""
    archive = tools("cuda_archive")
    cache = ProgramCache(tmp_path / "cache")
    for name in ("../outside", "ab/cd", "/etc/outside"):
        with pytest.raises(archive.ArchiveError, match=r"bad.tar.xz: '.*' is not an entry of the kernel cache"):
            archive.unpack(tar(tmp_path / "bad.tar.xz", name), cache)
    (tmp_path / "text.tar.xz").write_text("no archive")
    with pytest.raises(archive.ArchiveError, match=r"text.tar.xz is not an archive of `make cuda-kernels`"):
        archive.unpack(tmp_path / "text.tar.xz", cache)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.tar.xz", "text.tar.xz"]
