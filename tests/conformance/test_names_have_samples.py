"""The suite tests every public name: operators and public callables by samples, overload sets by their members'
samples.

``names_without_samples.txt`` lists the names that it does not test yet.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import candelabra as cd
import pytest
from candelabra.library import OPERATORS, Operator, OverloadSet, PublicCallable, entries, title_of
from candelabra_conformance.context import Context
from candelabra_conformance.model import PASSED, SKIPPED, Case
from candelabra_conformance.properties.registry import OF_OVERLOADS
from candelabra_conformance.records import CallableRecord, everything_tested, name_of
from candelabra_conformance.references.registry import REFERENCES, load
from candelabra_conformance.running.pairwise import pairwise
from candelabra_conformance.samples.gather import generators_of
from candelabra_conformance.suite import plan, run_case

from tests.conformance.covering import each_once
from tests.sampling import sampled

LISTED = [
    line
    for line in (Path(__file__).parent / "names_without_samples.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
CALLABLES = sorted(
    each.name for each in everything_tested() if isinstance(each, CallableRecord) and generators_of(each.name, "inputs")
)
SETS = sorted(name_of(each) for each in everything_tested() if isinstance(each, OverloadSet))


@functools.cache
def context() -> Context:
    """Return a context that tests the reference device, created once per process."""
    return Context(str(cd.get_default_device()))


def untested(entry: object) -> bool:
    """Return whether a public callable has no samples, or has samples that an operator of the same name hides."""
    if not isinstance(entry, PublicCallable):
        return False
    name = title_of(entry)
    return name in OPERATORS or not generators_of(name, "inputs")


def test_every_public_callable_has_samples() -> None:
    """The list has exactly the callables without samples, so adding samples requires removing the name."""
    missing = {title_of(entry) for entry in entries() if untested(entry)}
    assert sorted(missing - set(LISTED)) == [], "these public callables have no samples"
    assert sorted(set(LISTED) - missing) == [], "these names can be taken off the list"


def test_a_public_name_is_tested_once() -> None:
    """Operators, sets and callables have distinct names, except a set and an operator that it is built from.

    That operator is a member, one that only other operators call, or one of a namespace: ``nn.functional.kl_div``.
    """
    every = everything_tested()
    names = Counter(name_of(each) for each in every)
    sets = [each for each in every if isinstance(each, OverloadSet)]
    of_members = {each.name for each in sets for member, _ in each.members if member.name == each.name}
    hidden = [OPERATORS[name_of(each)] for each in sets if name_of(each) in OPERATORS]
    internal = {each.name for each in hidden if not each.public or each.namespace}
    assert {name for name, count in names.items() if count > 1} <= of_members | internal
    assert all(isinstance(entry, (Operator, OverloadSet, PublicCallable)) for entry in entries())


def test_every_callable_with_samples_has_a_reference() -> None:
    """Results of the reference device are compared with NumPy, SciPy or a formula."""
    load()
    assert [name for name in CALLABLES if name not in REFERENCES] == []


@pytest.mark.filterwarnings("ignore:`nn.functional.upsample:UserWarning")
@pytest.mark.parametrize("name", sampled(4, CALLABLES))
def test_the_reference_conforms(name: str) -> None:
    """Every public callable passes in each property and layout once."""
    check(each_once(plan(context(), operators=[name])))


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:`nn.functional.upsample:UserWarning")
@pytest.mark.parametrize("name", CALLABLES)
def test_the_reference_conforms_in_all_pairs(name: str) -> None:
    """Every public callable passes in every pair of property, dtype and layout."""
    check(pairwise(plan(context(), operators=[name])))


@pytest.mark.parametrize("name", SETS)
def test_overloads_give_what_their_members_give(name: str) -> None:
    """The cases of the set itself pass, also if an operator has the same name."""
    check(case for case in plan(context(), operators=[name]) if case.property in OF_OVERLOADS)


def check(cases: Iterable[Case]) -> None:
    """Assert that there are cases and that they pass."""
    results = [run_case(context(), case) for case in cases]
    assert results
    wrong = [r for r in results if r.verdict not in (PASSED, SKIPPED)]
    assert not wrong, "\n\n".join(f"{r.case.id}: {r.verdict}\n{r.message}\n{r.reproducer}" for r in wrong[:5])
