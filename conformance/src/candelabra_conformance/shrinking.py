"""Shrink the arrays of a failure: keep halves along the dims, greedily, while a predicate holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from candelabra_conformance.samples.sample import arrays, mapped

Array = np.ndarray[Any, Any]
Cut = dict[tuple[int, int], slice]
"""The slices to keep, by (number of the array, dim)."""


def shrunk(args: Any, still_fails: Callable[[Any], bool], tries: int = 200) -> Any:
    """Return ``args`` with the smallest arrays for which ``still_fails(args)`` is true, after at most ``tries`` calls.

    The function tries halves of every dim: all dims of one size together (of operands that broadcast or are
    contracted), then each dim alone. If the predicate raises, it counts as false. An array that occurs twice remains
    one array.
    """
    left = tries
    progress = True
    while progress and left > 0:
        progress = False
        for cut in _cuts(list(_distinct(args))):
            if left <= 0:
                break
            left -= 1
            smaller = _applied(args, cut)
            if _holds(still_fails, smaller):
                args, progress = smaller, True
                break
    return args


def _holds(predicate: Callable[[Any], bool], args: Any) -> bool:
    try:
        return bool(predicate(args))
    except Exception:
        return False


def _distinct(args: Any) -> Iterator[Array]:
    seen: set[int] = set()
    for array in arrays(args):
        if id(array) not in seen:
            seen.add(id(array))
            yield array


def _cuts(found_arrays: list[Array]) -> Iterator[Cut]:
    """Yield the possible cuts, the largest reduction first."""
    places: dict[int, list[tuple[int, int]]] = {}
    for number, array in enumerate(found_arrays):
        for dim, size in enumerate(array.shape):
            if size > 1:
                places.setdefault(size, []).append((number, dim))
    for size in sorted(places, reverse=True):
        together = places[size]
        groups = [together] if len(together) > 1 else []
        groups += [
            [p for p in together if p[1] - found_arrays[p[0]].ndim == d]
            for d in _from_the_right(found_arrays, together)
        ]
        groups += [[place] for place in together]
        half = size // 2
        for group in groups:
            for part in (slice(0, half), slice(half, size), slice(0, size - 1) if size > 2 else slice(0, half)):
                yield dict.fromkeys(group, part)


def _from_the_right(found_arrays: list[Array], together: list[tuple[int, int]]) -> list[int]:
    """Return the dims of one size that several arrays have, counted from the right, as broadcasting aligns them."""
    counted = [dim - found_arrays[number].ndim for number, dim in together]
    return sorted({d for d in counted if 1 < counted.count(d) < len(counted)})


def _applied(args: Any, cut: Cut) -> Any:
    numbers = {id(array): number for number, array in enumerate(_distinct(args))}
    made: dict[int, Array] = {}

    def one(array: Array) -> Array:
        if id(array) not in made:
            number = numbers[id(array)]
            index = tuple(cut.get((number, dim), slice(None)) for dim in range(array.ndim))
            made[id(array)] = np.ascontiguousarray(array[index]).reshape(array[index].shape)
        return made[id(array)]

    return mapped(args, one)
