"""Samples of attention: queries, keys and values with leading dims, masks, causal attention, scales."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import Sample, sample

Ints = tuple[int, ...]


class AttentionCase(NamedTuple):
    """Shapes of query, key, value and mask, whether attention is causal, and the scale.

    Scales are small: if one key has almost the whole weight, the derivative is the difference of two nearly equal
    numbers.
    """

    query: Ints
    keys: Ints
    values: Ints
    mask: Ints | None = None
    is_causal: bool = False
    scale: float = 0.5
    kind: str = "ordinary"


CASES = (
    AttentionCase((3, 4), (5, 4), (5, 2)),
    AttentionCase((2, 3, 4), (2, 3, 4), (2, 3, 4), is_causal=True),
    AttentionCase((2, 3, 4), (2, 5, 4), (2, 5, 3), (3, 5), scale=0.25),
    AttentionCase((2, 2, 3, 2), (1, 2, 4, 2), (2, 1, 4, 3), (2, 1, 1, 4), scale=-0.3),
    AttentionCase((4, 3), (2, 3, 3), (2, 3, 2), (2, 1, 3), is_causal=True),
    AttentionCase((5, 2), (3, 2), (3, 2), is_causal=True, scale=0.0),
    AttentionCase((0, 4), (3, 4), (3, 2), kind="zero-size"),
    AttentionCase((2, 3, 4), (2, 0, 4), (2, 0, 2), (3, 0), kind="zero-size"),
    AttentionCase((2, 0), (3, 0), (3, 2), kind="zero-size"),
    AttentionCase((1, 3), (1, 3), (1, 1), (1, 1), kind="length-1"),
    AttentionCase((2, 70, 33), (2, 70, 33), (2, 70, 20), is_causal=True, scale=0.2, kind="large"),
    AttentionCase((65, 16), (300, 16), (300, 40), (65, 300), scale=0.25, kind="large"),
)


def _arguments(t: Maker, case: AttentionCase) -> tuple[Any, ...]:
    mask = None if case.mask is None else t(*case.mask)
    return t(*case.query), t(*case.keys), t(*case.values), mask, case.is_causal, case.scale


@inputs("attention")
def attended(t: Maker) -> Iterator[Sample]:
    """Yield every case, without derivatives for unusual kinds of shapes."""
    for case in CASES:
        yield sample(*_arguments(t, case), kind=case.kind, gradient=case.kind in ("ordinary", "length-1"))


@inputs("attention_backward")
def attended_backwards(t: Maker) -> Iterator[Sample]:
    """Yield the same with a gradient of the result's shape."""
    for case in CASES:
        lead = np.broadcast_shapes(case.query[:-2], case.keys[:-2], case.values[:-2])
        grad = t(*lead, case.query[-2], case.values[-1])
        yield sample(grad, *_arguments(t, case), kind=case.kind, gradient=case.kind == "ordinary")


@mistakes("attention")
def unfit(t: Maker) -> Iterator[Sample]:
    """Yield widths, lengths, leading dims and masks that do not match, and vectors."""
    yield sample(t(3, 4), t(5, 3), t(5, 2), None, False, 1.0, note="widths")
    yield sample(t(3, 4), t(5, 4), t(4, 2), None, False, 1.0, note="lengths")
    yield sample(t(2, 3, 4), t(3, 5, 4), t(5, 2), None, False, 1.0, note="leading dims")
    yield sample(t(3, 4), t(5, 4), t(5, 2), t(5, 3), False, 1.0, note="a mask that does not broadcast")
    yield sample(t(3, 4), t(5, 4), t(5, 2), t(2, 3, 5), False, 1.0, note="a mask with more dims than the scores")
    yield sample(t(4), t(5, 4), t(5, 2), None, False, 1.0, note="a vector")


@mistakes("attention_backward")
def unfit_backwards(t: Maker) -> Iterator[Sample]:
    """Yield a gradient of another shape, even one that would broadcast, and inputs that do not match."""
    yield sample(t(3, 3), t(3, 4), t(5, 4), t(5, 2), None, False, 1.0, note="gradient")
    yield sample(t(1, 2), t(3, 4), t(5, 4), t(5, 2), None, False, 1.0, note="a gradient that broadcasts")
    yield sample(t(3, 2), t(3, 4), t(5, 3), t(5, 2), None, False, 1.0, note="widths")


@special("attention")
def far_scores(t: Maker) -> Iterator[Sample]:
    """Yield large scores, which must not overflow, a row whose keys are all masked, which is 0, and NaN, which stays in
    its row."""
    far = t.array([[40.0, 2.0], [-40.0, 1.0]]), t.array([[10.0, 1.0], [-10.0, 2.0], [9.5, 0.5]])
    values = t.array([[1.0, -1.0], [2.0, 4.0], [0.5, 8.0]])
    yield sample(*far, values, None, False, 1.0, note="far apart")
    inf = float("inf")
    none = t.array([[-inf, -inf, -inf], [0.0, -inf, 1.0]])
    yield sample(*far, values, none, False, 0.125, note="a query without a key")
    odd = t.array([[float("nan"), 1.0], [1.0, 2.0]])
    yield sample(odd, far[1], values, None, False, 0.125, note="NaN")
