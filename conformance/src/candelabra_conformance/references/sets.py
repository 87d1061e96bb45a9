"""Sets by NumPy's and itertools' functions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


@reference("unique", as_given=True)
def unique(
    x: Array, *, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Array | tuple[Array, ...]:
    """Call NumPy's function; bfloat16, which NumPy cannot sort, is converted to float32."""
    known = x.astype(np.float32) if x.dtype.kind == "V" else x
    values, inverse, counts = np.unique(known, return_inverse=True, return_counts=True, axis=dim)
    inverse = inverse.reshape(x.shape if dim is None else -1)
    return _asked(values.astype(x.dtype), inverse, counts, return_inverse, return_counts)


@reference("unique_consecutive", as_given=True)
def unique_consecutive(
    x: Array, *, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Array | tuple[Array, ...]:
    """Compare slice by slice."""
    line = x.reshape(-1) if dim is None else np.moveaxis(x, dim, 0)
    starts: list[int] = []
    inverse, counts = np.zeros(len(line), np.int64), []
    for i, value in enumerate(line):
        if not starts or (np.asarray(value) != line[starts[-1]]).any():
            starts.append(i)
            counts.append(0)
        inverse[i], counts[-1] = len(starts) - 1, counts[-1] + 1
    values = line[np.array(starts, np.int64)]
    values = values if dim is None else np.moveaxis(values, 0, dim)
    inverse = inverse.reshape(x.shape if dim is None else -1)
    return _asked(values, inverse, np.array(counts, np.int64), return_inverse, return_counts)


def _asked(
    values: Array, inverse: Array, counts: Array, return_inverse: bool, return_counts: bool
) -> Array | tuple[Array, ...]:
    """Return the values, or a tuple with the other requested results."""
    more = [np.asarray(inverse, np.int64)] * return_inverse + [np.asarray(counts, np.int64)] * return_counts
    return (values, *more) if more else values


@reference("isin")
def isin(elements: Any, tests: Any, assume_unique: bool = False, invert: bool = False) -> Array:
    """Compare each element with each."""
    found = (np.asarray(elements)[..., None] == np.asarray(tests).reshape(-1)).any(-1)
    return np.asarray(~found if invert else found)


@reference("combinations")
def chosen(x: Array, r: int = 2, with_replacement: bool = False) -> Array:
    """Return the rows of itertools."""
    if not r:
        return x[:0]
    choose: Callable[..., Any] = combinations_with_replacement if with_replacement else combinations
    rows = list(choose(range(len(x)), r))
    return x[np.array(rows, np.int64).reshape(len(rows), r)]


@reference("cartesian_prod", as_given=True)
def cartesian_prod(*vectors: Array) -> Array:
    """Return the rows of itertools."""
    if len(vectors) == 1:
        return vectors[0]
    rows = list(product(*(range(len(v)) for v in vectors)))
    indices = np.array(rows, np.int64).reshape(len(rows), len(vectors))
    return np.stack([v[indices[:, i]] for i, v in enumerate(vectors)], -1)
