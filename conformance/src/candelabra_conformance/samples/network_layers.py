"""Samples of the functions of layers: linear maps, padding, dropout, embedding, attention, pooling, windows, norms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from candelabra.dtypes import FLOATING

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import draws, inputs, mistakes, only
from candelabra_conformance.samples.sample import LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

DROPOUTS = tuple(f"nn.functional.{n}" for n in ("dropout", "alpha_dropout", "feature_alpha_dropout"))
PLAIN_DROPOUTS = tuple(
    name + inplace
    for name in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
    for inplace in ("", "_")
    if name + inplace != "dropout"  # the operator of that name takes the numbers of a draw
)
PLAIN_DROPOUTS += ("plain_dropout",)
CHANNEL_DROPOUTS = tuple(f"nn.functional.dropout{rank}d" for rank in (1, 2, 3))
UNPOOLS = ("max_unpool1d", "max_unpool2d", "max_unpool3d")
draws(*DROPOUTS, *CHANNEL_DROPOUTS, *PLAIN_DROPOUTS)
only(lambda d: d.category == FLOATING, "linear", "linear_weight_backward", "bilinear", *UNPOOLS)


# -- linear maps ------------------------------------------------------------------------------------------------------
@inputs("linear")
def linear_inputs(t: Maker) -> Iterator[Sample]:
    """Yield a batch, a vector, more leading dims, and one output without a dim."""
    yield sample(t(3, 4), t(2, 4), t(2))
    yield sample(t(4), t(2, 4))
    yield sample(t(2, 3, 4), t(5, 4), t(5))
    yield sample(t(3, 4), t(4), t())
    yield sample(t(0, 4), t(2, 4), t(2), kind=ZERO_SIZE)
    yield sample(t(1, 1), t(1, 1), t(1), kind=LENGTH_ONE)


@mistakes("linear")
def linear_sizes(t: Maker) -> Iterator[Sample]:
    """Yield widths that differ, and a 0-d input."""
    yield sample(t(3, 4), t(2, 5), note="widths")
    yield sample(t(), t(2, 4), note="0-d")


@inputs("linear_weight_backward")
def linear_weight_gradients(t: Maker) -> Iterator[Sample]:
    """Yield a batch, a vector, more leading dims, and sums of no products and of one."""
    yield sample(t(3, 2), t(3, 4))
    yield sample(t(2), t(4))
    yield sample(t(2, 3, 5), t(2, 3, 4))
    yield sample(t(0, 2), t(0, 4), kind=ZERO_SIZE)
    yield sample(t(1, 1), t(1, 1), kind=LENGTH_ONE)


@mistakes("linear_weight_backward")
def linear_weight_sizes(t: Maker) -> Iterator[Sample]:
    """Yield leading dims that differ, also if they have the same number of elements."""
    yield sample(t(3, 2), t(2, 4), note="rows")
    yield sample(t(2, 6, 1), t(3, 4, 1), note="leading dims")


@inputs("bilinear")
def bilinear_inputs(t: Maker) -> Iterator[Sample]:
    """Yield a batch with a bias and without."""
    yield sample(t(3, 4), t(3, 5), t(2, 4, 5), t(2))
    yield sample(t(2, 3, 4), t(2, 3, 2), t(3, 4, 2))
    yield sample(t(1, 1), t(1, 1), t(1, 1, 1), t(1), kind=LENGTH_ONE)
    yield sample(t(0, 4), t(0, 5), t(2, 4, 5), kind=ZERO_SIZE)


@mistakes("bilinear")
def bilinear_sizes(t: Maker) -> Iterator[Sample]:
    """Yield batches and widths that differ."""
    yield sample(t(3, 4), t(2, 5), t(2, 4, 5), note="batches")
    yield sample(t(3, 4), t(3, 5), t(2, 5, 4), note="widths")


@inputs("unit_vectors")
def vectors(t: Maker) -> Iterator[Sample]:
    """Yield several norms, along dim 1 and another."""
    if t.is_floating:
        yield sample(t(3, 4))
        for p in (1.0, 3.0, float("inf")):
            yield sample(t(3, 4), p)
        yield sample(t(4), 2.0, 0)
        yield sample(t(2, 3), eps=5.0)
        yield sample(t(1, 1), kind=LENGTH_ONE)
        yield sample(t(0, 3), kind=ZERO_SIZE)


@mistakes("unit_vectors")
def integer_vectors(t: Maker) -> Iterator[Sample]:
    """Yield integers, which have no unit vectors."""
    yield sample(t.of("int64")(2, 3))


only(lambda d: d.category == FLOATING, "unit_vectors")


# -- padding ----------------------------------------------------------------------------------------------------------
@inputs("pad")
def padded_inputs(t: Maker) -> Iterator[Sample]:
    """Yield every mode, one dim and two, and negative sizes."""
    yield sample(t(2, 4), (1, 2))
    yield sample(t(2, 4), (1, -2, 0, 1), "constant", 1)
    yield sample(t(2, 3, 4), (2, 1), "reflect")
    yield sample(t(2, 3, 4), (2, 1, 1, 3), "replicate")
    yield sample(t(2, 3, 4), (2, 1, 3, 0), "circular")
    yield sample(t(1, 4), (0, 0), kind=LENGTH_ONE)
    yield sample(t(0, 4), (1, 1), kind=ZERO_SIZE)


@mistakes("pad")
def sizes_of_padding(t: Maker) -> Iterator[Sample]:
    """Yield too many sizes, an odd number of sizes, and sizes that are too large."""
    yield sample(t(2, 3), (1,), note="odd")
    yield sample(t(3), (1, 1, 1, 1), note="too many")
    yield sample(t(2, 3), (3, 0), "reflect", note="too large")
    yield sample(t(2, 3), (-2, -2), note="negative")
    yield sample(t(2, 3), (1, 1), "mirror", note="an unknown mode")


PADDINGS = (
    ((2, 3, 4), (2, 1), "reflect"), ((2, 3, 4), (3, 3, 1, 2), "reflect"), ((2, 5), (-1, 2), "reflect"),
    ((2, 3, 4), (2, 1, 1, 3), "replicate"), ((2, 5), (3, -2), "replicate"), ((3, 1), (2, 2), "replicate"),
    ((2, 3, 4), (2, 1, 3, 0), "circular"), ((2, 5), (-2, 3), "circular"), ((2, 3), (3, 3), "circular"),
)  # fmt: skip
"""Shapes with paddings: of one dim and two, overlapping sources, and sizes of which one is negative."""


@inputs("pad_around")
def surrounded(t: Maker) -> Iterator[Sample]:
    """Yield every mode."""
    for shape, pad, mode in PADDINGS:
        yield sample(t(*shape), pad, mode)
    yield sample(t(1, 1), (1, 1), "replicate", kind=LENGTH_ONE)
    yield sample(t(0, 3), (1, 1), "reflect", kind=ZERO_SIZE)


@inputs("pad_around_adjoint")
def gathered_back(t: Maker) -> Iterator[Sample]:
    """Yield a gradient for every padding."""
    for shape, pad, mode in PADDINGS:
        sizes = list(shape)
        for i in range(len(pad) // 2):
            sizes[-1 - i] += pad[2 * i] + pad[2 * i + 1]
        yield sample(t(*sizes), shape, pad, mode)
    yield sample(t(1, 3), (1, 1), (1, 1), "replicate", kind=LENGTH_ONE)
    yield sample(t(0, 5), (0, 3), (1, 1), "reflect", kind=ZERO_SIZE)


@mistakes("pad_around")
def sizes_beyond_the_input(t: Maker) -> Iterator[Sample]:
    """Yield a reflection as wide as the input, and no values to repeat."""
    yield sample(t(2, 3), (3, 0), "reflect", note="too large")
    yield sample(t(2, 0), (1, 0), "replicate", note="empty")


# -- dropout ----------------------------------------------------------------------------------------------------------
@inputs("nn.functional.masked_dropout")
def given_masks(t: Maker) -> Iterator[Sample]:
    """Yield a mask as an argument."""
    if t.is_floating:
        yield sample(t(3, 4), t.mask(3, 4), 0.25)
        yield sample(t(3, 4), np.zeros((3, 4), bool), 1.0)


@inputs(*DROPOUTS)
def dropped_elements(t: Maker) -> Iterator[Sample]:
    """Yield both modes, and the probability 1."""
    if t.is_floating:
        yield sample(t(3, 4, 2), 0.25, True)
        yield sample(t(3, 4), 0.5, False)
        yield sample(t(3, 4), 1.0, True)


@inputs("dropout")
def dropped_by_a_draw(t: Maker) -> Iterator[Sample]:
    """Yield probabilities with the seed and the offset of a draw, and none that is dropped, or all."""
    if t.dtype.category >= FLOATING:
        yield sample(t(3, 4, 2), 0.25, 7, 0)
        yield sample(t(257), 0.5, (3 << 32) + 5, (1 << 32) + 7, note="beyond 32 bits")
        yield sample(t(), 0.5, 1, 3, kind=ZERO_DIM)
        yield sample(t(0, 3), 0.5, 1, 3, kind=ZERO_SIZE)
        yield sample(t(3, 4), 0.0, 7, 0)
        yield sample(t(3, 4), 1.0, 7, 0)


@inputs(*CHANNEL_DROPOUTS)
def dropped_channels(t: Maker) -> Iterator[Sample]:
    """Yield inputs with a batch, and without one if the function knows such inputs."""
    rank = int(t.operator[-2])
    if t.is_floating:
        yield sample(t(2, 3, *[2] * rank), 0.25)
        if rank != 2:
            yield sample(t(3, *[2] * rank), 0.5)


@inputs(*PLAIN_DROPOUTS)
def dropped_in_top_namespace(t: Maker) -> Iterator[Sample]:
    """Yield both modes, and the probability 1."""
    if t.is_floating:
        yield sample(t(3, 4, 2), 0.25, True)
        yield sample(t(3, 4), 0.5, False)
        yield sample(t(3, 4), 1.0, True)


@mistakes(*PLAIN_DROPOUTS)
def probabilities_in_top_namespace(t: Maker) -> Iterator[Sample]:
    """Yield probabilities above 1 and below 0."""
    yield sample(t(2, 3), 1.5, True, note="above 1")
    yield sample(t(2, 3), -0.5, True, note="below 0")


@mistakes(*DROPOUTS)
def probabilities_of_dropout(t: Maker) -> Iterator[Sample]:
    """Yield probabilities above 1 and below 0."""
    yield sample(t(2, 3), 1.5, note="above 1")
    yield sample(t(2, 3), -0.5, note="below 0")


@mistakes("nn.functional.dropout1d", "nn.functional.dropout2d")
def ranks_of_dropout(t: Maker) -> Iterator[Sample]:
    """Yield vectors, which have no channels."""
    yield sample(t(3))


# -- embedding and attention ------------------------------------------------------------------------------------------
@inputs("nn.functional.embedding")
def looked_up_rows(t: Maker) -> Iterator[Sample]:
    """Yield indices with any number of dims, duplicates, and a row without a gradient."""
    if t.is_floating:
        yield sample(t.index([0, 2], [2, 1]), t(4, 3))
        yield sample(np.array(1), t(4, 3), kind=ZERO_DIM)
        # By definition, these gradients are not the derivatives.
        yield sample(t.index(3, 1, 3), t(4, 3), 3, gradient=False)
        yield sample(t.index(3, 1, 3), t(4, 3), scale_grad_by_freq=True, gradient=False)


@inputs("rows_of_table")
def rows_in_another_order(t: Maker) -> Iterator[Sample]:
    """Yield the table before the indices, and a row without a gradient."""
    if t.is_floating:
        yield sample(t(4, 3), t.index([0, 2], [2, 1]))
        yield sample(t(4, 3), np.zeros((2, 0), np.int64), kind=ZERO_SIZE)
        yield sample(t(4, 3), t.index(3, 1, 3), 3, True, gradient=False)


@inputs("embedding_renorm_")
def limited_rows(t: Maker) -> Iterator[Sample]:
    """Yield limits above and below the rows' norms, a repeated row, and other norms."""
    if t.is_floating:
        for norm in (2.0, 1.0, np.inf):
            yield sample(t(4, 3), t.index(2, 0, 2), 0.5, norm, gradient=False)
        yield sample(t(4, 3), t.index([1, 3]), 100.0, 2.0, gradient=False)


@mistakes("rows_of_table", "embedding_renorm_")
def rows_outside_of_the_table(t: Maker) -> Iterator[Sample]:
    """Yield indices out of bounds, and of another dtype."""
    rest = (0.5, 2.0) if t.operator == "embedding_renorm_" else ()
    yield sample(t(4, 3), t.index(0, 4), *rest, note="out of bounds")
    yield sample(t(4, 3), t(2), *rest, note="dtype")


@mistakes("nn.functional.embedding")
def rows_that_do_not_exist(t: Maker) -> Iterator[Sample]:
    """Yield indices out of bounds, and of another dtype."""
    yield sample(t.index(0, 4), t(4, 3), note="out of bounds")
    yield sample(t.index(0, 1), t(4, 3), 7, note="padding_idx")


@inputs("nn.functional.scaled_dot_product_attention")
def attention_inputs(t: Maker) -> Iterator[Sample]:
    """Yield masks of both kinds, causal attention, a scale, and heads that share keys."""
    if t.is_floating:
        query, key, value = t(2, 3, 4), t(2, 5, 4), t(2, 5, 2)
        yield sample(query, key, value)
        mask = t.mask(3, 5)
        mask[:, 0] = True
        yield sample(query, key, value, mask)
        yield sample(query, key, value, t(3, 5), scale=0.3)
        yield sample(t(3, 4), t(3, 4), t(3, 2), is_causal=True)
        yield sample(t(4, 3, 2), t(2, 5, 2), t(2, 5, 2), enable_gqa=True)


@mistakes("nn.functional.scaled_dot_product_attention")
def attention_arguments(t: Maker) -> Iterator[Sample]:
    """Yield a mask together with causal attention, vectors, and heads that do not divide."""
    x = t(2, 3, 4)
    yield sample(x, x, x, t(3, 3), is_causal=True, note="mask and is_causal")
    yield sample(t(4), x, x, note="a vector")
    yield sample(t(3, 3, 4), x, x, enable_gqa=True, note="heads")


# -- pooling ----------------------------------------------------------------------------------------------------------
@inputs("nn.functional.avg_pool2d", "nn.functional.avg_pool3d")
def means_of_windows(t: Maker) -> Iterator[Sample]:
    """Yield padding that counts and padding that does not, a divisor, and windows that exceed the input."""
    rank = int(t.operator[-2])
    if t.is_floating:
        x = t(2, 3, *[5] * rank)
        yield sample(x, 2)
        yield sample(x, 3, 2, 1)
        yield sample(t(3, *[6] * rank), 3, 2, 1, True, False)
        yield sample(x, 2, divisor_override=3)


@mistakes("nn.functional.avg_pool2d", "nn.functional.avg_pool3d")
def windows_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield an empty window, one that is too large, and a divisor of 0."""
    x = t(1, 2, *[4] * int(t.operator[-2]))
    yield sample(x, 0, note="empty")
    yield sample(x, 9, note="too large")
    yield sample(x, 2, divisor_override=0, note="divisor")


@inputs("nn.functional.adaptive_avg_pool2d", "nn.functional.adaptive_avg_pool3d")
def means_of_equal_parts(t: Maker) -> Iterator[Sample]:
    """Yield one size for all dims, one size each, and None for the input's."""
    rank = int(t.operator[-2])
    if t.is_floating:
        x = t(2, 2, *[5] * rank)
        yield sample(x, 3)
        yield sample(x, (2, *[None] * (rank - 2), 1))
        yield sample(t(2, *[4] * rank), (None, *[2] * (rank - 1)))


@mistakes("nn.functional.adaptive_avg_pool2d", "nn.functional.adaptive_avg_pool3d")
def sizes_of_equal_parts(t: Maker) -> Iterator[Sample]:
    """Yield negative sizes, and too few dims."""
    yield sample(t(1, 2, *[4] * int(t.operator[-2])), -1, note="negative")
    yield sample(t(4), 2, note="too few dims")


@inputs(*UNPOOLS)
def unpooled_inputs(t: Maker) -> Iterator[Sample]:
    """Yield windows without overlap, and a given size."""
    rank = int(t.operator[-2])
    size = 4**rank
    for shape in ((2, *[2] * rank), (1, 2, *[2] * rank)):
        planes = int(np.prod(shape[: len(shape) - rank]))
        order = np.stack([np.random.default_rng(i).permutation(size)[: 2**rank] for i in range(planes)])
        yield sample(t(*shape), order.reshape(shape).astype(np.int64), 2)
        yield sample(t(*shape), order.reshape(shape).astype(np.int64), 2, output_size=[5] * rank)
    one = (1, *[1] * rank)
    yield sample(t(*one), np.zeros(one, np.int64), 3, 2, 1, kind=LENGTH_ONE)
    none = (0, 2, *[2] * rank)
    yield sample(t(*none), np.zeros(none, np.int64), 2, kind=ZERO_SIZE)


@mistakes(*UNPOOLS)
def positions_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield indices of another shape or dtype, and sizes whose pooled size is not the input's.

    Indices out of bounds are left out: an asynchronous device reports them with the text of its kernel.
    """
    rank = int(t.operator[-2])
    x, index = t(2, *[2] * rank), np.zeros((2, *[2] * rank), np.int64)
    yield sample(x, index[:1], 2, note="another shape")
    yield sample(x, index.astype(np.int32), 2, note="int32")
    yield sample(x, index, 2, output_size=[9] * rank, note="another size")


# -- windows ----------------------------------------------------------------------------------------------------------
@inputs("nn.functional.unfold")
def unfolded_inputs(t: Maker) -> Iterator[Sample]:
    """Yield padding, dilation, strides, and inputs without a batch."""
    if t.is_floating:
        yield sample(t(2, 3, 5, 4), 2)
        yield sample(t(2, 3, 5, 6), (3, 2), 2, 1, (1, 2))
        yield sample(t(2, 4, 4), 2, stride=2)


@inputs("nn.functional.fold")
def folded_inputs(t: Maker) -> Iterator[Sample]:
    """Yield windows with and without overlap, and inputs without a batch."""
    if t.is_floating:
        yield sample(t(2, 3 * 4, 4 * 3), (5, 4), 2)
        yield sample(t(2, 2 * 4, 4), 4, 2, stride=2)
        yield sample(t(4, 9), (4, 4), 2, 1, 0, 1)


@mistakes("nn.functional.unfold", "nn.functional.fold")
def kernels_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield an empty kernel, and too few dims."""
    size = () if t.operator.endswith("unfold") else (4,)
    yield sample(t(2, 4, 9), *size, 0, note="empty")
    yield sample(t(4), *size, 2, note="too few dims")


@inputs("nn.functional.lp_pool1d", "nn.functional.lp_pool2d", "nn.functional.lp_pool3d")
def powers_of_windows(t: Maker) -> Iterator[Sample]:
    """Yield even and odd powers of positive numbers, and the maximum."""
    rank = int(t.operator[-2])
    if t.is_floating:
        x = t(2, 3, *[5] * rank, low=0.5, high=2.0)
        yield sample(x, 2, 2)
        yield sample(x, 3.0, 3, 2)
        yield sample(x, float("inf"), 2)


@inputs("nn.functional.local_response_norm")
def neighbouring_channels(t: Maker) -> Iterator[Sample]:
    """Yield an odd and an even number of neighbours."""
    if t.is_floating:
        yield sample(t(2, 5, 3), 3)
        yield sample(t(1, 4, 2, 2), 2, 0.1, 0.5, 2.0)


@mistakes("nn.functional.local_response_norm")
def no_channels(t: Maker) -> Iterator[Sample]:
    """Yield a matrix, which has no channels with a spatial dim."""
    yield sample(t(2, 3), 2)


# -- normalization ----------------------------------------------------------------------------------------------------
@inputs("nn.functional.batch_norm")
def normalized_batches(t: Maker) -> Iterator[Sample]:
    """Yield running statistics and those of the batch."""
    if t.is_floating:
        mean, var = t(3), t(3, low=0.5, high=2.0)
        yield sample(t(4, 3), mean, var, t(3), t(3))
        yield sample(t(2, 3, 4), None, None, t(3), t(3), True)
        yield sample(t(4, 3, 2), None, None, training=True, eps=0.1)


@inputs("batch_norm", "instance_norm")
def normalized_in_another_order(t: Maker) -> Iterator[Sample]:
    """Yield statistics of the input, and running statistics, which follow weight and bias."""
    if t.is_floating:
        own = t.operator == "instance_norm"
        yield sample(t(4, 3, 2), t(3), t(3), None, None, True, 0.1, 1e-2, False)
        yield sample(t(2, 3, 4), None, None, None, None, True, 0.1, 1e-5, own)
        yield sample(t(4, 3, 2), t(3), t(3), t(3), t(3, low=0.5, high=2.0), False, 0.1, 1e-5, False)


@mistakes("batch_norm", "instance_norm")
def nothing_to_normalize_by(t: Maker) -> Iterator[Sample]:
    """Yield no statistics, and a weight of another size."""
    yield sample(t(2, 3, 4), None, None, None, None, False, 0.1, 1e-5, False, note="no statistics")
    yield sample(t(2, 3, 4), t(2), None, None, None, True, 0.1, 1e-5, False, note="a weight of another size")


@mistakes("nn.functional.batch_norm")
def batches_without_statistics(t: Maker) -> Iterator[Sample]:
    """Yield no running statistics in inference, in training one value and no eps, and weights of another size."""
    yield sample(t(2, 3), None, None, note="no statistics")
    yield sample(t(1, 3), None, None, training=True, note="one value")
    yield sample(t(2, 3), None, None, training=True, eps=0.0, note="eps")
    yield sample(t(2, 3), t(3), t(3), t(2), note="a weight of another size")


@inputs("nn.functional.instance_norm")
def normalized_instances(t: Maker) -> Iterator[Sample]:
    """Yield inputs with and without weight and bias, and running statistics."""
    if t.is_floating:
        yield sample(t(2, 3, 4))
        yield sample(t(2, 3, 2, 2), None, None, t(3), t(3), eps=0.1)
        yield sample(t(2, 3, 4), t(3), t(3, low=0.5, high=2.0), use_input_stats=False)


@mistakes("nn.functional.instance_norm")
def instances_without_statistics(t: Maker) -> Iterator[Sample]:
    """Yield one spatial element, which has no variance, and running statistics that are not there or too short."""
    yield sample(t(2, 3, 1))
    yield sample(t(2, 3, 4), use_input_stats=False, note="no statistics")
    yield sample(t(2, 3, 4), t(3), note="no variance")
    yield sample(t(2, 3, 4), t(2), t(2), note="two channels")
