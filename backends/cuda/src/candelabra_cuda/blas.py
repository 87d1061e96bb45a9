"""Products of matrices by cuBLAS: row-major operands as the transposes that it takes them for, no copies of views.

Half types are multiplied by the tensor cores and accumulated in float32. TF32 is off unless :data:`allow_tf32` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
from candelabra.dtypes import dtype
from candelabra.layout import contiguous_strides
from candelabra_clike import StridedArray
from candelabra_clike.kernels.attention import Multiply
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.layouts import broadcast

Kernel = Callable[..., Any]
Shape = tuple[int, ...]


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
    plan = planned(a.shape, a.strides, b.shape, b.strides)
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
    run(plan, out, a, b, kind, False)
    return out


def multiplying(d: dtype) -> Multiply:
    """``multiply(out, a, b, added)`` of a dtype: stacks of matrices, ``out`` contiguous, maybe float32 of halves.

    With ``added`` the products are added to what is there.
    """

    def multiply(out: StridedArray, a: StridedArray, b: StridedArray, added: bool) -> None:
        plan = planned(a.shape, a.strides, b.shape, b.strides)
        assert out.contiguous
        assert out.shape == plan.shape
        run(plan, out, a, b, KINDS[d.name], added)

    return multiply


# -- plans ------------------------------------------------------------------------------------------------------------
class Operand(NamedTuple):
    """A stack of matrices at one distance from each other, each with a stride of 1 along one of its dims."""

    transposed: bool
    """Whether the stride of 1 is along the rows' dim."""
    leading: int
    distance: int
    copied: tuple[Shape, Shape] | None = None
    """The shape and strides in which the array is copied first, where its own strides fit no such stack."""


class Plan(NamedTuple):
    """A product of arrays of certain shapes and strides: ``items`` products of (rows, inner) and (inner, columns)."""

    shape: Shape
    strides: Shape
    size: int
    a: Operand
    b: Operand
    items: int
    rows: int
    inner: int
    columns: int


@lru_cache(4096)
def planned(a: Shape, a_strides: Shape, b: Shape, b_strides: Shape) -> Plan:
    """The plan of a call. ``RuntimeError`` where the shapes do not fit."""
    left, left_strides = ((1, *a), (0, *a_strides)) if len(a) == 1 else (a, a_strides)
    right, right_strides = ((*b, 1), (*b_strides, 0)) if len(b) == 1 else (b, b_strides)
    (rows, inner), (inner2, columns) = left[-2:], right[-2:]
    if inner != inner2:
        raise RuntimeError(f"matmul: {a} and {b} do not fit")
    batch = broadcast([left[:-2], right[:-2]])
    shape = (*batch, *([rows] if len(a) > 1 else []), *([columns] if len(b) > 1 else []))
    first, second, items = stacked(left, left_strides, batch), stacked(right, right_strides, batch), prod(batch)
    if not second.distance and not first.transposed and first.distance == rows * first.leading:
        rows, items = rows * items, 1  # many matrices over one are one
    return Plan(shape, contiguous_strides(shape), prod(shape), first, second, items, rows, inner, columns)


def stacked(shape: Shape, strides: Shape, batch: Shape) -> Operand:
    """An array as cuBLAS takes it."""
    rows, columns = shape[-2:]
    by_row, by_column = strides[-2:]
    steps = _repeated(shape, strides, batch)
    distance = _distance(steps, batch)
    if distance is not None:
        if (by_column == 1 or columns == 1) and (by_row >= max(columns, 1) or rows == 1):
            return Operand(False, by_row if rows > 1 else max(columns, 1), distance)
        if (by_row == 1 or rows == 1) and (by_column >= max(rows, 1) or columns == 1):
            return Operand(True, by_column if columns > 1 else max(rows, 1), distance)
        if not distance:  # one matrix for all
            return Operand(False, max(columns, 1), 0, ((rows, columns), (by_row, by_column)))
    return Operand(False, max(columns, 1), rows * columns, ((*batch, rows, columns), (*steps, by_row, by_column)))


def _repeated(shape: Shape, strides: Shape, batch: Shape) -> Shape:
    """The steps of the stack's dims, 0 along those in which the array repeats."""
    missing = len(batch) + 2 - len(shape)
    pairs = zip(shape[:-2], strides[:-2], batch[missing:], strict=True)
    return (0,) * missing + tuple([0 if size == 1 != wanted else step for size, step, wanted in pairs])


def _distance(steps: Shape, batch: Shape) -> int | None:
    """The one distance between consecutive matrices of the stack, None where there is no such."""
    found: int | None = None
    inside = 1
    for size, step in zip(reversed(batch), reversed(steps), strict=True):
        if size == 1:
            continue
        if found is None:
            found = step
        elif step != found * inside:
            return None
        inside *= size
    return found or 0


# -- calls ------------------------------------------------------------------------------------------------------------
def run(plan: Plan, out: StridedArray, a: StridedArray, b: StridedArray, kind: Kind, added: bool) -> None:
    """cuBLAS is column-major: it is asked for the transpose, with the operands in the other order."""
    engine: Any = out.engine
    to = out.buffer + out.offset * out.dtype.itemsize
    if not plan.inner or not plan.size:
        if plan.size and not added:
            engine.runtime.memsetAsync(to, 0, out.size * out.dtype.itemsize, engine.enter())
        return
    first, second = plan.a, plan.b
    if first.copied:
        a = contiguous(a.restrided(*first.copied, a.offset))
    if second.copied:
        b = contiguous(b.restrided(*second.copied, b.offset))
    itemsize = a.dtype.itemsize
    compute = FAST_TF32 if allow_tf32 and kind.data == KINDS["float32"].data else kind.compute
    engine.enter()
    engine.cublas.gemmStridedBatchedEx(
        engine.blas_handle(), int(second.transposed), int(first.transposed), plan.columns, plan.rows, plan.inner,
        scalar(kind.scale, 1), b.buffer + b.offset * itemsize, kind.data, second.leading, second.distance,
        a.buffer + a.offset * itemsize, kind.data, first.leading, first.distance, scalar(kind.scale, added),
        to, KINDS[out.dtype.name].data, plan.columns, plan.rows * plan.columns, plan.items, compute, DEFAULT_ALGORITHM,
    )  # fmt: skip


_numbers: Final[list[np.ndarray[Any, Any]]] = []


@lru_cache(None)
def scalar(type: type, value: int) -> int:
    """The address of a number in the host's memory: cuBLAS reads alpha and beta there."""
    _numbers.append(np.array(value, type))
    return _numbers[-1].ctypes.data
