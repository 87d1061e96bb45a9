"""The benchmark of a device, in tiny sizes on the host, and on the OpenCL device for asynchronous behaviour."""

from __future__ import annotations

import json
import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import candelabra as cd
import pytest
from candelabra._plugins.registry import reference_device

from benchmarks.accelerator import comparing, timing, waiting
from benchmarks.accelerator.marks import COPY, MARKS
from benchmarks.accelerator.models import MODELS, Step
from benchmarks.accelerator.sizes import SIZES
from benchmarks.accelerator.timing import HostClock, StreamClock, TorchClock, clock, device_time, host_time
from benchmarks.accelerator.worker import answered, library_device

HOST = str(reference_device())


@pytest.mark.parametrize("name", sorted(MARKS))
def test_every_mark_can_be_measured(name: str) -> None:
    """Each gives a positive time on the host in the tiny size."""
    answer = answered({"library": "candelabra", "device": HOST, "size": "tiny", "mark": name})
    assert answer.get("error") is None
    assert answer["seconds"] > 0


def test_the_marks_are_those_of_the_issue() -> None:
    """Small operators 2.0, products 95 %, training steps 1.2; bandwidth-bound operators are compared with a copy."""
    assert MARKS["a + b"].most == 2.0
    assert MARKS["matmul, bfloat16"].most == pytest.approx(1 / 0.95)
    assert [MARKS[f"{model} training step"].most for model in MODELS] == [1.2, 1.2, 1.2]
    assert {name for name, mark in MARKS.items() if mark.moved} == {COPY, "add", "gelu", "softmax", "layer_norm"}
    assert MARKS["add"].moved is not None
    assert MARKS["add"].moved(SIZES["full"]) == 3 * 4 * 64 * 2**20


def test_what_fails_is_an_answer() -> None:
    """A worker continues after a mark that cannot be measured."""
    answer = answered({"library": "candelabra", "device": "nonsense", "size": "tiny", "mark": "add"})
    assert "nonsense" in answer["error"]


def test_devices_have_other_names_at_the_peer() -> None:
    """PyTorch calls AMD's GPUs by the name of NVIDIA's, and unknown devices are the host."""
    assert [library_device("torch", d) for d in ("cuda", "cuda:1", "rocm:2", HOST)] == [
        "cuda:0",
        "cuda:1",
        "cuda:2",
        "cpu",
    ]
    assert library_device("candelabra", "rocm:2") == "rocm:2"


def test_a_peer_without_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PyTorch that was built without CUDA would compare the GPU with the host."""

    class cuda:
        @staticmethod
        def is_available() -> bool:
            return False

    class torch:
        __version__ = "1"

    torch.cuda = cuda  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(RuntimeError, match="PyTorch 1 sees no GPU: install its build for this driver's CUDA"):
        clock("torch", "cuda:0")
    assert isinstance(clock("torch", HOST), HostClock)
    cuda.is_available = staticmethod(lambda: True)  # type: ignore[method-assign]
    assert isinstance(clock("torch", "cuda:0"), TorchClock)


def test_times_of_the_peer_are_those_of_its_events() -> None:
    """PyTorch's events count milliseconds."""

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            """Do nothing."""

        def elapsed_time(self, end: Any) -> float:
            return 3.0

    class torch:
        class cuda:
            waited = 0

            @classmethod
            def synchronize(cls) -> None:
                cls.waited += 1

    torch.cuda.Event = Event  # type: ignore[attr-defined]
    time = TorchClock(torch)
    assert device_time(lambda turn: None, time, 3, most=2) == pytest.approx(3e-3 / 2)
    assert torch.cuda.waited == 5


def test_a_device_with_streams_is_timed_by_its_events() -> None:
    """The OpenCL device has events, and so does CUDA's."""
    time = clock("candelabra", "opencl:0")
    assert isinstance(time, StreamClock)
    x = cd.ones(1000, device="opencl:0")
    with cd.opencl.Stream():  # The default stream does not measure times.
        assert 0 < device_time(lambda turn: x + x, time, 2, most=3) < 1
    assert 0 < host_time(lambda: x + x, time, 2, 3) < 1


def test_nothing_in_a_training_step_waits_for_the_device() -> None:
    """On an asynchronous device the call of a whole step returns before the step is done."""
    sizes = SIZES["tiny"]
    assert waiting.waits("CNN", cd, "opencl:0", sizes, clock("candelabra", "opencl:0")) == {}


def test_a_part_of_a_step_that_waits_is_named() -> None:
    """The report has the line in candelabra at which the host read from the device."""
    x = cd.ones(3, device="opencl:0")
    passed: list[bool] = []
    step = Step(lambda: passed.append(bool(x.sum().item())), lambda: None, lambda: passed.clear(), [])
    time = clock("candelabra", "opencl:0")

    class Event:
        def query(self) -> bool:
            return bool(passed)

    found = waiting.detected_waits(step, Event, time)
    assert list(found) == ["forward", "backward"]
    assert "to_host" not in found["forward"].split(" ")[0]
    assert "item" in found["forward"]
    assert found["backward"] == "in a library below"


def test_a_device_that_waits_anyway_is_not_asked() -> None:
    """On a synchronous device the question has no meaning."""
    with pytest.raises(RuntimeError, match="is done with everything when a call returns: nothing to wait for"):
        waiting.waits("CNN", cd, HOST, SIZES["tiny"], timing.HostClock())


def test_a_comparison_has_a_row_for_every_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides measure, ratios and fractions of a copy's bandwidth are judged, and failed marks are not kept."""
    seconds = {COPY: (2.0, 1.0), "add": (1.5, 3.0), "gelu": (4.0, 1.0)}

    def asked(self: Any, side: Any, **expected: str) -> dict[str, Any]:
        if "waits" in expected:
            return {"waits": {"forward": "item"} if expected["waits"] == "CNN" else {}}
        if expected["mark"] == "softmax":
            return {"error": "no answer"}
        return {"seconds": seconds.get(expected["mark"], (3.0, 2.0))[side.library == "torch"]}

    monkeypatch.setattr(comparing.Comparison, "_asked", asked)
    made = comparing.Comparison(HOST, "tiny", 1)
    monkeypatch.setattr(made, "ours", SimpleNamespace(library="candelabra"), raising=False)
    monkeypatch.setattr(made, "peer", SimpleNamespace(library="torch"), raising=False)
    rows = {row["name"]: row for row in made.measured()}
    assert rows["a + b"]["kept"]  # 1.5 of 2.0
    assert not rows["small GPT training step"]["kept"]  # 1.5 of 1.2
    assert rows["add"]["of_copy"] == pytest.approx(1.0)  # 3 arrays in 1.5 s, a copy's 2 in 1 s
    assert rows["add"]["kept"]
    assert not rows["gelu"]["kept"]
    assert rows["softmax"]["error"].endswith("no answer")
    assert not rows["CNN waits"]["kept"]
    assert rows["ResNet-18 waits"]["kept"]
    assert not comparing.kept(list(rows.values()))
    words = {name: comparing.cells(row) for name, row in rows.items()}
    assert words["CNN waits"][3] == "forward: item"
    assert words["small GPT waits"][3] == "never"
    assert words["add"][3].startswith("100% of a copy's bandwidth")
    assert comparing.table(list(rows.values()), HOST).row_count == len(rows)


def test_a_peer_that_is_missing_says_what_to_install() -> None:
    """The Python may not exist, or may lack the library."""
    made = comparing.Comparison(HOST, "tiny", 1)
    with pytest.raises(RuntimeError, match=r"no/python does not exist.*`make \.venv-peer/\.peer`"):
        made.start(sys.executable, "no/python", "torch")
    words = r"cannot be compared with .*No module named 'missing'.*-m pip install torch"
    with pytest.raises(RuntimeError, match=words):
        made.start(sys.executable, sys.executable, "missing")
    made.close()


def test_two_processes_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command measures both sides in separate processes and writes the figures, as far as time allows."""
    from benchmarks.accelerator.__main__ import main

    file = tmp_path / "figures.json"
    words = ["--device", HOST, "--peer", sys.executable, "--library", "candelabra", "--size", "tiny", "--rounds", "1"]
    words += ["--only", "a[2]", "--json", str(file)]
    monkeypatch.setattr(sys, "argv", ["accelerator", *words, "--minutes", "0"])
    assert main() == 3
    found = json.loads(file.read_text())
    assert found["rows"] == []
    assert found["remaining"] == ["a[2]", "a[2], with grad", COPY]
    monkeypatch.setattr(sys, "argv", ["accelerator", *words])
    assert main() in (0, 1)
    found = json.loads(file.read_text())
    assert found["peer"].startswith("candelabra ")
    assert found["remaining"] == []
    file.write_text(json.dumps(found | {"rows": [row | {"ratio": 0.5, "kept": True} for row in found["rows"]]}))
    monkeypatch.setattr(sys, "argv", ["accelerator", *words, "--resume", str(file)])
    assert main() == 0
    assert [row["ratio"] for row in json.loads(file.read_text())["rows"]] == [0.5, 0.5, 0.5]
    file.write_text(json.dumps(found | {"peer": "candelabra 0"}))
    assert main() == 1
    assert "figures.json compares with candelabra 0, and this is candelabra" in capsys.readouterr().err


def test_a_failure_does_not_spoil_the_next_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failed process is replaced, and the remaining marks are measured in another run."""
    clock = count()
    monkeypatch.setattr(comparing, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    log: list[str] = []

    class Failing:
        library = "candelabra"

        def ask(self, request: dict[str, Any], patience: float) -> dict[str, Any]:
            log.append(request.get("mark", "waits"))
            return {"error": "an illegal memory access was encountered"}

        def restart(self) -> None:
            log.append("restart")

    made = comparing.Comparison(HOST, "tiny", 1, until=7.0)
    made.ours = made.peer = Failing()  # type: ignore[assignment]
    told: list[int] = []
    rows = made.measured("a + b", report=lambda rows: told.append(len(rows)))
    assert log == ["a + b", "restart", "a + b, with grad", "restart", COPY, "restart"]
    assert [row["name"] for row in rows] == ["a + b", "a + b, with grad"]
    assert told == [1, 2]
