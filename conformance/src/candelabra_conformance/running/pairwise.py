"""A quick run: every operator, and every pair of values of the other axes at least once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from candelabra_conformance.model import DEVICE, Case

Pair = tuple[str, str, str, str]


def pairwise(cases: Iterable[Case]) -> list[Case]:
    """Few cases of each operator that together have every pair (property, dtype), (property, layout), (dtype, layout).

    Greedy: of the cases left, the one with the most pairs that are new (the usual method for covering arrays; Cohen
    and others 1997). All cases of the device itself stay.
    """
    chosen: list[Case] = []
    for operator, group in groupby(cases, key=lambda c: (c.level == 0, c.operator)):
        every = list(group)
        chosen += every if operator[1] == DEVICE else _covering(every)
    return chosen


def _pairs(case: Case) -> set[Pair]:
    named = [("property", case.property), ("dtype", case.dtype), ("layout", case.layout)]
    return {(*a, *b) for i, a in enumerate(named) for b in named[i + 1 :]}


def _covering(cases: list[Case]) -> list[Case]:
    left = {case: _pairs(case) for case in cases}
    chosen = []
    covered: set[Pair] = set()
    while left:
        best = max(left, key=lambda case: len(left[case]))
        if not left[best]:
            break
        chosen.append(best)
        covered |= left.pop(best)
        left = {case: rest for case, pairs in left.items() if (rest := pairs - covered)}
    return sorted(chosen)
