"""The reference device passes the suite: values and gradients of each operator, and each property and layout of a tenth
of the operators.

``make test-all`` runs every pair of them (``--quick``), and ``candelabra conformance --device cpu`` all cases.
"""

import functools
from collections.abc import Iterable

import candelabra as cd
import pytest
from candelabra.library import OPERATORS
from candelabra_conformance.context import Context
from candelabra_conformance.layouts import CONTIGUOUS
from candelabra_conformance.model import DEVICE, PASSED, SKIPPED, Case
from candelabra_conformance.properties.gradients import has_gradient
from candelabra_conformance.running.pairwise import pairwise
from candelabra_conformance.suite import plan, run_case

from tests.conformance.covering import each_once, one_operator_in

CHOSEN = one_operator_in(10)
NUMBERS = frozenset({"bits", "result", "sizes", "special", "value"})
"""The properties whose results depend on the instructions of the processor. ``make test-levels`` tries them again."""
DERIVATIVES = frozenset({"gradient", "gradient2", "tangent"})
"""The properties of derivatives. They are compared with finite differences, which are less exact than any processor."""
COMPILED = frozenset({"compiled-backward", "compiled-gradient"})
"""The properties of gradients through compiled calls. Each traces and runs the samples of an operator several times."""
ALWAYS = frozenset({"gradient", "special", "value"})
"""The properties that are tried for every operator, on contiguous memory."""


@functools.cache
def context() -> Context:
    """Return a context that tests the reference device with its owner's kernels, created once per process."""
    return Context(str(cd.get_default_device()), contributions="off")


def check(cases: Iterable[Case], least: int = 6) -> None:
    """Assert that there are cases and that they pass. The message has a paragraph for each of the first failures."""
    results = [run_case(context(), case) for case in cases]
    assert len(results) >= least
    wrong = [r for r in results if r.verdict not in (PASSED, SKIPPED)]
    assert not wrong, "\n\n".join(f"{r.case.id}: {r.verdict}\n{r.message}\n{r.reproducer}" for r in wrong[:5])


def chosen(operator: str, properties: frozenset[str]) -> list[Case]:
    """Return the cases of some properties of an operator."""
    patterns = [] if operator in CHOSEN else [f"*/{name}/*/{CONTIGUOUS}" for name in properties & ALWAYS]
    cases = each_once(plan(context(), operators=[operator], patterns=patterns))
    return [case for case in cases if case.property in properties]


@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_the_numbers_of_the_reference_are_right(operator: str) -> None:
    """Results agree with NumPy, SciPy and special values, without expected failures."""
    check(chosen(operator, NUMBERS), least=1)


@pytest.mark.parametrize("operator", [name for name in sorted(OPERATORS) if has_gradient(OPERATORS[name])])
def test_the_derivatives_of_the_reference_are_right(operator: str) -> None:
    """Gradients and tangents agree with finite differences, without expected failures."""
    floating = any(d.is_floating_point for d in context().dtypes(OPERATORS[operator]))
    check(chosen(operator, DERIVATIVES), least=int(floating))


@pytest.mark.parametrize("operator", [DEVICE, *sorted(CHOSEN)])
def test_the_reference_conforms(operator: str) -> None:
    """Transforms, in-place forms, errors, layouts and all other properties hold, without expected failures."""
    cases = each_once(plan(context(), operators=[operator]))
    check([case for case in cases if case.property not in NUMBERS | DERIVATIVES | COMPILED or operator == DEVICE])


@pytest.mark.parametrize("operator", sorted(n for n in CHOSEN if has_gradient(OPERATORS[n]))[::8])
def test_gradients_of_compiled_calls_are_those_of_eager_ones(operator: str) -> None:
    """Backward passes of compiled calls, and in compiled functions, have the gradients of eager calls."""
    cases = plan(context(), level=2, operators=[operator], patterns=[f"*/{name}/*" for name in COMPILED])
    check((case for case in cases if case.property in COMPILED), least=len(COMPILED))


@pytest.mark.thorough
@pytest.mark.parametrize("operator", [DEVICE, *sorted(OPERATORS)])
def test_the_reference_conforms_in_all_pairs(operator: str) -> None:
    """Every property passes in every dtype and in every layout, and every dtype in every layout."""
    check(pairwise(plan(context(), operators=[operator])))
