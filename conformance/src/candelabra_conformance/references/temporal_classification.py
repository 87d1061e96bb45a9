"""References of connectionist temporal classification: sums over every path."""

from __future__ import annotations

from itertools import groupby, product
from typing import Any

import numpy as np

from candelabra_conformance.references.network_losses import reduced
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


def spelled(path: tuple[int, ...], blank: int) -> list[int]:
    """Return the labels of a path: without repetitions, then without blanks."""
    return [label for label, _ in groupby(path) if label != blank]


def paths(log_probs: Array, labels: list[int], length: int, blank: int) -> tuple[float, Array]:
    """Return the probability of the labels, and the part of each class at each time."""
    total, parts = 0.0, np.zeros(log_probs.shape)
    for path in product(range(log_probs.shape[1]), repeat=length):
        if spelled(path, blank) == labels:
            chance = float(np.exp(sum(log_probs[time, label] for time, label in enumerate(path))))
            total += chance
            parts[range(length), list(path)] += chance
    return total, parts


def each(x: Array, targets: Array, lengths: Any, counts: Any, blank: int) -> list[tuple[float, Array]]:
    """Return the result of :func:`paths` for each sequence."""
    return [
        paths(x[:, n], list(targets[n, : counts[n]]), int(lengths[n]), blank) for n in range(x.shape[1])
    ]  # fmt: skip


@reference("alignment_losses")
def alignment_losses(x: Array, targets: Array, lengths: Any, counts: Any, blank: int, zero_infinity: bool) -> Array:
    """Sum the probabilities of the paths that spell the labels."""
    return np.array([-np.log(total) for total, _ in each(x, targets, lengths, counts, blank)])


@reference("label_posteriors")
def label_posteriors(x: Array, targets: Array, lengths: Any, counts: Any, blank: int, zero_infinity: bool) -> Array:
    """Divide the probability of the paths through each class by that of all; 0 if there is none."""
    found = each(x, targets, lengths, counts, blank)
    return np.stack([parts / total if total else parts for total, parts in found], 1)


@reference("nn.functional.ctc_loss", "ctc_loss")
def ctc_loss(
    x: Array, targets: Array, lengths: Any, counts: Any, blank: int = 0, reduction: str = "mean", zero: bool = False
) -> Any:
    """Convert the targets to rows; the mean is that of losses per label."""
    if x.ndim == 2:
        return ctc_loss(x[:, None], targets[None], [int(lengths)], [int(counts)], blank, "mean", zero)
    if targets.ndim == 1:
        ends = np.cumsum(counts)
        rows = np.zeros((len(counts), max(counts)), np.int64)
        for row, end, count in zip(rows, ends, counts, strict=True):
            row[:count] = targets[end - count : end]
        targets = rows
    chances = np.array([total for total, _ in each(x, targets, lengths, counts, blank)])
    losses = np.array([-np.log(p) if p else 0.0 if zero else np.inf for p in chances])
    return reduced(losses / np.maximum(counts, 1) if reduction == "mean" else losses, reduction)
