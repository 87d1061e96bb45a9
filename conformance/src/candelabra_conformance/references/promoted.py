"""Integers where a function of floats is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import numpy as np
from candelabra.dtypes import get_default_dtype

from candelabra_conformance.numpy_dtypes import host_dtype

MANY: Final = 10_000
"""Elements from which on SciPy answers for slow formulas."""


def of_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with integers and bools cast to the default floating dtype first, as the operators do.

    The cast rounds; what follows is computed in ``np.longdouble``, so that the function's own error stays out of it.
    """

    @wraps(function)
    def promoted(*args: Any) -> Any:
        return function(*map(_floating, args))

    return promoted


def halves_in_single(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with half types cast to float32 first, in which they compute."""

    @wraps(function)
    def widened(*args: Any) -> Any:
        return function(*map(_single, args))

    return widened


def unless_many(scipys: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The function, but SciPy's where there are many elements: they are asked for whether each is computed at all, and
    a hundred steps in 80 bits each would take seconds."""

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
