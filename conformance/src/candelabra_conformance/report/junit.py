"""A run as JUnit XML, the format that continuous integration servers read.

There is no standard. This is the common subset that Jenkins, GitLab, Azure and Buildkite read and pytest writes:
``testsuites`` > ``testsuite`` (an operator) > ``testcase`` (a case, whose name is its id). XML 1.0 cannot contain
control characters, not even as references: they are escaped as in Python, ``\x1b``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from candelabra_conformance import model
from candelabra_conformance.model import Result, Run
from candelabra_conformance.report import tally

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML 1.0 does not allow, by production 2 (Char)."""
_ELEMENTS: Final = {
    model.FAILED: "failure",
    model.UNEXPECTED: "failure",
    model.CRASHED: "error",
    model.TIMED_OUT: "error",
    model.SKIPPED: "skipped",
    model.BLOCKED: "skipped",
    model.UNSUPPORTED: "skipped",
    model.EXPECTED: "skipped",
}


def to_junit(run: Run) -> str:
    """Return the run as XML text. The first line of a message is the attribute ``message``; the element has its full
    text."""
    root = Element("testsuites", {"name": "candelabra-conformance"} | _totals(run.results))
    groups: dict[str, list[Result]] = {}
    for result in run.results:
        groups.setdefault(result.case.operator, []).append(result)
    for operator in sorted(groups, key=tally.operator_order):
        _suite(root, run, operator, sorted(groups[operator], key=lambda result: result.case))
    ElementTree.indent(root, "")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def write_junit(run: Run, path: str | os.PathLike[str]) -> None:
    """Write the run to `path` as JUnit XML in UTF-8."""
    Path(path).write_text(to_junit(run), encoding="utf-8", newline="\n")


def _suite(root: Element, run: Run, operator: str, results: list[Result]) -> None:
    suite = SubElement(root, "testsuite", {"name": _xml(operator), "timestamp": _xml(run.started)} | _totals(results))
    subject = run.subject
    facts = {
        "device": subject.device,
        "backend": f"{subject.backend} {subject.backend_version}",
        "core": subject.core,
        "suite": subject.suite,
    }
    _properties(suite, facts)
    for result in results:
        _case(suite, run.subject.device, result)


def _case(suite: Element, device: str, result: Result) -> None:
    case = SubElement(
        suite,
        "testcase",
        classname=_xml(f"{device}.{result.case.operator}"),
        name=_xml(result.case.id),
        time=f"{result.seconds:.6f}",
    )
    known = {"level": str(result.case.level), "route": result.route, "ulp": tally.ulp_text(result.ulp)}
    _properties(case, known | {"blocked by": result.blocked_by})
    if result.verdict in _ELEMENTS:
        why = result.message or model.VERDICTS[result.verdict]
        found = SubElement(case, _ELEMENTS[result.verdict], type=result.verdict, message=_xml(why.split("\n")[0]))
        found.text = _xml(f"{result.verdict}: {why}")
    if result.reproducer:
        SubElement(case, "system-out").text = _xml(result.reproducer)


def _properties(parent: Element, entries: dict[str, str]) -> None:
    if any(entries.values()):
        properties = SubElement(parent, "properties")
        for name, value in entries.items():
            if value:
                SubElement(properties, "property", name=name, value=_xml(value))


def _totals(results: Iterable[Result]) -> dict[str, str]:
    results = list(results)
    kinds = [_ELEMENTS.get(result.verdict) for result in results]
    return {
        "tests": str(len(results)),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
        "skipped": str(kinds.count("skipped")),
        "time": f"{sum(result.seconds for result in results):.6f}",
    }


def _xml(text: str) -> str:
    return _NOT_XML.sub(lambda match: ascii(match[0])[1:-1], text)
