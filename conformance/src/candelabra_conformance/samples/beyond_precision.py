"""Samples whose results differ in the last digit of a wide dtype: products of large integers, neighbours in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import special
from candelabra_conformance.samples.sample import Sample, sample

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


@special("all", "any")
def numbers_near_zero(t: Maker) -> Iterator[Sample]:
    """Yield a number other than 0 that single precision rounds to 0, beside zeros."""
    if t.dtype.name in ("float64", "complex128"):
        yield sample(np.array([[1e-300, 0.0], [0.0, 0.0], [1e-300, 1e-300]], t.numpy), (1,), note="nearly 0")
