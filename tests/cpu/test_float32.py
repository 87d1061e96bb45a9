"""Vectorised float32 functions: accurate to a few units in the last place for all inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from candelabra_cpu.float32 import FUNCTIONS
from candelabra_cpu.kernels import table
from candelabra_cpu.vectorized import BLOCK, LARGE, vectorized
from scipy import special

KERNELS = table()
REFERENCES: dict[str, tuple[Callable[..., Any], float]] = {
    "acos": (np.arccos, 2), "acosh": (np.arccosh, 2.5), "angle": (lambda x: np.abs(np.arctan2(0.0, x + 0.0)), 0.5),
    "asin": (np.arcsin, 2.25), "asinh": (np.arcsinh, 2), "atan": (np.arctan, 2), "atanh": (np.arctanh, 2.25),
    "cosh": (np.cosh, 2), "erf": (special.erf, 5.54), "exp2": (np.exp2, 2), "expm1": (np.expm1, 2),
    "frac": (lambda x: x - np.trunc(x), 0),
    "log1p": (np.log1p, 2), "rsqrt": (lambda x: 1 / np.sqrt(x), 2), "sigmoid": (special.expit, 6.6),
    "sign": (np.sign, 0), "sinh": (np.sinh, 2.25),
}  # fmt: skip
"""``{kernel: (the function in float64, the bound on the error in units in the last place)}``.

Most kernels consist of additions, multiplications, divisions and roots, which every processor rounds in the same
way. Their bounds are the greatest errors over all numbers between 2**-7 and 64, rounded up. The two bounds above 2.5
are of kernels that use NumPy's exponential and hyperbolic tangent, whose code depends on the processor, with up to
2.55 and 2.2 units. A relative error of 2**-23 is between one and two units, so ``1 / (1 + exp(-x))`` has 2 * 2.55, 1
for the sum and 0.5 for the quotient: 6.6. The relative error of t does not grow in ``tanh(t)``: 2**-24 each for the
approximation, the last sum and the last product, and a third of that for the earlier steps, are 3.34 units; with 2.2
the total is 5.54.
"""


@pytest.fixture
def grid(rng: np.random.Generator) -> Any:
    """Return numbers of all magnitudes and both signs, and special values."""
    limits = np.finfo(np.float32)
    special_ones = [
        0, 1e-45, 3e-45, 1e-40, limits.tiny, 1e-30, 0.5, 1, 1 - 2**-24, 1 + 2**-23, 2, 80, 87.9, 88, 88.5, 88.72, 88.8,
        -125.5, -126, -149, -150, 127.4, 127.6, 128, 89.3, 89.42, 90, 1e18, 1e19, 1e38, limits.max, np.inf, np.nan,
    ]  # fmt: skip
    sizes = np.concatenate([
        np.exp(rng.uniform(-103, 88.7, 40_000)), rng.uniform(0, 1, 60_000), rng.uniform(0, 10, 40_000),
        rng.uniform(0, 90, 20_000), 1 + rng.uniform(-1e-3, 1e-3, 5_000), np.array(special_ones),
    ]).astype(np.float32)  # fmt: skip
    return np.concatenate([sizes, -sizes])


def error(got: Any, want: Any) -> float:
    """Return the greatest distance in units in the last place of ``want``; infinities, NaN and signs must agree."""
    with np.errstate(over="ignore"):
        rounded = want.astype(np.float32)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~finite], rounded[~finite])
    np.testing.assert_array_equal(np.signbit(got[rounded == 0]), np.signbit(rounded[rounded == 0]))
    unit = np.spacing(np.abs(rounded[finite])).astype(np.float64)
    return float(np.max(np.abs(got[finite].astype(np.float64) - want[finite]) / unit))


@pytest.mark.parametrize("name", REFERENCES)
def test_functions_are_exact_to_a_few_units_in_the_last_place(name: str, grid: Any) -> None:
    """The grid has all magnitudes, signed zeros, subnormals, infinities and NaN; no warning is emitted."""
    reference, bound = REFERENCES[name]
    x = grid[grid > -87] if name == "sigmoid" else grid  # exp(88.73) overflows, which gives 0 instead of a subnormal.
    with np.errstate(all="ignore"):
        want = reference(x.astype(np.float64))
    assert error(KERNELS[name](x), want) <= bound


def test_two_operands_are_exact_to_two_units(rng: np.random.Generator, grid: Any) -> None:
    """``atan2`` is correct in all quadrants and on the axes; ``nextafter`` is exact."""
    special_ones = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38], np.float32)
    pairs = np.meshgrid(special_ones, special_ones)
    y, x = (np.concatenate([p.reshape(-1), rng.permutation(grid)]) for p in pairs)
    wide = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    assert error(KERNELS["atan2"](y, x), wide) <= 2
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(KERNELS["nextafter"](y, x), np.nextafter(y, x))
        np.testing.assert_array_equal(np.signbit(KERNELS["nextafter"](y, x)), np.signbit(np.nextafter(y, x)))


def test_logaddexp_is_exact_relative_to_its_larger_operand(rng: np.random.Generator, grid: Any) -> None:
    """The error is relative to the larger operand, since the terms may cancel; equal infinities and NaN propagate."""
    x, y = rng.permutation(grid), rng.permutation(grid)
    y[:1000] = x[:1000]
    x[1000:1004], y[1000:1004] = [np.inf, -np.inf, np.inf, -np.inf], [np.inf, -np.inf, -np.inf, np.nan]
    got = KERNELS["logaddexp"](x, y)
    with np.errstate(all="ignore"):
        want = np.logaddexp(x.astype(np.float64), y.astype(np.float64))
        finite = np.isfinite(want)
        np.testing.assert_array_equal(got[~finite], want[~finite].astype(np.float32))
        scale = np.maximum(np.abs(np.maximum(x, y)), np.log(2))[finite]
        assert np.max(np.abs(got[finite] - want[finite]) / scale) < 2.5 * 2**-23


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_small_and_large_arrays_agree(name: str, rng: np.random.Generator) -> None:
    """Small arrays use NumPy's or SciPy's function and agree to a few units; half types are rounded once."""
    kernel, binary = KERNELS[name], name in ("atan2", "logaddexp", "nextafter")
    for dtype, bound in ((np.float32, 1e-6), (np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2)):
        x = rng.uniform(0.1, 0.9, 4 * LARGE).astype(dtype) + (1 if name == "acosh" else 0)
        operands = (x.astype(dtype), x[::-1].astype(dtype)) if binary else (x.astype(dtype),)
        large = kernel(*operands)
        assert large.dtype == dtype
        small = kernel(*(o[:100].copy() for o in operands))
        np.testing.assert_allclose(large[:100].astype(np.float64), small.astype(np.float64), rtol=bound)
        if name == "nextafter":
            np.testing.assert_array_equal(large[:100], small)


def test_layouts_and_memory(rng: np.random.Generator) -> None:
    """Transposed, strided and in-place operands, and sizes that are not multiples of the block size, are correct."""
    kernel = vectorized(lambda x: x * 0, FUNCTIONS["atan"])
    into = vectorized(lambda x: x * 0, FUNCTIONS["atan"], True)
    x = rng.standard_normal((3, BLOCK + 7)).astype(np.float32)
    want = kernel(x)
    assert want.flags.c_contiguous
    np.testing.assert_allclose(want, np.arctan(x), rtol=1e-6)
    np.testing.assert_array_equal(kernel(x.T), want.T)
    assert kernel(x.T).flags.f_contiguous
    np.testing.assert_array_equal(kernel(x[:, ::2]), kernel(x[:, ::2].copy()))
    np.testing.assert_array_equal(kernel(np.broadcast_to(x[:1], x.shape)), np.broadcast_to(want[:1], x.shape))
    room = np.zeros((3, 2 * BLOCK + 14), np.float32)
    gaps = room[:, ::2]
    np.copyto(gaps, x)
    assert into(gaps) is gaps
    np.testing.assert_array_equal(gaps, want)
    y = x.copy()
    assert into(y) is y
    np.testing.assert_array_equal(y, want)


def test_unsupported_operands_use_the_other_kernel() -> None:
    """Other dtypes, small arrays, numbers combined with arrays, and operands of two shapes or dtypes use it."""
    other = object()
    one = vectorized(lambda x: other, FUNCTIONS["atan"])
    two = vectorized(lambda y, x: other, FUNCTIONS["atan2"])
    x = np.ones((2, LARGE), np.float32)
    assert one(x.astype(np.float64)) is other
    assert one(x[0, :5]) is other
    for y in (2.0, x[0], x.astype(np.float16)):
        assert two(x, y) is other
        assert two(y, x) is other
    assert one(x) is not other
    assert two(x, x) is not other
