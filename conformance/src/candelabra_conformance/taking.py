"""The dtypes that an operator accepts, which its record defines by its promotion and its ``accepts``."""

from __future__ import annotations

from candelabra.dtypes import dtype
from candelabra.library import Operator, refusal

from candelabra_conformance.records import Record


def refused(op: Record, d: dtype) -> str | None:
    """Return the operator's error text for operands of a dtype, or None if it accepts them.

    A promotion may refuse a dtype (a factorization has no integers) or convert to one that is accepted (integers become
    floats). A public callable refuses no dtype here; the suite tests it in those of its samples.
    """
    if not isinstance(op, Operator):
        return None
    try:
        computed = op.promote(d)
    except (RuntimeError, TypeError) as error:
        return str(error)
    return refusal(op, computed)
