"""Samples of elementwise functions with parameters other than tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import domain, inputs, mistakes, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

NAN, INF = math.nan, math.inf
OPTIONS: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "logit": ({}, {"eps": 0.02}, {"eps": 0.3}),
    "nan_to_num": ({}, {"nan": 1.5}, {"posinf": 2.0, "neginf": -3.0}, {"nan": -1.0, "posinf": 4.0, "neginf": 0.0}),
    "mvlgamma": ({"p": 1}, {"p": 2}, {"p": 3}),
    "polygamma_of": ({"n": 0}, {"n": 1}, {"n": 2}, {"n": 5}),
    "frexp": ({},),
}
ORDERS: Final = (0, 1, 2, 5)
domain(0.06, 0.94, "logit")
domain(1.6, 6.0, "mvlgamma")
domain(0.5, 4.0, "polygamma_of", "polygamma")


@inputs(*OPTIONS)
def elements(t: Maker) -> Iterator[Sample]:
    """Yield each option with tensors of some shapes, also integers if the function is defined for them."""
    bounds: dict[str, Any] = {"logit": (0, 1), "mvlgamma": (3, 9), "polygamma_of": (1, 9)}
    whole = dict(zip(("low", "high"), bounds.get(t.operator, ()), strict=False)) if t.is_integer else {}
    shapes = ((2, 3), (17,), (2, 1, 5))
    for i, options in enumerate(OPTIONS[t.operator] * 2):
        yield sample(t(*shapes[i % 3], **whole), **options, note=f"{options}")
    first = OPTIONS[t.operator][0]
    yield sample(t(**whole), **first, kind=ZERO_DIM)
    yield sample(t(1, **whole), **first, kind=LENGTH_ONE)
    yield sample(t(2, 0), **first, kind=ZERO_SIZE)
    yield sample(t(20_001, **whole), **first, kind=LARGE)


@inputs("polygamma")
def derivatives(t: Maker) -> Iterator[Sample]:
    """Yield the order as the first argument."""
    whole = {"low": 1, "high": 9} if t.is_integer else {}
    for n in ORDERS:
        yield sample(n, t(2, 3, **whole), note=f"order {n}")
    yield sample(1, t(**whole), kind=ZERO_DIM)
    yield sample(1, t(2, 0), kind=ZERO_SIZE)
    yield sample(1, t(1, **whole), kind=LENGTH_ONE)


@inputs("Tensor.polygamma", "Tensor.polygamma_")
def derivatives_of_a_tensor(t: Maker) -> Iterator[Sample]:
    """Yield the order as the second argument; the in-place form needs a floating tensor."""
    if t.is_floating:
        for n in ORDERS:
            yield sample(t(2, 3, low=0.5, high=4.0), n, note=f"order {n}")


@mistakes("polygamma", "Tensor.polygamma", "Tensor.polygamma_")
def no_order(t: Maker) -> Iterator[Sample]:
    """Yield orders that are negative or not integers."""
    for order, note in ((-1, "negative"), (1.5, "a float")):
        yield sample(*((order, t(3)) if t.operator == "polygamma" else (t(3), order)), note=note)


@special("nan_to_num")
def not_numbers(t: Maker) -> Iterator[Sample]:
    """Yield NaN and infinities."""
    if t.is_floating:
        for options in OPTIONS["nan_to_num"]:
            yield sample(t.array([NAN, INF, -INF, 0.0, -0.0, 1.5]), **options, note=f"{options}")
    if t.is_complex:
        yield sample(t.array([complex(NAN, 1), complex(INF, NAN), complex(-1, -INF)]))
        yield sample(t.array([complex(NAN, 1), complex(INF, NAN)]), nan=2.0, posinf=3.0, note="given")


@special("logit")
def ends(t: Maker) -> Iterator[Sample]:
    """Yield the ends of [0, 1], which are infinite, arguments outside, and an epsilon that clips them."""
    if t.is_floating:
        values = t.array([0.0, 1.0, 0.5, -0.25, 1.5, NAN, INF, -INF])
        yield sample(values)
        yield sample(values, 0.125, note="limited")


@special("frexp")
def exponents(t: Maker) -> Iterator[Sample]:
    """Yield powers of two, zeros, and the smallest and largest numbers. The exponent of an infinity is undefined."""
    if t.is_floating:
        yield sample(t.array([0.0, -0.0, 1.0, -2.0, 0.5, 0.75, -3.0]))
        yield sample(t.array([INF, -INF, NAN]), of=lambda result: result[0], note="not finite")


@special("polygamma_of", "mvlgamma")
def large_arguments(t: Maker) -> Iterator[Sample]:
    """Yield large numbers and NaN, and for polygamma numbers below 0 and poles."""
    if t.is_floating and t.dtype.itemsize > 2:
        yield sample(t.array([50.0, 1000.0, NAN]), 2)
        yield sample(t.array([50.0, 1000.0, NAN]), 1)
    if t.is_floating and t.operator == "polygamma_of":
        yield sample(t.array([-0.5, -1.25, -7.5, -2.0, 0.0, -INF]), 2)


@mistakes("mvlgamma")
def no_dimension(t: Maker) -> Iterator[Sample]:
    """Yield a dimension below 1."""
    yield sample(t.of("float32")(3), 0)
    yield sample(t.of("float32")(3), -2)
