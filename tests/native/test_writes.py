"""Writes in place where an index says, and divisions in place: a call that raises changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import library
from candelabra_clike.templates.indexing.index_arrays import CHUNK, is_in_bounds
from candelabra_native.arrays import strided
from candelabra_native.engine import ENGINE

Write = Callable[[Any, Any, Any], Any]
"""Called with the target, the index and the values."""

WRITES: dict[str, Write] = {
    "index_put_": lambda x, i, v: x.index_put_((i,), v),
    "index_put_ accumulating": lambda x, i, v: x.index_put_((i,), v, accumulate=True),
    "index_add_": lambda x, i, v: x.index_add_(0, i, v),
    "index_copy_": lambda x, i, v: x.index_copy_(0, i, v),
    "index_fill_": lambda x, i, v: x.index_fill_(0, i, 2.0),
    "scatter_": lambda x, i, v: x.scatter_(0, i[:, None].expand(v.shape), v),
    "scatter_add_": lambda x, i, v: x.scatter_add_(0, i[:, None].expand(v.shape), v),
    "scatter_reduce_": lambda x, i, v: x.scatter_reduce_(
        0, i[:, None].expand(v.shape), v, "amax", include_self=False
    ),
}  # fmt: skip
DIVISIONS = ("floor_divide_", "remainder_", "fmod_", "div_")


@pytest.fixture(params=["native", "owner"])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return who serves: the kernels in C at every size, or the owner's."""
    with library.serve_every_size() if request.param == "native" else library.own_kernels():
        yield request.param


def operands(name: str, dtype: Any = cd.float32) -> tuple[Any, Any, Any]:
    """Return a target, an index, and values that are small integers. Indices differ where the order would matter."""
    draw = np.random.default_rng(6)
    index = draw.permutation(300)[:200] if "add" not in name and "accum" not in name else draw.integers(0, 300, 200)
    target, values = (draw.integers(-9, 9, (rows, 40)).astype(np.float32) for rows in (300, 200))
    return cd.tensor(target).to(dtype), cd.tensor(index), cd.tensor(values).to(dtype)


@pytest.mark.parametrize("dtype", [cd.float32, cd.float16], ids=str)
@pytest.mark.parametrize("name", WRITES)
def test_writes_are_those_of_the_owner(name: str, dtype: Any) -> None:
    """Also into every other column, and of half types, which accumulate in a copy."""
    write = WRITES[name]
    for columns in (slice(None), slice(1, None, 2)):
        results = []
        for context in (library.serve_every_size, library.own_kernels):
            x, i, v = operands(name, dtype)
            with context():
                assert write(x[:, columns], i, v[:, columns]) is not None
            results.append(x.numpy())
        np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("wrong", [300, -301, 1 << 40])
def test_an_index_out_of_bounds_changes_nothing(server: str, name: str, wrong: int) -> None:
    """The error is the owner's, also where a native kernel serves."""
    x, i, v = operands(name)
    before = x.clone()
    i[-1] = wrong
    with pytest.raises((IndexError, RuntimeError), match=r"out of (bounds|range)"):
        WRITES[name](x, i, v)
    np.testing.assert_array_equal(x.numpy(), before.numpy())


@pytest.mark.parametrize("name", DIVISIONS)
def test_a_division_by_zero_changes_nothing(server: str, name: str) -> None:
    """The divisor is a tensor of the same shape, one of another, or a number."""
    x = cd.arange(9000).reshape(90, 100)
    before = x.clone()
    rounding = {"rounding_mode": "trunc"} if name == "div_" else {}
    divisors = cd.ones(90, 100, dtype=cd.int64), cd.ones(100, dtype=cd.int64)
    for divisor in divisors:
        divisor.reshape(-1)[-1] = 0
    for each in (*divisors, 0):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            getattr(x, name)(each, **rounding)
        np.testing.assert_array_equal(x.numpy(), before.numpy())


@pytest.mark.parametrize("name", DIVISIONS)
def test_divisions_in_place_are_those_of_the_owner(name: str) -> None:
    """Of negative numbers too, by numbers and by tensors, also by itself."""
    rounding = {"rounding_mode": "trunc"} if name == "div_" else {}
    for divisor in (7, -3, cd.arange(1, 101), None):
        results = []
        for context in (library.serve_every_size, library.own_kernels):
            x = cd.arange(-4500, 4500).reshape(90, 100) * 2 + 1
            with context():
                getattr(x, name)(x if divisor is None else divisor, **rounding)
            results.append(x.numpy())
        np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("size", [0, 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_indices_are_checked_in_every_chunk(size: int) -> None:
    """Negative ones count from the end only if asked for."""
    index = np.random.default_rng(2).integers(0, 50, size)
    assert is_in_bounds(strided(index, ENGINE), 50, False)
    for place in range(0, size, max(1, size // 3)):
        for value, plain, wrapped in ((50, False, False), (-1, False, True), (-50, False, True), (-51, False, False)):
            changed = index.copy()
            changed[place] = value
            assert is_in_bounds(strided(changed, ENGINE), 50, False) is plain
            assert is_in_bounds(strided(changed, ENGINE), 50, True) is wrapped
