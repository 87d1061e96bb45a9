"""Describe a value that was read from a file, for error messages."""

from __future__ import annotations


def kind_of(value: object) -> str:
    """Return a value's type with its article: "an int". The value itself may be long or malicious and is not shown."""
    name = type(value).__name__
    return f"an {name}" if name[:1] in "aeiouAEIOU" else f"a {name}"
