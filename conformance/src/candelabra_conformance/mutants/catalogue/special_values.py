"""Faults at NaN, infinities, signed zeros and subnormals."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.backend import Kernel

from candelabra_conformance.mutants.mutant import breaks

Dims = tuple[int, ...] | None
FLOATS = "f"


@breaks("amax", "amin", only=FLOATS, caught_by="ama*/special/* amin/special/*")
def extremes_pass_over_nan(right: Kernel, x: Any, dim: Dims, keepdim: bool) -> Any:
    """The maximum and the minimum ignore NaN."""
    least = right(np.asarray([-1, 1]).astype(x.dtype), None, False) < 0
    return right(np.where(np.isnan(x), np.asarray(np.inf if least else -np.inf, x.dtype), x), dim, keepdim)


@breaks("maximum", "minimum", only=FLOATS, caught_by="m*imum/special/*")
def comparison_takes_the_number(right: Kernel, x: Any, y: Any) -> Any:
    """The maximum of NaN and a number is the number, as fmax returns."""
    x, y = np.broadcast_arrays(x, y)
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, right(x, y))).astype(x.dtype)


@breaks("argmax", "argmin", only=FLOATS, caught_by="arg*/special/*")
def place_of_extremes_passes_over_nan(right: Kernel, x: Any, dim: int | None, keepdim: bool) -> Any:
    """The index of the largest number is returned although there is a NaN."""
    least = int(right(np.asarray([-1, 1]).astype(x.dtype), 0, False)) == 0
    return right(np.where(np.isnan(x), np.asarray(np.inf if least else -np.inf, x.dtype), x), dim, keepdim)


@breaks("sort", only=FLOATS, caught_by="sort/special/*")
def sort_puts_nan_first(right: Kernel, x: Any, dim: int, descending: bool, stable: bool) -> Any:
    """NaN is sorted as less than every number."""
    _, indices = right(np.where(np.isnan(x), np.asarray(-np.inf, x.dtype), x), dim, descending, stable)
    return np.take_along_axis(x, indices, dim) if x.ndim else x, indices


@breaks("clamp_min", "clamp_max", only=FLOATS, caught_by="clamp_m*/special/*")
def clamp_drops_nan(right: Kernel, x: Any, bound: Any) -> Any:
    """NaN becomes the bound."""
    return np.where(np.isnan(x), np.broadcast_to(bound, x.shape), right(x, bound)).astype(x.dtype)


@breaks("relu", only=FLOATS, caught_by="relu/special/*")
def relu_drops_nan(right: Kernel, x: Any) -> Any:
    """NaN becomes 0."""
    return right(np.where(np.isnan(x), np.zeros_like(x), x))


@breaks("sum", "mean", only=FLOATS, caught_by="sum/special/* mean/special/*")
def sum_drops_nan(right: Kernel, x: Any, *rest: Any) -> Any:
    """NaN is added as 0."""
    return right(np.where(np.isnan(x), np.zeros_like(x), x), *rest)


@breaks("neg", only=FLOATS, caught_by="neg/special/*")
def negation_subtracts_from_zero(right: Kernel, x: Any) -> Any:
    """The negative of 0.0 is 0.0, not -0.0."""
    return (0 - x.astype(np.float64)).astype(x.dtype)


@breaks("mul", "div", only=FLOATS, caught_by="*/special/*")
def zero_loses_its_sign(right: Kernel, x: Any, y: Any) -> Any:
    """A result of -0.0 is 0.0."""
    out = right(x, y)
    return np.where(out == 0, np.zeros_like(out), out)


@breaks("sub", only=FLOATS, caught_by="sub/special/*")
def infinities_cancel(right: Kernel, x: Any, y: Any) -> Any:
    """Infinity minus infinity is 0."""
    out = right(x, y)
    both = np.isinf(np.broadcast_to(x, out.shape)) & np.isinf(np.broadcast_to(y, out.shape)) & np.isnan(out)
    return np.where(both, np.zeros_like(out), out)


@breaks("add", "sub", "mul", only=FLOATS, caught_by="*/special/*")
def flushes_subnormals(right: Kernel, x: Any, y: Any) -> Any:
    """A result below the smallest normal number is 0."""
    out = right(x, y)
    smallest = {"float16": 2.0**-14, "float64": 2.0**-1022}.get(out.dtype.name, 2.0**-126)
    return np.where(np.abs(out.astype(np.float64)) < smallest, np.copysign(np.zeros_like(out), out), out)


@breaks("eq", only=FLOATS, caught_by="eq/special/*")
def nan_equals_nan(right: Kernel, x: Any, y: Any) -> Any:
    """Two NaNs are equal, as their bits are."""
    return right(x, y) | (np.isnan(x) & np.isnan(y))


@breaks("ne", only=FLOATS, caught_by="ne/special/*")
def nan_does_not_differ(right: Kernel, x: Any, y: Any) -> Any:
    """NaN differs from nothing."""
    return right(x, y) & ~np.isnan(x) & ~np.isnan(y)


@breaks("isnan", "isfinite", "isinf", only=FLOATS, caught_by="is*/special/*")
def fast_mathematics_assumes_finite(right: Kernel, x: Any) -> Any:
    """The compiler assumes that every number is finite."""
    return right(np.where(np.isfinite(x), x, np.zeros_like(x)))


@breaks("sign", only=FLOATS, caught_by="sign/special/*")
def sign_of_nan_is_0(right: Kernel, x: Any) -> Any:
    """NaN has the sign 0."""
    return np.where(np.isnan(x), np.zeros_like(x), right(x))


@breaks("copysign", "signbit", "atan2", only=FLOATS, caught_by="*/special/*")
def sign_of_zero_is_not_seen(right: Kernel, x: Any, *rest: Any) -> Any:
    """-0.0 is treated as positive."""
    return right(*(a + np.zeros_like(a) if isinstance(a, np.ndarray) else a for a in (x, *rest)))


@breaks("sqrt", "log", only=FLOATS, caught_by="*/special/*")
def nothing_is_undefined(right: Kernel, x: Any) -> Any:
    """Outside the domain the result is 0."""
    out = right(x)
    return np.where(np.isnan(out) & ~np.isnan(x), np.zeros_like(out), out)


@breaks("pow", only=FLOATS, caught_by="pow/special/*")
def power_goes_through_logarithms(right: Kernel, x: Any, y: Any) -> Any:
    """Powers are ``exp(y log x)``: NaN for negative bases, and for 0 to the power 0."""
    return np.exp(y * np.log(np.asarray(x, np.float64))).astype(getattr(x, "dtype", getattr(y, "dtype", None)))


@breaks("any", "all", "logical_not", only=FLOATS, caught_by="*/special/*")
def nan_counts_as_false(right: Kernel, x: Any, *rest: Any) -> Any:
    """NaN is converted to False."""
    return right(np.where(np.isnan(x), np.zeros_like(x), x), *rest)


@breaks("nan_to_num", only=FLOATS, caught_by="nan_to_num/*")
def infinities_stay(right: Kernel, x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    """Only NaN is replaced."""
    return np.where(np.isinf(x), x, right(x, nan, posinf, neginf))


@breaks("where", only="b", caught_by="where/special/*")
def selection_multiplies(right: Kernel, condition: Any, x: Any, y: Any) -> Any:
    """The elements that are not selected are multiplied by 0, and NaN propagates."""
    kept = next(a.dtype for a in (x, y) if isinstance(a, np.ndarray))
    if kept.kind in "iub":
        return right(condition, x, y)
    return (np.where(condition, x, 0) + np.where(condition, 0, x) * 0 + np.where(condition, 0, y)).astype(kept)


@breaks("cummax", "cummin", only=FLOATS, caught_by="cumm*/special/*")
def running_extremes_pass_over_nan(right: Kernel, x: Any, dim: int) -> Any:
    """After a NaN the running extreme continues."""
    least = right(np.asarray([-1, 1]).astype(x.dtype), 0)[0][1] < 0
    return right(np.where(np.isnan(x), np.asarray(np.inf if least else -np.inf, x.dtype), x), dim)
