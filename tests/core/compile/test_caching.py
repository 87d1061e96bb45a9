"""Kernels that devices have compiled, as bytes that another process loads."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import candelabra as cd
import pytest
from candelabra._plugins.loading import register
from candelabra.backend import hookimpl
from candelabra.errors import FileFormatError


class Keeping:
    """A plugin that keeps kernels in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.used: list[Path] = []

    @hookimpl
    def candelabra_kernel_cache(self) -> tuple[str, Path, Sequence[Path]] | None:
        return "keeping", self.folder, self.used


@pytest.fixture
def keeping(tmp_path: Path) -> Iterator[Keeping]:
    """A registered plugin."""
    plugin = Keeping(tmp_path / "kept")
    undo = register("keeping", plugin)
    yield plugin
    undo()


def test_used_kernels_travel(keeping: Keeping, tmp_path: Path) -> None:
    """The artifact has the files that the process has used; loading adds them, and keeps files that exist."""
    file = keeping.folder / "level" / "kernel.so"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"machine code")
    (keeping.folder / "other.so").write_bytes(b"not used")
    keeping.used = [file]
    found = cd.compiler.save_cache_artifacts()
    assert found is not None
    data, info = found
    assert info.artifacts["keeping"] == ["level/kernel.so"]
    keeping.folder = tmp_path / "elsewhere"
    loaded = cd.compiler.load_cache_artifacts(data)
    assert loaded is not None
    assert loaded.artifacts["keeping"] == ["level/kernel.so"]
    assert (tmp_path / "elsewhere" / "level" / "kernel.so").read_bytes() == b"machine code"
    (tmp_path / "elsewhere" / "level" / "kernel.so").write_bytes(b"newer")
    cd.compiler.load_cache_artifacts(data)
    assert (tmp_path / "elsewhere" / "level" / "kernel.so").read_bytes() == b"newer"


def test_kernels_of_devices_that_are_not_used_are_left_out(keeping: Keeping) -> None:
    """An artifact of another device adds nothing."""
    data = artifact({"cache": "nowhere", "path": "k", "sha256": ""}, b"")
    with pytest.raises(
        FileFormatError, match="expected files with the hashes of the manifest, got a damaged entry 'k'"
    ):
        cd.compiler.load_cache_artifacts(data)
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert cd.compiler.load_cache_artifacts(artifact({"cache": "nowhere", "path": "k", "sha256": empty}, b"")) is None


def artifact(entry: dict[str, str], data: bytes) -> bytes:
    """Return an artifact with one file."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(f"{entry['cache']}/{entry['path']}", data)
        archive.writestr("candelabra-kernels.json", json.dumps({"entries": [entry]}))
    return content.getvalue()


@pytest.mark.parametrize("data", [b"", b"PK", artifact({"cache": "keeping", "path": "../k", "sha256": ""}, b"")])
def test_damaged_artifacts_add_nothing(keeping: Keeping, data: bytes) -> None:
    """Other bytes, and paths that lead out of the folder, are refused."""
    with pytest.raises(FileFormatError, match=r"cannot read the artifacts of load_cache_artifacts\(\): expected"):
        cd.compiler.load_cache_artifacts(data)
    assert not keeping.folder.exists()


def test_a_fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside the block another folder is in force, and functions are traced again."""
    monkeypatch.setenv("CANDELABRA_CACHE", str(tmp_path / "usual"))
    compiled = cd.compile(lambda x: x + 1)
    x, entries = cd.ones(2), dict[str, int]()
    compiled(x)
    compiled(x)
    with cd._inductor.utils.fresh_inductor_cache(entries, dir=str(tmp_path), delete=False):
        assert not compiled.programs
        folder = Path(os.environ["CANDELABRA_CACHE"])
        assert folder.parent == tmp_path
        (folder / "k.so").write_bytes(b"123")
        compiled(x)
        assert len(compiled.programs) == 1
    assert entries == {"k.so": 3}
    assert folder.exists()
    assert not compiled.programs
    assert os.environ["CANDELABRA_CACHE"] == str(tmp_path / "usual")
    monkeypatch.delenv("CANDELABRA_CACHE")
    with cd.compiler.fresh_cache(dir=str(tmp_path)):
        folder = Path(os.environ["CANDELABRA_CACHE"])
    assert not folder.exists()
    assert "CANDELABRA_CACHE" not in os.environ
