"""Record the operators that some work calls."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from candelabra.errors import FallbackWarning
from candelabra.library import Layer, Operator


def operators_called(
    work: Callable[[], object], started: Callable[[str], object] = lambda name: None
) -> tuple[str, ...]:
    """Return the names of the operators that ``work()`` calls, also in the bodies of composites, each once and in
    order. ``started(name)`` is called before each call. Exceptions propagate."""
    seen: dict[str, None] = {}

    def look(op: Operator[..., Any], next: Callable[..., Any], *args: Any) -> Any:
        seen[op.name] = None
        started(op.name)
        with layer:  # active again below itself, so that it also records the operators of a composite's body
            return next(*args)

    layer = Layer("conformance uses", look)
    try:
        with layer, warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            work()
    finally:
        layer.remove()
    return tuple(seen)
