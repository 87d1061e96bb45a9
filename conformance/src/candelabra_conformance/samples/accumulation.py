"""Samples of sums in half precision, whose steps have to be computed in float32 or wider, and of extreme quotients.

A sum of ones in float16 stops at 2,048 and one in bfloat16 at 256, if it is rounded after every step. The values are
exact, so that no change of the answer widens the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import special
from candelabra_conformance.samples.sample import HERE, Sample, sample

ONES: Final = 4096
PRODUCTS: Final[dict[str, tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "matmul": ((1, -1), (-1, 1)), "mm": ((1, -1), (-1, 1)), "bmm": ((1, 1, -1), (1, -1, 1)), "mv": ((1, -1), (-1,)),
    "dot": ((-1,), (-1,)), "vdot": ((-1,), (-1,)), "inner": ((-1,), (-1,)),
    "addmm": ((1, -1), (-1, 1)), "addmv": ((1, -1), (-1,)), "baddbmm": ((1, 1, -1), (1, -1, 1)),
}  # fmt: skip
"""The shapes of both factors of one sum of products, in which -1 is the number of terms."""


def _is_half(t: Maker) -> bool:
    return t.dtype.is_half


@special(*PRODUCTS)
def products_of_halves(t: Maker) -> Iterator[Sample]:
    """Yield many ones, and products that do not fit into float16, whose sum is 0."""
    if not _is_half(t):
        return
    a, b = PRODUCTS[t.operator]
    ones = t.array(np.ones(ONES))
    large, signed = t.array([256.0, 256.0, 2.0]), t.array([256.0, -256.0, 3.0])
    added = {"addmm": (1, 1), "addmv": (1,), "baddbmm": (1, 1, 1)}.get(t.operator)
    first = () if added is None else (t.array(np.zeros(added)),)
    yield sample(*first, ones.reshape(a), ones.reshape(b), exact=True, gradient=False, note="ones")
    yield sample(*first, large.reshape(a), signed.reshape(b), exact=True, gradient=False, note="large products")


@special("linalg_vector_norm")
def norms_of_halves(t: Maker) -> Iterator[Sample]:
    """Yield many ones, and squares that overflow or underflow in float16."""
    if _is_half(t):
        for order, dim in ((2.0, (0,)), (1.0, (0,)), (3.0, (0,))):
            yield sample(t.array(np.ones(ONES)), order, dim, False, exact=True, gradient=False, note=f"{order} of ones")
        yield sample(t.array([300.0, 400.0]), 2.0, (0,), False, exact=True, gradient=False, note="large")
        if t.dtype.name == "float16":
            small = t.array([3 * 2.0**-14, 4 * 2.0**-14])
            yield sample(small, 2.0, (0,), False, exact=True, gradient=False, note="small")


@special("std", "var_mean", "std_mean")
def deviations_of_halves(t: Maker) -> Iterator[Sample]:
    """Yield a deviation whose square does not fit into float16, and many terms."""
    if _is_half(t):
        if t.operator == "std":
            yield sample(t.array([300.0, -300.0] * 2), (0,), correction=0, exact=True, gradient=False, note="large")
        yield sample(t.array([1.0, -1.0] * ONES), (0,), correction=0, exact=True, gradient=False, note="many")


@special("normalize")
def normalized_halves(t: Maker) -> Iterator[Sample]:
    """Yield a deviation whose square does not fit into float16, and many terms."""
    if _is_half(t):
        yield sample(t.array([[300.0, -300.0] * 2]), None, None, (1,), 1e-5, gradient=False, note="large")
        yield sample(t.array([[1.0, -1.0] * ONES]), None, None, (1,), 1e-5, gradient=False, note="many")


@special("softmax", "log_softmax", "logsumexp")
def exponentials_of_halves(t: Maker) -> Iterator[Sample]:
    """Yield many equal elements."""
    if _is_half(t):
        dim: Any = (0,) if t.operator == "logsumexp" else 0
        yield sample(t.array(np.zeros(2 * ONES)), dim, exact=True, gradient=False, note="zeros")


@special("sum_pool")
def windows_of_halves(t: Maker) -> Iterator[Sample]:
    """Yield a window of many ones."""
    if _is_half(t):
        window = ((ONES,), (1,), (0,), (1,), (1,))
        yield sample(t.array(np.ones((1, ONES))), *window, exact=True, gradient=False, note="ones")


@special("conv")
def convolutions_of_halves(t: Maker) -> Iterator[Sample]:
    """Yield a kernel of many ones."""
    if _is_half(t):
        ones = t.array(np.ones((1, 1, ONES)))
        yield sample(ones, ones.copy(), None, (1,), (0,), (1,), 1, exact=True, gradient=False, note="ones")


@special("scatter_add", "index_add", "index_put")
def additions_of_halves(t: Maker) -> Iterator[Sample]:
    """Yield many ones for one element."""
    if _is_half(t):
        zero, index, ones = t.array([0.0, 1.0]), np.zeros(ONES, np.int64), t.array(np.ones(ONES))
        args = (zero, (index,), ones, True) if t.operator == "index_put" else (zero, 0, index, ones)
        yield sample(*args, exact=True, gradient=False, note="ones")


@special("cumprod")
def running_products_of_halves(t: Maker) -> Iterator[Sample]:
    """Yield pairs of factors whose product, 1 - 2**-12, is 1 in half precision, and a product that overflows between.

    After 1,024 pairs the product is 0.78; it is 1 if each is rounded. The values are exact, so the bound is 8 units.
    """
    if _is_half(t):
        pairs = t.array([1 + 2.0**-6, 1 - 2.0**-6] * (ONES // 4))
        yield sample(pairs, 0, exact=True, gradient=False, note="pairs")
        if t.dtype.name == "float16":
            yield sample(t.array([256.0, 256.0, 2.0**-8]), 0, exact=True, gradient=False, note="large between")


@special("attention")
def attention_of_halves(t: Maker) -> Iterator[Sample]:
    """Yield many equal keys, whose weights have the sum 1, and scores whose terms overflow or need more digits."""
    if _is_half(t):
        one, keys = t.array(np.ones((1, 8))), t.array(np.zeros((ONES, 8)))
        yield sample(one, keys, t.array(np.ones((ONES, 2))), None, False, 1.0, exact=True, gradient=False, note="keys")
        ones, signs = np.ones(ONES), np.where(np.arange(2 * ONES) % 2, -1.0, 1.0)
        query = t.array([[*ones, *ones, 1.0]])
        near = t.array([[*ones, *-ones, 0.0], [*signs, 1.0]])  # the scores 0 and 1
        values = t.array([[0.0], [1.0]])
        yield sample(query, near, values, None, False, 1.0, exact=True, gradient=False, note="scores of many terms")


@special("linspace")
def ranges_of_halves(t: Maker) -> Iterator[Sample]:
    """Yield ends whose distance does not fit into float16, and more steps than it has digits."""
    if _is_half(t):
        yield sample(-61440.0, 61440.0, 5, dtype=t.dtype, device=HERE, note="far apart")
        yield sample(0.0, 1.0, 3001, dtype=t.dtype, device=HERE, note="many")


# -- double rounding --------------------------------------------------------------------------------------------------
@special("cast")
def ties_of_two_roundings(t: Maker) -> Iterator[Sample]:
    """Yield numbers just above and below a tie of a narrow dtype, which are ties after a rounding to a wider one."""
    if t.dtype.name == "float64":
        ties = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 2.0**-15 + 2.0**-25])  # of float16, also subnormal
        values = np.concatenate([ties * (1 + 2.0**-40), ties * (1 - 2.0**-40)])
        yield sample(np.concatenate([values, -values]), dtype=t.of("float16").dtype, note="near ties of float16")
    if t.dtype.name in ("int64", "uint64"):
        ties = np.array([(1 << 60) + (1 << 36), (1 << 60) + 3 * (1 << 36), (1 << 54) + (1 << 30)], t.numpy)
        one = t.numpy.type(1)
        yield sample(np.concatenate([ties + one, ties - one]), dtype=t.of("float32").dtype, note="near ties of float32")


# -- numbers of Python ------------------------------------------------------------------------------------------------
@special("full", "full_like", "Tensor.fill_", "Tensor.new_full", "masked_fill", "scatter_value", "index_fill", "where")
def numbers_in_double_precision(t: Maker) -> Iterator[Sample]:
    """Yield a Python number that float32 does not represent."""
    if t.dtype.name not in ("float64", "complex128"):
        return
    number, mask = 0.1, np.array([True, False, True])
    calls: dict[str, tuple[Any, ...]] = {
        "full": ((2,), number), "full_like": (t(3), number), "Tensor.fill_": (t(3), number),
        "Tensor.new_full": (t(3), (2,), number), "masked_fill": (t(3), mask, number),
        "scatter_value": (t(3), 0, t.index(2, 0), number), "index_fill": (t(3), 0, t.index(2, 0), number),
        "where": (mask, t(3), number),
    }  # fmt: skip
    options = {"dtype": t.dtype, "device": HERE} if t.operator == "full" else {}
    yield sample(*calls[t.operator], **options, gradient=False, note=f"{number}")


@special("addmm", "baddbmm")
def factors_in_double_precision(t: Maker) -> Iterator[Sample]:
    """Yield factors that float32 does not represent."""
    if t.dtype.name in ("float64", "complex128"):
        shapes = ((3, 2), (3, 4), (4, 2)) if t.operator == "addmm" else ((2, 3, 2), (2, 3, 4), (2, 4, 2))
        yield sample(*(t(*s) for s in shapes), beta=0.1, alpha=0.3, core=2, gradient=False, note="0.1 and 0.3")


# -- complex quotients ------------------------------------------------------------------------------------------------
@special("div", "reciprocal")
def extreme_quotients(t: Maker) -> Iterator[Sample]:
    """Yield complex numbers the squares of whose components overflow or underflow, but whose quotient does not."""
    if not t.is_complex:
        return
    exponent = 100 if t.dtype.name == "complex64" else 900
    large, small = 2.0**exponent, 2.0**-exponent
    units = np.array([1 + 1j, 1 - 0.5j, 0.25 - 1j, -1 + 0j, 1j, 3 + 4j])
    for scale in (large, small):
        below = t.array(units * scale)
        if t.operator == "reciprocal":
            yield sample(below, gradient=False, note=f"of {scale:.0e}")
        else:
            yield sample(t.array(units[::-1] * scale), below, gradient=False, note=f"of {scale:.0e}")
