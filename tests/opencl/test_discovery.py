"""The list of devices, its order, and the errors if it is empty."""

import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import candelabra as cd
import pyopencl as cl
import pytest
from candelabra.errors import DeviceUnavailable
from candelabra_opencl import discovery, icd
from candelabra_opencl.discovery import OpenCLDevice, describe, find, select, sort_devices


def fake(
    name: str = "a processor",
    kind: int = cl.device_type.CPU,
    platform: str = "A platform",
    driver: str = "1.0",
    version: str = "OpenCL 3.0",
    **facts: Any,
) -> OpenCLDevice:
    """Return a device as a driver describes it."""
    device = SimpleNamespace(
        name=name, type=kind, driver_version=driver, version=version, global_mem_size=3 << 29, double_fp_config=0,
        extensions="cl_khr_fp16", available=True, compiler_available=True,
    )  # fmt: skip
    device.__dict__.update(facts)
    return describe(SimpleNamespace(name=platform), device)


def names(devices: list[OpenCLDevice]) -> list[str]:
    """Return the names of the devices."""
    return [one.name for one in devices]


def test_devices_tell_platform_driver_version_memory_and_widths() -> None:
    """`candelabra devices` gets the facts that distinguish the devices of several drivers."""
    assert fake().facts == {
        "platform": "A platform", "driver": "1.0", "version": "OpenCL 3.0", "memory": 3 << 29, "fp64": False,
        "fp16": True,
    }  # fmt: skip
    properties = cd.opencl.get_device_properties(0)  # type: ignore[attr-defined]
    assert properties.driver
    assert properties.fp64 in (True, False)
    assert properties.memory > 1 << 20


def test_the_better_driver_of_a_device_comes_first() -> None:
    """Newer OpenCL versions, then newer drivers, come first; a prerelease is older than its release."""
    devices = [
        fake("candidate", driver="3.0-rc2"), fake("old", version="OpenCL 1.2", driver="9.9"),
        fake("release", driver="3.0"), fake("newer", driver="3.1+debian"), fake("newest", version="OpenCL 3.1"),
        fake("odd", version="?"), fake("by year", driver="2025.20.8.0.06_160000"),
    ]  # fmt: skip
    assert names(sort_devices(devices)) == ["newest", "by year", "newer", "release", "candidate", "old", "odd"]


def test_gpus_come_before_processors() -> None:
    """A GPU with an older driver comes before a processor; unknown kinds come last."""
    devices = [
        fake("custom", cl.device_type.CUSTOM), fake("emulator", cl.device_type.ACCELERATOR), fake("cpu"),
        fake("gpu", cl.device_type.GPU, version="OpenCL 1.2"),
    ]  # fmt: skip
    assert names(sort_devices(devices)) == ["gpu", "cpu", "emulator", "custom"]


def test_equals_keep_their_order() -> None:
    """Two cards of one driver are numbered as the driver numbers them."""
    assert names(sort_devices([fake("first"), fake("second")])) == ["first", "second"]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ("", ["alpha", "beta", "gamma"]),
        ("GAMMA", ["gamma"]),
        ("beta, alpha", ["beta", "alpha"]),
        ("platform two", ["beta", "gamma"]),
        ("two*driver 7", ["gamma"]),
        ("gamma,platform two,nonsense", ["gamma", "beta"]),
        (" , ", ["alpha", "beta", "gamma"]),
    ],
)
def test_patterns_choose_and_order(patterns: str, expected: list[str]) -> None:
    """Each pattern selects the devices whose line it matches, each device once, in the order of the patterns."""
    devices = [
        fake("alpha"),
        fake("beta", platform="Platform Two"),
        fake("gamma", platform="Platform Two", driver="7"),
    ]
    assert names(select(devices, patterns)) == expected


def test_a_pattern_that_fits_nothing_lists_what_there_is() -> None:
    """The error has the lines that patterns are compared with."""
    with pytest.raises(
        DeviceUnavailable,
        match=r"no OpenCL device matches CANDELABRA_OPENCL_DEVICES='beta'\. The devices are:\n  alpha, ",
    ):
        select([fake("alpha")], "beta")


def test_the_variable_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only devices that the environment variable selects are listed."""
    driver = find()[0].facts["driver"]
    monkeypatch.setenv("CANDELABRA_OPENCL_DEVICES", f"driver {driver},")
    assert {one.facts["driver"] for one in find()} == {driver}


def test_no_platform_says_where_drivers_were_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any driver the error names the folders that were searched and what to install."""

    def none() -> None:
        raise cl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")

    monkeypatch.setattr(discovery.cl, "get_platforms", none)
    monkeypatch.delenv(icd.VARIABLE, raising=False)
    with pytest.raises(
        DeviceUnavailable, match=r"no OpenCL platform was found in .*vendors, next to PyOpenCL"
    ) as caught:
        find()
    assert "PLATFORM_NOT_FOUND_KHR" in str(caught.value)
    assert 'pip install "candelabra[pocl]"' in str(caught.value)
    monkeypatch.setenv(icd.VARIABLE, "/nowhere")
    with pytest.raises(DeviceUnavailable, match=r"found in /nowhere \(from the environment variable OCL_ICD_VENDORS\)"):
        find()


def test_no_usable_device_gives_every_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Platforms without devices, and devices that are unavailable or cannot compile, are named."""

    def broken() -> None:
        raise cl.LogicError("clGetDeviceIDs failed: DEVICE_NOT_FOUND")

    off, mute = fake("off", available=False), fake("mute", compiler_available=False)
    platforms = [
        SimpleNamespace(name="Empty", get_devices=list),
        SimpleNamespace(name="Broken", get_devices=broken),
        SimpleNamespace(name="Full", get_devices=lambda: [off.device, mute.device]),
    ]
    monkeypatch.setattr(discovery.cl, "get_platforms", lambda: platforms)
    reasons = (
        "no OpenCL device can be used: Empty: it has no devices; Broken: clGetDeviceIDs failed: DEVICE_NOT_FOUND; "
        "Full, off: it is not available; Full, mute: its driver has no compiler. Install the OpenCL driver"
    )
    with pytest.raises(DeviceUnavailable, match=re.escape(reasons)):
        find()


@pytest.fixture
def driver_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a distribution that is to Python what Intel's is, and return the path of its library."""
    site = tmp_path / "lib" / "python" / "site-packages"
    library = tmp_path / "lib" / "libintelocl.so"
    record = site / "intel_opencl_rt-2026.2.0.dist-info"
    record.mkdir(parents=True)
    library.write_bytes(b"")
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: intel-opencl-rt\nVersion: 2026.2.0\n")
    (record / "RECORD").write_text("../../libintelocl.so,,\n../../libmissing.so,,\n")
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    monkeypatch.setenv("CANDELABRA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(icd.VARIABLE, raising=False)
    return library


def test_installed_drivers_are_shown_to_the_loader(driver_package: Path, tmp_path: Path) -> None:
    """A folder in the cache names the package's library, and is announced only while the loader searches."""
    assert icd.installed_libraries() == [driver_package]
    with icd.driver_search_path():
        folder = Path(os.environ[icd.VARIABLE])
        assert folder.is_relative_to(tmp_path / "cache")
        assert (folder / "libintelocl-installed.icd").read_text() == f"{driver_package}\n"
    assert icd.VARIABLE not in os.environ


def test_drivers_of_the_system_stay(driver_package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder has the system's drivers too, without duplicates."""
    system = tmp_path / "vendors"
    system.mkdir()
    (system / "theirs.icd").write_text("libtheirs.so\n")
    monkeypatch.setattr(icd, "SYSTEM", system)
    assert icd.icd_files([driver_package]) == {
        "theirs.icd": "libtheirs.so\n",
        "libintelocl-installed.icd": f"{driver_package}\n",
    }
    (system / "same.icd").write_text(f"{driver_package}\n")
    assert icd.icd_files([driver_package]) == {}


def test_the_users_own_setting_is_not_touched(driver_package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting of the user takes precedence; an empty setting counts as none, and is restored."""
    monkeypatch.setenv(icd.VARIABLE, "/somewhere")
    with icd.driver_search_path():
        assert os.environ[icd.VARIABLE] == "/somewhere"
    monkeypatch.setenv(icd.VARIABLE, "")
    with icd.driver_search_path():
        assert os.environ[icd.VARIABLE] != ""
    assert os.environ[icd.VARIABLE] == ""


def test_a_library_that_is_gone_is_not_announced(driver_package: Path) -> None:
    """A library that is in the package's record but not on disk is omitted, and the error says so."""
    assert str(driver_package) in icd.searched_folders()
    driver_package.unlink()
    assert icd.installed_libraries() == []
    assert "none of them has a driver" in icd.searched_folders()


def test_a_pattern_chooses_the_devices_of_one_driver() -> None:
    """The driver's name may contain commas and brackets; its other devices are selected too."""
    mine = [fake(name, driver="1.0, [beta]") for name in ("first", "second")]
    others = [fake("third", driver="1.0"), fake("fourth", driver="1.0, [beta]", version="OpenCL 1.2")]
    assert names(select([*others, *mine], mine[0].pattern)) == ["first", "second"]
