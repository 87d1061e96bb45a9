"""Without a GPU: what is missing, in words."""

import re
from types import ModuleType

import candelabra as cd
import pytest
from candelabra._cli.main import main
from candelabra.errors import DeviceUnavailable
from candelabra.library import plugins
from candelabra_cuda.backend import CudaBackend
from candelabra_cuda.discovery import find


def test_devices_are_listed_with_their_facts(doubles: ModuleType) -> None:
    """Every device has its name, compute capability, memory and the driver's version."""
    backend = CudaBackend(doubles.double(devices=2))
    first, _ = backend.devices()
    assert first.name == "Double"
    assert first.facts["compute"] == "9.0"
    assert first.facts["memory"] == "80.0 GiB"
    assert first.facts["driver"] == "13.2"


def test_no_driver_is_said(doubles: ModuleType) -> None:
    """A machine without a driver is told to install one."""
    with pytest.raises(DeviceUnavailable, match=r"no NVIDIA driver was found \(libcuda.so.1\): install it"):
        find(doubles.double(driver=0))


def test_a_driver_that_is_too_old_is_said_with_both_versions(doubles: ModuleType) -> None:
    """The text names what the driver serves, what CuPy needs, and the extra for older drivers."""
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
    """A driver that shows none of its devices points at the variable that hides them."""
    with pytest.raises(DeviceUnavailable, match="CUDA_VISIBLE_DEVICES"):
        find(doubles.double(devices=0))


def test_a_missing_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without CuPy the error names the extra."""
    import sys

    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceUnavailable, match=r"CuPy cannot be imported .*candelabra\[cuda\]"):
        CudaBackend().devices()


@pytest.mark.skipif(cd.cuda.is_available(), reason="there is a GPU, so the error does not come")
def test_a_tensor_cannot_be_made_without_a_driver() -> None:
    """``zeros`` on a machine without a GPU says what is missing, and the list of devices goes on without it."""
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
    """``candelabra devices`` and ``doctor`` give the reason, and the plugin counts as loaded."""
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
    """Name, compute capability, memory, multiprocessors, and the versions of driver and runtime stand in one line."""

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
