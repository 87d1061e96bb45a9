"""Linear layers: a product of matrices that starts from the bias, in one launch, and the gradient of the weight."""

from __future__ import annotations

from typing import Any

from candelabra_clike.array import StridedArray
from candelabra_clike.kernels.copies import clone
from candelabra_clike.kernels.matmul import DIRECT
from candelabra_clike.templates.matmul.matmul import matmul_kernel


def linear(x: StridedArray, weight: StridedArray, bias: StridedArray | None) -> Any:
    """The kernel of ``linear``: ``x @ weight.T + bias`` for x (*, in), weight (out, in) and bias (out).

    The vectors along the last dim of ``x`` are the rows of one matrix. Declines other shapes and dtypes.
    """
    d = x.dtype
    if (
        d not in DIRECT or weight.dtype is not d or not x.shape or len(weight.shape) != 2
        or x.shape[-1] != weight.shape[1]
        or (bias is not None and (bias.dtype is not d or bias.shape != weight.shape[:1]))
    ):  # fmt: skip
        return NotImplemented
    count, depth = weight.shape
    out = x.engine.empty((*x.shape[:-1], count), d)
    if not out.size:
        return out
    rows, product = x, out
    if len(x.shape) != 2:
        m = out.size // count
        rows, product = (x if x.contiguous else clone(x)).reshaped((m, depth)), out.reshaped((m, count))
    step, across = weight.strides
    columns = weight.restrided((depth, count), (across, step), weight.offset)
    start = None
    if bias is not None:
        start = bias.restrided(product.shape, (0, bias.strides[0]), bias.offset)
    matmul_kernel(d, start is not None)(product, rows, columns, start, 1.0, 1.0)
    return out


def linear_weight_backward(grad: StridedArray, x: StridedArray) -> Any:
    """The kernel of ``linear_weight_backward``: the sum of the outer products of grad (*, out) and x (*, in).

    Declines other shapes and dtypes.
    """
    d = x.dtype
    if d not in DIRECT or grad.dtype is not d or not x.shape or grad.shape[:-1] != x.shape[:-1]:
        return NotImplemented
    count, depth = grad.shape[-1], x.shape[-1]
    out = x.engine.empty((count, depth), d)
    if not out.size:
        return out
    if len(x.shape) != 2:
        m = x.size // depth
        grad = (grad if grad.contiguous else clone(grad)).reshaped((m, count))
        x = (x if x.contiguous else clone(x)).reshaped((m, depth))
    step, across = grad.strides
    columns = grad.restrided((count, grad.shape[0]), (across, step), grad.offset)
    matmul_kernel(d, False)(out, columns, x, None, 1, 1)
    return out


KERNELS: dict[str, Any] = {"linear": linear, "linear_weight_backward": linear_weight_backward}
