"""Products of matrices by cuBLAS: row-major operands as the transposes that it takes them for, no copies of views.

Half types are multiplied by the tensor cores and accumulated in float32. TF32 is off unless :data:`allow_tf32` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
from candelabra.dtypes import dtype
from candelabra_clike import StridedArray
from candelabra_clike.kernels.attention import Multiply
from candelabra_clike.kernels.copying import dense
from candelabra_clike.layouts import broadcast

Kernel = Callable[..., Any]


class Kind(NamedTuple):
    """A dtype at cuBLAS: ``cudaDataType``, ``cublasComputeType_t``, and the dtype of alpha and beta."""

    data: int
    compute: int
    scale: type


# Source: the enumerations in cuBLAS's documentation.
KINDS: Final[dict[str, Kind]] = {
    "float16": Kind(2, 68, np.float32),
    "bfloat16": Kind(14, 68, np.float32),
    "float32": Kind(0, 68, np.float32),
    "float64": Kind(1, 70, np.float64),
    "complex64": Kind(4, 68, np.complex64),
    "complex128": Kind(5, 70, np.complex128),
}
FAST_TF32: Final = 77
"""The compute type that rounds float32 operands to TF32."""
DEFAULT_ALGORITHM: Final = -1
allow_tf32 = False
"""Set to True for products of float32 in TF32: some eight times faster, with 10 bits of mantissa."""


class Matmul:
    """The kernel of ``matmul``. What cuBLAS has no type for goes to ``other``."""

    def __init__(self, other: Kernel | None) -> None:
        self._other = other

    def for_dtype(self, d: dtype) -> Kernel | None:
        """The function that serves a dtype."""
        kind = KINDS.get(d.name)
        if kind is not None:
            return lambda a, b: matmul(a, b, kind)
        choose = getattr(self._other, "for_dtype", None)
        return self._other if choose is None else choose(d)

    def __call__(self, a: StridedArray, b: StridedArray) -> StridedArray:
        kernel = self.for_dtype(a.dtype)
        if kernel is None:
            raise TypeError(f"matmul: cuBLAS has no {a.dtype}")
        result: StridedArray = kernel(a, b)
        return result


def matmul(a: StridedArray, b: StridedArray, kind: Kind) -> StridedArray:
    """NumPy's ``matmul``: vectors, matrices, and stacks of them that broadcast."""
    left = a.restrided((1, *a.shape), (0, *a.strides), a.offset) if len(a.shape) == 1 else a
    right = b.restrided((*b.shape, 1), (*b.strides, 0), b.offset) if len(b.shape) == 1 else b
    (rows, inner), (inner2, columns) = left.shape[-2:], right.shape[-2:]
    if inner != inner2:
        raise RuntimeError(f"matmul: {a.shape} and {b.shape} do not fit")
    batch = broadcast([left.shape[:-2], right.shape[:-2]])
    out: StridedArray = a.engine.empty((*batch, rows, columns), a.dtype)
    multiply(out, left, right, kind)
    shape = (*batch, *([rows] if len(a.shape) > 1 else []), *([columns] if len(b.shape) > 1 else []))
    return out if shape == out.shape else out.reshaped(shape)


class Operand(NamedTuple):
    """A stack of matrices at one distance from each other, each with a stride of 1 along one of its dims."""

    array: StridedArray
    transposed: bool
    """Whether the stride of 1 is along the rows' dim."""
    leading: int
    distance: int

    @property
    def address(self) -> int:
        return int(self.array.buffer + self.array.offset * self.array.dtype.itemsize)


def stacked(array: StridedArray, batch: tuple[int, ...]) -> Operand:
    """An array as cuBLAS takes it, copied only where its strides fit no such stack."""
    rows, columns = array.shape[-2:]
    by_row, by_column = array.strides[-2:]
    distance = _distance(array, batch)
    if distance is not None:
        if (by_column == 1 or columns == 1) and (by_row >= max(columns, 1) or rows == 1):
            return Operand(array, False, by_row if rows > 1 else max(columns, 1), distance)
        if (by_row == 1 or rows == 1) and (by_column >= max(rows, 1) or columns == 1):
            return Operand(array, True, by_column if columns > 1 else max(rows, 1), distance)
        if not distance:  # one matrix for all
            one = array.restrided((rows, columns), (by_row, by_column), array.offset)
            return Operand(dense(one), False, max(columns, 1), 0)
    whole = dense(array.restrided((*batch, rows, columns), _repeated(array, batch), array.offset))
    return Operand(whole, False, max(columns, 1), rows * columns)


def _repeated(array: StridedArray, batch: tuple[int, ...]) -> tuple[int, ...]:
    missing = len(batch) + 2 - len(array.shape)
    steps = [
        0 if size == 1 != wanted else step
        for size, step, wanted in zip(array.shape[:-2], array.strides[:-2], batch[missing:])
    ]
    return (0,) * missing + tuple(steps) + array.strides[-2:]


def _distance(array: StridedArray, batch: tuple[int, ...]) -> int | None:
    """The one distance between consecutive matrices of the stack, None where there is no such."""
    found: int | None = None
    inside = 1
    for size, step in zip(reversed(batch), reversed(_repeated(array, batch)[:-2])):
        if size == 1:
            continue
        if found is None:
            found = step
        elif step != found * inside:
            return None
        inside *= size
    return found or 0


def multiplying(d: dtype) -> Multiply:
    """``multiply(out, a, b, added)`` of a dtype; ``out`` is contiguous, and may be float32 where that is half."""
    return lambda out, a, b, added: multiply(out, a, b, KINDS[d.name], added)


def multiply(out: StridedArray, a: StridedArray, b: StridedArray, kind: Kind, added: bool = False) -> None:
    """Write stacks of products, or with ``added`` add them to what is there; ``a`` and ``b`` broadcast to the stack."""
    batch = out.shape[:-2]
    if out.size and a.shape[-1]:
        _multiply(out.engine, stacked(a, batch), stacked(b, batch), out, kind, added)
    elif out.size and not added:
        engine: Any = out.engine
        size = out.dtype.itemsize
        engine.runtime.memsetAsync(out.buffer + out.offset * size, 0, out.size * size, engine.enter())


def _multiply(engine: Any, a: Operand, b: Operand, out: StridedArray, kind: Kind, added: bool) -> None:
    """cuBLAS is column-major: it is asked for the transpose, with the operands in the other order."""
    assert out.contiguous
    cublas = engine.cublas
    rows, columns = out.shape[-2:]
    inner = a.array.shape[-1]
    compute = FAST_TF32 if allow_tf32 and kind.data == KINDS["float32"].data else kind.compute
    one: np.ndarray[Any, Any] = np.array(1, kind.scale)
    kept: np.ndarray[Any, Any] = np.array(int(added), kind.scale)
    engine.enter()
    cublas.gemmStridedBatchedEx(
        engine.blas_handle(), int(b.transposed), int(a.transposed), columns, rows, inner, one.ctypes.data,
        b.address, kind.data, b.leading, b.distance, a.address, kind.data, a.leading, a.distance, kept.ctypes.data,
        out.buffer + out.offset * out.dtype.itemsize, KINDS[out.dtype.name].data, columns, rows * columns,
        prod(out.shape[:-2]), compute, DEFAULT_ALGORITHM,
    )  # fmt: skip
