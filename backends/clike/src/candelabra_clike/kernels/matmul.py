"""Matrix products in all dtypes, and linear layers: products that start from the bias, in one launch.

Half types are multiplied in float32. A complex product is four real ones: the real and the imaginary part of a complex
array are arrays with doubled strides.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from candelabra.dtypes import BOOL, COMPLEX, FLOATING, dtype, float32, float64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.kernels.copies import clone
from candelabra_clike.layouts import broadcast, broadcast_strides
from candelabra_clike.templates.copies.packing import as_bits
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.matmul.matmul import matmul_kernel

DIRECT = (float32, float64)
"""Dtypes for which the product of two matrices is one launch."""


@lru_cache(8)
def to_float32(d: dtype) -> Elementwise:
    """Return the kernel that converts a half type to float32."""
    return Elementwise.of(f"widen_{d.name}", lambda a: a, (d,), float32)


@lru_cache(8)
def from_float32(d: dtype) -> Elementwise:
    """Return the kernel that rounds float32 to a half type."""
    return Elementwise.of(f"narrow_{d.name}", lambda a: a, (float32,), d)


def expand_to(array: StridedArray, shape: Shape) -> StridedArray:
    """Return the array, broadcast to ``shape``."""
    if array.shape == shape:
        return array
    return array.restrided(shape, broadcast_strides(array, shape), array.offset)


def real_and_imaginary(array: StridedArray) -> tuple[StridedArray, StridedArray]:
    """Return the real and the imaginary part of a complex array, as views."""
    real = float32 if array.dtype.itemsize == 8 else float64
    steps = tuple([2 * s for s in array.strides])
    first = 2 * array.offset
    return array.restrided(array.shape, steps, first, real), array.restrided(array.shape, steps, first + 1, real)


def multiply(out: StridedArray, a: StridedArray, b: StridedArray) -> None:
    """Write ``a @ b`` to ``out``, which does not overlap the operands. All have one dtype and expanded batch dims."""
    d = a.dtype
    if not out.size:
        return
    if d.category == COMPLEX:
        _multiply_complex(out, a, b)
    elif d.is_half:
        wide = out.engine.empty(out.shape, float32)
        matmul_kernel(float32, False)(wide, to_float32(d)(a), to_float32(d)(b), None, 1, 1)
        from_float32(d)(wide, out=out)
    else:
        if d.category < FLOATING and d.category != BOOL:
            out, a, b = as_bits(out), as_bits(a), as_bits(b)
        matmul_kernel(out.dtype, False)(out, a, b, None, 1, 1)


def _multiply_complex(out: StridedArray, a: StridedArray, b: StridedArray) -> None:
    (a_real, a_imag), (b_real, b_imag), (real, imag) = (
        real_and_imaginary(a),
        real_and_imaginary(b),
        real_and_imaginary(out),
    )
    plain, added = matmul_kernel(real.dtype, False), matmul_kernel(real.dtype, True)
    plain(real, a_real, b_real, None, 1.0, 1.0)
    added(real, a_imag, b_imag, real, -1.0, 1.0)
    plain(imag, a_real, b_imag, None, 1.0, 1.0)
    added(imag, a_imag, b_real, imag, 1.0, 1.0)


def matmul(x: StridedArray, y: StridedArray) -> StridedArray:
    """The kernel of ``matmul``. A vector is a row on the left and a column on the right; batch dims broadcast."""
    if len(x.shape) == 2 == len(y.shape) and x.shape[1] == y.shape[0] and x.dtype in DIRECT:
        out = x.engine.empty((x.shape[0], y.shape[1]), x.dtype)
        if out.size:
            matmul_kernel(x.dtype, False)(out, x, y, None, 1, 1)
        return out
    if len(y.shape) == 2 < len(x.shape) and x.contiguous and x.dtype in DIRECT and x.shape[-1] == y.shape[0]:
        depth, n = y.shape
        out = x.engine.empty((*x.shape[:-1], n), x.dtype)
        if out.size:  # the matrices of a batch, one below the other, are one matrix
            m = out.size // n
            matmul_kernel(x.dtype, False)(out.reshaped((m, n)), x.reshaped((m, depth)), y, None, 1, 1)
        return out
    a = x if len(x.shape) > 1 else x.restrided((1, *x.shape), (0, *x.strides), x.offset)
    b = y if len(y.shape) > 1 else y.restrided((*y.shape, 1), (*y.strides, 0), y.offset)
    if not x.shape or not y.shape or a.shape[-1] != b.shape[-2]:
        raise RuntimeError(f"matmul: shapes {x.shape} and {y.shape} do not match")
    batch = () if len(a.shape) == 2 == len(b.shape) else broadcast([a.shape[:-2], b.shape[:-2]])
    out = x.engine.empty((*batch, a.shape[-2], b.shape[-1]), x.dtype)
    multiply(out, expand_to(a, (*batch, *a.shape[-2:])), expand_to(b, (*batch, *b.shape[-2:])))
    if len(x.shape) > 1 and len(y.shape) > 1:
        return out
    return out.reshaped((*batch, *a.shape[-2:-1][: len(x.shape) > 1], *b.shape[-1:][: len(y.shape) > 1]))


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


LINEAR: Final = {"linear": linear, "linear_weight_backward": linear_weight_backward}
KERNELS: dict[str, Any] = {"matmul": matmul, **LINEAR}
