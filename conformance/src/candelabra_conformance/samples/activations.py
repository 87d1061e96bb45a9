"""Samples of activations with parameters, of losses of distances, and of values around a center."""

from __future__ import annotations

from collections.abc import Iterator

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import Sample, sample

SHAPES = (
    ((3, 5), "ordinary"),
    ((2, 3, 4), "ordinary"),
    ((17,), "ordinary"),
    ((), "0-d"),
    ((0, 3), "zero-size"),
    ((1,), "length-1"),
    ((1023,), "large"),
)
SETTINGS: dict[str, tuple[tuple[float | str, ...], ...]] = {
    "gelu": ((), ("none",), ("tanh",)),
    "softplus": ((), (1.0, 20.0), (2.5, 1.0), (0.5, 0.25)),
    "leaky_relu": ((), (0.2,), (-0.5,), (0.0,)),
    "elu": ((), (1.5,), (1.0, 1.25, 1.0), (0.7, 1.5, 2.0)),
    "soft_threshold": ((0.5,), (0.0,), (1.25,)),
    "hardtanh": ((), (-0.7, 1.3), (0.0, 6.0), (-3.0, -1.0)),
}
"""The arguments after the input."""


@inputs(*SETTINGS)
def activated(t: Maker) -> Iterator[Sample]:
    """Yield every setting in every shape, with integer limits for integer dtypes."""
    for setting in SETTINGS[t.operator]:
        if t.is_integer:
            limits = [int(value) for value in setting if not isinstance(value, str)]
            if t.dtype.name.startswith("u"):
                limits = [abs(limit) + 5 * place for place, limit in enumerate(limits)] or [2, 6]  # none is negative
            setting = tuple(limits)
        for shape, kind in SHAPES:
            yield sample(t(*shape), *setting, kind=kind)


@inputs("gelu_backward")
def gelu_backwards(t: Maker) -> Iterator[Sample]:
    """Yield both forms."""
    for approximate in ("none", "tanh"):
        for shape, kind in SHAPES:
            yield sample(t(*shape), t(*shape), approximate, kind=kind)
        yield sample(t(3, 5), t(5), approximate, note="broadcast")


GRADIENT_SETTINGS: dict[str, tuple[tuple[float, ...], ...]] = {
    "leaky_relu_backward": ((0.01,), (-0.5,)), "shrink_backward": ((0.5,), (0.0,)),
    "hardtanh_backward": ((-1.0, 1.0), (-0.7, 1.3)), "elu_backward": ((1.5, 1.0, 1.0), (0.7, 1.5, 2.0)),
}  # fmt: skip
"""The arguments after the gradient and the input."""


@inputs(*GRADIENT_SETTINGS)
def gradients_of_activations(t: Maker) -> Iterator[Sample]:
    """Yield every setting in every shape, and one gradient for all elements, as that of a sum."""
    for setting in GRADIENT_SETTINGS[t.operator]:
        if t.is_integer:
            setting = (2, 6)[: len(setting)]
        for shape, kind in SHAPES:
            yield sample(t(*shape), t(*shape), *setting, kind=kind)
        yield sample(t(1, 1), t(3, 5), *setting, note="broadcast")


@inputs("huber")
def hubers(t: Maker) -> Iterator[Sample]:
    """Yield the squares, and functions that are linear beyond a width."""
    for settings in ((1.0, float("inf"), 0.0), (0.5, 0.75, 0.75), (2.0, 0.25, 1.0)):
        for shape, kind in SHAPES:
            yield sample(t(*shape), t(*shape), *settings, kind=kind)
        yield sample(t(3, 5), t(5), *settings, note="broadcast")


@inputs("huber_backward")
def huber_backwards(t: Maker) -> Iterator[Sample]:
    """Yield limited and unlimited slopes, and one gradient for all elements, as that of a sum."""
    for settings in ((1.0, float("inf")), (0.5, 0.75)):
        for shape, kind in SHAPES:
            yield sample(t(*shape), t(*shape), t(*shape), *settings, kind=kind)
        yield sample(t(1, 1), t(3, 5), t(3, 5), *settings, note="broadcast")


@inputs("scale_about")
def scaled_about(t: Maker) -> Iterator[Sample]:
    """Yield a value for each element, for each channel, and for all."""
    for shape, kind in SHAPES:
        yield sample(t(*shape), t(*shape), t(*shape), t(*shape), kind=kind)
    yield sample(t(2, 3, 4), t(3, 1), t(3, 1), t(3, 1), note="channels")
    yield sample(t(2, 3), t(3), t(1), t(), note="broadcast")


@mistakes("huber")
def unfit_hubers(t: Maker) -> Iterator[Sample]:
    """Yield shapes that do not broadcast."""
    yield sample(t(2, 3), t(4), 1.0, 1.0, 1.0)


@mistakes("huber_backward", "scale_about")
def unfit_operands(t: Maker) -> Iterator[Sample]:
    """Yield shapes that do not broadcast."""
    last = (1.0, 1.0) if t.operator == "huber_backward" else (t(3),)
    yield sample(t(2, 3), t(4), t(3), *last)


@mistakes(*GRADIENT_SETTINGS)
def unfit_gradients(t: Maker) -> Iterator[Sample]:
    """Yield shapes that do not broadcast."""
    yield sample(t(2, 3), t(4), *GRADIENT_SETTINGS[t.operator][0])


@mistakes(*SETTINGS)
def no_tensor(t: Maker) -> Iterator[Sample]:
    """Yield a number in place of a tensor."""
    yield sample(1.5)
    yield sample(None)


@mistakes("gelu_backward")
def unfit(t: Maker) -> Iterator[Sample]:
    """Yield shapes that do not broadcast."""
    yield sample(t(2, 3), t(4), "none")
    yield sample(t(2, 3), t(4), "tanh")


@special(*SETTINGS)
def far_out(t: Maker) -> Iterator[Sample]:
    """Yield large arguments, which neither overflow nor lose the limit, and NaN. gelu of -inf is 0 * inf and is left
    out."""
    if not t.is_floating:
        return
    values = [float("nan"), float("inf"), 50.0, -50.0, 1e4, -1e4, 0.0, 2.0**-14]
    if t.operator != "gelu":
        values.append(-float("inf"))
    if t.operator != "elu":  # the lower branch of elu returns either zero
        values.append(-0.0)
    for setting in SETTINGS[t.operator][:2]:
        yield sample(t.array(values), *setting)
