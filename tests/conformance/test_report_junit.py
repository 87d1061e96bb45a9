"""JUnit XML: valid whatever the texts contain, and with the elements that CI servers expect."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from candelabra_conformance import model
from candelabra_conformance.report import to_junit, write_junit
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.example_runs import PROGRAM, green_run, nasty_run, result, run


def _case(root: Element, name: str) -> Element:
    (found,) = [case for case in root.iter("testcase") if case.get("name") == name]
    return found


@pytest.mark.parametrize(
    ("verdict", "element"),
    [
        (model.FAILED, "failure"),
        (model.UNEXPECTED, "failure"),
        (model.CRASHED, "error"),
        (model.TIMED_OUT, "error"),
        (model.SKIPPED, "skipped"),
        (model.BLOCKED, "skipped"),
        (model.UNSUPPORTED, "skipped"),
        (model.EXPECTED, "skipped"),
    ],
)
def test_a_verdict_is_the_element_that_servers_know(verdict: str, element: str) -> None:
    """Red verdicts are failures or errors; cases without a run, and expected failures, are skipped with the reason."""
    found = _case(ElementTree.fromstring(to_junit(nasty_run())), f"softmax/{verdict}/float16").find(element)
    assert found is not None
    assert found.get("message") == f"because {verdict}"
    assert found.get("type") == verdict
    assert found.text == f"{verdict}: because {verdict}"


def test_a_case_that_passed_has_no_verdict_element() -> None:
    """Servers treat a test case without such an element as passed; it keeps its measurements."""
    made = run(result("exp/value/float32", ulp=0.512, route="native", level=2, seconds=0.5))
    case = _case(ElementTree.fromstring(to_junit(made)), "exp/value/float32")
    assert [child.tag for child in case] == ["properties"]
    assert {entry.get("name"): entry.get("value") for entry in case.iter("property")} == {
        "level": "2",
        "route": "native",
        "ulp": "0.512",
    }
    assert case.get("time") == "0.500000"
    assert case.get("classname") == "acme:0.exp"


def test_a_suite_is_an_operator_and_the_numbers_add_up() -> None:
    """The device is the first suite, then the operators by name; the totals are those of their cases."""
    root = ElementTree.fromstring(to_junit(nasty_run()))
    suites = root.findall("testsuite")
    assert (suites[0].get("name"), suites[-1].get("name")) == ("device", "level")
    names = [suite.get("name", "") for suite in suites[1:-1]]
    assert names == sorted(names)
    for parent in (root, *suites):
        assert int(parent.get("tests", "")) == len(list(parent.iter("testcase")))
        assert int(parent.get("failures", "")) == len(list(parent.iter("failure")))
        assert int(parent.get("errors", "")) == len(list(parent.iter("error")))
        assert int(parent.get("skipped", "")) == len(list(parent.iter("skipped")))
    assert suites[0].get("timestamp") == "2030-01-02T03:04:05Z"
    assert [p.get("value") for p in suites[0].findall("properties/property")] == [
        "acme:0", "ACME X1 <rev 2>", "candelabra-acme 1.0", "0.1.0", "0.1.0", "host:0", "3.11.9", "Linux", "-1", "3",
        "quick=True, only=['softmax/*'], limit=None, seconds=0.5, nested={'a': [1, 2]}",
    ]  # fmt: skip


def test_the_reproducer_is_the_output_of_its_case() -> None:
    """The program is where a server shows the output of a test, character by character."""
    case = _case(ElementTree.fromstring(to_junit(nasty_run())), "softmax/failed/float16")
    assert case.findtext("system-out") == PROGRAM


def test_what_xml_cannot_hold_is_written_as_python_escapes_it() -> None:
    """Control characters and half a surrogate pair would make the whole file unreadable."""
    root = ElementTree.fromstring(to_junit(nasty_run()))
    assert "nul \\x00 escape \\x1b[31m bell \\x07" in str(
        _case(root, "control/value/float32/contiguous").findtext("failure")
    )
    surrogate = str(_case(root, "surrogate/value/float32/contiguous").findtext("failure"))
    assert surrogate == "failed: half a pair \\ud800 and a noncharacter \\ufffe"


@given(st.text())
def test_any_text_gives_valid_xml(text: str) -> None:
    """An independent parser reads it, whatever message a driver gives."""
    made = run(result("a/b", model.FAILED, message=text, reproducer=text, blocked_by=text))
    ElementTree.fromstring(to_junit(made).encode())


def test_an_empty_run_is_an_empty_list(tmp_path: Path) -> None:
    """A run without cases is a valid file without suites."""
    write_junit(run(), tmp_path / "junit.xml")
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert root is not None
    assert (root.tag, root.get("tests"), len(root)) == ("testsuites", "0", 0)


def test_a_green_run_has_neither_failures_nor_errors() -> None:
    """The totals that a server evaluates are zero."""
    root = ElementTree.fromstring(to_junit(green_run()))
    assert (root.get("tests"), root.get("failures"), root.get("errors"), root.get("skipped")) == ("8", "0", "0", "0")


def test_a_level_that_is_not_reached_is_a_failure_of_its_own() -> None:
    """Servers show unsupported and blocked cases as skipped; a test case for each level says what they mean."""
    kept = (result("add/value", level=0), result("add/value/int8", level=1), result("add/out", level=2))
    example = run(*kept, result("exp/value", model.UNSUPPORTED, 2, message="no kernel"), options={"level": 2})
    root = ElementTree.fromstring(to_junit(example))
    assert [_case(root, f"level/{level}").find("failure") is None for level in range(3)] == [True, True, False]
    found = _case(root, "level/2").find("failure")
    assert found is not None
    assert found.get("message") == "level 2 is not reached"
    assert "unsupported exp: 1 case of value: no kernel" in str(found.text)
    assert root.get("failures") == "1"
    assert "level/3" not in to_junit(example)


def test_selected_cases_decide_no_level() -> None:
    """A run of selected cases has no test case for a level."""
    root = ElementTree.fromstring(to_junit(run(result("add/value"), options={"patterns": ["add/*"]})))
    assert [suite.get("name") for suite in root.findall("testsuite")] == ["add"]
