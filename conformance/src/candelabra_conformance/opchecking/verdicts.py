"""How a test of ``opcheck`` ends, unless it returns."""

from __future__ import annotations


class Broken(AssertionError):
    """A promise is not kept; the text says which."""


class NotApplicable(Exception):
    """There is nothing to check; the text says why."""
