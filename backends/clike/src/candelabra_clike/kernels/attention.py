"""Scaled dot-product attention: two matrix products, with a row kernel over the scores between them.

On processors, :mod:`candelabra_clike.templates.attention` serves calls of float32 without a mask tensor.
The products are the fastest ones of the device. Their results in memory are bounded: if there are more scores than
:data:`MAX_SCORES`, heads and then ranges of queries are processed one after another. Source: Rabe and Staats,
"Self-attention does not need O(n²) memory", 2021.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import inf, prod
from typing import Any, Final, NamedTuple

from candelabra.dtypes import FLOATING, dtype, float32

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.matmul import DIRECT, expand_to, from_float32, to_float32
from candelabra_clike.kernels.pointwise import POINTWISE
from candelabra_clike.kernels.reductions import DtypeSpecialized
from candelabra_clike.kernels.softmax import row_kernel
from candelabra_clike.language import INDEX, call, constant, select
from candelabra_clike.language.kernels import KernelBuilder, built
from candelabra_clike.layouts import broadcast, collapsed, dense_strides, memory_order
from candelabra_clike.source import Source
from candelabra_clike.templates.attention import in_blocks
from candelabra_clike.templates.elementwise.loops import CHUNK
from candelabra_clike.templates.matmul.matmul import matmul_kernel
from candelabra_clike.templates.rows.program import MAX, SUM, RowExpression, RowProgram, RowReduction

Multiply = Callable[[StridedArray, StridedArray, StridedArray, bool], None]
"""``multiply(out, a, b, added)``: ``out = a @ b``, or ``out += a @ b``. All arrays have the same batch dims.

The product of half types may have a float32 ``out``."""

MAX_SCORES = 1 << 26
"""The maximum number of scores in memory: 256 MiB of float32."""
CAUSAL_QUERIES: Final = 256
"""The number of queries from which those with a causal mask are split on GPUs: fewer hidden scores are computed."""
QUERIES: Final = -2
"""The dim of the queries, counted from the end. Batch dims are counted from the front."""


def _softmax_program(
    name: str,
    operands: int,
    score: RowExpression,
    exponential: RowExpression,
    top: RowExpression = lambda total: total,
    scale: RowExpression = lambda total: 1 / total,
) -> RowProgram:
    """Return a softmax program: exponentials are stored in the output and divided by their sum there."""
    passes = RowReduction(MAX, score, top), RowReduction(SUM, exponential, scale, store_elements=True)
    return RowProgram(name, operands, passes, lambda o, r1: o * r1, numbers=1)


SCALED: Final = _softmax_program(
    "attention", 1, lambda a, s0: a * s0, lambda a, s0, r0: call("exp", a * s0 - r0)
)  # fmt: skip
_MASKED: Final[tuple[RowExpression, RowExpression]] = (
    lambda a, b, s0: a * s0 + b,
    lambda a, b, s0, r0: call("exp", (a * s0 + b) - r0),
)
FUTURE: Final = _softmax_program("attention_future", 2, *_MASKED)
"""A softmax with a causal mask. The mask leaves at least one key for each query."""
MASKED: Final = _softmax_program(
    "attention_masked", 2, *_MASKED,
    lambda total: select(total - total == 0, total, 0), lambda total: select(total == 0, 0, 1 / total),
)  # fmt: skip
"""A softmax with an arbitrary mask. An infinite maximum is not subtracted: if all keys of a query are masked, all
exponentials and all weights are 0."""
SCORE_GRADIENT: Final = RowProgram(
    "attention_slope", 2, (RowReduction(SUM, lambda a, b: a * b),), lambda a, b, r0, s0: a * (b - r0) * s0, numbers=1
)
"""The gradient of the scores, from the weights and the gradient of the weights."""


def score_dtype(d: dtype) -> dtype:
    """Return the dtype of scores. Exponentials of half-precision scores would be inaccurate."""
    return float32 if d.is_half else d


def rounded(x: StridedArray, d: dtype) -> StridedArray:
    """Return the array in the dtype of the queries."""
    return x if x.dtype is d else from_float32(d)(x)


@lru_cache(None)
@built("attention")
def causal_mask_source(d: dtype, serial: bool) -> Source:
    """Return the kernel that writes minus infinity for the keys after each query, counted from ``first``, and 0 for the
    others.
    """
    k = KernelBuilder(f"future_{d.name}", wide=True)
    out, (n, columns, first) = k.writes("out", d), k.numbers("n", "columns", "first")
    with k.share("i", n, constant(INDEX, CHUNK if serial else 1)) as i:
        out[i] = select(i % columns > i // columns + first, constant(out.type, -inf), 0)
    return k.source(group=1 if serial else None)


def causal_mask(engine: Engine, d: dtype, queries: int, keys: int, first: int) -> StridedArray:
    """Return the mask that is added to scores so that no query attends to later keys."""
    out = engine.empty((queries, keys), d)
    if out.size:
        items = -(-out.size // CHUNK) if engine.traits.serial else out.size
        engine.compile(causal_mask_source(d, engine.traits.serial))(items, out.buffer, out.size, keys, first)
    return out


def transpose(x: StridedArray) -> StridedArray:
    """Return the transposes of matrices, as a view."""
    *batch, rows, columns = x.shape
    *steps, by_row, by_column = x.strides
    return x.restrided((*batch, columns, rows), (*steps, by_column, by_row), x.offset)


@lru_cache(4096)
def strides_in_order(shape: Shape, strides: Shape) -> Shape:
    """Return the strides of an array without gaps whose dims but the last have the order in memory of other strides."""
    return dense_strides(shape, (*memory_order(shape[:-1], (strides[:-1],)), len(shape) - 1))


def empty_like(x: StridedArray, shape: Shape) -> StridedArray:
    """Return a new array whose leading dims have the order in memory of those of ``x``.

    Heads are mostly views of vectors that contain all heads; their output and their gradients then are, too, and
    become such vectors again without a copy. Libraries multiply batches at a constant distance only.
    """
    out = x.engine.empty(shape, x.dtype)
    if not x.engine.traits.multiplies or x.contiguous or not out.size:
        return out
    return out.restrided(shape, strides_in_order(shape, x.strides), 0)


def evenly_spaced(x: StridedArray) -> StridedArray:
    """Return matrices at a constant distance: a copy of others for devices on which a library multiplies, which would
    copy them for each product.
    """
    if x.engine.traits.multiplies or len(collapsed(x.shape[:-2], (x.strides[:-2],))[0]) <= 1:
        return x
    return contiguous(x)


def narrow(x: StridedArray, dim: int, start: int, count: int) -> StridedArray:
    """Return a range along a dim, as a view."""
    shape = list(x.shape)
    shape[dim] = count
    return x.restrided(tuple(shape), x.strides, x.offset + start * x.strides[dim])


class AttentionCall(NamedTuple):
    """Queries, keys, values and mask, all with the same batch dims."""

    query: StridedArray
    keys: StridedArray
    values: StridedArray
    mask: StridedArray | None
    first: int | None
    """The index of the first query if the mask is causal, otherwise None."""
    scale: float

    @property
    def scores(self) -> Shape:
        """The shape of the scores."""
        return (*self.query.shape[:-1], self.keys.shape[-2])

    def halves(self, scores: Shape) -> list[tuple[int, int, int, AttentionCall]]:
        """Return (dim, start, count, half) for the halves along the first dim that can be split; empty if there are few
        scores. The later queries come first, since they attend to all keys.
        """
        dim = self.split_dim(scores)
        if dim is None:
            return []
        size = scores[dim]
        halves = ((size // 2, size - size // 2), (0, size // 2))
        return [(dim, start, count, self.part(dim, start, count)) for start, count in halves]

    def split_dim(self, scores: Shape) -> int | None:
        """Return the dim along which to split: there are too many scores, or a causal mask hides a quarter of many."""
        queries, d = scores[QUERIES], self.query.dtype
        if prod(scores) <= MAX_SCORES:
            # Gradients of half types are not accumulated in these.
            hidden = self.first is not None and queries >= CAUSAL_QUERIES and score_dtype(d) is d
            return QUERIES if hidden and not self.query.engine.traits.serial else None
        dims = (*range(len(scores) - 2), QUERIES)
        return next((dim for dim in dims if scores[dim] > 1), None)

    def part(self, dim: int, start: int, count: int) -> AttentionCall:
        """Return the call for some heads, or for some queries, with the keys to which these attend."""
        cut = partial(narrow, dim=dim, start=start, count=count)
        query, mask = cut(self.query), None if self.mask is None else cut(self.mask)
        if dim != QUERIES:
            return self._replace(query=query, keys=cut(self.keys), values=cut(self.values), mask=mask)
        if self.first is None or start:
            return self._replace(query=query, mask=mask, first=None if self.first is None else self.first + start)
        seen = min(self.first + count, self.keys.shape[-2])
        keys, values = (narrow(x, QUERIES, 0, seen) for x in (self.keys, self.values))
        return self._replace(
            query=query, keys=keys, values=values, mask=None if mask is None else narrow(mask, -1, 0, seen)
        )

    def weights(self, multiply: Multiply, shape: Shape) -> StridedArray:
        """Return the attention weights in the dtype of scores, whose shape is given."""
        engine, d = self.query.engine, score_dtype(self.query.dtype)
        scores = engine.empty(shape, d)
        multiply(scores, self.query, transpose(self.keys), False)
        added, program = self.mask, SCALED if self.mask is None else MASKED
        if added is not None and added.dtype is not d:
            added = to_float32(added.dtype)(added)
        if self.first is not None:
            past = expand_to(causal_mask(engine, d, shape[-2], shape[-1], self.first), shape)
            added = past if added is None else POINTWISE["add"](added, past)
            program = FUTURE if self.mask is None else MASKED
        operands = [scores] if added is None else [scores, added]
        weights: StridedArray = row_kernel(program, d)(operands, shape, (len(shape) - 1,), (self.scale,))[0]
        return weights


def compute_output(out: StridedArray, x: AttentionCall, multiply: Multiply) -> None:
    """Write the output of attention into ``out``."""
    if x.mask is None and in_blocks((out, x.query, x.keys, x.values), x.first, x.scale, False):
        return
    shape = x.scores
    halves = x.halves(shape)
    for dim, start, count, part in halves:
        compute_output(narrow(out, dim, start, count), part, multiply)
    if not halves and out.size:
        multiply(out, rounded(x.weights(multiply, shape), out.dtype), x.values, False)


def compute_gradients(
    outs: tuple[StridedArray, ...], grad: StridedArray, x: AttentionCall, multiply: Multiply, added: bool = False
) -> None:
    """Write the gradients of query, keys and values. With ``added``, those of keys and values are accumulated."""
    operands = *outs, grad, x.query, x.keys, x.values
    if x.mask is None and not added and in_blocks(operands, x.first, x.scale, True):
        return
    shape = x.scores
    halves = x.halves(shape)
    for i, (dim, start, count, part) in enumerate(halves):
        query, *others = (
            (narrow(o, dim, start, count) for o in outs)
            if dim != QUERIES
            else (narrow(outs[0], dim, start, count), *[narrow(o, dim, 0, part.keys.shape[-2]) for o in outs[1:]])
        )
        further = added or (dim == QUERIES and i > 0)
        compute_gradients((query, *others), narrow(grad, dim, start, count), part, multiply, further)
    if halves:
        return
    weights, d = x.weights(multiply, shape), grad.dtype
    through = grad.engine.empty(shape, weights.dtype)
    multiply(through, grad, transpose(x.values), False)
    slope = row_kernel(SCORE_GRADIENT, weights.dtype)([weights, through], shape, (len(shape) - 1,), (x.scale,))[0]
    slope, weights = rounded(slope, d), rounded(weights, d)
    multiply(outs[0], slope, x.keys, False)
    multiply(outs[1], transpose(slope), x.query, added)
    multiply(outs[2], transpose(weights), grad, added)


# -- kernels ----------------------------------------------------------------------------------------------------------
def prepare(
    query: StridedArray, keys: StridedArray, values: StridedArray, mask: StridedArray | None, causal: bool, scale: float
) -> AttentionCall:
    """Return the arguments with expanded batch dims. Raises ``RuntimeError`` if the shapes do not fit."""
    shapes = query.shape, keys.shape, values.shape
    if min(map(len, shapes)) < 2 or shapes[0][-1] != shapes[1][-1] or shapes[1][-2] != shapes[2][-2]:
        raise RuntimeError(f"attention: shapes {shapes[0]}, {shapes[1]} and {shapes[2]} do not fit")
    batch = broadcast((shapes[0][:-2], shapes[1][:-2], shapes[2][:-2]))
    query = expand_to(query, (*batch, *query.shape[-2:]))
    keys = expand_to(keys, (*batch, *keys.shape[-2:]))
    values = expand_to(values, (*batch, *values.shape[-2:]))
    scores = (*query.shape[:-1], keys.shape[-2])
    if mask is not None:
        if broadcast([mask.shape, scores]) != scores:
            raise RuntimeError(f"attention: a mask of shape {mask.shape} does not fit scores of {scores}")
        mask = expand_to(mask, scores)
    query, keys, values = evenly_spaced(query), evenly_spaced(keys), evenly_spaced(values)
    return AttentionCall(query, keys, values, mask, 0 if causal else None, scale)


def multiply(out: StridedArray, a: StridedArray, b: StridedArray, added: bool) -> None:
    """The matrix product of this package; half types are multiplied in float32."""
    if not out.size:
        return
    if out.dtype is a.dtype and a.dtype in DIRECT:
        matmul_kernel(a.dtype, added)(out, a, b, out if added else None, 1, 1)
        return
    d = score_dtype(a.dtype)
    whole = out
    if a.dtype is not d:
        a, b = to_float32(a.dtype)(a), to_float32(b.dtype)(b)
    if out.dtype is not d:
        whole = to_float32(out.dtype)(out) if added else out.engine.empty(out.shape, d)
    matmul_kernel(d, added)(whole, a, b, whole if added else None, 1, 1)
    if whole is not out:
        from_float32(out.dtype)(whole, out=out)


def attention(multiply: Multiply, *arguments: Any) -> StridedArray:
    """The kernel of ``attention`` with the matrix products of a device."""
    x = prepare(*arguments)
    out = empty_like(x.query, (*x.query.shape[:-1], x.values.shape[-1]))
    compute_output(out, x, multiply)
    return out


def attention_backward(multiply: Multiply, grad: StridedArray, *arguments: Any) -> tuple[StridedArray, ...]:
    """The kernel of ``attention_backward`` with the matrix products of a device."""
    x = prepare(*arguments)
    if grad.shape != (*x.query.shape[:-1], x.values.shape[-1]):
        raise RuntimeError(f"attention_backward: a gradient of shape {grad.shape} does not fit")
    outs = empty_like(x.query, x.query.shape), empty_like(x.keys, x.keys.shape), empty_like(x.values, x.values.shape)
    compute_gradients(outs, evenly_spaced(grad), x, multiply)
    return outs


def kernels(multiplying: Callable[[dtype], Multiply | None]) -> dict[str, Any]:
    """Return both kernels for floating dtypes; ``multiplying(dtype)`` returns the matrix product of a dtype."""

    return {name: _for_floating(kernel, multiplying) for name, kernel in FUNCTIONS.items()}


def _for_floating(kernel: Callable[..., Any], multiplying: Callable[[dtype], Multiply | None]) -> DtypeSpecialized:
    return DtypeSpecialized(lambda d: partial(kernel, multiplying(d)) if d.category == FLOATING else None)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {"attention": attention, "attention_backward": attention_backward}
KERNELS: Final = {name: _for_floating(kernel, lambda d: multiply) for name, kernel in FUNCTIONS.items()}
