"""Measure every operator on large inputs, compared with PyTorch, and print the ten slowest.

The names are those of the index. The arguments are determined by trial: the first of ``FORMS`` that both libraries
accept is the timed statement. An operator that is more than ``LIMIT`` times slower needs a reason in known_slow.md.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from candelabra.library import entry_named, operator_named, public_names
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.cases import Case
from benchmarks.sides import Side

LIMIT = 3.0
PATIENCE = 3.0
"""The maximum duration of one call in PyTorch, in seconds; a form that needs longer is too large for the operator."""
KNOWN = Path(__file__).with_name("known_slow.md")
SETUP = """
xp.manual_seed(0)
n = 1 << 20
x, y, z = (xp.rand(n) * 0.8 + 0.1 for _ in range(3))
m, w = xp.rand(1024, 1024), xp.rand(1024, 1024)
k, l = xp.randint(1, 100, (n,)), xp.randint(1, 30, (n,))
b, c = x > 0.5, xp.complex(x, y)
i, j = xp.randint(0, n, (n,)), xp.randint(0, 1024, (1024, 1024))
s = xp.rand(256, 256); a = s @ s.mT + 256 * xp.eye(256); v = xp.rand(256, 8)
t = xp.rand(64, 128, 128)
image, filters = xp.rand(16, 32, 32, 32), xp.rand(32, 32, 3, 3)
"""
FORMS = (
    "x", "x, y", "x, y, z", "m", "m, 1", "m, w", "x, 0", "k", "k, l", "b", "b, b", "c", "c, c", "x, 3", "x, 0.5",
    "a", "a, a", "a, v", "t", "t, t", "m, 0, j", "m, 0, j, w", "m, 0, j[0]", "m, 0, j[0], w", "m, b.view(1024, 1024)",
    "m, b.view(1024, 1024), 0.5", "m, 0, 1", "m, (0, 1)", "(m, w)", "m, (1024 * 1024,)", "x, 2, 0", "k, x", "3, x",
    "m, 8, 1", "m, 8", "1024, 1024", "0, n", "image, filters", "image, 2", "v, 0, True", "x, x, 0.5", "m, m[0], m[0]",
    "m, 0, 2, 2", "m, x[0], x[1], x[2]", "0.0, 1.0, n", "(n,)", "(n,), 1.0", "n", "m, 'ij->ji'", "'ij,jk->ik', m, w",
)  # fmt: skip
"""Argument lists to try, the most common first."""
LEFT_OUT = re.compile(
    r"_$|^is_|manual_seed|^set_|^get_|^to$|dlpack|^from|^as_tensor|^tensor$|^asarray|numpy$|^save|^load"
)
"""Names that are not computations on large tensors: in-place forms (their functions are timed), inspection,
conversions."""


def measure(own: Side, peer: Side, only: str, seconds: float) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row per operator, and the names of the operators for which both sides accept no form."""
    names = sorted(n for n in public_names() if only in n and not LEFT_OUT.search(n))
    rows, unmeasured = [], []
    for name in track(names, description="measuring", console=Console(stderr=True)):
        case = _callable(name, own, peer)
        if case is None:
            unmeasured.append(name)
            continue
        turns = [(own.time(case, seconds), peer.time(case, seconds)) for _ in range(2)]
        own_time, peer_time = (min(times) for times in zip(*turns, strict=True))
        rows.append(
            {"name": name, "call": case.statement, "ours": own_time, "peer": peer_time, "ratio": own_time / peer_time}
        )
    return sorted(rows, key=lambda row: -row["ratio"]), unmeasured


def _callable(name: str, own: Side, peer: Side) -> Case | None:
    for form in FORMS:
        case = Case(name, f"xp.{name}({form})", SETUP)
        if peer.runs(case, PATIENCE) and own.runs(case, 4 * PATIENCE):
            return case
    return None


def known() -> dict[str, str]:
    """Return ``{operator: reason}`` from the table in known_slow.md; a row may have several names, also patterns."""
    result = {}
    for row in re.findall(r"^\|(.*)\|$", KNOWN.read_text(), re.MULTILINE):
        names, *_, reason = row.split("|")
        result.update(dict.fromkeys(re.findall(r"`([\w.*]+)`", names), reason.strip()))
    return result


def explained(name: str, reasons: dict[str, str]) -> bool:
    """Return whether one of the names of an operator has a reason."""
    names = {name}
    entry = operator_named(name) or entry_named(name)
    if entry is not None:
        names |= {entry.public_name, *entry.aliases}
    return any(fnmatchcase(each, pattern) for each in names for pattern in reasons)


def show(rows: list[dict[str, Any]], unmeasured: list[str]) -> bool:
    """Print the ten slowest operators and those without a reason. Return whether all slow operators have a reason."""
    table = Table("call", "ours, ms", "PyTorch, ms", "ratio", title="the worst ten")
    for row in rows[:10]:
        times = f"{row['ours'] * 1e3:.3f}", f"{row['peer'] * 1e3:.3f}", f"{row['ratio']:.1f}"
        table.add_row(row["call"].removeprefix("xp."), *times)
    console = Console(width=120)
    console.print(table)
    slow = [row for row in rows if row["ratio"] > LIMIT]
    reasons = known()
    unexplained = [f"{row['name']} ({row['ratio']:.1f})" for row in slow if not explained(row["name"], reasons)]
    print(f"{len(rows)} operators measured, {len(slow)} slower than {LIMIT:g} times PyTorch's time")
    print(f"not measured, for no form of arguments fits both: {', '.join(unmeasured) or 'none'}")
    print(f"slow without a line in {KNOWN.name}: {', '.join(unexplained) or 'none'}")
    return not unexplained
