"""Sums, products, means, extremes, logical reductions and counts over any dims."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final

from candelabra.backend import contiguous_strides
from candelabra.dtypes import BOOL, COMPLEX, FLOATING, bool_, dtype, float32, float64, int64, uint8

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.expressions.comparisons import nonzero
from candelabra_clike.kernels.copies import cast as cast_first
from candelabra_clike.kernels.copies import view_as_real
from candelabra_clike.language import Value, call, cast, highest, lowest, round_to, select, value_type
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.reductions.arg_reduction import ArgReduction
from candelabra_clike.templates.reductions.fold import TypedFold, identity
from candelabra_clike.templates.reductions.reduction import Reduction
from candelabra_clike.types import CTYPES

Dims = Shape | None
Reducer = Callable[[StridedArray, Dims, bool], StridedArray]
"""A function of an array, dims and ``keepdim``, such as a :class:`Reduction`."""
Folds = Callable[[bool], TypedFold]
"""A fold for devices with or without float64."""


class DtypeSpecialized:
    """A kernel with a function per dtype, which is created once."""

    def __init__(self, choose: Callable[[dtype], Callable[..., Any] | None]) -> None:
        self.for_dtype = lru_cache(None)(choose)

    def __call__(self, x: StridedArray, *arguments: Any) -> Any:
        kernel = self.for_dtype(x.dtype)
        if kernel is None:
            raise TypeError(f"not implemented for {x.dtype}")
        return kernel(x, *arguments)


def of_floating(kernel: Callable[..., Any]) -> DtypeSpecialized:
    """Return a kernel of real floating dtypes, which is one function for all of them."""
    return DtypeSpecialized(lambda d: kernel if d.category == FLOATING else None)


def of_single_and_double(kernel: Callable[..., Any]) -> DtypeSpecialized:
    """Return a kernel of float32 and float64. The composite serves half types: it rounds after each operation."""
    return DtypeSpecialized(lambda d: kernel if d in (float32, float64) else None)


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


@lru_cache(None)
def sum_of(source: dtype, target: dtype) -> Reduction:
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


def reduce_pairs(kernel: Reduction, x: StridedArray, dim: Dims, keepdim: bool) -> StridedArray:
    """Reduce the real and the imaginary parts of complex numbers."""
    pairs = view_as_real(x)
    out = kernel(pairs, tuple(range(len(x.shape))) if dim is None else dim, keepdim)
    shape = out.shape[:-1]
    return out.restrided(shape, contiguous_strides(shape), 0, x.dtype)


def natural_dtype(d: dtype) -> dtype:
    """Return the dtype of sums and products."""
    return int64 if d.category < FLOATING else d


@lru_cache(None)
def sum_for(d: dtype, target: dtype | None) -> Reducer | None:
    """Return the sum of a dtype in another one, or None if elements have to be cast first."""
    target = target or natural_dtype(d)
    if d.category == COMPLEX:
        return partial(reduce_pairs, sum_of(d.to_real(), d.to_real())) if target is d else None
    return sum_of(d, target) if castable(d, target) else None


@lru_cache(None)
def mean_for(d: dtype, target: dtype | None) -> Reducer | None:
    """Return the mean of a floating or complex dtype."""
    if d.category < FLOATING or target not in (None, d):
        return None
    real = d.to_real()
    name = f"mean_{real.name}"
    plain = Reduction(name, sum_fold(name, real, result=mean_of_total(CTYPES[real].value)), CTYPES[real], real)
    return plain if real is d else partial(reduce_pairs, plain)


@lru_cache(None)
def product_for(d: dtype, target: dtype | None) -> Reducer | None:
    """Return the product of a dtype. Small integers have one in int64 and one in their own dtype."""
    target, value = target or natural_dtype(d), CTYPES[d].value
    if target not in (d, natural_dtype(d)):
        return None
    name = f"prod_{d.name}" + "_own" * (target is d and d.category < FLOATING and d is not int64)
    if d.category == COMPLEX:
        fold = TypedFold(name, value, value, lambda a, b: call("product", a, b), 1)
    elif d.category == FLOATING:
        fold = TypedFold(name, value, value, multiplied, 1)
    else:  # wraps around in 64 bits and is then truncated
        output = value_type(target)
        fold = TypedFold(
            name, value, "u64", multiplied, 1, each=lambda x: cast("u64", x),
            result=lambda total, count: total != 0 if output == "bool" else cast(output, total), output=output,
        )  # fmt: skip
    return Reduction(name, lambda wide: fold, CTYPES[d], target)


def with_result_dtype(
    reducer: Callable[[dtype, dtype | None], Reducer | None], expects: str = "", error: type[Exception] = TypeError
) -> DtypeSpecialized:
    """Return the kernel of an operator with the parameter ``dtype``. Elements that ``reducer`` does not reduce in that
    dtype are cast to it first. Raises an error that begins with ``expects`` if the operator does not have it.
    """

    @lru_cache(None)
    def choose(d: dtype) -> Callable[..., StridedArray] | None:
        plain = reducer(d, None)
        if plain is None:
            return None

        def kernel(x: StridedArray, dim: Dims, keepdim: bool, dtype: Any) -> StridedArray:
            own = plain if dtype is None else reducer(d, dtype)
            if own is not None:
                return own(x, dim, keepdim)
            other = choose(dtype)
            if other is None:
                raise error(f"{expects}, got {dtype}")
            return other(cast_first(x, dtype), dim, keepdim, dtype)

        return kernel

    return DtypeSpecialized(choose)


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


@lru_cache(None)
def nansum_for(d: dtype, target: dtype | None) -> Reducer | None:
    """Return the sum of a dtype without NaN, which integers do not have."""
    if d.category < FLOATING:
        return sum_for(d, target)
    if d.category != FLOATING or target not in (None, d):
        return None
    name = f"nansum_{d.name}"
    return Reduction(name, sum_fold(name, d, each=nan_as_zero), CTYPES[d], d)


@lru_cache(None)
def nanmean_for(d: dtype, target: dtype | None) -> Reducer | None:
    """Return the mean of a floating dtype without NaN. Sums of half types are float32, because they may overflow."""
    if d.category != FLOATING or target not in (None, d):
        return None
    wide = float32 if d.is_half else d
    name = f"nansum_{d.name}_wide"
    total = Reduction(name, sum_fold(name, d, each=nan_as_zero), CTYPES[d], wide)
    counted = _counted(f"present_{d.name}", d, lambda x: x == x, CTYPES[wide].value)
    count = Reduction(counted.name, lambda has_float64: counted, CTYPES[d], wide)
    divided = Elementwise.of(f"nanmean_{d.name}", lambda a, b: a / b, (wide, wide), d)

    def nanmean(x: StridedArray, dim: Dims, keepdim: bool) -> StridedArray:
        mean: StridedArray = divided(total(x, dim, keepdim), count(x, dim, keepdim))
        return mean

    return nanmean


@lru_cache(None)
def arg_reduction(largest: bool, d: dtype) -> ArgReduction:
    """Return the arg-reduction of a real dtype: the largest or the smallest element."""
    name = "max" if largest else "min"
    plain = extreme(name, largest, d)
    assert plain is not None, f"{d} has no order"
    floating = d.category == FLOATING

    def better(a: Value, b: Value) -> Value:
        precedes = a > b if largest else a < b
        return precedes | ((a != a) & (b == b)) if floating else precedes

    def equal(a: Value, b: Value) -> Value:
        return (a == b) | ((a != a) & (b != b)) if floating else a == b

    return ArgReduction(f"arg{name}_{d.name}", better, equal, plain.fold(True), d)


def _indices(largest: bool, d: dtype) -> Any:
    if d.category == COMPLEX:
        return None

    def kernel(x: StridedArray, dim: int | None, keepdim: bool) -> StridedArray:
        return arg_reduction(largest, d)(x, dim, keepdim)[1]

    return kernel


def _values_and_indices(largest: bool, d: dtype) -> Any:
    return None if d.category == COMPLEX else arg_reduction(largest, d)


SUM: Final = with_result_dtype(sum_for)
NANSUM: Final = with_result_dtype(nansum_for, "nansum() expects a real dtype")
KERNELS: dict[str, Any] = {
    "sum": SUM,
    "mean": with_result_dtype(mean_for, "mean() expects a floating or complex dtype", ValueError),
    "prod": with_result_dtype(product_for),
    "amax": DtypeSpecialized(lambda d: extreme("amax", True, d)),
    "amin": DtypeSpecialized(lambda d: extreme("amin", False, d)),
    "all": DtypeSpecialized(lambda d: logical("all", lambda a, b: a & b, 1, d)),
    "any": DtypeSpecialized(lambda d: logical("any", lambda a, b: a | b, 0, d)),
    "count_nonzero": DtypeSpecialized(counting_for),
    "nansum": DtypeSpecialized(lambda d: (SUM if d.category < FLOATING else NANSUM).for_dtype(d)),  # no NaN
    "argmax": DtypeSpecialized(lambda d: _indices(True, d)),
    "argmin": DtypeSpecialized(lambda d: _indices(False, d)),
    "max_dim": DtypeSpecialized(lambda d: _values_and_indices(True, d)),
    "min_dim": DtypeSpecialized(lambda d: _values_and_indices(False, d)),
    "nanmean": with_result_dtype(nanmean_for, "nanmean() expects a floating dtype"),
}


def reduction_for(name: str, d: dtype, target: dtype | None) -> Reduction | None:
    """Return the reduction that the kernel of an operator launches for elements of dtype ``d`` and the argument
    ``dtype=target``, or None if it does more than that.
    """
    if d.category == COMPLEX:
        return None
    reducers = {"sum": sum_for, "mean": mean_for}
    found = reducers[name](d, target) if name in reducers else KERNELS[name].for_dtype(d)
    return found if isinstance(found, Reduction) else None
