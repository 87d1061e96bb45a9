"""Installation of the fake accelerator, in a program and from a command line."""

from collections.abc import Iterator
from typing import Any

import candelabra as cd
import pytest
from candelabra.errors import BackendError, DeviceUnavailable
from candelabra.library import plugins
from candelabra_conformance.fake import FakeAccelerator, installed, parse, provide
from candelabra_conformance.fake.installing import FakeDeviceError, provided


@pytest.fixture
def clean() -> Iterator[None]:
    """Uninstall the devices that `provide` installs."""
    yield
    while provided:
        provided.popitem()[1].remove()


def test_installed_inside_its_block_only() -> None:
    """The device type and its display name exist inside the block, and are gone after it, also after an error."""
    with installed() as fake:
        assert plugins.backend("fake")[0] is fake
        assert [str(d) for d in cd.devices() if d.type == "fake"] == ["fake:0", "fake:1"]
        assert cd.fake.get_device_name(1) == "fake number 1"
        assert cd.fake.get_device_properties().facts == {"simulated on": "cpu"}
    assert "fake" not in plugins.plugins()
    with pytest.raises(ZeroDivisionError), installed():
        _ = 1 / 0
    assert "fake" not in plugins.plugins()


def test_any_name_and_number_of_devices() -> None:
    """Several fake types can exist at the same time."""
    with installed("acme", devices=1), installed("other", devices=3):
        assert cd.other.device_count() == 3
        with pytest.raises(DeviceUnavailable, match=r"'acme:1' does not exist: backend 'acme' offers 1 device"):
            cd.ones(2, device="acme:1")
        with installed(), pytest.raises(BackendError, match="device type 'fake' already has an owner"), installed():
            pass


@pytest.mark.parametrize(
    ("text", "device", "options"),
    [
        ("fake", "fake", {}),
        ("fake:1", "fake:1", {}),
        ("acme:0?immutable", "acme:0", {"immutable": True}),
        ("fake?synchronous,unpoisoned", "fake", {"asynchronous": False, "poison": False}),
        ("fake?devices=3,capacity=1000", "fake", {"devices": 3, "capacity": 1000}),
        ("fake?fail_allocation_after=7", "fake", {"fail_allocation_after": 7}),
        ("fake?-float64,-complex128", "fake", {"missing_dtypes": ("float64", "complex128")}),
        ("fake?~float16,-cumsum,-sinh", "fake", {"storage_only": ("float16",), "missing_kernels": ("cumsum", "sinh")}),
    ],
)
def test_options_are_read_from_a_device_name(text: str, device: str, options: dict[str, Any]) -> None:
    """Each option is a keyword of the accelerator."""
    wanted = parse(text)
    assert (str(wanted.device), wanted.options) == (device, options)
    assert FakeAccelerator(wanted.device.type, **wanted.options).name == wanted.device.type


@pytest.mark.parametrize("option", ["nonsense", "-float46", "~cumsum", "devices=two", "capacity", "immutable=1", "~"])
def test_an_unknown_option_is_refused_with_those_that_there_are(option: str) -> None:
    """An unknown option raises an error that lists the valid ones."""
    with pytest.raises(
        ValueError, match=r"a fake device has no option '.*': it has the options immutable, synchronous.*-OPERATOR"
    ):
        parse(f"fake?{option}")
    with pytest.raises(RuntimeError, match="invalid device string"):
        parse("fake:x?immutable")


@pytest.mark.usefixtures("clean")
def test_provide_installs_what_nobody_owns() -> None:
    """A device named `fake`, or another name with options, is installed; the name is returned and usable."""
    name = provide("fake:1")
    assert name == "fake:1"
    assert cd.ones(2, device=name).tolist() == [1, 1]
    assert provide("fake:0") == "fake:0"
    assert provide("acme?immutable") == "acme"
    assert plugins.backend("acme")[0].capabilities.mutable is False
    assert provide("acme?immutable") == "acme"


@pytest.mark.usefixtures("clean")
def test_provide_leaves_other_names_alone() -> None:
    """Names of existing devices and names without options are not changed."""
    assert provide("cpu") == "cpu"
    assert provide("misspelt:0") == "misspelt:0"
    assert "misspelt" not in plugins.plugins()


@pytest.mark.usefixtures("clean")
def test_provide_refuses_options_that_cannot_be_had() -> None:
    """A device that is not a fake one accepts no options, and an installed fake device keeps its own."""
    with pytest.raises(
        ValueError, match="options were given for device type 'cpu', but another plugin owns it and accepts none"
    ):
        provide("cpu?immutable")
    provide("fake?-float64")
    with pytest.raises(FakeDeviceError, match=r"device type 'fake' already exists with other options: \{'missing_dtyp"):
        provide("fake?immutable")
    with (
        installed("acme", immutable=True),
        pytest.raises(FakeDeviceError, match="'acme', but another plugin owns it"),
    ):
        provide("acme?immutable")
