"""The oracle's totals, and its report as Markdown."""

from __future__ import annotations

import datetime
import platform
from collections import Counter, defaultdict

import candelabra
import numpy
import torch
from oracle_checks import Limits, Verdict

WORST = ("right", "peer", "unsupported", "missing", "wrong")
"""The statuses in ascending order of severity: a name with several variants has the worst one of them."""


def by_name(verdicts: list[Verdict]) -> dict[str, str]:
    """Return each operator's status: that of the worst of its variants."""
    groups: dict[str, list[str]] = defaultdict(list)
    for verdict in verdicts:
        groups[verdict.operator].append(verdict.status)
    return {name: max(group, key=WORST.index) for name, group in groups.items()}


def summary(verdicts: list[Verdict]) -> str:
    """Return the totals, by name and by set of samples."""
    statuses = by_name(verdicts)
    counts = Counter(statuses.values())
    judged = len(statuses) - counts["peer"]
    share = 100 * counts["right"] / judged if judged else 0.0
    variants = Counter(v.status for v in verdicts)
    return (
        f"of {judged} names that PyTorch itself passes, {counts['right']} wholly right ({share:.1f} %); "
        f"{counts['wrong']} differ somewhere, {counts['missing']} are missing, {counts['unsupported']} are not "
        f"supported by decision ({variants['right']} of {len(verdicts) - variants['peer']} sets of samples, "
        f"{sum(v.samples for v in verdicts)} samples)"
    )


def by_namespace(verdicts: list[Verdict]) -> dict[str, list[Verdict]]:
    """Return the verdicts of ``nn.functional`` and the others."""
    names = {True: "`nn.functional`", False: "Other operators"}
    return {names[nn]: [v for v in verdicts if v.operator.startswith("nn.functional.") is nn] for nn in (True, False)}


def markdown(verdicts: list[Verdict], limits: Limits) -> str:
    """Return the whole report."""
    lines = [
        "# As PyTorch: the operators, measured",
        "",
        f"{datetime.date.today().isoformat()}: candelabra {candelabra.__version__}, PyTorch {torch.__version__}, "
        f"on Python {platform.python_version()}, NumPy {numpy.__version__}. Written by `make oracle`.",
        "",
        "Each operator is run with the samples that PyTorch ships in its wheel (`OpInfo`), in every dtype that both",
        f"have (at most {limits.samples} samples a dtype): values within its tolerances, dtypes, shapes, gradients,",
        "methods, in-place and `out=` forms, aliases, classes of errors. One difference anywhere, and the operator is",
        "not wholly right. What was decided not to be supported counts as not right.",
        "",
        "What is not held against either library:",
        "",
        "- Values beyond the tolerance, where candelabra is at most twice as far from PyTorch's answer in double",
        "  precision as PyTorch itself, or gives what the function of NumPy or SciPy gives that PyTorch's own tests",
        "  hold it against.",
        "- Values of random and uninitialised results; of randomised factorizations where the rank is not reached.",
        "- Which of several equal elements an index means, where PyTorch leaves that open.",
        "- Gradients in half precision, and where PyTorch's own gradient test is marked as failing.",
        "- The texts of errors.",
        "",
        *(f"- {title}: {summary(part)}." for title, part in by_namespace(verdicts).items() if part),
        "",
    ]
    titles = {"wrong": "Differ somewhere", "missing": "Missing", "unsupported": "Not supported by decision",
              "peer": "PyTorch itself gives no answer", "right": "Wholly right"}  # fmt: skip
    for status, title in titles.items():
        chosen = [v for v in verdicts if v.status == status]
        if not chosen:
            continue
        lines += [f"## {title}", ""]
        if status == "wrong":
            lines += ["| operator | first difference |", "|---|---|"]
            lines += [f"| `{v.name}` | {_cell(v.differences[0])} |" for v in chosen]
        else:
            lines.append(", ".join(f"`{v.name}`" for v in chosen))
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return "`" + text.replace("|", "\\|").replace("`", "'")[:240] + "`"
