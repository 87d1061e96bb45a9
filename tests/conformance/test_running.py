"""Runs: blocked cases, suggested kernels, quick runs, workers that hang, time limits, and vendors' operators."""

import fnmatch
import io
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.errors import BackendError
from candelabra.library import OPERATORS, plugins
from candelabra_conformance import showing
from candelabra_conformance.causes import declined, next_kernels
from candelabra_conformance.context import Context
from candelabra_conformance.fake import FakeAccelerator
from candelabra_conformance.model import (
    BLOCKED,
    CRASHED,
    FAILED,
    PASSED,
    SAMPLES,
    SKIPPED,
    TIMED_OUT,
    UNEXPECTED,
    UNSUPPORTED,
    Case,
    NextKernel,
    Result,
)
from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.report.tally import remaining_text
from candelabra_conformance.running import Options, ResumeError, run, workers
from candelabra_conformance.running.blocking import blocked_by_memory, settled
from candelabra_conformance.running.pairwise import pairwise
from candelabra_conformance.running.quick import IN_EACH_DTYPE, LAID_OUT, OF_KERNELS, TRANSFORMED, quick
from candelabra_conformance.running.run import planned_cases
from candelabra_conformance.samples import gather, sample
from candelabra_conformance.suite import plan, run_case
from rich.console import Console

from tests.conformance.odd_device import CHOSEN, ReplacedKernel


@pytest.fixture
def added() -> Iterator[Callable[..., None]]:
    """Return a function that adds backends for one test."""
    removals = []

    def add(backend: Any, plugin: Any = None) -> None:
        removals.append(plugins.add_backend(backend, plugin))

    yield add
    for remove in reversed(removals):
        remove()


def result(case: str, verdict: str = PASSED, **more: Any) -> Result:
    """Return a result of the case with that id."""
    operator, name, dtype = case.split("/")
    return Result(Case(operator, name, dtype), verdict, **more)


# -- blocked cases ----------------------------------------------------------------------------------------------------
def test_a_failure_that_another_operator_explains_is_blocked_by_it() -> None:
    """An operator that calls a broken one is blocked by it; one that does not call it is a failure."""
    samples = [
        result("mul/value/float32", FAILED),
        result("softmax/value/float32", FAILED, uses=("exp", "mul"), reproducer="program"),
        result("sort/value/float32", FAILED, uses=("exp",)),
    ]
    mul, softmax, sort = settled(samples)
    assert (mul.verdict, sort.verdict) == (FAILED, FAILED)
    assert (softmax.verdict, softmax.blocked_by, softmax.reproducer) == (BLOCKED, "mul/value/float32", "")


def test_other_dtypes_and_other_properties_explain_nothing() -> None:
    """A product that is wrong in float16, or not deterministic, does not block the one in float32."""
    samples = [
        result("mul/value/float16", FAILED),
        result("mul/determinism/float32", FAILED),
        result("softmax/value/float32", FAILED, uses=("mul",)),
        result("softmax/gradient/float32", FAILED, uses=("mul",)),
    ]
    assert [r.verdict for r in settled(samples)] == [FAILED] * 4


def test_a_broken_derivative_explains_broken_derivatives() -> None:
    """A failed gradient blocks only gradients."""
    samples = [
        result("mul/gradient/float32", FAILED),
        result("softmax/gradient2/float32", FAILED, uses=("mul",)),
        result("softmax/value/float32", FAILED, uses=("mul",)),
    ]
    assert [r.verdict for r in settled(samples)] == [FAILED, BLOCKED, FAILED]


def test_of_two_that_call_each_other_one_stays_a_failure() -> None:
    """In a cycle at least one operator is reported as a failure."""
    samples = [
        result("sub/value/float32", FAILED, uses=("neg",)),
        result("neg/value/float32", FAILED, uses=("sub", "mul")),
    ]
    assert [r.verdict for r in settled(samples)] == [FAILED, BLOCKED]


def test_the_next_kernel_is_the_one_that_unlocks_most() -> None:
    """Kernels are sorted by the number of operators that they unlock, each with those operators."""
    lacking = {"softmax": ("exp", "sum"), "mean": ("sum",), "std": ("sum", "sqrt"), "exp": ("exp",), "add": ()}
    results = [replace(result(f"{op}/value/float32"), missing=missing) for op, missing in lacking.items()]
    assert next_kernels(results) == (
        NextKernel("sum", ("mean",), ("float32",)),
        NextKernel("exp", ("exp", "softmax"), ("float32",)),
        NextKernel("sqrt", ("std",), ("float32",)),
    )


def test_broken_kernels_are_ranked_together_with_missing_ones() -> None:
    """A kernel whose own cases fail unlocks the operators that it blocks, also through others, and names its dtypes."""
    results = [
        result("exp/value/float16", FAILED, route="native"),
        result("softmax/value/float16", BLOCKED, blocked_by="exp/value/float16"),
        result("attention/value/float16", BLOCKED, blocked_by="softmax/value/float16"),
        result("mean/value/int8", missing=("sum",)),
        result("mean/value/float32", missing=("sum",)),
        result("tanh/value/float32", CRASHED),
        result("gelu/value/float32", FAILED, route="composite"),
        result("sin/value/float32", UNEXPECTED, route="native"),
        result("device/copy/float32", FAILED),
        result("cos/value/float32", BLOCKED, blocked_by="device/copy/float32"),
    ]
    assert next_kernels(results) == (
        NextKernel("exp", ("attention", "exp", "softmax"), ("float16",), broken=True),
        NextKernel("sum", ("mean",), ("float32", "int8")),
        NextKernel("tanh", ("tanh",), ("float32",), broken=True),
    )


def test_kernels_that_decline_are_not_called_missing() -> None:
    """The device has the kernel: the list of what to write next says so, and the first reason of each dtype is kept."""
    results = [
        replace(result("mean/value/bool", missing=("sum",)), declined=("sum in bool: TypeError: no bools",)),
        replace(result("std/value/bool", missing=("sum",)), declined=("sum in bool: TypeError: later",)),
        replace(result("add/inplace/int8"), declined=("add_ in int8: no reason given",)),
        result("norm/value/bool", missing=("sqrt",)),
    ]
    assert next_kernels(results) == (
        NextKernel("sum", ("mean", "std"), ("bool",), declines=True),
        NextKernel("sqrt", ("norm",), ("bool",)),
    )
    assert [kernel.state for kernel in next_kernels(results)] == ["declines", "missing"]
    assert declined(results) == ["sum in bool: TypeError: no bools", "add_ in int8: no reason given"]


# -- quick runs -------------------------------------------------------------------------------------------------------
def test_pairs_of_axes_are_covered() -> None:
    """Each pair of property, dtype and layout occurs in one case; large inputs occur in one dtype."""
    cases = plan(Context(str(cd.get_default_device())), operators=["softmax", "add", "device"])
    few = pairwise(cases)

    def pairs(of: list[Case]) -> set[Any]:
        return {
            (c.operator, *pair)
            for c in of
            for pair in (("pd", c.property, c.dtype), ("pl", c.property, c.layout), ("dl", c.dtype, c.layout))
        }

    assert len(few) < 0.9 * len(cases)
    large = [c for c in cases if c.layout == "large"]
    assert pairs([c for c in few if c.layout != "large"]) == pairs([c for c in cases if c not in large])
    assert len({(c.operator, c.dtype) for c in few if c in large}) == len({c.operator for c in large}) == 2
    assert [c for c in few if c.operator == "device"] == [c for c in cases if c.operator == "device"]


def test_a_quick_run_tries_kernels_in_every_dtype_and_in_every_layout_of_one() -> None:
    """Values occur in each dtype, and in each layout of the first floating dtype; other properties in one dtype."""
    cases = plan(Context(str(cd.get_default_device())), operators=["softmax", "permute", "sub", "device"])
    few = quick(cases, {"softmax", "sub_"})
    tried = {(c.operator, c.property, c.dtype) for c in few}
    for name in ("softmax", "permute", "sub"):
        of = [c for c in cases if c.operator == name]
        assert {c for c in of if c.property == "value" and c.dtype == "float32"} <= set(few)
        assert {(name, c.property, c.dtype) for c in of if c.property in IN_EACH_DTYPE} <= tried
        assert {c.property for c in of} - {p for n, p, _ in tried if n == name} <= TRANSFORMED | {SAMPLES}
        own = [c for c in few if c.operator == name]
        assert all(c.layout in ("", "contiguous") for c in own if c.property not in LAID_OUT or c.dtype != "float32")
        assert len({c.dtype for c in own if c.property == "inputs"}) == 1
    assert [c for c in few if c.operator == "device"] == [c for c in cases if c.operator == "device"]


def test_a_quick_run_tries_each_property_of_bodies_once() -> None:
    """An operator without a kernel is tried in its first dtype on contiguous memory, except in the properties that it
    has because its operators have them. The gradient is one of these unless the record has a rule for it."""
    cases = plan(Context(str(cd.get_default_device())), level=2, operators=["softsign"])
    few = quick(cases, {"softmax"})
    left_out = TRANSFORMED | OF_KERNELS | {SAMPLES, "gradient"}
    assert sorted(c.property for c in few) == sorted({c.property for c in cases} - left_out)
    assert {c.dtype for c in few if c.property == "value"} == {"float32"}
    assert {c.layout for c in few} <= {"contiguous", ""}
    assert len(few) < len(quick(cases, {"softsign"})) < len(cases)
    with_a_rule = quick(plan(Context(str(cd.get_default_device())), level=2, operators=["softmax"]), ())
    assert [c.dtype for c in with_a_rule if c.property == "gradient"] == ["float32"]


def test_a_quick_run_plans_what_it_runs() -> None:
    """The properties of which it has no case, and the levels above its own, are left out of the plan."""
    context = Context(str(cd.get_default_device()))
    names = ("softmax", "hardsigmoid", "layer_norm", "split", "device")
    whole = plan(context, operators=names)
    kernels = context.instance.kernels
    few = planned_cases(context, Options(level=2, quick=True, operators=names))
    assert few == quick([case for case in whole if case.level <= 2], kernels)
    assert len(few) < len(plan(context, level=2, operators=names)) < len(whole)


def test_a_quick_run_keeps_the_only_case_of_an_operator() -> None:
    """The case of an operator's samples is the only one if their generator fails: a quick run fails, too."""
    only = Case("sub", SAMPLES, "", "", 1)
    assert quick([only], {"sub"}) == [only]
    assert quick([only, Case("sub", "value", "float32", "contiguous", 1)], {"sub"}) != [only]


def test_the_progress_is_shown_in_a_log_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal, which has a bar, a line every half minute says how far a run is."""
    monkeypatch.setattr(showing, "INTERVAL", 0.0)
    log = io.StringIO()
    case = Case("tanh", "value", "float32", "contiguous", 1)
    with showing.shown(Console(file=log), "odd:0") as (planned, finished):
        planned([case] * 1200)
        finished(Result(case, FAILED))
    assert log.getvalue() == f"odd:0: 1 of 1,200 cases, 1 failed; the last: {case.id}\n"


# -- workers ----------------------------------------------------------------------------------------------------------
def _hangs(right: Any, *args: Any) -> Any:
    time.sleep(600)


def hanging() -> None:
    """Add a backend whose tanh never returns."""
    plugins.add_backend(ReplacedKernel("tanh", _hangs))


def test_a_hang_is_a_verdict_after_the_time_limit(odd_is_removed: None) -> None:
    """A worker that does not answer is terminated."""
    done = run("odd", Options(patterns=CHOSEN[:1], isolate=True, timeout=1.0), setup=hanging)
    assert [(r.verdict, r.message) for r in done.results] == [(TIMED_OUT, "no answer within 1 s")]


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advance the clock of the time limit by one second per read."""
    seconds = count()
    clock = SimpleNamespace(monotonic=lambda: float(next(seconds)), perf_counter=time.perf_counter)
    monkeypatch.setattr(sys.modules["candelabra_conformance.running.run"], "time", clock)
    monkeypatch.setattr(workers, "time", clock)


@pytest.mark.parametrize("isolate", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_a_run_ends_when_its_time_is_up_and_says_what_remains(ticking: None, isolate: bool) -> None:
    """No case starts after the limit, an incomplete level is not reached, and the next run completes the run."""
    whole = Options(level=1, patterns=("tanh/value/*", "device/copy/float32"), isolate=isolate)
    first = run("fake", replace(whole, seconds=9.0))
    assert len(first.results) > 1
    assert first.remaining[1] > 1
    assert first.green
    assert first.level == 0
    second = run("fake", whole, earlier=[first])
    assert second.remaining == {}
    assert second.level == 1
    assert len(second.results) == len(first.results) + first.remaining[1]
    assert set(first.results) <= set(second.results)


def test_what_goes_on_when_the_time_is_up_is_stopped(
    odd_is_removed: None, ticking: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case that does not end cannot delay the end of the run; it remains to be run, and the summary names it."""
    monkeypatch.setattr(workers, "GRACE", 0.2)
    done = run("odd", Options(patterns=CHOSEN[:1], isolate=True, seconds=4.0, timeout=600.0), setup=hanging)
    assert done.results == ()
    assert done.remaining == {1: 1}
    assert done.stopped == CHOSEN[:1]
    assert remaining_text(done) == f"1 case remains, of level 1; when the time was up, {CHOSEN[0]} ran and did not end"


def test_only_what_earlier_runs_lack_is_run(added: Callable[..., None]) -> None:
    """Results of earlier runs are kept, failures too; blocked cases run again."""
    added(ReplacedKernel("tanh", lambda right, *args: -right(*args)))
    chosen = Options(patterns=("tanh/value/float32/contiguous", "cos/value/float32/contiguous"))
    first = run("odd", chosen)
    cos, tanh = first.results
    assert (cos.verdict, tanh.verdict) == (PASSED, FAILED)
    ran: list[str] = []
    blocked = replace(first, results=(replace(cos, verdict=BLOCKED), tanh))
    again = run("odd", chosen, earlier=[blocked], finished=lambda result: ran.append(result.case.operator))
    assert ran == ["cos"]
    assert [r.verdict for r in again.results] == [PASSED, FAILED]
    assert again.results[1] == tanh


def test_a_run_of_another_device_is_not_gone_on_with(added: Callable[..., None]) -> None:
    """The error names the property that differs."""
    chosen = Options(patterns=("device/copy/float32",))
    other = run("fake", chosen)
    other = replace(other, subject=replace(other.subject, python="2.7"))
    with pytest.raises(ResumeError, match=r"the run of 20.* cannot be gone on with: its python is not that of this"):
        run("fake", chosen, earlier=[other])


def test_workers_give_what_one_process_gives(odd_is_removed: None) -> None:
    """Verdicts and errors do not depend on the number of processes."""
    patterns = ("softmax/value/float32/*", "device/copy/*")
    alone = run("fake", Options(patterns=patterns))
    several = run("fake", Options(patterns=patterns, jobs=2))
    assert [(r.case, r.verdict, r.ulp) for r in alone.results] == [(r.case, r.verdict, r.ulp) for r in several.results]
    assert alone.green
    assert len(alone.results) > 15


# -- bad devices ------------------------------------------------------------------------------------------------------
def test_an_unknown_device_is_an_error() -> None:
    """The error has the registry's message."""
    with pytest.raises(BackendError, match="no backend is installed for device type 'nobody'"):
        run("nobody")


class ZeroMemory(Mirror):
    """A backend that returns zeros instead of the copied data."""

    def to_host(self, payload: Any) -> memoryview:
        return memoryview(bytes(len(super().to_host(payload))))


def test_broken_memory_blocks_its_dtype(added: Callable[..., None]) -> None:
    """One cause is one failure: the other cases of that dtype do not run, those of other dtypes do."""
    added(ZeroMemory("forgetful"))
    done = run("forgetful", Options(patterns=("device/copy/float32", "add/*/float32/*", "add/value/int64/contiguous")))
    verdicts = {r.case.id: (r.verdict, r.blocked_by) for r in done.results}
    messages = {r.message for r in done.results if r.verdict == BLOCKED}
    assert verdicts.pop("device/copy/float32") == (FAILED, "")
    assert verdicts.pop("add/value/int64/contiguous") == (FAILED, "")
    assert verdicts
    assert set(verdicts.values()) == {(BLOCKED, "device/copy/float32")}
    assert messages == {"device/copy/float32 does not hold, and all of float32 needs memory"}
    assert done.level == -1


def test_memory_that_fails_in_no_particular_dtype_blocks_everything() -> None:
    """A failure of memory that names no dtype blocks each case but those of memory, and a passed one none."""
    case = Case("add", "value", "int64", "contiguous", 1)
    memory = Case("device", "copy", "", "", 0)
    found = blocked_by_memory([Result(memory, FAILED)], case)
    assert found is not None
    assert found.message == f"{memory.id} does not hold, and everything needs memory"
    assert blocked_by_memory([Result(memory, FAILED)], memory) is None
    assert blocked_by_memory([Result(memory, PASSED)], case) is None


def test_no_kernel_and_no_fallback_is_unsupported(added: Callable[..., None]) -> None:
    """Without the claim the typed error is not a failure, but the level is not reached, and the kernel is named."""
    added(FakeAccelerator("lacking", missing_kernels=("tanh",)))
    chosen = Options(patterns=("tanh/value/float32/contiguous",), forbid_fallback=True)
    done = run("lacking", chosen)
    assert [r.verdict for r in done.results] == [UNSUPPORTED]
    assert done.next_kernels == (NextKernel("tanh", ("tanh",), ("float32",)),)
    allowed = run("lacking", replace(chosen, forbid_fallback=False))
    assert [(r.verdict, r.route) for r in allowed.results] == [(PASSED, "fallback")]


# -- samples ----------------------------------------------------------------------------------------------------------
def test_an_operator_without_samples_is_a_failure() -> None:
    """An operator without a generator, or with a generator that yields nothing, does not pass."""
    context = Context(str(cd.get_default_device()))
    before = gather.TABLES["inputs"].pop("softmax", None)
    try:
        gather.TABLES["inputs"]["softmax"] = [lambda t: iter(())]
        backend = run_case(context, Case("softmax", "samples"))
    finally:
        gather.TABLES["inputs"].pop("softmax")
        if before is not None:
            gather.TABLES["inputs"]["softmax"] = before
    assert backend.verdict == FAILED
    assert "operator 'softmax' has no samples in float16" in backend.message
    assert run_case(Context(str(context.device)), Case("softmax", "samples")).verdict == PASSED


def test_samples_of_an_unknown_sort_are_refused() -> None:
    """The error names the sort and lists the valid ones."""
    with pytest.raises(ValueError, match="kind must be one of ordinary, 0-d, zero-size, length-1, large, got 'huge'"):
        sample(np.ones(3), kind="huge")


def test_a_plugins_samples_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples of a plugin are added to the suite's own; an unknown sort is an error that names it."""
    from candelabra.library import contributions

    def with_samples(samples: Any) -> None:
        gather.from_plugins.cache_clear()
        monkeypatch.setattr(contributions, "samples", lambda: contributions.Contributions({"softmax": [samples]}, {}))

    before = len(list(gather.gathered(OPERATORS["softmax"], cd.float32, "inputs")))
    with_samples(lambda t: iter([sample(t(2, 2), 0)]))
    assert len(list(gather.gathered(OPERATORS["softmax"], cd.float32, "inputs"))) == before + 1
    with_samples({"examples": []})
    with pytest.raises(
        ValueError, match="gives 'softmax' samples called 'examples'; there are inputs, mistakes, special"
    ):
        gather.from_plugins()
    monkeypatch.undo()
    gather.from_plugins.cache_clear()


@pytest.mark.parametrize(
    "pattern", ["exp/value/*", "exp/v*", "*/value/int32/contiguous", "e*", "exp/valu?/*", "cos/value/*", "exp"]
)
def test_a_pattern_plans_the_cases_that_match(pattern: str) -> None:
    """Properties that a pattern cannot match are not planned; wildcards match slashes."""
    context = Context(str(cd.get_default_device()))
    every = plan(context, operators=["exp"])
    expected = [case for case in every if fnmatch.fnmatchcase(case.id, pattern)]
    assert plan(context, operators=["exp"], patterns=[pattern]) == expected
    assert bool(expected) == (pattern not in ("cos/value/*", "exp"))


def test_nothing_to_check_is_a_skip_with_its_reason() -> None:
    """Without streams their cases are skipped with the backend's reason."""
    context = Context(str(cd.get_default_device()))
    backend = run_case(context, Case("device", "streams"))
    assert (backend.verdict, backend.message.startswith("backend")) == (SKIPPED, True)
