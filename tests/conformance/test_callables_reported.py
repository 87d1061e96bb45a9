"""Public callables in the suite: their names, reproducers, reports and the command line."""

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
from tests.conformance.example_runs import result
from tests.conformance.example_runs import run as example_run


@pytest.fixture
def context() -> Context:
    """Return a context that tests the reference device."""
    return Context(str(cd.get_default_device()))


# -- names and arguments ----------------------------------------------------------------------------------------------
def test_a_callable_without_samples_is_listed(context: Context) -> None:
    """The single case of a callable without samples is skipped with a reason; it does not pass."""
    with journal.Recording() as recording:

        @public(method=False)
        def flicker(input: Tensor) -> Tensor:
            """Return the input."""
            return input

    try:
        (case,) = plan(context, operators=["flicker"])
        done = run_case(context, case)
    finally:
        recording.undo()
    assert (case.id, done.verdict) == ("flicker/samples", SKIPPED)
    assert "public callable 'flicker' has no samples" in done.message


def test_names_lead_to_what_is_tested() -> None:
    """Names of operators, public names, aliases and methods are accepted; the error of an unknown name quotes it."""
    assert [name_of(each) for each in everything_named("arccos")] == ["acos"]
    assert [name_of(each) for each in everything_named("Tensor.to")] == ["Tensor.to"]
    assert [name_of(each) for each in everything_named("max")] == ["max"]
    assert [name_of(each) for each in everything_named("special.expit")] == ["sigmoid"]
    with pytest.raises(UnknownNameError, match="there is no operator and no public name 'flicker'"):
        everything_named("flicker")


def test_arguments_by_parameter() -> None:
    """A variadic parameter has a tuple of all remaining arguments."""
    (record,) = everything_named("Tensor.new_zeros")
    assert isinstance(record, CallableRecord)
    found = sample("x", 2, 3, dtype=cd.int64)
    assert arguments_of(record, found) == {"input": "x", "size": (2, 3), "dtype": cd.int64}


def test_draws_are_seeded_and_leave_the_generators_as_they_were(context: Context) -> None:
    """The reference predicts the random numbers, and the state of the user's generators does not change."""
    cd.manual_seed(5)
    first = cd.rand(3).tolist()
    cd.manual_seed(5)
    (case,) = [c for c in plan(context, operators=["rand"]) if c.id == "rand/value/float32/contiguous"]
    assert run_case(context, case).verdict == PASSED
    assert cd.rand(3).tolist() == first


# -- reproducers ------------------------------------------------------------------------------------------------------
def plus_one(kernel: Any) -> Any:
    """Return a kernel whose result is off by one."""

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
    """The program calls the public name, fails on the broken device, and passes with the correct kernel."""
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
    """The terminal and Markdown reports list a few and the number of others; they omit the list if all have samples."""
    rows = [result(f"f{i}/samples", SKIPPED, message=f"public callable 'f{i}' has no samples: …") for i in range(9)]
    rows.append(result("g/samples", SKIPPED, message="public callable 'g' makes nothing that the device stores"))
    console = Console(file=io.StringIO(), width=200, color_system=None)
    print_summary(example_run(*rows), console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "public callables without samples\n  f0, f1, f2, f3, f4, f5, f6, f7 and 1 more\n" in text
    assert "### Public callables without samples\n\n`f0`, `f1`" in to_markdown(example_run(*rows))
    assert "without samples" not in to_markdown(example_run(rows[-1]))


def test_the_command_line_takes_public_names(capsys: pytest.CaptureFixture[str]) -> None:
    """The command line accepts a callable's name and an operator's alias; an unknown name is a one-line error."""
    options = ["conformance", "--device", "fake", "--level", "1", "--jobs", "1"]
    assert main([*options, "--operator", "Tensor.tolist", "--operator", "arccos", "--case", "*/forms/float32/*"]) == 0
    assert "2 passed" in capsys.readouterr().out
    assert main([*options, "--operator", "flicker"]) == 2
    error = capsys.readouterr().err
    assert "candelabra conformance: there is no operator and no public name 'flicker'" in error
    assert "Traceback" not in error


def test_cases_of_callables_go_through_workers_and_json(tmp_path: Path) -> None:
    """Worker processes give the same verdicts, and a report that is written and read again is equal."""
    patterns = ("Tensor.tolist/*/float32/*", "max/overloads/*")
    alone = run_suite("fake", Options(patterns=patterns))
    several = run_suite("fake", Options(patterns=patterns, jobs=2))
    assert {r.case.operator for r in alone.results} == {"Tensor.tolist", "max"}
    assert [(r.case, r.verdict) for r in alone.results] == [(r.case, r.verdict) for r in several.results]
    assert alone.green
    write_json(alone, tmp_path / "run.json")
    assert read_json(tmp_path / "run.json").results == alone.results
