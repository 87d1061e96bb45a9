"""Pooling over any number of spatial dims: maximum with index, sum, and the gradient of the sum. Maxima of windows
without a stride: adaptive and fractional max pooling.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import prod
from typing import Any

from candelabra.dtypes import BOOL, COMPLEX, dtype, int64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import compiled
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.indexing import OF_DIM
from candelabra_clike.kernels.reductions import DtypeSpecialized, of_floating, of_single_and_double
from candelabra_clike.language import INDEX, cast
from candelabra_clike.language.kernels import KernelBuilder, built
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import Source
from candelabra_clike.templates.convolutions.pooling import max_reduction, pool, sum_reduction
from candelabra_clike.templates.convolutions.window_maxima import WindowForm, source

max_reduction = lru_cache(None)(max_reduction)
sum_reduction = lru_cache(None)(sum_reduction)


def _max_pool(with_index: bool, x: StridedArray, window: Shape, *geometry: Shape) -> Any:
    """Return maxima, and their indices. ``geometry`` is stride, padding, dilation and the number of windows."""
    *steps, windows = geometry
    shape = (*x.shape[: -len(window)], *windows)
    outs = pool(x, max_reduction(x.dtype, with_index), shape, window, *steps)
    return tuple(outs) if with_index else outs[0]


def sum_pool(x: StridedArray, window: Shape, *geometry: Shape) -> StridedArray:
    """Return sums, see :func:`_max_pool`."""
    *steps, windows = geometry
    return pool(x, sum_reduction(x.dtype), (*x.shape[: -len(window)], *windows), window, *steps)[0]


def sum_pool_adjoint(y: StridedArray, shape: Shape, *geometry: Shape) -> StridedArray:
    """Return the gradient of sums for an input of a shape. ``geometry`` is the window, stride, padding and dilation."""
    return pool(y, sum_reduction(y.dtype, adjoint=True), tuple(shape), *geometry)[0]


def _of_other_dtypes(kernel: Callable[..., Any], *categories: int) -> DtypeSpecialized:
    """Return a kernel that declines dtypes of some categories."""
    return DtypeSpecialized(lambda d: None if d.category in categories else kernel)


GRAIN = 4096
"""Elements that a work-item reads on serial devices."""
OUTSIDE = IndexOutOfBounds("placed_max_pool", RuntimeError, f"placed_max_pool(): {OF_DIM}")


def _run(
    x: StridedArray, output_size: Shape, elements: int, placed: tuple[StridedArray, Shape] | None
) -> tuple[StridedArray, StridedArray]:
    """Launch the kernel. ``elements`` is the number of elements of a window."""
    engine, rank, x = x.engine, len(output_size), contiguous(x)
    lead, sizes = x.shape[: len(x.shape) - rank], x.shape[len(x.shape) - rank :]
    out, indices = (engine.empty((*lead, *output_size), d) for d in (x.dtype, int64))
    if not out.size:
        return out, indices
    arrays = (x, out) if placed is None else (x, out, placed[0])
    wide = is_wide(*arrays) or any((m + 1) * (n + 1) >= 1 << 31 for m, n in zip(output_size, sizes))
    launch = compiled(engine, source, WindowForm(x.dtype, rank, placed is not None, engine.traits.serial, wide))
    rows = out.size // output_size[-1]
    per_item = max(1, min(GRAIN // (elements * output_size[-1]), rows // (4 * engine.traits.compute_units)))
    items = -(-rows // per_item) if engine.traits.serial else out.size
    numbers = (x.offset, rows, per_item, *sizes, *output_size)
    if placed is None:
        launch(items, out.buffer, indices.buffer, x.buffer, *numbers)
    else:
        starts, window = placed
        # Any start of the first dim that is too large for its windows; the kernel reports the dim.
        errors, ticket = engine.errors.register(OUTSIDE, [(starts, 0, max(sizes))])
        buffers = (out.buffer, indices.buffer, x.buffer, starts.buffer, errors, ticket)
        launch(items, *buffers, *numbers, starts.offset, *window)
    return out, indices


def adaptive_max_pool(x: StridedArray, output_size: Shape) -> tuple[StridedArray, StridedArray]:
    """The maxima of windows that cover the last dims evenly, and their indices."""
    sizes = x.shape[len(x.shape) - len(output_size) :]
    elements = prod(-(-n // max(m, 1)) for n, m in zip(sizes, output_size))
    return _run(x, tuple(output_size), max(elements, 1), None)


def placed_max_pool(
    x: StridedArray, starts: StridedArray, window: Shape, output_size: Shape
) -> tuple[StridedArray, StridedArray]:
    """The maxima of windows at given places, and their indices."""
    if starts.shape != (*x.shape[:2], sum(output_size)):
        raise ValueError(f"starts of shape {starts.shape} do not match an input of shape {x.shape}")
    return _run(x, tuple(output_size), max(prod(window), 1), (contiguous(starts), tuple(window)))


@built("window_starts")
def starts_source(d: dtype, rank: int, serial: bool, wide: bool) -> Source:
    """Return the kernel in which a work-item computes the starts of the windows of some planes."""
    k = KernelBuilder(f"window_starts{rank}d_{d.name}", wide)
    out, samples = k.writes("out", "i64"), k.reads("samples", d)
    samples_at, planes, per_item, total = k.numbers("samples_at", "planes", "per_item", "total")
    dims = range(rank)
    counts, last = [k.number(f"count{i}", "i32") for i in dims], [k.number(f"last{i}", "i64") for i in dims]
    steps = [k.number(f"step{i}", samples.type) for i in dims]
    with k.share("plane", planes, per_item) as plane:
        first = k.variable("first", plane * total)
        for dim in dims:
            number = samples[samples_at + plane * rank + (rank - 1 - dim if rank == 2 else dim)]
            with k.block():
                u, count, to = k.let("u", number), counts[dim], k.pointer("to", out, first)
                origin = k.let("origin", cast("i64", u * steps[dim]))
                with k.loop("i", 0, count - 1, independent=True) as i:
                    to[i] = cast("i64", (cast(samples.type, i) + u) * steps[dim]) - origin
                to[count - 1] = last[dim]
                k.assign(first, first + cast(INDEX, count))
    return k.source(group=1 if serial else None)


def window_starts(samples: StridedArray, sizes: Shape, window: Shape, output_size: Shape) -> Any:
    """The starts of windows in one launch."""
    engine, rank, total = samples.engine, len(sizes), sum(output_size)
    matching = len(samples.shape) == 3 and samples.shape[2] == rank
    if not matching or not min(output_size, default=0) or max(output_size) >= 1 << 31:
        return NotImplemented  # for the body, which also says what is wrong
    samples = contiguous(samples)
    planes = samples.shape[0] * samples.shape[1]
    out = engine.empty((*samples.shape[:2], total), int64)
    if out.size:
        last = [n - k for n, k in zip(sizes, window)]
        steps = [each / max(m - 1, 1) for each, m in zip(last, output_size)]
        per_item = max(1, GRAIN // total) if engine.traits.serial else 1
        compiled(engine, starts_source, samples.dtype, rank, engine.traits.serial, is_wide(samples, out))(
            -(-planes // per_item), out.buffer, samples.buffer, samples.offset, planes, per_item, total, *output_size,
            *last, *steps,
        )  # fmt: skip
    return out


KERNELS: dict[str, Any] = {
    "max_pool": _of_other_dtypes(partial(_max_pool, True), BOOL, COMPLEX),
    "max_pool_values": _of_other_dtypes(partial(_max_pool, False), BOOL, COMPLEX),
    "sum_pool": _of_other_dtypes(sum_pool, BOOL),
    "sum_pool_adjoint": _of_other_dtypes(sum_pool_adjoint, BOOL),
    "adaptive_max_pool": of_floating(adaptive_max_pool),
    "placed_max_pool": of_floating(placed_max_pool),
    "window_starts": of_single_and_double(window_starts),
}
