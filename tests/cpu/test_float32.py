"""Functions of float32: rounded once from float64, for all inputs, sizes and layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from candelabra_cpu.kernels import table
from scipy import special

KERNELS = table()
REFERENCES: dict[str, Callable[..., Any]] = {
    "acos": np.arccos, "acosh": np.arccosh, "angle": lambda x: np.abs(np.arctan2(0.0, x + 0.0)), "asin": np.arcsin,
    "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh, "cosh": np.cosh, "erf": special.erf, "exp2": np.exp2,
    "expm1": np.expm1, "frac": lambda x: x - np.trunc(x), "log1p": np.log1p, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": special.expit, "sign": np.sign, "sinh": np.sinh, "tan": np.tan,
}  # fmt: skip
"""The functions in float64, whose own error is below a millionth of float32's last digit."""
BOUND = 0.500001
"""The error of one rounding in units in the last place."""


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
    with np.errstate(over="ignore"):  # the spacing of the largest number
        unit = np.spacing(np.abs(rounded[finite])).astype(np.float64)
    return float(np.max(np.abs(got[finite].astype(np.float64) - want[finite]) / unit))


@pytest.mark.parametrize("name", REFERENCES)
def test_functions_are_rounded_once(name: str, grid: Any) -> None:
    """The grid has all magnitudes, signed zeros, subnormals, infinities and NaN; no warning is emitted."""
    with np.errstate(all="ignore"):
        want = REFERENCES[name](grid.astype(np.float64))
    assert error(KERNELS[name](grid), want) <= BOUND


@pytest.mark.parametrize("name", ["atan2", "logaddexp", "logaddexp2", "nextafter"])
def test_functions_of_two_operands_are_rounded_once(name: str, rng: np.random.Generator, grid: Any) -> None:
    """All quadrants, axes, equal and unequal infinities, and NaN are correct; ``nextafter`` is exact."""
    special_ones = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38], np.float32)
    pairs = np.meshgrid(special_ones, special_ones)
    y, x = (np.concatenate([p.reshape(-1), rng.permutation(grid)]) for p in pairs)
    x[1000:2000] = y[1000:2000]
    reference = {"atan2": np.arctan2, "nextafter": np.nextafter}.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        want = reference(y, x) if name == "nextafter" else reference(y.astype(np.float64), x.astype(np.float64))
    assert error(KERNELS[name](y, x), want) <= BOUND


@pytest.mark.parametrize("name", [*REFERENCES, "atan2", "logaddexp"])
def test_half_types_are_rounded_once(name: str, rng: np.random.Generator) -> None:
    """The result is that in float64, rounded to the half type."""
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = rng.uniform(0.1, 0.9, (1 + (name in ("atan2", "logaddexp")), 1000)).astype(dtype) + dtype(name == "acosh")
        got = KERNELS[name](*x)
        assert got.dtype == dtype
        want = KERNELS[name](*x.astype(np.float64)).astype(dtype)
        np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


def test_layouts_and_memory(rng: np.random.Generator) -> None:
    """Transposed, strided, broadcast and in-place operands are correct."""
    kernel, into = KERNELS["atan"], KERNELS["atan_"]
    x = rng.standard_normal((3, 1007)).astype(np.float32)
    want = kernel(x)
    np.testing.assert_array_equal(kernel(x.T), want.T)
    np.testing.assert_array_equal(kernel(x[:, ::2]), want[:, ::2])
    np.testing.assert_array_equal(kernel(np.broadcast_to(x[:1], x.shape)), np.broadcast_to(want[:1], x.shape))
    room = np.zeros((3, 2014), np.float32)
    gaps = room[:, ::2]
    np.copyto(gaps, x)
    assert into(gaps) is gaps
    np.testing.assert_array_equal(gaps, want)
    y = x.copy()
    assert into(y) is y
    np.testing.assert_array_equal(y, want)
