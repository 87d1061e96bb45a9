"""Normalisation to mean 0 and variance 1 over any dims, and the gradient of its input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra.dtypes import FLOATING, dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.kernels.reductions import DtypeSpecialized
from candelabra_clike.kernels.softmax import row_kernel
from candelabra_clike.layouts import broadcast
from candelabra_clike.templates.rows.source import RowProgram, RowReduction

MEAN = RowReduction("{a}", "sum", "{t} / (W)count", stored_result=True)
RSTD = RowReduction("({a} - {r0}) * ({a} - {r0})", "sum", "1 / SQRT((T)({t} / (W)count) + s0)", stored_result=True)
NORMALIZE = {
    (False, False): RowProgram("normalize", 1, (MEAN, RSTD), "({a} - {r0}) * {r1}", 1),
    (True, False): RowProgram("normalize_w", 2, (MEAN, RSTD), "(({a} - {r0}) * {r1}) * {b}", 1),
    (False, True): RowProgram("normalize_b", 2, (MEAN, RSTD), "({a} - {r0}) * {r1} + {b}", 1),
    (True, True): RowProgram("normalize_wb", 3, (MEAN, RSTD), "(({a} - {r0}) * {r1}) * {b} + {c}", 1),
}
"""The programs by whether there are a weight and a bias."""


def _backward(name: str, operands: int, h: str) -> RowProgram:
    """Return the program for gradient a, input b, mean c and rstd d: (h - mean(h) - z * mean(h z)) * d, z = (b - c) *
    d.
    """
    z = "(({b} - {c}) * {d})"
    passes = RowReduction(h, "sum", "{t} / (W)count"), RowReduction(f"({h}) * {z}", "sum", "{t} / (W)count")
    return RowProgram(name, operands, passes, f"(({h}) - {{r0}} - {z} * {{r1}}) * {{d}}", contract=False)


BACKWARD = {
    False: _backward("normalize_backward", 4, "{a}"),
    True: _backward("normalize_backward_w", 5, "{a} * {e}"),
}
"""The programs by whether there is a weight."""


def _normalize_for(d: dtype) -> Callable[..., tuple[StridedArray, ...]] | None:
    if d.category != FLOATING:
        return None

    def normalize(x: StridedArray, weight: Any, bias: Any, dims: Shape, eps: float) -> tuple[StridedArray, ...]:
        operands = [t for t in (x, weight, bias) if t is not None]
        shape = broadcast([t.shape for t in operands]) if len(operands) > 1 else x.shape
        if shape != x.shape:
            raise RuntimeError(f"normalize: weight and bias are larger than {x.shape}")
        rows = row_kernel(NORMALIZE[weight is not None, bias is not None], d)
        return tuple(rows(operands, shape, dims, (eps,)))

    return normalize


def _normalize_backward_for(d: dtype) -> Callable[..., StridedArray] | None:
    if d.category != FLOATING:
        return None

    def backward(
        grad: StridedArray, x: StridedArray, mean: StridedArray, rstd: StridedArray, weight: Any, dims: Shape
    ) -> StridedArray:
        operands = [grad, x, mean, rstd] if weight is None else [grad, x, mean, rstd, weight]
        return row_kernel(BACKWARD[weight is not None], d)(operands, broadcast([t.shape for t in operands]), dims)[0]

    return backward


KERNELS: dict[str, Any] = {
    "normalize": DtypeSpecialized(_normalize_for),
    "normalize_backward": DtypeSpecialized(_normalize_backward_for),
}
