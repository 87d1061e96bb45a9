"""Errors on machines without a GPU."""

import re
import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

import candelabra as cd
import pytest
from candelabra._cli.main import main
from candelabra._plugins import registry
from candelabra.backend import hookimpl
from candelabra.errors import DeviceUnavailable
from candelabra.library import plugins
from candelabra_cuda.backend import CudaBackend
from candelabra_cuda.discovery import find
from candelabra_cuda.hip import RocmBackend


class Lacks:
    """An importer that raises ``error`` for CuPy."""

    def __init__(self, error: ImportError) -> None:
        self.error = error

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """Raise the error for CuPy."""
        if name == "cupy":
            raise self.error


def test_devices_are_listed_with_their_facts(doubles: ModuleType) -> None:
    """Every device has its name, compute capability, memory and the driver's version."""
    backend = CudaBackend(doubles.double(devices=2))
    first, _ = backend.devices()
    assert first.name == "Double"
    assert first.facts["compute"] == (9, 0)
    assert first.facts["memory"] == 80 << 30
    assert first.facts["driver"] == (13, 2)


def test_no_driver_is_said(doubles: ModuleType) -> None:
    """The error suggests to install a driver."""
    with pytest.raises(DeviceUnavailable, match=r"no NVIDIA driver was found \(libcuda.so.1\): install it"):
        find(doubles.double(driver=0))


def test_a_driver_that_is_too_old_is_said_with_both_versions(doubles: ModuleType) -> None:
    """The text has the driver's version, CuPy's required version, and the extra for older drivers."""
    with pytest.raises(
        DeviceUnavailable, match=r"supports CUDA 12.4, the installed CuPy needs 13.2.*candelabra\[cuda12\]"
    ):
        find(doubles.double(driver=12040))


def test_a_failing_driver_is_said(doubles: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of a driver that is new enough is passed on."""
    cupy = doubles.double()

    def fails() -> None:
        raise doubles.CUDARuntimeError("cudaErrorSystemNotReady")

    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", fails)
    with pytest.raises(DeviceUnavailable, match=r"driver \(CUDA 13.2\) reports no device: cudaErrorSystemNotReady"):
        find(cupy)


def test_hidden_devices_are_said(doubles: ModuleType) -> None:
    """If the driver shows none of its devices, the error names the variable that hides them."""
    with pytest.raises(DeviceUnavailable, match="CUDA_VISIBLE_DEVICES"):
        find(doubles.double(devices=0))


@pytest.mark.parametrize(
    ("backend", "advice"),
    [(CudaBackend, r"pip install 'candelabra\[cuda\]'"), (RocmBackend, "CuPy for your version of ROCm")],
)
def test_without_cupy_the_error_says_what_to_install(
    backend: type[CudaBackend], advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CuPy may be missing, lack a module of its own, or have a library that cannot be loaded."""
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    for error, text in (
        (ModuleNotFoundError("No module named 'cupy'", name="cupy"), "CuPy is not installed: "),
        (ModuleNotFoundError("No module named 'numpy'", name="numpy"), r"CuPy cannot be imported \(No module .*\): "),
        (ImportError("libnvrtc: undefined symbol"), r"CuPy cannot be imported \(.*undefined symbol\): "),
    ):
        monkeypatch.setattr(sys, "meta_path", [Lacks(error), *sys.meta_path])
        with pytest.raises(DeviceUnavailable, match=f"^{text}.*{advice}"):
            backend().devices()
        with pytest.raises(DeviceUnavailable, match=f"^{text}.*{advice}"):
            backend().kernels()


@pytest.mark.parametrize("command", ["devices", "doctor"])
def test_a_plugin_without_its_library_counts_as_one_without_devices(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both commands print the reason in one line without a traceback, and succeed."""

    class Plugin:
        @hookimpl
        def candelabra_backend(self) -> NoReturn:
            raise DeviceUnavailable("CuPy is not installed")

    entry: Any = SimpleNamespace(value="here:plugin", load=Plugin)
    monkeypatch.setitem(registry._table(), "lacking", registry.Plugin("lacking", entry, "of a test"))
    assert main([command]) == 0
    said = capsys.readouterr().out
    assert re.search("^(lacking|  no devices): CuPy is not installed$", said, re.M)
    assert "Traceback" not in said


@pytest.mark.skipif(cd.cuda.is_available(), reason="there is a GPU, so the error does not come")
def test_a_tensor_cannot_be_made_without_a_driver() -> None:
    """``zeros`` on a machine without a GPU raises the reason, and the list of devices has the others."""
    with pytest.raises(DeviceUnavailable, match="driver"):
        cd.zeros(3, device="cuda")
    assert not [device for device in cd.devices() if device.type == "cuda"]


@pytest.mark.skipif(cd.cuda.is_available(), reason="there is a GPU, and no reason to tell")
@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("devices", r"^cuda: .*driver"),
        ("doctor", r"^  no devices: .*driver"),
    ],
)
def test_the_command_line_says_why_there_is_no_device(
    command: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """``candelabra devices`` and ``doctor`` print the reason, and the plugin counts as loaded."""
    main([command])
    said = capsys.readouterr().out
    assert re.search(line, said, re.M)
    if command == "doctor":
        assert re.search(
            r"^cuda \(candelabra_cuda:plugin, distribution candelabra-cuda\)\n  found, imported", said, re.M
        )
        assert re.search(r"^rocm \(candelabra_cuda:rocm, distribution candelabra-cuda\)\n  found, imported", said, re.M)


def test_the_command_line_shows_a_device_with_its_facts(
    doubles: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """Name, compute capability, memory, multiprocessors, and the versions of driver and runtime are in one line."""

    class Twin(CudaBackend):
        name = "twin"

    remove = plugins.add_backend(Twin(doubles.double()))
    try:
        main(["devices"])
    finally:
        remove()
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("twin:0"))
    facts = "compute 9.0, memory 80.0 GiB, multiprocessors 132, driver 13.2, runtime 13.2"
    assert line == f"twin:0  Double, {facts}"
