"""What was decided once has to be decided anew: kernels, layers, policies or the default dtype have changed.

The bottom layer knows that something changed; who keeps decisions (the dispatch tables of all operators) says how to
forget them. So a layer below never imports one above.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import Final

KEEPERS: Final[list[Callable[[], None]]] = []
"""Functions that forget decisions; each is entered when its module is imported."""


def invalidate() -> None:
    """Forget every decision that was kept."""
    for forget in KEEPERS:
        forget()
