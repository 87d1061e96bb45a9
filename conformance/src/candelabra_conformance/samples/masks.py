"""Samples of writes under a mask, and of indices under a mask."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample


@inputs("masked_scatter")
def written_where_a_mask_holds(t: Maker) -> Iterator[Sample]:
    """Yield masks that broadcast in either direction, and sources of any shape with more elements than necessary."""
    yield sample(t(3, 5), t.mask(3, 5), t(15))
    yield sample(t(17), t.mask(17), t(4, 5))
    yield sample(t(3, 5), t.mask(5), t(3, 5))
    yield sample(t(5), t.mask(3, 5), t(15))
    yield sample(t(2, 3), np.zeros((2, 3), bool), t(0), note="none")
    yield sample(t(2, 3), np.ones((2, 3), bool), t(6), note="all")
    yield sample(t(), np.array(True), t(1), kind=ZERO_DIM)
    yield sample(t(), np.array(False), t(1), kind=ZERO_DIM)
    yield sample(t(0, 3), t.mask(0, 3), t(2), kind=ZERO_SIZE)
    yield sample(t(1), np.array([True]), t(1), kind=LENGTH_ONE)
    yield sample(t(1023, 3), t.mask(1023, 3), t(3069), kind=LARGE)


@mistakes("masked_scatter")
def sources_that_do_not_suffice(t: Maker) -> Iterator[Sample]:
    """Yield too few elements, shapes that do not broadcast, and arguments that are not masks."""
    yield sample(t(2, 3), np.ones((2, 3), bool), t(5), note="fewer elements")
    yield sample(t(2, 3), t.mask(2), t(6), note="shapes")
    yield sample(t(2, 3), t.index([0, 1, 0]), t(6), note="integers")


@inputs("_unsafe_masked_index")
def read_where_a_mask_holds(t: Maker) -> Iterator[Sample]:
    """Yield indices out of bounds that the mask excludes."""
    yield sample(t(4), np.array([True, False, True]), (t.index(1, 99, -4),), 1)
    yield sample(t(3, 4), np.array([False, True]), (t.index(-9, 2), t.index(3, 0)), 0)
    yield sample(t(3, 4), np.array([[True], [False]]), (None, t.index(3, 17)[:, None]), 1, note="of one dim")
    yield sample(t(3), np.zeros((0,), bool), (t.indices(0, below=1),), 0, kind=ZERO_SIZE)
    yield sample(t(1), np.array([False]), (t.index(-5),), 1, kind=LENGTH_ONE)


@inputs("_unsafe_masked_index_put_accumulate")
def added_where_a_mask_holds(t: Maker) -> Iterator[Sample]:
    """Yield indices out of bounds that the mask excludes, and duplicates."""
    yield sample(t(4), np.array([True, False, True, True]), (t.index(1, 99, -4, 1),), t(4))
    yield sample(t(3, 4), np.array([False, True]), (t.index(-9, 2), t.index(3, 0)), t(2))
    yield sample(t(3), np.zeros((0,), bool), (t.indices(0, below=1),), t(0), kind=ZERO_SIZE)
    yield sample(t(1), np.array([True]), (t.index(-1),), t(1), kind=LENGTH_ONE)
