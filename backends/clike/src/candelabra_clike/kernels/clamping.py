"""``clamp`` between two numbers, in one pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from candelabra.dtypes import dtype
from candelabra.library import OPERATORS

from candelabra_clike.array import StridedArray
from candelabra_clike.expressions import EXPRESSIONS
from candelabra_clike.kernels.pointwise import Pointwise


class Clamp:
    """The kernel of ``clamp`` between two numbers, which is that of ``hardtanh``. It declines other bounds, and all
    calls where the distribution that declares ``hardtanh`` is not installed.
    """

    @cached_property
    def between(self) -> Pointwise | None:
        """The kernel of ``hardtanh``."""
        if "hardtanh" not in OPERATORS:
            return None
        return Pointwise(OPERATORS["hardtanh"], EXPRESSIONS["hardtanh"], inplace=False)

    def for_dtype(self, d: dtype) -> Callable[..., Any] | None:
        """Return the function for a floating dtype."""
        between = None if self.between is None else self.between.for_dtype(d)
        if between is None:
            return None

        def clamp(x: StridedArray, low: Any, high: Any) -> Any:
            numbers = low.__class__ in (float, int) and high.__class__ in (float, int)
            # If bounds cross, the upper one is the result for all elements; a bound that is NaN fails here, too.
            return between(x, float(low), float(high)) if numbers and low <= high else NotImplemented

        return clamp

    def __call__(self, x: StridedArray, low: Any, high: Any) -> Any:
        kernel = self.for_dtype(x.dtype)
        return NotImplemented if kernel is None else kernel(x, low, high)


KERNELS: dict[str, Any] = {"clamp": Clamp()}
