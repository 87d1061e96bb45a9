"""Samples of losses, with every reduction, weights, and all kinds of targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from candelabra.dtypes import FLOATING, int64

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only
from candelabra_conformance.samples.sample import LENGTH_ONE, ORDINARY, ZERO_DIM, ZERO_SIZE, Sample, sample

PAIRS: Final = (
    "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "hinge_embedding_loss", "soft_margin_loss",
)  # fmt: skip
"""The losses of an input and a target of one shape."""
OTHERS: Final = (
    "gaussian_nll_loss", "margin_ranking_loss", "cosine_embedding_loss", "triplet_margin_loss",
    "multilabel_soft_margin_loss", "multilabel_margin_loss", "multi_margin_loss", "cross_entropy", "nll_loss",
)  # fmt: skip
only(lambda d: d.category == FLOATING, *PAIRS, *OTHERS)
only(lambda d: d is int64, "one_hot")

REDUCTIONS: Final = ("mean", "sum", "none")
OPTIONS: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "mse_loss": ({},), "l1_loss": ({},), "smooth_l1_loss": ({}, {"beta": 0.5}), "huber_loss": ({}, {"delta": 0.7}),
    "kl_div": ({}, {"log_target": True}), "poisson_nll_loss": ({}, {"full": True}),
    "binary_cross_entropy_with_logits": ({},),
}  # fmt: skip
"""The keyword arguments of the losses of two tensors of one shape."""


@inputs(*OPTIONS)
def paired_inputs(t: Maker) -> Iterator[Sample]:
    """Yield every reduction and option."""
    if not t.is_floating:
        return
    for options in OPTIONS[t.operator]:
        for reduction in REDUCTIONS:
            yield sample(t(3, 4), t(3, 4, low=0.1, high=0.9), reduction=reduction, **options)


@inputs("mse_loss", "l1_loss", "huber_loss")
def weighted_pairs(t: Maker) -> Iterator[Sample]:
    """Yield a weight for each element."""
    if t.is_floating:
        for reduction in REDUCTIONS:
            yield sample(t(3, 4), t(3, 4), reduction=reduction, weight=t(3, 4, low=0.5, high=1.5))


@inputs("kl_div")
def batch_means(t: Maker) -> Iterator[Sample]:
    """Yield ``batchmean``, the sum divided by the size of the batch."""
    if t.is_floating:
        yield sample(t(3, 4), t(3, 4, low=0.1, high=0.9), reduction="batchmean")


@inputs("poisson_nll_loss")
def rates(t: Maker) -> Iterator[Sample]:
    """Yield inputs that are rates and not their logarithms."""
    if t.is_floating:
        yield sample(t(3, 4, low=0.5, high=2.0), t(3, 4, low=0.1, high=3.0), False)


@inputs("binary_cross_entropy")
def probabilities(t: Maker) -> Iterator[Sample]:
    """Yield probabilities within (0, 1), with weights and without."""
    if t.is_floating:
        for reduction in REDUCTIONS:
            yield sample(t(3, 4, low=0.1, high=0.9), t(3, 4, low=0.1, high=0.9), reduction=reduction)
        yield sample(t(3, 4, low=0.1, high=0.9), t(3, 4, low=0.1, high=0.9), t(4, low=0.5, high=1.5))


@inputs("binary_cross_entropy_with_logits")
def weighted_logits(t: Maker) -> Iterator[Sample]:
    """Yield weights of the elements and of the positive term."""
    if t.is_floating:
        weight, positive = t(4, low=0.5, high=1.5), t(4, low=0.5, high=1.5)
        yield sample(t(3, 4), t(3, 4, low=0.1, high=0.9), weight, pos_weight=positive)


@mistakes("binary_cross_entropy", "binary_cross_entropy_with_logits")
def shapes_that_differ(t: Maker) -> Iterator[Sample]:
    """Yield a target of another shape."""
    yield sample(t(2, 3), t(3), note="another shape")


@mistakes("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
def unknown_reductions(t: Maker) -> Iterator[Sample]:
    """Yield an unknown reduction."""
    yield sample(t(3), t(3), reduction="median")


@mistakes("smooth_l1_loss", "huber_loss")
def negative_widths(t: Maker) -> Iterator[Sample]:
    """Yield a negative width of the quadratic part."""
    name = "beta" if t.operator == "smooth_l1_loss" else "delta"
    yield sample(t(3), t(3), note="negative", **{name: -1.0})


@mistakes("kl_div", "poisson_nll_loss")
def shapes_that_do_not_broadcast(t: Maker) -> Iterator[Sample]:
    """Yield input and target that do not broadcast."""
    yield sample(t(2, 3), t(4))


@inputs("gaussian_nll_loss")
def gaussian_inputs(t: Maker) -> Iterator[Sample]:
    """Yield a variance for each element, for each row, and for all."""
    if t.is_floating:
        for reduction in REDUCTIONS:
            yield sample(t(3, 4), t(3, 4), t(3, 4, low=0.5, high=2.0), reduction=reduction)
        yield sample(t(3, 4), t(3, 4), t(3, low=0.5, high=2.0), True)
        yield sample(t(3, 4), t(3, 4), t(3, 1, low=0.5, high=2.0))
        yield sample(t(3, 4), t(3, 4), 0.75)


@mistakes("gaussian_nll_loss")
def variances_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield a variance of another size, and a negative one."""
    yield sample(t(2, 3), t(2, 3), t(2, 2, low=0.5, high=1.5), note="another size")
    yield sample(t(2, 3), t(2, 3), t.array([[1, 1, 1], [1, -1, 1]]), note="negative")


@inputs(*PAIRS)
def pairs_of_other_sizes(t: Maker) -> Iterator[Sample]:
    """Yield 0-d tensors, one element, and no elements."""
    for shape, kind in (((), ZERO_DIM), ((1,), LENGTH_ONE), ((2, 0), ZERO_SIZE)):
        reduction = "sum" if kind == ZERO_SIZE else "mean"
        target = (
            np.ones(shape, t.numpy) if "margin" in t.operator or "hinge" in t.operator else t(*shape, low=0.1, high=0.9)
        )
        yield sample(t(*shape, low=0.1, high=0.9), target, reduction=reduction, kind=kind, constant=("target",))


@inputs("gaussian_nll_loss")
def gaussians_of_other_sizes(t: Maker) -> Iterator[Sample]:
    """Yield a 0-d tensor, no elements, and another limit of the variance."""
    yield sample(t(), t(), t(low=0.5, high=2.0), kind=ZERO_DIM)
    yield sample(t(2, 0), t(2, 0), t(2, 0), reduction="sum", kind=ZERO_SIZE)
    yield sample(t(2, 3), t(2, 3), t(2, 3, low=0.5, high=2.0), eps=1e-3)


@inputs("poisson_nll_loss")
def offsets_of_logarithms(t: Maker) -> Iterator[Sample]:
    """Yield another number that is added before the logarithm."""
    yield sample(t(3, low=0.5, high=2.0), t(3, low=0.1, high=3.0), False, eps=0.1)


# -- margins ----------------------------------------------------------------------------------------------------------
def signs(t: Maker, *shape: int) -> np.ndarray[Any, Any]:
    """Return an array of 1 and -1."""
    return np.where(t.mask(*shape), 1, -1).astype(t.numpy)


@inputs("margin_ranking_loss", "hinge_embedding_loss", "soft_margin_loss")
def signed_targets(t: Maker) -> Iterator[Sample]:
    """Yield targets of 1 and -1, every reduction, and a margin."""
    if not t.is_floating:
        return
    tensors = 2 if t.operator == "margin_ranking_loss" else 1
    constant = ("target",)
    for reduction in REDUCTIONS:
        scores = [t(5) for _ in range(tensors)]
        yield sample(*scores, signs(t, 5), reduction=reduction, constant=constant)
    if t.operator != "soft_margin_loss":
        yield sample(*[t(2, 3) for _ in range(tensors)], signs(t, 2, 3), 0.3, constant=constant)


@inputs("cosine_embedding_loss")
def pairs_of_vectors(t: Maker) -> Iterator[Sample]:
    """Yield a batch of pairs and one pair."""
    if t.is_floating:
        for reduction in REDUCTIONS:
            yield sample(t(4, 3), t(4, 3), signs(t, 4), 0.1, reduction=reduction, constant=("target",))
        yield sample(t(3), t(3), signs(t), constant=("target",))


@inputs("triplet_margin_loss", "nn.functional.triplet_margin_with_distance_loss")
def triplets(t: Maker) -> Iterator[Sample]:
    """Yield batches of vectors, every reduction, and the swapped distance."""
    if t.is_floating:
        for reduction in REDUCTIONS:
            yield sample(t(4, 3), t(4, 3), t(4, 3), margin=3.0, reduction=reduction)
        yield sample(t(4, 3), t(4, 3), t(4, 3), margin=5.0, swap=True)


@inputs("multilabel_soft_margin_loss")
def labels(t: Maker) -> Iterator[Sample]:
    """Yield labels of 0 and 1, with weights and without."""
    if t.is_floating:
        target = t.mask(3, 4).astype(t.numpy)
        for reduction in REDUCTIONS:
            yield sample(t(3, 4), target, reduction=reduction)
        yield sample(t(3, 4), target, t(4, low=0.5, high=1.5))


@inputs("multilabel_margin_loss")
def listed_labels(t: Maker) -> Iterator[Sample]:
    """Yield labels up to the first -1, in rows and in one row."""
    if t.is_floating:
        for reduction in REDUCTIONS:
            yield sample(t(2, 4), t.index([3, 0, -1, 1], [1, -1, -1, -1]), reduction=reduction)
        yield sample(t(4), t.index(2, 1, -1, 0))


@inputs("multi_margin_loss")
def classes_with_margins(t: Maker) -> Iterator[Sample]:
    """Yield both powers, a margin, weights, rows and one row."""
    if t.is_floating:
        for reduction in REDUCTIONS:
            yield sample(t(3, 4), t.index(3, 0, 1), reduction=reduction)
        yield sample(t(3, 4), t.index(3, 0, 1), 2, 0.5, t(4, low=0.5, high=1.5))
        yield sample(t(4), np.array(2))


@mistakes("multilabel_margin_loss", "multi_margin_loss")
def labels_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield labels of another dtype and of another shape.

    Labels out of range are left out: an asynchronous device reports them with the text of its kernel.
    """
    target = t.index([3, 2, -1, 1], [1, -1, -1, -1]) if t.operator == "multilabel_margin_loss" else t.index(1, 2)
    yield sample(t(2, 4), target.astype(np.int32), note="int32")
    yield sample(t(3, 4), target, note="another shape")


@mistakes("margin_ranking_loss", "hinge_embedding_loss", "soft_margin_loss", "multilabel_soft_margin_loss")
def unknown_margin_reductions(t: Maker) -> Iterator[Sample]:
    """Yield an unknown reduction."""
    scores = [t(3)] * (2 if t.operator == "margin_ranking_loss" else 1)
    yield sample(*scores, t(3), reduction="median")


@mistakes("cosine_embedding_loss")
def ranks_of_pairs(t: Maker) -> Iterator[Sample]:
    """Yield a batch with one target."""
    yield sample(t(2, 3), t(2, 3), t(), note="ranks")
    yield sample(t(2, 3), t(2, 3), t(2, 1), note="several targets")


@mistakes("triplet_margin_loss", "nn.functional.triplet_margin_with_distance_loss")
def margins_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield a margin of 0, and vectors of different ranks."""
    yield sample(t(2, 3), t(2, 3), t(2, 3), margin=0.0, note="margin")
    yield sample(t(2, 3), t(2, 3), t(3), note="ranks")


@inputs("margin_ranking_loss")
def rankings_of_other_sizes(t: Maker) -> Iterator[Sample]:
    """Yield 0-d tensors, and no elements."""
    yield sample(t(), t(), signs(t), kind=ZERO_DIM, constant=("target",))
    yield sample(t(0), t(0), signs(t, 0), reduction="sum", kind=ZERO_SIZE)


@inputs("cosine_embedding_loss")
def pairs_of_few_vectors(t: Maker) -> Iterator[Sample]:
    """Yield one pair, and no pair."""
    yield sample(t(1, 3), t(1, 3), signs(t, 1), kind=LENGTH_ONE, constant=("target",))
    yield sample(t(0, 3), t(0, 3), signs(t, 0), reduction="sum", kind=ZERO_SIZE)


@inputs("triplet_margin_loss")
def few_triplets(t: Maker) -> Iterator[Sample]:
    """Yield one triplet, none, another norm, and another epsilon."""
    yield sample(t(1, 3), t(1, 3), t(1, 3), margin=5.0, kind=LENGTH_ONE)
    yield sample(t(0, 3), t(0, 3), t(0, 3), reduction="sum", kind=ZERO_SIZE)
    yield sample(t(4, 3), t(4, 3), t(4, 3), margin=5.0, p=3.0, eps=1e-3)


@inputs("multilabel_soft_margin_loss")
def labels_of_few_rows(t: Maker) -> Iterator[Sample]:
    """Yield one label, and no row."""
    yield sample(t(1, 1), np.ones((1, 1), t.numpy), kind=LENGTH_ONE, constant=("target",))
    yield sample(t(0, 3), t(0, 3), reduction="sum", kind=ZERO_SIZE)


@inputs("multilabel_margin_loss", "multi_margin_loss")
def scores_of_few_rows(t: Maker) -> Iterator[Sample]:
    """Yield one class, and no row."""
    shape = (1, 1) if t.operator == "multilabel_margin_loss" else (1,)
    yield sample(t(1, 1), np.zeros(shape, np.int64), kind=LENGTH_ONE)
    none = (0, 3) if t.operator == "multilabel_margin_loss" else (0,)
    yield sample(t(0, 3), np.zeros(none, np.int64), reduction="sum", kind=ZERO_SIZE)


# -- numbered reductions ----------------------------------------------------------------------------------------------
NUMBERED: Final = (
    "numbered_kl_div", "numbered_binary_cross_entropy_with_logits", "numbered_poisson_nll_loss",
    "numbered_margin_ranking_loss", "numbered_hinge_embedding_loss", "numbered_cosine_embedding_loss",
    "numbered_triplet_margin_loss",
)  # fmt: skip
only(lambda d: d.category == FLOATING, *NUMBERED)


@inputs(*NUMBERED)
def numbered_reductions(t: Maker) -> Iterator[Sample]:
    """Yield the numbers of every reduction, and a batch without rows."""
    for number in range(3):
        yield _numbered(t, 4, number)
    yield _numbered(t, 0, 2)


@mistakes(*NUMBERED)
def unknown_numbers(t: Maker) -> Iterator[Sample]:
    """Yield the number of no reduction."""
    yield _numbered(t, 4, 3)


def _numbered(t: Maker, rows: int, reduction: int) -> Sample:
    """Return a sample of ``rows`` rows."""
    name, kind = t.operator.removeprefix("numbered_"), ORDINARY if rows else ZERO_SIZE
    x = t(rows, 3)
    if name == "triplet_margin_loss":
        return sample(x, t(rows, 3), t(rows, 3), 5.0, reduction=reduction, kind=kind)
    if name == "poisson_nll_loss":
        return sample(x, t(rows, 3, low=0.1, high=3.0), True, False, 1e-8, reduction, kind=kind)
    if name in ("kl_div", "binary_cross_entropy_with_logits"):
        return sample(x, t(rows, 3, low=0.1, high=0.9), reduction=reduction, kind=kind)
    others = [] if name == "hinge_embedding_loss" else [t(rows, 3)]
    targets = signs(t, rows) if name == "cosine_embedding_loss" else signs(t, rows, 3)
    return sample(x, *others, targets, 0.1, reduction=reduction, constant=("target",), kind=kind)


# -- classes ----------------------------------------------------------------------------------------------------------
@inputs("cross_entropy", "nll_loss")
def class_targets(t: Maker) -> Iterator[Sample]:
    """Yield every reduction, weights, an ignored class, rows, one row, and spatial dims."""
    if not t.is_floating:
        return
    for reduction in REDUCTIONS:
        yield sample(t(5, 4), t.indices(5, below=4), reduction=reduction)
    yield sample(t(5, 4), t.index(3, 1, 1, 0, 2), t(4, low=0.5, high=1.5), ignore_index=1, constant=("weight",))
    yield sample(t(3, 4, 2), t.indices(3, 2, below=4))
    yield sample(t(4), np.array(2))


@inputs("cross_entropy")
def probable_targets(t: Maker) -> Iterator[Sample]:
    """Yield targets that are probabilities, and smoothed classes."""
    if t.is_floating:
        yield sample(t(3, 4), t(3, 4, low=0.1, high=0.9))
        yield sample(t(3, 4), t(3, 4, low=0.1, high=0.9), label_smoothing=0.2, reduction="none")
        yield sample(t(5, 4), t.indices(5, below=4), label_smoothing=0.1)


@mistakes("cross_entropy", "nll_loss")
def targets_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield classes that do not exist, other dtypes, and another batch."""
    yield sample(t(3, 4), t.index(0, 4, 1), note="no such class")
    yield sample(t(3, 4), t.index(0, 1).astype(np.int32), note="int32")
    yield sample(t(3, 4), t.index(0, 1), note="another batch")


@inputs("cross_entropy", "nll_loss")
def few_targets(t: Maker) -> Iterator[Sample]:
    """Yield one class, and no row."""
    yield sample(t(1, 1), t.index(0), kind=LENGTH_ONE, gradient=False)
    yield sample(t(0, 3), np.zeros(0, np.int64), reduction="sum", kind=ZERO_SIZE)


@inputs("one_hot")
def encoded_classes(t: Maker) -> Iterator[Sample]:
    """Yield a number of classes, and the default, one more than the largest."""
    if t.dtype.name == "int64":
        yield sample(t.index([0, 2], [1, 1]))
        yield sample(t.index(0, 2, 1), 5)
        yield sample(np.array(1), 3, kind=ZERO_DIM)
        yield sample(np.zeros((2, 0), np.int64), 3, kind=ZERO_SIZE)


@mistakes("one_hot")
def classes_that_do_not_exist(t: Maker) -> Iterator[Sample]:
    """Yield negative classes, and classes above the limit."""
    yield sample(t.index(0, -2), note="negative")
    yield sample(t.index(0, 5), 3, note="too large")
