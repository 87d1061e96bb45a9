"""Padding by elements of the array itself, in one pass over the result."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import compiled
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.language import INDEX, Value, constant, select
from candelabra_clike.language.kernel_arrays import KernelArray
from candelabra_clike.language.kernels import KernelBuilder, built
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import Source
from candelabra_clike.templates.index_walker import each_coordinate
from candelabra_clike.templates.indexing.gather import bits
from candelabra_clike.types import CTYPES

GRAIN: Final = 4096
"""Elements of the result per work-item on serial devices."""
ORIGINS: Final[dict[str, Callable[[Value, Value, Value], Value]]] = {
    "reflect": lambda p, before, n: select(
        p < before, before - p, select(p < before + n, p - before, 2 * n + before - 2 - p)
    ),
    "replicate": lambda p, before, n: select(p < before, 0, select(p < before + n, p - before, n - 1)),
    "circular": lambda p, before, n: select(
        p < before, p + n - before, select(p < before + n, p - before, p - before - n)
    ),
}
"""Where element ``p`` of a padded dim is taken from, with ``before`` elements in front of its ``n`` own ones."""


def pad_around(x: StridedArray, pad: Shape, mode: str) -> StridedArray | Any:
    """The kernel of ``pad_around``. Declines negative sizes, and those that the body of the operator refuses."""
    dims = len(pad) // 2
    before, after = pad[::2][::-1], pad[1::2][::-1]
    sizes = x.shape[len(x.shape) - dims :]
    most = {"reflect": -1, "circular": 0}.get(mode)
    for size, first, last in zip(sizes, before, after, strict=True):
        if not size or min(first, last) < 0 or (most is not None and max(first, last) > size + most):
            return NotImplemented
    padded = tuple([first + size + last for size, first, last in zip(sizes, before, after, strict=True)])
    engine, x = x.engine, contiguous(x)
    out = engine.empty((*x.shape[: len(x.shape) - dims], *padded), x.dtype)
    if not out.size:
        return out
    rows = out.size // padded[-1]
    per_item = max(1, GRAIN // padded[-1])
    launch = compiled(engine, source, engine.traits.serial, bits(x.dtype), dims, mode, is_wide(x, out))
    items = -(-rows // per_item) if engine.traits.serial else out.size
    launch(items, out.buffer, x.buffer, x.offset, rows, per_item, prod(sizes), *sizes, *before, *padded)
    return out


@built("pad_around")
def source(serial: bool, d: dtype, dims: int, mode: str, wide: bool) -> Source:
    """Return the kernel for ``dims`` padded dims. A work-item writes some rows of the last dim, or one element."""
    memory, last = CTYPES[d].memory, dims - 1
    k = KernelBuilder(f"pad_{mode}_{memory}_{dims}", wide)
    out, x = k.writes("out", memory), k.reads("x", memory)
    x_at, rows, per_item, plane = k.numbers("x_at", "rows", "per_item", "plane")
    sizes, before, padded = (k.per_dim(n, dims) for n in ("size", "before", "padded"))

    def origin(p: Value, dim: int) -> Value:
        return ORIGINS[mode](p, before[dim], sizes[dim])

    def declare_rows(row: Value) -> tuple[KernelArray, KernelArray]:
        left, at = k.variable("left", row), k.variable("at", constant(INDEX, 0))
        stride = k.variable("stride", sizes[last])
        for dim, coordinate in each_coordinate(k, left, padded[:last], outermost=False):
            with k.block():
                k.assign(at, at + origin(k.let("place", coordinate), dim) * stride)
                k.assign(stride, stride * sizes[dim])
        return k.pointer("to_row", out, row * padded[last]), k.pointer("from_row", x, x_at + left * plane + at)

    if not serial:
        row, p = k.let("row", k.item // padded[last]), k.let("p", k.item % padded[last])
        with k.when(row < rows):
            to_row, from_row = declare_rows(row)
            to_row[p] = from_row[origin(p, last)]
        return k.source()
    with k.share("row", rows, per_item) as row:
        to_row, from_row = declare_rows(row)
        with k.loop("p", 0, before[last]) as p:
            to_row[p] = from_row[origin(p, last)]
        with k.loop("i", 0, sizes[last], independent=True) as i:
            to_row[before[last] + i] = from_row[i]
        with k.loop("p", before[last] + sizes[last], padded[last]) as p:
            to_row[p] = from_row[origin(p, last)]
    return k.source(group=1)


KERNELS: dict[str, Any] = {"pad_around": pad_around}
