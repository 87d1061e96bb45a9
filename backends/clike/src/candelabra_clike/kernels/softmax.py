"""Softmax, its logarithm, their gradients, and the logarithm of sums of exponentials."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from candelabra.backend import contiguous_strides, reduced_shape
from candelabra.dtypes import FLOATING, dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.kernels.reductions import ByDtype
from candelabra_clike.layouts import broadcast
from candelabra_clike.templates.rows.rows import Rows
from candelabra_clike.templates.rows.text import Pass, Program

TOP = Pass("{a}", "max")
SOFTMAX = Program("softmax", 1, (TOP, Pass("EXP({a} - {r0})", "sum", "1 / {t}", keep=True)), "{o} * {r1}")
"""Powers are kept in the output and scaled there."""
SOFTMAX_OF_HALVES = Program(
    "softmax", 1, (TOP, Pass("EXP({a} - {r0})", "sum", "1 / {t}")), "EXP({a} - {r0}) * {r1}"
)  # fmt: skip
"""Powers are computed twice: a half holds too few of their digits."""
LOG_SOFTMAX = Program(
    "log_softmax", 1, (TOP, Pass("EXP({a} - {r0})", "sum", "LOG((T){t})")), "({a} - {r0}) - {r1}"
)  # fmt: skip
SOFTMAX_BACKWARD = Program("softmax_backward", 2, (Pass("{a} * {b}", "sum"),), "{b} * ({a} - {r0})")
LOG_SOFTMAX_BACKWARD = Program("log_softmax_backward", 2, (Pass("{a}", "sum"),), "{a} - EXP({b}) * {r0}")
# An infinite maximum is not taken off: exp(-inf) is 0, and exp(inf) is inf.
LOGSUMEXP = Program(
    "logsumexp", 1, (
        Pass("{a}", "max", "({t} - {t} == 0) ? {t} : 0"),
        Pass("EXP({a} - {r0})", "sum", "LOG((T){t}) + {r0}", written=True),
    ),
)  # fmt: skip


@lru_cache(None)
def rows_of(program: Program, d: dtype) -> Rows:
    """A program over a dtype, its kernels compiled once."""
    return Rows(program, d)


def _along(choose: Callable[[dtype], Program]) -> ByDtype:
    """The kernel of a program along one dim."""

    def for_dtype(d: dtype) -> Callable[..., StridedArray] | None:
        if d.category != FLOATING:
            return None
        rows = rows_of(choose(d), d)

        def kernel(*arguments: Any) -> StridedArray:
            *operands, dim = arguments
            shape = operands[0].shape if len(operands) == 1 else broadcast([x.shape for x in operands])
            return rows(operands, shape, (dim,) if shape else ())[0]

        return kernel

    return ByDtype(for_dtype)


def _logsumexp_for(d: dtype) -> Callable[..., StridedArray] | None:
    if d.category != FLOATING:
        return None
    rows = rows_of(LOGSUMEXP, d)

    def logsumexp(x: StridedArray, dim: Shape | None, keepdim: bool) -> StridedArray:
        dims = tuple(range(len(x.shape))) if dim is None else dim
        out = rows([x], x.shape, dims)[0]
        shape = reduced_shape(x.shape, dims, keepdim)
        return out.restrided(shape, contiguous_strides(shape), 0)

    return logsumexp


KERNELS: dict[str, Any] = {
    "softmax": _along(lambda d: SOFTMAX if d.itemsize > 2 else SOFTMAX_OF_HALVES),
    "log_softmax": _along(lambda d: LOG_SOFTMAX),
    "softmax_backward": _along(lambda d: SOFTMAX_BACKWARD),
    "log_softmax_backward": _along(lambda d: LOG_SOFTMAX_BACKWARD),
    "logsumexp": ByDtype(_logsumexp_for),
}
