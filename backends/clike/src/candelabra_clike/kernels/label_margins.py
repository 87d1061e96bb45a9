"""The multilabel margin loss and its gradient: a work-item compares the labels of a row with its other classes."""

from __future__ import annotations

from typing import Any

from candelabra.dtypes import dtype

from candelabra_clike.array import StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import compiled
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.indexing import OF_DIM
from candelabra_clike.kernels.reductions import of_single_and_double
from candelabra_clike.language import INDEX, and_then, cast, constant, select
from candelabra_clike.language.kernels import KernelBuilder, built
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import Source
from candelabra_clike.templates.indexing.index_arrays import IndexErrors

GRAIN = 2048
"""Scores that a work-item reads on serial devices."""
INVALID_LABEL = IndexOutOfBounds("label_margins", RuntimeError, f"gather(): {OF_DIM}")


@built("label_margins")
def source(d: dtype, gradient: bool, serial: bool, wide: bool) -> Source:
    """Return the kernel of the losses, or of their gradient, which counts the pairs of a class before it scales."""
    k = KernelBuilder(f"label_margins_{'backward_' * gradient}{d.name}", wide)
    out, grad = k.writes("out", d), k.reads("grad", d) if gradient else None
    x, target, errors = k.reads("x", d), k.reads("target", "i64"), IndexErrors(k)
    grad_at = k.number("grad_at") if gradient else constant(INDEX, 0)
    x_at, target_at, rows, per_item, count = k.numbers("x_at", "target_at", "rows", "per_item", "count")
    errors.declare()
    with k.share("row", rows, per_item) as row:
        scores = k.pointer("scores", x, x_at + row * count)
        labels = k.pointer("labels", target, target_at + row * count)
        many, bad = k.variable("many", constant(INDEX, 0)), k.variable("bad", constant("bool", 0))
        with k.repeat(and_then(many < count, labels[many] != -1)):
            with k.when(cast("u64", labels[many]) >= count):
                k.assign(bad, 1)
                errors.note(labels[many])
            k.assign(many, many + 1)
        with k.when(bad):
            k.assign(many, 0)
        to, total = k.pointer("to", out, row * count if gradient else row), k.variable("sum", constant(x.type, 0))
        if gradient:
            k.fill(to, count)
        with k.loop("i", 0, count) as i:
            named = k.variable("named", constant("bool", 0))
            with k.loop("n", 0, many) as n:
                k.assign(named, named | (labels[n] == cast("i64", i)))
            with k.when(~named), k.loop("n", 0, many) as n:
                z = k.let("z", 1 - scores[labels[n]] + scores[i])
                if gradient:
                    with k.when(z > 0):
                        to[i] = to[i] + 1
                        to[labels[n]] = to[labels[n]] - 1
                else:
                    k.assign(total, total + select(z <= 0, 0, z))
        if grad is None:
            to[0] = total / cast(x.type, count)
        else:
            scale = k.let("scale", grad[grad_at + row] / cast(x.type, count))
            with k.loop("j", 0, count) as j:
                to[j] = to[j] * scale
    errors.report(1, count)
    return k.source(group=1 if serial else None)


def label_margins(x: StridedArray, target: StridedArray, grad: StridedArray | None = None) -> Any:
    """Return the loss of each row, or the gradient of the scores."""
    engine = x.engine
    if len(x.shape) != 2 or target.shape != x.shape or 0 in x.shape:
        return NotImplemented  # for the body, which also says what is wrong
    rows, count = x.shape
    out = engine.empty(x.shape if grad is not None else (rows,), x.dtype)
    arrays = [contiguous(each) for each in ((x, target) if grad is None else (grad, x, target))]
    errors, ticket = engine.errors.register(INVALID_LABEL, [])
    per_item = max(1, GRAIN // count) if engine.traits.serial else 1
    compiled(engine, source, x.dtype, grad is not None, engine.traits.serial, is_wide(*arrays))(
        -(-rows // per_item), out.buffer, *[each.buffer for each in arrays], errors, ticket,
        *[each.offset for each in arrays], rows, per_item, count,
    )  # fmt: skip
    return out


def label_margins_backward(grad: StridedArray, x: StridedArray, target: StridedArray) -> Any:
    """Return the gradient of the scores."""
    return label_margins(x, target, grad)


KERNELS: dict[str, Any] = {  # a count of the pairs of a class may be beyond a half type
    "label_margins": of_single_and_double(label_margins),
    "label_margins_backward": of_single_and_double(label_margins_backward),
}
