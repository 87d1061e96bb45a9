"""Statistics, manipulation, searching, sorting and sets of candelabra.array_api, compared with NumPy's."""

from __future__ import annotations

import math
from typing import Any

import candelabra.array_api as xp
import numpy as np
import pytest

from tests.operators.array_api_samples import DTYPES, NUMERIC, REAL_NUMERIC, check, sample

# -- statistics -------------------------------------------------------------------------------------------------------
AXES: list[Any] = [None, 0, -1, (0, 2), (1,), ()]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "std", "var", "all", "any", "count_nonzero"])
def test_reductions_are_numpys(name: str, axis: Any, keepdims: bool, rng: np.random.Generator) -> None:
    """One axis, several, all or none are reduced, and kept with size 1 on request."""
    x = sample(rng, "float64", 2, 3, 4)
    check(
        getattr(xp, name)(xp.asarray(x), axis=axis, keepdims=keepdims),
        getattr(np, name)(x, axis=axis, keepdims=keepdims),
    )


@pytest.mark.parametrize("dtype", NUMERIC)
@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_accumulations_have_the_standards_dtypes(name: str, dtype: str, rng: np.random.Generator) -> None:
    """The dtype is 64 bits for integers, signed or unsigned; the same floating dtype; another on request."""
    x = sample(rng, dtype, 4)
    want = {"i": "int64", "u": "uint64"}.get(np.dtype(dtype).kind, dtype)
    check(getattr(xp, name)(xp.asarray(x)), getattr(np, name)(x, dtype=want))
    if np.dtype(dtype).kind in "iuf":
        check(getattr(xp, name)(xp.asarray(x), dtype=xp.float64), getattr(np, name)(x, dtype="float64"))


@pytest.mark.parametrize("correction", [0, 1, 0.5])
def test_corrections_of_moments(correction: float, rng: np.random.Generator) -> None:
    """std and var divide by n - correction, which is 0 by default."""
    x = sample(rng, "float64", 5, 4)
    check(xp.var(xp.asarray(x), axis=0, correction=correction), np.var(x, axis=0, correction=correction))
    check(xp.std(xp.asarray(x), correction=correction), np.std(x, correction=correction))


@pytest.mark.parametrize("initial", [True, False])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cumulative_along_an_axis(axis: int, initial: bool, rng: np.random.Generator) -> None:
    """Cumulative sums and products have the neutral element first on request."""
    x = sample(rng, "float64", 3, 4)
    for name in ("cumulative_sum", "cumulative_prod"):
        got = getattr(xp, name)(xp.asarray(x), axis=axis, include_initial=initial)
        check(got, getattr(np, name)(x, axis=axis, include_initial=initial))
    with pytest.raises(ValueError, match=r"cumulative_sum\(\) expects axis= unless x is a vector, got 2 dims"):
        xp.cumulative_sum(xp.asarray(x))


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("axis", [0, -1])
def test_diff_is_numpys(n: int, axis: int, rng: np.random.Generator) -> None:
    """Differences have any order and axis, with prepended and appended values; for bools they are exclusive or."""
    x, edge = sample(rng, "int32", 3, 3), sample(rng, "int32", 3, 3)
    check(xp.diff(xp.asarray(x), axis=axis, n=n), np.diff(x, axis=axis, n=n))
    got = xp.diff(xp.asarray(x), axis=axis, n=n, prepend=xp.asarray(edge), append=xp.asarray(edge))
    check(got, np.diff(x, axis=axis, n=n, prepend=edge, append=edge))
    check(xp.diff(xp.asarray(x > 2), axis=axis), np.diff(x > 2, axis=axis))
    with pytest.raises(ValueError, match="expects a non-negative order n, got -1"):
        xp.diff(xp.asarray(x), n=-1)


# -- manipulation -----------------------------------------------------------------------------------------------------
CALLS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "broadcast_to": [(((5, 2, 3, 4),), {})],
    "expand_dims": [((0,), {}), ((-1,), {}), (((0, -1),), {})],
    "flip": [((), {}), ((), {"axis": 1}), ((), {"axis": (0, -1)})],
    "moveaxis": [((0, 2), {}), (((0, 1), (-1, 0)), {})],
    "permute_dims": [(((2, 0, 1),), {}), (((-1, 0, 1),), {})],
    "repeat": [((2,), {}), ((2,), {"axis": 1}), ((np.array([1, 0, 2]),), {"axis": 1}), (([1, 2],), {"axis": 0})],
    "reshape": [(((4, 6),), {}), (((-1,),), {}), (((3, -1),), {"copy": True})],
    "roll": [((2,), {}), (((3,),), {}), ((-1,), {"axis": 1}), (((1, 2),), {"axis": (0, 2)}), ((1,), {"axis": (0, 1)})],
    "tile": [(((2,),), {}), (((2, 1, 3),), {}), (((2, 1, 1, 2),), {})],
    "matrix_transpose": [((), {})],
    "unstack": [((), {}), ((), {"axis": -1})],
    "squeeze": [],
}


@pytest.mark.parametrize("name", CALLS)
def test_manipulations_are_numpys(name: str, rng: np.random.Generator) -> None:
    """Elements are moved, repeated and reshaped as in NumPy, with the standard's names and arguments."""
    x = sample(rng, "float64", 2, 3, 4)
    for arguments, keywords in CALLS[name]:
        given = [xp.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]
        got, want = getattr(xp, name)(xp.asarray(x), *given, **keywords), getattr(np, name)(x, *arguments, **keywords)
        for one, expected in zip(got, want, strict=True) if isinstance(got, tuple) else ((got, want),):
            check(one, expected)


def test_squeeze_takes_axes_of_size_one(rng: np.random.Generator) -> None:
    """One or several axes are removed; those of another size are refused."""
    x = sample(rng, "int8", 1, 3, 1)
    check(xp.squeeze(xp.asarray(x), 0), x[0])
    check(xp.squeeze(xp.asarray(x), (0, -1)), x[0, :, 0])
    with pytest.raises(ValueError, match="axis 1 has size 3, not 1"):
        xp.squeeze(xp.asarray(x), 1)
    with pytest.raises(ValueError, match="expects distinct axes, got"):
        xp.expand_dims(xp.asarray(x), (1, 1))
    with pytest.raises(ValueError, match="at least 2 dims, not 1"):
        xp.matrix_transpose(xp.ones(2))


def test_reshape_follows_its_copy_argument() -> None:
    """The result is a view unless a copy is requested or required; if copies are forbidden, that is an error."""
    x = xp.reshape(xp.arange(6), (2, 3))
    xp.reshape(x, (6,), copy=False)[0] = 7
    xp.reshape(x, (6,), copy=True)[1] = 8
    assert x.tolist() == [[7, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError, match=r"reshape\(\): copy=False, but this shape needs a copy"):
        xp.reshape(x.mT, (6,), copy=False)


def test_joining_promotes_and_flattens(rng: np.random.Generator) -> None:
    """concat and stack promote whatever the ranks; concat flattens on request."""
    a, b = sample(rng, "int8", 2, 3), sample(rng, "float32", 1, 3)
    check(xp.concat([xp.asarray(a), xp.asarray(b)]), np.concatenate([a, b], dtype="float32"))
    check(xp.concat((xp.asarray(a), xp.asarray(b)), axis=None), np.concatenate([a, b], axis=None, dtype="float32"))
    check(xp.stack([xp.asarray(b), xp.asarray(a[:1])], axis=-1), np.stack([b, a[:1].astype("float32")], axis=-1))


def test_broadcasting_shapes_and_arrays() -> None:
    """Shapes broadcast without arrays, arrays to the common shape, and incompatible shapes are ValueErrors."""
    assert xp.broadcast_shapes() == ()
    assert xp.broadcast_shapes((3, 1), (4,), ()) == (3, 4)
    one, other = pair = xp.broadcast_arrays(xp.ones((2, 1)), xp.zeros(3))
    assert type(pair) is tuple
    assert one.shape == other.shape == (2, 3)
    with pytest.raises(ValueError, match=r"size of tensor a \(2\) must match the size of tensor b \(3\)"):
        xp.broadcast_shapes((2,), (3,))


# -- searching, sorting, sets -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_extremes_have_places(name: str, rng: np.random.Generator) -> None:
    """The first index of the extreme, along an axis or of all, with the axes kept on request."""
    x = sample(rng, "int32", 3, 4)
    for axis in (None, 0, -1):
        for keepdims in (True, False):
            got = getattr(xp, name)(xp.asarray(x), axis=axis, keepdims=keepdims)
            check(got, getattr(np, name)(x, axis=axis, keepdims=keepdims))


@pytest.mark.parametrize("dtype", REAL_NUMERIC)
@pytest.mark.parametrize("descending", [True, False])
def test_sorting_is_stable(dtype: str, descending: bool, rng: np.random.Generator) -> None:
    """Equal elements keep their order in either direction."""
    x = sample(rng, dtype, 40, high=3)
    got = xp.argsort(xp.asarray(x), descending=descending)
    key = -x.astype("float64") if descending else x
    check(got, np.argsort(key, kind="stable"))
    check(xp.sort(xp.asarray(x), descending=descending), x[np.argsort(key, kind="stable")])
    y = sample(rng, dtype, 3, 4)
    check(xp.sort(xp.asarray(y), axis=0), np.sort(y, axis=0))


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_promotes_and_takes_numbers(side: Any, rng: np.random.Generator) -> None:
    """Values of another dtype, numbers, and a sorter are accepted."""
    x, values = sample(rng, "int32", 9), sample(rng, "float64", 3, 2)
    order = np.argsort(x)
    got = xp.searchsorted(xp.asarray(x), xp.asarray(values), side=side, sorter=xp.asarray(order))
    check(got, np.searchsorted(x, values, side=side, sorter=order))
    check(xp.searchsorted(xp.sort(xp.asarray(x)), 2, side=side), np.searchsorted(np.sort(x), 2, side=side))
    with pytest.raises(ValueError, match="expects side 'left' or 'right', not 'middle'"):
        xp.searchsorted(xp.arange(2), 1, side="middle")


def test_where_and_nonzero(rng: np.random.Generator) -> None:
    """where promotes its arrays and accepts a number; nonzero gives a vector per dim and requires dims."""
    mask, x = sample(rng, "bool", 3, 4), sample(rng, "float32", 4)
    check(xp.where(xp.asarray(mask), xp.asarray(x), xp.asarray(np.float64(2.5))), np.where(mask, x, np.float64(2.5)))
    check(xp.where(xp.asarray(mask), xp.asarray(x), 1), np.where(mask, x, np.float32(1)))
    for got, want in zip(xp.nonzero(xp.asarray(mask)), np.nonzero(mask), strict=True):
        check(got, want)
    with pytest.raises(ValueError, match="expects an array of at least 1 dim, got a 0-d array"):
        xp.nonzero(xp.asarray(1))


def test_isin_is_numpys(rng: np.random.Generator) -> None:
    """Arrays and numbers are accepted, negated on request; NaN is in no set."""
    x, y = sample(rng, "int16", 3, 4), sample(rng, "int16", 3)
    check(xp.isin(xp.asarray(x), xp.asarray(y)), np.isin(x, y))
    check(xp.isin(xp.asarray(x), xp.asarray(y), invert=True), np.isin(x, y, invert=True))
    check(xp.isin(xp.asarray(x), 2), np.isin(x, 2))
    check(xp.isin(2, xp.asarray(x)), np.isin(2, x))
    nan = xp.asarray([math.nan])
    assert not bool(xp.isin(nan, nan)[0])


def test_taking(rng: np.random.Generator) -> None:
    """take accepts indices of any integer dtype, also negative ones; take_along_axis broadcasts."""
    x = sample(rng, "float64", 3, 4)
    for dtype in ("int8", "uint16", "int64"):
        indices = np.array([2, 0, 1, 2], dtype)
        check(xp.take(xp.asarray(x), xp.asarray(indices), axis=1), np.take(x, indices, axis=1))
    check(xp.take(xp.asarray(x), xp.asarray([-1, 0]), axis=0), np.take(x, [-1, 0], axis=0))
    check(xp.take(xp.asarray(x[0]), xp.asarray([1, 1])), np.take(x[0], [1, 1]))
    check(xp.take(xp.asarray(x), xp.asarray([[1, 0], [2, 2]]), axis=0), np.take(x, [[1, 0], [2, 2]], axis=0))
    order = np.argsort(x, axis=0)
    check(xp.take_along_axis(xp.asarray(x), xp.asarray(order), axis=0), np.take_along_axis(x, order, axis=0))
    with pytest.raises(ValueError, match=r"take\(\) expects axis= unless x is a vector"):
        xp.take(xp.asarray(x), xp.asarray([0]))
    with pytest.raises(IndexError, match="expected indices of an integer dtype, not float32"):
        xp.take(xp.asarray(x), xp.ones(2), axis=0)


@pytest.mark.parametrize("dtype", [*DTYPES["bool"], *NUMERIC])
def test_unique_is_numpys(dtype: str, rng: np.random.Generator) -> None:
    """Sorted values, first indices, inverse in the array's shape, and counts are named tuples with the standard's
    fields."""
    for shape in ((3, 5), (), (0,), (2, 0)):
        x = sample(rng, dtype, *shape, high=3).round()
        found, want = xp.unique_all(xp.asarray(x)), np.unique_all(x)
        assert found._fields == ("values", "indices", "inverse_indices", "counts")
        for got, expected in zip(found, want, strict=True):
            check(got, expected)
        check(xp.unique_values(xp.asarray(x)), np.sort(np.unique_values(x)))
        assert xp.unique_counts(xp.asarray(x))._fields == ("values", "counts")
        values, inverse = xp.unique_inverse(xp.asarray(x))
        check(xp.reshape(xp.take(values, inverse, axis=0), x.shape), x)


def test_every_nan_is_unique() -> None:
    """NaN is not equal to itself; the two zeros are equal."""
    found = xp.unique_all(xp.asarray([math.nan, 0.0, math.nan, -0.0]))
    assert found.counts.tolist() == [2, 1, 1]
    assert found.indices.tolist() == [1, 0, 2]
