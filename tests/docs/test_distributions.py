"""The tables of docs/distributions.md are those of the classes."""

from __future__ import annotations

import inspect
from collections import defaultdict
from pathlib import Path
from typing import Any

import candelabra as cd

from tests.nn.distributions.families import ALL, d

PAGE = Path(__file__).parents[2] / "docs" / "distributions.md"
METHODS = ("cdf", "icdf", "entropy", "mode", "enumerate_support")


def available(make: Any, method: str) -> bool:
    """Return whether a distribution has a method or a property."""
    ours = make()
    value = cd.full(ours.batch_shape + ours.event_shape, 0.5, dtype=cd.float64)
    d.Distribution.set_default_validate_args(False)
    try:
        found = getattr(ours, method)
        if callable(found) and not hasattr(found, "shape"):
            found(value) if method in ("cdf", "icdf") else found()
    except NotImplementedError:
        return False
    finally:
        d.Distribution.set_default_validate_args(True)
    return True


def families() -> str:
    """Return the table of families, by trying each method."""
    rows = [
        f"| family | parameters | `rsample` | {' | '.join(f'`{m}`' for m in METHODS)} |",
        "|---" * (3 + len(METHODS)) + "|",
    ]
    for name, make in sorted(ALL.items(), key=lambda item: item[0].lower()):
        family = type(make())
        if name != family.__name__:
            continue  # the same family with other parameters
        names = [p for p in inspect.signature(family).parameters if p != "validate_args"]
        marks = [make().has_rsample, *(available(make, m) for m in METHODS)]
        cells = " | ".join("yes" if mark else "" for mark in marks)
        rows.append(
            f"| `{name}` | {', '.join(f'`{p}`' for p in names)} | {cells} |".replace("|  |", "| |").replace(
                "|  |", "| |"
            )
        )
    return "\n".join(rows) + "\n"


def divergences() -> str:
    """Return the table of pairs of families with a divergence."""
    pairs = defaultdict(list)
    for p, q in d.kl._KL_REGISTRY:
        pairs[p.__name__].append(q.__name__)
    rows = ["| p | q |", "|---|---|"]
    rows += [f"| `{p}` | {', '.join(f'`{q}`' for q in sorted(qs))} |" for p, qs in sorted(pairs.items())]
    return "\n".join(rows) + "\n"


def test_the_tables_are_current() -> None:
    """The page has each family with its parameters and methods, and each pair of families with a divergence."""
    page = PAGE.read_text()
    assert families() in page
    assert divergences() in page


def test_each_distribution_is_in_the_table() -> None:
    """All public families are in the table."""
    public = {name for name in d.__all__ if inspect.isclass(getattr(d, name))}
    concrete = {name for name in public if issubclass(getattr(d, name), d.Distribution)}
    assert concrete - {"Distribution", "ExponentialFamily"} <= set(ALL)
