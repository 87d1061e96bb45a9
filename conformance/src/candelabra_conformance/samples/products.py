"""Samples of products of vectors and matrices with explicit dims, their ``add*`` forms, and contractions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

Shapes = tuple[tuple[int, ...], ...]

ORDINARY: Final[dict[str, tuple[Shapes, ...]]] = {
    "mm": (((2, 3), (3, 4)), ((5, 5), (5, 5)), ((1, 17), (17, 3)), ((8, 2), (2, 1))),
    "bmm": (((2, 3, 4), (2, 4, 5)), ((3, 1, 8), (3, 8, 2)), ((1, 5, 17), (1, 17, 5))),
    "mv": (((2, 3), (3,)), ((17, 5), (5,)), ((1, 8), (8,))),
    "dot": (((3,), (3,)), ((17,), (17,))),
    "vdot": (((3,), (3,)), ((17,), (17,))),
    "outer": (((3,), (4,)), ((17,), (2,)), ((1,), (5,))),
    "inner": (((3,), (3,)), ((2, 3), (4, 3)), ((2, 4, 5), (5,)), ((5,), (3, 2, 5))),
    "kron": (((2,), (3,)), ((2, 3), (4, 1)), ((2, 3), (5,)), ((3,), (2, 2, 2)), ((2, 1, 3), (1, 2, 2))),
}
ZERO: Final[dict[str, tuple[Shapes, ...]]] = {
    "mm": (((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0))),
    "bmm": (((0, 2, 3), (0, 3, 2)), ((2, 2, 0), (2, 0, 3)), ((2, 0, 3), (2, 3, 1))),
    "mv": (((0, 3), (3,)), ((2, 0), (0,))),
    "dot": (((0,), (0,)),),
    "vdot": (((0,), (0,)),),
    "outer": (((0,), (3,)), ((2,), (0,))),
    "inner": (((2, 0), (3, 0)), ((0, 2), (3, 2))),
    "kron": (((0, 2), (3, 2)), ((2,), (0,))),
}
MANY: Final[dict[str, Shapes]] = {
    "mm": ((33, 1023), (1023, 17)),
    "bmm": ((3, 9, 1023), (3, 1023, 5)),
    "mv": ((17, 5003), (5003,)),
    "dot": ((50_001,), (50_001,)),
    "vdot": ((50_001,), (50_001,)),
    "outer": ((301,), (257,)),
    "inner": ((17, 1023), (5, 1023)),
    "kron": ((33, 5), (17, 9)),
}
NAMES: Final = tuple(ORDINARY)


@inputs(*NAMES)
def pairs(t: Maker) -> Iterator[Sample]:
    """Yield two tensors, of all shapes."""
    core = 2 if t.operator in ("mm", "bmm", "mv") else 0
    for a, b in ORDINARY[t.operator]:
        yield sample(t(*a), t(*b), core=core, note=f"{a} {b}")
    for a, b in ZERO[t.operator]:
        yield sample(t(*a), t(*b), kind=ZERO_SIZE)
    ones = [(1,) * len(shape) for shape in ORDINARY[t.operator][0]]
    yield sample(*(t(*shape) for shape in ones), kind=LENGTH_ONE)
    a, b = MANY[t.operator]
    yield sample(t(*a, low=0, high=0.5), t(*b, low=0, high=0.5), kind=LARGE)


@inputs("inner", "kron")
def with_numbers(t: Maker) -> Iterator[Sample]:
    """Yield a 0-d tensor, which multiplies every element."""
    yield sample(t(), t(), kind=ZERO_DIM)
    yield sample(t(), t(2, 3), kind=ZERO_DIM)
    yield sample(t(3), t(), kind=ZERO_DIM)


# -- beta * input + alpha * product -----------------------------------------------------------------------------------
ADDED: Final[dict[str, tuple[Shapes, ...]]] = {
    "addmm": (((2, 4), (2, 3), (3, 4)), ((4,), (2, 3), (3, 4)), ((2, 1), (2, 5), (5, 4)), ((), (17, 2), (2, 3))),
    "addmv": (((2,), (2, 3), (3,)), ((1,), (17, 3), (3,)), ((), (5, 8), (8,))),
    "addr": (((2, 3), (2,), (3,)), ((3,), (2,), (3,)), ((5, 1), (5,), (8,)), ((), (17,), (2,))),
    "addbmm": (((2, 4), (3, 2, 5), (3, 5, 4)), ((4,), (2, 3, 2), (2, 2, 4)), ((), (1, 2, 8), (1, 8, 3))),
    "baddbmm": (((3, 2, 4), (3, 2, 5), (3, 5, 4)), ((4,), (2, 3, 2), (2, 2, 4)), ((2, 1, 1), (2, 3, 2), (2, 2, 5))),
}
ADDED_ZERO: Final[dict[str, tuple[Shapes, ...]]] = {
    "addmm": (((2, 3), (2, 0), (0, 3)), ((0, 3), (0, 2), (2, 3))),
    "addmv": (((2,), (2, 0), (0,)), ((0,), (0, 2), (2,))),
    "addr": (((0, 3), (0,), (3,)), ((2, 0), (2,), (0,))),
    "addbmm": (((2, 3), (0, 2, 4), (0, 4, 3)), ((2, 3), (2, 2, 0), (2, 0, 3))),
    "baddbmm": (((0, 2, 3), (0, 2, 4), (0, 4, 3)), ((2, 2, 3), (2, 2, 0), (2, 0, 3))),
}
ADDED_MANY: Final[dict[str, Shapes]] = {
    "addmm": ((33, 17), (33, 1023), (1023, 17)),
    "addmv": ((17,), (17, 5003), (5003,)),
    "addr": ((301, 257), (301,), (257,)),
    "addbmm": ((9, 5), (7, 9, 1023), (7, 1023, 5)),
    "baddbmm": ((3, 9, 5), (3, 9, 1023), (3, 1023, 5)),
}
SUMS: Final = tuple(ADDED)


def _factors(t: Maker) -> tuple[dict[str, Any], ...]:
    """Yield the relevant pairs: none, both, one, and zeros, of kinds that the dtype supports."""
    if t.is_bool:
        return {}, {"beta": False, "alpha": True}, {"beta": True, "alpha": False}, {"beta": True}
    if t.is_complex:
        return {}, {"beta": 0.5, "alpha": 2.0}, {"beta": 0.5 - 1j, "alpha": 1j}, {"beta": 0}, {"alpha": 0.0}
    if t.is_integer:
        return {}, {"beta": 2, "alpha": 3}, {"beta": 0, "alpha": 2}, {"alpha": 0}
    return {}, {"beta": 0.5, "alpha": -2.0}, {"beta": 0, "alpha": 2}, {"beta": 3, "alpha": 0.0}


@inputs(*SUMS)
def added(t: Maker) -> Iterator[Sample]:
    """Yield each shape and each pair of factors, with an added tensor that broadcasts."""
    shapes, factors = ADDED[t.operator], _factors(t)
    for i in range(max(len(shapes), len(factors))):
        found, options = shapes[i % len(shapes)], factors[i % len(factors)]
        yield sample(*(t(*s) for s in found), **options, core=2, note=f"{found} {options}")
    for found in ADDED_ZERO[t.operator]:
        yield sample(*(t(*s) for s in found), **factors[1], kind=ZERO_SIZE)
    yield sample(*(t(*(1,) * len(s)) for s in shapes[0]), kind=LENGTH_ONE)
    first, *rest = ADDED_MANY[t.operator]
    yield sample(t(*first), *(t(*s, low=0, high=0.5) for s in rest), **factors[1], kind=LARGE)


@special(*SUMS)
def ignored(t: Maker) -> Iterator[Sample]:
    """Yield beta 0, for which the NaN and infinity of the added tensor are ignored."""
    if t.is_floating:
        first, *rest = ADDED[t.operator][0]
        for value in (math.nan, math.inf):
            whole = t.array([value]).repeat(math.prod(first)).reshape(first)
            yield sample(whole, *(t(*s) for s in rest), beta=0, note=f"{value}")


@special("mm", "bmm", "dot", "outer", "kron", "inner")
def infinite_factors(t: Maker) -> Iterator[Sample]:
    """Yield infinity times zero, which is NaN, and an infinity, which affects its row and column only."""
    if not t.is_floating:
        return
    ranks = [len(s) for s in ORDINARY[t.operator][0]]
    first = t.array([[1.0, math.inf], [2.0, 3.0]])
    second = t.array([[1.0, 2.0], [0.0, 4.0]])
    if ranks[0] == 1:
        yield sample(first[0].copy(), second[:, 0].copy(), note="inf times zero")
        yield sample(t.array([math.nan, 0.0]), t.array([0.0, 1.0]), note="nan")
    else:
        lead = (1,) * (ranks[0] - 2)
        yield sample(first.reshape((*lead, 2, 2)), second.reshape((*lead, 2, 2)), note="inf times zero")


@special("mm", "dot", "kron", "outer", "inner")
def wrapping(t: Maker) -> Iterator[Sample]:
    """Yield integers that wrap around."""
    if not t.is_integer:
        return
    bits = 8 * t.dtype.itemsize
    most = (1 << bits) - 1 if t.dtype.name.startswith("u") else (1 << (bits - 1)) - 1
    row = np.array([most, 2, most], dtype=t.numpy)
    if t.operator == "mm":
        yield sample(row.reshape(1, 3), row.reshape(3, 1))
    else:
        yield sample(row, row)


# -- contractions -----------------------------------------------------------------------------------------------------
@inputs("tensordot")
def contractions(t: Maker) -> Iterator[Sample]:
    """Yield dims as a number, as lists, negative ones, and sizes of 1 that broadcast."""
    yield sample(t(2, 3, 4), t(3, 4, 5))
    yield sample(t(2, 3), t(4, 5), 0, note="outer")
    yield sample(t(2, 17), t(17, 3), 1)
    yield sample(t(2, 3, 4), t(4, 3, 2), ([1, 2], [1, 0]), note="lists")
    yield sample(t(3, 2, 5), t(5, 4), ([-1], [0]), note="a negative dim")
    yield sample(t(2, 3), t(3, 2), ((0, 1), (1, 0)), note="to a number")
    yield sample(t(2, 1), t(4, 3), ([1], [0]), note="broadcast")
    yield sample(t(), t(), 0, kind=ZERO_DIM)
    yield sample(t(2, 0), t(0, 3), 1, kind=ZERO_SIZE)
    yield sample(t(0, 2), t(2, 3), 1, kind=ZERO_SIZE)
    yield sample(t(1, 1), t(1, 1), 1, kind=LENGTH_ONE)
    yield sample(t(9, 33, 31, low=0, high=0.5), t(33, 31, 5, low=0, high=0.5), 2, kind=LARGE)


# -- mistakes ---------------------------------------------------------------------------------------------------------
WRONG: Final[dict[str, tuple[Shapes, ...]]] = {
    "mm": (((3,), (3, 2)), ((2, 3), (3,)), ((2, 3), (2, 3)), ((2, 2, 3), (2, 3, 2))),
    "bmm": (((2, 3), (3, 2)), ((2, 3, 4), (3, 4, 2)), ((2, 3, 4), (2, 3, 4)), ((1, 2, 3), (2, 3, 2))),
    "mv": (((2, 3), (2,)), ((3,), (3,)), ((2, 3), (3, 1))),
    "dot": (((3,), (2,)), ((2, 2), (2, 2)), ((), (3,)), ((1,), (3,))),
    "vdot": (((3,), (2,)), ((3, 1), (3,))),
    "outer": (((2, 2), (3,)), ((3,), ()), ((), (2,))),
    "inner": (((2, 3), (2,)), ((2, 3), (3, 2))),
    "addmm": (((2, 2), (2, 3), (2, 3)), ((3, 3), (2, 3), (3, 4)), ((2, 2), (2,), (2, 2)), ((1, 2, 2), (2, 2), (2, 2))),
    "addmv": (((3,), (2, 3), (3,)), ((2,), (2, 3), (2,)), ((2, 2), (2, 2), (2,))),
    "addr": (((2, 2), (2,), (3,)), ((2, 2), (2, 2), (2,)), ((1, 2, 2), (2,), (2,))),
    "addbmm": (((2, 2), (2, 3), (3, 2)), ((2, 2), (2, 2, 3), (3, 3, 2)), ((3, 3), (2, 2, 3), (2, 3, 2))),
    "baddbmm": (((2, 2), (2, 3), (3, 2)), ((2, 2, 2), (2, 2, 3), (3, 3, 2)), ((3, 2, 2), (2, 2, 3), (2, 3, 2))),
}


@mistakes(*WRONG)
def unfit(t: Maker) -> Iterator[Sample]:
    """Yield ranks and sizes that do not match."""
    for shapes in WRONG[t.operator]:
        yield sample(*(t(*s) for s in shapes), note=f"{shapes}")


@mistakes("mm", "bmm", "mv", "dot", "vdot", "addmm", "addmv", "addbmm", "baddbmm", "tensordot")
def unlike(t: Maker) -> Iterator[Sample]:
    """Yield two dtypes, which these products do not promote."""
    shapes = {**ORDINARY, **ADDED, "tensordot": (((2, 3), (3, 2)),)}[t.operator][0]
    other = t.of("float64" if t.dtype.name != "float64" else "float32")
    options = {"dims": 1} if t.operator == "tensordot" else {}
    yield sample(*(t(*s) for s in shapes[:-1]), other(*shapes[-1]), **options)


@mistakes("addmm", "addmv", "addr", "addbmm", "baddbmm")
def complex_factors(t: Maker) -> Iterator[Sample]:
    """Yield complex factors of real tensors."""
    real = t.of("float32")
    yield sample(*(real(*s) for s in ADDED[t.operator][0]), beta=1j)
    yield sample(*(real(*s) for s in ADDED[t.operator][0]), alpha=1j)


@mistakes("addr")
def floating_factors(t: Maker) -> Iterator[Sample]:
    """Yield floating factors of integers, and bools for numbers."""
    whole = t.of("int64")
    yield sample(whole(2, 3), whole(2), whole(3), beta=0.5)
    yield sample(whole(2, 3), whole(2), whole(3), alpha=True)


@mistakes("tensordot")
def unfit_contractions(t: Maker) -> Iterator[Sample]:
    """Yield dims out of range, duplicate dims, and dims of other sizes."""
    yield sample(t(2, 3), t(2, 3), 1, note="sizes")
    yield sample(t(2, 3), t(3), 2, note="too many")
    yield sample(t(2, 3), t(3), -1, note="negative")
    yield sample(t(2, 3), t(3, 2), ([0, 1], [0]), note="lists of two lengths")
    yield sample(t(2, 3), t(3, 2), ([2], [0]), note="out of range")
    yield sample(t(2, 2), t(2, 2), ([0, 0], [0, 1]), note="twice")
    yield sample(t(2, 2), t(2, 2), ([0],), note="one list")
