"""Devices by name: modules, methods, the current device, and calls with tensors on several devices."""

import time

import candelabra as cd
import pytest
from candelabra._plugins import registry
from candelabra.backend import Backend, DeviceInfo
from candelabra.errors import BackendError, DeviceMismatch, DeviceUnavailable

from tests.lantern import LanternBackend


@pytest.mark.usefixtures("host_alone")
def test_module_of_an_absent_type_says_no() -> None:
    """Without a plugin a known device type is not available, and raises only if it is used."""
    assert cd.cuda.is_available() is False
    assert cd.cuda.device_count() == 0
    assert cd.cuda.is_initialized() is False
    assert cd.cuda.memory_allocated() == 0
    cd.cuda.empty_cache()
    cd.cuda.manual_seed_all(0)
    assert "no backend is installed for device type 'cuda'" in str(cd.cuda.unavailable_reason())
    with pytest.raises(BackendError, match="no backend is installed for device type 'cuda'"):
        cd.cuda.current_device()


def test_unknown_name_is_no_device_module() -> None:
    """A misspelt function is an AttributeError."""
    with pytest.raises(AttributeError, match="module 'candelabra' has no attribute 'tensro'"):
        _ = cd.tensro


@pytest.mark.usefixtures("host_alone")
def test_tensor_methods_per_device_type() -> None:
    """`x.cpu()`, `x.cuda()`, `x.is_cuda` exist for every known type; the error says that there is no such device."""
    x = cd.ones(2)
    assert x.cpu() is x
    assert x.is_cpu is True
    assert x.is_cuda is False
    with pytest.raises(BackendError, match="no backend is installed for device type 'cuda'"):
        x.cuda()
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = x.nonsense


@pytest.mark.usefixtures("lantern")
def test_module_of_an_installed_type() -> None:
    """A type with a plugin has the same functions, implemented by the plugin."""
    assert cd.lantern.is_available()
    assert cd.lantern.device_count() == 2
    assert cd.lantern.get_device_name(1) == "lantern number 1"
    assert cd.lantern.get_device_properties(0).wick == "short"
    assert repr(cd.lantern.get_device_properties(0)) == "DeviceProperties(name='lantern number 0', wick='short')"
    assert not cd.lantern.is_bf16_supported()
    assert cd.ones(2).lantern(1).device == cd.device("lantern:1")
    assert cd.lantern.is_initialized()
    assert cd.lantern.memory_stats(1)["allocated"] == cd.lantern.memory_allocated(1)
    assert cd.lantern.Stream(1).query()
    with pytest.raises(NotImplementedError, match="backend 'cpu' has no streams"):
        cd.cpu.Stream()
    with pytest.raises(NotImplementedError, match="backend 'cpu' does not report its current stream"):
        cd.cpu.current_stream()
    with pytest.raises(ValueError, match="Expected a lantern device, but got: cpu"):
        cd.lantern.synchronize("cpu")
    with pytest.raises(DeviceUnavailable, match=r"'lantern:5' does not exist: backend 'lantern' offers 2 device\(s\)"):
        cd.ones(2, device="lantern:5")


@pytest.mark.usefixtures("lantern")
def test_further_queries_of_a_device_type() -> None:
    """Random states, streams, memory and versions by PyTorch's names."""
    cd.lantern.manual_seed_all(3)
    states = cd.lantern.get_rng_state_all()
    assert len(states) == 2
    assert cd.lantern.initial_seed() == 3
    cd.lantern.manual_seed(4)
    cd.lantern.set_rng_state_all(states)
    assert cd.lantern.initial_seed() == 3
    cd.lantern.seed_all()
    with cd.lantern.device_of(cd.ones(1, device="lantern:1")):
        assert cd.lantern.current_device() == 1
    with cd.lantern.device_of(cd.ones(1)):
        assert cd.lantern.current_device() == 0
    with cd.lantern.stream(cd.lantern.Stream(0)), cd.lantern.stream(None):
        cd.ones(1, device="lantern")
    assert cd.lantern.max_memory_reserved() >= 0
    assert "allocated" in cd.lantern.memory_summary()
    assert cd.lantern.get_arch_list() == []
    cd.lantern.ipc_collect()
    with pytest.raises(NotImplementedError, match="backend 'lantern' reports no compute capability"):
        cd.lantern.get_device_capability()
    assert cd.cuda.is_bf16_supported() is cd.cuda.is_available()


@pytest.mark.usefixtures("lantern")
def test_events_mark_points_in_the_work_of_a_device() -> None:
    """An event of a device with streams is the backend's; it orders streams and can be waited for."""
    event = cd.lantern.Event()
    assert event.query()
    event.synchronize()
    event.wait()
    assert repr(event) == "<Event, not recorded>"
    event.record()
    event.wait(cd.lantern.Stream(0))
    event.synchronize()
    assert event.query()
    assert repr(event) == "<Event, recorded>"
    timed = cd.lantern.Event(enable_timing=True)
    timed.record(cd.lantern.current_stream())
    with pytest.raises(NotImplementedError, match="the events of backend 'lantern' measure no times"):
        timed.elapsed_time(timed)


def test_events_of_a_device_without_streams_have_the_hosts_times() -> None:
    """Recording waits for the work, so the time between two events is at least that of the work in between."""
    first, last = (cd.cpu.Event(enable_timing=True) for _ in range(2))
    with pytest.raises(ValueError, match="Both events must be recorded before calculating elapsed time"):
        first.elapsed_time(last)
    first.record()
    assert first.query()
    time.sleep(0.01)
    last.record()
    last.synchronize()
    first.wait()
    assert first.elapsed_time(last) >= 10
    with pytest.raises(ValueError, match="created with argument 'enable_timing=True'"):
        cd.cpu.Event().elapsed_time(last)


@pytest.mark.usefixtures("lantern")
def test_memory_of_a_device_by_pytorchs_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """`mem_get_info` needs the fact `memory`. The peak can be reset if the backend can; if not, a warning says so."""
    with pytest.raises(NotImplementedError, match="does not report how much memory a device has"):
        cd.lantern.mem_get_info()
    facts = {"memory": 2**40, "compute": (9, 0)}
    monkeypatch.setattr(type(cd.lantern._instance(None).backend), "devices", lambda self: [DeviceInfo("one", facts)])
    free, total = cd.lantern.mem_get_info(0)
    assert total == 2**40 == cd.lantern.get_device_properties(0).total_memory
    assert free == total - cd.lantern.memory_reserved(0)
    found = cd.lantern.get_device_properties(0)
    assert (found.major, found.minor) == (9, 0)
    held = cd.ones(100, device="lantern:0")
    cd.ones(1000, device="lantern:0")
    cd.lantern.synchronize(0)
    assert cd.lantern.max_memory_allocated(0) >= 4400
    cd.lantern.reset_peak_memory_stats(0)
    assert cd.lantern.max_memory_allocated(0) == cd.lantern.memory_allocated(0) < 4400
    assert held.sum() == 100
    monkeypatch.setattr("candelabra._absent._said", set())
    monkeypatch.setattr(type(cd.lantern._instance(None).backend), "reset_peak", Backend.reset_peak)
    with pytest.warns(UserWarning, match="the peak is that since the start of the process"):
        cd.lantern.reset_peak_memory_stats()
    assert cd.lantern.OutOfMemoryError is cd.OutOfMemoryError


@pytest.mark.usefixtures("lantern")
def test_current_device_is_what_the_bare_name_means() -> None:
    """`set_device` and `with device(...)` set the index of a name without one."""
    assert cd.lantern.current_device() == 0
    with cd.lantern.device(1):
        assert cd.lantern.current_device() == 1
        assert cd.ones(1, device="lantern").device == cd.device("lantern:1")
    assert cd.ones(1, device="lantern").device == cd.device("lantern:0")


@pytest.mark.usefixtures("lantern")
def test_name_of_a_tensors_device_has_an_index_only_where_devices_are_counted() -> None:
    """The host's only device and `meta` are named by their type, as in PyTorch; others with their index."""
    x = cd.ones(2)
    assert str(x.device) == "cpu"
    assert repr(x.device) == "device(type='cpu')"
    assert x.device.index is None
    assert x.device == cd.device("cpu") == cd.device("cpu", 0) == cd.ones(1, device="cpu:0").device
    assert x.get_device() == -1
    assert str(x.to("meta").device) == "meta"
    assert str(x.to("lantern").device) == "lantern:0"
    assert x.to("lantern").get_device() == 0
    assert str(cd.get_default_device()) == "cpu"


@pytest.mark.usefixtures("host_alone", "lantern")
def test_devices_and_accelerator() -> None:
    """All devices of all backends are listed; the accelerator is the first type that is not the host."""
    assert [str(d) for d in cd.devices()] == ["cpu", "ember:0", "lantern:0", "lantern:1"]
    assert cd.accelerator.is_available()
    assert str(cd.accelerator.current_accelerator()) == "ember"
    assert cd.accelerator.device_count() == 1
    assert cd.accelerator.current_device_index() == cd.accelerator.current_device_idx() == 0
    cd.accelerator.synchronize()


@pytest.mark.usefixtures("host_alone", "lantern")
def test_an_accelerators_properties_are_those_of_its_device_module() -> None:
    """Counters of memory and dtypes agree with the functions of the device type."""
    ember = cd.get_device_module("ember")
    kept = cd.ones(1000, device="ember")
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        assert getattr(cd.accelerator, name)() == getattr(ember, name)()
    assert kept.dtype in cd.accelerator.get_device_capability()["supported_dtypes"]
    assert cd.accelerator.current_stream() == ember.current_stream()


@pytest.mark.usefixtures("host_alone")
def test_without_accelerator() -> None:
    """With the host alone the queries return False, and use is an error."""
    assert cd.accelerator.current_accelerator() is None
    assert cd.accelerator.device_count() == 0
    with pytest.raises(DeviceUnavailable, match="no accelerator is available"):
        cd.accelerator.synchronize()


@pytest.mark.usefixtures("lantern")
def test_mixed_devices_name_each_argument_and_the_cure() -> None:
    """The error of a call with several devices has the device of each argument and the `.to` call that corrects it."""
    x, y = cd.ones(2, device="lantern:0"), cd.ones(2)
    cure = r"'input' on lantern:0, 'other' on cpu. Move them: other.to\('lantern:0'\)"
    with pytest.raises(DeviceMismatch, match=cure):
        x + y
    with pytest.raises(DeviceMismatch, match=r"'other' on lantern:1.*other.to\('lantern:0'\)"):
        x * cd.ones(2, device="lantern:1")


@pytest.mark.usefixtures("lantern")
def test_zero_dimensional_host_tensors_act_as_numbers() -> None:
    """A 0-d tensor of the host may be combined with any device's, on either side; another accelerator's may not."""
    x = cd.ones(2, device="lantern:1")
    half = cd.full((), 0.5)
    assert (x * half).tolist() == [0.5, 0.5]
    assert (half - x).device == cd.device("lantern:1")
    with pytest.raises(DeviceMismatch, match="'other' on lantern:0"):
        x * cd.ones((), device="lantern:0")


@pytest.mark.usefixtures("lantern")
@pytest.mark.filterwarnings("ignore::candelabra.errors.FallbackWarning")
def test_host_indices_are_legal() -> None:
    """Index tensors may be on the host."""
    x = cd.arange(4, device="lantern").to(cd.float32)
    assert x[cd.arange(2)].tolist() == [0, 1]


@pytest.mark.usefixtures("lantern")
def test_transfers_move_and_warn() -> None:
    """`transfers("move")` transfers arguments silently, "warn" with a warning; by default the call is refused."""
    x, y = cd.ones(2, device="lantern"), cd.ones(2)
    with cd.transfers("move"):
        assert (x + y).device == cd.device("lantern")
        assert (y + x).device == cd.device("cpu")
    with cd.transfers("warn"), pytest.warns(UserWarning, match="Expected all tensors to be on the same device"):
        assert (x + y).tolist() == [2, 2]
    with pytest.raises(DeviceMismatch, match=r"allow it with candelabra\.transfers"):
        x + y
    with (
        pytest.raises(ValueError, match=r'transfers\(\) expects "error", "warn" or "move", got \'maybe\''),
        cd.transfers("maybe"),
    ):
        pass


@pytest.mark.usefixtures("lantern")
def test_in_place_target_is_never_moved() -> None:
    """The target of a write keeps its device under every policy."""
    x, y = cd.full((), 1.0), cd.ones(2, device="lantern")
    with cd.transfers("move"), pytest.raises((DeviceMismatch, RuntimeError), match="add"):
        x.add_(y)
    assert x.item() == 1


class EmptyBackend(LanternBackend):
    """A backend without devices."""

    name = "dark"

    def __init__(self) -> None:
        super().__init__(devices=0)


def test_a_type_without_devices_says_so() -> None:
    """Every name of the device raises an error that says that the backend has no device."""
    remove = registry.add_backend(EmptyBackend())
    try:
        for use in (cd.dark.current_device, cd.dark.synchronize, cd.ones(2).dark, lambda: cd.ones(2, device="dark")):
            with pytest.raises(DeviceUnavailable, match=r"'dark(:0)?' does not exist: backend 'dark' offers 0 device"):
                use()
        assert not cd.dark.is_available()
    finally:
        remove()


@pytest.mark.usefixtures("lantern")
def test_results_and_gradients_are_not_written_to_another_device() -> None:
    """out= and grad= must be on the device of the result, or of the tensor; nothing is written."""
    x, here = cd.ones(2, device="lantern"), cd.zeros(2)
    text = r"Expected out tensor to have device lantern:0, but got cpu instead"
    for call in (lambda: cd.add(x, x, out=here), lambda: cd.sqrt(x, out=here), lambda: cd.cat((x, x), out=here)):
        with pytest.raises(RuntimeError, match=text):
            call()
    values, indices = cd.zeros(2, device="lantern:1"), cd.zeros(2, dtype=cd.int64, device="lantern:1")
    with pytest.raises(
        RuntimeError, match=r"sort\(\): Expected out tensor to have device lantern:0, but got lantern:1"
    ):
        cd.sort(x, out=(values, indices))
    leaf = cd.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="data located on a different device: expected cpu, got lantern:0"):
        leaf.grad = x
    assert (here.tolist(), here._version, values._version, leaf.grad) == ([0.0, 0.0], 0, 0, None)


@pytest.mark.usefixtures("lantern")
def test_a_device_without_dlpack_says_so() -> None:
    """Neither the DLPack device nor the memory is exported."""
    x = cd.ones(2, device="lantern:1")
    with pytest.raises(BufferError, match="device 'lantern:1' does not export DLPack"):
        x.__dlpack_device__()
    with pytest.raises(BufferError, match="device 'lantern' does not export DLPack"):
        x.__dlpack__()


def test_a_backend_without_strides_reports_it() -> None:
    """The optional half of the contract raises an error that says how to implement it."""
    made = LanternBackend()
    with pytest.raises(NotImplementedError, match=r"backend 'lantern' has no layout\(\), which strided=True requires"):
        Backend.layout(made, None)
    with pytest.raises(
        NotImplementedError, match=r"backend 'lantern' has no restride\(\), which strided=True requires"
    ):
        Backend.restride(made, None, (), (), 0)


def test_module_of_a_device_by_its_name() -> None:
    """`get_device_module` takes a device or its name; the default is the default device."""
    assert cd.get_device_module("cuda:1") is cd.cuda
    assert cd.get_device_module(cd.device("cpu")) is cd.get_device_module() is cd.cpu
    with pytest.raises(RuntimeError, match="Invalid value of device 'nonsense': it is no device type"):
        cd.get_device_module("nonsense")
