"""How ``make test`` samples what ``make test-all`` runs in full: by rules, so that no case has to be chosen by hand.

What is outside a sample has the mark ``thorough``. A sample depends on names alone: it is the same on every machine,
and a case that joins or leaves moves few others.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def place(name: str) -> int:
    """Where a name stands in an order that has nothing to do with what is named."""
    return zlib.crc32(name.encode())


def one_in(parts: int, names: Iterable[str], stratum: Callable[[str], Hashable]) -> set[str]:
    """One name of each ``parts`` of a stratum, and at least one of each stratum."""
    return {name for name, part in dealt(parts, names, stratum).items() if part == 0}


def dealt(parts: int, names: Iterable[str], stratum: Callable[[str], Hashable]) -> dict[str, int]:
    """The part, from 0, that each name is in. Each part has its share of every stratum."""
    strata: dict[Hashable, list[str]] = defaultdict(list)
    for name in sorted(names, key=lambda name: (place(name), name)):
        strata[stratum(name)].append(name)
    return {name: i * parts // len(members) for members in strata.values() for i, name in enumerate(members)}


def covering(cases: Sequence[T], name: Callable[[T], str], traits: Callable[[T], set[Hashable]]) -> list[T]:
    """Few of the cases that together have every trait that any of them has."""
    seen: set[Hashable] = set()
    chosen = []
    for case in sorted(cases, key=lambda case: place(name(case))):
        if not traits(case) <= seen:
            seen |= traits(case)
            chosen.append(case)
    return chosen
