"""Integers where a function of floats is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from candelabra.dtypes import get_default_dtype

from candelabra_conformance.numpy_dtypes import host_dtype


def of_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with integers and bools cast to the default floating dtype first, as the operators do.

    The cast rounds; what follows is computed in ``np.longdouble``, so that the function's own error stays out of it.
    """

    @wraps(function)
    def promoted(*args: Any) -> Any:
        return function(*map(_floating, args))

    return promoted


def _floating(value: Any) -> Any:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biu":
        return value
    return value.astype(host_dtype(get_default_dtype())).astype(np.longdouble)
