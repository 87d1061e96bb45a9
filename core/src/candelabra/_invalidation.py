"""Invalidate cached decisions after a change of kernels, layers, policies or the default dtype.

The lowest layer detects changes. The modules that cache decisions, such as the dispatch tables, register a function
that discards them. So a lower layer never imports a higher one.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import Final

KEEPERS: Final[list[Callable[[], None]]] = []
"""Functions that discard cached decisions. Each is added by its module at import."""


def invalidate() -> None:
    """Discard all cached decisions."""
    for forget in KEEPERS:
        forget()
