"""Calls with one argument spoilt: they raise errors about the arguments, change nothing, and refuse what PyTorch does.

``verdicts.txt`` has PyTorch's verdicts, which ``make oracle`` writes; ``wider.txt`` lists the calls that return on
purpose. ``make test`` judges the functions of one part; ``make test-all`` judges all, with huge numbers.
"""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from pathlib import Path

import candelabra as cd
import pytest
from candelabra.library import open_device
from candelabra_conformance.bad_calls import (
    Survey,
    bad_calls,
    judge,
    names_called,
    read,
    read_reasons,
    reason_for,
    surveyed,
    written,
)
from candelabra_conformance.bad_calls.judging import leaking
from candelabra_conformance.bad_calls.verdicts import functions

from tests.sampling import partition

HERE = Path(__file__).parent
REPORT = HERE.parents[2] / "docs/reports/bad-calls.md"
VERDICTS = read(HERE / "verdicts.txt")
REASONS = read_reasons(HERE / "wider.txt")
PARTS = 20
STALE = 0.05
"""The share of functions that may be without verdicts, because they are newer than the file."""


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Limit the address space, so that sizes such as 2**40 fail instead of filling the machine."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (24 << 30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def part(number: int) -> list[str]:
    """Return the functions of a part, which has its share of every namespace."""
    parts = partition(PARTS, names_called(), lambda name: name.rpartition(".")[0])
    return [name for name, found in parts.items() if found == number]


def judged(names: list[str], huge: bool) -> Survey:
    """Judge all bad calls of some functions on the default device."""
    return surveyed(names, open_device(cd.get_default_device()), VERDICTS, REASONS, huge)


def test_bad_calls_raise_in_the_users_words_and_change_nothing() -> None:
    """A sample of the functions has no silent, leaking or state-changing call."""
    found = judged(part(0), huge=False)
    assert found.calls > 1000
    assert found.silent == []
    assert found.leaking == []
    assert found.changing == []


@pytest.mark.thorough
def test_the_counts_of_wrong_calls_only_fall(little_memory: None) -> None:
    """Over at least 10,000 calls, no count is larger than in the report."""
    found = judged(names_called(), huge=True)
    assert found.calls >= 10_000
    reported = dict(re.findall(r"^\| (.*?) \| (\d+) \|$", REPORT.read_text(encoding="utf-8"), re.MULTILINE))
    assert {words: count for words, count in found.counts().items() if count > int(reported[words])} == {}, (
        found.silent + found.leaking + found.changing + found.unending
    )


def test_nearly_every_function_has_verdicts() -> None:
    """If this fails, run ``make oracle``."""
    known = functions(HERE / "verdicts.txt")
    missing = [name for name in names_called() if name not in known and next(bad_calls(name), None) is not None]
    assert len(missing) <= STALE * len(known), missing


def test_each_line_of_the_list_covers_a_call() -> None:
    """A reason that covers no call that PyTorch refuses is out of date."""
    refused = [call for call, verdict in VERDICTS.items() if verdict not in ".-X"]
    assert [line for line in REASONS if not any(line.covers(*call.rsplit("/", 2)) for call in refused)] == []


def test_verdicts_are_read_as_they_are_written(tmp_path: Path) -> None:
    """The file loses nothing, and stays below 100 kB."""
    text = written(VERDICTS.items(), "head")
    assert text.startswith("# head\n")
    assert len(text) < 100_000
    (tmp_path / "verdicts.txt").write_text(text, encoding="utf-8")
    assert read(tmp_path / "verdicts.txt") == VERDICTS


def test_the_judge_sees_what_is_wrong() -> None:
    """Errors of the interpreter, of array libraries and with internal names count as leaked; the library's do not."""

    def error(call: object) -> BaseException:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - any
            call()  # type: ignore[operator]
        return caught.value

    assert leaking(error(lambda: cd.ones(2).sum(5)), "sum") == ""
    assert leaking(error(lambda: cd.ones(2) + cd.ones(3)), "add") == ""
    assert leaking(error(lambda: cd.zeros(2).new_full((2**40,), 1.0)), "new_full") == ""  # raised in C
    assert "AttributeError" in leaking(error(lambda: None.shape), "f")  # type: ignore[attr-defined]
    assert "not supported between" in leaking(error(lambda: None < 1), "f")  # type: ignore[operator]
    assert "raised it" in leaking(error(lambda: [1].remove(0)), "f")


def test_reasons_are_found_by_pattern() -> None:
    """A line covers the functions, parameters and codes that its patterns match."""
    assert reason_for("add/other/J", REASONS).startswith("a Python integer")
    assert reason_for("add/other/s", REASONS) == ""


def test_a_call_is_judged_by_the_state_it_leaves() -> None:
    """The id of a bad call names function, parameter and value."""
    call = next(call for call in bad_calls("clamp") if call.id == "clamp/min/s")
    outcome = judge(call, open_device(cd.get_default_device()))
    assert (outcome.verdict, outcome.changed) == ("raised", "")
