"""The multilabel margin loss and its gradient: a work-item compares the labels of a row with its other classes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from candelabra.dtypes import dtype, float32, float64

from candelabra_clike.array import StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.indexing import OF_DIM
from candelabra_clike.kernels.reductions import DtypeSpecialized
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.types import CTYPES

GRAIN = 2048
"""Scores that a work-item reads on serial devices."""
INVALID_LABEL = IndexOutOfBounds("label_margins", RuntimeError, f"gather(): {OF_DIM}")
_ROWS = """u32 wrong = 0; i64 value = 0;
const INDEX begin = GLOBAL_ID * per_item, end = begin + per_item < rows ? begin + per_item : rows;
for (INDEX row = begin; row < end; ++row) {{
GLOBAL const {memory}* const from = x + (x_at + row * count);
GLOBAL const i64* const labels = target + (target_at + row * count);
INDEX many = 0; u32 bad = 0;
for (; many < count && labels[many] != -1; ++many) {{
if ((u64)labels[many] >= (u64)count) {{ bad = 1; value = labels[many]; }}
}}
wrong |= bad;
if (bad) many = 0;
{first}for (INDEX i = 0; i < count; ++i) {{
u32 named = 0;
for (INDEX k = 0; k < many; ++k) named |= labels[k] == (i64)i;
if (named) continue;
for (INDEX k = 0; k < many; ++k) {{
const {value_type} z = 1 - from[labels[k]] + from[i];
{each}}}
}}
{last}}}
if (wrong) report_error(errors, ticket, value, 1, (i64)count);"""


@lru_cache(None)
def compiled(engine: Engine, d: dtype, gradient: bool, wide: bool) -> Launch:
    """Return the kernel of the losses, or of their gradient, which counts the pairs of a class before it scales."""
    c = CTYPES[d]
    parameters = (
        writes("out", c.memory), *((reads("grad", c.memory),) if gradient else ()), reads("x", c.memory),
        reads("target", "i64"), writes("errors", "i64"), number("ticket", "u32"),
        *map(number, (*(("grad_at",) if gradient else ()), "x_at", "target_at", "rows", "per_item", "count")),
    )  # fmt: skip
    if gradient:
        first = f"GLOBAL {c.memory}* const to = out + row * count;\nfor (INDEX j = 0; j < count; ++j) to[j] = 0;\n"
        each = "if (z > 0) { to[i] += 1; to[labels[k]] -= 1; }\n"
        last = (
            f"const {c.value} scale = grad[grad_at + row] / count;\nfor (INDEX j = 0; j < count; ++j) to[j] *= scale;\n"
        )
    else:
        first, each = f"{c.value} sum = 0;\n", "sum += z <= 0 ? 0 : z;\n"
        last = "out[row] = sum / count;\n"
    body = _ROWS.format(memory=c.memory, value_type=c.value, first=first, each=each, last=last)
    name = f"label_margins_{'backward_' if gradient else ''}{d.name}"
    return engine.compile(Source(name, parameters, body, group=1 if engine.traits.serial else None, wide=wide))


def _run(x: StridedArray, target: StridedArray, grad: StridedArray | None) -> Any:
    engine = x.engine
    if len(x.shape) != 2 or target.shape != x.shape or 0 in x.shape:
        return NotImplemented  # for the body, which also says what is wrong
    rows, count = x.shape
    out = engine.empty(x.shape if grad is not None else (rows,), x.dtype)
    arrays = [contiguous(each) for each in (grad, x, target) if each is not None]
    errors, ticket = engine.errors.register(INVALID_LABEL, [])
    per_item = max(1, GRAIN // count) if engine.traits.serial else 1
    wide = max(each.offset + each.size for each in arrays) >= WIDE
    compiled(engine, x.dtype, grad is not None, wide)(
        -(-rows // per_item), out.buffer, *[each.buffer for each in arrays], errors, ticket,
        *[each.offset for each in arrays], rows, per_item, count,
    )  # fmt: skip
    return out


def label_margins(x: StridedArray, target: StridedArray) -> Any:
    """Return the loss of each row."""
    return _run(x, target, None)


def label_margins_backward(grad: StridedArray, x: StridedArray, target: StridedArray) -> Any:
    """Return the gradient of the scores."""
    return _run(x, target, grad)


SINGLE = (float32, float64)
"""The dtypes in which the pairs of a class are counted in the result; a count may be beyond a half type."""
KERNELS: dict[str, Any] = {
    "label_margins": DtypeSpecialized(lambda d: label_margins if d in SINGLE else None),
    "label_margins_backward": DtypeSpecialized(lambda d: label_margins_backward if d in SINGLE else None),
}
