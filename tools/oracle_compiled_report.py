"""The section of the oracle's report about compiled functions."""

from __future__ import annotations

import datetime
import textwrap
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from oracle_compiled_checks import Verdict

TITLE: Final = "## Compiled functions"
DESCRIPTION: Final = """
{date}. The samples of operators in {dtypes} and of modules for training and for evaluation (at most {samples} of
each), and of all optimizers (five steps; each `foreach` and `fused`, the rate as a number and as a tensor, the step
alone and with the loss and its backward pass) are run eagerly and by `compile(fullgraph=True)`: a call that is
traced, one that runs the graph on other values, and one that runs it again. Results, strides, writes to arguments,
buffers, states, and gradients of backward passes after the call and in the function have to agree within the
tolerances of the conformance suite, and one graph has to serve all calls. What no graph can repeat has to agree in
segments.
"""


def printed(verdict: Verdict) -> str:
    """Return the lines about one verdict."""
    counts = f"{verdict.samples} samples, {verdict.same_bits} of {verdict.calls} calls with the same bits"
    lines = [f"{verdict.name}: {verdict.status} ({counts}, {verdict.seconds:.1f} s)"]
    lines += [f"    break, {count} samples: {reason}" for reason, count in verdict.breaks.items()]
    return "\n".join([*lines, *(f"    {text[:600]}" for text in verdict.differences)]) + "\n"


def with_section(page: str, verdicts: dict[str, list[Verdict]], limits: dict[str, Any]) -> str:
    """Return the page with the section about these verdicts, by kind, in the place of the one that it has."""
    before, _, rest = page.partition(f"{TITLE}\n")
    after = rest.partition("\n## ")[2]
    section = "\n".join(_lines(verdicts, limits))
    return before.rstrip("\n") + f"\n\n{section}\n" + (f"\n## {after}" if after else "")


def _lines(verdicts: dict[str, list[Verdict]], limits: dict[str, Any]) -> list[str]:
    """Return the lines of the section."""
    dtypes = " and ".join(limits["dtypes"])
    described = DESCRIPTION.format(date=datetime.date.today().isoformat(), dtypes=dtypes, samples=limits["samples"])
    lines = [TITLE, "", *textwrap.wrap(described.strip(), 120), ""]
    for kind, group in verdicts.items():
        if group:
            lines.append(f"- {kind.capitalize()}: {_totals(group)}.")
    reasons: dict[str, list[str]] = defaultdict(list)
    for verdict in (v for group in verdicts.values() for v in group):
        for reason, count in verdict.breaks.items():
            some = "" if count >= verdict.samples else " (some samples)"
            reasons[reason].append(f"`{verdict.name}`{some}")
    if reasons:
        lines += ["", "| what no graph can repeat | in |", "|---|---|"]
        lines += [f"| {reason.replace('|', ' ')} | {', '.join(names)} |" for reason, names in sorted(reasons.items())]
    differing = [v for group in verdicts.values() for v in group if v.status == "differs"]
    if differing:
        lines += ["", "| differs | first difference |", "|---|---|"]
        lines += [f"| `{v.name}` | `{v.differences[0].replace('|', ' ').replace('`', ' ')[:240]}` |" for v in differing]
    return lines


def _totals(verdicts: list[Verdict]) -> str:
    """Return the totals of one kind."""
    statuses = Counter(v.status for v in verdicts)
    samples, calls, bits = (sum(getattr(v, name) for v in verdicts) for name in ("samples", "calls", "same_bits"))
    judged = len(verdicts) - statuses["none"]
    return (
        f"of {judged}, {statuses['agrees']} agree in one graph, {statuses['breaks']} agree and have samples that no "
        f"graph can repeat, {statuses['differs']} differ ({samples} samples, {calls} compiled calls, {bits} of them "
        "with the bits of the eager call)"
    )
