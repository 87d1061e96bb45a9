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
"""Floating values keep this far from integers' halves and from 0, where many functions have a kink or a tie."""


class Maker:
    """Makes arrays in one dtype. ``t(2, 3)`` is a 2 by 3 array of ordinary values.

    Ordinary floating values lie between ``low`` and ``high`` (by default -2 and 2; the operator's
    :func:`~candelabra_conformance.samples.domain` where it has one), all different. Integers lie between -5 and 9 (0
    and 9 where unsigned), bools are mixed, complex numbers have both parts. The seed is the operator's name.
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
        """The NumPy dtype (ml_dtypes' for bfloat16)."""
        return host_dtype(self.dtype)

    def of(self, d: dtype | str) -> Maker:
        """A maker of another dtype, for arguments whose dtype is fixed."""
        return Maker(self.operator, d, self.low, self.high)

    def __call__(self, *shape: int, low: float | None = None, high: float | None = None) -> Array:
        """An array of ordinary values of this shape; ``low`` and ``high`` bound floats, and integers when given."""
        size = math.prod(shape)
        if self.is_bool:
            return (self.random.random(size) < 0.5).reshape(shape)
        if self.is_integer:
            least = (0 if self.dtype.name.startswith("u") else -5) if low is None else int(low)
            drawn = self.random.integers(least, 10 if high is None else int(high) + 1, size)
            return drawn.astype(self.numpy).reshape(shape)
        bounds = (self.low if low is None else low, self.high if high is None else high)
        values = self._spread(size, *bounds)
        if self.is_complex:
            values = values + 1j * self._spread(size, *bounds)
        return values.astype(self.numpy).reshape(shape)

    def _spread(self, size: int, low: float, high: float) -> Array:
        """So many values, one from each of as many equal parts of the range, in random order: no two are equal."""
        places = (np.arange(size) + 0.15 + 0.7 * self.random.random(size)) / max(size, 1)
        values = low + (high - low) * self.random.permutation(places)
        doubled = values * 2
        near = np.abs(doubled - np.round(doubled)) < 2 * KINKS / max(1, size / 16)
        return np.where(near & (low < -KINKS), values + KINKS / max(1, size / 16), values)

    def real(self, *shape: int, low: float | None = None, high: float | None = None) -> Array:
        """As a call, but real where the dtype is complex, in the precision of its parts."""
        return (
            self.of(self.dtype.to_real())(*shape, low=low, high=high)
            if self.is_complex
            else self(*shape, low=low, high=high)
        )

    def index(self, *values: Any) -> Array:
        """An int64 array of these values: ``t.index(2, 0)``, ``t.index([0, 1], [1, 0])``."""
        return np.array(values, dtype=np.int64)

    def indices(self, *shape: int, below: int) -> Array:
        """An int64 array of random indices from 0 to ``below - 1``."""
        return self.random.integers(0, below, shape).astype(np.int64)

    def mask(self, *shape: int) -> Array:
        """A bool array with both values."""
        drawn = self.random.random(shape) < 0.5
        if drawn.size > 1:
            drawn.flat[0], drawn.flat[-1] = True, False
        return np.asarray(drawn)

    def array(self, values: Any) -> Array:
        """These very values in the dtype."""
        return np.asarray(values).astype(self.numpy)


class Outline(Maker):
    """A maker whose arrays have shapes and dtypes and nothing in them: every value is 1, stored once.

    Planning needs no more of a sample. A generator that computes with its values may fail on these; it is then asked
    again with a :class:`Maker`.
    """

    def __call__(self, *shape: int, low: float | None = None, high: float | None = None) -> Array:
        return np.broadcast_to(np.ones((), self.numpy), shape)

    def of(self, d: dtype | str) -> Maker:
        return Outline(self.operator, d, self.low, self.high)

    def indices(self, *shape: int, below: int) -> Array:
        return np.broadcast_to(np.zeros((), np.int64), shape)

    def mask(self, *shape: int) -> Array:
        return np.broadcast_to(np.ones((), np.bool_), shape)
