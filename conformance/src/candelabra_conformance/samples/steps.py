"""Samples of optimiser steps: the parameter, its gradient, the optimiser's state, and hyperparameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes
from candelabra_conformance.samples.sample import Sample, sample

SHAPES = (
    ((3, 5), "ordinary"), ((7,), "ordinary"), ((2, 3, 4), "ordinary"), ((), "0-d"), ((0, 3), "zero-size"),
    ((1,), "length-1"), ((33, 1023), "large"),
)  # fmt: skip
DESCENTS = ((0.1, 0.0, False), (0.5, 0.01, True))
"""Learning rate, weight decay, maximize."""
MOMENTA = (
    (0.1, 0.9, 0.0, 0.0, False, False), (0.1, 0.9, 0.25, 0.01, False, True), (0.05, 0.5, 0.0, 0.1, True, False),
)  # fmt: skip
"""Learning rate, momentum, dampening, weight decay, Nesterov, maximize."""
ADAMS = (
    (1, 0.1, 0.9, 0.999, 1e-8, 0.0, False, False), (7, 0.01, 0.8, 0.99, 1e-6, 0.1, True, False),
    (2.0, 0.01, 0.25, 0.5, 1e-3, 0.1, False, True),
)  # fmt: skip
"""Step, learning rate, decay rates of both averages, epsilon, weight decay, decoupled decay, maximize."""


def _kept(t: Maker, shape: tuple[int, ...]) -> list[Any]:
    """Return an optimiser's state: any mean, and averages of squares."""
    if t.operator == "sgd_step":
        return []
    if t.operator == "momentum_step":
        return [t(*shape)]
    squares = 2 if t.operator == "amsgrad_step" else 1
    return [t(*shape), *[t(*shape, low=0.25, high=2.0) for _ in range(squares)]]


def _numbers(t: Maker) -> tuple[tuple[Any, ...], ...]:
    return {"sgd_step": DESCENTS, "momentum_step": MOMENTA}.get(t.operator, ADAMS)


@inputs("sgd_step", "momentum_step", "adam_step", "amsgrad_step")
def steps(t: Maker) -> Iterator[Sample]:
    """Yield every shape with all hyperparameters, and unusual kinds of shapes with the first ones."""
    for shape, kind in SHAPES:
        for numbers in _numbers(t) if kind == "ordinary" else _numbers(t)[:1]:
            yield sample(t(*shape), t(*shape), *_kept(t, shape), *numbers, kind=kind, gradient=False)


@mistakes("sgd_step", "momentum_step", "adam_step", "amsgrad_step")
def unlike(t: Maker) -> Iterator[Sample]:
    """Yield a gradient or a state of another shape, even of one that would broadcast."""
    numbers = _numbers(t)[0]
    yield sample(t(3, 5), t(5), *_kept(t, (3, 5)), *numbers, note="a gradient that broadcasts")
    yield sample(t(3, 5), t(5, 3), *_kept(t, (3, 5)), *numbers, note="a turned gradient")
    if t.operator != "sgd_step":
        yield sample(t(3, 5), t(3, 5), *_kept(t, (3, 1)), *numbers, note="a state that broadcasts")
