"""Samples of distinct elements, membership, combinations, and products."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample


def repeated(t: Maker, *shape: int) -> Array:
    """Return few values, each of them several times."""
    few = t(3)
    chosen: Array = few[t.indices(*shape, below=3)]
    return chosen


@inputs("unique", "unique_consecutive")
def distinct(t: Maker) -> Iterator[Sample]:
    """Yield elements and slices, with the other results."""
    if t.is_complex:
        return
    yield sample(repeated(t, 17), gradient=False)
    for inverse, counts in ((True, False), (False, True), (True, True)):
        asked = {"return_inverse": inverse, "return_counts": counts}
        yield sample(repeated(t, 3, 5), **asked, gradient=False, note=f"{asked}")
        yield sample(repeated(t, 9, 2), **asked, dim=0, gradient=False, note=f"{asked}, rows")
    yield sample(repeated(t, 2, 9), dim=-1, gradient=False, note="columns")
    yield sample(t(7), gradient=False, note="distinct already")
    yield sample(t(), gradient=False, kind=ZERO_DIM)
    yield sample(t(1), gradient=False, kind=LENGTH_ONE)
    yield sample(t(0, 3), gradient=False, kind=ZERO_SIZE)
    yield sample(repeated(t, 2001), return_inverse=True, return_counts=True, gradient=False, kind=LARGE)


@mistakes("unique", "unique_consecutive")
def no_slices(t: Maker) -> Iterator[Sample]:
    """Yield a 0-d tensor, slices without elements, and a dim out of range."""
    if not t.is_complex:
        yield sample(t(), dim=0, note="no dims")
        yield sample(t(2, 0), dim=0, note="no elements")
        yield sample(t(3), dim=1, note="dim out of range")


@inputs("isin")
def members(t: Maker) -> Iterator[Sample]:
    """Yield few and many elements to search for, a number on either side, and elements that do not occur."""
    for count in (3, 40):
        tests = t(count)
        elements = np.concatenate([tests[:3], t(5)])
        yield sample(elements, tests, note=f"{count}")
        yield sample(elements, tests, invert=True, note=f"not, {count}")
    yield sample(t(2, 3), t(3, 7), assume_unique=True)
    yield sample(t(3), 1, note="a number to be found")
    yield sample(1, t(3), note="a number")
    yield sample(t(), t(4), kind=ZERO_DIM)
    yield sample(t(1), t(1), kind=LENGTH_ONE)
    yield sample(t(3), t(0), kind=ZERO_SIZE, note="among none")
    yield sample(t(0, 2), t(3), kind=ZERO_SIZE)
    yield sample(t(2001), t(501), kind=LARGE)


@special("isin")
def members_that_are_not_finite(t: Maker) -> Iterator[Sample]:
    """Yield NaN, which is never found, both zeros, which are equal, and infinities."""
    if t.is_floating:
        values = t.array([float("nan"), -0.0, float("inf"), -float("inf"), 1.0])
        yield sample(values, t.array([0.0, float("nan"), float("inf")]))
        many = np.concatenate([t.array([0.0, float("nan"), float("inf")]), t(12)])
        yield sample(values, many, note="many")


@mistakes("isin")
def no_tensor(t: Maker) -> Iterator[Sample]:
    """Yield two numbers."""
    yield sample(1, 2, note="two numbers")


@inputs("combinations")
def choices(t: Maker) -> Iterator[Sample]:
    """Yield combinations of one, two and three, of more than the elements, and with replacement."""
    for r in (1, 2, 3):
        for replaced in (False, True):
            yield sample(t(5), r, replaced, note=f"{r} {replaced}")
    yield sample(t(4), note="two, by default")
    yield sample(t(2), 3, kind=ZERO_SIZE, note="more than there are")
    yield sample(t(3), 0, kind=ZERO_SIZE, note="of none")
    yield sample(t(0), 2, True, kind=ZERO_SIZE)
    yield sample(t(1), 2, True, kind=LENGTH_ONE)
    yield sample(t(65), 2, kind=LARGE)


@mistakes("combinations")
def no_choices(t: Maker) -> Iterator[Sample]:
    """Yield a matrix, a 0-d tensor, and a negative count."""
    yield sample(t(2, 3), note="a matrix")
    yield sample(t(), note="a number")
    yield sample(t(3), -1, note="a negative count")


@inputs("cartesian_prod")
def products(t: Maker) -> Iterator[Sample]:
    """Yield one vector, two, three, and none."""
    yield sample(t(4))
    yield sample(t(2), t(3))
    yield sample(t(2), t(1), t(4))
    yield sample(t(3), t(0), kind=ZERO_SIZE)
    yield sample(t(1), t(1), kind=LENGTH_ONE)
    yield sample(t(65), t(65), kind=LARGE)


@mistakes("cartesian_prod")
def no_vectors(t: Maker) -> Iterator[Sample]:
    """Yield matrices and 0-d tensors."""
    yield sample(t(2), t(2, 3), note="a matrix")
    yield sample(t(2), t(), note="a number")
