"""Changes of kernels that break nothing, with the reasons: they are not mutants."""

from __future__ import annotations

from functools import cache
from typing import Final

NO_FAULT: Final = (
    ("negated", "(-Q)(-R) is a decomposition as well", "linalg_qr"),
    ("stable ignored", "the reference sorts stably in any case", "argsort sort"),
)
"""The words of the fault, the reason, and the kernels."""


@cache
def _without() -> frozenset[str]:
    return frozenset(f"{kernel}: {words}" for words, _, kernels in NO_FAULT for kernel in kernels.split())


def breaks_nothing(fault: str) -> bool:
    """Return whether the fault of this id breaks nothing."""
    return fault in _without()
