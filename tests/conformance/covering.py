"""A sample of the suite's cases for tests that try each operator, but not every combination of dtype and layout.

When it was chosen, it caught 234 of the 241 mutants that candelabra_conformance's catalogue had; all pairs of property,
dtype and layout caught 238.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import groupby

from candelabra_conformance.layouts import BASIC, MEMORY, MIXED
from candelabra_conformance.model import DEVICE, Case

from tests.sampling import covering

IN_EACH_DTYPE = frozenset({"result", "special", "value"})
"""Properties that are tried in each dtype: their cases are fast, and they detect most faults of kernels."""
THOROUGH = frozenset({*MEMORY[len(BASIC) :], "alive"} - {MIXED})
"""Layouts and properties that are left to `make test-all`: ``mixed`` has these layouts, and ``alive`` is slow."""


def each_once(cases: Iterable[Case]) -> list[Case]:
    """Return each property of each operator once, some in each dtype, each layout once, and all cases of the device.

    What is in :data:`THOROUGH` is left out.
    """
    chosen: list[Case] = []
    for operator, group in groupby(cases, key=lambda case: case.operator):
        every = [c for c in group if operator == DEVICE or not THOROUGH & {c.layout, c.property}]
        chosen += every if operator == DEVICE else sorted(covering(every, lambda case: case.id, _traits))
    return chosen


def _traits(case: Case) -> set[Hashable]:
    property = (case.property, case.dtype) if case.property in IN_EACH_DTYPE else case.property
    return {property, ("layout", case.layout)}
