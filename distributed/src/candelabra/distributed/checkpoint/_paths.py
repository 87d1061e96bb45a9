"""The leaves of nested dictionaries and lists, by their paths: ``{"model": {"weight": w}}`` has ``"model.weight"``."""

from __future__ import annotations

from typing import Any


def flattened(state: Any) -> dict[str, tuple[Any, Any]]:
    """Return ``{path: (container, key)}`` of every leaf. Raise ValueError if two leaves have one path."""
    found: dict[str, tuple[Any, Any]] = {}

    def visit(container: Any, prefix: str) -> None:
        pairs = container.items() if isinstance(container, dict) else enumerate(container)
        for key, value in pairs:
            path = f"{prefix}{key}"
            if isinstance(value, (dict, list)) and value:
                visit(value, f"{path}.")
            elif path in found:
                raise ValueError(f"two values of the state have the path {path!r}: rename one of their keys")
            else:
                found[path] = (container, key)

    visit(state, "")
    return found
