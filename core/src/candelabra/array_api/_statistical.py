"""Sums, products, extremes and moments over axes, and questions of all elements.

Sums and products of integers have 64 bits, with or without a sign as the elements; those of floating dtypes keep
theirs. An axis may be negative; several are a tuple; None means all.
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
    """The reduction over ``axis``; over no axis, ``()``, that of each element alone (PyTorch's ``()`` means all)."""
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


sum = _accumulated("sum", "The sum of the elements; that of none is 0.")
prod = _accumulated("prod", "The product of the elements; that of none is 1.")
max = _over_axes("max", "The largest element; NaN where one is.", "amax")
min = _over_axes("min", "The smallest element; NaN where one is.", "amin")
mean = _over_axes("mean", "The arithmetic mean.")
std = _moment("std", "The standard deviation; divides by ``n - correction``.")
var = _moment("var", "The variance; divides by ``n - correction``.")
all = _question("all", "Whether all elements are nonzero or True; of none: yes.")
any = _question("any", "Whether any element is nonzero or True; of none: no.")


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements are nonzero or True, as int64."""
    return sum(x != 0 if x.dtype.category else x, axis=axis, keepdims=keepdims, dtype=int64)


def _cumulative(name: str, of: str, start: int, doc: str) -> Reduction:
    def function(
        x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None, include_initial: bool = False
    ) -> Array:
        d = _one_axis(x, axis, name)
        kept = _accumulator(x, dtype)
        out = named(of)(x, d, dtype=kept)
        if include_initial:
            edge = list(x.shape)
            edge[d] = 1
            out = named("cat")([named("full")(edge, start, dtype=kept, device=x.device), out], d)
        return arrayed(out)

    return titled(function, name, doc)  # type: ignore[no-any-return]


def _one_axis(x: Tensor, axis: int | None, name: str) -> int:
    if axis is not None:
        return axes_of(axis, x.ndim)[0]
    if x.ndim != 1:
        raise ValueError(f"{name}(): name the axis, for only a vector has no more than one and this has {x.ndim} dims")
    return 0


cumulative_sum = _cumulative(
    "cumulative_sum", "cumsum", 0, "The sums of the elements up to each; with ``include_initial`` a 0 first."
)
cumulative_prod = _cumulative(
    "cumulative_prod",
    "cumprod",
    1,
    "The products of the elements up to each; with ``include_initial`` a 1 first.",
)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Array:
    """The ``n``-th differences of neighbours along ``axis``, with arrays put before and after first.

    ``ValueError`` for a negative ``n``.
    """
    if n < 0:
        raise ValueError(f"diff(): the order n of the difference may not be negative, got {n}")
    if n == 0:
        return arrayed(x, x)
    (d,) = axes_of(axis, x.ndim)
    parts = [part for part in (prepend, x, append) if part is not None]
    out: Tensor = named("cat")(parts, d) if len(parts) > 1 else x
    for _ in range(builtins.min(n, out.shape[d])):
        later = out.narrow(d, 1, out.shape[d] - 1)
        earlier = out.narrow(d, 0, later.shape[d])
        out = later - earlier if out.dtype.category else later ^ earlier
    return arrayed(out, x)
