"""Arg-reductions, and extremes along a dim with their indices."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from candelabra.dtypes import COMPLEX, FLOATING, dtype

from candelabra_clike.array import StridedArray
from candelabra_clike.kernels.reductions import DtypeSpecialized, extreme
from candelabra_clike.language import Value
from candelabra_clike.templates.reductions.arg_reduction import ArgReduction


@lru_cache(None)
def arg_reduction(largest: bool, d: dtype) -> ArgReduction:
    """Return the arg-reduction of a real dtype: the largest or the smallest element."""
    name = "max" if largest else "min"
    plain = extreme(name, largest, d)
    assert plain is not None, f"{d} has no order"
    floating = d.category == FLOATING

    def better(a: Value, b: Value) -> Value:
        precedes = a > b if largest else a < b
        return precedes | ((a != a) & (b == b)) if floating else precedes

    def equal(a: Value, b: Value) -> Value:
        return (a == b) | ((a != a) & (b != b)) if floating else a == b

    return ArgReduction(f"arg{name}_{d.name}", better, equal, plain.fold(True), d)


def _indices(largest: bool, d: dtype) -> Any:
    if d.category == COMPLEX:
        return None

    def kernel(x: StridedArray, dim: int | None, keepdim: bool) -> StridedArray:
        return arg_reduction(largest, d)(x, dim, keepdim)[1]

    return kernel


def _values_and_indices(largest: bool, d: dtype) -> Any:
    return None if d.category == COMPLEX else arg_reduction(largest, d)


KERNELS: dict[str, Any] = {
    "argmax": DtypeSpecialized(lambda d: _indices(True, d)),
    "argmin": DtypeSpecialized(lambda d: _indices(False, d)),
    "max_dim": DtypeSpecialized(lambda d: _values_and_indices(True, d)),
    "min_dim": DtypeSpecialized(lambda d: _values_and_indices(False, d)),
}
