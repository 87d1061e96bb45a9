"""Distances of all pairs of rows of a matrix, and the gradient of the rows."""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import Any, Final, NamedTuple

from candelabra.dtypes import dtype, float32

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.distances import NORMS, P_NORM, absolute_difference, sign
from candelabra_clike.kernels.reductions import of_floating
from candelabra_clike.language import Value, call, constant, round_to, select
from candelabra_clike.layouts import WIDE
from candelabra_clike.templates.pairs import LANES, PairGradient, gradient_source, packing, reduction_source
from candelabra_clike.templates.reduction_dims import max_offset
from candelabra_clike.types import CTYPES

GRAIN = 1 << 17
"""Differences of coordinates that justify another work-item on serial devices."""


GRADIENTS: Final[dict[float, PairGradient]] = {
    0: PairGradient("0", lambda g: g, lambda a, b: (a - b) * 0),
    1: PairGradient("1", lambda g: g, lambda a, b, w: w * sign(a, b)),
    2: PairGradient("2", lambda g, d: g / select(d == 0, 1, d), lambda a, b, w: w * (a - b)),
}
P_GRADIENT: Final = PairGradient(
    "p",
    lambda g, d, s0: g / call("power", select(d == 0, 1, d), s0 - 1),
    lambda a, b, w, s0: w * sign(a, b) * call("power", select(a == b, 1, absolute_difference(a, b)), s0 - 1),
    numbers=1,
)
"""The gradients of distances, by the order of the norm."""


@lru_cache(None)
def largest_gradient(memory: dtype) -> PairGradient:
    """Return the gradient of the maximum norm. Distances of half types were rounded, so the differences are too."""

    def slope(a: Value, b: Value, w: Value, d: Value) -> Value:
        attains = round_to(memory, absolute_difference(a, b)) == d
        return w * sign(a, b) * select(attains, constant(w.type, 1), 0)

    types = (CTYPES[memory].value,) if memory.is_half else ("f32", "f64")
    return PairGradient("inf", lambda g: g, slope, types=types)


def _gradient(d: dtype, p: float) -> PairGradient:
    return largest_gradient(d if d.is_half else float32) if p == inf else GRADIENTS.get(p, P_GRADIENT)


class PairPlan(NamedTuple):
    """A kernel over pairs for matrices of one layout."""

    launch: Launch
    items: int
    pack: Launch | None
    """The kernel that packs the points first, if there are several work-items."""
    blocks: int
    memory: int
    """The bytes of the packed points, and of the scratch memory behind them."""
    layout: tuple[int, ...]
    numbers: tuple[float, ...]
    max_offset: int
    """The maximum offset of an element from the first one of its array."""


@lru_cache(4096)
def planned(
    engine: Engine, d: dtype, p: float, shape: Shape, strides: Shape, gradient: bool, wide: bool
) -> PairPlan | None:
    """Return the plan of distances in the p-norm, or of their ``gradient``. None for results without elements."""
    (points, depth), traits, value = shape, engine.traits, 8 if d.itemsize == 8 else 4
    blocks, few, pairs = -(-points // LANES), traits.registers // 4, points * (points - 1) // 2
    if not (points * depth if gradient else pairs):
        return None
    items, scratch = min(max(1, points * points * depth // GRAIN), traits.compute_units), 0
    far = max(4 * pairs, max_offset(shape, strides), LANES * (blocks * depth + 2 * items * points))
    wide = wide or far >= WIDE
    if gradient:
        program = _gradient(d, p)
        stripe, numbers, scratch = LANES, program.numbers, program.scratch * points * value
        together = (1 if numbers else few) if traits.serial else None
        source = gradient_source(program, d, traits.float64, wide, together)
    else:
        norm = NORMS.get(p, P_NORM)
        stripe, numbers = 1 if norm.numbers else few // len(norm.passes), norm.numbers
        source = reduction_source(norm, d, traits.float64, stripe, traits.serial, wide)
    items = min(-(-points // stripe), items)
    pack = engine.compile(packing(d, wide)) if items > 1 or not traits.serial else None
    if not traits.serial:
        items, scratch = points * depth if gradient else pairs, 0
    return PairPlan(
        engine.compile(source), items, pack, blocks, blocks * LANES * depth * value + items * scratch or 1,
        (*strides, *shape), (p,) * numbers, far,
    )  # fmt: skip


def _run(x: StridedArray, p: float, shape: Shape, *pairs: StridedArray) -> StridedArray:
    """Run the kernel of distances, or that of their gradient, which is given arrays over ``pairs``."""
    engine = x.engine
    out: StridedArray = engine.empty(shape, x.dtype)
    offsets = (x.offset, *[each.offset for each in pairs])
    plan = planned(engine, x.dtype, p, x.shape, x.strides, bool(pairs), False)
    if plan is None:
        return out
    if any(offsets) and max(offsets) + plan.max_offset >= WIDE:
        plan = planned(engine, x.dtype, p, x.shape, x.strides, bool(pairs), True)
        assert plan is not None
    arrays = out.buffer, engine.allocate(plan.memory), x.buffer
    if plan.pack is not None:
        plan.pack(plan.blocks, *arrays, x.offset, *plan.layout)
    plan.launch(plan.items, *arrays, *[each.buffer for each in pairs], *offsets, *plan.layout, *plan.numbers)
    return out


def pdist(input: StridedArray, p: float) -> StridedArray:
    """The kernel of ``pdist``: the distances of all pairs of rows."""
    if len(input.shape) != 2 or not p >= 0:
        raise RuntimeError(f"pdist: expected a matrix and p >= 0, got shape {input.shape} and p={p}")
    points = input.shape[0]
    return _run(input, float(p), (points * (points - 1) // 2,))


def pdist_backward(grad: StridedArray, input: StridedArray, out: StridedArray, p: float) -> StridedArray:
    """The kernel of ``pdist_backward``: the gradient of the rows, from gradients and distances of all pairs."""
    pairs = input.shape[0] * (input.shape[0] - 1) // 2 if len(input.shape) == 2 else -1
    if not grad.shape == out.shape == (pairs,):
        raise RuntimeError(f"pdist_backward: shapes {grad.shape}, {input.shape} and {out.shape} do not match")
    return _run(input, float(p), input.shape, contiguous(grad), contiguous(out))


KERNELS: Final[dict[str, Any]] = {"pdist": of_floating(pdist), "pdist_backward": of_floating(pdist_backward)}
