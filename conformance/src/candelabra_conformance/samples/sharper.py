"""Samples that catch faults which the samples of the families miss: each was added because a mutant survived without
it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from candelabra.dtypes import COMPLEX, FLOATING
from candelabra.library import OPERATORS

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.pointwise import samples_of_record
from candelabra_conformance.samples.registry import inputs, special
from candelabra_conformance.samples.sample import HERE, LARGE, Sample, sample

LONG = 100_000
"""The number of elements of a row that is longer than 2**16."""


@special("round")
def at_halves(t: Maker) -> Iterator[Sample]:
    """Yield halves, which are exact, so that no error is permitted although the result jumps."""
    if t.is_floating:
        yield sample(t.array([0.5, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5, 100.5, 101.5]), exact=True)


@special("sin", "cos", "tan")
def large_angles(t: Maker) -> Iterator[Sample]:
    """Yield large angles, which are exact, so that their range reduction must not lose digits."""
    if t.is_floating:
        largest = 3e4 if t.dtype.name == "float16" else 1e8
        yield sample(t.array([1e3, 12345.0, 3e4, largest, -largest]), exact=True)


@special("lerp")
def at_the_ends(t: Maker) -> Iterator[Sample]:
    """Yield the weights 0 and 1, whose results are exactly start and end, also if the start is much larger than the
    end."""
    if t.is_floating:
        large = 2.0 ** (12 if t.dtype.is_half else 60)
        start, end = t.array([large, -large, 1.0]), t.array([1.0, 0.375, -2.0])
        yield sample(start, end, 1.0, exact=True)
        yield sample(start, end, t.array([1.0, 1.0, 0.0]), exact=True)


@special("sum", "mean", "nansum", "nanmean")
def of_one_sign(t: Maker) -> Iterator[Sample]:
    """Yield equal numbers, for which the errors of a running sum have one sign and accumulate."""
    if t.is_floating:
        yield sample(t.array(np.full(LONG if t.dtype.itemsize > 2 else 1000, 0.1)), 0, note="equal numbers")
    if t.dtype.name == "float16" and t.operator.endswith("mean"):
        yield sample(t.array(np.full((2, 1000), 100.0)), 1, note="the sum does not fit into the dtype, the mean does")


@special("cumsum")
def running_ones(t: Maker) -> Iterator[Sample]:
    """Yield many ones in half precision, whose running sum must not stop where the spacing exceeds 1."""
    if t.dtype.is_half:
        yield sample(t.array(np.ones(4000)), 0, note="ones")


@special("amax", "amin", "argmax", "argmin", "any", "all", "max_dim", "min_dim")
def decided_by_the_last(t: Maker) -> Iterator[Sample]:
    """Yield long rows whose last element determines the result."""
    if not (t.is_floating or t.is_integer or t.is_bool):
        return
    for value in (0, 1):
        row = np.full(LONG, 1 - value)
        row[-1] = value
        yield sample(t.array(row), 0, note=f"{value} at the end")


@inputs("scatter_add", "scatter_src", "gather")
def in_a_square(t: Maker) -> Iterator[Sample]:
    """Yield a square, whose shape does not reveal the dim."""
    for dim in (0, 1):
        index = t.index([2, 0, 1], [0, 1, 2], [1, 2, 0])
        yield sample(t(3, 3), dim, index, *(() if t.operator == "gather" else (t(3, 3),)), note=f"square, {dim}")


@inputs("index_add")
def rows_of_a_square(t: Maker) -> Iterator[Sample]:
    """Yield a square, whose shape does not reveal the dim."""
    for dim in (0, 1):
        yield sample(t(3, 3), dim, t.index(2, 0, 1), t(3, 3), note=f"square, {dim}")


@inputs("cross_product")
def vectors_either_way(t: Maker) -> Iterator[Sample]:
    """Yield three vectors of three elements, whose shape does not reveal the dim."""
    for dim in (0, 1):
        yield sample(t(3, 3), t(3, 3), dim, note=f"square, {dim}")


@inputs("conv_input")
def either_of_two_sizes(t: Maker) -> Iterator[Sample]:
    """Yield a stride of 2, for which two input sizes give one output size."""
    for size in (7, 8):
        shape, once = (1, 2, size), ((2,), (0,), (1,), 1)
        yield sample(t(1, 3, 3), t(3, 2, 3), shape, *once, note=f"an input of {size}")


@inputs("isfinite", "isinf", "isnan")
def among_others(t: Maker) -> Iterator[Sample]:
    """Yield values that are not finite among others, so that a wrong order is detected."""
    yield from samples_of_record(OPERATORS[t.operator], t)
    if t.is_floating or t.is_complex:
        values = t(3, 5)
        values[0, 1] = values[2, 2] = float("nan")
        values[1, ::3] = float("inf")
        values[2, 4] = values[0, 3] = float("-inf")
        yield sample(values, gradient=False, note="some not finite")
        late = t(301)
        late[-2], late[-1] = float("nan"), float("inf")
        yield sample(late, gradient=False, kind=LARGE, note="the last ones")


@inputs("kthvalue", "median_dim", "nanmedian_dim")
def many_rows(t: Maker) -> Iterator[Sample]:
    """Yield more rows than a block of 16."""
    yield sample(t(3, 33), *((2,) if t.operator == "kthvalue" else ()), 0, note="33 columns")


@inputs("random_uniform", "random_normal", "random_exponential")
def far_along(t: Maker) -> Iterator[Sample]:
    """Yield offsets of more than 32 bits, which must differ from small ones."""
    category = t.dtype.category
    if category == FLOATING or (category == COMPLEX and t.operator != "random_exponential"):
        yield sample((9,), 5, (1 << 32) + 7, dtype=t.dtype, device=HERE, note="beyond 32 bits")
        yield sample((9,), (3 << 32) + 5, 7, dtype=t.dtype, device=HERE, note="a seed beyond 32 bits")
