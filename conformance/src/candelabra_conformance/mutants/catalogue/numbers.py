"""Faults of numbers, computed by family: integers in floats, NaN with other bits, sums of halves, two roundings."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np
from candelabra.backend import Kernel

from candelabra_conformance.mutants.mutant import Array, HostKernel, breaks
from candelabra_conformance.numpy_dtypes import host_dtype

INTEGERS, FLOATS = "iu", "f"
HALVES: Final = ("float16", "bfloat16")


# -- integers in floats -----------------------------------------------------------------------------------------------
COMPARING: Final = (
    "eq", "ne", "lt", "ge", "maximum", "minimum", "sort", "argsort", "amax", "amin", "argmax", "argmin", "cummax",
    "cummin", "topk", "kthvalue", "median_dim", "sorted_place", "clamp_min", "clamp_max", "scatter_extreme", "sub",
    "mul", "sum", "cumsum", "matmul", "scatter_add", "bitwise_and", "full", "where",
)  # fmt: skip
"""Kernels that compare, order, combine or fill integers, of each family."""


def _in_floats(float_dtype: Any, below: int) -> HostKernel:
    """Return a fault: integers are rounded to a float dtype, except those beyond ``below``, which other cases try."""

    def rounded(value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype.kind in INTEGERS and value.dtype.itemsize >= 4:
            near = (value < below) & (value > (-below if value.dtype.kind == "i" else 0))
            return np.where(near, np.where(near, value, 0).astype(float_dtype).astype(value.dtype), value)
        if type(value) is int and 0 < value < below:
            return int(float_dtype(value))
        return value

    def kernel(right: Kernel, *args: Any) -> Any:
        return right(*(rounded(a) for a in args))

    kernel.__doc__ = f"Integers are read as {np.dtype(float_dtype).name}, in which neighbours are equal."
    kernel.__module__ = __name__
    return kernel


for _operator in COMPARING:
    for _float, _below in ((np.float32, 1 << 30), (np.float64, 1 << 60)):
        _name = f"{_operator}-reads-integers-as-{np.dtype(_float).name}"
        breaks(_operator, caught_by=f"{_operator}/special/*int*", name=_name.replace("_", "-"))(
            _in_floats(_float, _below)
        )


@breaks("arange", only=INTEGERS, caught_by="arange/special/*int*")
def integer_ranges_are_float32(right: Kernel, start: Any, step: Any, length: int, dtype: Any, device: Any) -> Any:
    """The numbers of an integer range are computed in float32."""
    out = right(start, step, length, dtype, device)
    if out.dtype.kind not in INTEGERS or out.dtype.itemsize < 4:
        return out
    return np.where(np.abs(out) < 1 << 30, out.astype(np.float32).astype(out.dtype), out)


# -- NaN with other bits ----------------------------------------------------------------------------------------------
def _bits(x: Array) -> Array:
    return x.view(f"u{x.dtype.itemsize}")


def _negative_nan(x: Any) -> Any:
    return np.isnan(x) & (np.signbit(x.astype(np.float64)))


def _smallest(right: Kernel, x: Any, *rest: Any) -> Any:
    """NaN with the sign bit is ordered before every number, as its bits are."""
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fV":
        return right(x, *rest)
    return right(np.where(_negative_nan(x), np.asarray(-np.inf, x.dtype), x), *rest)


for _operator in (
    "sort", "argsort", "amax", "amin", "argmax", "argmin", "maximum", "cummax", "topk", "kthvalue", "median_dim",
    "nanmedian_dim", "isnan",
):  # fmt: skip
    breaks(
        _operator, only=FLOATS, caught_by=f"{_operator}/special/*",
        name=f"{_operator}-orders-negative-nan-first".replace("_", "-"),
    )(_smallest)  # fmt: skip


@breaks("isnan", "nansum", "nanmean", only=FLOATS, caught_by="isnan/special/* nan*/special/*")
def only_the_usual_nan_is_nan(right: Kernel, x: Any, *rest: Any) -> Any:
    """NaN is recognized by its usual bits; one with a payload counts as a large number."""
    usual = _bits(np.array([np.nan]).astype(x.dtype))[0]
    return right(np.where(np.isnan(x) & (_bits(x) != usual), np.asarray(1e4, x.dtype), x), *rest)


@breaks("signbit", "copysign", only=FLOATS, caught_by="signbit/special/* copysign/special/*")
def nan_has_no_sign(right: Kernel, *args: Any) -> Any:
    """The sign bit of NaN is not read."""
    return right(*(np.where(np.isnan(a), np.abs(a), a) if isinstance(a, np.ndarray) else a for a in args))


@breaks("cast", only=FLOATS, caught_by="cast/special/*")
def payloads_are_cut_to_infinities(right: Kernel, x: Any, dtype: Any) -> Any:
    """NaN with all bits of the payload is rounded up in a narrower dtype: the carry makes it -0."""
    out = np.array(right(x, dtype))
    if dtype.name in HALVES and x.dtype.itemsize > 2:
        full = (1 << (8 * x.dtype.itemsize - 1)) - 1
        out[_bits(x) == full] = np.asarray(-0.0, out.dtype)
    return out


# -- sums of halves ---------------------------------------------------------------------------------------------------
def _added_in_steps(products: Array, axis: int) -> Any:
    """Return sums that are rounded after every step."""
    return np.add.accumulate(products, axis=axis).take(-1, axis)


@breaks("matmul", only=FLOATS, caught_by="matmul/special/*float16*")
def products_of_halves_are_added_in_halves(right: Kernel, x: Any, y: Any) -> Any:
    """A product in half precision is rounded after every addition."""
    if x.dtype.name not in HALVES or x.ndim < 1 or y.ndim < 1 or not x.size or not y.size:
        return right(x, y)
    if x.ndim > 2 or y.ndim > 2:
        return right(x, y)
    rows, columns = np.atleast_2d(x), y.reshape(len(y), -1)
    products = (rows[:, :, None] * columns[None]).astype(x.dtype)
    return _added_in_steps(products, 1).astype(x.dtype).reshape(x.shape[:-1] + y.shape[1:])


@breaks("linalg_vector_norm", only=FLOATS, caught_by="linalg_vector_norm/special/*float16*")
def squares_of_halves_are_halves(right: Kernel, x: Any, order: float, dim: Any, keepdim: bool) -> Any:
    """The squares in a norm are rounded to half precision, in which they overflow."""
    out = right(x, order, dim, keepdim)
    if x.dtype != np.float16 or order != 2:
        return out
    return np.where(out.astype(np.float32) ** 2 > 65504, np.asarray(np.inf, x.dtype), out).astype(x.dtype)


@breaks("softmax", "log_softmax", only=FLOATS, caught_by="softmax/special/*float16* log_softmax/special/*float16*")
def exponentials_of_halves_are_added_in_halves(right: Kernel, x: Any, dim: int) -> Any:
    """The sum of exponentials stops at the largest integer that half precision counts to."""
    out = right(x, dim)
    most = {"float16": 2048, "bfloat16": 256}.get(x.dtype.name)
    if most is None or not x.ndim or x.shape[dim] <= most:
        return out
    ratio = x.shape[dim] / most
    logarithmic = bool(np.all(out.astype(np.float32) <= 0))
    return (out.astype(np.float32) + np.log(ratio) if logarithmic else out.astype(np.float32) * ratio).astype(x.dtype)


@breaks("normalize", only=FLOATS, caught_by="normalize/special/*float16*")
def variances_of_halves_are_halves(right: Kernel, x: Any, weight: Any, bias: Any, dims: Any, eps: float) -> Any:
    """The variance is rounded to half precision, in which it overflows, so that the results are 0."""
    values, mean, rstd = right(x, weight, bias, dims, eps)
    if x.dtype != np.float16:
        return values, mean, rstd
    large = np.broadcast_to(rstd.astype(np.float64) < 65504**-0.5, values.shape)
    return np.where(large, np.zeros_like(values), values), mean, rstd


@breaks("sum_pool", only=FLOATS, caught_by="sum_pool/special/*float16*")
def windows_of_halves_are_added_in_halves(right: Kernel, x: Any, *rest: Any) -> Any:
    """The sum of a window stops at the largest integer that half precision counts to."""
    out = right(x, *rest)
    most = {"float16": 2048, "bfloat16": 256}.get(x.dtype.name)
    return out if most is None else np.minimum(out, np.asarray(most, out.dtype))


@breaks("conv", only=FLOATS, caught_by="conv/special/*float16*")
def kernels_of_halves_are_added_in_halves(right: Kernel, x: Any, weight: Any, *rest: Any) -> Any:
    """The sum of a convolution stops at the largest integer that half precision counts to."""
    out = right(x, weight, *rest)
    most = {"float16": 2048, "bfloat16": 256}.get(x.dtype.name)
    return out if most is None else np.minimum(out, np.asarray(most, out.dtype))


@breaks("linspace", caught_by="linspace/special/*float16*")
def distances_of_halves_are_halves(right: Kernel, start: Any, end: Any, steps: int, dtype: Any, device: Any) -> Any:
    """The distance of the ends is computed in half precision, in which it overflows."""
    out = np.array(right(start, end, steps, dtype, device))
    if out.dtype == np.float16 and not np.isfinite(np.float16(end) - np.float16(start)):
        out[1:] = np.inf
    return out


# -- two roundings ----------------------------------------------------------------------------------------------------
def _cast_through(wide: Any, source: str, target: str) -> HostKernel:
    def kernel(right: Kernel, x: Any, dtype: Any) -> Any:
        if x.dtype.name not in source.split() or dtype.name != target:
            return right(x, dtype)
        return x.astype(wide).astype(host_dtype(dtype))

    kernel.__doc__ = f"A cast of {source.replace(' ', ' or ')} to {target} is rounded to {np.dtype(wide).name} first."
    kernel.__module__ = __name__
    return kernel


breaks("cast", caught_by="cast/special/float64*", name="doubles-become-halves-by-singles")(
    _cast_through(np.float32, "float64", "float16")
)
breaks("cast", caught_by="cast/special/*int64*", name="integers-become-singles-by-doubles")(
    _cast_through(np.float64, "int64 uint64", "float32")
)
breaks("cast", caught_by="cast/special/* cast/value/*", name="doubles-become-singles-by-bfloat16")(
    _cast_through(ml_dtypes.bfloat16, "float64", "float32")
)


# -- numbers of Python, and complex quotients -------------------------------------------------------------------------
def _numbers_in_float32(right: Kernel, *args: Any) -> Any:
    """A Python number is passed as float32, also to a kernel of float64."""
    return right(*(float(np.float32(a)) if type(a) is float else a for a in args))


for _operator in ("add", "sub", "mul", "div", "eq", "lt", "pow", "full", "where", "fmod"):
    breaks(_operator, caught_by=f"{_operator}/*/float64/* {_operator}/*/complex128/*",
           name=f"{_operator}-takes-numbers-as-float32")(_numbers_in_float32)  # fmt: skip


@breaks("div", only="c", caught_by="div/special/complex*")
def complex_quotients_square_the_divisor(right: Kernel, x: Any, y: Any) -> Any:
    """A complex quotient is the product with the conjugate over the squared modulus, which overflows."""
    out = right(x, y)
    with np.errstate(all="ignore"):
        divisor = np.asarray(y).astype(out.dtype)
        return (x * np.conj(divisor) / (divisor.real**2 + divisor.imag**2)).astype(out.dtype)


# -- moved elements ---------------------------------------------------------------------------------------------------
def _usual_nans(right: Kernel, *args: Any) -> Any:
    """Elements pass through a floating operation on their way, which replaces NaN by the usual one."""
    out = np.array(right(*args))
    if out.dtype.kind in "fV":
        out[np.isnan(out)] = np.nan
    return out


for _operator in ("cat", "clone", "flip", "gather", "index", "index_select", "masked_select", "scatter_src", "where"):
    breaks(_operator, caught_by=f"{_operator}/bits/*", name=f"{_operator}-changes-nan".replace("_", "-"))(_usual_nans)
