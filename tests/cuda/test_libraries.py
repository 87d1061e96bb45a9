"""Kernels over CuPy whose libraries accept or compute less than the standard's functions, with NumPy in its place."""

from __future__ import annotations

from typing import Any

import candelabra_arrayapi
import numpy as np
import pytest
from candelabra.dtypes import float32
from candelabra_cuda.arrays import TO_NUMPY, over_cupy
from candelabra_cuda.libraries import corrected

KERNELS = candelabra_arrayapi.kernels(np, {d: held for d, held in TO_NUMPY.items() if d.name != "bfloat16"})


@pytest.mark.parametrize(("start", "copied"), [(0, False), (2, False), (1, True), (3, True)])
def test_real_transforms_get_inputs_at_addresses_of_complex_elements(engine: Any, start: int, copied: bool) -> None:
    """cuFFT refuses a view of float32 with an odd offset: its address is not a multiple of 8."""
    seen: list[Any] = []

    def fft_r2c(x: Any, *options: Any) -> Any:
        seen.append((x.ctypes.data, x.tolist(), options))
        return x

    x = engine.empty((8,), float32)
    engine.write(x.buffer, 0, memoryview(np.arange(8, dtype="f4")).cast("B"))
    kernel = over_cupy(corrected({**KERNELS, "fft_r2c": fft_r2c}, np)["fft_r2c"])
    kernel(x.restrided((5,), (1,), start), (0,), "backward", True)
    address, values, options = seen[0]
    assert (values, options) == ([start, start + 1, start + 2, start + 3, start + 4], ((0,), "backward", True))
    assert (address != int(x.buffer) + 4 * start) == copied


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_logarithmic_determinants_of_complex64_are_factorized_in_complex128(size: float) -> None:
    """A library that squares pivots in their own dtype takes 1e-30 for 0."""
    used: list[str] = []

    def slogdet(x: Any) -> Any:
        used.append(x.dtype.name)
        singular = not (np.abs(np.diagonal(x)) ** 2).all()
        return (np.zeros((), x.dtype), np.float64(-np.inf)) if singular else np.linalg.slogdet(x)

    kernel = corrected({**KERNELS, "linalg_slogdet": slogdet}, np)["linalg_slogdet"]
    sign, logarithm = kernel(np.diag([size, -size, size]).astype(np.complex64))
    assert (sign, sign.dtype.name, logarithm.dtype.name) == (-1, "complex64", "float32")
    assert abs(float(logarithm) - 3 * np.log(size)) < 1e-4
    sign, logarithm = kernel(np.diag([2.0, 3.0]).astype(np.float32))
    assert (float(sign), used) == (1.0, ["complex128", "float32"])


def test_systems_without_right_sides_are_solved() -> None:
    """A solver of batches divides by their number; its errors and results remain those of one right side."""
    sides: list[int] = []

    def solve_ex(a: Any, b: Any) -> Any:
        sides.append(b.shape[-1])
        return np.linalg.solve(a, np.broadcast_to(b, (*a.shape[:-2], *b.shape[-2:]))), np.zeros(a.shape[:-2])

    kernel = corrected({**KERNELS, "linalg_solve_ex": solve_ex}, np)["linalg_solve_ex"]
    a = np.broadcast_to(np.eye(3, dtype="f4"), (2, 3, 3))
    x, info = kernel(a, np.zeros((3, 0), "f4"))
    assert (x.shape, x.dtype.name, info.shape) == ((2, 3, 0), "float32", (2,))
    assert kernel(a, np.ones((3, 2), "f4"))[0].shape == (2, 3, 2)
    assert sides == [1, 2]
