"""Samples of multi-head attention, of bags of embeddings, and of the cross entropy of a linear map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from candelabra.dtypes import FLOATING

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only, special
from candelabra_conformance.samples.sample import LENGTH_ONE, ORDINARY, ZERO_SIZE, Sample, sample

only(
    lambda d: d.category == FLOATING,
    "nn.functional.multi_head_attention_forward", "nn.functional.linear_cross_entropy",
)  # fmt: skip


# -- multi-head attention ---------------------------------------------------------------------------------------------
def _attention(t: Maker, *lead: int, width: int = 4, heads: int = 2, **options: Any) -> Sample:
    """Return a call with one weight for queries, keys and values."""
    operands = t(*lead, width), t(*lead, width), t(*lead, width)
    weights = t(3 * width, width), t(3 * width), None, None, False, 0.0, t(width, width), t(width)
    return sample(*operands, width, heads, *weights, **options)


@inputs("nn.functional.multi_head_attention_forward")
def heads(t: Maker) -> Iterator[Sample]:
    """Yield masks of both kinds, added keys, separate weights, weights of each head, and inputs without a batch."""
    yield _attention(t, 3, 2)
    yield _attention(t, 3, average_attn_weights=False)
    mask = np.triu(np.ones((3, 3), bool), 1)
    yield _attention(t, 3, 2, attn_mask=mask, is_causal=True)
    padding = np.array([[False, False, True], [False, True, False]])
    yield _attention(t, 3, 2, key_padding_mask=padding)
    yield _attention(t, 3, 2, key_padding_mask=t(2, 3), attn_mask=t(4, 3, 3))
    query, key, value = t(3, 2, 4), t(5, 2, 3), t(5, 2, 2)
    biases = t(1, 1, 4), t(1, 1, 4), True
    separate = {"use_separate_proj_weight": True, "q_proj_weight": t(4, 4), "k_proj_weight": t(4, 3),
                "v_proj_weight": t(4, 2)}  # fmt: skip
    yield sample(query, key, value, 4, 2, None, None, *biases, 0.0, t(4, 4), None, **separate)
    yield _attention(t, 0, 2, kind=ZERO_SIZE)
    yield _attention(t, 1, 1, width=1, heads=1, kind=LENGTH_ONE)


@mistakes("nn.functional.multi_head_attention_forward")
def unfit_heads(t: Maker) -> Iterator[Sample]:
    """Yield heads that do not divide the width, a vector, a hint without a mask, and masks of other shapes."""
    yield _attention(t, 3, 2, heads=3, note="heads")
    yield _attention(t, note="a vector")
    yield _attention(t, 3, 2, is_causal=True, note="a hint without a mask")
    yield _attention(t, 3, 2, attn_mask=np.ones((3, 4), bool), note="mask")
    yield _attention(t, 3, 2, key_padding_mask=np.ones((3, 2), bool), note="padding")


# -- bags -------------------------------------------------------------------------------------------------------------
@inputs("nn.functional.embedding_bag")
def bags(t: Maker) -> Iterator[Sample]:
    """Yield every mode with bags of one length and of several lengths, an empty bag, padding, and weights."""
    if not t.is_floating:
        return
    for mode in ("sum", "mean", "max"):
        yield sample(t.index([0, 2, 1], [3, 2, 0]), t(4, 3), mode=mode)
        yield sample(t.index(0, 2, 1, 3), t(4, 3), t.index(0, 1, 1, 3), mode=mode)
        # By definition, these gradients are not the derivatives.
        yield sample(t.index([0, 2], [2, 2]), t(4, 3), mode=mode, padding_idx=2, gradient=False)
        yield sample(t.index(2, 0, 1, 2), t(4, 3), t.index(0, 2), mode=mode, padding_idx=2, gradient=False)
    yield sample(t.index(0, 2, 1), t(4, 3), t.index(0, 2, 3), mode="sum", include_last_offset=True)
    yield sample(t.index([0, 2], [3, 2]), t(4, 3), mode="sum", per_sample_weights=t(2, 2))
    yield sample(t.index([0, 2], [3, 2]), t(4, 3), mode="mean", scale_grad_by_freq=True, gradient=False)
    yield sample(t.indices(0, 3, below=1), t(4, 3), kind=ZERO_SIZE)


@mistakes("nn.functional.embedding_bag")
def no_bags(t: Maker) -> Iterator[Sample]:
    """Yield indices out of bounds, and offsets and modes that do not match."""
    yield sample(t.index([0, 4]), t(4, 3), note="out of bounds")
    yield sample(t.index(0, 1), t(4, 3), note="no offsets")
    yield sample(t.index([0, 1]), t(4, 3), t.index(0), note="offsets of a matrix")
    yield sample(t.index(0, 1), t(4, 3), t.index(0, 3), note="offsets beyond the end")
    yield sample(t.index([0, 1]), t(4, 3), mode="median", note="mode")


@inputs("bag_sums")
def sums_of_bags(t: Maker) -> Iterator[Sample]:
    """Yield bags with and without scales, empty ones at both ends and in the middle, no bags, and no indices."""
    yield sample(t(4, 3), t.index(1, 3, 1, 0), t.index(0, 2))
    yield sample(t(4, 3), t.index(1, 3, 1, 0), t.index(0, 0, 1, 1, 4), t(4))
    yield sample(t(5, 2), t.index(4, 4, 1), t.index(0, 1), None, False, True, gradient=False)
    yield sample(t(4, 3), t.index(1, 3, 1, 0), t.index(0, 0, 3), None, True)
    yield sample(t(4, 3), t.index(1, 3, 1, 0), t.index(0, 1), t(4), True)
    yield sample(t(1, 1), t.index(0), t.index(0), t(1), kind=LENGTH_ONE)
    yield sample(t(4, 3), t.indices(0, below=1), t.index(0, 0), kind=ZERO_SIZE)
    yield sample(t(4, 3), t.indices(0, below=1), t.indices(0, below=1), t(0), kind=ZERO_SIZE)
    yield sample(t(4, 0), t.index(1, 2), t.index(0), kind=ZERO_SIZE)
    yield sample(t(65, 131), t.indices(440, below=65), LONG_BAGS, t(440), kind="large", gradient=False)
    yield sample(t(65, 131), t.indices(440, below=65), LONG_BAGS, None, True, kind="large", gradient=False)


LONG_BAGS: Final = np.array([0, 1, 1, 300, 431])
"""Starts of bags, of which one has more rows than a partial sum."""


@inputs("bag_maxima")
def maxima_of_bags(t: Maker) -> Iterator[Sample]:
    """Yield bags of equal rows, empty ones at both ends and in the middle, no bags, and no indices."""
    yield sample(t(4, 3), t.index(1, 3, 1, 0), t.index(0, 2))
    yield sample(t(4, 3), t.index(1, 3, 3, 0), t.index(0, 0, 1, 1, 4))
    yield sample(t(1, 1), t.index(0), t.index(0), kind=LENGTH_ONE)
    yield sample(t(4, 3), t.indices(0, below=1), t.index(0, 0), kind=ZERO_SIZE)
    yield sample(t(4, 3), t.indices(0, below=1), t.indices(0, below=1), kind=ZERO_SIZE)
    yield sample(t(4, 0), t.index(1, 2), t.index(0), kind=ZERO_SIZE)
    yield sample(t(65, 131), t.indices(440, below=65), LONG_BAGS, kind="large", gradient=False)


@special("bag_maxima")
def maxima_of_unusual_bags(t: Maker) -> Iterator[Sample]:
    """Yield different rows with equal elements, of which the first counts, infinities, and NaN."""
    if t.is_floating:
        table = t.array([[1.0, -np.inf], [1.0, np.inf], [np.nan, np.inf], [np.nan, 0.0]])
        yield sample(table, t.index(1, 0, 0, 0, 2, 3, 2, 1, 3), t.index(0, 2, 4, 6), note="equal, infinite, NaN")


@inputs("bag_sums_backward")
def gradients_of_bags(t: Maker) -> Iterator[Sample]:
    """Yield bags as for their sums, rows that no bag has, and rows that several have."""
    for mean in (False, True):
        yield sample(t(2, 3), t.index(1, 3, 1, 0), t.index(0, 2), None, 6, mean, core=1)
        yield sample(t(5, 3), t.index(1, 3, 1, 0), t.index(0, 0, 1, 1, 4), t(4), 4, mean, core=1)
        yield sample(t(5, 131), t.indices(440, below=65), LONG_BAGS, None, 70, mean, kind="large", gradient=False)
    yield sample(t(2, 2), t.index(4, 4, 1), t.index(0, 1), None, 5, False, True, gradient=False)
    yield sample(t(1, 1), t.index(0), t.index(0), t(1), 1, kind=LENGTH_ONE)
    yield sample(t(2, 3), t.indices(0, below=1), t.index(0, 0), None, 4, kind=ZERO_SIZE)
    yield sample(t(1, 0), t.index(1, 2), t.index(0), None, 4, kind=ZERO_SIZE)


@inputs("bag_dots")
def gradients_of_scales(t: Maker) -> Iterator[Sample]:
    """Yield rows that are shorter and longer than the partial sums of a dot product."""
    for mean in (False, True):
        yield sample(t(5, 3), t(4, 3), t.index(1, 3, 1, 0), t.index(0, 0, 1, 1, 4), mean)
    yield sample(t(1, 1), t(1, 1), t.index(0), t.index(0), kind=LENGTH_ONE)
    yield sample(t(2, 3), t(4, 3), t.indices(0, below=1), t.index(0, 0), kind=ZERO_SIZE)
    yield sample(t(5, 131), t(65, 131), t.indices(440, below=65), LONG_BAGS, kind="large", gradient=False)


@inputs("bag_maxima_backward")
def gradients_of_maxima(t: Maker) -> Iterator[Sample]:
    """Yield rows that attain several maxima, those that attain none, and maxima of empty bags."""
    yield sample(t(2, 3), t.index([0, 3, 0], [0, -1, 1]), 5)
    yield sample(t(1, 1), t.index([0]), 1, kind=LENGTH_ONE)
    yield sample(t(0, 3), t.indices(0, 3, below=1), 2, kind=ZERO_SIZE)
    distinct = np.add.outer(np.arange(70), np.arange(131)) % 80  # no two maxima of a column are in one row
    yield sample(t(70, 131), distinct, 80, kind="large", gradient=False)


only(lambda d: d.category == FLOATING, "bag_sums_backward", "bag_maxima_backward", "bag_dots")


@mistakes("bag_maxima")
def maxima_of_no_bags(t: Maker) -> Iterator[Sample]:
    """Yield an index and starts out of bounds."""
    yield sample(t(4, 3), t.index(0, 4), t.index(0), note="out of bounds")
    yield sample(t(4, 3), t.index(0, 1), t.index(1), note="the first start")
    yield sample(t(4, 3), t.index(0, 1), t.index(0, 3), note="a start beyond the end")


@mistakes("bag_sums")
def sums_of_no_bags(t: Maker) -> Iterator[Sample]:
    """Yield an index out of bounds, and shapes that do not match."""
    yield sample(t(4, 3), t.index(0, 4), t.index(0), note="out of bounds")
    yield sample(t(4, 3), t.index(0, 1), t.index(1), note="the first start")
    yield sample(t(4, 3), t.index(0, 1), t.index(0, 3), note="a start beyond the end")
    yield sample(t(4), t.index(0, 1), t.index(0), note="no table")
    yield sample(t(4, 3), t.index([0, 1]), t.index(0), note="indices of a matrix")
    yield sample(t(4, 3), t.index(0, 1), t.index(0), t(3), note="scales")


# -- a linear map and its cross entropy -------------------------------------------------------------------------------
LOSSES: Final = (
    ((5, 3), 4, 2, ORDINARY), ((4, 3), 7, 4, ORDINARY), ((3, 2), 5, 9, ORDINARY), ((0, 3), 2, 2, ZERO_SIZE),
    ((1, 1), 1, 1, LENGTH_ONE), ((33, 17), 65, 8, "large"),
)  # fmt: skip
"""The shape of the input, the number of classes, and the rows of a piece."""


@inputs("linear_class_losses")
def scored_in_pieces(t: Maker) -> Iterator[Sample]:
    """Yield pieces that divide the batch, that do not, and one piece; with a bias and without."""
    for shape, classes, rows, kind in LOSSES:
        targets = t.indices(shape[0], below=classes)
        for bias in (t(classes), None):
            yield sample(t(*shape), t(classes, shape[1]), bias, targets, rows, kind=kind, gradient=kind != "large")


@mistakes("linear_class_losses")
def unfit_classes(t: Maker) -> Iterator[Sample]:
    """Yield a target that is no class, shapes that do not match, and no rows."""
    yield sample(t(3, 2), t(4, 2), None, t.index(0, 4, 1), 2, note="no class")
    yield sample(t(3, 2), t(4, 3), None, t.index(0, 1, 1), 2, note="widths")
    yield sample(t(3, 2), t(4, 2), t(3), t.index(0, 1, 1), 2, note="bias")
    yield sample(t(3, 2), t(4, 2), None, t.index(0, 1), 2, note="targets")
    yield sample(t(3, 2), t(4, 2), None, t.index(0, 1, 1), 0, note="no rows")


@inputs("nn.functional.linear_cross_entropy")
def linear_losses(t: Maker) -> Iterator[Sample]:
    """Yield every reduction, biases, class weights, an ignored class, smoothing, more dims, and probabilities."""
    for reduction in ("mean", "sum", "none"):
        yield sample(t(5, 3), t(4, 3), t.indices(5, below=4), reduction=reduction)
    weight = t(4, low=0.5, high=1.5)
    yield sample(t(5, 3), t(4, 3), t.index(0, 1, 2, 3, 1), linear_bias=t(4), weight=weight, ignore_index=1)
    yield sample(t(5, 3), t(4, 3), t.indices(5, below=4), label_smoothing=0.2)
    yield sample(t(2, 3), t(4, 2, 3), t.indices(2, 2, below=4), linear_bias=t(4, 2))
    yield sample(t(5, 3), t(4, 3), t(5, 4, low=0.1, high=0.9))
    yield sample(t(3), t(4, 3), np.array(2))


@mistakes("nn.functional.linear_cross_entropy")
def unfit_linear_losses(t: Maker) -> Iterator[Sample]:
    """Yield shapes that do not match, and an ignored class of probabilities."""
    yield sample(t(2, 2, 3), t(4, 3), t.index(0, 1), note="dims")
    yield sample(t(2, 3), t(4, 2), t.index(0, 1), note="widths")
    yield sample(t(2, 3), t(4, 3), t.index(0, 1), linear_bias=t(3), note="bias")
    yield sample(t(2, 3), t(4, 3), t(2, 4, low=0.1, high=0.9), ignore_index=1, note="probabilities")
