"""The classes and functions that `load` may use besides those of candelabra: those that the program allowed."""

from __future__ import annotations

from collections.abc import Iterable

from candelabra._annotations import Any

__all__ = ["add_safe_globals", "allowed", "clear_safe_globals", "get_safe_globals", "safe_globals"]

_allowed: dict[str, Any] = {}
"""By name in a file: a class or function."""


def name_of(value: Any) -> str:
    """Return the name of a class or function in files: "module.qualified.name"."""
    return f"{value.__module__}.{value.__qualname__}"


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Allow `load` to rebuild instances of these classes, and to use these functions, if a file names them.

    Rebuilding calls a class's ``__new__`` and ``__setstate__``, or the class itself with the arguments that its
    ``__reduce_ex__`` gave, all with data of the file: allow only classes that are safe with any data. An item may be
    ``(class, "name in the file")`` for a class that was moved.

    Raises:
        TypeError: an item is neither a class, a function nor such a pair.
    """
    _allowed.update(_by_name(safe_globals))


def get_safe_globals() -> list[Any]:
    """Return the classes and functions that the program has allowed."""
    return [value if name_of(value) == name else (value, name) for name, value in _allowed.items()]


def clear_safe_globals() -> None:
    """Allow only the classes of candelabra."""
    _allowed.clear()


class safe_globals:
    """A context in which further classes and functions are allowed, as by `add_safe_globals`."""

    def __init__(self, safe_globals: Iterable[Any]) -> None:
        self.added = _by_name(safe_globals)
        self.before: dict[str, Any] = {}

    def __enter__(self) -> None:
        self.before = dict(_allowed)
        _allowed.update(self.added)

    def __exit__(self, *_: object) -> None:
        _allowed.clear()
        _allowed.update(self.before)


def allowed(name: str) -> Any:
    """Return the class or function that the program allowed under a name, or None."""
    return _allowed.get(name)


def _by_name(items: Iterable[Any]) -> dict[str, Any]:
    found = {}
    for item in items:
        value, name = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
        if not callable(value) or not hasattr(value, "__qualname__") or not isinstance(name, str | None):
            raise TypeError(f"add_safe_globals() takes classes, functions and pairs (class, name), got {item!r:.100}")
        found[name_of(value) if name is None else name] = value
    return found
