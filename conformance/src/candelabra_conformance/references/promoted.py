"""Adapt functions of floats to integers and half precision."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import numpy as np
from candelabra.dtypes import get_default_dtype

from candelabra_conformance.numpy_dtypes import host_dtype

MANY: Final = 10_000
"""The number of elements above which SciPy replaces slow formulas."""


def of_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with integers and bools cast to the default floating dtype first, as the operators do.

    The cast rounds; the function itself is computed in ``np.longdouble``, to exclude its own error.
    """

    @wraps(function)
    def promoted(*args: Any) -> Any:
        return function(*map(_floating, args))

    return promoted


def halves_in_single(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with half precision cast to float32 first, as the operators do."""

    @wraps(function)
    def widened(*args: Any) -> Any:
        return function(*map(_single, args))

    return widened


def unless_many(scipys: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the function, but SciPy's for many elements: their samples only test that each element is computed, and a
    hundred steps in 80 bits per element would take seconds."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def either(*args: Any) -> Any:
            if max(map(np.size, args)) > MANY:
                return scipys(*[np.asarray(a, np.float64) for a in args])
            return function(*args)

        return either

    return mark


def _single(value: Any) -> Any:
    half = isinstance(value, np.ndarray) and value.dtype.itemsize == 2 and value.dtype.kind not in "iu"
    return value.astype(np.float32) if half else value


def _floating(value: Any) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biu":
        return value
    return value.astype(host_dtype(get_default_dtype())).astype(np.longdouble)
