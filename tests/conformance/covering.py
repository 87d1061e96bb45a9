"""A sample of the suite's cases for tests in which each operator has to be tried, and not in every way."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import groupby

from candelabra_conformance.model import DEVICE, Case

from tests.sampling import covering


def each_once(cases: Iterable[Case]) -> list[Case]:
    """Of each operator each property once, each layout once, and the value in each dtype; all of the device itself."""
    chosen: list[Case] = []
    for operator, group in groupby(cases, key=lambda case: case.operator):
        every = list(group)
        chosen += every if operator == DEVICE else sorted(covering(every, lambda case: case.id, _traits))
    return chosen


def _traits(case: Case) -> set[Hashable]:
    found: set[Hashable] = {("property", case.property), ("layout", case.layout)}
    return found | ({("dtype", case.dtype)} if case.property == "value" else set())
