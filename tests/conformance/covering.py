"""Samples of the operators, and of the suite's cases of an operator, for ``make test``.

Each property and layout of an operator is tried once, and a sixth of its dtypes. With every dtype, the sample caught
234 of the 241 mutants that candelabra_conformance's catalogue had then; all pairs of property, dtype and layout caught
238.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import groupby
from typing import Any

from candelabra.library import OPERATORS
from candelabra_conformance.layouts import BASIC, MEMORY, MIXED
from candelabra_conformance.model import DEVICE, Case

from tests.sampling import covering, one_in, sampled, shuffled_position

IN_SEVERAL_DTYPES = frozenset({"result", "special", "value"})
"""Properties that are tried in several dtypes: their cases are fast, and they detect most faults of kernels."""
MAIN = "float32"
THOROUGH = frozenset({*MEMORY[len(BASIC) :], "alive"} - {MIXED})
"""Layouts and properties that are left to `make test-all`: ``mixed`` has these layouts, and ``alive`` is slow."""


def kind(name: str) -> tuple[Hashable, ...]:
    """Return the facts about an operator that select how it is dispatched. Each combination is in a sample."""
    r = OPERATORS[name]
    pointwise = getattr(r.rule, "pointwise", False)
    return pointwise, r.view, r.inplace, r.out, r.random, r.data_dependent, r.differentiable, r.body is None


def one_operator_in(count: int) -> set[str]:
    """Return one operator of ``count``, and at least one of each kind."""
    return one_in(count, OPERATORS, kind)


def sampled_operators(count: int) -> list[Any]:
    """Return all operators as parameters of a test, of which ``make test`` tries one of ``count`` of each kind."""
    return sampled(count, OPERATORS, kind)


def each_once(cases: Iterable[Case]) -> list[Case]:
    """Return each property of each operator once, some in several dtypes, each layout once.

    All cases of the device itself are returned. What is in :data:`THOROUGH` is left out.
    """
    chosen: list[Case] = []
    for operator, group in groupby(cases, key=lambda case: case.operator):
        every = [c for c in group if operator == DEVICE or not THOROUGH & {c.layout, c.property}]
        chosen += every if operator == DEVICE else sorted(covering(every, lambda case: case.id, _traits))
    return chosen


def _traits(case: Case) -> set[Hashable]:
    several = case.property in IN_SEVERAL_DTYPES and _is_tried(case.operator, case.dtype)
    return {case.property, ("layout", case.layout), *([(case.property, case.dtype)] if several else [])}


def _is_tried(operator: str, dtype: str) -> bool:
    """Return whether an operator is tried in a dtype: always in the main one, and in a sixth of the others."""
    return dtype == MAIN or shuffled_position(f"{operator} {dtype}") % 6 == 0
