"""Samples of losses of classes: log-probabilities with classes along dim 1, and targets, of which some are ignored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.many_indices import jumping
from candelabra_conformance.samples.many_rows import PLAIN, ROWS, cycle
from candelabra_conformance.samples.registry import inputs, mistakes, sizes
from candelabra_conformance.samples.sample import Sample, sample

SHAPES = (
    ((5, 4), "ordinary"), ((3, 4, 7), "ordinary"), ((2, 3, 4, 5), "ordinary"), ((0, 3), "zero-size"),
    ((3, 2, 0), "zero-size"), ((1, 1), "length-1"), ((33, 100), "large"), ((3, 20, 301), "large"),
)  # fmt: skip


@inputs("class_losses", "mean_class_loss")
def scored(t: Maker) -> Iterator[Sample]:
    """Yield every shape, with an ignored class and with an ignored index that is no class."""
    for shape, kind in SHAPES:
        targets = t.indices(shape[0], *shape[2:], below=shape[1])
        for ignored in (-100, 1) if kind == "ordinary" else (-100,):
            yield sample(t(*shape), targets, ignored, kind=kind, gradient=kind != "large")
    outside = np.array([0, -7, 2, -7])
    yield sample(t(4, 3), outside, -7, note="an ignored target that is no class")


@inputs("weighted_class_losses")
def weighted(t: Maker) -> Iterator[Sample]:
    """Yield every shape with a weight for each class."""
    for shape, kind in SHAPES:
        targets, weights = t.indices(shape[0], *shape[2:], below=shape[1]), t(shape[1], low=0.5, high=2.0)
        for ignored in (-100, 1) if kind == "ordinary" else (-100,):
            yield sample(t(*shape), targets, weights, ignored, kind=kind, gradient=kind != "large")
    outside = np.array([0, -7, 2, -7])
    yield sample(t(4, 3), outside, t(3, low=0.5, high=2.0), -7, note="an ignored target that is no class")


@mistakes("weighted_class_losses")
def unlike_weights(t: Maker) -> Iterator[Sample]:
    """Yield other numbers of weights or targets."""
    yield sample(t(5, 4), t.indices(5, below=4), t(3), -100, note="three weights for four classes")
    yield sample(t(5, 4), t.indices(5, below=4), t(1), -100, note="one weight for four classes")
    yield sample(t(5, 4), t.indices(1, below=4), t(4), -100, note="one target for five rows")


def _lists_of_labels(t: Maker, rows: int, classes: int) -> Any:
    """Return labels up to the first -1 in some rows, without an end in others, and lists with repeated labels."""
    labels = np.array(t.indices(rows, classes, below=classes))
    labels[1::2, classes // 2 :] = -1
    return labels


@inputs("label_margins", "label_margins_backward")
def labelled(t: Maker) -> Iterator[Sample]:
    """Yield rows with some labels, with as many as classes, and without any."""
    shapes = (
        ((5, 4), "ordinary"),
        ((0, 3), "zero-size"),
        ((1, 1), "length-1"),
        ((4, 3), "ordinary"),
        ((301, 11), "large"),
    )
    for (rows, classes), kind in shapes:
        first = (t(rows),) if t.operator == "label_margins_backward" else ()
        labels = _lists_of_labels(t, rows, classes)
        yield sample(*first, t(rows, classes), labels, kind=kind, gradient=kind != "large")


@sizes("weighted_class_losses", "label_margins", "label_margins_backward")
def many_targets(t: Maker) -> Iterator[Sample]:
    """Yield more targets than 65,535; the labels of a row repeat, and some lists of labels end early."""
    if t.operator == "weighted_class_losses":
        weights = t.array(np.array([1.0, 2.0, 4.0]))
        yield sample(cycle(t, ROWS, 3), jumping(ROWS, 3), weights, 1, **PLAIN)
        return
    labels = jumping(4 * ROWS, 4).reshape(ROWS, 4) // 2
    labels[::3, 2:] = -1
    first = (cycle(t, ROWS),) if t.operator == "label_margins_backward" else ()
    yield sample(*first, cycle(t, ROWS, 4), labels, **PLAIN)


@mistakes("label_margins")
def unlike_labels(t: Maker) -> Iterator[Sample]:
    """Yield targets of another shape."""
    yield sample(t(5, 4), t.indices(1, 4, below=4), note="one list of labels for five rows")


@inputs("class_losses_backward")
def taken_back(t: Maker) -> Iterator[Sample]:
    """Yield the same shapes for the backward function."""
    for shape, kind in SHAPES:
        targets = t.indices(shape[0], *shape[2:], below=shape[1])
        for ignored in (-100, 1) if kind == "ordinary" else (-100,):
            yield sample(t(shape[0], *shape[2:]), targets, shape, ignored, kind=kind, gradient=kind != "large")


@mistakes("class_losses", "mean_class_loss")
def unlike(t: Maker) -> Iterator[Sample]:
    """Yield targets of another shape, even of one that would broadcast."""
    yield sample(t(5, 4), t.indices(1, below=4), -100, note="one target for five rows")
    yield sample(t(5, 4, 3), t.indices(5, below=4), -100, note="one target for three columns")
