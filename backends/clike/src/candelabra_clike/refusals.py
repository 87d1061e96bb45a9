"""Reasons for which an elementwise kernel refuses a value, and the errors that they become on the host.

An expression says ``REFUSE(condition, REASON)``, see :mod:`candelabra_clike.expressions`. ``REASON`` is a key of
:data:`REASONS`. The kernel reports the reason to :class:`~candelabra_clike.device_errors.DeviceErrors`, and the next
synchronisation raises the error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from candelabra.errors import IntegerDivisionByZero

REASONS: Final[dict[str, tuple[type[Exception], str]]] = {
    "DIVISION_BY_ZERO": (IntegerDivisionByZero, "ZeroDivisionError: integer division or modulo by zero"),
}
"""The class and the text of the error of each reason."""
_REFUSE: Final = re.compile(r"REFUSE\(.*?, *([A-Z_]+)\)")


@dataclass(frozen=True)
class Refusal:
    """The error of an operator that refuses a value for a reason."""

    operator: str
    reason: str

    def __call__(self, value: int, dim: int, size: int, device: str) -> Exception:
        """Return the error. A refusal has no index, so the first three arguments are unused."""
        error, text = REASONS[self.reason]
        return error(f"{device}: {self.operator!r} failed: {text}")


def reasons_in(expression: str) -> tuple[str, ...]:
    """Return the reasons for which an expression refuses values. Raises ``ValueError`` for one not in the table."""
    reasons = tuple(dict.fromkeys(_REFUSE.findall(expression)))
    unknown = [reason for reason in reasons if reason not in REASONS]
    if unknown or len(_REFUSE.findall(expression)) != expression.count("REFUSE("):
        raise ValueError(
            f"expected REFUSE(condition, REASON) with a reason of {', '.join(REASONS)} in the expression {expression!r}"
        )
    return reasons
