"""Sums, products, means, extremes, logical reductions and counts over any dims."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from candelabra.dtypes import BOOL, COMPLEX, FLOATING, bool_, dtype, float32, float64, int64, uint8

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.reductions.fold import Fold
from candelabra_clike.templates.reductions.reduction import Reduction
from candelabra_clike.types import CTYPES

Dims = Shape | None
Folds = Callable[[bool], Fold]
"""A fold for devices with or without float64."""

LOWEST = {"f32": "BITS_F32(0xFF800000u)", "f64": "BITS_F64(0xFFF0000000000000ul)", "u8": "0", "u16": "0", "u32": "0"}
LOWEST |= {"i8": "(-128)", "i16": "(-32768)", "i32": "(-2147483647 - 1)", "u64": "0"}
LOWEST["i64"] = "(-9223372036854775807l - 1)"
HIGHEST = {"f32": "BITS_F32(0x7F800000u)", "f64": "BITS_F64(0x7FF0000000000000ul)", "u8": "255", "u16": "65535"}
HIGHEST |= {"i8": "127", "i16": "32767", "i32": "2147483647", "u32": "0xFFFFFFFFu"}
HIGHEST |= {"i64": "9223372036854775807l", "u64": "0xFFFFFFFFFFFFFFFFul"}
"""The identity elements of maximum and minimum."""


def accumulator_type(d: dtype, wide: bool) -> str:
    """Return the type of totals of a floating dtype: the next wider one if the device has it."""
    return "f64" if wide or d.itemsize == 8 else "f32"


def sum_fold(d: dtype, each: str = "{x}", result: str = "{t}", vectorizes: bool = True) -> Folds:
    """Return the sum fold of a real floating dtype. ``{T}`` in the result is the type of the total."""
    lane = CTYPES[d].value

    def fold(wide: bool) -> Fold:
        total = accumulator_type(d, wide)
        return Fold(each, "{a} + {b}", "0", lane, total, result.replace("{T}", total), vectorizes)

    return fold


def _sum_of(source: dtype, target: dtype) -> Reduction:
    """Return the sum of elements that are cast to ``target``, a real or integer dtype, as they are loaded."""
    name = f"sum_{source.name}" + ("" if source is target else f"_{target.name}")
    each = cast_of(source, target)
    if target.category == FLOATING:
        return Reduction(name, sum_fold(target, each), CTYPES[source], target)
    value = CTYPES[target].value
    if target.category == BOOL:
        fold = Fold(each, "{a} | {b}", "0", value, value, vectorizes=False)
    else:
        result = "({T}){t}".replace("{T}", value)
        fold = Fold(each, "{a} + {b}", "0", "u64", "u64", result, vectorizes=each == "{x}")
    return Reduction(name, lambda wide: fold, CTYPES[source], target)


def cast_of(source: dtype, target: dtype) -> str:
    """Return the expression that casts ``{x}`` to another real dtype. Floating to integer dtypes are not supported."""
    value = CTYPES[target].value
    if target.is_half and source is not target:
        word = CTYPES[target].converts
        return f"load_{word}(store_{word}((f32){{x}}))"
    if value == CTYPES[source].value or (target is int64 and source.category <= FLOATING):
        return "{x}"
    return "({x} != 0)" if target.category == BOOL else f"(({value}){{x}})"


def castable(source: dtype, target: dtype) -> bool:
    """Return whether :func:`cast_of` supports the two dtypes."""
    if COMPLEX in (source.category, target.category):
        return False
    return source is target or source.category < FLOATING or target.category == FLOATING


@lru_cache(None)
def sum_of(source: dtype, target: dtype) -> Reduction:
    """Return the sum of one dtype in another."""
    return _sum_of(source, target)


def view_as_real_pairs(x: StridedArray) -> StridedArray:
    """View complex numbers as real ones with a last dim of 2."""
    real = float32 if x.dtype.itemsize == 8 else float64
    strides = (*[2 * step for step in x.strides], 1)
    return x.restrided((*x.shape, 2), strides, 2 * x.offset, real)


def reduce_pairs(kernel: Reduction, x: StridedArray, dim: Dims, keepdim: bool) -> StridedArray:
    """Reduce the real and the imaginary parts of complex numbers."""
    pairs = view_as_real_pairs(x)
    out = kernel(pairs, tuple(range(len(x.shape))) if dim is None else dim, keepdim)
    shape = out.shape[:-1]
    from candelabra.backend import contiguous_strides

    return out.restrided(shape, contiguous_strides(shape), 0, x.dtype)


def cast_first(x: StridedArray, d: dtype) -> StridedArray:
    """Cast the input to the requested dtype if it cannot be cast while loading."""
    from candelabra_clike.kernels.copies import KERNELS as copying

    out: StridedArray = copying["cast"](x, d)
    return out


def sum_for(d: dtype) -> Callable[..., StridedArray]:
    """Return the kernel of ``sum`` for a dtype."""
    natural = int64 if d.category < FLOATING else d
    plain = sum_of(*[float32 if d.itemsize == 8 else float64] * 2) if d.category == COMPLEX else sum_of(d, natural)

    def total(x: StridedArray, dim: Dims, keepdim: bool, dtype: Any) -> StridedArray:
        if dtype is None or dtype is natural:
            return reduce_pairs(plain, x, dim, keepdim) if d.category == COMPLEX else plain(x, dim, keepdim)
        if castable(d, dtype):
            return sum_of(d, dtype)(x, dim, keepdim)
        return sum_for(dtype)(cast_first(x, dtype), dim, keepdim, dtype)

    return total


@lru_cache(None)
def _mean_of(d: dtype) -> Reduction:
    value = CTYPES[d].value
    return Reduction(f"mean_{d.name}", sum_fold(d, result=f"({value})({{t}} / ({{T}})count)"), CTYPES[d], d)


def mean_for(d: dtype) -> Callable[..., StridedArray] | None:
    """Return the kernel of ``mean`` for a dtype."""
    if d.category < FLOATING:
        return None
    plain = _mean_of(d if d.category == FLOATING else float32 if d.itemsize == 8 else float64)

    def mean(x: StridedArray, dim: Dims, keepdim: bool, dtype: Any) -> StridedArray:
        if dtype is not None and dtype is not d:
            kernel = mean_for(dtype)
            if kernel is None:
                raise ValueError(f"mean() expects a floating or complex dtype, got {dtype}")
            return kernel(cast_first(x, dtype), dim, keepdim, None)
        return reduce_pairs(plain, x, dim, keepdim) if d.category == COMPLEX else plain(x, dim, keepdim)

    return mean


def product_for(d: dtype) -> Callable[..., StridedArray]:
    """Return the kernel of ``prod`` for a dtype."""
    natural = int64 if d.category < FLOATING else d
    value = CTYPES[natural].value
    if d.category == COMPLEX:
        one = f"{value.upper()}(1, 0)"
        fold = Fold("{x}", f"product_{value}({{a}}, {{b}})", one, value, value, vectorizes=False)
    elif d.category == FLOATING:
        fold = Fold("{x}", "{a} * {b}", "1", value, value)
    else:
        fold = Fold("{x}", "{a} * {b}", "1", "u64", "u64", "(i64){t}")
    plain = Reduction(f"prod_{d.name}", lambda wide: fold, CTYPES[d], natural)

    def product(x: StridedArray, dim: Dims, keepdim: bool, dtype: Any) -> StridedArray:
        if dtype is None or dtype is d or dtype is natural:
            return plain(x, dim, keepdim)
        return product_of(dtype)(cast_first(x, dtype), dim, keepdim, dtype)

    if d.category < FLOATING and d is not int64:
        return _in_own_dtype(product, d, fold)
    return product


def _in_own_dtype(product: Callable[..., StridedArray], d: dtype, fold: Fold) -> Callable[..., StridedArray]:
    """Return the kernel of products of small integers with ``dtype=`` their own dtype: computed in 64 bits and
    truncated.
    """
    value = CTYPES[d].value
    result = "{t} != 0" if d.category == BOOL else f"({value}){{t}}"
    own = Fold(fold.each, fold.operation, fold.identity, fold.lane, fold.total, result, fold.vectorizes)
    narrow = Reduction(f"prod_{d.name}_own", lambda wide: own, CTYPES[d], d)

    def kernel(x: StridedArray, dim: Dims, keepdim: bool, dtype: Any) -> StridedArray:
        return narrow(x, dim, keepdim) if dtype is d else product(x, dim, keepdim, dtype)

    return kernel


product_of = lru_cache(None)(product_for)


def extreme(operation: str, sign: str, ends: dict[str, str], d: dtype) -> Reduction | None:
    """Return the maximum (``>=``) or minimum (``<=``). NaN propagates."""
    if d.category == COMPLEX:
        return None
    value = CTYPES[d].value
    # The second condition keeps a NaN in {a}. A NaN in {b} is selected because all comparisons with it are false.
    kept = f"({{a}} {sign} {{b}}) | ({{a}} != {{a}})" if d.category == FLOATING else f"{{a}} {sign} {{b}}"
    fold = Fold("{x}", f"({kept}) ? {{a}} : {{b}}", f"({value})({ends[value]})", value, value)
    return Reduction(f"{operation}_{d.name}", lambda wide: fold, CTYPES[d], d, needs_elements=True)


def logical(name: str, operation: str, identity: str, d: dtype) -> Reduction:
    """Return the reduction of whether all elements, or any, are not 0: a bool, for uint8 a uint8."""
    fold = Fold(nonzero(d), operation, identity, "u32", "u32", "(u8){t}", vectorizes=False)
    return Reduction(f"{name}_{d.name}", lambda wide: fold, CTYPES[d], uint8 if d is uint8 else bool_)


def nonzero(d: dtype) -> str:
    """Return the expression of whether ``{x}`` is not 0."""
    return "(({x}.x != 0) | ({x}.y != 0))" if d.category == COMPLEX else "({x} != 0)"


def counting_for(d: dtype) -> Callable[..., StridedArray]:
    """Return the kernel of ``count_nonzero`` for a dtype."""
    fold = Fold(nonzero(d), "{a} + {b}", "0", "u32", "u64", "(i64){t}", vectorizes=False)
    count = Reduction(f"count_nonzero_{d.name}", lambda wide: fold, CTYPES[d], int64)
    return lambda x, dim: count(x, dim, False)


NAN_AS_ZERO = "({x} == {x} ? {x} : 0)"
"""The value of an element, 0 for NaN."""


def nansum_for(d: dtype) -> Callable[..., StridedArray] | None:
    """Return the kernel of ``nansum`` for a dtype. Integers have no NaN."""
    if d.category == COMPLEX:
        return None
    if d.category < FLOATING:
        return sum_for(d)
    own = Reduction(f"nansum_{d.name}", sum_fold(d, NAN_AS_ZERO), CTYPES[d], d)

    def nansum(x: StridedArray, dim: Dims, keepdim: bool, dtype: Any) -> StridedArray:
        if dtype is None or dtype is d:
            return own(x, dim, keepdim)
        kernel = nansum_for(dtype)
        if kernel is None:
            raise TypeError(f"nansum() expects a real dtype, got {dtype}")
        return kernel(cast_first(x, dtype), dim, keepdim, dtype)

    return nansum


def nanmean_for(d: dtype) -> Callable[..., StridedArray] | None:
    """Return the kernel of ``nanmean`` for a real dtype. Sums of half types are float32, because they may overflow."""
    if d.category != FLOATING:
        return None
    wide = float32 if d.is_half else d
    total = Reduction(f"nansum_{d.name}_wide", sum_fold(d, NAN_AS_ZERO), CTYPES[d], wide)
    counted = Fold("({x} == {x})", "{a} + {b}", "0", "u32", "u64", f"({CTYPES[wide].value}){{t}}", vectorizes=False)
    count = Reduction(f"present_{d.name}", lambda has_float64: counted, CTYPES[d], wide)
    divided = Elementwise.of(f"nanmean_{d.name}", lambda a, b: a / b, (wide, wide), d)

    def nanmean(x: StridedArray, dim: Dims, keepdim: bool, dtype: Any) -> StridedArray:
        if dtype is None or dtype is d:
            mean: StridedArray = divided(total(x, dim, keepdim), count(x, dim, keepdim))
            return mean
        kernel = nanmean_for(dtype)
        if kernel is None:
            raise TypeError(f"nanmean() expects a floating dtype, got {dtype}")
        return kernel(cast_first(x, dtype), dim, keepdim, dtype)

    return nanmean


class DtypeSpecialized:
    """A kernel with a function per dtype, which is created once."""

    def __init__(self, choose: Callable[[dtype], Callable[..., Any] | None]) -> None:
        self.for_dtype = lru_cache(None)(choose)

    def __call__(self, x: StridedArray, *arguments: Any) -> Any:
        kernel = self.for_dtype(x.dtype)
        if kernel is None:
            raise TypeError(f"not implemented for {x.dtype}")
        return kernel(x, *arguments)


KERNELS: dict[str, Any] = {
    "sum": DtypeSpecialized(sum_for),
    "mean": DtypeSpecialized(mean_for),
    "prod": DtypeSpecialized(product_of),
    "amax": DtypeSpecialized(lambda d: extreme("amax", ">=", LOWEST, d)),
    "amin": DtypeSpecialized(lambda d: extreme("amin", "<=", HIGHEST, d)),
    "all": DtypeSpecialized(lambda d: logical("all", "{a} & {b}", "1", d)),
    "any": DtypeSpecialized(lambda d: logical("any", "{a} | {b}", "0", d)),
    "count_nonzero": DtypeSpecialized(counting_for),
    "nansum": DtypeSpecialized(nansum_for),
    "nanmean": DtypeSpecialized(nanmean_for),
}
