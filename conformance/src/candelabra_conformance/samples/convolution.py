"""Samples of convolution and its two adjoints, over one, two and three spatial dims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import Sample, sample

Ints = tuple[int, ...]


class ConvolutionCase(NamedTuple):
    """One convolution: (N, C, *spatial) by (O, C / groups, *kernel)."""

    input: Ints
    weight: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    groups: int = 1
    kind: str = "ordinary"

    @property
    def output(self) -> Ints:
        """Return the shape of the result."""
        along = zip(self.input[2:], self.weight[2:], self.stride, self.padding, self.dilation, strict=True)
        return (self.input[0], self.weight[0], *[(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in along])


PLANS = (
    ConvolutionCase((2, 3, 7), (4, 3, 3), (1,), (0,), (1,)),
    ConvolutionCase((1, 2, 9), (3, 2, 2), (3,), (2,), (2,)),
    ConvolutionCase((2, 2, 5, 6), (3, 2, 3, 2), (1, 1), (0, 0), (1, 1)),
    ConvolutionCase((1, 2, 7, 5), (2, 2, 3, 3), (2, 1), (1, 2), (1, 2)),
    ConvolutionCase((2, 4, 5, 5), (6, 2, 3, 3), (2, 2), (1, 1), (1, 1), 2),
    ConvolutionCase((1, 3, 6, 6), (6, 1, 2, 2), (1, 1), (0, 1), (2, 1), 3),
    ConvolutionCase((2, 2, 4, 4), (3, 2, 1, 1), (1, 1), (0, 0), (1, 1)),
    ConvolutionCase((1, 1, 8, 8), (1, 1, 3, 3), (5, 4), (0, 0), (1, 1)),
    ConvolutionCase((1, 2, 4, 4, 3), (2, 2, 2, 3, 2), (1, 2, 1), (1, 0, 1), (1, 1, 2)),
    ConvolutionCase((0, 2, 5, 5), (3, 2, 3, 3), (1, 1), (0, 0), (1, 1), 1, "zero-size"),
    ConvolutionCase((1, 1, 1), (1, 1, 1), (1,), (0,), (1,), 1, "length-1"),
    ConvolutionCase((1, 1, 1, 1), (2, 1, 3, 3), (1, 1), (1, 1), (1, 1), 1, "length-1"),
    ConvolutionCase((2, 8, 33, 31), (17, 8, 3, 3), (1, 1), (1, 1), (1, 1), 1, "large"),
    ConvolutionCase((1, 3, 1023), (5, 3, 16), (1,), (8,), (1,), 1, "large"),
)


@inputs("conv")
def convolutions(t: Maker) -> Iterator[Sample]:
    """Yield every plan, with a bias and without."""
    for plan in PLANS:
        for bias in (None, t(plan.weight[0])):
            yield sample(
                t(*plan.input), t(*plan.weight), bias, *plan[2:6], kind=plan.kind, gradient=plan.kind != "large"
            )


@inputs("conv_input")
def transposed_convolutions(t: Maker) -> Iterator[Sample]:
    """Yield the adjoint with respect to the input, for each input shape that gives the same result shape."""
    for plan in PLANS:
        first, gradient = t(*plan.output), plan.kind != "large"
        yield sample(first, t(*plan.weight), plan.input, *plan[2:6], kind=plan.kind, gradient=gradient)


@inputs("conv_weight")
def weights_of_convolutions(t: Maker) -> Iterator[Sample]:
    """Yield the adjoint with respect to the weight."""
    for plan in PLANS:
        first, gradient = t(*plan.input), plan.kind != "large"
        yield sample(first, t(*plan.output), plan.weight, *plan[2:6], kind=plan.kind, gradient=gradient)


@mistakes("conv")
def sizes_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield wrong channels and groups, and kernels larger than the input."""
    one = ((1, 1), (0, 0), (1, 1))
    yield sample(t(1, 3, 5, 5), t(4, 2, 3, 3), None, *one, 1, note="channels")
    yield sample(t(1, 4, 5, 5), t(3, 2, 3, 3), None, *one, 2, note="outputs by groups")
    yield sample(t(1, 4, 5, 5), t(1, 2, 3, 3), None, *one, 2, note="fewer outputs than groups")
    yield sample(t(1, 2, 2, 5), t(3, 2, 3, 3), None, *one, 1, note="kernel")
    yield sample(t(1, 2, 5, 5), t(3, 2, 3, 3), None, (1, 1), (0, 0), (3, 1), 1, note="dilated kernel")
    yield sample(t(1, 2, 5, 5), None, None, *one, 1, note="no weight")


@special("conv")
def not_finite(t: Maker) -> Iterator[Sample]:
    """Yield a NaN, which must reach only the windows that contain it; padding is 0, not NaN."""
    if t.is_floating:
        x = t(1, 1, 5, 5)
        x[0, 0, 2, 3] = float("nan")
        yield sample(x, t(1, 1, 2, 2), None, (1, 1), (1, 1), (1, 1), 1)


# -- time first -------------------------------------------------------------------------------------------------------
@inputs("conv_tbc")
def sequences(t: Maker) -> Iterator[Sample]:
    """Yield no padding, padding, removed steps, an empty batch, and as many steps as the kernel has."""
    yield sample(t(5, 2, 3), t(3, 3, 4), t(4))
    yield sample(t(5, 2, 3), t(2, 3, 2), t(2), 2)
    yield sample(t(6, 2, 3), t(2, 3, 2), t(2), -1)
    yield sample(t(2, 2, 3), t(3, 3, 4), t(4))
    yield sample(t(4, 0, 3), t(3, 3, 4), t(4), kind="zero-size")
    yield sample(t(1, 1, 1), t(1, 1, 1), t(1), kind="length-1")


@mistakes("conv_tbc")
def sequences_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield wrong numbers of dims, wrong channels, and more padding removed than there are steps."""
    yield sample(t(5, 3), t(3, 3, 4), t(4), note="dims of the input")
    yield sample(t(5, 2, 3), t(3, 4), t(4), note="dims of the weight")
    yield sample(t(5, 2, 3), t(3, 3, 4), t(1, 4), note="dims of the bias")
    yield sample(t(5, 2, 2), t(3, 3, 4), t(4), note="input channels")
    yield sample(t(5, 2, 3), t(3, 3, 4), t(3), note="output channels")
    yield sample(t(5, 2, 3), t(3, 3, 4), t(4), -2, note="steps")
