"""The exception with which a test of ``opcheck`` ends if it fails."""

from __future__ import annotations


class Broken(AssertionError):
    """The operator violates a requirement, which the text describes."""
