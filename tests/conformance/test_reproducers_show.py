"""The program of the failure of each property that a mutant names ends with an error that shows the fault.

``make test`` tries a third of the properties.
"""

from __future__ import annotations

from collections import defaultdict

import pytest
from candelabra_conformance.model import BAD, DEVICE, Result
from candelabra_conformance.mutants.catalogue import load
from candelabra_conformance.mutants.hunting import installed
from candelabra_conformance.mutants.mutant import Mutant
from candelabra_conformance.program_trial import PASSES, shows
from candelabra_conformance.properties import registry
from candelabra_conformance.suite import plan, run_case

from tests.sampling import sampled

registry.load()


def named() -> dict[str, list[tuple[Mutant, str]]]:
    """Return the mutants that each property has to catch, with the pattern of the cases, by the property's name."""
    found: dict[str, list[tuple[Mutant, str]]] = defaultdict(list)
    for _, mutant in sorted(load().items()):
        for pattern in mutant.caught_by:
            operator, _, rest = pattern.partition("/")
            property = rest.split("/")[0].rstrip("*")
            if operator == DEVICE and property in registry.OF_DEVICES:
                found[f"{DEVICE} {property}"].append((mutant, pattern))
            elif mutant.operators and property in registry.OF_OPERATORS:
                found[property].append((mutant, pattern))
    return found


NAMED = named()


def failed(mutant: Mutant, pattern: str) -> Result | None:
    """Return the first failure of the cases that match the pattern, or None if another pattern of the mutant fails."""
    with installed(mutant.make()) as context:
        operator = pattern.split("/")[0]
        operators = [operator] if "*" not in operator else mutant.operators[:1]
        for case in plan(context, operators=operators, patterns=[pattern]):
            result = run_case(context, case, forbid_fallback=mutant.forbid_fallback)
            if result.verdict in BAD:
                assert PASSES not in result.reproducer, result.reproducer
                assert shows(result.reproducer, Exception), result.reproducer
                return result
    return None


@pytest.mark.parametrize("property", sampled(3, NAMED))
def test_the_program_of_each_property_fails(property: str) -> None:
    """On a mutant that the property catches, the program raises AssertionError or the kernel's own error."""
    found = next(filter(None, (failed(mutant, pattern) for mutant, pattern in NAMED[property])), None)
    assert found is not None
    assert found.case.property == property.removeprefix(f"{DEVICE} ")


def test_mutants_name_the_newer_properties() -> None:
    """Programs of plain calls cannot express some of them, such as lifetimes: those run the case again."""
    newer = {"rows", "sizes", "bounds", "overwritten", "alive", "inplace-overlap", "vmap", "device dlpack-lifetime"}
    assert newer <= set(NAMED)
