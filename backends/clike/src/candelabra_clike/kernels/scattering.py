"""Scatter operators: assignments, sums, products and extremes, in the order of the index for any launch.

Sums and products of half types are accumulated in float32 and rounded once, as on the reference device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from candelabra.dtypes import BOOL, COMPLEX, dtype, float32

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.expressions import EXPRESSIONS as POINTWISE
from candelabra_clike.expressions import Expression, expression_for
from candelabra_clike.kernels.copies import clone, contiguous, zeros
from candelabra_clike.kernels.indexing import (
    INDEX,
    OF_DIM,
    OUT_OF_RANGE,
    AdvancedIndex,
    advanced_index,
    at_least_1d,
    check_index_shape,
    zero_stride,
)
from candelabra_clike.language import Value, constant, highest, lowest, pair, select, value_type
from candelabra_clike.layouts import broadcast, broadcast_layout, overlapping
from candelabra_clike.templates.convolutions import scatter_planes as plane_kernel
from candelabra_clike.templates.elementwise.elementwise import MAX_PLANS, Elementwise, cast_kernel
from candelabra_clike.templates.indexing.gather import bits
from candelabra_clike.templates.indexing.index_arrays import IndexedDim
from candelabra_clike.templates.indexing.scatter import ScatterDims, ScatterRule, scatter
from candelabra_clike.types import CTYPES

SCATTER = {
    name: IndexOutOfBounds(name, RuntimeError, f"scatter(): {OF_DIM}")
    for name in ("scatter_add", "scatter_src", "scatter_extreme", "scatter_planes", "put_planes")
}
INDEX_ADD = IndexOutOfBounds("index_add", IndexError, f"index_add(): {OUT_OF_RANGE}: {OF_DIM}")
INDEX_PUT = IndexOutOfBounds("index_put", INDEX.error, INDEX.text, wraps=True)


# -- rules ------------------------------------------------------------------------------------------------------------
@lru_cache(None)
def assign_rule(d: dtype) -> ScatterRule:
    """Return the rule by which the last value wins."""
    moved_to_last = bits(d)
    return ScatterRule.of(f"put_{CTYPES[moved_to_last].memory}", moved_to_last, moved_to_last, lambda a, b: b)


@lru_cache(None)
def reduce_rule(reduce: str, d: dtype) -> ScatterRule:
    """Return the rule that adds, multiplies, or keeps the extreme. NaN propagates."""
    return ScatterRule.of(f"{reduce}_{d.name}", accumulator_dtype(d), d, EXPRESSIONS[reduce](d))


def accumulator_dtype(d: dtype) -> dtype:
    """Return the dtype of accumulation."""
    return float32 if d.is_half else d


def _product(d: dtype) -> Expression:
    if d.category == COMPLEX:
        return lambda a, b: pair(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)
    return _pointwise("mul", d)


def _pointwise(name: str, d: dtype) -> Expression:
    """Return the expression of a pointwise operator that has one for every dtype."""
    expression = expression_for(POINTWISE[name], d)
    assert expression is not None
    return expression


EXPRESSIONS: dict[str, Callable[[dtype], Expression]] = {
    "sum": lambda d: _pointwise("add", d),
    "prod": _product,
    "amax": lambda d: lambda a, b: select((a != a) | (a > b), a, b),
    "amin": lambda d: lambda a, b: select((a != a) | (a < b), a, b),
}


@lru_cache(None)
def reset_rule(reduce: str, d: dtype) -> ScatterRule:
    """Return the rule that replaces an element by the identity element of a reduction."""
    return ScatterRule.of(f"forget_{reduce}_{d.name}", d, d, lambda a, b: identity(reduce, d))


def identity(reduce: str, d: dtype) -> Value:
    """Return the identity element of a reduction."""
    type = value_type(d)
    if reduce == "prod":
        return constant(type, 1)
    if d.category == BOOL:
        return constant(type, int(reduce == "amin"))
    return constant(type, lowest(type) if reduce == "amax" else highest(type))


# -- along one dim ----------------------------------------------------------------------------------------------------
def scatter_along(
    target: StridedArray,
    dim: int,
    index: StridedArray,
    source: StridedArray,
    rules: Sequence[ScatterRule],
    error: IndexOutOfBounds,
) -> StridedArray:
    """Scatter into ``target`` along a dim, by one rule after another."""
    if not index.size:
        return target
    out, indices, values = at_least_1d(target), at_least_1d(index), at_least_1d(source)
    check_index_shape(out, dim, indices)
    if len(values.shape) != len(indices.shape) or any(n > s for s, n in zip(values.shape, indices.shape)):
        raise ValueError(f"an index of shape {index.shape} is larger than the source of shape {source.shape}")
    indices, values = without_overlap(indices, out), without_overlap(values, out)
    indexed = (IndexedDim(indices.strides, dim, out.shape[dim], out.strides[dim]),)
    dims = ScatterDims(indices.shape, zero_stride(out.strides, dim), values.strides, frozenset((dim,)))
    scatter(out, dims, [indices], indexed, values, rules, error)
    return target


def without_overlap(array: StridedArray, target: StridedArray) -> StridedArray:
    """Return the array, or a copy if writing to ``target`` would change it."""
    return clone(array) if array.buffer is target.buffer and overlapping(array, target) else array


def in_accumulator_dtype(x: StridedArray, inplace: bool, write: Callable[[StridedArray], object]) -> StridedArray:
    """Call ``write`` with ``x``, or a copy, in the dtype of accumulation, and return the result in the dtype of
    ``x``.
    """
    wide = accumulator_dtype(x.dtype)
    if wide is x.dtype:
        out = x if inplace else clone(x)
        write(out)
        return out
    work: StridedArray = cast_kernel(x.dtype, wide)(x)
    write(work)
    result: StridedArray = cast_kernel(wide, x.dtype)(work, out=x if inplace else None)
    return result


# The kernels of operators with an in-place form take it first.
def scatter_src(inplace: bool, x: StridedArray, dim: int, index: StridedArray, src: StridedArray) -> StridedArray:
    """Assign; the last value wins."""
    return scatter_along(x if inplace else clone(x), dim, index, src, [assign_rule(x.dtype)], SCATTER["scatter_src"])


def scatter_add(inplace: bool, x: StridedArray, dim: int, index: StridedArray, src: StridedArray) -> StridedArray:
    """Add in order."""
    rules = [reduce_rule("sum", x.dtype)]
    return in_accumulator_dtype(
        x, inplace, lambda out: scatter_along(out, dim, index, src, rules, SCATTER["scatter_add"])
    )


def scatter_extreme(
    inplace: bool, x: StridedArray, dim: int, index: StridedArray, src: StridedArray, reduce: str, include_self: bool
) -> StridedArray:
    """Keep the extremes, without the elements themselves unless they are included."""
    rules = [reduce_rule(reduce, x.dtype)]
    if not include_self:
        rules.insert(0, reset_rule(reduce, accumulator_dtype(x.dtype)))
    return in_accumulator_dtype(
        x, inplace, lambda out: scatter_along(out, dim, index, src, rules, SCATTER["scatter_extreme"])
    )


def scatter_planes(x: StridedArray, index: StridedArray, size: int, distinct: bool) -> StridedArray:
    """Zeros with elements added, or assigned if indices are distinct, along the last dim of planes."""
    shape = (*x.shape[:-1], size)
    wide = x.dtype if distinct else accumulator_dtype(x.dtype)
    rule = assign_rule(x.dtype) if distinct else reduce_rule("sum", x.dtype)
    if wide is x.dtype and index.shape == x.shape and size and plane_kernel.is_applicable(x, index, size, distinct):
        out = x.engine.empty(shape, wide) if x.engine.traits.serial else zeros(x, shape, wide)
        plane_kernel.fill(out, contiguous(x), contiguous(index), rule, SCATTER["scatter_planes"], distinct)
        return out
    out = scatter_along(zeros(x, shape, wide), len(shape) - 1, index, x, [rule], SCATTER["scatter_planes"])
    result: StridedArray = out if wide is x.dtype else cast_kernel(wide, x.dtype)(out)
    return result


def put_planes(x: StridedArray, index: StridedArray, size: int) -> Any:
    """Zeros with elements assigned along the last dim of planes, on serial devices, which keep their order."""
    serial = x.engine.traits.serial
    if not serial or index.shape != x.shape or not size or not plane_kernel.is_applicable(x, index, size, True):
        return NotImplemented
    out = x.engine.empty((*x.shape[:-1], size), x.dtype)
    plane_kernel.fill(out, contiguous(x), contiguous(index), assign_rule(x.dtype), SCATTER["put_planes"], True)
    return out


@lru_cache(64)
def apply_rule(rule: ScatterRule) -> Elementwise:
    """Return the kernel that applies a rule to all elements, without an index."""
    return Elementwise(f"{rule.name}_everywhere", rule.values[0], (rule.target, rule.source), rule.target)


# -- whole slices, and index arrays for several dims ------------------------------------------------------------------
def index_add(inplace: bool, x: StridedArray, dim: int, index: StridedArray, source: StridedArray) -> StridedArray:
    """Add slices in order."""

    def add(target: StridedArray) -> None:
        out, indices, values = at_least_1d(target), at_least_1d(index), at_least_1d(source)
        if len(index.shape) > 1 or values.shape != (*out.shape[:dim], indices.size, *out.shape[dim + 1 :]):
            raise ValueError(
                f"a source of shape {source.shape} does not fit an input of shape {target.shape} along dim {dim}"
            )
        indices, values = without_overlap(indices, out), without_overlap(values, out)
        strides = (0,) * dim + indices.strides + (0,) * (len(out.shape) - dim - 1)
        indexed = (IndexedDim(strides, dim, out.shape[dim], out.strides[dim]),)
        dims = ScatterDims(values.shape, zero_stride(out.strides, dim), values.strides, frozenset((dim,)))
        scatter(out, dims, [indices], indexed, values, [reduce_rule("sum", source.dtype)], INDEX_ADD)

    return in_accumulator_dtype(x, inplace, add)


def index_copy(inplace: bool, x: StridedArray, dim: int, index: StridedArray, source: StridedArray) -> Any:
    """Assign slices; the last one wins."""
    indices = at_least_1d(index)
    if not x.shape or len(index.shape) > 1 or source.shape != (*x.shape[:dim], indices.size, *x.shape[dim + 1 :]):
        return NotImplemented  # for the operator's body, which also says what is wrong
    return index_put(inplace, x, [*(None,) * dim, indices], source, False)


def index_put(
    inplace: bool, x: StridedArray, indices: Sequence[StridedArray | None], values: StridedArray, accumulate: bool
) -> StridedArray:
    """Assign (the last value wins) or add values at index arrays."""
    if accumulate:
        return in_accumulator_dtype(
            x, inplace, lambda out: _put_into(out, indices, values, reduce_rule("sum", x.dtype))
        )
    out = x if inplace else clone(x)
    _put_into(out, indices, values, assign_rule(x.dtype))
    return out


def _put_into(
    target: StridedArray, indices: Sequence[StridedArray | None], values: StridedArray, rule: ScatterRule
) -> None:
    separate = [None if i is None else without_overlap(i, target) for i in indices]
    arrays = [i for i in separate if i is not None]
    if not arrays:
        apply_rule(rule)(target, values, out=target)
        return
    values = without_overlap(values, target)
    selected = advanced_index(target, separate)
    scatter(
        target, _put_dims(selected, values.shape, values.strides), arrays, selected.indexed, values, [rule], INDEX_PUT
    )


@lru_cache(MAX_PLANS)
def _put_dims(selected: AdvancedIndex, shape: Shape, strides: Shape) -> ScatterDims:
    """Return the loop nest over the indexed elements for values of a shape and strides."""
    if broadcast([selected.shape, shape]) != selected.shape:
        raise ValueError(f"values of shape {shape} do not broadcast to the indexed shape {selected.shape}")
    folds = frozenset(range(selected.front, selected.front + selected.rank))
    return ScatterDims(selected.shape, selected.strides, broadcast_layout(shape, strides, selected.shape), folds)


KERNELS: dict[str, Any] = {
    kernel.__name__ + form: partial(kernel, bool(form))
    for kernel in (scatter_src, scatter_add, scatter_extreme, index_add, index_copy, index_put)
    for form in ("", "_")
} | {"scatter_planes": scatter_planes, "put_planes": put_planes}
