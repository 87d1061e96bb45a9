"""Maxima of windows without a stride: adaptive and fractional max pooling."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

from candelabra.dtypes import FLOATING, int64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.indexing import OF_DIM
from candelabra_clike.kernels.reductions import DtypeSpecialized
from candelabra_clike.layouts import is_wide
from candelabra_clike.templates.convolutions.window_maxima import WindowForm, text

GRAIN = 4096
"""Elements that a work-item reads on serial devices."""
OUTSIDE = IndexOutOfBounds("placed_max_pool", RuntimeError, f"placed_max_pool(): {OF_DIM}")


@lru_cache(None)
def _compiled(engine: Engine, form: WindowForm) -> Launch:
    return engine.compile(text(form))


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
    launch = _compiled(engine, WindowForm(x.dtype, rank, placed is not None, engine.traits.serial, wide))
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


def _for(function: Callable[..., Any]) -> DtypeSpecialized:
    return DtypeSpecialized(lambda d: function if d.category == FLOATING else None)


KERNELS: dict[str, Any] = {"adaptive_max_pool": _for(adaptive_max_pool), "placed_max_pool": _for(placed_max_pool)}
