"""Conversion between strided arrays and CuPy's arrays over the same memory, for kernels that CuPy implements."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np
from candelabra.dtypes import ALL, dtype
from candelabra_clike import StridedArray

if TYPE_CHECKING:
    from candelabra_cuda.engine import CudaEngine

TO_NUMPY: Final[dict[dtype, np.dtype[Any]]] = {
    d: np.dtype(ml_dtypes.bfloat16 if d.name == "bfloat16" else d.name) for d in ALL
}
FROM_NUMPY: Final = {n: d for d, n in TO_NUMPY.items()}


def to_cupy(array: StridedArray) -> Any:
    """Return a ``cupy.ndarray`` over the memory of an array."""
    engine: Any = array.engine
    size = array.dtype.itemsize
    pointer = array.buffer.owner + array.offset * size
    return engine.cupy.ndarray(
        array.shape, TO_NUMPY[array.dtype], pointer, tuple(step * size for step in array.strides)
    )


def aligned(array: Any) -> Any:
    """Return an array of CuPy, or a copy if its address is not a multiple of the size of a complex element.

    cuFFT's transforms of real numbers refuse other addresses, which a view with an odd offset has.
    """
    return array.copy() if array.data.ptr % (2 * array.itemsize) else array


def from_cupy(array: Any, engine: CudaEngine) -> StridedArray:
    """Return an array over the memory of a ``cupy.ndarray``."""
    if any(step < 0 for step in array.strides):
        array = array.copy()
    strides = tuple(step // array.itemsize for step in array.strides)
    memory = StridedArray(
        engine, engine.pool.adopt(array.data), array.shape, strides, 0, FROM_NUMPY[array.dtype], array.size, False
    )
    return memory.restrided(array.shape, strides, 0)


def over_cupy(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel on strided arrays that calls a kernel on CuPy's arrays."""

    @wraps(kernel)
    def converted(*args: Any) -> Any:
        engine = _engine_of(args)
        engine.enter()
        engine.host_calls += 1
        with engine.pool.serving_cupy():
            result = kernel(*[_argument_to_cupy(argument) for argument in args])
        return _result_from_cupy(result, engine)

    return converted


def _argument_to_cupy(value: Any) -> Any:
    if type(value) is StridedArray:
        return to_cupy(value)
    if type(value) in (list, tuple) and any(type(part) is StridedArray for part in value):
        return type(value)(_argument_to_cupy(part) for part in value)
    return value


def _result_from_cupy(value: Any, engine: CudaEngine) -> Any:
    if isinstance(value, engine.cupy.ndarray):
        return from_cupy(value, engine)
    if isinstance(value, tuple):
        return tuple(_result_from_cupy(part, engine) for part in value)
    return value


def _engine_of(args: Any) -> Any:
    for value in args:
        if type(value) is StridedArray:
            return value.engine
        if type(value) in (list, tuple):
            engine = _engine_of(value)
            if engine is not None:
                return engine
    return None
