"""What git tracks: sources and small data, nothing that was downloaded, built or generated."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 230_000
"""The size of a tracked file, in bytes: reports are pages to read, and raw results stay outside git."""


def git(*arguments: str) -> list[Path]:
    """Return the files that a command of git lists."""
    command = ["git", "-C", str(ROOT), *arguments, "-z"]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    return [ROOT / name for name in completed.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """Return all tracked files. An unpacked sdist has none, and nothing to check."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone: there are no tracked files")
    return git("ls-files")


def is_binary(path: Path) -> bool:
    """Return whether git would show no differences of a file."""
    with path.open("rb") as file:
        return b"\0" in file.read(8192)


def test_binary_files_are_data(tracked: list[Path]) -> None:
    """A binary file is in a folder ``data``, so no wheel, archive or library gets into the repository unnoticed."""
    assert [str(path.relative_to(ROOT)) for path in tracked if is_binary(path) and path.parent.name != "data"] == []


def test_data_are_no_packages(tracked: list[Path]) -> None:
    """No folder of data holds a package or a library."""
    built = {".whl", ".egg", ".zip", ".so", ".dll", ".dylib", ".pyc"}
    assert [str(path.relative_to(ROOT)) for path in tracked if path.suffix in built] == []


def test_files_are_small(tracked: list[Path]) -> None:
    """No tracked file is larger than the limit."""
    assert {str(path.relative_to(ROOT)) for path in tracked if path.stat().st_size > LIMIT} == set()


def test_ignored_files_are_not_tracked(tracked: list[Path]) -> None:
    """What .gitignore names (the index of public names, the stubs, environments, compiled kernels) is not tracked."""
    assert tracked
    assert [
        str(path.relative_to(ROOT)) for path in git("ls-files", "--cached", "--ignored", "--exclude-standard")
    ] == []
