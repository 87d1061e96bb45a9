"""Faults of error handling: invalid calls that return a result, errors of the wrong class, and their side effects."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.backend import Kernel
from candelabra.dtypes import dtype

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import breaks, breaks_backend, breaks_kernel


@breaks("index_select", "gather", caught_by="index_select/errors* gather/errors*")
def indices_go_round(right: Kernel, x: Any, dim: int, index: Any) -> Any:
    """An index out of bounds wraps around."""
    return right(x, dim, index % max(x.shape[dim] if x.ndim else 1, 1))


@breaks("embedding", caught_by="embedding/errors*")
def indices_are_clamped(right: Kernel, weight: Any, indices: Any, *rest: Any) -> Any:
    """An index out of bounds selects the last row."""
    return right(weight, np.clip(indices, 0, max(weight.shape[0] - 1, 0)), *rest)


@breaks("scatter_add", "scatter_src", "index_add", caught_by="*/errors*")
def writes_beyond_the_end_are_dropped(right: Kernel, x: Any, dim: int, index: Any, src: Any) -> Any:
    """An index out of bounds writes to the first element."""
    size = x.shape[dim] if x.ndim else 1
    return right(x, dim, np.where((index < 0) | (index >= size), 0, index), src)


@breaks("index", "index_put", caught_by="index/errors* index_put/errors*")
def places_beyond_the_end_are_the_first(right: Kernel, x: Any, indices: Any, *rest: Any) -> Any:
    """An index out of bounds in an index tensor is read as 0."""

    def inside(index: Any, size: int) -> Any:
        if index is None or index.dtype == bool:
            return index
        return np.where((index < -size) | (index >= size), 0, index)

    return right(x, [inside(i, n) for i, n in zip(indices, x.shape)], *rest)


@breaks("matmul", caught_by="matmul/errors*")
def products_cut_what_does_not_fit(right: Kernel, x: Any, y: Any) -> Any:
    """If the inner sizes differ, the smaller one is used."""
    if not x.ndim or not y.ndim:
        return right(x, y)
    axis = max(y.ndim - 2, 0)
    inner = min(x.shape[-1], y.shape[axis])
    return right(np.ascontiguousarray(x[..., :inner]), np.ascontiguousarray(y.take(range(inner), axis)))


@breaks("add", "maximum", "eq", caught_by="*/errors*")
def shapes_that_do_not_fit_are_repeated(right: Kernel, x: Any, y: Any) -> Any:
    """The second operand is repeated or truncated to the required shape."""
    try:
        return right(x, y)
    except Exception:
        if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)) or not y.size:
            raise
        return right(x, np.resize(y, x.shape))


@breaks("cat", caught_by="cat/errors*")
def parts_that_do_not_fit_are_cut(right: Kernel, inputs: Any, dim: int) -> Any:
    """Joined tensors are truncated to the smallest of their sizes."""
    try:
        return right(inputs, dim)
    except Exception:
        least = [min(sizes) for sizes in zip(*(p.shape for p in inputs), strict=True)]
        cut = [p[tuple(slice(None) if d == dim else slice(n) for d, n in enumerate(least))] for p in inputs]
        return right([np.ascontiguousarray(p) for p in cut], dim)


@breaks("floor_divide", "remainder", "fmod", only="iu", caught_by="*/errors* */special/*")
def division_by_0_is_0(right: Kernel, x: Any, y: Any) -> Any:
    """An integer divided by 0 is 0."""
    divisor = np.asarray(y, next(a.dtype for a in (x, y) if isinstance(a, np.ndarray)))
    out = right(x, np.where(divisor == 0, np.ones_like(divisor), divisor))
    return np.where(divisor == 0, np.zeros_like(out), out).astype(out.dtype)


@breaks("amax", "argmax", "amin", caught_by="*/errors*")
def the_greatest_of_nothing_is_0(right: Kernel, x: Any, dim: Any, keepdim: bool) -> Any:
    """An extreme over no elements is 0 instead of an error."""
    try:
        return right(x, dim, keepdim)
    except Exception:
        if x.size:
            raise
        axes = tuple(range(x.ndim)) if dim is None else dim if isinstance(dim, tuple) else (dim,)
        out = x.sum(axes, keepdims=keepdim)
        return out.astype(np.int64 if isinstance(dim, int) else x.dtype)


@breaks(
    "linalg_inv_ex",
    "linalg_cholesky_ex",
    "linalg_solve_ex",
    caught_by="*/errors* linalg_*/special/* */value/*",
    name="singular-matrices-are-not-told",
)
def singular_matrices_are_not_reported(right: Kernel, *args: Any) -> Any:
    """``info`` is always 0."""
    *values, info = right(*args)
    return (*values, np.zeros_like(info))


@breaks_kernel("index_put_", caught_by="index_put/errors*")
def errors_leave_traces(mirror: Mirror, right: Kernel, x: Image, *rest: Any) -> Any:
    """An in-place operator that raises has already overwritten its target."""
    try:
        return right(x, *rest)
    except Exception:
        zero = mirror.empty(x.index, x.shape, mirror.dtype_of(x))
        mirror.table["filled_"](zero, 0)
        mirror.copy_(x, zero)
        raise


@breaks_backend("floor_divide", "index_select", caught_by="*/errors*")
class ErrorsStay(Mirror):
    """After an error, the next call raises it too."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.last: Exception | None = None
        for operator, kernel in list(self.table.items()):
            self.table[operator] = self._sticky(kernel)

    def _sticky(self, right: Kernel) -> Kernel:
        def run(*args: Any) -> Any:
            error, self.last = self.last, None
            if error is not None:
                raise error
            try:
                return right(*args)
            except Exception as raised:
                self.last = raised
                raise

        return run


@breaks_backend(caught_by="device/out-of-memory*")
class NoRoomRaisesMemoryError(Mirror):
    """An allocation that exceeds the memory raises Python's MemoryError."""

    def empty(self, index: int, shape: tuple[int, ...], dtype: dtype) -> Any:
        """Raise MemoryError in place of the reference's error."""
        try:
            return super().empty(index, shape, dtype)
        except RuntimeError as error:
            raise MemoryError("out of memory") from error


@breaks_backend(caught_by="device/out-of-memory*")
class NoRoomIsNoMemory(Mirror):
    """An allocation that exceeds the memory succeeds without memory, and fails later."""

    def empty(self, index: int, shape: tuple[int, ...], dtype: dtype) -> Any:
        """Allocate one element and report the requested shape."""
        try:
            return super().empty(index, shape, dtype)
        except RuntimeError:
            image = super().empty(index, (1,), dtype)
            image.shape = shape
            return image


@breaks("random_multinomial", caught_by="random_multinomial/errors*")
def negative_weights_are_taken(right: Kernel, weights: Any, *rest: Any) -> Any:
    """A negative or NaN weight is used as its absolute value, or as 1."""
    return right(np.nan_to_num(np.abs(weights), nan=1.0, posinf=1.0).astype(weights.dtype), *rest)
