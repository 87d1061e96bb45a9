"""The array of candelabra.array_api: operators, indexing, attributes, numbers, and its use as a tensor."""

from __future__ import annotations

import copy
import operator
import pickle  # noqa: TID251 - that arrays survive it is what is tested
from typing import Any

import candelabra as cd
import candelabra.array_api as xp
import numpy as np
import pytest
from candelabra.array_api import Array

A = np.arange(24.0).reshape(2, 3, 4)


def equal(got: Any, want: Any) -> None:
    """Assert that the result is an Array of the same dtype, shape and values."""
    assert isinstance(got, Array)
    np.testing.assert_array_equal(got.detach().numpy(), want, strict=True)


# -- operators --------------------------------------------------------------------------------------------------------
BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip
BITWISE = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("op", BINARY)
def test_operators_promote_by_the_standards_table(op: Any) -> None:
    """float32 with dims and 0-d float64 give float64, on either side, and with a plain tensor too."""
    x, y = np.array([1.5, 2.0, 3.0], np.float32), np.array(2.0)
    equal(op(xp.asarray(x), xp.asarray(y)), op(x, y))
    equal(op(xp.asarray(y), xp.asarray(x)), op(y, x))
    equal(op(cd.tensor(2.0, dtype=cd.float64), xp.asarray(x)), op(y, x))
    equal(op(xp.asarray(x), cd.tensor(2.0, dtype=cd.float64)), op(x, y))


@pytest.mark.parametrize("op", [*BINARY, *BITWISE])
def test_operators_take_numbers_on_either_side(op: Any) -> None:
    """A Python number has the array's dtype."""
    if op is operator.truediv:
        x = np.array([1, 2, 4], np.float32)
    else:
        x = np.array([1, 2, 4], np.int16)
    equal(op(xp.asarray(x), 2), op(x, 2))
    equal(op(2, xp.asarray(x)), op(2, x))


@pytest.mark.parametrize("op", [operator.neg, operator.pos, operator.abs, operator.invert])
def test_operators_of_one_array(op: Any) -> None:
    """Minus, plus, absolute value and inversion give arrays; the operand does not change."""
    x = np.array([1, -2, 3], np.int8)
    equal(op(xp.asarray(x)), op(x))
    plain = cd.tensor([1, 2])
    assert xp.positive(plain) is not plain
    assert type(plain) is cd.Tensor


def test_operators_leave_other_types_to_the_other_operand() -> None:
    """Operators return NotImplemented for other types; equality is then that of objects."""
    with pytest.raises(TypeError, match="unsupported operand"):
        xp.ones(2) + "two"
    assert (xp.ones(2) == "two") is False


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "ipow", "imod"])
def test_inplace_operators_keep_the_dtype(name: str) -> None:
    """The target keeps its identity and dtype for any lower dtype or number on the right."""
    x = np.array([5.0, 7.0])
    for other in (np.array([2.0, 3.0], np.float32), np.array(2.0, np.float32), 3):
        array = mine = xp.asarray(x, copy=True)
        array = getattr(operator, name)(array, xp.asarray(other) if isinstance(other, np.ndarray) else other)
        assert array is mine
        equal(array, getattr(operator, name)(x.copy(), other))


def test_matrix_products() -> None:
    """@ promotes and gives an array; @= writes if the shape does not change and is refused otherwise."""
    a, b = np.arange(4, dtype=np.float32).reshape(2, 2), np.arange(4.0).reshape(2, 2)
    equal(xp.asarray(a) @ xp.asarray(b), a @ b)
    x = mine = xp.asarray(b, copy=True)
    x @= xp.asarray(a)
    assert x is mine
    equal(x, b @ a)
    with pytest.raises(ValueError, match=r"@= may not change the shape from \(2, 2\) to \(2,\)"):
        x @= xp.ones(2)


def test_arrays_hash_by_identity() -> None:
    """Arrays may be keys of dicts, as tensors may."""
    x = xp.ones(2)
    assert {x: 1}[x] == 1


# -- indexing ---------------------------------------------------------------------------------------------------------
KEYS = [
    slice(None, None, -1), slice(-1, None, -2), slice(0, 5, -1), (slice(None), slice(None, None, -1)),
    (0, slice(2, None, -1)), (..., slice(None, None, -3)), (slice(None, None, -1), None, slice(None, 0, -1)),
    (slice(None, None, -1), ..., slice(3, 0, -2)), (0, 1, 2), ..., (), None, (slice(0, 2), 1), (1, ..., 2),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_indexing_is_numpys(key: Any) -> None:
    """Ints, slices in either direction, Ellipsis and None work for reading and writing."""
    equal(xp.asarray(A)[key], A[key])
    x, want = xp.asarray(A, copy=True), A.copy()
    x[key] = -1
    want[key] = -1
    equal(x, want)
    value = np.arange(A[key].size, dtype=np.float64).reshape(A[key].shape)
    x[key] = xp.asarray(value)
    want[key] = value
    equal(x, want)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint16", "uint64"])
def test_integer_arrays_of_any_dtype_are_indices(dtype: str) -> None:
    """Index arrays of every integer dtype, also 0-d, may be combined with ints and negative steps."""
    rows, columns = np.array([1, 0, 1], dtype), np.array([[2], [0]], dtype)
    x = xp.asarray(A)
    equal(x[xp.asarray(rows)], A[rows])
    equal(x[xp.asarray(rows), xp.asarray(columns)], A[rows, columns])
    equal(x[xp.asarray(rows), xp.asarray(columns), 1], A[rows, columns, 1])
    equal(x[xp.asarray(rows[0])], A[rows[0]])
    equal(x[xp.asarray(rows), ::-1], A[rows, ::-1])
    written = xp.asarray(A, copy=True)
    written[xp.asarray(rows)[:2], ..., ::-1] = xp.asarray(A[:2])
    want = A.copy()
    want[rows[:2], ..., ::-1] = A[:2]
    equal(written, want)


def test_masks_are_combined_with_negative_steps() -> None:
    """A mask indexes as many dims as it has, and a slice with a negative step may follow."""
    x, mask = xp.asarray(A), A[:, :, 0] > 5
    equal(x[xp.asarray(mask), ::-1], A[mask, ::-1])
    equal(x[xp.asarray([True, False]), ::-2], A[np.array([True, False]), ::-2])


def test_masks_are_indices() -> None:
    """A boolean array may have as many dims as the array, fewer, or none."""
    x = xp.asarray(A, copy=True)
    equal(x[x > 5], A[A > 5])
    equal(x[xp.asarray(A[:, :, 0] > 5)], A[A[:, :, 0] > 5])
    equal(xp.asarray(3.0)[xp.asarray(True)].reshape((1,)) + xp.zeros(1, dtype=xp.float64), np.array([3.0]))
    x[x > 5] = 0
    assert float(xp.max(x)) == 5
    for shape in ((0,), (2, 0), (0, 3, 0)):  # A mask may be empty along any dim: it selects no element.
        assert x[xp.zeros(shape, dtype=xp.bool)].shape == (0, *A.shape[len(shape) :])
    with pytest.raises(IndexError, match=r"The shape of the mask \[0, 4\] at index 0"):
        x[xp.zeros((0, 4), dtype=xp.bool)]


# -- attributes -------------------------------------------------------------------------------------------------------
def test_size_is_a_number_and_may_be_called() -> None:
    """It is the standard's attribute and PyTorch's method."""
    x = xp.asarray(A)
    assert x.size == 24
    assert isinstance(x.size, int)
    assert x.size() == (2, 3, 4)
    assert x.size(-1) == 4


def test_transposes() -> None:
    """T is defined for matrices only, mT for stacks of them; both are views."""
    x = xp.asarray(A)
    equal(x.mT, A.mT)
    equal(x[0, ...].T, A[0].T)
    with pytest.raises(ValueError, match="this array has 3 dims"):
        _ = x.T
    with pytest.raises(ValueError, match="an array of at least 2 dims, not 1"):
        _ = xp.ones(3).mT


def test_namespace_and_device() -> None:
    """Arrays and plain tensors return their namespace by version, and move between devices."""
    for x in (xp.ones(2), cd.ones(2)):
        assert x.__array_namespace__() is xp
        assert x.__array_namespace__(api_version="2024.12") is xp
        with pytest.raises(ValueError, match=r"standard '1999\.12' is not offered"):
            x.__array_namespace__(api_version="1999.12")
        assert x.to_device(x.device) is x
        with pytest.raises(ValueError, match=r"to_device\(\): only stream=None is supported, got 3"):
            x.to_device(x.device, stream=3)


def test_numbers_of_arrays() -> None:
    """float, int, complex, bool and index of one element work; complex numbers are not converted to real ones."""
    assert float(xp.asarray(2.5)) == 2.5
    assert int(xp.asarray(-2.5)) == -2
    assert complex(xp.asarray(1)) == 1 + 0j
    assert bool(xp.asarray(0.0)) is False
    assert [10, 20][xp.asarray(1)] == 20
    with pytest.raises(TypeError, match="float\\(\\) expects a real array, got a complex one"):
        float(xp.asarray(1j))
    with pytest.raises(TypeError, match="int\\(\\) of an array expects one element, got 2"):
        int(xp.ones(2))
    with pytest.raises(OverflowError, match="infinity"):
        int(xp.asarray(xp.inf))


def test_missing_functions_are_named() -> None:
    """The namespace looks up functions by name, and the error has the name that candelabra lacks."""
    from candelabra.array_api._array import named

    with pytest.raises(AttributeError, match="candelabra has no function 'no_such_function'"):
        named("no_such_function")


# -- tensors ----------------------------------------------------------------------------------------------------------
def test_arrays_carry_gradients() -> None:
    """Functions, operators and indexing of arrays are recorded, and the original plain tensor gets its gradient."""
    leaf = cd.tensor([1.0, 2.0, 3.0], dtype=cd.float64, requires_grad=True)
    x = xp.asarray(leaf)
    y = xp.sum(x[::-1] * xp.asarray([1.0, 10.0, 100.0], dtype=xp.float64) + xp.exp(x) * 0)
    y.backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [100.0, 10.0, 1.0]
    assert type(leaf) is cd.Tensor


def test_writes_backwards_are_recorded() -> None:
    """Values written through a negative step have gradients, and overwritten values have none."""
    leaf = cd.tensor([1.0, 2.0, 3.0], requires_grad=True)
    values = cd.tensor([5.0, 7.0], requires_grad=True)
    y = xp.asarray(leaf) * 1
    y[::-2] = xp.asarray(values)
    (y * xp.asarray([1.0, 10.0, 100.0])).sum().backward()
    assert leaf.grad is not None
    assert values.grad is not None
    assert leaf.grad.tolist() == [0.0, 10.0, 0.0]
    assert values.grad.tolist() == [100.0, 1.0]


def test_arrays_are_tensors() -> None:
    """PyTorch's methods work on arrays, and their results follow PyTorch's rules."""
    x = xp.asarray(A)
    assert x.sum().item() == A.sum()
    assert type(x.reshape(4, 6)) is cd.Tensor
    assert repr(xp.ones(2)) == repr(cd.ones(2))
    assert cd.matmul(x[0, ...], x[1, ...].mT).shape == (3, 3)


CALLS = [
    lambda x, y: (xp.meshgrid(x), xp.meshgrid(x, indexing="ij"), xp.broadcast_arrays(x, y), xp.concat([x])),
    lambda x, y: (xp.astype(x, x.dtype, copy=False), xp.asarray(x), xp.asarray(x, copy=False), xp.from_dlpack(x)),
    lambda x, y: (xp.positive(x), xp.real(x), xp.conj(x), xp.round(x), xp.clip(x), xp.reshape(x, x.shape), xp.sort(x)),
    lambda x, y: (xp.expand_dims(x, ()), xp.squeeze(x, ()), xp.permute_dims(x, (0,)), xp.moveaxis(x, 0, 0)),
    lambda x, y: (xp.tile(x, (1,)), xp.repeat(x, 1), xp.roll(x, 0), xp.flip(x, axis=()), xp.diff(x, n=0)),
    lambda x, y: (xp.sum(x, axis=()), xp.max(x, axis=()), xp.where(x == x, x, x), xp.take(x, xp.asarray([0]))),
    lambda x, y: (xp.tensordot(x, y, axes=0), xp.linalg.outer(x, y), xp.fft.fftshift(x, axes=())),
    lambda x, y: (xp.stack([x]), xp.tril(x[None]), xp.linalg.diagonal(x[None]), xp.broadcast_to(x, x.shape)),
    lambda x, y: (xp.matmul(x, y), xp.unstack(x), xp.cumulative_sum(x), xp.linalg.vector_norm(x, axis=())),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_functions_do_not_change_the_class_of_arguments(call: Any) -> None:
    """The result is an Array, and the plain tensor argument keeps its class, also if it is returned unchanged."""

    def arrays(result: Any) -> Any:
        return [a for part in result for a in arrays(part)] if isinstance(result, (tuple, list)) else [result]

    x, y = cd.tensor([3.0, 1.0]), cd.tensor([2.0, 4.0])
    assert all(isinstance(one, Array) for one in arrays(call(x, y)))
    assert type(x) is type(y) is cd.Tensor


def test_arrays_iterate_copy_and_pickle_as_arrays() -> None:
    """Rows, deep copies and unpickled arrays are arrays."""
    x = xp.asarray(A)
    assert [type(row) for row in x] == [Array, Array]
    equal(copy.deepcopy(x), A)
    equal(pickle.loads(pickle.dumps(x)), A)  # noqa: S301 - what we pickled ourselves
