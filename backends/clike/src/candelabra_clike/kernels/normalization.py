"""Normalisation to mean 0 and variance 1 over any dims, and the gradient of its input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra.dtypes import FLOATING, dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.kernels.reductions import ByDtype
from candelabra_clike.kernels.softmax import rows_of
from candelabra_clike.layouts import broadcast
from candelabra_clike.templates.rows.text import Pass, Program

MEAN = Pass("{a}", "sum", "{t} / (W)count", written=True)
RSTD = Pass("({a} - {r0}) * ({a} - {r0})", "sum", "1 / SQRT((T)({t} / (W)count) + s0)", written=True)
NORMALIZE = {
    (False, False): Program("normalize", 1, (MEAN, RSTD), "({a} - {r0}) * {r1}", 1),
    (True, False): Program("normalize_w", 2, (MEAN, RSTD), "(({a} - {r0}) * {r1}) * {b}", 1),
    (False, True): Program("normalize_b", 2, (MEAN, RSTD), "({a} - {r0}) * {r1} + {b}", 1),
    (True, True): Program("normalize_wb", 3, (MEAN, RSTD), "(({a} - {r0}) * {r1}) * {b} + {c}", 1),
}
"""By whether there are a weight and a bias."""


def _backward(name: str, operands: int, h: str) -> Program:
    """With gradient a, input b, mean c, rstd d and z = (b - c) * d: (h - mean(h) - z * mean(h z)) * d."""
    z = "(({b} - {c}) * {d})"
    passes = Pass(h, "sum", "{t} / (W)count"), Pass(f"({h}) * {z}", "sum", "{t} / (W)count")
    return Program(name, operands, passes, f"(({h}) - {{r0}} - {z} * {{r1}}) * {{d}}")


BACKWARD = {
    False: _backward("normalize_backward", 4, "{a}"),
    True: _backward("normalize_backward_w", 5, "{a} * {e}"),
}
"""By whether there is a weight."""


def _normalize_for(d: dtype) -> Callable[..., tuple[StridedArray, ...]] | None:
    if d.category != FLOATING:
        return None

    def normalize(x: StridedArray, weight: Any, bias: Any, dims: Shape, eps: float) -> tuple[StridedArray, ...]:
        operands = [t for t in (x, weight, bias) if t is not None]
        shape = broadcast([t.shape for t in operands]) if len(operands) > 1 else x.shape
        if shape != x.shape:
            raise RuntimeError(f"normalize: weight and bias are larger than {x.shape}")
        rows = rows_of(NORMALIZE[weight is not None, bias is not None], d)
        return tuple(rows(operands, shape, dims, (eps,)))

    return normalize


def _normalize_backward_for(d: dtype) -> Callable[..., StridedArray] | None:
    if d.category != FLOATING:
        return None

    def backward(
        grad: StridedArray, x: StridedArray, mean: StridedArray, rstd: StridedArray, weight: Any, dims: Shape
    ) -> StridedArray:
        operands = [grad, x, mean, rstd] if weight is None else [grad, x, mean, rstd, weight]
        return rows_of(BACKWARD[weight is not None], d)(operands, broadcast([t.shape for t in operands]), dims)[0]

    return backward


KERNELS: dict[str, Any] = {
    "normalize": ByDtype(_normalize_for),
    "normalize_backward": ByDtype(_normalize_backward_for),
}
