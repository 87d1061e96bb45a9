"""A quick run: every operator, and every pair of values of the other axes at least once if the device has a kernel."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from itertools import groupby

from candelabra.library import OPERATORS

from candelabra_conformance.model import DEVICE, Case
from candelabra_conformance.samples.sample import LARGE

Values = tuple[str, ...]
"""One or two axes and their values."""


def pairwise(cases: Iterable[Case], kernels: Container[str] | None = None) -> list[Case]:
    """Select cases of each operator that together contain every pair (property, dtype), (property, layout), (dtype,
    layout).

    With ``kernels``, the names of a device's kernels, they contain only every value of each axis if the device has
    neither a kernel nor a view of that name: the operator is composed of others, whose own cases show their faults.

    Greedy, as is usual for covering arrays (Cohen and others 1997), in passes of falling gain instead of by the best
    case each time. All cases of the device itself stay. Large inputs, which take most of the time, are tried in one
    dtype of each operator.
    """
    chosen: list[Case] = []
    for (_, operator), group in groupby(cases, key=lambda c: (c.level == 0, c.operator)):
        every = list(group)
        values = _pairs if kernels is None or _served(operator, kernels) else _singles
        chosen += every if operator == DEVICE else _covering(_large_once(every), values)
    return chosen


def _served(operator: str, kernels: Container[str]) -> bool:
    """Return whether a device serves an operator itself: by a kernel, also one in place, or by strides."""
    record = OPERATORS.get(operator)
    return operator in kernels or f"{operator}_" in kernels or (record is not None and record.geometry is not None)


def _large_once(cases: list[Case]) -> list[Case]:
    """Remove the large inputs of all dtypes except the first one that has any."""
    dtype = next((c.dtype for c in cases if c.layout == LARGE), "")
    return [c for c in cases if c.layout != LARGE or c.dtype == dtype]


def _named(case: Case) -> list[tuple[str, str]]:
    return [("property", case.property), ("dtype", case.dtype), ("layout", case.layout)]


def _pairs(case: Case) -> set[Values]:
    named = _named(case)
    return {(*a, *b) for i, a in enumerate(named) for b in named[i + 1 :]}


def _singles(case: Case) -> set[Values]:
    return set(_named(case))


def _covering(cases: list[Case], values: Callable[[Case], set[Values]]) -> list[Case]:
    """Select in three passes: the cases with three new values, then two, then one."""
    pairs = {case: values(case) for case in cases}
    covered: set[Values] = set()
    chosen = []
    for least in (3, 2, 1):
        for case, named in list(pairs.items()):
            if len(named - covered) >= least:
                covered |= pairs.pop(case)
                chosen.append(case)
    return sorted(chosen)
