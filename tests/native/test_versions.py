"""The compiler's version is asked once for each binary, and kept on disk."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from candelabra_native import compiling


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Count the calls of a compiler whose version is 7, with an empty cache."""
    calls: list[str] = []

    def run(command: list[str], **_: Any) -> Any:
        calls.append(command[-1])
        return subprocess.CompletedProcess(command, 0, stdout=f"clang version {6 + len(calls)}\nmore\n", stderr="")

    monkeypatch.setattr(compiling.subprocess, "run", run)
    monkeypatch.setattr(compiling, "compiler", lambda: ("python", "-m", "ziglang", "cc"))
    monkeypatch.setenv("CANDELABRA_CACHE", str(tmp_path))
    return calls


def version() -> str:
    """Return the version as a new process would find it."""
    return compiling.version.__wrapped__()


def test_the_version_of_a_known_binary_is_read_from_disk(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another binary, or a changed one, is asked again."""
    monkeypatch.setattr(compiling, "_identity", lambda command: "first")
    assert [version(), version()] == ["clang version 7", "clang version 7"]
    monkeypatch.setattr(compiling, "_identity", lambda command: "second")
    assert version() == "clang version 8"
    assert asked == ["--version", "--version"]


def test_the_version_of_a_command_that_may_be_a_script_is_asked_each_time(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script may run another compiler tomorrow; without a cache nothing is kept either."""
    monkeypatch.setattr(compiling, "compiler", lambda: ("cc",))
    assert compiling._identity(("cc",)) == ""
    assert [version(), version()] == ["clang version 7", "clang version 8"]
    monkeypatch.setattr(compiling, "_identity", lambda command: "first")
    monkeypatch.setenv("CANDELABRA_CACHE", "0")
    assert [version(), version()] == ["clang version 9", "clang version 10"]


def test_a_binary_is_known_by_its_path_size_and_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An update of the package gives another key."""

    class Spec:
        origin = str(tmp_path / "__init__.py")

    monkeypatch.setattr(compiling.importlib.util, "find_spec", lambda name: Spec)
    command = ("python", "-m", "ziglang", "cc")
    assert compiling._identity(command) == ""
    (tmp_path / "zig").write_text("one")
    first = compiling._identity(command)
    (tmp_path / "zig").write_text("another")
    assert first
    assert compiling._identity(command) not in ("", first)
