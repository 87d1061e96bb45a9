"""A quick run: every kernel in each dtype, and in each layout of one dtype; every other operator in one case of each
property."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import groupby
from typing import Final

from candelabra.library import OPERATORS, OverloadSet

from candelabra_conformance.context import MAIN
from candelabra_conformance.model import DEVICE, SAMPLES, Case
from candelabra_conformance.records import Record, name_of

LAID_OUT: Final = frozenset({"value", "inplace"})
"""The properties in which a kernel that misreads or miswrites a layout gives other numbers."""
IN_EACH_DTYPE: Final = frozenset({"value", "special", "result", "errors", "sizes"})
"""The properties in which a kernel that is wrong in one dtype gives other numbers, results or errors."""
TRANSFORMED: Final = frozenset(
    {"vmap", "vmap_nested", "vmap_random", "tangent", "gradient2", "compiled-gradient", "compiled-backward"}
)
"""The properties of transforms. The core's rules consist of operators whose own cases show the faults of kernels, and
programs of the device those of its compiler."""
OF_KERNELS: Final = frozenset({"aliasing", "inplace-gradient", "inputs", "out", "overwritten"})
"""The properties that a body has because its operators have them. The gradient is one too if its record has no rule."""


def quick(cases: Iterable[Case], kernels: Container[str]) -> list[Case]:
    """Select the cases of a quick run on a device with kernels of these names.

    Of an operator that the device serves by a kernel, also one in place, or by strides: each property in one dtype,
    those of :data:`IN_EACH_DTYPE` in each dtype, and those of :data:`LAID_OUT` in each layout of one dtype. Mutants
    showed that few faults need a certain pair of dtype and layout. Of an operator that is composed of others, and of a
    public callable: each property once, but those that follow from its operators'. Neither has cases of
    :data:`TRANSFORMED`, nor a case of its samples, which tries no kernel. All cases of the device itself.
    """
    chosen: list[Case] = []
    for (_, operator), group in groupby(cases, key=lambda case: (case.level == 0, case.operator)):
        if operator == DEVICE:
            chosen += group
            continue
        few = _without_transforms(list(group))
        chosen += _of_kernel(few) if _served(operator, kernels) else _of_body(few)
    return chosen


def left_out(tested: Record | OverloadSet, kernels: Container[str]) -> frozenset[str]:
    """Return the properties of which a quick run has no case, so that they need no plan."""
    name = name_of(tested)
    return TRANSFORMED if _served(name, kernels) else TRANSFORMED | _implied(name)


def _implied(operator: str) -> frozenset[str]:
    """Return the properties that the body of an operator or a public callable has because its operators have them."""
    record = OPERATORS.get(operator)
    return OF_KERNELS if record is not None and record.differentiable else OF_KERNELS | {"gradient"}


def _without_transforms(cases: list[Case]) -> list[Case]:
    """Return the cases of other properties. The case of the samples stays if it is the only one: it fails."""
    few = [case for case in cases if case.property not in TRANSFORMED and case.property != SAMPLES]
    return few or cases[:1]


def _served(operator: str, kernels: Container[str]) -> bool:
    record = OPERATORS.get(operator)
    return operator in kernels or f"{operator}_" in kernels or (record is not None and record.geometry is not None)


def _preference(case: Case) -> int:
    """Return the place of the dtype in the order of preference for checks that use one dtype."""
    return MAIN.index(case.dtype) if case.dtype in MAIN else len(MAIN)


def _of_kernel(cases: list[Case]) -> Iterator[Case]:
    main = _main_dtypes(cases)
    seen: set[tuple[str, str]] = set()
    for case in cases:
        axes = case.property, case.dtype
        if case.dtype != main[case.property]:
            if case.property not in IN_EACH_DTYPE or axes in seen:
                continue
        elif axes in seen and case.property not in LAID_OUT:
            continue
        seen.add(axes)
        yield case


def _main_dtypes(cases: list[Case]) -> dict[str, str]:
    """Return the preferred dtype of each property."""
    return {case.property: case.dtype for case in sorted(cases, key=_preference, reverse=True)}


def _of_body(cases: list[Case]) -> Iterator[Case]:
    main = _main_dtypes(cases)
    seen = set(_implied(cases[0].operator)) if cases else set()
    for case in cases:
        if case.property not in seen and case.dtype == main[case.property]:
            seen.add(case.property)
            yield case
