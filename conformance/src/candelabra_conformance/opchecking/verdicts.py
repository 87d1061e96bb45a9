"""The exceptions with which a test of ``opcheck`` ends if it does not pass."""

from __future__ import annotations


class Broken(AssertionError):
    """The operator violates a requirement, which the text describes."""


class NotApplicable(Exception):
    """The test does not apply; the text contains the reason."""
