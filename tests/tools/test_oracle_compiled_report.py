"""The section of the oracle's report about compiled functions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tools.oracle_compiled_report import TITLE, printed, with_section

LIMITS = {"dtypes": ["float32", "int64"], "samples": 4}


def verdict(name: str, status: str, breaks: dict[str, int] | None = None, differences: tuple[str, ...] = ()) -> Any:
    """Return a verdict with two samples and six calls."""
    counts = {"samples": 2, "calls": 6, "same_bits": 6, "seconds": 1.0}
    return SimpleNamespace(name=name, status=status, breaks=breaks or {}, differences=list(differences), **counts)


VERDICTS = {
    "operators": [
        verdict("add", "agrees"),
        verdict("nonzero", "breaks", {"the shape depends on values": 2}),
        verdict("equal", "breaks", {"the value of a tensor is read": 1}),
        verdict("sub", "differs", differences=("values differ | by 1",)),
    ],
    "modules": [],
}


def test_section_is_added_and_replaced() -> None:
    """The section stands at the end of a page, or in its own place, with totals, reasons and differences."""
    page = "# Report\n\nText.\n"
    once = with_section(page, VERDICTS, LIMITS)
    assert once.startswith("# Report\n\nText.\n\n" + TITLE)
    assert "- Operators: of 4, 1 agree in one graph, 2 agree and have samples" in once
    assert "1 differ (8 samples, 24 compiled calls, 24 of them" in once
    assert "| the shape depends on values | `nonzero` |" in once
    assert "| the value of a tensor is read | `equal` (some samples) |" in once
    assert "| `sub` | `values differ   by 1` |" in once
    assert "Modules" not in once
    assert with_section(once + "\n## Next\n\nMore.\n", VERDICTS, LIMITS) == once + "\n## Next\n\nMore.\n"


def test_printed_lines() -> None:
    """A verdict is one line, and one for each break and difference."""
    lines = printed(VERDICTS["operators"][1]).splitlines()
    assert lines[0] == "nonzero: breaks (2 samples, 6 of 6 calls with the same bits, 1.0 s)"
    assert lines[1:] == ["    break, 2 samples: the shape depends on values"]
