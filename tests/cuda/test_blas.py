"""The call of cuBLAS for each product: the double multiplies host memory as the call is documented."""

import ctypes
import itertools
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from candelabra.dtypes import complex64, float16, float32, float64, int32
from candelabra_cuda import blas
from candelabra_cuda.arrays import TO_NUMPY
from candelabra_cuda.blas import CUBLAS_TYPES, CublasMatmul, matmul


@pytest.fixture
def cublas(engine: Any, doubles: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replace cuBLAS by its double."""
    made = doubles.Cublas()
    monkeypatch.setattr(type(engine), "cublas", made)
    return made


def to_device(engine: Any, array: Any, d: Any) -> Any:
    """Copy an array from the host to the device."""
    made = engine.empty(array.shape, d)
    if array.size:
        engine.write(made.buffer, 0, memoryview(np.ascontiguousarray(array)).cast("B"))
    return made


def to_numpy(array: Any) -> Any:
    """Copy an array from the device to the host."""
    raw = array.engine.read(array.buffer, 0, array.size * array.dtype.itemsize)
    return np.frombuffer(raw, TO_NUMPY[array.dtype]).reshape(array.shape)


def to_view(array: Any) -> Any:
    """Return an array of NumPy over the memory of an array, which is host memory here."""
    size = array.dtype.itemsize
    count = 1 + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    memory = (ctypes.c_char * (count * size)).from_address(array.buffer + array.offset * size)
    flat = np.frombuffer(memory, TO_NUMPY[array.dtype])
    return np.lib.stride_tricks.as_strided(flat, array.shape, [s * size for s in array.strides])


def transposed(array: Any) -> Any:
    """Return a view with the last two dims exchanged."""
    shape, strides = list(array.shape), list(array.strides)
    shape[-2:], strides[-2:] = shape[:-3:-1], strides[:-3:-1]
    return array.restrided(tuple(shape), tuple(strides), array.offset)


SHAPES = [
    ((4, 5), (5, 3)), ((1, 5), (5, 1)), ((4, 1), (1, 3)), ((5,), (5,)), ((5,), (5, 3)), ((4, 5), (5,)),
    ((2, 4, 5), (2, 5, 3)), ((2, 4, 5), (5, 3)), ((4, 5), (2, 5, 3)),
    ((0, 5), (5, 3)), ((4, 0), (0, 3)), ((2, 3, 4, 5), (2, 3, 5, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize("d", [float32, float64, complex64], ids=lambda d: d.name)
def test_products_of_every_shape(engine: Any, cublas: Any, left: Any, right: Any, d: Any) -> None:
    """Products of vectors, matrices and broadcast stacks equal NumPy's."""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 4, shape).astype(d.name) for shape in (left, right))
    got = matmul(to_device(engine, a, d), to_device(engine, b, d), CUBLAS_TYPES[d.name])
    assert got.shape == (a @ b).shape
    np.testing.assert_array_equal(to_numpy(got), a @ b)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
@pytest.mark.parametrize("added", [False, True])
def test_products_have_any_layout(
    engine: Any, cublas: Any, order: tuple[int, ...], added: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result may be a view whose dims have any order in memory; cuBLAS writes it, or its copy, which is copied."""
    monkeypatch.setattr(blas, "clone", lambda x: to_device(engine, to_view(x), float32))
    monkeypatch.setattr(blas, "copy_into", lambda x, y: to_view(x).__setitem__(..., to_numpy(y)))
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 4, shape).astype("float32") for shape in ((2, 3, 4, 5), (2, 3, 5, 6)))
    whole = to_device(engine, rng.integers(-4, 4, [(2, 3, 4, 6)[d] for d in order]).astype("float32"), float32)
    steps = dict(zip(order, whole.strides, strict=True))
    out = whole.restrided((2, 3, 4, 6), tuple(steps[d] for d in range(4)), 0)
    wanted = a @ b + (to_view(out) if added else 0)
    blas.multiplying(float32)(out, to_device(engine, a, float32), to_device(engine, b, float32), added)
    np.testing.assert_array_equal(to_view(out), wanted)


def test_products_are_added_to_a_part_of_an_array(engine: Any, cublas: Any) -> None:
    """With beta the old values are added; without it they have no effect, not even NaN; an empty product adds 0."""
    rng = np.random.default_rng(2)
    a, b, c = (rng.integers(-4, 4, shape).astype("float32") for shape in ((2, 4, 5), (1, 5, 3), (3, 4, 3)))
    whole = to_device(engine, c, float32)
    part = whole.restrided((2, 4, 3), whole.strides, 12)
    multiply = blas.multiplying(float32)
    multiply(part, to_device(engine, a, float32), to_device(engine, b, float32), True)
    np.testing.assert_array_equal(to_numpy(whole), c + np.concatenate([np.zeros((1, 4, 3)), a @ b]))
    none = to_device(engine, a[:, :, :0], float32), to_device(engine, b[:, :0], float32)
    multiply(part, *none, True)
    np.testing.assert_array_equal(to_numpy(whole)[1:], c[1:] + a @ b)
    multiply(part, *none, False)
    assert not to_numpy(whole)[1:].any()
    np.testing.assert_array_equal(to_numpy(whole)[0], c[0])


def test_products_of_halves_may_stay_in_float32(engine: Any, cublas: Any) -> None:
    """The result may be in the accumulation dtype: float16 cannot represent 2049."""
    a, b = np.array([[2048.0, 1.0]], "float16"), np.array([[1.0], [1.0]], "float16")
    out = engine.empty((1, 1), float32)
    blas.multiplying(float16)(out, to_device(engine, a, float16), to_device(engine, b, float16), False)
    assert to_numpy(out).tolist() == [[2049.0]]


@pytest.mark.parametrize("flips", list(itertools.product([False, True], repeat=2)))
def test_transposed_operands_are_not_copied(engine: Any, cublas: Any, flips: Any) -> None:
    """A transposed view is passed to cuBLAS as it is."""
    rng = np.random.default_rng(2)
    a, b = rng.integers(-4, 4, (4, 5)).astype("f4"), rng.integers(-4, 4, (5, 3)).astype("f4")
    left, right = (to_device(engine, x.T if flip else x, float32) for x, flip in zip((a, b), flips, strict=True))
    left, right = (transposed(x) if flip else x for x, flip in zip((left, right), flips, strict=True))
    before = engine.pool.statistics(False)["allocated"]
    got = matmul(left, right, CUBLAS_TYPES["float32"])
    np.testing.assert_array_equal(to_numpy(got), a @ b)
    assert engine.pool.statistics(False)["allocated"] - before == 512  # Only the result is allocated.


def test_a_repeated_matrix_is_not_copied(engine: Any, cublas: Any) -> None:
    """A matrix with a stride of 0 along the stack is multiplied with every other one without a copy."""
    rng = np.random.default_rng(3)
    a, b = rng.integers(-4, 4, (7, 4, 5)).astype("f4"), rng.integers(-4, 4, (5, 3)).astype("f4")
    right = to_device(engine, b, float32).restrided((7, 5, 3), (0, 3, 1), 0)
    before = engine.pool.statistics(False)["allocated"]
    left = to_device(engine, a, float32)
    got = matmul(left, right, CUBLAS_TYPES["float32"])
    assert left.buffer
    np.testing.assert_array_equal(to_numpy(got), a @ b)
    # The other operand and the result are allocated.
    assert engine.pool.statistics(False)["allocated"] - before == 1024 + 512


def test_a_stack_that_repeats_unevenly_is_copied_by_a_kernel(engine: Any, cublas: Any, cupy: Any) -> None:
    """Matrices without a common stride are copied to one, with one launch per operand."""
    left, right = (
        to_device(engine, np.ones((2, 1, 4, 5), "f4"), float32),
        to_device(engine, np.ones((1, 3, 5, 2), "f4"), float32),
    )
    plan = blas.plan_gemm(left.shape, left.strides, right.shape, right.strides)
    for operand, size in ((plan.a, 20), (plan.b, 10)):
        assert (operand.distance, operand.transposed) == (size, False)
        assert operand.copied
        assert operand.copied[0][:2] == (2, 3)
    matmul(left, right, CUBLAS_TYPES["float32"])
    assert len(cupy.cuda.driver.launches) == 2


def test_a_stack_over_one_matrix_is_one_product(engine: Any, cublas: Any) -> None:
    """Contiguous rows of a stack are treated as one matrix; with gaps between matrices it stays a stack."""
    plan = blas.plan_gemm((6, 4, 5), (20, 5, 1), (5, 3), (3, 1))
    assert (plan.items, plan.rows) == (1, 24)
    assert blas.plan_gemm((6, 4, 5), (40, 5, 1), (5, 3), (3, 1)).items == 6
    assert blas.plan_gemm((6, 4, 5), (20, 1, 4), (5, 3), (3, 1)).items == 6


def test_tf32_is_off_unless_asked_for(engine: Any, cublas: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compute type is that of float32, and TF32 only if the setting enables it."""
    one = to_device(engine, np.ones((2, 2), "f4"), float32)
    matmul(one, one, CUBLAS_TYPES["float32"])
    monkeypatch.setattr(blas, "get_float32_matmul_precision", lambda: "high")
    matmul(one, one, CUBLAS_TYPES["float32"])
    assert cublas.calls == [68, 77]


def test_shapes_that_do_not_fit_are_refused(engine: Any, cublas: Any) -> None:
    """The inner sizes must agree; the core replaces the error by the operator's."""
    with pytest.raises(RuntimeError, match=r"matmul: shapes \(2, 3\) and \(2, 3\) do not match"):
        matmul(*[to_device(engine, np.ones((2, 3), "f4"), float32)] * 2, CUBLAS_TYPES["float32"])


def test_what_cublas_has_no_type_for_goes_to_the_other_kernel(engine: Any) -> None:
    """Integers are multiplied by the kernel in C; without one the error says so."""
    other = object()
    assert CublasMatmul(other).for_dtype(int32) is other
    one = to_device(engine, np.ones((2, 2), "i4"), int32)
    with pytest.raises(TypeError, match=r"cuBLAS does not support candelabra\.int32"):
        CublasMatmul(None)(one, one)
