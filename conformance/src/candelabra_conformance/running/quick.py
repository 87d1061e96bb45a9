"""A quick run: every kernel in each dtype, and in each layout of one dtype; every other operator in a few cases."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import groupby
from typing import Final

from candelabra.library import OPERATORS

from candelabra_conformance.context import MAIN
from candelabra_conformance.model import DEVICE, Case

LAID_OUT: Final = frozenset({"value", "inplace"})
"""The properties in which a kernel that misreads or miswrites a layout gives other numbers."""
TRANSFORMED: Final = frozenset({"vmap", "tangent", "gradient2"})
"""The properties of transforms. Those of a body consist of its operators' own, whose cases show their faults."""


def quick(cases: Iterable[Case], kernels: Container[str]) -> list[Case]:
    """Select the cases of a quick run on a device with kernels of these names.

    Of an operator that the device serves by a kernel, also one in place, or by strides: each property in each dtype,
    and those of :data:`LAID_OUT` in each layout of one dtype. Mutants showed that few faults need a certain pair of
    dtype and layout. Of an operator that is composed of others, and of a public callable: cases that together contain
    each property, except those of :data:`TRANSFORMED`, each dtype and each layout. All cases of the device itself.
    """
    chosen: list[Case] = []
    for (_, operator), group in groupby(cases, key=lambda case: (case.level == 0, case.operator)):
        if operator == DEVICE:
            chosen += group
        elif _served(operator, kernels):
            chosen += _of_kernel(list(group))
        else:
            chosen += _of_body(list(group))
    return chosen


def _served(operator: str, kernels: Container[str]) -> bool:
    record = OPERATORS.get(operator)
    return operator in kernels or f"{operator}_" in kernels or (record is not None and record.geometry is not None)


def _preference(case: Case) -> int:
    """Return the place of the dtype in the order of preference for checks that use one dtype."""
    return MAIN.index(case.dtype) if case.dtype in MAIN else len(MAIN)


def _of_kernel(cases: list[Case]) -> Iterator[Case]:
    main = {case.property: case.dtype for case in sorted(cases, key=_preference, reverse=True)}
    seen: set[tuple[str, str]] = set()
    for case in cases:
        in_dtype = case.property, case.dtype
        if in_dtype not in seen or (case.property in LAID_OUT and case.dtype == main[case.property]):
            seen.add(in_dtype)
            yield case


def _of_body(cases: list[Case]) -> list[Case]:
    seen: set[tuple[str, str]] = set()
    chosen = []
    for case in sorted(cases, key=lambda case: (case.property != "value", _preference(case))):
        axes = {("property", case.property), ("dtype", case.dtype), ("layout", case.layout)}
        if case.property not in TRANSFORMED and not axes <= seen:
            seen |= axes
            chosen.append(case)
    return sorted(chosen)
