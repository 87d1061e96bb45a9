"""Samples of pointwise operators with parameters other than tensors: masks, factors, a number of decimals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import Sample, sample

PRODUCTS = ("addcmul", "addcdiv")


def number(t: Maker) -> Any:
    """Return a Python number of the dtype's own kind."""
    return True if t.is_bool else 3 if t.is_integer else 1.25 if t.is_floating else 1.25 - 0.5j


@inputs("round")
def rounded(t: Maker) -> Iterator[Sample]:
    """Yield rounding to integers, to decimals, and to tens."""
    yield sample(t(3, 5))
    yield sample(t(17), decimals=0)
    if t.is_floating:
        yield sample(t(2, 3, 4), decimals=1)
        yield sample(t(7, low=-20.0, high=20.0), decimals=2)
        yield sample(t(7, low=-300.0, high=300.0), decimals=-1)
        yield sample(t(), decimals=1, kind="0-d")
    yield sample(t(), kind="0-d")
    yield sample(t(0, 3), decimals=0, kind="zero-size")
    yield sample(t(1), kind="length-1")
    yield sample(t(1023), kind="large")


@special("round")
def halves(t: Maker) -> Iterator[Sample]:
    """Yield halves, which round to even, and values that are not finite."""
    if t.is_floating:
        inf, nan = float("inf"), float("nan")
        yield sample(t.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.0, -0.0, inf, -inf, nan, 3.49, -3.51]))
    if t.is_integer:
        limits = np.iinfo(t.numpy)
        yield sample(np.array([limits.min, limits.max, 0], t.numpy))


@inputs("where")
def chosen(t: Maker) -> Iterator[Sample]:
    """Yield three arguments that broadcast, with numbers for either operand."""
    yield sample(t.mask(3, 5), t(3, 5), t(3, 5))
    yield sample(t.mask(5), t(3, 5), t(3, 1))
    yield sample(t.mask(2, 3, 1), t(4), t(3, 4))
    yield sample(t.mask(3, 5), t(3, 5), number(t))
    yield sample(t.mask(3, 5), number(t), t(5))
    yield sample(t.mask(3, 5), number(t), True)
    yield sample(t.mask(17), t(17), t())
    yield sample(np.array(True), t(), t(), kind="0-d")
    yield sample(np.array(False), t(), number(t), kind="0-d")
    yield sample(t.mask(0, 3), t(0, 3), t(3), kind="zero-size")
    yield sample(np.array([True]), t(1), t(1), kind="length-1")
    yield sample(t.mask(1023), t(1023), t(1023), kind="large")


@inputs("Tensor.where")
def chosen_or_else(t: Maker) -> Iterator[Sample]:
    """Yield the tensor as the first argument."""
    yield sample(t(3, 5), t.mask(5), t(3, 1))
    yield sample(t(3, 5), t.mask(3, 5), number(t))


@inputs("where_indices")
def nonzero_indices(t: Maker) -> Iterator[Sample]:
    """Yield masks and numbers, some of them 0."""
    yield sample(t.mask(3, 5))
    yield sample(t.array(t.mask(2, 1, 4)))
    yield sample(np.array(True), kind="0-d")
    yield sample(t(0, 3), kind="zero-size")


@inputs("Tensor.apply_", "Tensor.map_", "Tensor.map2_")
def python_functions(t: Maker) -> Iterator[Sample]:
    """Yield functions of one, two and three elements, with arguments that broadcast."""
    functions: dict[str, Any] = {
        "Tensor.apply_": lambda a: a,
        "Tensor.map_": lambda a, b: b,
        "Tensor.map2_": lambda a, b, c: b if a == c else c,
    }
    others = {"Tensor.apply_": (), "Tensor.map_": (t(5),), "Tensor.map2_": (t(5), t(3, 1))}[t.operator]
    yield sample(t(3, 5), *others, functions[t.operator], gradient=False)


@inputs("masked_fill", "masked_fill_cast")
def filled_where(t: Maker) -> Iterator[Sample]:
    """Yield a number or a 0-d tensor, and masks that broadcast."""
    yield sample(t(3, 5), t.mask(3, 5), number(t))
    yield sample(t(3, 5), t.mask(5), t())
    yield sample(t(2, 3, 4), t.mask(3, 1), 0)
    yield sample(t(17), t.mask(17), t())
    yield sample(t(), np.array(True), t(), kind="0-d")
    yield sample(t(), np.array(False), number(t), kind="0-d")
    yield sample(t(0, 3), t.mask(0, 3), number(t), kind="zero-size")
    yield sample(t(1), np.array([True]), t(), kind="length-1")
    yield sample(t(1023), t.mask(1023), number(t), kind="large")


@inputs("masked_fill_cast")
def cast_into_the_dtype(t: Maker) -> Iterator[Sample]:
    """Yield values of other dtypes."""
    yield sample(t(3, 5), t.mask(5), True, note="a bool")
    yield sample(t(3, 5), t.mask(5), t.of("int32")(), note="an int32 tensor")
    if not t.is_bool:
        yield sample(t(3, 5), t.mask(5), 2.0, note="a float")


@mistakes("masked_fill_cast", "fill", "fill_")
def one_value(t: Maker) -> Iterator[Sample]:
    """Yield a vector, a string, and a number that the dtype cannot represent."""
    mask = () if t.operator.startswith("fill") else (t.mask(3),)
    yield sample(t(3), *mask, t(3), note="a vector")
    yield sample(t(3), *mask, "1", note="a string")
    if t.is_integer:
        yield sample(t(3), *mask, 1 << 80, note="too large")


@inputs("fill", "fill_")
def filled_with(t: Maker) -> Iterator[Sample]:
    """Yield numbers and 0-d tensors, of the dtype and of others."""
    yield sample(t(3, 5), number(t))
    yield sample(t(2, 3, 4), t(), note="a tensor")
    yield sample(t(17), True, note="a bool")
    yield sample(t(17), t.of("int32")(), note="an int32 tensor")
    yield sample(t(), 1, kind="0-d")
    yield sample(t(0, 3), 1, kind="zero-size")
    yield sample(t(1), t(), kind="length-1")


@inputs("zero_")
def zeroed(t: Maker) -> Iterator[Sample]:
    """Yield any shape."""
    yield sample(t(3, 5))
    yield sample(t(), kind="0-d")
    yield sample(t(0, 3), kind="zero-size")


@mistakes("where", "masked_fill", "masked_fill_cast")
def masks(t: Maker) -> Iterator[Sample]:
    """Yield masks that are not bool or do not broadcast."""
    for mask, note in ((t.mask(4), "shapes"), (t.index(0, 1, 0), "integers"), (True, "a bool"), (None, "nothing")):
        if t.operator == "where":
            yield sample(mask, t(2, 3), t(2, 3), note=note)
        else:
            yield sample(t(2, 3), mask, number(t), note=note)


@special("where", "masked_fill", "masked_fill_cast")
def not_finite(t: Maker) -> Iterator[Sample]:
    """Yield NaN in elements that are not selected, which must not propagate by 0 * NaN."""
    if not t.is_floating:
        return
    odd = t.array([float("nan"), float("inf"), -0.0, 0.0])
    mask = np.array([True, False, True, False])
    if t.operator == "where":
        yield sample(mask, odd, t(4))
        yield sample(mask, t(4), odd)
    else:
        yield sample(odd, mask, 1.0)
        yield sample(odd, ~mask, float("nan"))


def divisors(t: Maker, *shape: int) -> Array:
    """Return numbers that are not near 0."""
    return t.array(t(*shape, low=0.5, high=2.0))


@inputs(*PRODUCTS)
def third_of_a_product(t: Maker) -> Iterator[Sample]:
    """Yield shapes that broadcast, factors of 1 and other values."""
    last = divisors if t.operator == "addcdiv" else (lambda t, *shape: t(*shape))
    factor: Any = number(t)
    yield sample(t(3, 5), t(3, 5), last(t, 3, 5))
    yield sample(t(3, 5), t(5), last(t, 3, 1), value=factor)
    yield sample(t(2, 3, 4), t(4), last(t, 3, 1), value=1)
    yield sample(t(5), t(3, 5), last(t), value=factor)
    if not t.is_bool:
        yield sample(t(17), t(17), last(t, 17), value=2)
    yield sample(t(), t(), last(t), value=factor, kind="0-d")
    yield sample(t(0, 3), t(3), last(t, 3), value=factor, kind="zero-size")
    yield sample(t(1), t(1), last(t, 1), kind="length-1")
    yield sample(t(1023), t(1023), last(t, 1023), value=factor, kind="large")


@mistakes(*PRODUCTS)
def unfit(t: Maker) -> Iterator[Sample]:
    """Yield shapes that do not broadcast, and numbers for tensors."""
    yield sample(t(2, 3), t(4), divisors(t, 3), note="shapes")
    yield sample(t(2, 3), t(3), divisors(t, 4), note="shapes")
    yield sample(t(2, 3), 2.0, divisors(t, 3), note="a number")


@special(*PRODUCTS)
def not_finite_products(t: Maker) -> Iterator[Sample]:
    """Yield infinities that cancel to NaN, and a NaN, which must not affect other elements."""
    if t.is_floating:
        inf, nan = float("inf"), float("nan")
        yield sample(t.array([inf, 1, nan, 0, 1]), t.array([-inf, inf, 1, nan, 0]), t.array([1, 2, 1, 1, inf]))
