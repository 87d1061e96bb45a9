"""Scatter operators: assignments, sums, products and extremes, in the order of the index for any launch.

Sums and products of half types are accumulated in float32 and rounded once, as on the reference device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from candelabra.dtypes import BOOL, COMPLEX, dtype, float32

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.conversions import converted as converted_value
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.expressions import EXPRESSIONS as POINTWISE
from candelabra_clike.expressions import Expression, expression_for
from candelabra_clike.kernels.copies import clone, contiguous
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
from candelabra_clike.templates.elementwise.elementwise import MAX_PLANS, Elementwise
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


@lru_cache(64)
def converted(source: dtype, target: dtype) -> Elementwise:
    """Return the kernel that converts one floating dtype to another."""
    return Elementwise.of(
        f"as_{target.name}_{source.name}", lambda a: converted_value(a, source, target), (source,), target
    )


def in_accumulator_dtype(x: StridedArray, inplace: bool, write: Callable[[StridedArray], object]) -> StridedArray:
    """Call ``write`` with ``x``, or a copy, in the dtype of accumulation, and return the result in the dtype of
    ``x``.
    """
    wide = accumulator_dtype(x.dtype)
    if wide is x.dtype:
        out = x if inplace else clone(x)
        write(out)
        return out
    work: StridedArray = converted(x.dtype, wide)(x)
    write(work)
    result: StridedArray = converted(wide, x.dtype)(work, out=x if inplace else None)
    return result


def scatter_src(x: StridedArray, dim: int, index: StridedArray, src: StridedArray) -> StridedArray:
    """Assign; the last value wins."""
    return scatter_src_(clone(x), dim, index, src)


def scatter_src_(x: StridedArray, dim: int, index: StridedArray, src: StridedArray) -> StridedArray:
    """The in-place form of :func:`scatter_src`."""
    return scatter_along(x, dim, index, src, [assign_rule(x.dtype)], SCATTER["scatter_src"])


def scatter_add(x: StridedArray, dim: int, index: StridedArray, src: StridedArray) -> StridedArray:
    """Add in order."""
    return _added(x, dim, index, src, False)


def scatter_add_(x: StridedArray, dim: int, index: StridedArray, src: StridedArray) -> StridedArray:
    """The in-place form of :func:`scatter_add`."""
    return _added(x, dim, index, src, True)


def _added(x: StridedArray, dim: int, index: StridedArray, src: StridedArray, inplace: bool) -> StridedArray:
    rules = [reduce_rule("sum", x.dtype)]
    return in_accumulator_dtype(
        x, inplace, lambda out: scatter_along(out, dim, index, src, rules, SCATTER["scatter_add"])
    )


def _extreme(inplace: bool) -> Callable[..., StridedArray]:
    def kernel(
        x: StridedArray, dim: int, index: StridedArray, src: StridedArray, reduce: str, include_self: bool
    ) -> StridedArray:
        rules = [reduce_rule(reduce, x.dtype)]
        if not include_self:
            rules.insert(0, reset_rule(reduce, accumulator_dtype(x.dtype)))
        return in_accumulator_dtype(
            x, inplace, lambda out: scatter_along(out, dim, index, src, rules, SCATTER["scatter_extreme"])
        )

    return kernel


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
    result: StridedArray = out if wide is x.dtype else converted(wide, x.dtype)(out)
    return result


def put_planes(x: StridedArray, index: StridedArray, size: int) -> Any:
    """Zeros with elements assigned along the last dim of planes, on serial devices, which keep their order."""
    serial = x.engine.traits.serial
    if not serial or index.shape != x.shape or not size or not plane_kernel.is_applicable(x, index, size, True):
        return NotImplemented
    out = x.engine.empty((*x.shape[:-1], size), x.dtype)
    plane_kernel.fill(out, contiguous(x), contiguous(index), assign_rule(x.dtype), SCATTER["put_planes"], True)
    return out


def zeros(like: StridedArray, shape: tuple[int, ...], d: dtype) -> StridedArray:
    """Return an array of zeros on the device of ``like``."""
    out = like.engine.empty(shape, d)
    if out.size:
        zero(bits(d))(out=out)
    return out


@lru_cache(64)
def zero(d: dtype) -> Elementwise:
    """Return the kernel that fills an array with 0."""
    return Elementwise(f"zero_{CTYPES[d].memory}", constant(value_type(d), 0), (), d)


@lru_cache(64)
def apply_rule(rule: ScatterRule) -> Elementwise:
    """Return the kernel that applies a rule to all elements, without an index."""
    return Elementwise(f"{rule.name}_everywhere", rule.values[0], (rule.target, rule.source), rule.target)


# -- whole slices, and index arrays for several dims ------------------------------------------------------------------
def index_add(x: StridedArray, dim: int, index: StridedArray, source: StridedArray) -> StridedArray:
    """Add slices in order."""
    return in_accumulator_dtype(x, False, lambda out: _slices_added(out, dim, index, source))


def index_add_(x: StridedArray, dim: int, index: StridedArray, source: StridedArray) -> StridedArray:
    """The in-place form of :func:`index_add`."""
    return in_accumulator_dtype(x, True, lambda out: _slices_added(out, dim, index, source))


def _slices_added(target: StridedArray, dim: int, index: StridedArray, source: StridedArray) -> None:
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


def _slices_copied(inplace: bool) -> Callable[..., Any]:
    def kernel(x: StridedArray, dim: int, index: StridedArray, source: StridedArray) -> Any:
        indices = at_least_1d(index)
        if not x.shape or len(index.shape) > 1 or source.shape != (*x.shape[:dim], indices.size, *x.shape[dim + 1 :]):
            return NotImplemented  # for the operator's body, which also says what is wrong
        return _put(x, [*(None,) * dim, indices], source, False, inplace)

    return kernel


def index_put(
    x: StridedArray, indices: Sequence[StridedArray | None], values: StridedArray, accumulate: bool
) -> StridedArray:
    """Assign (the last value wins) or add values at index arrays."""
    return _put(x, indices, values, accumulate, False)


def index_put_(
    x: StridedArray, indices: Sequence[StridedArray | None], values: StridedArray, accumulate: bool
) -> StridedArray:
    """The in-place form of :func:`index_put`."""
    return _put(x, indices, values, accumulate, True)


def _put(
    x: StridedArray, indices: Sequence[StridedArray | None], values: StridedArray, accumulate: bool, inplace: bool
) -> StridedArray:
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
    "scatter_src": scatter_src, "scatter_src_": scatter_src_, "scatter_add": scatter_add, "scatter_add_": scatter_add_,
    "scatter_extreme": _extreme(False), "scatter_extreme_": _extreme(True), "scatter_planes": scatter_planes,
    "put_planes": put_planes,
    "index_add": index_add, "index_add_": index_add_, "index_copy": _slices_copied(False),
    "index_copy_": _slices_copied(True), "index_put": index_put, "index_put_": index_put_,
}  # fmt: skip
