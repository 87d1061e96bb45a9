"""Reports of a run as JSON, JUnit, Markdown, HTML, text for the terminal or a badge, and the difference of two runs."""

from candelabra_conformance.report.badge import to_badge
from candelabra_conformance.report.diff import Change, Difference, compare
from candelabra_conformance.report.html import to_html, write_html
from candelabra_conformance.report.json_form import (
    SCHEMA,
    ReportError,
    from_json,
    read_json,
    schema,
    to_json,
    write_json,
)
from candelabra_conformance.report.junit import to_junit, write_junit
from candelabra_conformance.report.markdown import to_markdown
from candelabra_conformance.report.terminal import print_summary, summary

__all__ = [
    "SCHEMA",
    "Change",
    "Difference",
    "ReportError",
    "compare",
    "from_json",
    "print_summary",
    "read_json",
    "schema",
    "summary",
    "to_badge",
    "to_html",
    "to_json",
    "to_junit",
    "to_markdown",
    "write_html",
    "write_json",
    "write_junit",
]
