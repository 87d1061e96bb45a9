"""Which dtypes an operator takes: its record says so in two places, the promotion and ``accepts``."""

from __future__ import annotations

from typing import Any

from candelabra.dtypes import dtype
from candelabra.library import Operator, refusal


def refused(op: Operator[..., Any], d: dtype) -> str | None:
    """Why an operator refuses operands of a dtype, in its words; None where it takes them.

    A promotion may refuse (a factorization has no integers) or lead to a dtype that is taken (integers become floats).
    """
    try:
        computed = op.promote(d)
    except (RuntimeError, TypeError) as error:
        return str(error)
    return refusal(op, computed)
