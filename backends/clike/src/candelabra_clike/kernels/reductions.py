"""Sums, products, means, extremes, logical reductions and counts over any dims."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from candelabra.dtypes import BOOL, COMPLEX, FLOATING, bool_, dtype, float32, float64, int64, uint8

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.language import Value, call, cast, highest, lowest, round_to, select, value_type
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.reductions.fold import TypedFold, identity
from candelabra_clike.templates.reductions.reduction import Reduction
from candelabra_clike.types import CTYPES

Dims = Shape | None
Folds = Callable[[bool], TypedFold]
"""A fold for devices with or without float64."""


def accumulator_type(d: dtype, wide: bool) -> str:
    """Return the type of totals of a floating dtype: the next wider one if the device has it."""
    return "f64" if wide or d.itemsize == 8 else "f32"


def added(a: Value, b: Value) -> Value:
    """The operation of sums."""
    return a + b


def multiplied(a: Value, b: Value) -> Value:
    """The operation of products."""
    return a * b


def mean_of_total(output: str) -> Callable[[Value, Value], Value]:
    """Return the result of a mean: the quotient of a total and the number of elements."""
    return lambda total, count: cast(output, total / cast(total.type, count))


def sum_fold(
    name: str,
    d: dtype,
    element: str = "",
    each: Callable[[Value], Value] = identity,
    result: Callable[[Value, Value], Value] | None = None,
) -> Folds:
    """Return the sum fold of a real floating dtype, of elements of its own type or of another one."""
    lane = CTYPES[d].value

    def fold(wide: bool) -> TypedFold:
        total, finish = accumulator_type(d, wide), result or (lambda total, count: cast(lane, total))
        return TypedFold(name, element or lane, lane, added, total=total, each=each, result=finish, output=lane)

    return fold


def _sum_of(source: dtype, target: dtype) -> Reduction:
    """Return the sum of elements that are cast to ``target``, a real or integer dtype, as they are loaded."""
    name = f"sum_{source.name}" + ("" if source is target else f"_{target.name}")
    element, value = CTYPES[source].value, CTYPES[target].value
    if target.category == FLOATING:
        floating = sum_fold(name, target, element, lambda x: cast_of(source, target, x))
        return Reduction(name, floating, CTYPES[source], target)
    if target.category == BOOL:
        fold = TypedFold(name, element, value, lambda a, b: a | b, each=lambda x: cast_of(source, target, x))
    else:
        fold = TypedFold(
            name, element, "u64", added, each=lambda x: cast("u64", cast_of(source, target, x)),
            result=lambda total, count: cast(value, total), output=value,
        )  # fmt: skip
    return Reduction(name, lambda wide: fold, CTYPES[source], target)


def cast_of(source: dtype, target: dtype, x: Value) -> Value:
    """Cast a value to another real dtype. Floating to integer dtypes are not supported."""
    if target.is_half and source is not target:
        return round_to(target, cast("f32", x))
    if target.category == BOOL:
        return x if source is target else cast("u8", x != 0)
    return cast(CTYPES[target].value, x)


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
    name = f"mean_{d.name}"
    return Reduction(name, sum_fold(name, d, result=mean_of_total(CTYPES[d].value)), CTYPES[d], d)


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
    name, element, value = f"prod_{d.name}", CTYPES[d].value, CTYPES[natural].value
    if d.category == COMPLEX:
        fold = TypedFold(name, value, value, lambda a, b: call("product", a, b), 1)
    elif d.category == FLOATING:
        fold = TypedFold(name, value, value, multiplied, 1)
    else:
        fold = _integer_product(name, element, value)
    plain = Reduction(name, lambda wide: fold, CTYPES[d], natural)

    def product(x: StridedArray, dim: Dims, keepdim: bool, dtype: Any) -> StridedArray:
        if dtype is None or dtype is d or dtype is natural:
            return plain(x, dim, keepdim)
        return product_of(dtype)(cast_first(x, dtype), dim, keepdim, dtype)

    if d.category < FLOATING and d is not int64:
        return _in_own_dtype(product, d)
    return product


def _integer_product(name: str, element: str, output: str) -> TypedFold:
    """Return the product of integers, which wraps around in 64 bits and is then truncated."""
    return TypedFold(
        name, element, "u64", multiplied, 1, each=lambda x: cast("u64", x),
        result=lambda total, count: total != 0 if output == "bool" else cast(output, total), output=output,
    )  # fmt: skip


def _in_own_dtype(product: Callable[..., StridedArray], d: dtype) -> Callable[..., StridedArray]:
    """Return the kernel of products of small integers with ``dtype=`` their own dtype."""
    name = f"prod_{d.name}_own"
    own = _integer_product(name, CTYPES[d].value, value_type(d))
    narrow = Reduction(name, lambda wide: own, CTYPES[d], d)

    def kernel(x: StridedArray, dim: Dims, keepdim: bool, dtype: Any) -> StridedArray:
        return narrow(x, dim, keepdim) if dtype is d else product(x, dim, keepdim, dtype)

    return kernel


product_of = lru_cache(None)(product_for)


def extreme(operation: str, largest: bool, d: dtype) -> Reduction | None:
    """Return the maximum or minimum. NaN propagates."""
    if d.category == COMPLEX:
        return None
    value, name = CTYPES[d].value, f"{operation}_{d.name}"

    def join(a: Value, b: Value) -> Value:
        kept = a >= b if largest else a <= b
        # The second condition keeps a NaN in a. A NaN in b is selected because all comparisons with it are false.
        return select(kept | (a != a) if d.category == FLOATING else kept, a, b)

    fold = TypedFold(name, value, value, join, lowest(value) if largest else highest(value))
    return Reduction(name, lambda wide: fold, CTYPES[d], d, needs_elements=True)


def logical(operation: str, join: Callable[[Value, Value], Value], first: int, d: dtype) -> Reduction:
    """Return the reduction of whether all elements, or any, are not 0: a bool, for uint8 a uint8."""
    name = f"{operation}_{d.name}"
    fold = TypedFold(
        name, CTYPES[d].value, "u32", join, first, each=lambda x: cast("u32", nonzero(x)),
        result=lambda total, count: cast("u8", total), output="u8",
    )  # fmt: skip
    return Reduction(name, lambda wide: fold, CTYPES[d], uint8 if d is uint8 else bool_)


def nonzero(x: Value) -> Value:
    """Return whether an element is not 0."""
    return (x.real != 0) | (x.imag != 0) if x.type in ("c64", "c128") else x != 0


def counting_for(d: dtype) -> Callable[..., StridedArray]:
    """Return the kernel of ``count_nonzero`` for a dtype."""
    fold = _counted(f"count_nonzero_{d.name}", d, nonzero, "i64")
    count = Reduction(fold.name, lambda wide: fold, CTYPES[d], int64)
    return lambda x, dim: count(x, dim, False)


def _counted(name: str, d: dtype, condition: Callable[[Value], Value], output: str) -> TypedFold:
    """Return the number of elements with a condition."""
    return TypedFold(
        name, CTYPES[d].value, "u32", added, total="u64", each=lambda x: cast("u32", condition(x)),
        result=lambda total, count: cast(output, total), output=output,
    )  # fmt: skip


def nan_as_zero(x: Value) -> Value:
    """Return an element, 0 for NaN."""
    return select(x == x, x, 0)


def nansum_for(d: dtype) -> Callable[..., StridedArray] | None:
    """Return the kernel of ``nansum`` for a dtype. Integers have no NaN."""
    if d.category == COMPLEX:
        return None
    if d.category < FLOATING:
        return sum_for(d)
    name = f"nansum_{d.name}"
    own = Reduction(name, sum_fold(name, d, each=nan_as_zero), CTYPES[d], d)

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
    name = f"nansum_{d.name}_wide"
    total = Reduction(name, sum_fold(name, d, each=nan_as_zero), CTYPES[d], wide)
    counted = _counted(f"present_{d.name}", d, lambda x: x == x, CTYPES[wide].value)
    count = Reduction(counted.name, lambda has_float64: counted, CTYPES[d], wide)
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
    "amax": DtypeSpecialized(lambda d: extreme("amax", True, d)),
    "amin": DtypeSpecialized(lambda d: extreme("amin", False, d)),
    "all": DtypeSpecialized(lambda d: logical("all", lambda a, b: a & b, 1, d)),
    "any": DtypeSpecialized(lambda d: logical("any", lambda a, b: a | b, 0, d)),
    "count_nonzero": DtypeSpecialized(counting_for),
    "nansum": DtypeSpecialized(nansum_for),
    "nanmean": DtypeSpecialized(nanmean_for),
}


def reduction_for(name: str, d: dtype, target: dtype | None) -> Reduction | None:
    """Return the reduction that the kernel of an operator launches for elements of dtype ``d`` and the argument
    ``dtype=target``, or None if it does more than that.
    """
    if d.category == COMPLEX:
        return None
    if name == "sum":
        target = target or (int64 if d.category < FLOATING else d)
        return sum_of(d, target) if castable(d, target) else None
    if name == "mean":
        return _mean_of(d) if d.category == FLOATING and target in (None, d) else None
    found = KERNELS[name].for_dtype(d)
    return found if isinstance(found, Reduction) else None
