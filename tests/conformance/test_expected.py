"""Expected failures: the file in the backend's package; strict, flaky and stale entries; and errors in the file."""

import sys
import types
from datetime import date
from pathlib import Path

import pytest
from candelabra.library import plugins
from candelabra_conformance.model import (
    CRASHED,
    EXPECTED,
    FAILED,
    PASSED,
    SKIPPED,
    TIMED_OUT,
    UNEXPECTED,
    UNSUPPORTED,
    Case,
    Result,
)
from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.running import Options, run
from candelabra_conformance.running.expected import ExpectedFailure, ExpectedFailuresError, applied, of_backend, read

TODAY = date(2026, 11, 21)


def compared_with_the_list(verdict: str, **entry: object) -> tuple[Result, tuple[str, ...]]:
    """Return the result after it is compared with one entry for all of softmax."""
    listed = ExpectedFailure("softmax/*", "the driver rounds", **entry)  # type: ignore[arg-type]
    (found,), stale = applied([Result(Case("softmax", "value", "float16"), verdict, message="why")], [listed], TODAY)
    return found, stale


@pytest.mark.parametrize("verdict", [FAILED, CRASHED, TIMED_OUT, UNSUPPORTED])
def test_a_listed_failure_is_expected(verdict: str) -> None:
    """The result keeps its own message, which follows the reason and the link."""
    found, stale = compared_with_the_list(verdict, link="https://example.org/7")
    assert (found.verdict, found.message) == (EXPECTED, "the driver rounds (https://example.org/7)\nwhy")
    assert stale == ()


def test_a_listed_case_that_passes_is_red() -> None:
    """The list is strict: a case that passes again has to be removed from it."""
    found, _ = compared_with_the_list(PASSED)
    assert found.verdict == UNEXPECTED
    assert found.message == "listed as an expected failure (the driver rounds), but it passed"


def test_a_flaky_case_may_do_either() -> None:
    """Only an entry that is marked as flaky allows both results."""
    assert compared_with_the_list(PASSED, flaky=True)[0].verdict == PASSED
    assert compared_with_the_list(FAILED, flaky=True)[0].verdict == EXPECTED
    assert compared_with_the_list(SKIPPED)[0].verdict == SKIPPED


def test_an_expired_entry_expects_nothing_and_is_reported() -> None:
    """After its date an entry no longer expects anything: the failure is a failure again."""
    found, stale = compared_with_the_list(FAILED, expires=TODAY)
    assert found.verdict == FAILED
    assert stale == ("softmax/*: expired on 2026-11-21",)
    assert compared_with_the_list(FAILED, expires=date(2026, 11, 22))[0].verdict == EXPECTED


def test_a_pattern_that_matches_nothing_is_reported() -> None:
    """A pattern that matches no case is reported, so that stale entries are removed."""
    results = [Result(Case("softmax", "value"), PASSED)]
    _, stale = applied(results, [ExpectedFailure("sofmax/*", "spelt wrongly")], TODAY)
    assert stale == ("sofmax/*: no case has such an id",)


GOOD = """
[[failure]]
id = "tanh/value/*"
reason = "one bit"
link = "https://example.org/1"
expires = 2999-01-01
flaky = true
"""


def test_the_file_is_read(tmp_path: Path) -> None:
    """Every key of an entry is read."""
    (tmp_path / "e.toml").write_text(GOOD)
    entry = ExpectedFailure("tanh/value/*", "one bit", "https://example.org/1", date(2999, 1, 1), True)
    assert read(tmp_path / "e.toml") == [entry]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[failure]\n", "e.toml is no TOML"),
        ("failure = 3\n", r"e.toml: write \[\[failure\]\] with two brackets"),
        ('[failure]\nid = "x"\n', r"e.toml: write \[\[failure\]\] with two brackets"),
        ('[[failure]]\nid = "x"\n', "e.toml, entry 1: 'reason' is missing"),
        ('[[failure]]\nid = " "\nreason = "x"\n', "e.toml, entry 1: 'id' is missing"),
        ('[[failure]]\nid = "x"\nreason = "x"\nsince = 3\n', "e.toml, entry 1: unknown key 'since'; there are expires"),
        ('[[failure]]\nid = "x"\nreason = "x"\nexpires = "soon"\n', "'expires' must be a date like 2027-01-31"),
    ],
)  # fmt: skip
def test_mistakes_in_the_file_are_named(tmp_path: Path, text: str, message: str) -> None:
    """The error names the entry and says what is wrong with it."""
    (tmp_path / "e.toml").write_text(text)
    with pytest.raises(ExpectedFailuresError, match=message):
        read(tmp_path / "e.toml")


def test_the_list_lives_in_the_backends_own_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is next to the module of the backend, and the run applies it."""
    package = tmp_path / "acme_backend"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "expected_failures.toml").write_text('[[failure]]\nid = "cos/value/float32/*"\nreason = "none"\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    made = types.new_class("Acme", (Mirror,), {}, lambda body: body.update(__module__="acme_backend.inner"))("acme")
    (package / "inner.py").write_text("")
    remove = plugins.add_backend(made)
    try:
        assert of_backend("acme") == package / "expected_failures.toml"
        done = run("acme", Options(patterns=("cos/value/float32/contiguous",)))
    finally:
        remove()
        sys.modules.pop("acme_backend", None)
    assert [r.verdict for r in done.results] == [UNEXPECTED]
    assert not done.green


def test_no_list_is_no_expectation() -> None:
    """A device type without a file, and an unknown device type, have no expected failures."""
    assert of_backend("nobody") is None
