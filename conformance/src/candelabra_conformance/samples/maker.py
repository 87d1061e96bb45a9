"""Values for samples: the same on every machine, all different, in one dtype."""

from __future__ import annotations

import math
import zlib
from typing import Any, Final

import numpy as np
from candelabra.dtypes import BY_NAME, dtype

from candelabra_conformance.numpy_dtypes import host_dtype

Array = np.ndarray[Any, Any]
KINKS: Final = 0.05
"""The minimum distance of floating values from 0 and from multiples of 1/2, where many functions have a kink or a
tie."""


class Maker:
    """Creates arrays in one dtype. ``t(2, 3)`` is a 2 by 3 array of ordinary values.

    Ordinary floating values are between ``low`` and ``high`` (by default -2 and 2, or the operator's
    :func:`~candelabra_conformance.samples.domain`), all different. Integers are between -5 and 9 (0 and 9 if unsigned),
    bools have both values, complex numbers have both components. The seed is the operator's name.
    """

    def __init__(self, operator: str, d: dtype | str, low: float = -2.0, high: float = 2.0) -> None:
        self.operator = operator
        self.dtype: Final[dtype] = BY_NAME[d] if isinstance(d, str) else d
        self.low, self.high = low, high
        self.random = np.random.Generator(np.random.Philox(zlib.crc32(f"{operator}/{self.dtype.name}".encode())))

    @property
    def is_floating(self) -> bool:
        return self.dtype.is_floating_point

    @property
    def is_complex(self) -> bool:
        return self.dtype.is_complex

    @property
    def is_bool(self) -> bool:
        return self.dtype.name == "bool"

    @property
    def is_integer(self) -> bool:
        return not (self.is_floating or self.is_complex or self.is_bool)

    @property
    def numpy(self) -> np.dtype[Any]:
        """Return the NumPy dtype, from ml_dtypes for bfloat16."""
        return host_dtype(self.dtype)

    def of(self, d: dtype | str) -> Maker:
        """Return a maker of another dtype, for arguments whose dtype is fixed."""
        return Maker(self.operator, d, self.low, self.high)

    def __call__(self, *shape: int, low: float | None = None, high: float | None = None) -> Array:
        """Return an array of ordinary values; ``low`` and ``high`` bound floats, and if given, integers."""
        size = math.prod(shape)
        if self.is_bool:
            return (self.random.random(size) < 0.5).reshape(shape)
        if self.is_integer:
            least = (0 if self.dtype.name.startswith("u") else -5) if low is None else int(low)
            drawn = self.random.integers(least, 10 if high is None else int(high) + 1, size)
            return drawn.astype(self.numpy).reshape(shape)
        bounds = (self.low if low is None else low, self.high if high is None else high)
        values = self._distinct_values(size, *bounds)
        if self.is_complex:
            values = values + 1j * self._distinct_values(size, *bounds)
        return values.astype(self.numpy).reshape(shape)

    def _distinct_values(self, size: int, low: float, high: float) -> Array:
        """Return ``size`` distinct values in random order, one from each of ``size`` equal parts of the range."""
        positions = (np.arange(size) + 0.15 + 0.7 * self.random.random(size)) / max(size, 1)
        values = low + (high - low) * self.random.permutation(positions)
        doubled = values * 2
        near = np.abs(doubled - np.round(doubled)) < 2 * KINKS / max(1, size / 16)
        return np.where(near & (low < -KINKS), values + KINKS / max(1, size / 16), values)

    def real(self, *shape: int, low: float | None = None, high: float | None = None) -> Array:
        """Return ordinary values, real if the dtype is complex, in the precision of its components."""
        return (
            self.of(self.dtype.to_real())(*shape, low=low, high=high)
            if self.is_complex
            else self(*shape, low=low, high=high)
        )

    def index(self, *values: Any) -> Array:
        """Return an int64 array of these values: ``t.index(2, 0)``, ``t.index([0, 1], [1, 0])``."""
        return np.array(values, dtype=np.int64)

    def indices(self, *shape: int, below: int) -> Array:
        """Return an int64 array of random indices from 0 to ``below - 1``."""
        return self.random.integers(0, below, shape).astype(np.int64)

    def mask(self, *shape: int) -> Array:
        """Return a bool array with both values."""
        drawn = self.random.random(shape) < 0.5
        if drawn.size > 1:
            drawn.flat[0], drawn.flat[-1] = True, False
        return np.asarray(drawn)

    def array(self, values: Any) -> Array:
        """Return exactly these values in the dtype."""
        return np.asarray(values).astype(self.numpy)


class Outline(Maker):
    """A maker whose arrays have only shapes and dtypes: every value is 1, stored once.

    Planning needs no more. A generator that computes with its values may fail on these arrays; it is then called again
    with a :class:`Maker`.
    """

    def __call__(self, *shape: int, low: float | None = None, high: float | None = None) -> Array:
        return np.broadcast_to(np.ones((), self.numpy), shape)

    def of(self, d: dtype | str) -> Maker:
        return Outline(self.operator, d, self.low, self.high)

    def indices(self, *shape: int, below: int) -> Array:
        return np.broadcast_to(np.zeros((), np.int64), shape)

    def mask(self, *shape: int) -> Array:
        return np.broadcast_to(np.ones((), np.bool_), shape)
