"""Sums, products, extrema and moments over axes, and ``all`` and ``any``.

Sums and products of integers have 64 bits and are signed if the elements are; those of floating dtypes keep the dtype.
An axis may be negative; several axes are a tuple; None means all axes.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable

from candelabra._annotations import Any
from candelabra._tensor import Tensor
from candelabra.array_api._array import Array, arrayed, axes_of, named
from candelabra.array_api._elementwise import titled
from candelabra.dtypes import BOOL, INTEGER, dtype, int64, uint64

Axis = int | tuple[int, ...] | None
Reduction = Callable[..., Array]


def _accumulator(x: Tensor, d: dtype | None) -> dtype:
    if d is not None:
        return d
    if x.dtype.category > INTEGER:
        return x.dtype
    return int64 if x.dtype.is_signed or x.dtype.category == BOOL else uint64


def _reduced(name: str, x: Tensor, axis: Axis, keepdims: bool, **options: Any) -> Array:
    """Return the reduction over ``axis``; ``()`` reduces no axis (in PyTorch, ``()`` means all)."""
    if axis == ():
        x, axis, keepdims = x.unsqueeze(0), 0, False
    return arrayed(named(name)(x, axes_of(axis, x.ndim), keepdim=keepdims, **options), x)


def _over_axes(name: str, doc: str, of: str = "") -> Reduction:
    def function(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
        return _reduced(of or name, x, axis, keepdims)

    return titled(function, name, doc)  # type: ignore[no-any-return]


def _question(name: str, doc: str) -> Reduction:
    def function(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
        return _reduced(name, x if x.dtype.category == BOOL else x != 0, axis, keepdims)

    return titled(function, name, doc)  # type: ignore[no-any-return]


def _accumulated(name: str, doc: str) -> Reduction:
    def function(x: Tensor, /, *, axis: Axis = None, dtype: dtype | None = None, keepdims: bool = False) -> Array:
        return _reduced(name, x, axis, keepdims, dtype=_accumulator(x, dtype))

    return titled(function, name, doc)  # type: ignore[no-any-return]


def _moment(name: str, doc: str) -> Reduction:
    def function(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
        return _reduced(name, x, axis, keepdims, correction=correction)

    return titled(function, name, doc)  # type: ignore[no-any-return]


sum = _accumulated("sum", "Return the sum of the elements, 0 if there are none.")
prod = _accumulated("prod", "Return the product of the elements, 1 if there are none.")
max = _over_axes("max", "Return the largest element; NaN if any element is.", "amax")
min = _over_axes("min", "Return the smallest element; NaN if any element is.", "amin")
mean = _over_axes("mean", "Return the arithmetic mean.")
std = _moment("std", "Return the standard deviation; divides by ``n - correction``.")
var = _moment("var", "Return the variance; divides by ``n - correction``.")
all = _question("all", "Return whether all elements are nonzero or True, also if there are none.")
any = _question("any", "Return whether any element is nonzero or True; False if there are none.")


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Return the number of elements that are nonzero or True, as int64."""
    return sum(x != 0 if x.dtype.category else x, axis=axis, keepdims=keepdims, dtype=int64)


def _cumulative(name: str, of: str, start: int, doc: str) -> Reduction:
    def function(
        x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
    ) -> Array:
        d = _one_axis(x, axis, name)
        result_dtype = _accumulator(x, dtype)
        out = named(of)(x, d, dtype=result_dtype)
        if include_initial:
            edge = list(x.shape)
            edge[d] = 1
            out = named("cat")([named("full")(edge, start, dtype=result_dtype, device=x.device), out], d)
        return arrayed(out)

    return titled(function, name, doc)  # type: ignore[no-any-return]


def _one_axis(x: Tensor, axis: int | None, name: str) -> int:
    if axis is not None:
        return axes_of(axis, x.ndim)[0]
    if x.ndim != 1:
        raise ValueError(f"{name}() expects axis= unless x is a vector, got {x.ndim} dims")
    return 0


cumulative_sum = _cumulative(
    "cumulative_sum", "cumsum", 0, "Return the cumulative sums of the elements; ``include_initial`` prepends a 0."
)
cumulative_prod = _cumulative(
    "cumulative_prod",
    "cumprod",
    1,
    "Return the cumulative products of the elements; ``include_initial`` prepends a 1.",
)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Array:
    """Return the ``n``-th differences of adjacent elements along ``axis``, after ``prepend`` and ``append`` are joined
    to ``x``.

    Raises ``ValueError`` for a negative ``n``.
    """
    if n < 0:
        raise ValueError(f"diff() expects a non-negative order n, got {n}")
    if n == 0:
        return arrayed(x, x)
    (d,) = axes_of(axis, x.ndim)
    operands = [operand for operand in (prepend, x, append) if operand is not None]
    out: Tensor = named("cat")(operands, d) if len(operands) > 1 else x
    for _ in range(builtins.min(n, out.shape[d])):
        later = out.narrow(d, 1, out.shape[d] - 1)
        earlier = out.narrow(d, 0, later.shape[d])
        out = later - earlier if out.dtype.category else later ^ earlier
    return arrayed(out, x)
