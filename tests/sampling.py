"""The rules by which ``make test`` samples the cases of ``make test-all``, so that no case is selected by hand.

Cases outside the sample have the mark ``thorough``. A sample depends on names alone: it is the same on every
machine, and adding or removing a case changes few others.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


def shuffled_position(name: str) -> int:
    """Return the position of a name in an order that is independent of its meaning."""
    return zlib.crc32(name.encode())


def one_in(count: int, names: Iterable[str], stratum: Callable[[str], Hashable]) -> set[str]:
    """Return one name for every ``count`` names of a stratum, and at least one of each stratum."""
    return {name for name, part in partition(count, names, stratum).items() if part == 0}


def sampled(count: int, names: Iterable[str], stratum: Callable[[str], Hashable] = lambda name: None) -> list[Any]:
    """Return all names as parameters of a test, of which ``make test`` tries one of ``count`` in each stratum."""
    every = sorted(names)
    chosen = one_in(count, every, stratum)
    return [pytest.param(name, marks=() if name in chosen else pytest.mark.thorough) for name in every]


def partition(count: int, names: Iterable[str], stratum: Callable[[str], Hashable]) -> dict[str, int]:
    """Return the part, starting at 0, of each name. Every part has its share of every stratum."""
    strata: dict[Hashable, list[str]] = defaultdict(list)
    for name in sorted(names, key=lambda name: (shuffled_position(name), name)):
        strata[stratum(name)].append(name)
    return {name: i * count // len(members) for members in strata.values() for i, name in enumerate(members)}


def covering(cases: Sequence[T], name: Callable[[T], str], traits: Callable[[T], set[Hashable]]) -> list[T]:
    """Return a few of the cases that together have every trait of all cases."""
    seen: set[Hashable] = set()
    chosen = []
    for case in sorted(cases, key=lambda case: shuffled_position(name(case))):
        if not traits(case) <= seen:
            seen |= traits(case)
            chosen.append(case)
    return chosen
