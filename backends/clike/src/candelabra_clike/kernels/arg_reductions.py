"""Where extremes are, and extremes along a dim with their places."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from candelabra.dtypes import COMPLEX, dtype

from candelabra_clike.array import StridedArray
from candelabra_clike.kernels.reductions import LARGEST, SMALLEST, ByDtype, extreme
from candelabra_clike.templates.reductions.arg_reduction import ArgReduction


@lru_cache(None)
def search(largest: bool, d: dtype) -> ArgReduction:
    """The search for the largest or smallest element of a real dtype."""
    ends, sign = (SMALLEST, ">=") if largest else (LARGEST, "<=")
    name = "max" if largest else "min"
    plain = extreme(name, sign, ends, d)
    assert plain is not None, f"no order among {d}"
    return ArgReduction(f"arg{name}_{d.name}", sign[0], plain.fold(True), d)


def _places(largest: bool, d: dtype) -> Any:
    if d.category == COMPLEX:
        return None

    def kernel(x: StridedArray, dim: int | None, keepdim: bool) -> StridedArray:
        return search(largest, d)(x, dim, keepdim)[1]

    return kernel


def _both(largest: bool, d: dtype) -> Any:
    return None if d.category == COMPLEX else search(largest, d)


KERNELS: dict[str, Any] = {
    "argmax": ByDtype(lambda d: _places(True, d)),
    "argmin": ByDtype(lambda d: _places(False, d)),
    "max_dim": ByDtype(lambda d: _both(True, d)),
    "min_dim": ByDtype(lambda d: _both(False, d)),
}
