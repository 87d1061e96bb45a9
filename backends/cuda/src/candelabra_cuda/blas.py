"""Matrix products by cuBLAS. Row-major operands are passed as transposed column-major ones, so views need no copies.

Half types use the tensor cores and accumulate in float32. TF32 is disabled unless `set_float32_matmul_precision` allows
it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
from candelabra import get_float32_matmul_precision
from candelabra.backend import contiguous_strides
from candelabra.dtypes import dtype
from candelabra_clike import StridedArray
from candelabra_clike.kernels.attention import Multiply
from candelabra_clike.kernels.copies import clone, contiguous, copy_into, filled_
from candelabra_clike.layouts import broadcast

Kernel = Callable[..., Any]
Shape = tuple[int, ...]


class CublasType(NamedTuple):
    """The types of a dtype in cuBLAS: ``cudaDataType``, ``cublasComputeType_t``, and the dtype of alpha and beta."""

    data: int
    compute: int
    scale: type


# Source: the enumerations in the documentation of cuBLAS.
CUBLAS_TYPES: Final[dict[str, CublasType]] = {
    "float16": CublasType(2, 68, np.float32),
    "bfloat16": CublasType(14, 68, np.float32),
    "float32": CublasType(0, 68, np.float32),
    "float64": CublasType(1, 70, np.float64),
    "complex64": CublasType(4, 68, np.complex64),
    "complex128": CublasType(5, 70, np.complex128),
}
FAST_TF32: Final = 77
"""The compute type that rounds float32 operands to TF32."""
DEFAULT_ALGORITHM: Final = -1


class CublasMatmul:
    """The kernel of ``matmul``. ``other`` multiplies dtypes that cuBLAS does not support."""

    def __init__(self, other: Kernel | None) -> None:
        self._other = other

    def for_dtype(self, d: dtype) -> Kernel | None:
        """Return the function for a dtype."""
        kind = CUBLAS_TYPES.get(d.name)
        if kind is not None:
            return lambda a, b: matmul(a, b, kind)
        choose = getattr(self._other, "for_dtype", None)
        return self._other if choose is None else choose(d)

    def __call__(self, a: StridedArray, b: StridedArray) -> StridedArray:
        kernel = self.for_dtype(a.dtype)
        if kernel is None:
            raise TypeError(f"matmul: cuBLAS does not support {a.dtype}")
        result: StridedArray = kernel(a, b)
        return result


def matmul(a: StridedArray, b: StridedArray, kind: CublasType) -> StridedArray:
    """``matmul`` as in NumPy: vectors, matrices, and batches of matrices that broadcast."""
    plan = plan_gemm(a.shape, a.strides, b.shape, b.strides)
    engine = a.engine
    out = StridedArray(
        engine,
        engine.allocate(plan.size * a.dtype.itemsize or 1),
        plan.shape,
        plan.strides,
        0,
        a.dtype,
        plan.size,
        True,
    )
    run_gemm(plan, out, a, b, kind, False)
    return out


def multiplying(d: dtype) -> Multiply | None:
    """Return ``multiply(out, a, b, added)`` for batches of matrices, or None for a dtype that cuBLAS does not support.

    ``out`` may be float32 for half types, and has any layout. With ``added``, the product is added to it.
    """
    kind = CUBLAS_TYPES.get(d.name)
    if kind is None:
        return None

    def multiply(out: StridedArray, a: StridedArray, b: StridedArray, added: bool) -> None:
        plan = plan_gemm(a.shape, a.strides, b.shape, b.strides, out.strides)
        assert out.shape == plan.shape
        if plan.out.copied or plan.out.transposed:
            whole = clone(out) if added else out.engine.empty(out.shape, out.dtype)
            multiply(whole, a, b, added)
            copy_into(out, whole)
        else:
            run_gemm(plan, out, a, b, kind, added)

    return multiply


# -- plans ------------------------------------------------------------------------------------------------------------
class GemmOperand(NamedTuple):
    """A batch of matrices at a constant distance, each with a stride of 1 along one of its dims."""

    transposed: bool
    """Whether the stride along the rows' dim is 1."""
    leading: int
    distance: int
    copied: tuple[Shape, Shape] | None = None
    """Shape and strides of a copy that is made first if the strides of the array do not form such a batch."""


class GemmPlan(NamedTuple):
    """A product of arrays of certain shapes and strides: ``items`` products of (rows, inner) and (inner, columns)."""

    shape: Shape
    strides: Shape
    size: int
    out: GemmOperand
    a: GemmOperand
    b: GemmOperand
    items: int
    rows: int
    inner: int
    columns: int


@lru_cache(4096)
def plan_gemm(a: Shape, a_strides: Shape, b: Shape, b_strides: Shape, out_strides: Shape | None = None) -> GemmPlan:
    """Return the plan of a call. Raises ``RuntimeError`` if the shapes do not match. A result without strides is
    contiguous.
    """
    left, left_strides = ((1, *a), (0, *a_strides)) if len(a) == 1 else (a, a_strides)
    right, right_strides = ((*b, 1), (*b_strides, 0)) if len(b) == 1 else (b, b_strides)
    (rows, inner), (inner2, columns) = left[-2:], right[-2:]
    if inner != inner2:
        raise RuntimeError(f"matmul: shapes {a} and {b} do not match")
    batch = broadcast([left[:-2], right[:-2]])
    shape = (*batch, *([rows] if len(a) > 1 else []), *([columns] if len(b) > 1 else []))
    first, second, items = (
        gemm_operand(left, left_strides, batch),
        gemm_operand(right, right_strides, batch),
        prod(batch),
    )
    matrices = (*batch, rows, columns)
    out = gemm_operand(matrices, out_strides or contiguous_strides(matrices), batch)
    in_order = first.distance == rows * first.leading and out.distance == rows * out.leading
    if not second.distance and not first.transposed and in_order:
        rows, items = rows * items, 1  # a batch of matrices times one matrix is one product
    return GemmPlan(
        shape, out_strides or contiguous_strides(shape), prod(shape), out, first, second, items, rows, inner, columns
    )


def gemm_operand(shape: Shape, strides: Shape, batch: Shape) -> GemmOperand:
    """Return the operand for an array."""
    rows, columns = shape[-2:]
    by_row, by_column = strides[-2:]
    steps = _batch_strides(shape, strides, batch)
    distance = _batch_distance(steps, batch)
    if distance is not None:
        if (by_column == 1 or columns == 1) and (by_row >= max(columns, 1) or rows == 1):
            return GemmOperand(False, by_row if rows > 1 else max(columns, 1), distance)
        if (by_row == 1 or rows == 1) and (by_column >= max(rows, 1) or columns == 1):
            return GemmOperand(True, by_column if columns > 1 else max(rows, 1), distance)
        if not distance:  # one matrix for the whole batch
            return GemmOperand(False, max(columns, 1), 0, ((rows, columns), (by_row, by_column)))
    return GemmOperand(False, max(columns, 1), rows * columns, ((*batch, rows, columns), (*steps, by_row, by_column)))


def _batch_strides(shape: Shape, strides: Shape, batch: Shape) -> Shape:
    """Return the strides of the batch dims, 0 along broadcast dims."""
    missing = len(batch) + 2 - len(shape)
    pairs = zip(shape[:-2], strides[:-2], batch[missing:], strict=True)
    return (0,) * missing + tuple([0 if size == 1 != expanded else step for size, step, expanded in pairs])


def _batch_distance(steps: Shape, batch: Shape) -> int | None:
    """Return the constant distance between consecutive matrices of the batch, or None if it is not constant."""
    distance: int | None = None
    inside = 1
    for size, step in zip(reversed(batch), reversed(steps), strict=True):
        if size == 1:
            continue
        if distance is None:
            distance = step
        elif step != distance * inside:
            return None
        inside *= size
    return distance or 0


# -- calls ------------------------------------------------------------------------------------------------------------
def run_gemm(
    plan: GemmPlan, out: StridedArray, a: StridedArray, b: StridedArray, kind: CublasType, added: bool
) -> None:
    """Compute the product. cuBLAS is column-major, so it computes the transpose, with the operands exchanged."""
    engine: Any = out.engine
    to = out.buffer + out.offset * out.dtype.itemsize
    if not plan.inner or not plan.size:
        if plan.size and not added and out.contiguous:
            engine.runtime.memsetAsync(to, 0, out.size * out.dtype.itemsize, engine.enter())
        elif plan.size and not added:
            filled_(out, 0)
        return
    first, second = plan.a, plan.b
    if first.copied:
        a = contiguous(a.restrided(*first.copied, a.offset))
    if second.copied:
        b = contiguous(b.restrided(*second.copied, b.offset))
    itemsize = a.dtype.itemsize
    allow_tf32 = kind.data == CUBLAS_TYPES["float32"].data and get_float32_matmul_precision() != "highest"
    compute = FAST_TF32 if allow_tf32 else kind.compute
    engine.enter()
    engine.host_calls += 1  # CuPy refuses cuBLAS while launches are captured
    engine.cublas.gemmStridedBatchedEx(
        engine.blas_handle(), int(second.transposed), int(first.transposed), plan.columns, plan.rows, plan.inner,
        scalar_address(kind.scale, 1), b.buffer + b.offset * itemsize, kind.data, second.leading, second.distance,
        a.buffer + a.offset * itemsize, kind.data, first.leading, first.distance, scalar_address(kind.scale, added), to,
        CUBLAS_TYPES[out.dtype.name].data, plan.out.leading, plan.out.distance, plan.items, compute,
        DEFAULT_ALGORITHM,
    )  # fmt: skip


_numbers: Final[list[np.ndarray[Any, Any]]] = []


@lru_cache(None)
def scalar_address(type: type, value: int) -> int:
    """Return the address of a number in host memory, where cuBLAS reads alpha and beta."""
    _numbers.append(np.array(value, type))
    return _numbers[-1].ctypes.data
