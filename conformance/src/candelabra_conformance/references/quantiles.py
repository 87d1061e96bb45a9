"""Quantiles by NumPy's functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from candelabra_conformance.references.registry import references

Array = np.ndarray[Any, Any]


def _quantile(function: Callable[..., Any]) -> Callable[..., Any]:
    def quantile(input: Array, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Array:
        axis = dim if input.ndim else None
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "All-NaN slice encountered")
            return np.asarray(function(input, np.asarray(q, input.dtype), axis, method=interpolation, keepdims=keepdim))

    return quantile


for _name, _function in (("quantile", np.quantile), ("nanquantile", np.nanquantile)):
    references({f"{_name}_number": _quantile(_function), f"{_name}_tensor": _quantile(_function)})
