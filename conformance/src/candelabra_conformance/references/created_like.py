"""Evenly spaced numbers, created like an operand."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.dtypes import dtype as DType

from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.references.creation import linspace
from candelabra_conformance.references.random import random_uniform
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


@reference("new_uniform", as_given=True)
def new_uniform(input: Array, seed: int, offset: int, dtype: DType) -> Array:
    """Draw in the operand's shape."""
    return random_uniform(input.shape, seed, offset, dtype, None)


@reference("new_linspace", as_given=True)
def new_linspace(input: Array, start: Any, end: Any, steps: int, dtype: DType | None) -> Array:
    """Return evenly spaced numbers in the operand's dtype, unless ``dtype`` is given."""
    return linspace(start, end, steps, dtype or device_dtype(input.dtype), None)
