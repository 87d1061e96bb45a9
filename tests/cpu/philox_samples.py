"""Philox in plain Python, and constants of the tests of the CPU's random numbers."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
REAL = [np.dtype("float16"), BFLOAT16, np.dtype("float32"), np.dtype("float64")]
COMPLEX = [np.dtype("complex64"), np.dtype("complex128")]
MASK = 2**64 - 1
SEED, OFFSET = 20240229, 41
RARE = 1e-3  # In the forty tests of one distribution, chance produces such a p-value for one choice of seeds in 25.


def philox4x64(counter: list[int], key: list[int]) -> list[int]:
    """Return one block of Philox 4x64-10, computed in plain Python from the paper's definition."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        left, right = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
        c0, c1, c2, c3 = (right >> 64) ^ c1 ^ k0, right & MASK, (left >> 64) ^ c3 ^ k1, left & MASK
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & MASK, (k1 + 0xBB67AE8584CAA73B) & MASK
    return [c0, c1, c2, c3]


def block(seed: int, offset: int, n: int) -> list[int]:
    """Return the first n words after ``offset``, computed by the plain block function."""
    return [word for i in range((n + 3) // 4) for word in philox4x64([offset + 1 + i, 0, 0, 0], [seed, 0])][:n]


def same_bits(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Return whether two arrays agree in shape, dtype and every bit."""
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
