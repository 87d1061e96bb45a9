"""The sizes from which native kernels serve, by family of operators.

A native kernel takes one pass over memory and some 2 µs for the call; NumPy takes 0.4 µs and one pass for each of its
functions. So a native kernel that replaces many passes is faster at any size, and one that replaces a single pass is as
fast per element, and faster only where it has several threads. The numbers were measured with one thread, float32, on a
processor with AVX-512, where NumPy is at its best.

So the last bits of a result may depend on its size; the README of this distribution says by how much.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from candelabra.dtypes import dtype, float64
from candelabra_clike import tables

ALWAYS: Final = 0
NEVER: Final = None
"""NumPy or BLAS is faster at all sizes."""

FAMILIES: Final[dict[str, int | None]] = {
    # Pointwise, by the subject of the expression. One pass of NumPy, except for those in OPERATORS:
    "arithmetic": 1 << 16, "bitwise": 1 << 16, "comparisons": 1 << 16, "complex": 1 << 14, "floating": 1 << 16,
    "powers": 1 << 16, "rounding": 1 << 16, "selection": 1 << 15,
    "exponential": 1 << 14, "trigonometric": 1 << 14,
    # several passes, or SciPy's loops without vectors:
    "activations": ALWAYS, "losses": ALWAYS, "logarithms": ALWAYS, "special": ALWAYS,
    # Over dims:
    "reductions": 1 << 11, "scans": 1 << 9,
    "softmax": ALWAYS, "normalization": ALWAYS, "class_losses": ALWAYS, "attention": ALWAYS, "pooling": ALWAYS,
    "tangents": ALWAYS,
    # Products. BLAS is as fast with one thread. Its own pool of threads and ours wait for each other actively, and a
    # training step that uses both took up to 1.8 times as long as with either:
    "matmul": 1 << 16, "convolution": ALWAYS, "distances": 1 << 10, "pairs": ALWAYS,
    "recurrent": ALWAYS,
    # Elements that move:
    "copies": 1 << 15, "creation": 1 << 16, "masking": 1 << 13, "indexing": 1 << 16,
    "scattering": 1 << 13, "sorting": NEVER, "resampling": ALWAYS, "pointwise": 1 << 13,
    "grid_sampling": ALWAYS, "optimizers": ALWAYS, "random": ALWAYS,
    "label_margins": ALWAYS, "multinomial": ALWAYS, "bags": ALWAYS, "alignments": ALWAYS,
    "padding": ALWAYS,
}  # fmt: skip
"""The least size of a native call. Where the owner has no kernel, the native one serves all sizes."""

OPERATORS: Final[dict[str, int | None]] = {
    # several passes among families of one pass
    "hypot": 1 << 10, "addcmul": 1 << 11, "addcdiv": 1 << 11, "lerp": ALWAYS, "logical_and": 1 << 11,
    "logical_or": 1 << 11, "logical_xor": 1 << 11, "angle": ALWAYS, "sigmoid": ALWAYS, "rsqrt": ALWAYS,
    "copysign": 1 << 13, "sign": 1 << 12, "nextafter": 1 << 10, "sqrt": 1 << 12, "cummax": ALWAYS, "cummin": ALWAYS,
    "nan_to_num": 1 << 13, "round": ALWAYS, "frac": 1 << 13, "where": 1 << 11, "relu": 1 << 13,
    "relu_backward": ALWAYS, "masked_fill": 1 << 11, "sigmoid_backward": 1 << 11, "tanh_backward": 1 << 13,
    # many instructions an element, for which NumPy has no vectors, or short ones
    "tan": 1 << 9, "asin": 1 << 9, "acos": 1 << 9, "atan": 1 << 9, "atan2": ALWAYS, "sinh": 1 << 9, "cosh": 1 << 9,
    "asinh": 1 << 9, "acosh": 1 << 9, "atanh": 1 << 9, "exp2": 1 << 9, "expm1": 1 << 9, "log1p": 1 << 9,
    # NumPy has vectors for these
    "pow": NEVER, "sin": 1 << 13, "cos": 1 << 13, "exp": 1 << 13, "log": 1 << 18, "log2": 1 << 18, "log10": 1 << 18,
    "floor_divide": 1 << 12, "remainder": 1 << 12, "fmod": 1 << 12, "tanh": 1 << 16, "special_zeta": NEVER,
    "random_uniform": 1 << 19, "gather": 1 << 15, "index_add": 1 << 12, "scatter_add": 1 << 16, "nonzero": 1 << 14,
    "argmax": NEVER, "argmin": NEVER, "max_dim": NEVER, "min_dim": NEVER, "topk": ALWAYS, "sorted_place": ALWAYS,
    "linear": ALWAYS, "linear_weight_backward": ALWAYS, "frexp": 1 << 12, "cat": 1 << 17,
    "basic_index_adjoint": 1 << 17, "basic_index_scatter": 1 << 17,
    "flip": 1 << 16, "triangle_indices": ALWAYS, "arange": 1 << 13, "linspace": 1 << 12,
}  # fmt: skip
"""The operators whose size differs from their family's. The in-place form has the size of the other."""

DOUBLE: Final[Mapping[str, int | None]] = {
    "sin": 1 << 9, "cos": 1 << 9, "tan": 1 << 14, "exp": 1 << 15,
} | dict.fromkeys(
    ("asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh", "exp2", "expm1", "log1p"), 1 << 16
)  # fmt: skip
"""The operators whose size differs in float64, in which NumPy's vectors are as fast as those of C, or missing."""

WORK: Final = {
    "matmul": "input.size * other.shape[-1]",
    "scatter_planes": "max(input.size, prod(input.shape[:-1]) * size)",
    "arange": "length", "linspace": "steps", "eye": "n * m",
}  # fmt: skip
"""What is counted in place of elements, as an expression over the parameters: the multiply-adds of products, elements
of planes, which may be many more than those that are scattered, and the elements of ranges.
"""


def threshold(name: str, d: dtype | None = None) -> int | None:
    """Return the least size that a native kernel serves where the owner has one, or None if it serves none.

    It is that of a dtype, or of most dtypes.
    """
    name = name.removesuffix("_")
    if d is float64 and name in DOUBLE:
        return DOUBLE[name]
    return OPERATORS[name] if name in OPERATORS else FAMILIES[families()[name]]


@lru_cache(1)
def families() -> dict[str, str]:
    """Return the family of each operator: the module of its kernel, or of its expression, in candelabra-clike."""
    modules = tables.KERNELS_IN | tables.EXPRESSIONS_IN
    return {name.removesuffix("_"): module for name, module in modules.items()}
