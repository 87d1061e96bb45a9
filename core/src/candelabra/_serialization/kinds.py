"""What a value read from a file is, in words for error messages."""

from __future__ import annotations


def kind_of(value: object) -> str:
    """A value's type with its article: "an int". The value itself may be long, deep or hostile, and is not shown."""
    name = type(value).__name__
    return f"an {name}" if name[:1] in "aeiouAEIOU" else f"a {name}"
