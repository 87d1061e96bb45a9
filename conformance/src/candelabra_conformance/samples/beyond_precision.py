"""Samples whose results differ in the last digit of a wide dtype: products of large integers, neighbours in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, special
from candelabra_conformance.samples.sample import Sample, mapped, sample

PRODUCTS: Final[dict[str, Callable[[Array, Array, Array], tuple[Any, ...]]]] = {
    "addmm": lambda x, one, zero: (zero.reshape(1, 1), x.reshape(1, 1), one.reshape(1, 1)),
    "addmv": lambda x, one, zero: (zero, x.reshape(1, 1), one),
    "addbmm": lambda x, one, zero: (zero.reshape(1, 1), x.reshape(1, 1, 1), one.reshape(1, 1, 1)),
    "baddbmm": lambda x, one, zero: (zero.reshape(1, 1, 1), x.reshape(1, 1, 1), one.reshape(1, 1, 1)),
    "addcmul": lambda x, one, zero: (zero, x, one),
    "linalg_vecdot": lambda x, one, zero: (x, one),
    "vdot": lambda x, one, zero: (x, one),
    "kron": lambda x, one, zero: (x, one),
    "prod": lambda x, one, zero: (np.concatenate([x, one]), 0),
}
"""The arguments of each operator whose result is the first array, given that array, ones and zeros."""


@special(*PRODUCTS)
def products_of_large_integers(t: Maker) -> Iterator[Sample]:
    """Yield products with 1 of the first integers that float32 and float64 do not represent."""
    if t.is_integer and t.dtype.itemsize >= 4:
        for bits in (24, 53)[: t.dtype.itemsize // 4]:
            x = np.array([(1 << bits) + 1], t.numpy)
            yield sample(*PRODUCTS[t.operator](x, np.ones_like(x), np.zeros_like(x)), note=f"2**{bits} + 1")


@special("sort", "argsort", "argmax", "argmin")
def neighbours_in_double_precision(t: Maker) -> Iterator[Sample]:
    """Yield numbers that single precision does not distinguish."""
    if t.dtype.name == "float64":
        yield sample(1 + np.array([1.0, 3.0, 0.0, 2.0]) * 2.0**-40, 0, note="neighbours")
        yield sample(1 - np.array([1.0, 3.0, 0.0, 2.0]) * 2.0**-40, 0, note="neighbours below 1")


@special("sorted_place")
def places_in_double_precision(t: Maker) -> Iterator[Sample]:
    """Yield numbers between neighbours that single precision does not distinguish."""
    if t.dtype.name == "float64":
        row = 1 + np.arange(4) * 2.0**-40
        yield sample(row, row + 2.0**-42, False, note="neighbours")


@special("isfinite", "isinf")
def numbers_near_infinity(t: Maker) -> Iterator[Sample]:
    """Yield complex numbers that single precision rounds to infinity."""
    if t.dtype.name == "complex128":
        yield sample(np.array([1e300, 1e300j, 1 - 1e300j]), note="nearly infinite")


NEAR_ZERO: Final[dict[str, Callable[[Array], tuple[Any, ...]]]] = {
    **dict.fromkeys(("all", "any"), lambda x: (x, (1,))),
    **dict.fromkeys(("nonzero", "logical_not"), lambda x: (x,)),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), lambda x: (x, x[:, ::-1].copy())),
}
"""The arguments of operators that ask whether numbers are 0."""


@special(*NEAR_ZERO)
def numbers_near_zero(t: Maker) -> Iterator[Sample]:
    """Yield numbers other than 0 that a narrower dtype rounds or cuts to 0, and zeros."""
    least = {"float64": 1e-300, "complex128": 1e-300, "int64": 1 << 32}.get(t.dtype.name)
    if least is not None:
        numbers = np.array([[least, 0], [0, 0], [least, least]], t.numpy)
        yield sample(*NEAR_ZERO[t.operator](numbers), note="nearly 0")


@inputs("all", "any")
def rows_of_zeros(t: Maker) -> Iterator[Sample]:
    """Yield rows whose truth changes with any of their elements."""
    yield sample(t.array([[0, 0], [1, 0], [1, 1]]), (1,), gradient=False, note="zeros")


COPIED: Final[dict[str, Callable[[Array, Array], tuple[Any, ...]]]] = {
    "clone": lambda x, index: (x,),
    "copied": lambda x, index: (np.zeros_like(x), x),
    "cat": lambda x, index: ((x, x),),
    "stack": lambda x, index: ((x, x),),
    "tril": lambda x, index: (x.reshape(-1, 1),),
    "triu": lambda x, index: (x.reshape(1, -1),),
    "gather": lambda x, index: (x, 0, index),
    "index": lambda x, index: (x, (index,)),
    "index_select": lambda x, index: (x, 0, index),
    "index_put": lambda x, index: (np.zeros_like(x), (index,), x),
    "scatter_src": lambda x, index: (np.zeros_like(x), 0, index, x),
    "embedding": lambda x, index: (x.reshape(-1, 1), index),
    "masked_select": lambda x, index: (x, x > 0),
    "basic_index_adjoint": lambda x, index: (x, (x.size + 1,), (slice(0, x.size, 1),)),
    "basic_index_scatter": lambda x, index: (np.zeros_like(x), x, (slice(0, x.size, 1),)),
    "cross_product": lambda x, index: (np.resize(x[::-1], 3) * (1, 0, 0), np.ones_like(np.resize(x, 3)) * (0, 1, 0), 0),
}
"""The arguments of operators that copy numbers, given the numbers and an index in reverse order."""


@special(*COPIED)
def copies_of_large_integers(t: Maker) -> Iterator[Sample]:
    """Yield integers that narrower dtypes do not represent."""
    if t.is_integer and t.dtype.itemsize >= 4:
        x = np.array([(1 << bits) + 1 for bits in (24, 53)[: t.dtype.itemsize // 4]] * 2, t.numpy)
        arguments = COPIED[t.operator](x, np.arange(x.size)[::-1].copy())
        yield sample(*mapped(arguments, lambda a: a.astype(t.numpy) if t.operator == "cross_product" else a))
