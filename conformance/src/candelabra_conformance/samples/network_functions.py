"""Samples of public functions of networks without a record: activations, convolutions, normalisation, pooling,
shuffling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from candelabra.dtypes import FLOATING

from candelabra_conformance.samples.convolution import PLANS
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.pooling import POOLS
from candelabra_conformance.samples.registry import draws, inputs, mistakes
from candelabra_conformance.samples.sample import LENGTH_ONE, ORDINARY, ZERO_DIM, ZERO_SIZE, Sample, sample

draws("rrelu", "rrelu_", "nn.functional.gumbel_softmax")

# -- activations ------------------------------------------------------------------------------------------------------
ACTIVATIONS: Final[dict[str, tuple[tuple[Any, ...], ...]]] = {
    "celu": ((), (0.5,)), "celu_": ((), (0.5,)), "hardshrink": ((), (0.3,)), "selu": ((),), "selu_": ((),),
    "threshold": ((0.3, -1.0),), "threshold_": ((0.3, -1.0),), "rrelu": ((), (0.2, 0.4)), "rrelu_": ((), (0.2, 0.4)),
    "nn.functional.relu_": ((),), "nn.functional.elu_": ((), (0.5,)), "nn.functional.leaky_relu_": ((), (0.3,)),
    "nn.functional.hardtanh_": ((), (-0.5, 1.25)),
}  # fmt: skip
"""The arguments after the input, by activation."""


@inputs(*ACTIVATIONS)
def activated(t: Maker) -> Iterator[Sample]:
    """Yield both signs, with the default parameters and others."""
    if t.is_floating:
        for arguments in ACTIVATIONS[t.operator]:
            yield sample(t(3, 5), *arguments)
        yield sample(t(), *ACTIVATIONS[t.operator][0], kind=ZERO_DIM)
        yield sample(t(2, 0), *ACTIVATIONS[t.operator][0], kind=ZERO_SIZE)


@inputs("rrelu")
def with_random_slopes(t: Maker) -> Iterator[Sample]:
    """Yield training mode, which draws the slopes."""
    if t.is_floating:
        yield sample(t(3, 5), 0.1, 0.4, True)


@mistakes("rrelu")
def no_slopes(t: Maker) -> Iterator[Sample]:
    """Yield bounds that are infinite or reversed."""
    yield sample(t(3), 0.5, 0.1, note="out of order")
    yield sample(t(3), 0.1, float("inf"), note="infinite")


@inputs("nn.functional.gumbel_softmax")
def relaxed_draws(t: Maker) -> Iterator[Sample]:
    """Yield temperatures, dims, and one-hot results.

    Their gradient is not compared: float32 and float64 draw different noise, and that of one-hot results is by
    definition not the derivative.
    """
    if t.is_floating:
        yield sample(t(3, 5), gradient=False)
        yield sample(t(3, 5), 0.5, dim=0, gradient=False)
        yield sample(t(2, 3), 2.0, True, gradient=False)


@mistakes("nn.functional.gumbel_softmax")
def no_such_dim(t: Maker) -> Iterator[Sample]:
    """Yield a dim that does not exist."""
    yield sample(t(3, 5), dim=2, note="dim")


@mistakes("nn.functional.elu_", "nn.functional.leaky_relu_", "nn.functional.relu_", "nn.functional.hardtanh_")
def no_tensors(t: Maker) -> Iterator[Sample]:
    """Yield a number in place of a tensor."""
    yield sample(2, note="a number")


@mistakes("celu")
def no_slope(t: Maker) -> Iterator[Sample]:
    """Yield a divisor of 0."""
    yield sample(t(3), 0.0, note="0")


@inputs("prelu")
def with_learnt_slopes(t: Maker) -> Iterator[Sample]:
    """Yield one slope, and one per channel."""
    if t.is_floating:
        yield sample(t(2, 3, 4), t(3))
        yield sample(t(2, 3), t(1))
        yield sample(t(5), t.array(0.25))
        yield sample(t(), t(1), kind=ZERO_DIM)
        yield sample(t(0, 3), t(3), kind=ZERO_SIZE)


@mistakes("prelu")
def slopes_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield other numbers of slopes than channels, and slopes with several dims."""
    yield sample(t(2, 3), t(2), note="too few")
    yield sample(t(2, 3), t(3, 1), note="two dims")


# -- convolutions -----------------------------------------------------------------------------------------------------
@inputs("conv1d", "conv2d", "conv3d")
def convolutions(t: Maker) -> Iterator[Sample]:
    """Yield the record's plans, inputs without a batch, and paddings by name."""
    rank = int(t.operator[-2])
    if not t.is_floating:
        return
    for plan in PLANS:
        if len(plan.stride) == rank and plan.kind == ORDINARY:
            yield sample(t(*plan.input), t(*plan.weight), t(plan.weight[0]), *plan[2:6])
    yield sample(t(2, *[5] * rank), t(3, 2, *[2] * rank), padding="same", note="without a batch")
    yield sample(t(1, 2, *[5] * rank), t(3, 2, *[3] * rank), None, 2, "valid")


@mistakes("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def no_convolutions(t: Maker) -> Iterator[Sample]:
    """Yield ranks, strides, groups and biases that do not match."""
    rank = int(t.operator[-2])
    x, weight = t(1, 2, *[5] * rank), t(2, 2, *[3] * rank)
    yield sample(t(5), weight, note="too few dims")
    yield sample(x, weight, t(3), note="a bias of another size")
    yield sample(x, weight, stride=0, note="stride 0")
    yield sample(x, weight, groups=0, note="no groups")
    yield sample(x, weight, padding=-1, note="a negative padding")


@inputs("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def transposed_convolutions(t: Maker) -> Iterator[Sample]:
    """Yield stride, padding, output padding, groups and dilation, and inputs without a batch."""
    rank = int(t.operator[-2])
    if t.is_floating:
        x = t(2, 4, *[3] * rank)
        yield sample(x, t(4, 3, *[2] * rank), t(3))
        yield sample(x, t(4, 3, *[3] * rank), None, 2, 1, 1)
        yield sample(x, t(4, 1, *[2] * rank), t(2), 1, 0, 0, 2, 2)
        yield sample(t(2, *[3] * rank), t(2, 3, *[2] * rank), stride=2, note="without a batch")


# -- normalisation ----------------------------------------------------------------------------------------------------
@inputs("layer_norm")
def normalized_layers(t: Maker) -> Iterator[Sample]:
    """Yield one dim and two, with and without weight and bias."""
    if t.is_floating:
        yield sample(t(2, 3, 5), (5,))
        yield sample(t(2, 3, 5), (3, 5), t(3, 5), t(3, 5))
        yield sample(t(4, 5), [5], t(5), eps=0.1)
        yield sample(t(3, 1, 2), (1, 2), kind=LENGTH_ONE)
        yield sample(t(0, 5), (5,), t(5), t(5), kind=ZERO_SIZE)


@inputs("rms_norm")
def scaled_layers(t: Maker) -> Iterator[Sample]:
    """Yield one dim and two, with and without a weight."""
    if t.dtype.category >= FLOATING:
        yield sample(t(2, 3, 5), (5,))
        yield sample(t(2, 3, 5), (3, 5), t(3, 5))
        yield sample(t(4, 5), [5], t(5), 0.1)
        yield sample(t(3, 1, 2), (1, 2), kind=LENGTH_ONE)
        yield sample(t(0, 5), (5,), t(5), kind=ZERO_SIZE)


@mistakes("layer_norm", "rms_norm")
def no_layers(t: Maker) -> Iterator[Sample]:
    """Yield shapes other than those of the last dims."""
    yield sample(t(2, 3), (2,), note="another size")
    yield sample(t(2, 3), (), note="no dims")
    yield sample(t(2, 3), (3,), t(2), note="a weight of another size")


@inputs("group_norm")
def normalized_groups(t: Maker) -> Iterator[Sample]:
    """Yield one group and several, with and without weight and bias."""
    if t.is_floating:
        yield sample(t(2, 4, 3), 2)
        yield sample(t(2, 4, 2, 2), 1, t(4), t(4))
        yield sample(t(2, 6, 3), num_groups=3, weight=t(6), eps=0.1)


@mistakes("group_norm")
def no_groups(t: Maker) -> Iterator[Sample]:
    """Yield groups that do not divide the channels, and weights of another size."""
    yield sample(t(2, 4, 3), 3, note="not divisible")
    yield sample(t(2, 4, 3), 2, t(3), note="a weight of another size")
    yield sample(t(4), 2, note="one dim")


# -- pooling ----------------------------------------------------------------------------------------------------------
POOLS_WITH_INDICES: Final = (
    "max_pool1d_with_indices", "nn.functional.max_pool2d_with_indices", "nn.functional.max_pool3d_with_indices",
)  # fmt: skip


def pooling_rank(t: Maker) -> int:
    """Return the number of spatial dims in the name of a pooling function."""
    return next(int(c) for c in t.operator if c.isdigit())


@inputs("max_pool1d", "max_pool2d", "max_pool3d", *POOLS_WITH_INDICES)
def largest(t: Maker) -> Iterator[Sample]:
    """Yield the record's pools, with indices and without."""
    rank = pooling_rank(t)
    if not t.is_floating:
        return
    for pool in POOLS:
        if len(pool.window) == rank and pool.kind == ORDINARY:
            yield sample(t(*pool.shape), *pool[1:6])
    yield sample(t(2, 3, *[6] * rank), 2, return_indices=True)


@inputs("avg_pool1d")
def means(t: Maker) -> Iterator[Sample]:
    """Yield padding that counts and padding that does not, and windows that end beyond the input."""
    if t.is_floating:
        yield sample(t(2, 3, 7), 3)
        yield sample(t(2, 3, 7), 3, 2, 1)
        yield sample(t(3, 8), 3, 2, 1, True, False)


@mistakes("max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", *POOLS_WITH_INDICES)
def no_pools(t: Maker) -> Iterator[Sample]:
    """Yield windows and strides that are not positive, padding of more than half a window, and inputs that are too
    small."""
    rank = pooling_rank(t)
    x = t(1, 2, *[4] * rank)
    yield sample(x, 0, note="no window")
    yield sample(x, 2, 0, note="no step")
    yield sample(x, 2, 1, 2, note="too much padding")
    yield sample(x, 9, note="a window larger than the input")


@inputs("adaptive_avg_pool1d")
def adapted_means(t: Maker) -> Iterator[Sample]:
    """Yield fewer positions, one, and as many as elements."""
    if t.is_floating:
        for size in (3, 1, 7):
            yield sample(t(2, 3, 7), size)
        yield sample(t(2, 8), (5,))


# -- shuffling --------------------------------------------------------------------------------------------------------
@inputs("pixel_shuffle")
def pixels_of_channels(t: Maker) -> Iterator[Sample]:
    """Yield the factors 2 and 3, and more leading dims."""
    yield sample(t(1, 4, 2, 3), 2)
    yield sample(t(9, 2, 1), 3)
    yield sample(t(2, 1, 4, 1, 2), 2)
    yield sample(t(1, 1, 1), 1, kind=LENGTH_ONE)
    yield sample(t(0, 4, 2, 2), 2, kind=ZERO_SIZE)


@inputs("pixel_unshuffle")
def channels_of_pixels(t: Maker) -> Iterator[Sample]:
    """Yield the factors 2 and 3."""
    yield sample(t(1, 2, 4, 6), 2)
    yield sample(t(1, 3, 6), 3)
    yield sample(t(1, 1, 1), 1, kind=LENGTH_ONE)
    yield sample(t(0, 1, 4, 2), 2, kind=ZERO_SIZE)


@inputs("channel_shuffle")
def dealt_channels(t: Maker) -> Iterator[Sample]:
    """Yield two groups and three."""
    yield sample(t(2, 4, 3), 2)
    yield sample(t(1, 6, 2, 2), 3)
    yield sample(t(1, 1, 1), 1, kind=LENGTH_ONE)
    yield sample(t(0, 4, 2), 2, kind=ZERO_SIZE)


@mistakes("pixel_shuffle", "pixel_unshuffle", "channel_shuffle")
def what_does_not_divide(t: Maker) -> Iterator[Sample]:
    """Yield factors that do not divide the size, 0, and too few dims."""
    yield sample(t(1, 5, 5, 5), 2, note="not divisible")
    yield sample(t(1, 4, 2, 2), 0, note="0")
    yield sample(t(4, 4), 2, note="too few dims")
