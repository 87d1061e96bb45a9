"""Samples of covariances, correlations and Vandermonde matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from candelabra.dtypes import BOOL

from candelabra_conformance.layouts import BROADCAST_ALL, MEMORY
from candelabra_conformance.samples.maker import Array, Maker
from candelabra_conformance.samples.registry import inputs, mistakes, only
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, sample

COVARIANCES = ("cov", "cov_weighted")
VARYING = tuple(layout for layout in MEMORY if layout != BROADCAST_ALL)
"""The layouts in which a variable has a variance. Divided by a variance of 0, a rounding error has any value."""
only(lambda d: d.category != BOOL, "cov", "corrcoef")
only(lambda d: d.category != BOOL and d.name != "uint64", "cov_weighted")  # the weights are int64
only(lambda d: d.name != "uint64", "vander")


@inputs("cov")
def covariances(t: Maker) -> Iterator[Sample]:
    """Yield matrices and vectors, with several corrections."""
    yield sample(t(3, 7))
    yield sample(t(2, 5), correction=0)
    yield sample(t(9))
    yield sample(t(1, 5), correction=2)
    yield sample(t(), correction=0, kind=ZERO_DIM)
    yield sample(t(1), correction=0, kind=LENGTH_ONE)
    yield sample(t(0, 3), kind=ZERO_SIZE)
    yield sample(t(2, 20_001), kind=LARGE)


@inputs("corrcoef")
def correlations(t: Maker) -> Iterator[Sample]:
    """Yield variables that are no multiples of each other. On the diagonal, 1, the gradient is that of a limit."""
    apart: Any = t.array([[1, 4, 2, 5, 3], [1, 2, 5, 3, 3], [7, 1, 1, 2, 6]])
    yield sample(apart, gradient=False)
    yield sample(apart[:2], gradient=False)
    if t.is_floating or t.is_complex:
        yield sample(t(3, 9), gradient=False, layouts=VARYING)
    yield sample(apart[0], gradient=False, note="a vector")
    yield sample(apart[:1], kind=LENGTH_ONE, gradient=False)
    yield sample(t(0, 3), kind=ZERO_SIZE, gradient=False)


def _often(t: Maker, size: int) -> Array:
    return t.of("int64")(size, low=1, high=4)


def _much(t: Maker, size: int) -> Array:
    return t.of("float64" if t.dtype.itemsize >= 8 else "float32")(size, low=0.5, high=1.5)


@inputs("cov_weighted")
def weighted(t: Maker) -> Iterator[Sample]:
    """Yield frequencies, importances, both, and none."""
    often: dict[str, Any] = {"constant": ("fweights",)}
    yield sample(t(3, 7), fweights=_often(t, 7), **often)
    yield sample(t(3, 7), aweights=_much(t, 7))
    yield sample(t(2, 5), correction=2, fweights=_often(t, 5), aweights=_much(t, 5), **often)
    yield sample(t(2, 5), correction=0, aweights=_much(t, 5))
    yield sample(t(9), fweights=_often(t, 9), **often, note="a vector")
    yield sample(t(2, 5), fweights=None, note="no weights")
    yield sample(t(1), correction=0, fweights=t.index(1), **often, kind=LENGTH_ONE)
    yield sample(t(0, 3), fweights=_often(t, 3), **often, kind=ZERO_SIZE)


@mistakes(*COVARIANCES, "corrcoef")
def no_covariances(t: Maker) -> Iterator[Sample]:
    """Yield more than two dims, and bools."""
    given: dict[str, Any] = {"fweights": _often(t, 2)} if t.operator == "cov_weighted" else {}
    yield sample(t.of("float32")(1, 2, 2), **given, note="three dims")
    yield sample(t.of("bool")(2, 2), **given, note="bools")


@mistakes("cov_weighted")
def no_weights(t: Maker) -> Iterator[Sample]:
    """Yield weights that are negative, have the sum 0, or do not match."""
    x, whole = t.of("float32"), t.of("int64")
    yield sample(x(2, 3), fweights=whole.array([1, -1, 2]), note="negative")
    yield sample(x(2, 3), aweights=x.array([0.5, -1, 2]), note="negative")
    yield sample(x(2, 3), fweights=whole.array([0, 0, 0]), note="zero")
    yield sample(x(2, 3), fweights=whole.array([1, 1]), note="too few")
    yield sample(x(2, 3), fweights=whole.array([[1, 1, 1]]), note="a matrix")
    yield sample(x(2, 3), fweights=x.array([1, 1, 1]), note="floats")
    yield sample(x(2, 3), aweights=whole.array([1, 1, 1]), note="integers")


@inputs("vander")
def powers(t: Maker) -> Iterator[Sample]:
    """Yield several numbers of powers, in both orders."""
    small = {"low": 0, "high": 2} if t.is_integer else {}
    yield sample(t(5, **small))
    yield sample(t(4, **small), 6)
    yield sample(t(4, **small), 3, True)
    yield sample(t(3, **small), N=1, increasing=True)
    yield sample(t(3, **small), 0, note="no powers")
    yield sample(t(1, **small), 4, kind=LENGTH_ONE)
    yield sample(t(0), kind=ZERO_SIZE)
    yield sample(t(0), 3, kind=ZERO_SIZE)


@mistakes("vander")
def no_vandermonde_matrix(t: Maker) -> Iterator[Sample]:
    """Yield tensors other than vectors, and a negative number of powers."""
    x = t.of("float32")
    yield sample(x(2, 2), note="a matrix")
    yield sample(x(), note="0-d")
    yield sample(x(3), -1, note="negative")
