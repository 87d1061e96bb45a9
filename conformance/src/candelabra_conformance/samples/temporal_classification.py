"""Samples of connectionist temporal classification: labels of several lengths, repeated ones, and misfits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from candelabra.dtypes import FLOATING

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only
from candelabra_conformance.samples.sample import LENGTH_ONE, ZERO_SIZE, Sample, sample

OPERATORS: Final = ("alignment_losses", "label_posteriors")
LOSSES: Final = ("nn.functional.ctc_loss", "ctc_loss")
only(lambda d: d.name in ("float32", "float64"), *LOSSES)
only(lambda d: d.category == FLOATING, *OPERATORS)


def normalized(t: Maker, *shape: int) -> np.ndarray[Any, Any]:
    """Return log-probabilities, whose sums along the last dim are 1."""
    if np.issubdtype(t.numpy, np.complexfloating):  # refused by every operator here
        return t(*shape)
    scores = t(*shape).astype(np.float64)
    values: np.ndarray[Any, Any] = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    return values.astype(t.numpy)


@inputs(*OPERATORS)
def aligned(t: Maker) -> Iterator[Sample]:
    """Yield labels of all lengths, repeated labels, another blank, one label, and lengths of 0."""
    yield sample(normalized(t, 4, 3, 3), t.index([1, 2], [1, 1], [2, 0]), t.index(4, 4, 3), t.index(2, 2, 1), 0, False)
    yield sample(normalized(t, 5, 1, 3), t.index([0, 1, 0]), t.index(5), t.index(3), 2, True, note="another blank")
    yield sample(normalized(t, 3, 2, 2), t.index([1], [0]), t.index(3, 2), t.index(1, 0), 0, False, note="no label")
    yield sample(normalized(t, 1, 1, 2), t.index([1]), t.index(1), t.index(1), 0, False, kind=LENGTH_ONE)
    unlabelled = np.zeros((2, 0), np.int64)
    yield sample(normalized(t, 3, 2, 2), unlabelled, t.index(3, 2), t.index(0, 0), 0, False, kind=ZERO_SIZE)


@inputs("label_posteriors")
def misfits(t: Maker) -> Iterator[Sample]:
    """Yield labels that need more time than there is."""
    yield sample(normalized(t, 3, 2, 3), t.index([1, 1], [2, 1]), t.index(2, 2), t.index(2, 2), 0, True, gradient=False)


@mistakes(*OPERATORS)
def sizes_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield log-probabilities without a batch, and another number of labels and lengths."""
    labels = t.index([1, 2], [1, 1])
    yield sample(t(4, 3), labels, t.index(4, 4), t.index(2, 2), 0, False, note="no batch")
    yield sample(t(4, 3, 3), labels, t.index(4, 4, 4), t.index(2, 2, 2), 0, False, note="labels")
    yield sample(t(4, 2, 3), labels, t.index(4), t.index(2, 2), 0, False, note="lengths")


def _through_log_softmax(f: Any, log_probs: Any, *rest: Any, **options: Any) -> Any:
    """Call the loss on normalized values: at others, its gradient is by definition not the derivative."""
    return f(log_probs.log_softmax(-1), *rest, **options)


@inputs(*LOSSES)
def targets_of_both_forms(t: Maker) -> Iterator[Sample]:
    """Yield targets in rows and in one vector, lengths as tensors and as numbers, every reduction, and no batch."""
    scores = normalized(t, 4, 3, 3)
    rows, lengths, spelled = t.index([1, 2], [1, 1], [2, 0]), t.index(4, 4, 3), t.index(2, 2, 1)
    for reduction in ("none", "mean", "sum"):
        yield sample(scores, rows, lengths, spelled, 0, reduction, call=_through_log_softmax)
    yield sample(scores, t.index(1, 2, 1, 1, 2), (4, 4, 3), (2, 2, 1), call=_through_log_softmax)
    yield sample(scores, rows, t.index(4, 2, 3), spelled, 0, "sum", True, call=_through_log_softmax)
    yield sample(normalized(t, 4, 3), t.index(1, 2), np.array(4), np.array(2), call=_through_log_softmax)


@mistakes(*LOSSES)
def lengths_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield lengths beyond the input and the targets, a blank that is no class, and a batch of another size."""
    scores, rows = t(4, 2, 3), t.index([1, 2], [1, 1])
    yield sample(scores, rows, (5, 4), (2, 2), note="input")
    yield sample(scores, rows, (4, 4), (3, 2), note="target")
    yield sample(scores, rows, (4, -1), (2, 2), note="negative")
    yield sample(scores, rows, (4, 4), (2, 2), 3, note="blank")
    yield sample(scores, rows, (4, 4, 4), (2, 2, 2), note="batch")
    yield sample(scores, t.index(1, 2, 1), (4, 4), (2, 2), note="vector")
