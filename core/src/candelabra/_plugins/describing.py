"""Texts about objects of plugins, whose own ``__str__`` and ``__repr__`` may raise."""

from __future__ import annotations

LONGEST = 200
"""The number of characters after which :func:`shown` cuts."""


def text_of(error: BaseException) -> str:
    """Return the message of an exception, or what is known if its ``__str__`` raises."""
    try:
        return str(error)
    except Exception as second:
        return f"(no message: its __str__ raised {type(second).__name__})"


def summary(error: BaseException) -> str:
    """Return class and message of an exception in one text."""
    return f"{type(error).__name__}: {text_of(error)}"


def shown(value: object) -> str:
    """Return the representation of a value, shortened, or its class if ``__repr__`` raises."""
    try:
        text = repr(value)
    except Exception:
        return f"an object of class {type(value).__name__}"
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
