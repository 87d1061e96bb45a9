"""Pairwise distances and their gradients. The differences of points are never stored in memory."""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import Any, Final

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.matmul import expand_to
from candelabra_clike.kernels.reductions import of_floating
from candelabra_clike.kernels.softmax import row_kernel
from candelabra_clike.language import Value, call, cast, constant, select, sqrt
from candelabra_clike.layouts import broadcast
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.rows.program import MAX, SUM, RowExpression, RowProgram, RowReduction


def absolute_difference(a: Value, b: Value) -> Value:
    """Return the absolute difference of two coordinates."""
    return select(a > b, a - b, b - a)


def sign(a: Value, b: Value) -> Value:
    """Return the sign of the difference of two coordinates."""
    return select(a > b, 1, select(a < b, -1, a - b))


def _norm_program(name: str, *passes: RowReduction, numbers: int = 0) -> RowProgram:
    return RowProgram(f"distances_{name}", 2, passes, numbers=numbers)


NORMS: Final = {
    0: _norm_program(
        "0", RowReduction(SUM, lambda a, b: select(a - b == 0, constant(a.type, 0), 1), stored_result=True)
    ),
    1: _norm_program("1", RowReduction(SUM, absolute_difference, stored_result=True)),
    2: _norm_program(
        "2",
        RowReduction(
            SUM, lambda a, b: (a - b) * (a - b), lambda total, type: sqrt(cast(type, total)), stored_result=True
        ),
    ),
    # The maximum ignores NaN, so a sum that propagates NaN is added. Without coordinates the maximum is below 0.
    inf: _norm_program(
        "inf", RowReduction(MAX, absolute_difference),
        RowReduction(
            SUM, lambda a, b: select(a - b == a - b, 0, a - b),
            lambda total, type, r0: cast(type, total) + select(r0 < 0, 0, r0), stored_result=True,
        ),
    ),
}  # fmt: skip
P_NORM: Final = _norm_program(
    "p",
    RowReduction(
        SUM,
        lambda a, b, s0: call("power", absolute_difference(a, b), s0),
        lambda total, type, s0: call("power", cast(type, total), 1 / s0),
        stored_result=True,
    ),
    numbers=1,
)
"""Programs over the coordinates of two points, by the order of the norm."""


def _gradient_program(name: str, each: RowExpression, numbers: int = 0) -> RowProgram:
    return RowProgram(f"slopes_{name}", 4, (RowReduction(SUM, each, stored_result=True),), numbers=numbers)


def _p_norm_slope(a: Value, b: Value, c: Value, d: Value, s0: Value) -> Value:
    difference, distance = select(a == b, 1, absolute_difference(a, b)), select(d == 0, 1, d)
    return c * sign(a, b) * call("power", difference, s0 - 1) / call("power", distance, s0 - 1)


NORM_GRADIENTS: Final = {
    0: _gradient_program("0", lambda a, b: (a - b) * 0),
    1: _gradient_program("1", lambda a, b, c: c * sign(a, b)),
    2: _gradient_program("2", lambda a, b, c, d: c * (a - b) / select(d == 0, 1, d)),
    inf: _gradient_program(
        "inf",
        lambda a, b, c, d: c * sign(a, b) * select(absolute_difference(a, b) == d, constant(d.type, 1), 0),
    ),
}
P_NORM_GRADIENT: Final = _gradient_program("p", _p_norm_slope, numbers=1)
"""Programs over the second points for one coordinate. ``c`` is the gradient of a distance, ``d`` the distance."""
EUCLIDEAN_GRADIENT: Final = RowProgram(
    "slopes_2", 3, (RowReduction(SUM, lambda a, b, c: c * (a - b), stored_result=True),)
)
"""The program of Euclidean distances. ``c`` is the gradient of a distance divided by the distance."""


@lru_cache(None)
def _slopes(d: dtype) -> Elementwise:
    """Return the kernel that divides gradients by distances, and leaves those of equal points."""
    return Elementwise.of(f"distance_slopes_{d.name}", lambda a, b: a / select(b == 0, 1, b), (d, d), d)


def _expand_pairs(x: StridedArray, batch: Shape, sizes: Shape, dims: tuple[int | None, int | None, int | None]) -> Any:
    """View a batch of matrices with three last dims. Each is a dim of the matrices, or None for a broadcast dim."""
    whole = expand_to(x, (*batch, *x.shape[-2:]))
    steps = [0 if d is None else whole.strides[d] for d in dims]
    return whole.restrided((*batch, *sizes), (*whole.strides[:-2], *steps), whole.offset)


def _run(programs: dict[float, RowProgram], other: RowProgram, operands: list[StridedArray], p: float) -> StridedArray:
    """Run the program of an order over the last dim, which is removed."""
    program = programs.get(p, other)
    shape = operands[0].shape
    numbers = (p,) if program.numbers else ()
    out: StridedArray = row_kernel(program, operands[0].dtype)(operands, shape, (len(shape) - 1,), numbers)[0]
    return out.reshaped(shape[:-1])


def distances(x1: StridedArray, x2: StridedArray, p: float) -> StridedArray:
    """The kernel of ``distances``: (…, n, m) from (…, n, k) and (…, m, k)."""
    if min(len(x1.shape), len(x2.shape)) < 2 or x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"distances: shapes {x1.shape} and {x2.shape} do not match")
    batch = broadcast([x1.shape[:-2], x2.shape[:-2]])
    sizes = (x1.shape[-2], x2.shape[-2], x1.shape[-1])
    operands = [_expand_pairs(x1, batch, sizes, (-2, None, -1)), _expand_pairs(x2, batch, sizes, (None, -2, -1))]
    return _run(NORMS, P_NORM, operands, float(p))


def distances_backward(
    grad: StridedArray, x1: StridedArray, x2: StridedArray, out: StridedArray, p: float
) -> StridedArray:
    """The kernel of ``distances_backward``: (…, n, k) from gradients and distances (…, n, m)."""
    pairs = (*broadcast([x1.shape[:-2], x2.shape[:-2]]), x1.shape[-2], x2.shape[-2])
    if grad.shape != pairs or out.shape != pairs or x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"distances_backward: shapes {grad.shape}, {x1.shape}, {x2.shape}, {out.shape} do not match")
    batch, sizes = pairs[:-2], (x1.shape[-2], x1.shape[-1], x2.shape[-2])
    if p == 2 and not grad.dtype.is_half:  # the quotients would be rounded
        # The second points by coordinates: what the sums run over is adjacent.
        (*front, rows, depth), (*steps, down, across) = x2.shape, x2.strides
        columns = contiguous(x2.restrided((*front, depth, rows), (*steps, across, down), x2.offset))
        operands = [
            _expand_pairs(x1, batch, sizes, (-2, -1, None)), _expand_pairs(columns, batch, sizes, (None, -2, -1)),
            _expand_pairs(contiguous(_slopes(grad.dtype)(grad, out)), batch, sizes, (-2, None, -1)),
        ]  # fmt: skip
        return _run({2: EUCLIDEAN_GRADIENT}, EUCLIDEAN_GRADIENT, operands, 2)
    operands = [
        _expand_pairs(x1, batch, sizes, (-2, -1, None)), _expand_pairs(x2, batch, sizes, (None, -1, -2)),
        _expand_pairs(grad, batch, sizes, (-2, None, -1)), _expand_pairs(out, batch, sizes, (-2, None, -1)),
    ]  # fmt: skip
    return _run(NORM_GRADIENTS, P_NORM_GRADIENT, operands, float(p))


KERNELS: Final[dict[str, Any]] = {
    "distances": of_floating(distances),
    "distances_backward": of_floating(distances_backward),
}
