"""The comparison of two runs: regressions, fixes, new cases, and the command's output and exit status."""

from __future__ import annotations

import io
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from candelabra_conformance import model
from candelabra_conformance.model import Run
from candelabra_conformance.report import Change, compare, diff, diff_text, write_json

from tests.conformance.example_runs import NASTY, green_run, nasty_run, result, run, subject


def _verdicts(before: str, after: str) -> tuple[Run, Run]:
    return run(result("exp/value/float32", before)), run(result("exp/value/float32", after))


def _ids(changes: tuple[Change, ...]) -> list[str]:
    return [change.case.id for change in changes]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (model.PASSED, model.FAILED),
        (model.PASSED, model.CRASHED),
        (model.PASSED, model.EXPECTED),
        (model.PASSED, model.BLOCKED),
        (model.PASSED, model.UNSUPPORTED),
        (model.PASSED, model.SKIPPED),
        (model.UNSUPPORTED, model.FAILED),
        (model.EXPECTED, model.FAILED),
    ],
)
def test_what_worked_and_does_not_is_a_regression_and_the_reverse_a_fix(before: str, after: str) -> None:
    """A failure that is now hidden by an expected failure, and one that is no longer tested, are regressions too."""
    worse = compare(*_verdicts(before, after))
    assert (_ids(worse.regressions), worse.fixes, worse.regressed) == (["exp/value/float32"], (), True)
    better = compare(*_verdicts(after, before))
    assert (better.regressions, _ids(better.fixes), better.regressed) == ((), ["exp/value/float32"], False)


@pytest.mark.parametrize(
    ("before", "after"),
    [(model.BLOCKED, model.FAILED), (model.FAILED, model.CRASHED), (model.SKIPPED, model.UNSUPPORTED)],
)
def test_a_verdict_that_is_worth_the_same_is_neither(before: str, after: str) -> None:
    """A case that was blocked and fails now did not work before either; it is listed among the other changes."""
    found = compare(*_verdicts(before, after))
    assert (found.regressions, found.fixes) == ((), ())
    assert _ids(found.other_verdicts) == ["exp/value/float32"]
    assert not found.regressed


def test_an_unexpected_pass_is_a_fix() -> None:
    """The kernel works; the outdated list of expected failures makes the run fail on its own."""
    assert len(compare(*_verdicts(model.EXPECTED, model.UNEXPECTED)).fixes) == 1


def test_a_run_is_no_different_from_itself() -> None:
    """Every list is empty, and the text has only the outcome."""
    found = compare(nasty_run(), nasty_run())
    assert not found.regressed
    assert diff_text.text(found) == "acme:0: level none, 0 regressions, 0 fixes in 21 common cases\n"
    assert diff_text.markdown(found) == "## ✅ acme:0: level none, 0 regressions, 0 fixes in 21 common cases\n"


def test_new_cases_and_missing_ones_are_not_changes() -> None:
    """A new case that fails is not a regression; it is listed before the others."""
    before = run(result("add/value"), result("mul/value"))
    after = run(result("add/value"), result("exp/value"), result("sin/value", model.FAILED, message="wrong"))
    found = compare(before, after)
    assert [r.case.id for r in found.appeared] == ["exp/value", "sin/value"]
    assert [r.case.id for r in found.vanished] == ["mul/value"]
    assert not found.regressed
    text = diff_text.text(found)
    assert "new cases that fail: 1\n  sin/value: failed\n      wrong\n" in text
    assert "other new cases: 1\n  exp/value: passed\n" in text
    assert "cases that are gone: 1\n  mul/value: passed\n" in text


def test_routes_are_compared_whatever_the_verdict() -> None:
    """A change from native to fallback is worse although the values are correct; a case without a run has no route."""
    before = run(result("a/v", route="native"), result("b/v", route="fallback"), result("c/v", route="native"))
    after = run(result("a/v", route="fallback"), result("b/v", route="composite"), result("c/v", model.SKIPPED))
    found = compare(before, after)
    assert (_ids(found.worse_routes), _ids(found.better_routes)) == (["a/v"], ["b/v"])
    assert "cases further from the device's own kernel: 1\n  a/v: native → fallback\n" in diff_text.text(found)


@pytest.mark.parametrize(
    ("before", "after", "larger"),
    [
        (1.0, 2.1, True),
        (1.0, 2.0, False),
        (0.0, 1.0, False),
        (0.0, 1.01, True),
        (3.0, math.nan, True),
        (math.nan, math.nan, False),
        (math.inf, math.nan, False),
        (None, 5.0, False),
        (5.0, None, False),
    ],
)
def test_an_error_grew_when_it_is_more_than_twice_as_large(
    before: float | None, after: float | None, larger: bool
) -> None:
    """Errors below half a unit, the rounding of a correct result, are equal; NaN is the largest error."""
    old, new = run(result("a/v", ulp=before)), run(result("a/v", ulp=after))
    assert bool(compare(old, new).larger_errors) is larger
    assert bool(compare(new, old).smaller_errors) is larger


def test_a_level_that_falls_is_a_regression() -> None:
    """A level also falls if its cases are missing."""
    lower = replace(green_run(), results=green_run().results[:3])
    found = compare(green_run(), lower)
    assert found.regressed
    assert diff_text.text(found).startswith("acme:0: level 3 (all dtypes and properties) → 2 (training), 0 regressions")
    assert not compare(lower, green_run()).regressed


def test_of_a_case_with_several_results_the_worst_counts() -> None:
    """Two workers may have run the same case."""
    twice = run(result("a/v"), result("a/v", model.FAILED), result("a/v"))
    assert len(compare(run(result("a/v")), twice).regressions) == 1


def test_it_says_in_what_the_subjects_differ() -> None:
    """The report names a new driver, which may be the cause, and different options, which explain missing cases."""
    after = replace(
        green_run(), subject=subject(backend_version="1.1", facts={"driver": "5.0"}), options={"quick": True}
    )
    text = diff_text.text(compare(green_run(), after))
    assert "\nbackend version: 1.0 → 1.1\n" in text
    assert "\ndriver: 4.2 → 5.0\n" in text
    assert "\nmemory: 8 GiB → none\n" in text
    assert "\noptions differ: {} → {'quick': True}\n" in text


def test_long_lists_are_cut_and_say_so() -> None:
    """The limit applies to every list separately, in text and in Markdown."""
    before = run(*(result(f"op{at}/value") for at in range(9)))
    after = run(*(result(f"op{at}/value", model.FAILED, message="wrong") for at in range(9)))
    found = compare(before, after)
    assert diff_text.text(found, 2).count("passed → failed") == 2
    assert "  … and 7 more\n" in diff_text.text(found, 2)
    assert diff_text.markdown(found, 2).count("passed → failed") == 2
    assert "### Regressions: 9\n" in diff_text.markdown(found, 2)
    assert "… and 7 more\n" in diff_text.markdown(found, 2)


def test_messages_stay_inside_their_blocks_of_markdown() -> None:
    """A message with fences does not end its own block."""
    after = run(result("a/b", model.FAILED, message=NASTY["quotes"]))
    text = diff_text.markdown(compare(run(result("a/b")), after))
    assert "- `a/b`: passed → failed\n\n  ````\n  both" in text
    assert text.endswith("\\ backslash\n  ````\n")


# The command


def _files(folder: Path, before: Run, after: Run) -> list[str]:
    write_json(before, folder / "a.json")
    write_json(after, folder / "b.json")
    return [str(folder / "a.json"), str(folder / "b.json")]


def test_the_command_returns_1_on_a_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A step of continuous integration fails without further code; the reverse comparison succeeds."""
    files = _files(tmp_path, green_run(), replace(green_run(), results=green_run().results[1:2]))
    assert diff.main(files) == 1
    assert "cases that are gone: 3" in capsys.readouterr().out
    assert diff.main(files[::-1]) == 0
    assert "level none → 3" in capsys.readouterr().out


def test_the_command_prints_markdown_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The Markdown form suits a comment or a job's summary."""
    files = _files(tmp_path, *_verdicts(model.PASSED, model.FAILED))
    assert diff.main([*files, "--markdown", "--limit", "0"]) == 1
    assert capsys.readouterr().out.startswith("## ❌ acme:0: level none, 1 regression, 0 fixes in 1 common case\n")


def test_the_command_returns_2_when_a_file_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The comparison did not take place; the message names the file."""
    files = _files(tmp_path, green_run(), green_run())
    Path(files[1]).write_text("{}", encoding="utf-8")
    assert diff.main(files) == 2
    assert "b.json: not a report" in capsys.readouterr().err
    assert diff.main([files[0], str(tmp_path / "none.json")]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_the_command_returns_2_when_there_is_nothing_to_compare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A comparison without common cases must not succeed: the wrong file was passed."""
    assert diff.main(_files(tmp_path, run(result("a/v")), run(result("b/v")))) == 2
    assert "the two runs have no case in common: nothing was compared" in capsys.readouterr().err


def test_the_command_prints_on_a_terminal_without_unicode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters that the terminal cannot encode are escaped."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", newline="\n"))
    assert diff.main(_files(tmp_path, *_verdicts(model.FAILED, model.PASSED))) == 0
    sys.stdout.flush()
    assert b"exp/value/float32: failed \\u2192 passed\n" in raw.getvalue()
