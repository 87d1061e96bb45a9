"""Reasons for which an elementwise kernel refuses a value, and the errors that they become on the host.

An expression says :func:`refuse(condition, reason, value) <candelabra_clike.language.refuse>`. The reason is a key of
:data:`REASONS`. The kernel reports the reason to :class:`~candelabra_clike.device_errors.DeviceErrors`, and the next
synchronisation raises the error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from candelabra.errors import IntegerDivisionByZero

REASONS: Final[dict[str, tuple[type[Exception], str]]] = {
    "DIVISION_BY_ZERO": (IntegerDivisionByZero, "ZeroDivisionError: integer division or modulo by zero"),
}
"""The class and the text of the error of each reason."""


@dataclass(frozen=True)
class Refusal:
    """The error of an operator that refuses a value for a reason."""

    operator: str
    reason: str

    def __call__(self, value: int, dim: int, size: int, device: str) -> Exception:
        """Return the error. A refusal has no index, so the first three arguments are unused."""
        error, text = REASONS[self.reason]
        return error(f"{device}: {self.operator!r} failed: {text}")
