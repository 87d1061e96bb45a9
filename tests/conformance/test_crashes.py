"""Runs over drivers that crash, break the device, or cannot be opened in a worker."""

import os
from typing import Any

import candelabra as cd
import pytest
from candelabra.library import plugins
from candelabra_conformance.context import Context
from candelabra_conformance.model import BLOCKED, CRASHED, FAILED, PASSED, Case
from candelabra_conformance.running import Options, crashes, run, workers
from candelabra_conformance.running.blocking import settled

from tests.conformance.example_runs import result
from tests.conformance.odd_device import CHOSEN, ReplacedKernel


def _dies(right: Any, *args: Any) -> Any:
    os.abort()


def crashing() -> None:
    """Add a backend whose tanh kills the process."""
    plugins.add_backend(ReplacedKernel("tanh", _dies))


def test_a_crash_is_a_verdict_and_the_run_goes_on(odd_is_removed: None) -> None:
    """A crashed driver ends its process; the case names the signal, and the next case runs in a new process."""
    done = run("odd", Options(patterns=CHOSEN, isolate=True), setup=crashing)
    verdicts = {r.case.id: r.verdict for r in done.results}
    assert verdicts == {CHOSEN[0]: CRASHED, CHOSEN[1]: CRASHED, CHOSEN[2]: PASSED}
    by_id = {r.case.id: r for r in done.results}
    first = "the process that ran it died: signal 6 (SIGABRT), for (float32[17])\nThe operator 'tanh' was called last."
    assert by_id[CHOSEN[0]].message == first
    assert by_id[CHOSEN[0]].reproducer.startswith("# tanh: value, on odd:0\n# the process dies in this call\n")
    assert by_id[CHOSEN[0]].reproducer.endswith("got = cd.tanh(x)\nprint(got)\n")
    assert by_id[CHOSEN[1]].message.endswith(
        f"The report of {CHOSEN[0]} has the call of this operator that was examined."
    )
    assert not done.green


class Died:
    """Processes that answer as a test says."""

    def __init__(self, *answers: tuple[list[Any], bool]) -> None:
        self.answers = list(answers)
        self.asked: list[crashes.Request] = []

    def __call__(self, request: crashes.Request) -> tuple[list[Any], bool]:
        self.asked.append(request)
        return self.answers.pop(0)


def test_the_call_of_a_crash_is_the_last_one_before_it() -> None:
    """The program is executed again; if that does not crash, the reproducer runs the whole case."""
    case = Case("softmax", "value", "float32", "contiguous")
    calls = [
        crashes.SampleCall("(float32[2])", "one"),
        "softmax",
        "exp",
        crashes.SampleCall("(float32[3])", "two"),
        "softmax",
        "sum",
    ]
    ask = Died((calls, True), ([], True))
    found = crashes.examined(case, "odd:0", "died: signal 8 (SIGFPE)", ask)
    assert ask.asked == [crashes.Trace(case), crashes.Execute("two")]
    assert found.message == "died: signal 8 (SIGFPE), for (float32[3])\nThe operator 'sum' was called last."
    assert (found.verdict, found.reproducer, found.uses) == (CRASHED, "two", ("exp", "sum"))
    found = crashes.examined(case, "odd:0", "died", Died((calls, True), ([], False)))
    assert found.reproducer.endswith("\n\ncheck('odd:0', 'softmax/value/float32/contiguous')\n")
    found = crashes.examined(case, "odd:0", "died", Died(([], True)))
    assert (found.message, "check(" in found.reproducer) == ("died", True)
    found = crashes.examined(case, "odd:0", "died", Died((calls, False)))
    assert found.message == "died\nAnother process that ran the case alone did not die."
    assert found.reproducer == ""


def test_a_crash_that_another_operator_explains_is_blocked_by_it() -> None:
    """The operators that were called before the crash count as for any failure."""
    exp = result("exp/value/float32", CRASHED)
    softmax = result("softmax/value/float32", CRASHED, uses=("exp",))
    assert [r.verdict for r in settled([exp, softmax])] == [CRASHED, BLOCKED]


def test_a_process_that_examines_a_crash_reports_each_call_before_it() -> None:
    """A sample in words with its program, then the operators that it calls; a program is only executed."""
    context, sent = Context(str(cd.get_default_device())), list[Any]()
    crashes.answer(context, crashes.Trace(Case("softmax", "value", "float32", "contiguous")), sent.append)
    assert isinstance(sent[0], crashes.SampleCall)
    assert sent[0].words.startswith("(float32[")
    assert "got = OPERATORS['softmax'](x, 1)\nprint(got)\n" in sent[0].program
    assert sent[1] == "softmax"
    assert context.watch is None
    crashes.answer(context, crashes.Execute("raise AssertionError"), sent.append)
    overloads: list[Any] = []
    crashes.answer(context, crashes.Trace(Case("max", "overloads", "float32", "contiguous")), overloads.append)
    assert overloads


class FatalFailure(ReplacedKernel):
    """A backend that refuses all work after a failed kernel, as a driver does after an illegal access."""

    def __init__(self) -> None:
        super().__init__("tanh", self.fails)
        self.gone = False

    def fails(self, right: Any, *args: Any) -> Any:
        self.gone = True
        raise RuntimeError("an illegal memory access was encountered")

    def synchronize(self, index: int) -> None:
        if self.gone:
            raise RuntimeError("an illegal memory access was encountered")

    def to_host(self, payload: Any) -> memoryview:
        self.synchronize(0)
        return super().to_host(payload)


def fatal() -> None:
    """Add a backend that one operator breaks permanently."""
    plugins.add_backend(FatalFailure())


def test_a_failure_that_breaks_the_device_for_good_is_one_failure(odd_is_removed: None) -> None:
    """The cases after it run in a new process, and the failure says so."""
    patterns = ("tanh/value/float32/contiguous", "trunc/value/float32/contiguous")
    broken, other = run("odd", Options(patterns=patterns, isolate=True), setup=fatal).results
    assert broken.verdict == FAILED
    assert broken.message.endswith(workers.UNUSABLE)
    assert other.verdict == PASSED


def no_backend() -> None:
    """Add nothing, so that a worker finds no device of the name."""
    if "odd" not in plugins.plugins() and os.environ.get("CANDELABRA_TEST_PARENT") == str(os.getpid()):
        plugins.add_backend(ReplacedKernel("tanh", _dies))


def test_a_worker_that_cannot_open_the_device_ends_the_run(
    odd_is_removed: None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The run reports it; the worker's own error is on the terminal."""
    monkeypatch.setenv("CANDELABRA_TEST_PARENT", str(os.getpid()))
    with pytest.raises(RuntimeError, match="a worker could not open 'odd': exit status 1"):
        run("odd", Options(patterns=CHOSEN[:1], isolate=True), setup=no_backend)
    assert "no backend is installed for device type 'odd'" in capfd.readouterr().err
