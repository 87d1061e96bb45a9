"""The messages of failed cases, for tests of a property."""

from __future__ import annotations

from candelabra_conformance.context import Context
from candelabra_conformance.model import BAD
from candelabra_conformance.suite import plan, run_case


def messages(operator: str, property: str, level: int = 2) -> list[str]:
    """Return the messages of the cases of a property that fail for an operator on the reference device."""
    context = Context("cpu")
    cases = [case for case in plan(context, operators=(operator,), level=level) if case.property == property]
    assert cases
    return [result.message for case in cases if (result := run_case(context, case)).verdict in BAD]
