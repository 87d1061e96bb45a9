"""The suite on devices with contributed kernels: they are compared with the kernels of the device's owner."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.backend import hookimpl
from candelabra.errors import BackendError
from candelabra.library import add_contribution, command, own_kernels, plugins
from candelabra_conformance import report
from candelabra_conformance.calling import split
from candelabra_conformance.context import Context
from candelabra_conformance.failure_program import rerun
from candelabra_conformance.fake import FakeContribution, installed
from candelabra_conformance.model import FAILED, PASSED, Case
from candelabra_conformance.mutants.hunting import KILLED, hunt
from candelabra_conformance.program_trial import shows
from candelabra_conformance.report import from_json, to_html, to_json, to_junit
from candelabra_conformance.report.tally import subject_text
from candelabra_conformance.rerun import check
from candelabra_conformance.running import Options, run
from candelabra_conformance.samples.sample import Sample
from candelabra_conformance.shadowing import shadow
from candelabra_conformance.suite import run_case
from candelabra_conformance.threads import in_threads

from tests.site import Site

VALUE = Case("exp", "value", "float32", "contiguous", 1)
Make = Callable[[Mapping[str, Any], bool], dict[str, Any]]

pytestmark = pytest.mark.usefixtures("owner_alone")


class Fast:
    """A contribution whose table is made by a function of (what serves so far, every size)."""

    def __init__(self, make: Make) -> None:
        self.make = make

    @hookimpl
    def candelabra_kernels(self, kernels: Mapping[str, Any], every_size: bool) -> dict[str, Any]:
        return self.make(kernels, every_size)


@pytest.fixture
def contribute() -> Iterator[Callable[[Make], None]]:
    """Return a function that contributes kernels to ``cpu``, which the test's end removes."""
    undone: list[Callable[[], None]] = []
    yield lambda make: undone.append(add_contribution("cpu", Fast(make), "acme-fast"))
    for undo in reversed(undone):
        undo()


def right(kernels: Mapping[str, Any], every_size: bool) -> dict[str, Any]:
    """Contribute a correct kernel."""
    exp = kernels["exp"]
    return {"exp": lambda x: exp(x)}


def wrong(kernels: Mapping[str, Any], every_size: bool) -> dict[str, Any]:
    """Contribute a kernel that is wrong by 0.1 % for many elements, and leaves calls with few ones to the owner."""
    exp, least = kernels["exp"], 0 if every_size else 1 << 20
    return {"exp": lambda x: exp(x) if x.size < least else (exp(x) * 1.001).astype(x.dtype)}


def rounding(kernels: Mapping[str, Any], every_size: bool) -> dict[str, Any]:
    """Contribute a kernel that computes float64 in float32."""
    exp = kernels["exp"]
    return {"exp": lambda x: exp(x.astype(np.float32)).astype(x.dtype) if x.dtype == np.float64 else exp(x)}


def test_a_contributed_kernel_is_compared_with_the_owners_on_the_same_device(contribute: Any) -> None:
    """By default the suite tests the contributed kernels, in calls of every size; "off" tests those of the owner."""
    contribute(wrong)
    done = run("cpu", Options(operators=("exp",), level=1))
    assert not done.conforms
    failed = next(r for r in done.results if r.case.id == "exp/value/float32/contiguous")
    assert failed.verdict == FAILED
    assert "elements wrong" in failed.message
    assert run("cpu", Options(operators=("exp",), level=1, contributions="off")).conforms
    assert cd.zeros(3).exp().tolist() == [1.0] * 3


def test_a_correct_contribution_passes(contribute: Any) -> None:
    """All levels of an operator pass, and the oracle is the device with its owner's kernels."""
    contribute(right)
    context = Context("cpu")
    assert context.contributions == "on"
    assert not context.oracle.itself
    assert run("cpu", Options(operators=("exp",), level=3, contributions="on")).conforms
    assert Context("cpu", "off").oracle.itself


def test_every_dtype_of_a_contribution_is_held_to_its_own_precision(contribute: Any) -> None:
    """A contributed kernel that computes in too few bits is found although the owner computes in no more."""
    contribute(rounding)
    context = Context("cpu")
    result = run_case(context, Case("exp", "value", "float64", "contiguous", 1), explained=False)
    assert result.verdict == FAILED
    assert run_case(context, VALUE, explained=False).verdict == PASSED


WRONG = """
from candelabra.backend import hookimpl
class Plugin:
    @hookimpl
    def candelabra_kernels(self, kernels, every_size):
        exp, least = kernels["exp"], 0 if every_size else 1000000
        return {"exp": lambda x: exp(x) if x.size < least else exp(x) * 2}
plugin = Plugin()
"""


@pytest.mark.parametrize("option", ["on", pytest.param("off", marks=pytest.mark.thorough)])
def test_workers_test_the_kernels_that_the_option_selects(tmp_path: Path, option: str) -> None:
    """Each process of a run with several jobs loads the installed contribution, and follows the option."""
    site = Site(tmp_path)
    site.install("cpu", WRONG, "acme-fast", "kernels")
    arguments = ["conformance", "--device", "cpu", "--jobs", "2", "--case", "exp/value/float32/contiguous"]
    program = "import sys; from candelabra.library import command; sys.exit(command({!r}))"
    done = site.run(program.format([*arguments, "--contributions", option]))
    assert done.returncode == (option == "on"), done.stdout + done.stderr
    served = "contributed kernels: acme-fast 1.0 (1 kernel)" in " ".join(done.stdout.split())
    assert served == (option == "on")


def test_reports_name_who_serves(contribute: Any) -> None:
    """The summary, JSON, JUnit and HTML have the distributions with their numbers of kernels, or that they are off."""
    contribute(right)
    done = run("cpu", Options(patterns=("exp/value/float32/*",)))
    assert done.subject.contributions == "acme-fast (1 kernel)"
    assert "contributed kernels: acme-fast (1 kernel) on candelabra" in subject_text(done)
    assert from_json(to_json(done)).subject == done.subject
    assert json.loads(to_json(done))["subject"]["contributions"] == "acme-fast (1 kernel)"
    assert '<property name="contributed kernels" value="acme-fast (1 kernel)" />' in to_junit(done)
    assert "<dt>contributed kernels</dt><dd>acme-fast (1 kernel)</dd>" in to_html(done)
    off = run("cpu", Options(patterns=("exp/value/float32/*",), contributions="off"))
    assert off.subject.contributions == "switched off"
    assert off.options == {"patterns": ("exp/value/float32/*",), "contributions": "off"}


def test_reports_of_earlier_versions_have_no_contributions(contribute: Any) -> None:
    """A JSON report without the entry is read; one with something other than a text is refused."""
    data = json.loads(to_json(run("cpu", Options(patterns=("exp/result/float32/*",), contributions="off"))))
    del data["subject"]["contributions"]
    assert from_json(json.dumps(data)).subject.contributions == ""
    data["subject"]["contributions"] = 3
    with pytest.raises(report.ReportError, match=r"subject\.contributions: expected a text, got 3"):
        from_json(json.dumps(data))


def test_a_run_is_not_resumed_with_other_contributions(contribute: Any) -> None:
    """The contributions belong to the subject of a run."""
    earlier = run("cpu", Options(patterns=("exp/value/float32/*",), contributions="off"))
    contribute(right)
    with pytest.raises(ValueError, match="cannot be gone on with: its contributions is not that of this run"):
        run("cpu", Options(patterns=("exp/value/float32/*",)), earlier=[earlier])


def test_the_command_has_the_option(contribute: Any, capsys: Any) -> None:
    """--contributions off tests the owner; --contributions on for a device without contributions is refused."""
    assert not plugins.contributing("meta")
    case = ["--case", "exp/value/float32/*", "--jobs", "1"]
    with installed():
        assert command(["conformance", "--device", "fake", "--contributions", "on", *case]) == 2
    assert "no distribution contributes kernels to device type 'fake': install one" in capsys.readouterr().err
    contribute(wrong)
    assert command(["conformance", "--device", "cpu", "--contributions", "on", *case]) == 1
    assert command(["conformance", "--device", "cpu", "--contributions", "off", *case]) == 0
    with pytest.raises(BackendError, match="no distribution contributes kernels to device type 'meta'"):
        Context("meta", "on")


@pytest.mark.parametrize(
    ("option", "words"), [("off", "1 passed"), pytest.param("on", "1 failed", marks=pytest.mark.thorough)]
)
def test_the_pytest_plugin_has_the_option(tmp_path: Path, option: str, words: str) -> None:
    """--candelabra-contributions selects the kernels under test: here, whether a wrong one is."""
    site = Site(tmp_path)
    site.install("cpu", WRONG, "acme-fast", "kernels")
    arguments = ["--pyargs", "candelabra_conformance", "--candelabra-device=cpu", "-p", "no:cacheprovider", "-q"]
    arguments += ["--candelabra-case=exp/value/float32/contiguous", f"--rootdir={tmp_path}", "-c", os.devnull]
    program = "import sys, pytest; sys.exit(pytest.main({!r}))"
    done = site.run(program.format([*arguments, f"--candelabra-contributions={option}"]))
    assert words in done.stdout, done.stdout + done.stderr


def test_a_reproducer_shows_the_fault_of_a_contributed_kernel(contribute: Any) -> None:
    """The program begins with the mode in which contributed kernels serve small calls, and ends in AssertionError."""
    contribute(wrong)
    result = run_case(Context("cpu"), VALUE)
    assert "\nimport candelabra.library\n" in result.reproducer
    assert "\ncd.library.serve_every_size().__enter__()\n" in result.reproducer
    assert shows(result.reproducer)
    assert cd.zeros(3).exp().tolist() == [1.0] * 3  # running a program leaves no mode behind
    with own_kernels():
        assert not shows(result.reproducer)
    with pytest.raises(AssertionError, match="elements wrong"):
        check("cpu", VALUE.id)
    check("cpu", VALUE.id, contributions="off")


def test_a_reproducer_of_the_owners_fault_switches_contributions_off(contribute: Any) -> None:
    """A failure of the owner's kernels is shown without the contributed ones."""
    contribute(right)
    undo = cd.register_kernel("cpu", "exp", lambda x: x)
    try:
        result = run_case(Context("cpu", "off"), VALUE)
        again = rerun(Context("cpu", "off"), VALUE, "a note")
    finally:
        undo()
    assert result.verdict == FAILED
    assert "\ncd.library.own_kernels().__enter__()\n" in result.reproducer
    assert again.endswith("check('cpu', 'exp/value/float32/contiguous', contributions='off')\n")


def test_answers_on_the_reference_device_come_from_its_owner(contribute: Any) -> None:
    """Another device is compared with the owner's kernels of the reference: a wrong contribution is not its fault."""
    contribute(lambda kernels, every_size: {"exp": lambda x: x + 1, "mul": lambda x, other: x + 2})
    with installed():
        context = Context("fake:0")
        assert context.contributions == "off"
        cases = [VALUE, *(Case("exp", name, "float32", "contiguous", 2) for name in ("gradient", "inplace", "out"))]
        verdicts = {case.property: run_case(context, case, explained=False) for case in cases}
    assert {name: (r.verdict, r.message) for name, r in verdicts.items()} == dict.fromkeys(verdicts, (PASSED, ""))


def test_a_contribution_to_an_accelerator_is_tested_like_its_own_kernels() -> None:
    """The fake accelerator with contributed kernels passes, and a wrong one that leaves small calls alone is found."""
    with installed() as accelerator:
        exp = plugins.owner_kernels("cpu")["exp"]
        remove = add_contribution("fake", FakeContribution(accelerator, {"exp": lambda x: exp(x)}, least=64), "acme")
        context = Context("fake:0")
        assert context.contributions == "on"
        assert run_case(context, VALUE, explained=False).verdict == PASSED
        assert "contributed by acme" in cd.explain("exp", cd.zeros(3, device="fake")).reason
        remove()
        add_contribution("fake", FakeContribution(accelerator, {"exp": lambda x: exp(x) * 2}, least=64), "acme")
        assert cd.zeros(3, device="fake").exp().tolist() == [1.0] * 3
        assert cd.zeros(64, device="fake").exp().tolist() == [2.0] * 64
        assert run_case(Context("fake:0"), VALUE, explained=False).verdict == FAILED
        assert run_case(Context("fake:0", "off"), VALUE, explained=False).verdict == PASSED


@pytest.mark.parametrize("mutant", ["contributed-exp-leaves-out-the-tail", "contributed-sum-ignores-its-dims"])
def test_mutants_of_contributed_kernels_are_caught(mutant: str) -> None:
    """A broken contributed kernel is caught although it leaves the sizes of most samples to the owner."""
    assert hunt(mutant).verdict == KILLED


def test_a_shadow_on_the_reference_device_compares_contributed_kernels_with_the_owners(contribute: Any) -> None:
    """A program on the reference device diverges where a contributed kernel differs from the owner's."""
    contribute(lambda kernels, every_size: {"exp": lambda x: x + 2})
    with pytest.raises(AssertionError, match="exp on cpu diverges from cpu"), shadow():
        cd.zeros(3).exp()


def test_threads_of_a_check_run_in_its_mode(contribute: Any) -> None:
    """A check that starts threads tests the same kernels in them."""
    contribute(lambda kernels, every_size: {"exp": lambda x: x + 2})
    found: list[Any] = []
    with own_kernels():
        in_threads(2, lambda _: found.append(cd.zeros(1).exp().tolist()))
    assert found == [[1.0], [1.0]]


def test_a_choice_is_judged_by_the_owners_kernels(contribute: Any) -> None:
    """The values that do not depend on a choice are computed on the reference by its owner's kernels."""
    contribute(lambda kernels, every_size: {"mul": lambda x, other: x * 0})
    sample = Sample((), of=lambda y: y * 2)
    (values,), _ = split(sample, cd.ones(2), Context("cpu").reference)
    assert values.tolist() == [2.0, 2.0]
