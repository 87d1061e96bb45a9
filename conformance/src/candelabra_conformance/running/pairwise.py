"""Fewer cases: every pair of values of the axes of each operator occurs at least once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from candelabra_conformance.model import DEVICE, Case
from candelabra_conformance.samples.sample import LARGE

Pair = tuple[str, ...]
"""Two axes and their values."""


def pairwise(cases: Iterable[Case]) -> list[Case]:
    """Select cases of each operator that together contain every pair (property, dtype), (property, layout), (dtype,
    layout).

    Greedy, as is usual for covering arrays (Cohen and others 1997), in passes of falling gain instead of by the best
    case each time. All cases of the device itself stay. Large inputs, which take most of the time, are tried in one
    dtype of each operator.
    """
    chosen: list[Case] = []
    for (_, operator), group in groupby(cases, key=lambda c: (c.level == 0, c.operator)):
        every = list(group)
        chosen += every if operator == DEVICE else _covering(_large_once(every))
    return chosen


def _large_once(cases: list[Case]) -> list[Case]:
    """Remove the large inputs of all dtypes except the first one that has any."""
    dtype = next((c.dtype for c in cases if c.layout == LARGE), "")
    return [c for c in cases if c.layout != LARGE or c.dtype == dtype]


def _pairs(case: Case) -> set[Pair]:
    named = [("property", case.property), ("dtype", case.dtype), ("layout", case.layout)]
    return {(*a, *b) for i, a in enumerate(named) for b in named[i + 1 :]}


def _covering(cases: list[Case]) -> list[Case]:
    """Select in three passes: the cases with three new pairs, then two, then one."""
    pairs = {case: _pairs(case) for case in cases}
    covered: set[Pair] = set()
    chosen = []
    for least in (3, 2, 1):
        for case, named in list(pairs.items()):
            if len(named - covered) >= least:
                covered |= pairs.pop(case)
                chosen.append(case)
    return sorted(chosen)
