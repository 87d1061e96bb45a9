"""Distances of all pairs of points, and their gradients: no difference of two points is ever written to memory."""

from __future__ import annotations

from math import inf
from typing import Any, Final

from candelabra.dtypes import FLOATING

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.kernels.matmul import expanded
from candelabra_clike.kernels.reductions import ByDtype
from candelabra_clike.kernels.softmax import rows_of
from candelabra_clike.layouts import broadcast
from candelabra_clike.templates.rows.text import Pass, Program

APART: Final = "({a} > {b} ? {a} - {b} : {b} - {a})"
"""How far apart two coordinates are."""
SIGN: Final = "({a} > {b} ? 1 : {a} < {b} ? -1 : {a} - {b})"
"""On which side of the second the first one is."""


def _lengths(name: str, *passes: Pass, numbers: int = 0, scalar: bool = True) -> Program:
    return Program(f"distances_{name}", 2, passes, numbers=numbers, scalar=scalar)


LENGTHS: Final = {
    0: _lengths("0", Pass("({a} - {b} == 0 ? 0 : 1)", "sum", written=True)),
    1: _lengths("1", Pass(APART, "sum", written=True), scalar=False),
    2: _lengths("2", Pass("({a} - {b}) * ({a} - {b})", "sum", "SQRT((T){t})", written=True), scalar=False),
    # A maximum leaves NaN out, so that is added; and of no coordinates at all it is below 0.
    inf: _lengths(
        "inf", Pass(APART, "max"),
        Pass("({a} - {b} == {a} - {b} ? 0 : {a} - {b})", "sum", "(T){t} + ({r0} < 0 ? 0 : {r0})", written=True),
    ),
}  # fmt: skip
OTHER_LENGTH: Final = _lengths(
    "p", Pass(f"POWER({APART}, s0)", "sum", "POWER((T){t}, 1 / s0)", written=True), numbers=1
)
"""Programs over the coordinates of two points, by the exponent of the norm."""


def _slopes(name: str, each: str, numbers: int = 0) -> Program:
    return Program(f"slopes_{name}", 4, (Pass(each, "sum", written=True),), numbers=numbers, scalar=True)


SLOPES: Final = {
    0: _slopes("0", "({a} - {b}) * 0"),
    1: _slopes("1", f"{{c}} * {SIGN}"),
    2: _slopes("2", "{c} * ({a} - {b}) / ({d} == 0 ? 1 : {d})"),
    inf: _slopes("inf", f"{{c}} * {SIGN} * ({APART} == {{d}} ? 1 : 0)"),
}
OTHER_SLOPE: Final = _slopes(
    "p",
    f"{{c}} * {SIGN} * POWER(({{a}} == {{b}} ? 1 : {APART}), s0 - 1) / POWER(({{d}} == 0 ? 1 : {{d}}), s0 - 1)",
    numbers=1,
)
"""Programs over the second points, of one coordinate: ``{c}`` is the gradient of a distance, ``{d}`` the distance."""


def _placed(x: StridedArray, batch: Shape, sizes: Shape, dims: tuple[int | None, int | None, int | None]) -> Any:
    """A batch of matrices seen with three last dims; each is a dim of the matrices, or none along which they repeat."""
    whole = expanded(x, (*batch, *x.shape[-2:]))
    steps = [0 if d is None else whole.strides[d] for d in dims]
    return whole.restrided((*batch, *sizes), (*whole.strides[:-2], *steps), whole.offset)


def _run(programs: dict[float, Program], other: Program, operands: list[StridedArray], p: float) -> StridedArray:
    """The program of an exponent over the last dim, which goes."""
    program = programs.get(p, other)
    shape = operands[0].shape
    numbers = (p,) if program.numbers else ()
    out: StridedArray = rows_of(program, operands[0].dtype)(operands, shape, (len(shape) - 1,), numbers)[0]
    return out.reshaped(shape[:-1])


def distances(x1: StridedArray, x2: StridedArray, p: float) -> StridedArray:
    """The kernel of ``distances``: (…, n, m) from (…, n, k) and (…, m, k)."""
    if min(len(x1.shape), len(x2.shape)) < 2 or x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"distances: shapes {x1.shape} and {x2.shape} do not fit")
    batch = broadcast([x1.shape[:-2], x2.shape[:-2]])
    sizes = (x1.shape[-2], x2.shape[-2], x1.shape[-1])
    operands = [_placed(x1, batch, sizes, (-2, None, -1)), _placed(x2, batch, sizes, (None, -2, -1))]
    return _run(LENGTHS, OTHER_LENGTH, operands, float(p))


def distances_backward(
    grad: StridedArray, x1: StridedArray, x2: StridedArray, out: StridedArray, p: float
) -> StridedArray:
    """The kernel of ``distances_backward``: (…, n, k) from gradients and distances (…, n, m)."""
    pairs = (*broadcast([x1.shape[:-2], x2.shape[:-2]]), x1.shape[-2], x2.shape[-2])
    if grad.shape != pairs or out.shape != pairs or x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"distances_backward: shapes {grad.shape}, {x1.shape}, {x2.shape}, {out.shape} do not fit")
    batch, sizes = pairs[:-2], (x1.shape[-2], x1.shape[-1], x2.shape[-2])
    operands = [
        _placed(x1, batch, sizes, (-2, -1, None)), _placed(x2, batch, sizes, (None, -1, -2)),
        _placed(grad, batch, sizes, (-2, None, -1)), _placed(out, batch, sizes, (-2, None, -1)),
    ]  # fmt: skip
    return _run(SLOPES, OTHER_SLOPE, operands, float(p))


def _floating(kernel: Any) -> ByDtype:
    return ByDtype(lambda d: kernel if d.category == FLOATING else None)


KERNELS: Final[dict[str, Any]] = {
    "distances": _floating(distances),
    "distances_backward": _floating(distances_backward),
}
