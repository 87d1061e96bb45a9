"""Which dtypes an operator takes: its record says so in two places, the promotion and ``accepts``."""

from __future__ import annotations

from candelabra.dtypes import dtype
from candelabra.library import Operator, refusal

from candelabra_conformance.records import Record


def refused(op: Record, d: dtype) -> str | None:
    """Why an operator refuses operands of a dtype, in its words; None where it takes them.

    A promotion may refuse (a factorization has no integers) or lead to a dtype that is taken (integers become floats).
    A public callable refuses nothing beforehand: it takes what it has samples for.
    """
    if not isinstance(op, Operator):
        return None
    try:
        computed = op.promote(d)
    except (RuntimeError, TypeError) as error:
        return str(error)
    return refusal(op, computed)
