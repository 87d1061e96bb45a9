"""Samples of normalisations that return their statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from candelabra.dtypes import FLOATING

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only
from candelabra_conformance.samples.sample import LENGTH_ONE, ZERO_SIZE, Sample, sample

only(lambda d: d.category == FLOATING, "native_layer_norm", "native_group_norm")


def _out(function: Callable[..., Any], *args: Any) -> Any:
    """Return the first result, since the statistics carry no gradient."""
    return function(*args).out


@inputs("native_layer_norm")
def layers(t: Maker) -> Iterator[Sample]:
    """Yield one dim and two, with and without weight and bias."""
    yield sample(t(3, 7), (7,), None, None, 1e-5, call=_out)
    yield sample(t(2, 3, 4), (3, 4), t(3, 4), t(3, 4), 1e-3, call=_out)
    yield sample(t(2, 3, 5), [5], t(5), None, 1e-3, call=_out)
    yield sample(t(2, 5), (5,), None, t(5), 0.5, call=_out)
    yield sample(t(0, 3), (3,), None, None, 1e-5, kind=ZERO_SIZE, call=_out)
    yield sample(t(1, 3), (3,), t(3), t(3), 1e-5, kind=LENGTH_ONE, call=_out)


@mistakes("native_layer_norm")
def no_layers(t: Maker) -> Iterator[Sample]:
    """Yield shapes that do not match."""
    x = t.of("float32")
    yield sample(x(2, 3), (), None, None, 1e-5, note="no dims")
    yield sample(x(2, 3), (2,), None, None, 1e-5, note="another size")
    yield sample(x(2, 3), (3,), x(2), None, 1e-5, note="weight")
    yield sample(x(2, 3), (3,), None, x(1), 1e-5, note="bias")


@inputs("native_group_norm")
def groups(t: Maker) -> Iterator[Sample]:
    """Yield one group and several, with and without weight and bias."""
    yield sample(t(2, 4, 5), None, None, 2, 4, 5, 2, 1e-5)
    yield sample(t(3, 6, 2, 3), t(6), t(6), 3, 6, 6, 3, 1e-3)
    yield sample(t(2, 4, 3), t(4), None, 2, 4, 3, 1, 0.5)
    yield sample(t(0, 4, 3), None, None, 0, 4, 3, 2, 1e-5, kind=ZERO_SIZE)
    yield sample(t(1, 2, 4), None, t(2), 1, 2, 4, 1, 1e-5, kind=LENGTH_ONE)


@mistakes("native_group_norm")
def no_groups(t: Maker) -> Iterator[Sample]:
    """Yield groups that do not divide the channels, and sizes other than the input's."""
    x = t.of("float32")
    yield sample(x(2, 4, 3), None, None, 2, 4, 3, 3, 1e-5, note="groups")
    yield sample(x(2, 4, 3), None, None, 2, 4, 4, 2, 1e-5, note="sizes")


@inputs("native_batch_norm")
def batches(t: Maker) -> Iterator[Sample]:
    """Yield the batch's statistics, and running ones."""
    if not t.is_floating:
        return
    yield sample(t(5, 3), None, None, None, None, True, 0.1, 1e-5)
    yield sample(t(4, 3, 2), t(3), t(3), None, None, True, 0.25, 1e-3)
    yield sample(t(4, 3), t(3), None, t(3), t(3, low=0.5, high=1.5), False, 0.1, 1e-5, gradient=False)


@mistakes("native_batch_norm")
def no_batches(t: Maker) -> Iterator[Sample]:
    """Yield no running statistics in inference."""
    yield sample(t.of("float32")(2, 3), None, None, None, None, False, 0.1, 1e-5)
