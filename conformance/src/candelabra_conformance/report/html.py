"""A run as one self-contained HTML page, without a network, a server or other files.

The page's policy (Content-Security-Policy, in a ``meta`` element) allows only the hashes of its own script and style,
so that no text of a run can load or run code. Facts about the whole run are plain HTML. The cases are JSON in a data
block, as columns of small numbers; ``page.js`` and ``rows.js`` draw the visible ones.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, Final

from candelabra_conformance.causes import declined
from candelabra_conformance.model import BAD, LEVELS, ROUTES, Result, Run
from candelabra_conformance.report import tally
from candelabra_conformance.report.badge import to_badge

_PLACE: Final = re.compile(r"\{\{(\w+)\}\}")


def to_html(run: Run) -> str:
    """Return the page for `run`. Characters that UTF-8 cannot encode (half a surrogate pair) are escaped as in
    Python."""
    style, script = _part("page.css"), _part("rows.js") + _part("page.js")
    subject, cases, remaining = run.subject, tally.many(len(run.results), "case"), tally.remaining_text(run)
    places = {
        "policy": _policy(style, script),
        "title": escape(f"{subject.device}: candelabra conformance"),
        "style": style,
        "script": script,
        "device": escape(subject.device),
        "badge": to_badge(run),
        "about": escape(
            f"{tally.subject_text(run)}. {cases} in {tally.seconds_text(run.seconds)}: {tally.standing(run)}. "
            f"{remaining}".rstrip()
        ),
        "counts": _counts(run),
        "facts": _facts(run),
        "lists": _lists(run),
        "data": _data(run),
    }
    # A single pass leaves a text of the run that looks like a placeholder as it is.
    page = _PLACE.sub(lambda match: places[match[1]], _part("page.html"))
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


def write_html(run: Run, path: str | os.PathLike[str]) -> None:
    """Write the page for `run` to `path`."""
    Path(path).write_text(to_html(run), encoding="utf-8", newline="\n")


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    allowed = "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'"
    return allowed.format(_hash(style), _hash(script))


def _hash(text: str) -> str:
    """Return the hash by which a policy allows an inline script or style (CSP level 2, 4.2.5)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# Facts about the whole run


def _counts(run: Run) -> str:
    button = '<button type="button" class="{}" data-verdict="{}">{:,} {}</button>'
    found = tally.counts(run.results).items()
    return " ".join(button.format(verdict.replace(" ", "-"), verdict, count, verdict) for verdict, count in found)


def _facts(run: Run) -> str:
    subject = run.subject
    facts = {
        "backend": f"{subject.backend} {subject.backend_version}",
        "contributed kernels": subject.contributions,
        **subject.facts,
        "held against": subject.reference,
        "core": subject.core,
        "suite": subject.suite,
        "Python": subject.python,
        "platform": subject.platform,
        "started": run.started,
        "options": ", ".join(f"{name}={value}" for name, value in run.options.items()),
    }
    return "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items() if value)


def _lists(run: Run) -> str:
    routes = [
        f"{route}: {tally.many(cases, 'case')}, {tally.many(operators, 'operator')}"
        for route, (cases, operators) in tally.routes(run).items()
    ]
    levels = [
        f"{level}, {LEVELS[level]}: {_counts_text(counts)}" for level, counts in tally.counts_by_level(run).items()
    ]
    kernels = [
        f"{tally.kernel_text(each)}: {tally.gain_text(run, each)}: {', '.join(each.unlocks)}"
        for each in run.next_kernels
    ]
    errors = [f"{tally.ulp_text(result.ulp)} ULP: {result.case.id}" for result in tally.worst_ulps(run)[:20]]
    blockers = [f"{name}: {tally.many(count, 'case')}" for name, count in tally.blockers(run)]
    why = "what does not pass" if run.selected else f"why level {run.required} is not reached"
    lists = {
        why: tally.obstacles(run),
        "a capability to check": list(filter(None, [tally.flushed_text(run)])),
        "levels": levels,
        "routes": routes,
        "kernels to write next": kernels,
        "kernels that declined calls, with the first reason": declined(run.results),
        "what blocks other cases": blockers,
        "largest errors": errors,
        "expected failures that match nothing any more, or have expired": list(run.stale),
    }
    return "\n".join(_list(title, entries) for title, entries in lists.items() if entries)


def _counts_text(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items()) or "no case"


def _list(title: str, entries: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(entry)}</li>" for entry in entries)
    return f"<details><summary>{escape(title)}</summary><ul>{items}</ul></details>"


# The cases


def _data(run: Run) -> str:
    """Return the cases as JSON for a ``script`` element: without ``<``, which could end the element."""
    results = sorted(run.results, key=_order)
    verdicts = [verdict for verdict in tally.WORST_FIRST if any(result.verdict == verdict for result in results)]
    axes: dict[str, list[Any]] = {}
    columns: dict[str, list[Any]] = {}

    def axis(name: str, value: Callable[[Result], Any], order: Callable[[Any], Any] | None = None) -> None:
        axes[name] = sorted({value(result) for result in results}, key=order)
        at = {entry: index for index, entry in enumerate(axes[name])}
        columns[name] = [at[value(result)] for result in results]

    axis("operator", lambda r: r.case.operator, tally.operator_order)
    axis("property", lambda r: r.case.property)
    axis("dtype", lambda r: r.case.dtype, tally.dtype_order)
    axis("layout", lambda r: r.case.layout)
    axis("level", lambda r: r.case.level)
    axis("verdict", lambda r: r.verdict, verdicts.index)
    axis("route", lambda r: r.route, lambda name: ROUTES.index(name) if name in ROUTES else -1)
    texts: dict[str, int] = {"": 0}
    for name in ("message", "reproducer", "blocked_by"):
        columns[name] = [texts.setdefault(getattr(result, name), len(texts)) for result in results]
    for name in ("missing", "uses"):
        columns[name] = [texts.setdefault(", ".join(getattr(result, name)), len(texts)) for result in results]
    columns["ulp"] = [_ulp(result.ulp) for result in results]
    data = {"axes": axes, "columns": columns, "texts": list(texts), "bad": sorted(BAD)}
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _order(result: Result) -> tuple[Any, ...]:
    case = result.case
    return tally.operator_order(case.operator), case.property, tally.dtype_order(case.dtype), case.layout


def _ulp(ulp: float | None) -> float | str | None:
    """Round an error to few digits, since each of 50,000 cases has one."""
    if ulp is None:
        return None
    shown = tally.ulp_text(ulp)
    return shown if shown in ("nan", "inf", "-inf") else float(shown)
