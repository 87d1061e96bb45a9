"""Samples of activations that are composed of others, and of the functions of ``nn.functional`` without a record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import domain, inputs, mistakes
from candelabra_conformance.samples.sample import LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

SETTINGS: Final[dict[str, tuple[tuple[Any, ...], ...]]] = {
    "gelu_checked": ((), ("tanh",)), "hardtanh_checked": ((), (-0.7, 1.3)), "elu_of_alpha": ((), (1.5,)),
    "relu6": ((),), "hardsigmoid": ((),), "hardswish": ((),), "mish": ((),), "softshrink": ((), (0.3,)),
}  # fmt: skip
"""The arguments after the input, by activation."""


@inputs(*SETTINGS)
def activation_inputs(t: Maker) -> Iterator[Sample]:
    """Yield both signs, with the default parameters and others."""
    if t.is_floating:
        for setting in SETTINGS[t.operator]:
            yield sample(t(3, 5), *setting)
        yield sample(t(), *SETTINGS[t.operator][0], kind=ZERO_DIM)
        yield sample(t(2, 0), *SETTINGS[t.operator][0], kind=ZERO_SIZE)


domain(0.5, 2.0, "tanhshrink")  # the difference cancels near 0


@inputs("tanhshrink", "softsign")
def inputs_of_every_dtype(t: Maker) -> Iterator[Sample]:
    """Yield integers, which become floats."""
    yield sample(t(3, 5))
    yield sample(t(), kind=ZERO_DIM)


@inputs("threshold")
def thresholds_of_integers(t: Maker) -> Iterator[Sample]:
    """Yield integers and a value of their dtype."""
    if t.is_integer:
        yield sample(t(3, 4), 3, 7)
        yield sample(t(), 2, 1, kind=ZERO_DIM)
        yield sample(t(2, 0), 2, 1, kind=ZERO_SIZE)
    elif t.is_floating:
        yield sample(t(3, 4), -0.5, 0.25)


@inputs("hardtanh_checked", "relu6")
def integers_within_limits(t: Maker) -> Iterator[Sample]:
    """Yield limits of integers, which are truncated."""
    if t.is_integer:
        limits = () if t.operator == "relu6" else (2.7, 6.2)
        yield sample(t(3, 4), *limits)
        yield sample(t(), *limits, kind=ZERO_DIM)
        yield sample(t(2, 0), *limits, kind=ZERO_SIZE)


@mistakes("gelu_checked")
def unknown_approximation(t: Maker) -> Iterator[Sample]:
    """Yield a name that is neither none nor tanh."""
    yield sample(t(3), "erf")


@mistakes("hardtanh_checked")
def reversed_limits(t: Maker) -> Iterator[Sample]:
    """Yield a lower limit above the upper one."""
    yield sample(t(3), 1.0, -1.0, note="reversed")
    yield sample(t.of("uint8")(3), note="negative limits of an unsigned type")


@mistakes("softshrink")
def negative_lambda(t: Maker) -> Iterator[Sample]:
    """Yield a negative distance."""
    yield sample(t(3), -1.0)


@mistakes("relu6", "hardsigmoid", "hardswish", "mish", "elu_of_alpha", "selu")
def number_as_input(t: Maker) -> Iterator[Sample]:
    """Yield a number in place of a tensor."""
    yield sample(1.5)


@inputs("glu")
def gated_inputs(t: Maker) -> Iterator[Sample]:
    """Yield the last dim and another."""
    if t.is_floating or t.is_complex:
        yield sample(t(3, 6))
        yield sample(t(2, 4, 3), 1)
        yield sample(t(4, 0), 0, kind=ZERO_SIZE)
        yield sample(t(2), kind=LENGTH_ONE)


@mistakes("glu")
def odd_halves(t: Maker) -> Iterator[Sample]:
    """Yield a dim of odd size, and a 0-d tensor."""
    yield sample(t(3, 5), note="odd")
    yield sample(t(), note="0-d")


@inputs("nn.functional.relu")
def rectified_inputs(t: Maker) -> Iterator[Sample]:
    """Yield both signs, of every dtype with an order."""
    if t.is_floating or t.is_integer:
        yield sample(t(3, 5))
        yield sample(t(4), inplace=False)


@inputs("nn.functional.softmax", "nn.functional.log_softmax", "nn.functional.softmin")
def implicit_dims(t: Maker) -> Iterator[Sample]:
    """Yield a dim, and the implicit one of each rank."""
    if t.is_floating:
        yield sample(t(3, 5), 1)
        yield sample(t(3, 5), -2)
        for shape in ((4,), (2, 3), (2, 3, 2), (2, 2, 3, 2)):
            yield sample(t(*shape), note=f"{len(shape)} dims")
