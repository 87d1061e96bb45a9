"""A run as JUnit XML, the format that continuous integration servers read.

There is no standard. This is the common subset that Jenkins, GitLab, Azure and Buildkite read and pytest writes:
``testsuites`` > ``testsuite`` (an operator) > ``testcase`` (a case, whose name is its id). The last suite, ``level``,
has a test case for each level up to the required one, which fails if the level is not reached. XML 1.0 cannot contain
control characters, not even as references: they are escaped as in Python, ``\x1b``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from candelabra_conformance import model
from candelabra_conformance.model import LEVELS, Case, Result, Run
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


LEVEL: Final = "level"
"""The name of the suite with a test case for each level."""
OBSTACLES: Final = 50
"""The maximum number of reasons in the message of a level that is not reached."""


def to_junit(run: Run) -> str:
    """Return the run as XML text. The first line of a message is the attribute ``message``; the element has its full
    text."""
    decided = LEVELS if run.results and not run.selected else ()
    levels = [_level(run, level) for level in decided if level <= run.required]
    root = Element("testsuites", {"name": "candelabra-conformance"} | _totals([*run.results, *levels]))
    groups: dict[str, list[Result]] = {}
    for result in run.results:
        groups.setdefault(result.case.operator, []).append(result)
    for operator in sorted(groups, key=tally.operator_order):
        _suite(root, run, operator, sorted(groups[operator], key=lambda result: result.case))
    if levels:
        _suite(root, run, LEVEL, levels)
    ElementTree.indent(root, "")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def write_junit(run: Run, path: str | os.PathLike[str]) -> None:
    """Write the run to `path` as JUnit XML in UTF-8."""
    Path(path).write_text(to_junit(run), encoding="utf-8", newline="\n")


def _level(run: Run, level: int) -> Result:
    """Return the test case that a level is reached: blocked and unsupported cases, which servers show as skipped, are
    no failures of their own."""
    case = Case(LEVEL, str(level), level=level)
    if run.level >= level:
        return Result(case, model.PASSED)
    why = "\n".join(tally.obstacles(replace(run, options={**run.options, "required": level}))[:OBSTACLES])
    return Result(case, model.FAILED, message=f"level {level} is not reached\n{why}")


def _suite(root: Element, run: Run, operator: str, results: list[Result]) -> None:
    suite = SubElement(root, "testsuite", {"name": _xml(operator), "timestamp": _xml(run.started)} | _totals(results))
    subject = run.subject
    facts = {
        "device": subject.device,
        "description": subject.description,
        "backend": f"{subject.backend} {subject.backend_version}".strip(),
        "contributed kernels": subject.contributions,
        "core": subject.core,
        "suite": subject.suite,
        "reference": subject.reference,
        "python": subject.python,
        "platform": subject.platform,
        "level": "" if run.selected else str(run.level),
        "required level": "" if run.selected else str(run.required),
        "options": ", ".join(f"{name}={value}" for name, value in run.options.items()),
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
