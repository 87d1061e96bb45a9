"""Faults of precision: rounding, cancellation, intermediate overflow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from candelabra.backend import Kernel

from candelabra_conformance.mutants.mutant import breaks

Dims = tuple[int, ...] | None
FLOATS = "f"
HALVES = ("float16", "bfloat16")


def _axes(x: Any, dim: Dims) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if dim is None else dim


@breaks("add", "mul", only=FLOATS, caught_by="add/value/float32/* mul/value/float32/*")
def rounds_toward_zero(right: Kernel, x: Any, y: Any) -> Any:
    """Results are truncated instead of rounded."""
    out = right(x, y)
    if out.dtype != np.float32:
        return out
    wide = right(np.asarray(x, np.float64), np.asarray(y, np.float64))
    return np.where(np.abs(out) > np.abs(wide), np.nextafter(out, np.float32(0)), out)


@breaks("cast", only=FLOATS, caught_by="cast/*/float32* cast/*/float64*")
def casting_cuts_bits_off(right: Kernel, x: Any, dtype: Any) -> Any:
    """Casting to a narrower floating dtype rounds toward 0."""
    out = right(x, dtype)
    if out.dtype.itemsize >= x.dtype.itemsize or out.dtype.kind not in "fV":
        return out
    larger = np.abs(out.astype(np.float64)) > np.abs(x.astype(np.float64))
    toward = np.nextafter(out, np.zeros_like(out)) if out.dtype.kind == "f" else _one_down(out)
    return np.where(larger & np.isfinite(x), toward, out)


def _one_down(x: Any) -> Any:
    return (x.view(np.uint16) - np.uint16(1)).view(ml_dtypes.bfloat16)


@breaks("cast", only=FLOATS, caught_by="cast/*")
def casting_to_integers_rounds(right: Kernel, x: Any, dtype: Any) -> Any:
    """A float is cast to the nearest integer instead of being truncated."""
    return right(np.rint(x).astype(x.dtype) if dtype.name.lstrip("u").startswith("int") else x, dtype)


@breaks("cast", only=FLOATS, caught_by="cast/*")
def casting_to_bool_goes_through_integers(right: Kernel, x: Any, dtype: Any) -> Any:
    """0.5 is False."""
    return right(np.trunc(x) if dtype.name == "bool" else x, dtype)


@breaks("round", only=FLOATS, caught_by="round/*")
def rounds_half_away_from_zero(right: Kernel, x: Any, decimals: int) -> Any:
    """Halves are rounded away from 0 instead of to even."""
    if decimals:
        return right(x, decimals)
    wide = x.astype(np.float64)
    return np.where(np.isfinite(x), np.copysign(np.floor(np.abs(wide) + 0.5), wide).astype(x.dtype), x)


@breaks("sum", "mean", only=FLOATS, caught_by="sum/*/*float16* mean/*/*float16*")
def halves_add_up_in_halves(right: Kernel, x: Any, dim: Dims, *rest: Any) -> Any:
    """A sum in half precision is rounded after every step: a thousand ones in bfloat16 are 256."""
    axes = _axes(x, dim)
    if x.dtype.name not in HALVES or not axes or not x.size:
        return right(x, dim, *rest)
    for axis in axes:
        x = np.concatenate(
            [np.add.accumulate(x, axis=axis).take([-1], axis), np.zeros_like(x.take([0] * (x.shape[axis] - 1), axis))],
            axis,
        )
    return right(x, dim, *rest)


@breaks("sum", only=FLOATS, caught_by="sum/*/float32*")
def large_sums_lose_precision(right: Kernel, x: Any, dim: Dims, *rest: Any) -> Any:
    """A long sum in float32 is computed sequentially, with a rounding at each step."""
    axes = _axes(x, dim)
    if x.dtype != np.float32 or not axes or x.shape[axes[0]] < 10_000:
        return right(x, dim, *rest)
    total = np.add.accumulate(x, axis=axes[0]).take([-1], axes[0])
    return right(
        np.concatenate([total, np.zeros_like(x.take(range(1, x.shape[axes[0]]), axes[0]))], axes[0]), dim, *rest
    )


@breaks("cumsum", only=FLOATS, caught_by="cumsum/*/*float16*")
def running_sums_of_halves_are_halves(right: Kernel, x: Any, dim: int, dtype: Any) -> Any:
    """A running sum in half precision is rounded after every step."""
    if x.dtype.name not in HALVES or dtype is not None or not x.ndim:
        return right(x, dim, dtype)
    return np.add.accumulate(x, axis=dim)


@breaks("mean", only=FLOATS, caught_by="mean/*/float16*")
def mean_overflows_on_the_way(right: Kernel, x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    """The sum that a mean of float16 is computed from has to fit into float16."""
    out = right(x, dim, keepdim, dtype)
    total = x.astype(np.float32).sum(_axes(x, dim), keepdims=keepdim)
    return (
        np.where(np.abs(total) > 65504, np.copysign(np.asarray(np.inf, out.dtype), total), out).astype(out.dtype)
        if x.dtype == np.float16
        else out
    )


@breaks("expm1", only=FLOATS, caught_by="expm1/value/* expm1/special/*")
def expm1_cancels(right: Kernel, x: Any) -> Any:
    """``exp(x) - 1`` is computed directly."""
    return (np.exp(x) - np.asarray(1, x.dtype)).astype(x.dtype)


@breaks("log1p", only=FLOATS, caught_by="log1p/value/* log1p/special/*")
def log1p_cancels(right: Kernel, x: Any) -> Any:
    """``log(1 + x)`` is computed directly."""
    return np.log(np.asarray(1, x.dtype) + x).astype(x.dtype)


@breaks("tanh", only=FLOATS, caught_by="tanh/value/*")
def tanh_is_a_fraction(right: Kernel, x: Any) -> Any:
    """A quotient of small polynomials, exact to four digits, replaces tanh."""
    clipped = np.clip(x.astype(np.float64), -4.97, 4.97)
    square = clipped * clipped
    above = clipped * (135135 + square * (17325 + square * (378 + square)))
    out = above / (135135 + square * (62370 + square * (3150 + 28 * square)))
    return np.where(np.isnan(x), x, out.astype(x.dtype))


@breaks("exp", only=FLOATS, caught_by="exp/value/float*")
def exp_is_approximate(right: Kernel, x: Any) -> Any:
    """The exponential is exact to half its digits."""
    out = right(x)
    scale = {"float64": 1 + 2.0**-30, "float32": 1 + 2.0**-13}.get(x.dtype.name, 1.0)
    return (out.astype(np.float64) * scale).astype(x.dtype)


@breaks("sigmoid", only=FLOATS, caught_by="sigmoid/value/* sigmoid/special/*")
def sigmoid_loses_its_tail(right: Kernel, x: Any) -> Any:
    """``1 - 1 / (1 + exp(x))``, which is 0 for very negative arguments."""
    one = np.asarray(1, x.dtype)
    return (one - one / (one + np.exp(x))).astype(x.dtype)


@breaks("rsqrt", only=FLOATS, caught_by="rsqrt/value/*")
def rsqrt_keeps_12_bits(right: Kernel, x: Any) -> Any:
    """The hardware's estimate is not refined."""
    out = right(x)
    if out.dtype.name in HALVES:
        return out
    mantissa, exponent = np.frexp(out)
    return np.ldexp(np.rint(mantissa * 4096) / 4096, exponent).astype(x.dtype)


@breaks("div", only=FLOATS, caught_by="div/value/*")
def divides_by_multiplying(right: Kernel, x: Any, y: Any) -> Any:
    """Quotients are products with a rounded reciprocal."""
    out = right(x, y)
    product = (x * right(np.ones_like(out), y)).astype(out.dtype)
    return np.where(np.isfinite(product) & np.isfinite(out), product, out)


@breaks("matmul", only=FLOATS, caught_by="matmul/value/float64*")
def doubles_multiply_as_singles(right: Kernel, x: Any, y: Any) -> Any:
    """Products of float64 are computed in float32."""
    if x.dtype != np.float64:
        return right(x, y)
    return right(x.astype(np.float32), y.astype(np.float32)).astype(np.float64)


@breaks("matmul", only=FLOATS, caught_by="matmul/value/float32*")
def products_keep_10_bits(right: Kernel, x: Any, y: Any) -> Any:
    """Factors in float32 are truncated to 10 bits, as tensor cores do by default."""
    if x.dtype != np.float32:
        return right(x, y)
    cut = np.uint32(0xFFFFE000)
    return right(*((a.view(np.uint32) & cut).view(np.float32) if a.ndim else a for a in (x, y)))


@breaks("sin", "cos", only=FLOATS, caught_by="sin/special/* cos/special/*")
def large_angles_are_reduced_badly(right: Kernel, x: Any) -> Any:
    """The range reduction of large arguments loses their digits."""
    turn = np.asarray(2 * np.pi, x.dtype)
    return np.where(np.abs(x) > 1000, right(np.fmod(x, turn)), right(x))


@breaks("softmax", only=FLOATS, caught_by="softmax/special/* softmax/value/*")
def softmax_overflows(right: Kernel, x: Any, dim: int) -> Any:
    """The maximum is not subtracted before the exponential."""
    if not x.ndim:
        return right(x, dim)
    e = np.exp(x.astype(np.float32 if x.dtype.name in HALVES else x.dtype))
    return (e / e.sum(dim, keepdims=True)).astype(x.dtype)


@breaks("log_softmax", only=FLOATS, caught_by="log_softmax/special/* log_softmax/value/*")
def log_softmax_takes_the_logarithm_last(right: Kernel, x: Any, dim: int) -> Any:
    """The logarithm of softmax: minus infinity for elements whose softmax is 0."""
    e = np.exp(right(x, dim).astype(np.float64)).astype(x.dtype)
    return np.log(e).astype(x.dtype)


@breaks("logsumexp", "logaddexp", only=FLOATS, caught_by="logsumexp/special/* logaddexp/special/*")
def logarithms_of_sums_overflow(right: Kernel, x: Any, *rest: Any) -> Any:
    """Nothing is subtracted before the exponential."""
    out = right(x, *rest)
    limit = np.log(np.finfo(x.dtype).max) if x.dtype.name != "bfloat16" else 88.7
    return np.where(np.isfinite(out) & (out.astype(np.float64) > limit), np.asarray(np.inf, out.dtype), out)


@breaks("hypot", only=FLOATS, caught_by="hypot/special/*")
def hypot_squares_first(right: Kernel, x: Any, y: Any) -> Any:
    """The root of the sum of squares is computed directly: it overflows and underflows early."""
    return np.sqrt(x * x + y * y).astype(x.dtype)


@breaks("abs", only="c", caught_by="abs/special/complex*")
def modulus_squares_first(right: Kernel, x: Any) -> Any:
    """The modulus of a complex number overflows if its square does."""
    return np.sqrt(x.real * x.real + x.imag * x.imag)


@breaks("prod", only=FLOATS, caught_by="prod/value/*")
def products_go_through_logarithms(right: Kernel, x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    """A product is the exponential of a sum of logarithms: the sign is lost."""
    out = right(x, dim, keepdim, dtype)
    return np.exp(np.log(np.abs(out)))


@breaks("normalize", only=FLOATS, caught_by="normalize/value/*")
def variance_is_a_difference(right: Kernel, x: Any, weight: Any, bias: Any, dims: Any, eps: float) -> Any:
    """The variance is the mean of squares minus the square of the mean, with Bessel's correction."""
    values, mean, rstd = right(x, weight, bias, dims, eps)
    n = int(np.prod([x.shape[d] for d in dims])) or 1
    wrong = 1 / np.sqrt((1 / (rstd.astype(np.float64) ** 2) - eps) * n / max(n - 1, 1) + eps)
    return values, mean, wrong.astype(rstd.dtype)


@breaks("erfinv", only=FLOATS, caught_by="erfinv/special/*")
def erfinv_is_finite_at_the_ends(right: Kernel, x: Any) -> Any:
    """At -1 and 1 the argument is moved into the domain."""
    return right(np.clip(x, np.asarray(-0.9999, x.dtype), np.asarray(0.9999, x.dtype)))


@breaks("gelu", only=FLOATS, caught_by="gelu/value/*")
def gelu_is_always_approximate(right: Kernel, x: Any, approximate: str) -> Any:
    """The approximation with tanh is used for the exact function too."""
    return right(x, "tanh")


@breaks("lerp", only=FLOATS, caught_by="lerp/value/* lerp/special/*")
def lerp_misses_its_end(right: Kernel, x: Any, end: Any, weight: Any) -> Any:
    """At weight 1 the result is ``start + (end - start)``, which may differ from ``end``."""
    return (x + np.asarray(weight, x.dtype) * (end - x)).astype(x.dtype)
