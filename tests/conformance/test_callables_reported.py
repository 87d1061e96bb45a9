"""Public callables in the suite: which names there are, programs that show a fault, reports and the command line."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import candelabra as cd
import pytest
from candelabra import Tensor
from candelabra import _journal as journal
from candelabra._cli.main import main
from candelabra.library import public
from candelabra_conformance.context import Context
from candelabra_conformance.model import FAILED, PASSED, SKIPPED, Case
from candelabra_conformance.records import CallableRecord, UnknownNameError, arguments_of, everything_named, name_of
from candelabra_conformance.report import print_summary, read_json, to_markdown, write_json
from candelabra_conformance.running import Options
from candelabra_conformance.running import run as run_suite
from candelabra_conformance.samples import sample
from candelabra_conformance.suite import plan, run_case
from rich.console import Console

from tests.conformance.broken_device import Break, run
from tests.conformance.made_runs import result
from tests.conformance.made_runs import run as made_run


@pytest.fixture
def context() -> Context:
    """The reference device under test."""
    return Context(str(cd.get_default_device()))


# -- what there is to test --------------------------------------------------------------------------------------------
def test_a_callable_without_samples_is_listed(context: Context) -> None:
    """Its one case is skipped with the reason; nothing passes for want of a sample."""
    with journal.Recording() as recording:

        @public(method=False)
        def flicker(input: Tensor) -> Tensor:
            """The input."""
            return input

    try:
        (case,) = plan(context, operators=["flicker"])
        done = run_case(context, case)
    finally:
        recording.undo()
    assert (case.id, done.verdict) == ("flicker/samples", SKIPPED)
    assert "public callable 'flicker' has no samples" in done.message


def test_names_lead_to_what_is_tested() -> None:
    """Operators' own names, public names, aliases, methods; an unknown name is an error that quotes it."""
    assert [name_of(each) for each in everything_named("arccos")] == ["acos"]
    assert [name_of(each) for each in everything_named("Tensor.to")] == ["Tensor.to"]
    assert [name_of(each) for each in everything_named("max")] == ["max"]
    assert [name_of(each) for each in everything_named("special.expit")] == ["sigmoid"]
    with pytest.raises(UnknownNameError, match="there is no operator and no public name 'flicker'"):
        everything_named("flicker")


def test_arguments_by_parameter() -> None:
    """A variadic parameter has a tuple of all that is left."""
    (record,) = everything_named("Tensor.new_zeros")
    assert isinstance(record, CallableRecord)
    found = sample("x", 2, 3, dtype=cd.int64)
    assert arguments_of(record, found) == {"input": "x", "size": (2, 3), "dtype": cd.int64}


def test_draws_are_seeded_and_leave_the_generators_as_they_were(context: Context) -> None:
    """The reference tells the numbers beforehand; a user's stream goes on where it was."""
    cd.manual_seed(5)
    first = cd.rand(3).tolist()
    cd.manual_seed(5)
    (case,) = [c for c in plan(context, operators=["rand"]) if c.id == "rand/value/float32/contiguous"]
    assert run_case(context, case).verdict == PASSED
    assert cd.rand(3).tolist() == first


# -- reproducers ------------------------------------------------------------------------------------------------------
def plus_one(kernel: Any) -> Any:
    """A kernel whose result is off by one."""

    def wrong(*args: Any) -> Any:
        result = kernel(*args)
        result.inner[...] = result.inner + 1
        return result

    return wrong


PROGRAMS = {
    "zeros/value/float32/contiguous": ("full", "got = cd.zeros(2, 3, device=device)\n"),
    "Tensor.new_ones/value/int64/contiguous": ("full", "got = x.new_ones(3, 4)\n"),
    "rand/value/float32/contiguous": ("random_uniform", "cd.manual_seed(20240229)\ngot = cd.rand(2, 3, device=device)"),
    "Tensor.double/value/float32/contiguous": ("cast", "got = x.double()\n"),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_a_program_shows_the_fault_of_a_callable(broken: Break, case: str) -> None:
    """It calls the callable as users do, fails on the broken device, and passes when the kernel is right."""
    kernel, text = PROGRAMS[case]
    broken(**{kernel: plus_one})
    name, property, d, layout = case.split("/")
    done = run_case(Context("broken:0"), Case(name, property, d, layout))
    assert done.verdict == FAILED
    assert text in done.reproducer, done.reproducer
    with pytest.raises(AssertionError, match="wrong value"):
        run(done.reproducer)
    broken()
    run(done.reproducer)


# -- reports and the command line -------------------------------------------------------------------------------------
def test_reports_list_callables_without_samples() -> None:
    """On the terminal and in Markdown, some of them and how many more; nothing where each has samples."""
    rows = [result(f"f{i}/samples", SKIPPED, message=f"public callable 'f{i}' has no samples: …") for i in range(9)]
    rows.append(result("g/samples", SKIPPED, message="public callable 'g' makes nothing that the device stores"))
    console = Console(file=io.StringIO(), width=200, color_system=None)
    print_summary(made_run(*rows), console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "public callables without samples\n  f0, f1, f2, f3, f4, f5, f6, f7 and 1 more\n" in text
    assert "### Public callables without samples\n\n`f0`, `f1`" in to_markdown(made_run(*rows))
    assert "without samples" not in to_markdown(made_run(rows[-1]))


def test_the_command_line_takes_public_names(capsys: pytest.CaptureFixture[str]) -> None:
    """A callable by its name, an operator by an alias; a name that nothing has is an error in a sentence."""
    options = ["conformance", "--device", "fake", "--level", "1", "--jobs", "1"]
    assert main([*options, "--operator", "Tensor.tolist", "--operator", "arccos", "--case", "*/forms/float32/*"]) == 0
    assert "2 passed" in capsys.readouterr().out
    assert main([*options, "--operator", "flicker"]) == 2
    error = capsys.readouterr().err
    assert "candelabra conformance: there is no operator and no public name 'flicker'" in error
    assert "Traceback" not in error


def test_cases_of_callables_go_through_workers_and_json(tmp_path: Path) -> None:
    """Processes of their own give the same verdicts, and the report is read back as it was written."""
    patterns = ("Tensor.tolist/*/float32/*", "max/overloads/*")
    alone = run_suite("fake", Options(patterns=patterns))
    several = run_suite("fake", Options(patterns=patterns, jobs=2))
    assert {r.case.operator for r in alone.results} == {"Tensor.tolist", "max"}
    assert [(r.case, r.verdict) for r in alone.results] == [(r.case, r.verdict) for r in several.results]
    assert alone.green
    write_json(alone, tmp_path / "run.json")
    assert read_json(tmp_path / "run.json").results == alone.results
