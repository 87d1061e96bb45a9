"""Writing by index tensors: puts, sums, products and extremes, in the order of the index whatever the launch.

Sums and products of half types are kept in float32 until all has arrived, as on the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from candelabra.dtypes import BOOL, COMPLEX, FLOATING, dtype, float32

from candelabra_clike.array import StridedArray
from candelabra_clike.faults import OutOfBounds
from candelabra_clike.kernels.copying import clone, dense
from candelabra_clike.kernels.indexing import INDEX, OF_DIM, OUT_OF_RANGE, Places, check_corner, with_dim, without
from candelabra_clike.layouts import aligned, broadcast, overlapping
from candelabra_clike.templates.convolutions import planes
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.indexing.gathering import bits
from candelabra_clike.templates.indexing.picking import Pick
from candelabra_clike.templates.indexing.scattering import Rule, Walk, scatter
from candelabra_clike.types import CTYPES

SCATTER = {
    name: OutOfBounds(name, RuntimeError, f"scatter(): {OF_DIM}")
    for name in ("scatter_add", "scatter_src", "scatter_extreme", "scatter_planes")
}
INDEX_ADD = OutOfBounds("index_add", IndexError, f"index_add(): {OUT_OF_RANGE}: {OF_DIM}")
INDEX_PUT = OutOfBounds("index_put", INDEX.error, INDEX.text, wraps=True)


# -- what becomes of an element ---------------------------------------------------------------------------------------
@lru_cache(None)
def putting(d: dtype) -> Rule:
    """What arrives last stays."""
    moved = bits(d)
    return Rule(f"put_{CTYPES[moved].memory}", moved, moved, "{b}")


@lru_cache(None)
def reducing(reduce: str, d: dtype) -> Rule:
    """What arrives is added, multiplied, or kept where it is an extreme; NaN wins."""
    return Rule(f"{reduce}_{d.name}", kept_in(d), d, EXPRESSIONS[reduce](d))


def kept_in(d: dtype) -> dtype:
    """The dtype in which what arrives is put together."""
    return float32 if d.category == FLOATING and d.itemsize == 2 else d


def _sum(d: dtype) -> str:
    if d.category == BOOL:
        return "{a} | {b}"
    if d.category == FLOATING:
        return "{a} + {b}"
    value = CTYPES[d].value
    if d.category == COMPLEX:
        return f"{value.upper()}({{a}}.x + {{b}}.x, {{a}}.y + {{b}}.y)"
    return f"({value})((u{value[1:]}){{a}} + (u{value[1:]}){{b}})"


def _product(d: dtype) -> str:
    if d.category == BOOL:
        return "{a} & {b}"
    if d.category == FLOATING:
        return "{a} * {b}"
    value = CTYPES[d].value
    if d.category == COMPLEX:
        real, imaginary = "{a}.x * {b}.x - {a}.y * {b}.y", "{a}.x * {b}.y + {a}.y * {b}.x"
        return f"{value.upper()}({real}, {imaginary})"
    # As 64-bit integers: two u16 would be multiplied as signed ints, and overflow.
    return f"({value})((u64){{a}} * (u64){{b}})"


EXPRESSIONS: dict[str, Callable[[dtype], str]] = {
    "sum": _sum,
    "prod": _product,
    "amax": lambda d: "({a} != {a} || {a} > {b} ? {a} : {b})",
    "amin": lambda d: "({a} != {a} || {a} < {b} ? {a} : {b})",
}


@lru_cache(None)
def forgetting(reduce: str, d: dtype) -> Rule:
    """What is there is forgotten: what changes no result is put in its place."""
    c = CTYPES[d]
    neutral = {"prod": "1", "amax": f"LOWEST_{c.value.upper()}", "amin": f"HIGHEST_{c.value.upper()}"}[reduce]
    if d.category == COMPLEX:
        neutral = f"{c.value.upper()}(1, 0)"
    elif d.category == BOOL:
        neutral = "0" if reduce == "amax" else "1"
    return Rule(f"forget_{reduce}_{d.name}", d, d, neutral)


# -- along one dim ----------------------------------------------------------------------------------------------------
Along = Callable[[StridedArray, int, StridedArray, StridedArray], StridedArray]


def along(
    target: StridedArray, dim: int, index: StridedArray, source: StridedArray, rules: Sequence[Rule], words: OutOfBounds
) -> StridedArray:
    """Scatter into ``target``, one rule after the other."""
    if not index.size:
        return target
    out, places, given = with_dim(target), with_dim(index), with_dim(source)
    check_corner(out, dim, places)
    if len(given.shape) != len(places.shape) or any(n > s for s, n in zip(given.shape, places.shape)):
        raise ValueError("the index is larger than the source")
    places, given = apart(places, out), apart(given, out)
    picks = [Pick(places, places.strides, dim, out.shape[dim], out.strides[dim])]
    walk = Walk(places.shape, without(out.strides, dim), given.strides, frozenset((dim,)))
    for rule in rules:
        scatter(out, walk, picks, given, rule, words)
    return target


def apart(array: StridedArray, target: StridedArray) -> StridedArray:
    """The array, or a copy of it where writing to ``target`` would change it."""
    return clone(array) if overlapping(array, target) else array


@lru_cache(64)
def converted(source: dtype, target: dtype) -> Elementwise:
    """The copy from one floating dtype to another."""
    return Elementwise(f"as_{target.name}_{source.name}", "{a}", (source,), target)


def gathered(x: StridedArray, inplace: bool, write: Callable[[StridedArray], object]) -> StridedArray:
    """``x``, or a copy of it, after ``write`` was given it in the dtype in which its values are put together."""
    wide = kept_in(x.dtype)
    if wide is x.dtype:
        out = x if inplace else clone(x)
        write(out)
        return out
    work: StridedArray = converted(x.dtype, wide)(x)
    write(work)
    result: StridedArray = converted(wide, x.dtype)(work, out=x if inplace else None)
    return result


def scatter_src(x: StridedArray, dim: int, index: StridedArray, src: StridedArray) -> StridedArray:
    """Put; the last write wins."""
    return scatter_src_(clone(x), dim, index, src)


def scatter_src_(x: StridedArray, dim: int, index: StridedArray, src: StridedArray) -> StridedArray:
    """In-place form of :func:`scatter_src`."""
    return along(x, dim, index, src, [putting(x.dtype)], SCATTER["scatter_src"])


def scatter_add(x: StridedArray, dim: int, index: StridedArray, src: StridedArray) -> StridedArray:
    """Added in order."""
    return _added(x, dim, index, src, False)


def scatter_add_(x: StridedArray, dim: int, index: StridedArray, src: StridedArray) -> StridedArray:
    """In-place form of :func:`scatter_add`."""
    return _added(x, dim, index, src, True)


def _added(x: StridedArray, dim: int, index: StridedArray, src: StridedArray, inplace: bool) -> StridedArray:
    rules = [reducing("sum", x.dtype)]
    return gathered(x, inplace, lambda out: along(out, dim, index, src, rules, SCATTER["scatter_add"]))


def _extreme(inplace: bool) -> Callable[..., StridedArray]:
    def kernel(
        x: StridedArray, dim: int, index: StridedArray, src: StridedArray, reduce: str, include_self: bool
    ) -> StridedArray:
        rules = [reducing(reduce, x.dtype)]
        if not include_self:
            rules.insert(0, forgetting(reduce, kept_in(x.dtype)))
        return gathered(x, inplace, lambda out: along(out, dim, index, src, rules, SCATTER["scatter_extreme"]))

    return kernel


def scatter_planes(x: StridedArray, index: StridedArray, size: int, distinct: bool) -> StridedArray:
    """Zeros with elements added, or put where no place stands twice, along the last dim of planes."""
    shape = (*x.shape[:-1], size)
    wide = x.dtype if distinct else kept_in(x.dtype)
    rule = putting(x.dtype) if distinct else reducing("sum", x.dtype)
    if wide is x.dtype and index.shape == x.shape and size and planes.serves(x, index, size, distinct):
        out = x.engine.empty(shape, wide) if x.engine.traits.serial else zeros(x, shape, wide)
        planes.fill(out, dense(x), dense(index), rule, SCATTER["scatter_planes"])
        return out
    out = along(zeros(x, shape, wide), len(shape) - 1, index, x, [rule], SCATTER["scatter_planes"])
    result: StridedArray = out if wide is x.dtype else converted(wide, x.dtype)(out)
    return result


def zeros(like: StridedArray, shape: tuple[int, ...], d: dtype) -> StridedArray:
    """An array full of 0, on the device of another."""
    out = like.engine.empty(shape, d)
    if out.size:
        zero(bits(d))(out=out)
    return out


@lru_cache(64)
def zero(d: dtype) -> Elementwise:
    """What fills an array with 0."""
    c = CTYPES[d]
    return Elementwise(f"zero_{c.memory}", f"{c.value.upper()}(0, 0)" if d.category == COMPLEX else "0", (), d)


@lru_cache(64)
def everywhere(rule: Rule) -> Elementwise:
    """A rule for all elements, without an index."""
    return Elementwise(f"{rule.name}_everywhere", rule.expression, (rule.target, rule.source), rule.target)


# -- whole slices, and index arrays for several dims ------------------------------------------------------------------
def index_add(x: StridedArray, dim: int, index: StridedArray, source: StridedArray) -> StridedArray:
    """Slices added in order."""
    return gathered(x, False, lambda out: _slices_added(out, dim, index, source))


def index_add_(x: StridedArray, dim: int, index: StridedArray, source: StridedArray) -> StridedArray:
    """In-place form of :func:`index_add`."""
    return gathered(x, True, lambda out: _slices_added(out, dim, index, source))


def _slices_added(target: StridedArray, dim: int, index: StridedArray, source: StridedArray) -> None:
    out, places, given = with_dim(target), with_dim(index), with_dim(source)
    if len(index.shape) > 1 or given.shape != (*out.shape[:dim], places.size, *out.shape[dim + 1 :]):
        raise ValueError("the source does not fit")
    places, given = apart(places, out), apart(given, out)
    strides = (0,) * dim + places.strides + (0,) * (len(out.shape) - dim - 1)
    pick = Pick(places, strides, dim, out.shape[dim], out.strides[dim])
    walk = Walk(given.shape, without(out.strides, dim), given.strides, frozenset((dim,)))
    scatter(out, walk, [pick], given, reducing("sum", source.dtype), INDEX_ADD)


def index_put(
    x: StridedArray, indices: Sequence[StridedArray | None], values: StridedArray, accumulate: bool
) -> StridedArray:
    """Put, the last one wins, or added."""
    return _put(x, indices, values, accumulate, False)


def index_put_(
    x: StridedArray, indices: Sequence[StridedArray | None], values: StridedArray, accumulate: bool
) -> StridedArray:
    """In-place form of :func:`index_put`."""
    return _put(x, indices, values, accumulate, True)


def _put(
    x: StridedArray, indices: Sequence[StridedArray | None], values: StridedArray, accumulate: bool, inplace: bool
) -> StridedArray:
    if accumulate:
        return gathered(x, inplace, lambda out: _put_into(out, indices, values, reducing("sum", x.dtype)))
    out = x if inplace else clone(x)
    _put_into(out, indices, values, putting(x.dtype))
    return out


def _put_into(target: StridedArray, indices: Sequence[StridedArray | None], values: StridedArray, rule: Rule) -> None:
    if all(i is None for i in indices):
        everywhere(rule)(target, values, out=target)
        return
    given = apart(values, target)
    places = Places(target, [None if i is None else apart(i, target) for i in indices])
    if broadcast([places.shape, given.shape]) != places.shape:
        raise ValueError("the values do not fit")
    folds = frozenset(range(places.front, places.front + places.rank))
    walk = Walk(places.shape, places.strides, aligned(given, places.shape), folds)
    scatter(target, walk, places.picks, given, rule, INDEX_PUT)


KERNELS: dict[str, Any] = {
    "scatter_src": scatter_src, "scatter_src_": scatter_src_, "scatter_add": scatter_add, "scatter_add_": scatter_add_,
    "scatter_extreme": _extreme(False), "scatter_extreme_": _extreme(True), "scatter_planes": scatter_planes,
    "index_add": index_add, "index_add_": index_add_, "index_put": index_put, "index_put_": index_put_,
}  # fmt: skip
