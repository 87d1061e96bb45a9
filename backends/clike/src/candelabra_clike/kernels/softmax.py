"""Softmax, log-softmax, their gradients, and logsumexp."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.kernels.reductions import of_floating
from candelabra_clike.language import call, cast, select
from candelabra_clike.layouts import broadcast
from candelabra_clike.templates.rows.program import MAX, SUM, RowProgram, RowReduction
from candelabra_clike.templates.rows.rows import RowKernel

TOP = RowReduction(MAX, lambda a: a)
EXPONENTIALS = RowReduction(SUM, lambda a, r0: call("exp", a - r0), lambda total: 1 / total)
SOFTMAX = RowProgram("softmax", 1, (TOP, EXPONENTIALS._replace(store_elements=True)), lambda o, r1: o * r1)
"""Exponentials are stored in the output and scaled there."""
SOFTMAX_OF_HALVES = RowProgram("softmax", 1, (TOP, EXPONENTIALS), lambda a, r0, r1: call("exp", a - r0) * r1)
"""Exponentials are computed twice: a half type has too few digits to store them."""
LOG_SOFTMAX = RowProgram(
    "log_softmax", 1, (TOP, EXPONENTIALS._replace(result=lambda total, type: call("log", cast(type, total)))),
    lambda a, r0, r1: (a - r0) - r1,
)  # fmt: skip
SOFTMAX_BACKWARD = RowProgram(
    "softmax_backward", 2, (RowReduction(SUM, lambda a, b: a * b),), lambda a, b, r0: b * (a - r0)
)
LOG_SOFTMAX_BACKWARD = RowProgram(
    "log_softmax_backward", 2, (RowReduction(SUM, lambda a: a),), lambda a, b, r0: a - call("exp", b) * r0
)
LOG_SOFTMAX_ALONG = RowProgram(
    "log_softmax_along", 2, (RowReduction(SUM, lambda a, b: call("exp", b) * a),), lambda a, r0: a - r0
)
# An infinite maximum is not subtracted: exp(-inf) is 0, and exp(inf) is inf.
LOGSUMEXP = RowProgram(
    "logsumexp", 1,
    (
        TOP._replace(result=lambda total: select(total - total == 0, total, 0)),
        RowReduction(
            SUM, lambda a, r0: call("exp", a - r0), lambda total, type, r0: call("log", cast(type, total)) + r0,
            stored_result=True,
        ),
    ),
)  # fmt: skip


@lru_cache(None)
def row_kernel(program: RowProgram, d: dtype) -> RowKernel:
    """Return the kernel of a program for a dtype, compiled once."""
    return RowKernel(program, d)


def _along(choose: Callable[[dtype], RowProgram], *arguments: Any) -> StridedArray:
    """Run a program along one dim, the last of the arguments."""
    *operands, dim = arguments
    shape = operands[0].shape if len(operands) == 1 else broadcast([x.shape for x in operands])
    d = operands[0].dtype
    return row_kernel(choose(d), d)(operands, shape, (dim,) if shape else ())[0]


def logsumexp(x: StridedArray, dim: Shape | None, keepdim: bool) -> StridedArray:
    """The kernel of ``logsumexp``."""
    return row_kernel(LOGSUMEXP, x.dtype).reduced([x], dim, keepdim)[0]


ALONG: dict[str, Callable[[dtype], RowProgram]] = {
    "softmax": lambda d: SOFTMAX_OF_HALVES if d.is_half else SOFTMAX,
    "log_softmax": lambda d: LOG_SOFTMAX,
    "softmax_backward": lambda d: SOFTMAX_BACKWARD,
    "log_softmax_backward": lambda d: LOG_SOFTMAX_BACKWARD,
    "log_softmax_along": lambda d: LOG_SOFTMAX_ALONG,
}
"""The programs along one dim: of the operands of a call, whose last argument is the dim."""
KERNELS: dict[str, Any] = {
    **{name: of_floating(partial(_along, program)) for name, program in ALONG.items()},
    "logsumexp": of_floating(logsumexp),
}
