"""Public names of PyTorch whose feature does not exist yet: a call says what is missing."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from candelabra._annotations import Any, Final

_said: Final[set[str]] = set()


def say_once(topic: str, text: str) -> None:
    """Warn once per process that a call has no effect."""
    if topic not in _said:
        _said.add(topic)
        warnings.warn(text, UserWarning, stacklevel=3)


def missing(module: str, name: str, reason: str) -> Callable[..., Any]:
    """Return a function that raises ``NotImplementedError`` with the reason."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"candelabra.{module}.{name}(): {reason}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__module__ = f"candelabra.{module}"
    refuse.__doc__ = f"Raise NotImplementedError: {reason}."
    return refuse
