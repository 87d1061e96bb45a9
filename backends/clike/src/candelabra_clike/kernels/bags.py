"""Sums, means and maxima of bags of rows of a table, and their gradients. The rows are not copied."""

from __future__ import annotations

from typing import Any

from candelabra.dtypes import int64

from candelabra_clike.array import StridedArray
from candelabra_clike.device_errors import TICKET_MASK, IndexOutOfBounds
from candelabra_clike.engine import compiled
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.indexing import OUT_OF_RANGE
from candelabra_clike.kernels.reductions import of_floating, of_single_and_double
from candelabra_clike.layouts import WIDE
from candelabra_clike.templates import bags

GRAIN = 1 << 14
"""Elements that a work-item computes on serial devices."""
NO_ROW = IndexOutOfBounds("bag_sums", IndexError, OUT_OF_RANGE)
NO_START = IndexOutOfBounds("bag_sums", RuntimeError, "offset {index} is not between 0 and {size}")


def _launch(
    form: bags.BagForm,
    outs: tuple[StridedArray, ...],
    operands: list[StridedArray],
    count: int,
    indices: int,
    rows: int,
    width: int,
) -> None:
    """Launch a kernel over ``count`` bags of indices."""
    out, engine, serial = outs[0], outs[0].engine, outs[0].engine.traits.serial
    of_rows = form.kind.endswith("gradient")
    units, elements = (rows, out.size) if of_rows else (count, max(indices, count) * max(width, 1))
    arrays = [x if x.contiguous else contiguous(x) for x in operands]
    wide = max([x.offset + x.size for x in (*outs, *arrays)]) >= WIDE
    errors, ticket = engine.errors.register(NO_ROW, [])
    per_item = max(1, GRAIN * units // elements, -(-units // engine.traits.compute_units)) if serial else 1
    start_ticket = engine.errors.number(NO_START) | (ticket & TICKET_MASK)
    compiled(engine, bags.source, form, serial, wide)(
        -(-units // per_item) if serial else out.size, *[x.buffer for x in outs], *[x.buffer for x in arrays],
        errors, ticket, start_ticket, *[x.offset for x in arrays], per_item, count, indices, rows, width,
    )  # fmt: skip


def _fitting(
    weight: StridedArray, indices: StridedArray, starts: StridedArray, scales: StridedArray | None,
    grad: StridedArray | None = None,
) -> None:  # fmt: skip
    """Raise ``RuntimeError`` for shapes that do not match. Without them, kernels would read beyond the arrays."""
    vectors = len(indices.shape) == len(starts.shape) == 1
    if len(weight.shape) != 2 or not vectors or (scales is not None and scales.shape != indices.shape):
        raise RuntimeError("bags are a matrix, vectors of indices and starts, and a scale for each index")
    if grad is not None and grad.shape != (starts.shape[0], weight.shape[1]):
        raise RuntimeError(f"the gradient of bags has shape {(starts.shape[0], weight.shape[1])}, got {grad.shape}")


def bag_sums(
    weight: StridedArray, indices: StridedArray, starts: StridedArray, scales: StridedArray | None, mean: bool,
    scale_grad_by_freq: bool,
) -> StridedArray:  # fmt: skip
    """The kernel of ``bag_sums``."""
    _fitting(weight, indices, starts, scales)
    (bags_,), (rows, width) = starts.shape, weight.shape
    out: StridedArray = weight.engine.empty((bags_, width), weight.dtype)
    if out.size:
        form = bags.BagForm("sums", weight.dtype, scales is not None, mean)
        operands = [weight, indices, starts, *([] if scales is None else [scales])]
        _launch(form, (out,), operands, starts.size, indices.size, rows, width)
    return out


def bag_maxima(weight: StridedArray, indices: StridedArray, starts: StridedArray) -> tuple[StridedArray, StridedArray]:
    """The kernel of ``bag_maxima``."""
    _fitting(weight, indices, starts, None)
    engine, (bags_,), (rows, width) = weight.engine, starts.shape, weight.shape
    outs = engine.empty((bags_, width), weight.dtype), engine.empty((bags_, width), int64)
    if outs[0].size:
        form = bags.BagForm("maxima", weight.dtype)
        _launch(form, outs, [weight, indices, starts], bags_, indices.size, rows, width)
    return outs


def bag_sums_backward(
    grad: StridedArray, indices: StridedArray, starts: StridedArray, scales: StridedArray | None, rows: int,
    mean: bool, scale_grad_by_freq: bool,
) -> Any:  # fmt: skip
    """The kernel of ``bag_sums_backward``: on serial devices, without counts of the indices."""
    if scale_grad_by_freq or not grad.engine.traits.serial:
        return NotImplemented
    _fitting(grad, indices, starts, scales, grad)
    width = grad.shape[1]
    out: StridedArray = grad.engine.empty((rows, width), grad.dtype)
    if out.size:
        form = bags.BagForm("sums_gradient", grad.dtype, scales is not None, mean)
        operands = [grad, indices, starts, *([] if scales is None else [scales])]
        _launch(form, (out,), operands, starts.size, indices.size, rows, width)
    return out


def bag_maxima_backward(grad: StridedArray, at: StridedArray, rows: int) -> Any:
    """The kernel of ``bag_maxima_backward``: on serial devices."""
    if not grad.engine.traits.serial:
        return NotImplemented
    if len(grad.shape) != 2 or grad.shape != at.shape:
        raise RuntimeError(f"the gradient and the rows of maxima are matrices, got {grad.shape} and {at.shape}")
    (count, width), engine = grad.shape, grad.engine
    out: StridedArray = engine.empty((rows, width), grad.dtype)
    if out.size:
        _launch(bags.BagForm("maxima_gradient", grad.dtype), (out,), [grad, at], count, 0, rows, width)
    return out


def bag_dots(grad: StridedArray, weight: StridedArray, indices: StridedArray, starts: StridedArray, mean: bool) -> Any:
    """The kernel of ``bag_dots``: on serial devices."""
    if not grad.engine.traits.serial or not starts.size:
        return NotImplemented
    _fitting(weight, indices, starts, None, grad)
    rows, width = weight.shape
    out: StridedArray = grad.engine.empty(indices.shape, grad.dtype)
    if out.size:
        form, operands = bags.BagForm("dots", grad.dtype, False, mean), [grad, weight, indices, starts]
        _launch(form, (out,), operands, starts.size, indices.size, rows, width)
    return out


KERNELS: dict[str, Any] = {
    "bag_sums": of_floating(bag_sums), "bag_maxima": of_floating(bag_maxima),
    "bag_sums_backward": of_single_and_double(bag_sums_backward), "bag_dots": of_single_and_double(bag_dots),
    "bag_maxima_backward": of_single_and_double(bag_maxima_backward),
}  # fmt: skip
