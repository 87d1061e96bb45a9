"""Grids of affine maps, which interpolation at the points of a grid reads."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from candelabra.dtypes import dtype, float32, float64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.reductions import DtypeSpecialized
from candelabra_clike.language import INDEX, Value, Variable, cast
from candelabra_clike.language.kernels import KernelBuilder, built
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import Source
from candelabra_clike.templates.index_walker import each_coordinate

GRAIN = 4096
"""Points that a work-item computes on serial devices."""


@built("affine_grid_generator")
def source(d: dtype, rank: int, align_corners: bool, serial: bool, wide: bool) -> Source:
    """Return the kernel in which a work-item computes the points of some rows along the last dim, or one point."""
    k = KernelBuilder(f"affine_grid{rank}d_{'corners_' * align_corners}{d.name}", wide)
    out, theta = k.writes("out", d), k.reads("theta", d)
    theta_at, rows, per_item, dims = *k.numbers("theta_at", "rows", "per_item"), range(rank)
    sizes = [k.number(f"size{i}", "i32") for i in dims]
    factors, shifts = ([k.number(f"{name}{i}", out.type) for i in dims] for name in ("factor", "shift"))
    last, columns = rank - 1, rank + 1

    def position(dim: int, i: Value) -> Value:
        """Return the place in [-1, 1] of element ``i`` along a dim."""
        number = cast(out.type, i)
        return number * factors[dim] + shifts[dim] if align_corners else (number * 2 + shifts[dim]) / factors[dim]

    def points(row: Value) -> tuple[list[Variable], list[Variable]]:
        """Declare the coefficients of the points of a row: those of the place along the last dim, and the rest."""
        rest, places = k.variable("rest", row), {}
        for dim, i in each_coordinate(k, rest, [cast(INDEX, size) for size in sizes[:last]], outermost=False):
            places[dim] = k.let(f"place{dim}", position(dim, i))
        of_map = k.pointer("of_map", theta, theta_at + rest * (rank * columns))
        slopes, origins = [], []
        for i in dims:
            origin = of_map[i * columns + rank]
            for dim, place in places.items():
                origin = origin + of_map[i * columns + last - dim] * place
            slopes.append(k.let(f"slope{i}", of_map[i * columns]))
            origins.append(k.let(f"origin{i}", origin))
        return slopes, origins

    if serial:
        with k.share("row", rows, per_item) as row:
            slopes, origins = points(row)
            to = k.pointer("to", out, row * cast(INDEX, sizes[last]) * rank)
            with k.loop("i", 0, sizes[last], independent=True) as i:
                x = k.let("x", position(last, i))
                for n in dims:
                    to[i * rank + n] = slopes[n] * x + origins[n]
        return k.source(group=1, contract=True)
    length = cast(INDEX, sizes[last])
    slopes, origins = points(k.let("row", k.item // length))
    x = k.let("x", position(last, k.item % length))
    for n in dims:
        out[k.item * rank + n] = slopes[n] * x + origins[n]
    return k.source(contract=True)


@lru_cache(None)
def compiled(engine: Engine, d: dtype, rank: int, align_corners: bool, wide: bool) -> Launch:
    """Return the compiled kernel."""
    return engine.compile(source(d, rank, align_corners, engine.traits.serial, wide))


def affine_grid_generator(theta: StridedArray, size: Shape, align_corners: bool) -> Any:
    """The points of the grids in one launch."""
    engine, spatial, rank = theta.engine, tuple(size[2:]), len(size) - 2
    if rank not in (2, 3) or theta.shape != (size[0], rank, rank + 1) or max(spatial) >= 1 << 31:
        return NotImplemented  # for the body, which also says what is wrong
    theta, out = contiguous(theta), engine.empty((size[0], *spatial, rank), theta.dtype)
    if not out.size:
        return out
    if align_corners:  # a single element is at 0
        factors, shifts = [2 / max(n - 1, 1) for n in spatial], [0.0 if n == 1 else -1.0 for n in spatial]
    else:
        factors, shifts = [float(n) for n in spatial], [1.0 - n for n in spatial]
    rows = size[0] * prod(spatial[:-1])
    per_item = max(1, GRAIN // spatial[-1])
    items = -(-rows // per_item) if engine.traits.serial else rows * spatial[-1]
    compiled(engine, theta.dtype, rank, bool(align_corners), is_wide(theta, out))(
        items, out.buffer, theta.buffer, theta.offset, rows, per_item, *spatial, *factors, *shifts
    )
    return out


KERNELS: dict[str, Any] = {
    # Positions of half types are rounded by the body.
    "affine_grid_generator": DtypeSpecialized(lambda d: affine_grid_generator if d in (float32, float64) else None),
}
