"""Pointwise kernels in C write into ``out=``, and add and subtract multiples in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import library
from candelabra_native.launch import _launch

SIZE = 300
"""The rows and columns of operands that NumPy would not serve: more elements than any threshold of these operators."""
CALLS: dict[str, Callable[..., Any]] = {
    "exp": lambda a, b, **out: cd.exp(a, **out),
    "add": lambda a, b, **out: cd.add(a, b, **out),
    "a number": lambda a, b, **out: cd.mul(a, 1.5, **out),
    "a number first": lambda a, b, **out: cd.sub(2, a, **out) if out else 2 - a,
    "addcmul": lambda a, b, **out: cd.addcmul(a, b, b, value=0.5, **out),
    "with a factor": lambda a, b, **out: cd.add(a, b, alpha=-0.75, **out),
    "a comparison": lambda a, b, **out: cd.lt(a, b, **out),
    "where": lambda a, b, **out: cd.maximum(a, b, **out),
}


@pytest.fixture
def every_size() -> Iterator[None]:
    """Let the kernels in C serve calls of every size."""
    with library.serve_every_size():
        yield


def matrix(*shape: int) -> cd.Tensor:
    """Return normal random numbers."""
    return cd.tensor(np.random.default_rng(3).standard_normal(shape or (SIZE, SIZE)).astype(np.float32))


def allocated(call: Callable[[], object]) -> int:
    """Return the bytes that the kernels in C allocate at once during a call, at most."""
    call()
    before = _launch.statistics()
    call()
    # The peak never falls, so a call that allocates beyond it is one that needs new memory.
    held = _launch.allocate(max(before["peak"] - before["allocated"], 1))
    peak = _launch.statistics()["peak"]
    call()
    grown: int = _launch.statistics()["peak"] - peak
    del held
    return grown


@pytest.mark.usefixtures("every_size")
@pytest.mark.parametrize("name", CALLS)
def test_a_call_with_out_writes_what_it_returns_without(name: str) -> None:
    """Also of transposed and broadcast operands, into parts of tensors, and over its operands."""
    call, a = CALLS[name], matrix()
    for b in (matrix() + 1, a.t(), a[0], a[:, :1]):
        expected = call(a, b)
        out = cd.zeros_like(expected)
        assert call(a, b, out=out) is out
        assert (out == expected).all()
        parts = cd.zeros(2, SIZE, 2 * SIZE, dtype=expected.dtype)
        call(a, b, out=parts[1, :, ::2])
        assert (parts[1, :, ::2] == expected).all()
        assert not parts[0].any()
        assert not parts[1, :, 1::2].any()
        if expected.dtype is a.dtype:
            target = a.clone()
            over = target.t() if b is not a and b.shape == (SIZE, SIZE) and (b == a.t()).all() else b
            assert (call(target, over, out=target) == expected).all()


def test_no_memory_is_allocated_for_the_result() -> None:
    """A result in new memory would be another 4 MB."""
    x, out = matrix(1024, 1024), cd.empty(1024, 1024)
    assert allocated(lambda: cd.exp(x, out=out)) < x.nbytes
    assert allocated(lambda: x.exp()) >= x.nbytes


def test_a_write_into_out_is_a_version() -> None:
    """Backward through a value that was saved before raises."""
    x, out = matrix(), matrix()
    loss = (matrix().requires_grad_() * out).sum()
    cd.exp(x, out=out)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_overlapping_operands_are_read_before_they_are_written() -> None:
    """The rows of a matrix are moved by one while they are doubled."""
    x = matrix()
    expected = (x[:-1] * 2).clone()
    cd.mul(x[:-1], 2.0, out=x[1:])
    assert (x[1:] == expected).all()


def test_other_shapes_and_dtypes_are_written_as_before() -> None:
    """A result is never broadcast into ``out``, which is resized, and a wider dtype takes the converted result."""
    x = matrix()
    for shape in ((2, SIZE, SIZE), (5,)):
        out = cd.zeros(*shape)
        with pytest.warns(UserWarning, match="was resized"):
            cd.exp(x, out=out)
        assert (out == x.exp()).all()
    wide = cd.zeros(SIZE, SIZE, dtype=cd.float64)
    assert (cd.exp(x, out=wide) == x.exp().double()).all()
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        cd.exp(x, out=cd.zeros(SIZE, SIZE, dtype=cd.int64))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        cd.exp(x, out=cd.zeros(SIZE, 1).expand(SIZE, SIZE))


@pytest.mark.usefixtures("every_size")
def test_a_call_that_raises_leaves_out_unchanged() -> None:
    """Kernels that refuse a value compute in new memory."""
    x, out = cd.arange(SIZE), cd.full((SIZE,), 7)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        cd.floor_divide(x, x, out=out)
    assert (out == 7).all()


# -- sums and differences with a factor --------------------------------------------------------------------------------
@pytest.mark.usefixtures("every_size")
@pytest.mark.parametrize("dtype", [cd.float32, cd.float64, cd.int32, cd.uint8, cd.complex64], ids=str)
def test_a_multiple_is_added_with_the_bits_of_two_operators(dtype: Any) -> None:
    """In place too. The product is rounded before the sum."""
    draw = np.random.default_rng(5)
    a, b = (cd.tensor(draw.integers(0, 90, (SIZE, 7)) / (1 if dtype.category < 2 else 7)).to(dtype) for _ in range(2))
    if dtype is cd.complex64:
        b = b * (1 + 2j)
    for alpha in (3, -2, 0.3)[: 2 if dtype.category < 2 else 3]:
        for combine, plain in ((cd.add, cd.add), (cd.sub, cd.sub)):
            assert (combine(a, b, alpha=alpha) == plain(a, b * alpha)).all()
            assert (combine(a, b[0], alpha=alpha) == plain(a, b[0] * alpha)).all()
            assert (combine(a, 5, alpha=alpha) == plain(a, 5 * alpha)).all()
            target = a.clone()
            getattr(target, f"{combine.__name__}_")(b, alpha=alpha)
            assert (target == plain(a, b * alpha)).all()


@pytest.mark.parametrize("context", [library.serve_every_size, library.own_kernels], ids=["native", "owner"])
@pytest.mark.parametrize("name", ["add", "sub"])
def test_factors_are_refused_whoever_serves(name: str, context: Callable[[], Any]) -> None:
    """The kernels decline them, and the bodies say why; nothing is written."""
    x, i = matrix(), cd.arange(SIZE)
    before = x.clone()
    with context():
        for call in (getattr(cd, name), getattr(cd.Tensor, f"{name}_")):
            with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results"):
                call(x, x.clone(), alpha=True)
            with pytest.raises(RuntimeError, match="argument alpha must not be a complex number"):
                call(x, x.clone(), alpha=1j)
            with pytest.raises(RuntimeError, match="argument alpha must not be a floating point number"):
                call(i, i.clone(), alpha=0.5)
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            getattr(x, f"{name}_")(x.t(), alpha=2)
        with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"):
            getattr(cd.zeros(3), f"{name}_")(cd.ones(2, 3), alpha=2)
    assert (x == before).all()


def test_a_multiple_is_added_by_one_kernel() -> None:
    """Without recording; a recorded call is a product and a sum, which have derivatives."""
    x, y = matrix(), matrix()
    assert "native: kernel 'add_scaled'" in str(cd.explain("add", x, y, alpha=2))
    leaf = cd.ones(3, requires_grad=True)
    cd.sub(leaf, leaf * leaf, alpha=3).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [-5.0] * 3
