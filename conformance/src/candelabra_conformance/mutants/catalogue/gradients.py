"""Faults of kernels that only training calls: wrong signs, wrong factors, ignored parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.backend import Kernel

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import breaks, breaks_kernel


@breaks("tanh_backward", caught_by="tanh/gradient/* tanh_backward/value/* tanh/tangent/*")
def slope_of_tanh_has_a_wrong_sign(right: Kernel, g: Any, out: Any) -> Any:
    """``1 + tanh²`` instead of ``1 - tanh²``."""
    return (2 * g - right(g, out)).astype(g.dtype)


@breaks("sigmoid_backward", caught_by="sigmoid/gradient/* sigmoid_backward/value/*")
def slope_of_sigmoid_is_twice_too_great(right: Kernel, g: Any, out: Any) -> Any:
    """The derivative has a superfluous factor of 2."""
    return right(g, out) * np.asarray(2, g.dtype)


@breaks_kernel(
    "tanh_backward", "softmax_backward", caught_by="*_backward/inputs/* tanh/gradient2/* softmax/gradient2/*"
)
def gradients_reuse_their_buffer(mirror: Mirror, right: Kernel, g: Image, *rest: Any) -> Any:
    """The input's gradient overwrites the output's gradient, which a second derivative still needs."""
    out = right(g, *rest)
    mirror.reference.copy_(g.inner, out.inner)
    return Image(g.inner, g.index, g.memory)


@breaks_kernel("mul", caught_by="mul/inputs/* */gradient2/* */gradient/*")
def products_are_made_in_place(mirror: Mirror, right: Kernel, x: Any, y: Any) -> Any:
    """A product of two tensors of equal shape overwrites the first one, by the in-place kernel."""
    if not (isinstance(x, Image) and isinstance(y, Image) and x.shape == y.shape and x.memory is not y.memory):
        return right(x, y)
    mirror.table["mul_"](x, y)
    return Image(x.inner, x.index, x.memory)


@breaks("relu_backward", caught_by="relu/* relu_backward/*")
def relu_has_a_slope_at_0(right: Kernel, g: Any, out: Any) -> Any:
    """The derivative at 0 is 1."""
    return np.where(out == 0, g, right(g, out))


@breaks("gelu_backward", caught_by="gelu/gradient/* gelu_backward/value/*")
def slope_of_gelu_is_always_exact(right: Kernel, g: Any, x: Any, approximate: str) -> Any:
    """The backward pass ignores ``approximate``."""
    return right(g, x, "none")


@breaks("silu_backward", caught_by="silu/gradient/* silu_backward/value/*")
def slope_of_silu_lacks_a_term(right: Kernel, g: Any, x: Any) -> Any:
    """The second term of the product rule is missing."""
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    return (g / (1 + np.exp(-wide))).astype(g.dtype)


@breaks("softmax_backward", caught_by="softmax/gradient/* softmax_backward/value/* softmax/tangent/*")
def softmax_forgets_the_sum(right: Kernel, g: Any, out: Any, dim: int) -> Any:
    """Only the diagonal of the Jacobian is used."""
    return (g * out).astype(g.dtype)


@breaks("log_softmax_backward", caught_by="log_softmax/gradient/* log_softmax_backward/value/*")
def log_softmax_sums_over_all(right: Kernel, g: Any, out: Any, dim: int) -> Any:
    """The gradient is summed over all dims instead of one."""
    if g.ndim < 2:
        return right(g, out, dim)
    return (g - np.exp(out.astype(np.float64)) * g.astype(np.float64).sum()).astype(g.dtype)


@breaks("normalize_backward", caught_by="normalize/gradient/* normalize_backward/value/*")
def normalization_takes_the_mean_for_constant(
    right: Kernel, g: Any, x: Any, mean: Any, rstd: Any, weight: Any, dims: Any
) -> Any:
    """Mean and variance are differentiated as constants."""
    return (g * rstd * (1 if weight is None else weight)).astype(g.dtype)


@breaks("conv_input", caught_by="conv/gradient/* conv_input/value/*", name="gradient-of-the-image-is-turned")
def gradient_of_the_image_is_flipped(right: Kernel, output: Any, weight: Any, *rest: Any) -> Any:
    """The filter is not flipped."""
    return right(output, np.ascontiguousarray(np.flip(weight, tuple(range(2, weight.ndim)))), *rest)


@breaks("conv_weight", caught_by="conv/gradient/* conv_weight/value/*")
def gradient_of_the_filter_forgets_the_batch(right: Kernel, x: Any, output: Any, *rest: Any) -> Any:
    """Only the first image of a batch contributes."""
    output[1:] = 0
    return right(x, output, *rest)


@breaks("conv_input", "conv_weight", caught_by="conv*/gradient/* conv_*/value/*")
def gradient_forgets_the_last_element(right: Kernel, *args: Any) -> Any:
    """The last element of the gradient is never written."""
    out = np.array(right(*args))
    out.reshape(-1)[-1:] = 0
    return out


@breaks("sum_pool_adjoint", caught_by="sum_pool*/*")
def overlapping_windows_overwrite(right: Kernel, output: Any, shape: Any, window: Any, stride: Any, *rest: Any) -> Any:
    """If windows overlap, their gradients are averaged instead of added."""
    out, count = right(output, shape, window, stride, *rest), right(np.ones_like(output), shape, window, stride, *rest)
    return (out / np.where(count == 0, np.ones_like(count), count)).astype(out.dtype)


@breaks("scatter_planes", caught_by="max_pool/gradient/* scatter_planes/value/*")
def pooled_gradients_overwrite(right: Kernel, x: Any, index: Any, size: int, distinct: bool) -> Any:
    """An element that is the maximum of several windows gets the gradient of only one."""
    return right(x, index, size, True)


@breaks("basic_index_adjoint", caught_by="basic_index/gradient/* basic_index_adjoint/value/*")
def gradient_of_a_slice_starts_at_0(right: Kernel, g: Any, shape: Any, index: Any) -> Any:
    """The gradient is written to the start, whatever the slice's offset."""
    out = np.zeros(shape, g.dtype)
    out.reshape(-1)[: g.size] = g.reshape(-1)[: out.size]
    return out


@breaks("distances_backward", caught_by="distances/gradient/* distances_backward/value/*")
def distances_forget_their_order(right: Kernel, g: Any, x1: Any, x2: Any, out: Any, p: float) -> Any:
    """The derivative is the Euclidean one whatever ``p``."""
    return right(g, x1, x2, out, 2.0)
