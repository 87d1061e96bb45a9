"""Tests that run once per installed device."""

from collections.abc import Callable, Iterator
from typing import Any

import candelabra as cd
import pytest
from candelabra.errors import DeviceUnavailable
from candelabra.library import plugins
from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.parametrize import devices, each_device

HOST = plugins.reference_device()


class Driverless(Mirror):
    """A backend without its driver."""

    def devices(self) -> Any:
        raise DeviceUnavailable("no driver: install acme-driver 7 or later")


class Crashing(Mirror):
    """A backend that cannot count its devices."""

    def devices(self) -> Any:
        raise OSError("libacme.so: cannot open")


@pytest.fixture
def several() -> Iterator[None]:
    """Install two devices of one type, and backends without devices."""
    removals: list[Callable[[], None]] = [
        plugins.add_backend(b) for b in (Mirror("acme"), Driverless("bare"), Crashing("crashing"))
    ]
    yield
    for remove in removals:
        remove()


def marks_of(decorator: Callable[..., Any]) -> dict[str, list[str]]:
    """Return the ids of a parametrisation, and the reasons why each is skipped."""

    def test(device: str) -> None:
        """Do nothing."""

    (mark,) = decorator(test).pytestmark
    assert mark.args[0] == "device"
    return {p.id: [m.kwargs["reason"] for m in p.marks] for p in mark.args[1]}


def test_devices_are_those_that_work(several: None) -> None:
    """Every index of a type is listed; a backend whose device count fails is omitted."""
    assert [d for d in devices() if d.startswith(("acme", "bare", "crash"))] == ["acme:0", "acme:1"]
    assert f"{HOST.type}:0" in devices()


def test_each_device_is_a_test_and_missing_ones_say_why(several: None) -> None:
    """The ids are device names; a device without its driver is skipped with the reason."""
    found = marks_of(each_device(excluding=[HOST.type]))
    assert {k: v for k, v in found.items() if k[:4] in ("acme", "bare", "cras")} == {
        "acme:0": [], "acme:1": [], "bare": ["no driver: install acme-driver 7 or later"],
        "crashing": ["OSError: libacme.so: cannot open"],
    }  # fmt: skip


def test_devices_can_be_chosen(several: None) -> None:
    """Devices are chosen by type, by name, or one per type; a requested device that is not installed is skipped."""
    assert list(marks_of(each_device(only=["acme"]))) == ["acme:0", "acme:1"]
    assert list(marks_of(each_device(only=["acme"], excluding=["acme:0"]))) == ["acme:1"]
    assert list(marks_of(each_device(only=["acme", "bare"], first=True))) == ["acme:0", "bare"]
    (reason,) = marks_of(each_device(only=["nowhere"]))["nowhere"]
    assert reason.startswith("no backend is installed for device type 'nowhere'")


def test_nothing_installed_is_a_skip_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any backend there is one skipped test, which says how to install one."""
    monkeypatch.setattr(plugins, "_plugins", {})
    (reason,) = marks_of(each_device())["none"]
    assert reason.startswith("no backend is installed")


def test_contradiction_is_refused() -> None:
    """A name cannot be both included and excluded."""
    with pytest.raises(ValueError, match=r"each_device\(\): 'acme' is in both only= and excluding="):
        each_device(only=["acme"], excluding=["acme"])


@each_device(only=[HOST.type], argument="where")
def test_argument_can_have_another_name(where: str) -> None:
    """The decorated test gets the device's name."""
    assert cd.ones(1, device=where).device == cd.device(where)
