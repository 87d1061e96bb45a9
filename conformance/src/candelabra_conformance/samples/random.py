"""Samples of random draws. A seed and an offset determine the numbers, so that every number is known in advance."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from candelabra.dtypes import FLOATING, INTEGER

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import defined, inputs, mistakes, only, special
from candelabra_conformance.samples.sample import HERE, Sample, sample

WORD = 1 << 64
STATES = ((20240229, 41), (0, 0), (7, 1), (WORD - 1, 3), (1 << 63, (1 << 32) - 1))
"""Seeds and offsets: small, the largest, and offsets that carry into the upper half of a word."""
SHAPES = (
    ((3, 5), "ordinary"),
    ((7,), "ordinary"),
    ((2, 3, 4), "ordinary"),
    ((16,), "ordinary"),
    ((17,), "ordinary"),
    ((), "0-d"),
    ((0,), "zero-size"),
    ((2, 0), "zero-size"),
    ((1,), "length-1"),
    ((3, 1023), "large"),
)
CONTINUOUS = ("random_uniform", "random_normal", "random_exponential")


only(lambda d: d.category >= FLOATING, "random_uniform", "random_normal")
only(lambda d: d.category == FLOATING, "random_exponential", "random_bernoulli", "random_multinomial")
only(lambda d: d.category <= INTEGER, "random_integers")
only(lambda d: d.category == INTEGER, "random_permutation")


def drawn_by(t: Maker) -> bool:
    """Return whether the specification defines this draw in this dtype."""
    return defined(t.operator, t.dtype)


@inputs(*CONTINUOUS)
def continuous(t: Maker) -> Iterator[Sample]:
    """Yield every shape (odd counts use half of a pair), and several seeds and offsets."""
    if drawn_by(t):
        for shape, kind in SHAPES:
            yield sample(shape, 20240229, 41, dtype=t.dtype, device=HERE, kind=kind)
        for seed, offset in STATES:
            yield sample((9,), seed, offset, dtype=t.dtype, device=HERE)


@inputs("random_integers")
def whole_numbers(t: Maker) -> Iterator[Sample]:
    """Yield small ranges, one number, the full range of the dtype, and more than 32 bits."""
    if not drawn_by(t):
        return
    low, high = (0, 2) if t.is_bool else (0, 10)
    for shape, kind in SHAPES:
        yield sample(shape, low, high, 20240229, 41, dtype=t.dtype, device=HERE, kind=kind)
    for seed, offset in STATES:
        yield sample((9,), low, high, seed, offset, dtype=t.dtype, device=HERE)
    yield sample((5,), 1, 2, 3, 4, dtype=t.dtype, device=HERE, note="one number")
    if t.is_integer:
        limits = np.iinfo(t.numpy)
        least, most = int(limits.min), int(limits.max)
        yield sample((33,), least, most + 1, 3, 4, dtype=t.dtype, device=HERE, note="all that the dtype holds")
        yield sample((33,), most - 2, most + 1, 3, 4, dtype=t.dtype, device=HERE, note="the largest")
        if t.dtype.itemsize == 8:
            yield sample((33,), 5, 5 + (1 << 32), 3, 4, dtype=t.dtype, device=HERE, note="a span of 32 bits")
            yield sample((33,), 5, 6 + (1 << 32), 3, 4, dtype=t.dtype, device=HERE, note="a span of more than 32 bits")


@inputs("random_permutation")
def orders(t: Maker) -> Iterator[Sample]:
    """Yield permutations of none, one, few and many."""
    if not drawn_by(t):
        return
    for n, kind in ((8, "ordinary"), (17, "ordinary"), (100, "ordinary"), (0, "zero-size"), (1, "length-1")):
        yield sample(n, 20240229, 41, dtype=t.dtype, device=HERE, kind=kind)
    for seed, offset in STATES:
        yield sample(9, seed, offset, dtype=t.dtype, device=HERE)
    if t.dtype.itemsize > 1:
        yield sample(5000, 20240229, 41, dtype=t.dtype, device=HERE, kind="large")


@inputs("random_bernoulli")
def decisions(t: Maker) -> Iterator[Sample]:
    """Yield a probability for all, and one for each."""
    if not drawn_by(t):
        return
    for shape, kind in SHAPES:
        yield sample(0.3, shape, 20240229, 41, device=HERE, kind=kind)
        yield sample(t(*shape, low=0.05, high=0.95), shape, 20240229, 41, device=HERE, kind=kind, gradient=False)
    for seed, offset in STATES:
        yield sample(0.5, (9,), seed, offset, device=HERE)


@special("random_bernoulli")
def certain(t: Maker) -> Iterator[Sample]:
    """Yield the probabilities 0 and 1, for all elements and for each, and some that decide a draw by the last digit."""
    if drawn_by(t):
        yield sample(0.0, (9,), 1, 2, device=HERE, note="never")
        yield sample(1.0, (9,), 1, 2, device=HERE, note="always")
        yield sample(t.array([0.0, 1.0, 0.0, 1.0]), (4,), 1, 2, device=HERE)
    if t.dtype.name == "float64":
        drawn = (np.random.Philox(key=1, counter=2).random_raw(4) >> np.uint64(11)) * 2.0**-53
        barely = np.where(np.arange(4) % 2, drawn, np.nextafter(drawn, 1))
        yield sample(barely, (4,), 1, 2, device=HERE, note="barely above and not above the numbers drawn")


@inputs("random_multinomial")
def categories(t: Maker) -> Iterator[Sample]:
    """Yield one row of weights and several, with and without replacement, and weights of 0, which are never drawn."""
    if not drawn_by(t):
        return
    weights = t.array([1.0, 0.0, 2.5, 0.5])
    yield sample(weights, 8, True, 20240229, 41)
    yield sample(weights, 3, False, 20240229, 41)
    yield sample(t(3, 5, low=0.1, high=2.0), 4, True, 7, 1)
    yield sample(t(3, 5, low=0.1, high=2.0), 4, False, 7, 1)
    yield sample(t(2, 17, low=0.1, high=2.0), 17, False, 9, 2, note="all of them")
    yield sample(t.array([2.0]), 3, True, 5, 5, kind="length-1")
    yield sample(t.array([[0.5], [3.0]]), 1, False, 5, 5, kind="length-1")
    yield sample(t(0, 5), 2, True, 5, 5, kind="zero-size")
    yield sample(t(1023, low=0.1, high=2.0), 3000, True, 5, 5, kind="large")
    yield sample(t(1023, low=0.1, high=2.0), 500, False, 5, 5, kind="large")


@mistakes(*CONTINUOUS, "random_integers")
def no_such_shape(t: Maker) -> Iterator[Sample]:
    """Yield sizes that are negative or not integers."""
    if drawn_by(t):
        limits = (0, 2) if t.operator == "random_integers" else ()
        yield sample((2, -1), *limits, 1, 2, dtype=t.dtype, device=HERE, note="negative")
        yield sample((1.5,), *limits, 1, 2, dtype=t.dtype, device=HERE, note="a fraction")


@mistakes("random_bernoulli")
def no_probability(t: Maker) -> Iterator[Sample]:
    """Yield probabilities that are not between 0 and 1."""
    if drawn_by(t):
        yield sample(t.array([0.5, 1.5]), (2,), 1, 2, device=HERE, note="above 1")
        yield sample(t.array([-0.5, 0.5]), (2,), 1, 2, device=HERE, note="below 0")


@mistakes("random_multinomial")
def no_weights(t: Maker) -> Iterator[Sample]:
    """Yield weights that are negative, NaN or infinite, and too few positive ones."""
    if drawn_by(t):
        yield sample(t.array([1.0, -1.0]), 1, True, 1, 2, note="negative")
        yield sample(t.array([1.0, float("nan")]), 1, True, 1, 2, note="NaN")
        yield sample(t.array([1.0, float("inf")]), 1, False, 1, 2, note="infinite")
        yield sample(t.array([0.0, 0.0]), 1, True, 1, 2, note="nothing to draw")
        yield sample(t.array([1.0, 0.0, 0.0]), 2, False, 1, 2, note="more than there are")
