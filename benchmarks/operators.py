"""Measure every operator on large or small inputs, compared with PyTorch, and print the ten slowest.

The names are those of the index. The arguments are those of ``CALLS``, or determined by trial: the first of ``FORMS``
that both libraries accept is the timed statement. An operator that is more than ``LIMIT`` times slower on large inputs
needs a reason in known_slow.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from candelabra.library import entry_named, operator_named, public_names
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.cases import Case
from benchmarks.operator_calls import CALLS, FORMS, LARGE, LEAVES, SETUP, SMALL
from benchmarks.sides import Side

LIMIT = 3.0
PATIENCE = 3.0
"""The maximum duration of one call in PyTorch, in seconds; a form that needs longer is too large for the operator."""
KNOWN = Path(__file__).with_name("known_slow.md")
LEFT_OUT = re.compile(
    r"_$|^is_|manual_seed|^set_|^get_|^to$|dlpack|^from|^as_tensor|^tensor$|^asarray|numpy$|^save|^load"
)
"""Names that are not computations on large tensors: in-place forms (their functions are timed), inspection,
conversions."""


ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
GRADIENTS = f"""
for leaf in ({", ".join(LEAVES)}):
    leaf.requires_grad_()
def total(result):
    if not isinstance(result, xp.Tensor):
        result = next(each for each in result if each.requires_grad)
    return (xp.view_as_real(result) if result.is_complex() else result).sum()
"""
"""The setup for passes forward and backward, from the sum of the first result that has a gradient."""


class Work(NamedTuple):
    """What is measured of each operator."""

    only: str = ""
    """Operators whose name contains this."""
    small: bool = False
    """64 elements in place of 1 M."""
    gradients: bool = False
    """Forward and backward."""


def sides(own: str, peer: str, one_thread: bool) -> tuple[Side, Side]:
    """Return the two workers. With ``one_thread``, times are CPU times, which other processes disturb less."""
    environment = {**os.environ, **ONE_THREAD} if one_thread else None
    return (
        Side(own, "candelabra", environment, cpu_time=one_thread),
        Side(peer, "torch", environment, cpu_time=one_thread),
    )


def measure(own: Side, peer: Side, work: Work, seconds: float) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row per operator, and the names of the operators for which both sides accept no form."""
    names = sorted(n for n in public_names() if work.only in n and not LEFT_OUT.search(n))
    rows, unmeasured = [], []
    for name in track(names, description="measuring", console=Console(stderr=True)):
        case = _callable(name, own, peer, work)
        if case is None:
            unmeasured.append(name)
            continue
        turns = [(own.time(case, seconds), peer.time(case, seconds)) for _ in range(2)]
        own_time, peer_time = (min(times) for times in zip(*turns, strict=True))
        rows.append(
            {"name": name, "call": case.statement, "ours": own_time, "peer": peer_time, "ratio": own_time / peer_time}
        )
    return sorted(rows, key=lambda row: -row["ratio"]), unmeasured


def cases(name: str, work: Work) -> Iterator[Case]:
    """Yield the calls to try, the most suitable first."""
    setup = (SMALL if work.small else LARGE) + SETUP + (GRADIENTS if work.gradients else "")
    for form in [CALLS[name]] if name in CALLS else FORMS:
        call = f"xp.{name}({form})"
        leaves = [each for each in LEAVES if re.search(rf"\b{each}\b", form)]
        if not work.gradients:
            yield Case(name, call, setup)
        elif leaves:
            yield Case(name, f"xp.autograd.grad(total({call}), ({', '.join(leaves)},), allow_unused=True)", setup)


def _callable(name: str, own: Side, peer: Side, work: Work) -> Case | None:
    for case in cases(name, work):
        if peer.runs(case, PATIENCE) and own.runs(case, 4 * PATIENCE):
            return case
    return None


def known() -> dict[str, str]:
    """Return ``{operator: reason}`` from the first table in known_slow.md; a row may have several names or patterns."""
    result = {}
    table = KNOWN.read_text().partition("\n## ")[0]
    for row in re.findall(r"^\|(.*)\|$", table, re.MULTILINE):
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


def show(rows: list[dict[str, Any]], unmeasured: list[str], limit: float = LIMIT) -> bool:
    """Print the ten slowest operators, those beyond a limit, and those without a reason.

    Return whether all operators beyond the limit have a reason.
    """
    table = Table("call", "ours, ms", "PyTorch, ms", "ratio", title="the worst ten")
    for row in rows[:10]:
        times = f"{row['ours'] * 1e3:.3f}", f"{row['peer'] * 1e3:.3f}", f"{row['ratio']:.1f}"
        table.add_row(row["call"].removeprefix("xp."), *times)
    console = Console(width=120)
    console.print(table)
    slow = {row["name"]: f"{row['name']} ({row['ratio']:.1f})" for row in rows if row["ratio"] > limit}
    reasons = known()
    unexplained = [text for name, text in slow.items() if not explained(name, reasons)]
    print(f"{len(rows)} operators measured, {len(slow)} slower than {limit:g} times PyTorch's time")
    print(f"these: {', '.join(slow.values()) or 'none'}")
    print(f"not measured, for no form of arguments fits both: {', '.join(unmeasured) or 'none'}")
    print(f"slow without a line in {KNOWN.name}: {', '.join(unexplained) or 'none'}")
    return not unexplained
