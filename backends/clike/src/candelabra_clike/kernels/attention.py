"""Attention: two products of matrices with one program over the rows of the scores between them.

The products are those of the device, which are the fastest that it has. What they leave in memory is bounded: where
there are more scores than :data:`AT_ONCE`, heads and then stretches of queries take turns (Rabe and Staats,
Self-attention does not need O(n²) memory, 2021).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import prod
from typing import Any, Final, NamedTuple

from candelabra.dtypes import FLOATING, dtype, float32

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.matmul import expanded, narrow, widen
from candelabra_clike.kernels.pointwise import KERNELS as POINTWISE
from candelabra_clike.kernels.reductions import ByDtype
from candelabra_clike.kernels.softmax import rows_of
from candelabra_clike.layouts import broadcast
from candelabra_clike.source import Source, number, writes
from candelabra_clike.templates.elementwise.loops import CHUNK
from candelabra_clike.templates.products.product import product
from candelabra_clike.templates.rows.text import Pass, Program
from candelabra_clike.types import CTYPES

Multiply = Callable[[StridedArray, StridedArray, StridedArray, bool], None]
"""``multiply(out, a, b, added)``: ``out = a @ b``, or ``out += a @ b``; the batch dims of all are the same.

The result of half types may be wanted in float32, as it was summed.
"""

AT_ONCE = 1 << 26
"""Scores that are in memory at a time: 256 MiB of float32."""
QUERIES: Final = -2
"""The dim of queries, counted from the end; batch dims are counted from the front."""


def _weights(name: str, operands: int, score: str, top: str, total: str) -> Program:
    """Exponentials, kept in the output, where they are divided by their sum."""
    passes = Pass(score, "max", top), Pass(f"EXP({score} - {{r0}})", "sum", total, keep=True)
    return Program(name, operands, passes, "{o} * {r1}", numbers=1)


SCALED: Final = _weights("attention", 1, "({a} * s0)", "{t}", "1 / {t}")
FUTURE: Final = _weights("attention_future", 2, "({a} * s0 + {b})", "{t}", "1 / {t}")
"""The second operand is minus infinity for the keys after the query: one is always left."""
MASKED: Final = _weights(
    "attention_masked", 2, "({a} * s0 + {b})", "({t} - {t} == 0 ? {t} : 0)", "({t} == 0 ? 0 : 1 / {t})"
)
"""An infinite maximum is not taken off: where all keys have minus infinity all powers are 0, and so are the weights."""
SLOPE: Final = Program("attention_slope", 2, (Pass("{a} * {b}", "sum"),), "{a} * ({b} - {r0}) * s0", numbers=1)
"""Of the weights and the gradient that came through the values."""


def wider(d: dtype) -> dtype:
    """The dtype of scores: halves hold too few digits of what exponentials are taken of."""
    return float32 if d.itemsize == 2 else d


def rounded(x: StridedArray, d: dtype) -> StridedArray:
    """The array in the dtype of queries."""
    return x if x.dtype is d else narrow(d)(x)


@lru_cache(None)
def _future_fill(engine: Engine, d: dtype) -> Launch:
    """Minus infinity for the keys after each of the queries from ``first`` on, 0 for the others."""
    c, serial = CTYPES[d], engine.traits.serial
    infinity = "BITS_F32(0xFF800000u)" if c.value == "f32" else "BITS_F64(0xFFF0000000000000ul)"
    parameters = writes("out", c.memory), *map(number, ("n", "columns", "first"))
    body = f"""const INDEX begin = GLOBAL_ID * {CHUNK if serial else 1}u;
const INDEX end = n - begin < {CHUNK if serial else 1}u ? n : begin + {CHUNK if serial else 1}u;
for (INDEX i = begin; i < end; ++i) out[i] = i % columns > i / columns + first ? {infinity} : 0;"""
    return engine.compile(Source(f"future_{d.name}", parameters, body, group=1 if serial else None, wide=True))


def future(engine: Engine, d: dtype, queries: int, keys: int, first: int) -> StridedArray:
    """What is added to scores so that no query sees the keys after it."""
    out = engine.empty((queries, keys), d)
    if out.size:
        items = -(-out.size // CHUNK) if engine.traits.serial else out.size
        _future_fill(engine, d)(items, out.buffer, out.size, keys, first)
    return out


def turned(x: StridedArray) -> StridedArray:
    """The transposes of matrices, as a view."""
    *batch, rows, columns = x.shape
    *steps, by_row, by_column = x.strides
    return x.restrided((*batch, columns, rows), (*steps, by_column, by_row), x.offset)


def narrowed(x: StridedArray, dim: int, start: int, count: int) -> StridedArray:
    """Some of the places along a dim, as a view."""
    shape = list(x.shape)
    shape[dim] = count
    return x.restrided(tuple(shape), x.strides, x.offset + start * x.strides[dim])


class Attended(NamedTuple):
    """Queries, keys, values and what is added to scores, all with the same batch dims."""

    query: StridedArray
    keys: StridedArray
    values: StridedArray
    mask: StridedArray | None
    first: int | None
    """The place of the first query, where only the past is seen."""
    scale: float

    @property
    def scores(self) -> Shape:
        """The shape of the scores."""
        return (*self.query.shape[:-1], self.keys.shape[-2])

    def parts(self) -> list[tuple[int, int, int, Attended]]:
        """(dim, start, count, that part): halves along the first dim that has any; none where scores are few."""
        if prod(self.scores) <= AT_ONCE:
            return []
        dims = (*range(len(self.scores) - 2), QUERIES)
        dim = next((d for d in dims if self.scores[d] > 1), None)
        if dim is None:
            return []
        size = self.scores[dim]
        halves = ((0, size // 2), (size // 2, size - size // 2))
        return [(dim, start, count, self.part(dim, start, count)) for start, count in halves]

    def part(self, dim: int, start: int, count: int) -> Attended:
        """Some heads, or some queries."""
        cut = partial(narrowed, dim=dim, start=start, count=count)
        query, mask = cut(self.query), None if self.mask is None else cut(self.mask)
        if dim == QUERIES:
            first = None if self.first is None else self.first + start
            return self._replace(query=query, mask=mask, first=first)
        return self._replace(query=query, keys=cut(self.keys), values=cut(self.values), mask=mask)

    def weights(self, multiply: Multiply) -> StridedArray:
        """How much each query takes of each key, in the dtype of scores."""
        engine, d, shape = self.query.engine, wider(self.query.dtype), self.scores
        scores = engine.empty(shape, d)
        multiply(scores, self.query, turned(self.keys), False)
        added, program = self.mask, SCALED if self.mask is None else MASKED
        if added is not None and added.dtype is not d:
            added = widen(added.dtype)(added)
        if self.first is not None:
            past = expanded(future(engine, d, shape[-2], shape[-1], self.first), shape)
            added = past if added is None else POINTWISE["add"](added, past)
            program = FUTURE if self.mask is None else MASKED
        operands = [scores] if added is None else [scores, added]
        weights: StridedArray = rows_of(program, d)(operands, shape, (len(shape) - 1,), (self.scale,))[0]
        return weights


def attend(out: StridedArray, x: Attended, multiply: Multiply) -> None:
    """Write the values that queries take."""
    parts = x.parts()
    for dim, start, count, part in parts:
        attend(narrowed(out, dim, start, count), part, multiply)
    if not parts and out.size:
        multiply(out, rounded(x.weights(multiply), out.dtype), x.values, False)


def attend_back(
    outs: tuple[StridedArray, ...], grad: StridedArray, x: Attended, multiply: Multiply, added: bool = False
) -> None:
    """Write the gradients of query, keys and values; with ``added`` those of keys and values come on top."""
    parts = x.parts()
    for dim, start, count, part in parts:
        changed = [narrowed(o, dim, start, count) if dim != QUERIES or o is outs[0] else o for o in outs]
        further = added or (dim == QUERIES and start > 0)
        attend_back(tuple(changed), narrowed(grad, dim, start, count), part, multiply, further)
    if parts:
        return
    weights, d = x.weights(multiply), grad.dtype
    through = grad.engine.empty(x.scores, weights.dtype)
    multiply(through, grad, turned(x.values), False)
    slope = rows_of(SLOPE, weights.dtype)([weights, through], x.scores, (len(x.scores) - 1,), (x.scale,))[0]
    slope, weights = rounded(slope, d), rounded(weights, d)
    multiply(outs[0], slope, x.keys, False)
    multiply(outs[1], turned(slope), x.query, added)
    multiply(outs[2], turned(weights), grad, added)


# -- kernels ----------------------------------------------------------------------------------------------------------
def fitted(
    query: StridedArray, keys: StridedArray, values: StridedArray, mask: StridedArray | None, causal: bool, scale: float
) -> Attended:
    """The arguments with batch dims expanded. ``RuntimeError`` where shapes do not fit."""
    shapes = query.shape, keys.shape, values.shape
    if min(map(len, shapes)) < 2 or shapes[0][-1] != shapes[1][-1] or shapes[1][-2] != shapes[2][-2]:
        raise RuntimeError(f"attention: shapes {shapes[0]}, {shapes[1]} and {shapes[2]} do not fit")
    batch = broadcast([s[:-2] for s in shapes])
    query, keys, values = (expanded(x, (*batch, *x.shape[-2:])) for x in (query, keys, values))
    scores = (*query.shape[:-1], keys.shape[-2])
    if mask is not None:
        if broadcast([mask.shape, scores]) != scores:
            raise RuntimeError(f"attention: a mask of shape {mask.shape} does not fit scores of {scores}")
        mask = expanded(mask, scores)
    return Attended(query, keys, values, mask, 0 if causal else None, scale)


def multiply(out: StridedArray, a: StridedArray, b: StridedArray, added: bool) -> None:
    """The product of this package, of half types in float32."""
    if not out.size:
        return
    d = wider(a.dtype)
    whole = out
    if a.dtype is not d:
        a, b = widen(a.dtype)(a), widen(b.dtype)(b)
    if out.dtype is not d:
        whole = widen(out.dtype)(out) if added else out.engine.empty(out.shape, d)
    product(d, added)(whole, a, b, whole if added else None, 1, 1)
    if whole is not out:
        narrow(out.dtype)(whole, out=out)


def attention(multiply: Multiply, *arguments: Any) -> StridedArray:
    """The kernel of ``attention`` with the products of a device."""
    x = fitted(*arguments)
    out = x.query.engine.empty((*x.query.shape[:-1], x.values.shape[-1]), x.query.dtype)
    attend(out, x, multiply)
    return out


def attention_backward(multiply: Multiply, grad: StridedArray, *arguments: Any) -> tuple[StridedArray, ...]:
    """The kernel of ``attention_backward``, likewise."""
    x = fitted(*arguments)
    if grad.shape != (*x.query.shape[:-1], x.values.shape[-1]):
        raise RuntimeError(f"attention_backward: a gradient of shape {grad.shape} does not fit")
    outs = tuple([grad.engine.empty(of.shape, of.dtype) for of in (x.query, x.keys, x.values)])
    attend_back(outs, grad, x, multiply)
    return outs


def kernels(multiplying: Callable[[dtype], Multiply]) -> dict[str, Any]:
    """Both kernels, in floating dtypes, over what multiplies arrays of a dtype."""

    def made(kernel: Callable[..., Any]) -> ByDtype:
        return ByDtype(lambda d: partial(kernel, multiplying(d)) if d.category == FLOATING else None)

    return {"attention": made(attention), "attention_backward": made(attention_backward)}


KERNELS: Final = kernels(lambda d: multiply)
