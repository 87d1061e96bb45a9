"""Distinct elements, membership, combinations and Cartesian products; segments and hashes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd import gradcheck, gradgradcheck

from tests.operators.comparing import close, same

NAN = float("nan")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(50,), (5, 6), (0,), ()])
def test_unique_is_numpys(dtype: str, shape: Any, rng: np.random.Generator) -> None:
    """The values are sorted; the inverse has the input's shape; counts agree."""
    a = rng.integers(0, 2 if dtype == "bool" else 9, shape)
    x = cd.tensor(a).to(getattr(cd, dtype))
    values, inverse, counts = np.unique(a, return_inverse=True, return_counts=True)
    same(x.unique().to(cd.int64), values)
    found = cd.unique(x, return_inverse=True, return_counts=True)
    same(found[0].to(cd.int64), values)
    same(found[1], inverse.reshape(shape), cd.int64)
    same(found[2], counts, cd.int64)
    same(x.unique(return_counts=True)[1], counts)
    assert found[0].dtype is x.dtype


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_unique_slices_are_numpys(dim: int, rng: np.random.Generator) -> None:
    """Slices are compared element by element."""
    a = rng.integers(0, 2, (7, 2, 7))
    expected = np.unique(a, return_inverse=True, return_counts=True, axis=dim)
    for found, wanted in zip(cd.tensor(a).unique(True, True, True, dim), expected, strict=True):
        same(found, wanted.reshape(found.shape))


def test_unique_consecutive_looks_at_neighbours() -> None:
    """Elements and slices are compared with their predecessors."""
    x = cd.tensor([1, 1, 2, 2, 3, 1, 1])
    values, inverse, counts = x.unique_consecutive(return_inverse=True, return_counts=True)
    same(values, [1, 2, 3, 1])
    same(inverse, [0, 0, 1, 1, 2, 3, 3])
    same(counts, [2, 2, 1, 2])
    same(cd.unique_consecutive(cd.tensor([[1, 2], [1, 2], [0, 2]]), dim=0), [[1, 2], [0, 2]])
    same(cd.tensor([NAN, NAN]).unique_consecutive(), [NAN, NAN])
    assert tuple(cd.zeros(0, 2).unique_consecutive().shape) == (0,)


@pytest.mark.parametrize("count", [0, 1, 5, 11, 300])
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_isin_is_numpys(count: int, dtype: str, rng: np.random.Generator) -> None:
    """Both algorithms agree: one comparison per element for a few, sorting for many."""
    a, b = rng.integers(0, 400, (20, 30)).astype(dtype), rng.integers(0, 400, count).astype(dtype)
    same(cd.isin(cd.tensor(a), cd.tensor(b)), np.isin(a, b), cd.bool)
    same(cd.isin(cd.tensor(a), cd.tensor(b), invert=True), np.isin(a, b, invert=True))


def test_isin_of_far_integers() -> None:
    """Integers near the limits of their dtype, mixed dtypes, sparse or dense ranges are correct."""
    a = np.array([-(2**63), 2**63 - 1, 0, 5], np.int64)
    for b in (
        np.arange(2**63 - 21, 2**63 - 1, 1, np.int64),
        np.arange(-10, 10) * 2**58,
        np.arange(20),
        a[:1].repeat(20),
    ):
        same(cd.isin(cd.tensor(a), cd.tensor(b)), np.isin(a, b))
    small = cd.tensor([0, 200, 255], dtype=cd.uint8)
    same(cd.isin(small, cd.arange(-20, 201)), [True, True, False])
    same(cd.isin(cd.arange(-20, 201), small.repeat(8)).sum(), 2)
    same(cd.isin(cd.tensor([True, False]), cd.arange(1, 20)), [True, False])


def test_isin_takes_numbers_and_mixed_dtypes() -> None:
    """Either argument may be a number; NaN is in no set."""
    same(cd.isin(cd.tensor([1, 2]), 2), [False, True])
    same(cd.isin(2, cd.tensor([1, 2])), True)
    same(cd.isin(5, cd.tensor([1, 2]), invert=True), True)
    same(cd.isin(cd.tensor([1, 2]), cd.tensor([2.0, 2.5])), [False, True])
    same(cd.isin(cd.tensor([NAN, 1.0]), cd.tensor([NAN, *range(20)])), [False, True])
    same(cd.isin(cd.tensor([1j, 1.0]), cd.tensor([1j])), [True, False])
    out = cd.zeros(2, dtype=cd.bool)
    assert cd.isin(cd.tensor([1, 2]), 2, assume_unique=True, out=out) is out


@pytest.mark.parametrize("r", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("count", [0, 1, 4])
def test_combinations_are_itertools(r: int, again: bool, count: int, rng: np.random.Generator) -> None:
    """The order is the same, with and without replacement."""
    a = rng.random(count)
    choose = itertools.combinations_with_replacement if again else itertools.combinations
    rows = list(choose(a.tolist(), r)) if r else []
    expected = np.array(rows).reshape(len(rows), r) if r else np.zeros(0)
    same(cd.combinations(cd.tensor(a), r, again), expected)


def test_cartesian_prod_is_itertools(rng: np.random.Generator) -> None:
    """There is one row per choice; a single vector is returned itself."""
    a, b, c = rng.random(2), rng.random(3), rng.random(2)
    same(cd.cartesian_prod(*map(cd.tensor, (a, b, c))), list(itertools.product(a, b, c)))
    same(cd.cartesian_prod(cd.tensor(a)), a)
    assert tuple(cd.cartesian_prod(cd.tensor(a), cd.zeros(0, dtype=cd.float64)).shape) == (0, 2)


@pytest.mark.parametrize("function", [lambda x: cd.combinations(x, 2) ** 2, lambda x: cd.cartesian_prod(x, x, x) ** 2])
def test_choices_are_differentiable_twice(function: Callable[[Any], Any]) -> None:
    """Gradients are assigned to the selected elements."""
    x = cd.tensor([0.3, 0.9, 0.5], dtype=cd.float64, requires_grad=True)
    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


# -- segments ---------------------------------------------------------------------------------------------------------
PLAIN: dict[str, Callable[[Any], Any]] = {
    "sum": lambda a: a.sum(0), "mean": lambda a: a.mean(0), "prod": lambda a: a.prod(0),
    "max": lambda a: a.max(0), "min": lambda a: a.min(0),
}  # fmt: skip
EMPTY = {"sum": 0.0, "mean": NAN, "prod": 1.0, "max": -np.inf, "min": np.inf}


@pytest.mark.parametrize("reduce", PLAIN)
def test_segments_are_reduced_one_by_one(reduce: str, rng: np.random.Generator) -> None:
    """Lengths or offsets define the segments; an empty segment gives the identity."""
    a = rng.normal(size=(6, 3))
    parts = [a[0:1], a[1:1], a[1:4], a[4:6]]
    expected = [PLAIN[reduce](p) if len(p) else np.full(3, EMPTY[reduce]) for p in parts]
    x = cd.tensor(a)
    close(cd.segment_reduce(x, reduce, lengths=cd.tensor([1, 0, 3, 2])), expected)
    close(cd.segment_reduce(x, reduce, offsets=cd.tensor([0, 1, 1, 4, 6])), expected)
    close(cd.segment_reduce(x, reduce, lengths=cd.tensor([1, 0, 3]), unsafe=True), expected[:3])


@pytest.mark.parametrize("reduce", PLAIN)
def test_each_row_may_have_segments_of_its_own(reduce: str, rng: np.random.Generator) -> None:
    """Any axis after those of the lengths is supported."""
    a = rng.normal(size=(2, 6, 3))
    lengths = [[1, 5], [4, 2]]
    expected = [[PLAIN[reduce](p) for p in np.split(row, [n[0]])] for row, n in zip(a, lengths, strict=True)]
    close(cd.segment_reduce(cd.tensor(a), reduce, lengths=cd.tensor(lengths), axis=1), expected)


def test_segments_may_begin_with_a_value() -> None:
    """The initial value is treated as the first element."""
    x, lengths = cd.tensor([1.0, 2.0, 3.0, 4.0]), cd.tensor([1, 0, 3])
    same(cd.segment_reduce(x, "max", lengths=lengths, initial=2), [2, 2, 4])
    close(cd.segment_reduce(x, "mean", lengths=lengths, initial=5), [6, 5, 14 / 3], rtol=1e-6)


@pytest.mark.parametrize("reduce", PLAIN)
def test_segments_are_differentiable_twice(reduce: str) -> None:
    """Every reduction is differentiable."""
    x = cd.tensor([0.3, 0.9, 0.5, 1.4, 0.7], dtype=cd.float64, requires_grad=True)
    lengths = cd.tensor([2, 3])
    assert gradcheck(lambda y: cd.segment_reduce(y, reduce, lengths=lengths) ** 2, (x,))
    assert gradgradcheck(lambda y: cd.segment_reduce(y, reduce, lengths=lengths) ** 2, (x,))


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float32", "float64"])
@pytest.mark.parametrize(("dim", "keepdim"), [((), False), (0, False), (1, True), ((0, 2), False)])
def test_the_hash_is_an_exclusive_or_of_bits(dtype: str, dim: Any, keepdim: bool, rng: np.random.Generator) -> None:
    """float64 or int64 are hashed over all dims or some."""
    a = (rng.normal(size=(3, 5, 4)) * 9).astype(dtype)
    bits = a.astype(np.float64 if "float" in dtype else np.int64).view(np.uint64)
    axis = None if dim == () else dim
    expected = np.bitwise_xor.reduce(bits.reshape(-1) if axis is None else bits, axis=0 if axis is None else axis)
    if keepdim:
        expected = np.expand_dims(expected, dim)
    same(cd.hash_tensor(cd.tensor(a), dim, keepdim=keepdim), expected, cd.uint64)
    same(cd.zeros(0, 2).hash_tensor(), 0)
    same(cd.zeros(0, 2).hash_tensor(0), [0, 0])


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "unique dim": (
        lambda: cd.zeros(2, 0).unique(dim=0),
        RuntimeError,
        "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied",
    ),
    "unique 0-d": (
        lambda: cd.tensor(1).unique(dim=0),
        RuntimeError,
        "unique(): a 0-d tensor has no slices",
    ),
    "isin": (lambda: cd.isin(1, 2), TypeError, "isin(): at least one argument must be a Tensor, all are numbers"),
    "combinations": (lambda: cd.combinations(cd.ones(2, 2)), RuntimeError, "Expect a 1D vector, but got shape [2, 2]"),
    "r": (lambda: cd.combinations(cd.ones(2), -1), RuntimeError, "Expect a non-negative number, but got -1"),
    "product": (lambda: cd.cartesian_prod(cd.ones(2, 2)), RuntimeError, "Expect a 1D vector, but got shape [2, 2]"),
    "reduce": (
        lambda: cd.segment_reduce(cd.ones(2), "any", lengths=cd.tensor([2])),
        RuntimeError,
        "reduce must be one of sum, mean, prod, max, min, got any",
    ),
    "indices": (
        lambda: cd.segment_reduce(cd.ones(2), "sum", indices=cd.tensor([0, 1])),
        RuntimeError,
        "indices based reduction is not supported yet.",
    ),
    "dtype": (
        lambda: cd.segment_reduce(cd.tensor([1]), "sum", lengths=cd.tensor([1])),
        NotImplementedError,
        "\"segment_reduce\" not implemented for 'Long'",
    ),
    "neither": (
        lambda: cd.segment_reduce(cd.ones(2), "sum"),
        RuntimeError,
        "Either lengths or offsets must be defined.",
    ),
    "axis": (
        lambda: cd.segment_reduce(cd.ones(2, 2), "sum", lengths=cd.tensor([2]), axis=1),
        RuntimeError,
        "Expected axis to be the last dimension of lengths but got 1.",
    ),
    "lengths": (
        lambda: cd.segment_reduce(cd.ones(2), "sum", lengths=cd.tensor([3])),
        RuntimeError,
        "Expected all rows of lengths along axis to sum to",
    ),
    "mode": (lambda: cd.ones(2).hash_tensor(mode=1), RuntimeError, "hash_tensor: Unknown mode: 1"),
    "hash": (
        lambda: cd.ones(2, dtype=cd.complex64).hash_tensor(),
        NotImplementedError,
        "hash_tensor is not implemented for complex dtypes",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_sets_and_segments_cannot_take(case: str) -> None:
    """Invalid arguments are errors."""
    call, kind, text = ERRORS[case]
    with pytest.raises(kind, match=re.escape(text)):
        call()
