"""Covariances and Vandermonde matrices by NumPy's functions, correlations by their definition."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference, references

Array = np.ndarray[Any, Any]


def _cov(input: Array, correction: int, fweights: Array | None = None, aweights: Array | None = None) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warning about degrees of freedom, which the operator issues too
        return np.asarray(np.cov(np.atleast_1d(input), ddof=correction, fweights=fweights, aweights=aweights))


references({"cov": lambda input, correction: _cov(input, correction), "cov_weighted": _cov})


def _corrcoef(input: Array) -> Array:
    found = _cov(input, 1)
    if not found.ndim:
        return np.asarray(found / found)
    deviation = np.sqrt(np.diag(found).real)
    return np.asarray(found / deviation[:, None] / deviation)


references({"corrcoef": _corrcoef})


@reference("vander")
def vander(x: Array, N: int | None, increasing: bool) -> Array:
    """Call NumPy's function, with integers as int64."""
    return np.vander(x.astype(np.int64) if x.dtype.kind in "biu" else x, N, increasing)
