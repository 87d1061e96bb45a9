"""The reference device passes the suite: every operator, and every pair of the other axes (``--quick``).

``candelabra conformance --device cpu`` runs all cases; here an operator is a test.
"""

import functools

import candelabra as cd
import pytest
from candelabra.library import OPERATORS
from candelabra_conformance.context import Context
from candelabra_conformance.model import DEVICE, PASSED, SKIPPED, Result
from candelabra_conformance.running.pairwise import pairwise
from candelabra_conformance.suite import plan, run_case


@functools.cache
def context() -> Context:
    """The reference device under test, once in a process."""
    return Context(str(cd.get_default_device()))


def told(results: list[Result]) -> str:
    """The failures, a paragraph each."""
    return "\n\n".join(f"{r.case.id}: {r.verdict}\n{r.message}\n{r.reproducer}" for r in results)


@pytest.mark.parametrize("operator", [DEVICE, *sorted(OPERATORS)])
def test_the_reference_conforms(operator: str) -> None:
    """Against NumPy, SciPy, finite differences and special values, with no expected failure."""
    results = [run_case(context(), case) for case in pairwise(plan(context(), operators=[operator]))]
    assert len(results) > 5
    wrong = [r for r in results if r.verdict not in (PASSED, SKIPPED)]
    assert not wrong, told(wrong[:5])
