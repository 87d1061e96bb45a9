"""Padding by elements of the array itself, in one pass over the result."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, Final

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.index_walker import coordinates
from candelabra_clike.templates.indexing.gather import bits
from candelabra_clike.types import CTYPES

GRAIN: Final = 4096
"""Elements of the result per work-item on serial devices."""
SOURCES: Final = {
    "reflect": (
        "{p} < {before} ? {before} - {p} : {p} < {before} + {n} ? {p} - {before} : 2u * {n} + {before} - 2u - {p}"
    ),
    "replicate": "{p} < {before} ? 0 : {p} < {before} + {n} ? {p} - {before} : {n} - 1u",
    "circular": "{p} < {before} ? {p} + {n} - {before} : {p} < {before} + {n} ? {p} - {before} : {p} - {before} - {n}",
}
"""Where the element at position ``{p}`` of a padded dim is taken from, of ``{n}`` elements."""


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
    launch = compiled(engine, bits(x.dtype), dims, mode, is_wide(x, out))
    items = -(-rows // per_item) if engine.traits.serial else out.size
    launch(items, out.buffer, x.buffer, x.offset, rows, per_item, prod(sizes), *sizes, *before, *padded)
    return out


@lru_cache(None)
def compiled(engine: Engine, d: dtype, dims: int, mode: str, wide: bool) -> Launch:
    """Return the compiled kernel."""
    return engine.compile(text(engine.traits.serial, d, dims, mode, wide))


def text(serial: bool, d: dtype, dims: int, mode: str, wide: bool) -> Source:
    """Return the kernel for ``dims`` padded dims. A work-item writes some rows of the last dim, or one element."""
    memory, last = CTYPES[d].memory, dims - 1
    names = [f"{part}{k}" for part in ("size", "before", "padded") for k in range(dims)]
    head = (writes("out", memory), reads("x", memory), *map(number, ("x_at", "rows", "per_item", "plane", *names)))

    def source(p: str, k: int) -> str:
        return SOURCES[mode].format(p=p, before=f"before{k}", n=f"size{k}")

    locate = "INDEX left = row, at = 0, stride = size" + f"{last};\n"
    locate += "\n".join(
        coordinates(
            "left", last, "padded",
            lambda k, p: f"{{ const INDEX p = {p}; at += ({source('p', k)}) * stride; stride *= size{k}; }}\n",
            outermost=False,
        )
    )  # fmt: skip
    locate += f"GLOBAL const {memory}* const from = x + (x_at + left * plane + at);\n"
    locate += f"GLOBAL {memory}* const to = out + row * padded{last};\n"
    if serial:
        end = f"before{last} + size{last}"
        body = (
            "const INDEX begin = GLOBAL_ID * per_item, rest = rows - begin;\n"
            "const INDEX stop = begin + (rest < per_item ? rest : per_item);\n"
            f"for (INDEX row = begin; row < stop; ++row) {{\n{locate}"
            f"for (INDEX p = 0; p < before{last}; ++p) to[p] = from[{source('p', last)}];\n"
            f"INDEPENDENT\nfor (INDEX i = 0; i < size{last}; ++i) to[before{last} + i] = from[i];\n"
            f"for (INDEX p = {end}; p < padded{last}; ++p) to[p] = from[{source('p', last)}];\n}}\n"
        )
    else:
        body = (
            f"const INDEX row = GLOBAL_ID / padded{last}, p = GLOBAL_ID % padded{last};\n"
            f"if (row < rows) {{\n{locate}to[p] = from[{source('p', last)}];\n}}\n"
        )
    return Source(f"pad_{mode}_{memory}_{dims}", head, body, group=1 if serial else None, wide=wide)


KERNELS: dict[str, Any] = {"pad_around": pad_around}
