"""The folder of compiled kernels: loading one runs its code, so no other user may be able to write there."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from candelabra_clike import cache
from candelabra_clike.cache import cache_folder


@pytest.fixture(autouse=True)
def _warnings_are_new() -> Iterator[None]:
    """Forget which folders were warned about, before and after a test."""
    cache.without_cache.cache_clear()
    yield
    cache.without_cache.cache_clear()


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name a folder by the variable, and return the one of a backend in it, which does not exist yet."""
    monkeypatch.setenv("CANDELABRA_CACHE", str(tmp_path / "named"))
    return tmp_path / "named" / "native"


def mode(folder: Path) -> int:
    """Return the permission bits of a folder."""
    return stat.S_IMODE(folder.stat().st_mode)


def assert_refused(folder: Path, reason: str) -> None:
    """Check that a private folder takes the place of one, with one warning that has the reason."""
    with pytest.warns(RuntimeWarning, match=reason) as caught:
        private = cache_folder("native")
    assert "Set CANDELABRA_CACHE to a folder of your own, or to 0 to keep none" in str(caught[0].message)
    assert private != folder
    assert folder not in private.parents
    assert mode(private) == 0o700
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache_folder("native") == private


def test_the_variable_takes_precedence_over_the_users_cache_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``CANDELABRA_CACHE`` names a folder; 0 and nothing mean that of the system."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("CANDELABRA_CACHE", str(tmp_path / "named"))
    assert cache_folder("opencl") == tmp_path / "named" / "opencl"
    for setting in ("0", ""):
        monkeypatch.setenv("CANDELABRA_CACHE", setting)
        assert cache_folder("opencl") == tmp_path / "xdg" / "candelabra" / "opencl"


def test_without_variables_the_folder_is_below_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual place on Linux is ``~/.cache``."""
    for name in ("CANDELABRA_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder("opencl") == tmp_path / ".cache" / "candelabra" / "opencl"


def test_a_new_folder_is_the_users_alone(named: Path) -> None:
    """It is created with mode 0700, whatever the umask of the process is."""
    before = os.umask(0)
    try:
        assert cache_folder("native") == named
    finally:
        os.umask(before)
    assert mode(named) == 0o700
    assert named.stat().st_uid == os.geteuid()


@pytest.mark.parametrize("bits", [0o755, 0o750, 0o711, 0o500])
def test_a_folder_that_others_could_only_read_is_closed_to_them(named: Path, bits: int) -> None:
    """The folders of earlier versions have the mode of the umask; what is in them is kept."""
    named.mkdir(parents=True)
    (named / "kept").write_text("a kernel")
    named.chmod(bits)
    assert cache_folder("native") == named
    assert mode(named) == 0o700
    assert (named / "kept").read_text() == "a kernel"


@pytest.mark.parametrize("bits", [0o777, 0o1777, 0o775, 0o702])
def test_a_folder_that_others_could_write_to_is_refused(named: Path, bits: int) -> None:
    """Its files may already be theirs, so that closing it now would not help. It is left as it was."""
    named.mkdir(parents=True)
    named.chmod(bits)
    assert_refused(named, r"other users can write to '.*native', so its files may be theirs; remove it")
    assert mode(named) == bits


def test_the_folder_of_another_user_is_refused(named: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is that of an ordinary user for a program that runs as root."""
    named.mkdir(parents=True, mode=0o700)
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    assert_refused(named, r"'.*native' belongs to another user")


def test_a_folder_that_cannot_be_created_is_replaced(named: Path) -> None:
    """The reason is that of the system. No folder that users share takes its place."""
    named.parent.write_text("a file")
    assert_refused(named, "File exists|Not a directory")


def test_a_folder_that_cannot_be_written_is_replaced(named: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example on a file system that is mounted for reading only."""
    monkeypatch.setattr(cache.os, "access", lambda *_: False)
    assert_refused(named, r"no permission to write to '.*native'")
