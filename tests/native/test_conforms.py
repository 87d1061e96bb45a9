"""The contributed kernels pass the conformance suite on the device ``cpu``, for calls of every size.

``make test-all`` compiles every kernel, and tries all properties of each. ``make test`` has the kernels of the
checkout's pack and leaves the others to NumPy; it tries the values of each operator and all properties of a
sixteenth of them.
``candelabra conformance --device cpu`` runs all cases.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import pytest
from candelabra.library import OPERATORS
from candelabra_conformance.context import Context
from candelabra_conformance.model import PASSED, SKIPPED, Case
from candelabra_conformance.running.pairwise import pairwise
from candelabra_conformance.suite import plan, run_case
from candelabra_native.kernels import contributed

from tests.conformance.covering import each_once, kind
from tests.sampling import one_in

NAMES = sorted({name if name in OPERATORS else name.removesuffix("_") for name in contributed({}, every_size=True)})
EACH = pytest.mark.parametrize("operator", NAMES)
DTYPES = ("float32", "int64", "bool")


@functools.cache
def context() -> Context:
    """Return a context that tests the contributed kernels, created once per process."""
    return Context("cpu", contributions="on")


def check(cases: Iterable[Case]) -> None:
    """Assert that there are cases and that they pass. The message has a paragraph for each of the first failures."""
    results = [run_case(context(), case) for case in cases]
    assert results
    wrong = [r for r in results if r.verdict not in (PASSED, SKIPPED)]
    assert not wrong, "\n\n".join(f"{r.case.id}: {r.verdict}\n{r.message}\n{r.reproducer}" for r in wrong[:5])


@EACH
def test_contributed_kernels_give_the_owners_results(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The values of each operator agree on contiguous memory."""
    monkeypatch.setenv("CANDELABRA_COMPILE", "0")
    patterns = [f"{operator}/value/{dtype}/contiguous" for dtype in DTYPES]
    cases = plan(context(), operators=[operator], patterns=patterns)
    check(cases or plan(context(), operators=[operator], patterns=[f"{operator}/value/*/contiguous"])[:1])


@pytest.mark.parametrize("operator", sorted(one_in(16, NAMES, kind)))
def test_contributed_kernels_conform(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results agree with those of the owner's kernels, and derivatives with finite differences, once in each layout."""
    monkeypatch.setenv("CANDELABRA_COMPILE", "0")
    cases = [case for case in plan(context(), operators=[operator], level=2) if case.property != "threads"]
    check([case for case in each_once(cases) if case.dtype in DTYPES])


@pytest.mark.thorough
@EACH
def test_contributed_kernels_conform_in_all_pairs(operator: str) -> None:
    """Every property passes in every dtype and in every layout, and every dtype in every layout."""
    check(pairwise(plan(context(), operators=[operator])))
