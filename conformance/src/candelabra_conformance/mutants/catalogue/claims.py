"""Faults of capabilities: a backend declares a capability that it does not have."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.backend import Kernel
from candelabra.dtypes import BY_NAME

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import array_of, breaks, breaks_backend, payload_of


@breaks_backend("expand", "basic_index", "transpose", caught_by="*/aliasing/*")
class StridesAreClaimed(Mirror):
    """``strided`` is declared, but views are copies."""

    def restride(self, payload: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
        """Return a copy with the content of the view."""
        view = super().restride(payload, shape, strides, offset)
        return payload_of(self, array_of(self, view), payload.index)


@breaks_backend("add", "mul", caught_by="*/inplace/* */out/* device/copy* */aliasing/*")
class MutabilityIsClaimed(Mirror):
    """``mutable`` is declared, but writes have no effect."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.table = {k: v for k, v in self.table.items() if not k.endswith("_")}

    def copy_(self, destination: Any, source: Any) -> Any:
        """Return a new payload, as a library with immutable arrays does."""
        return payload_of(self, array_of(self, source), destination.index)


@breaks_backend("mul", "matmul", caught_by="*/value/bfloat16/*")
class BfloatsAreClaimed(Mirror):
    """bfloat16 is declared, but computed in its own precision with truncation."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        for operator in ("mul", "matmul"):
            self.table[operator] = self._cut(self.table[operator])

    def _cut(self, right: Kernel) -> Kernel:
        def run(*args: Any) -> Any:
            out = right(*args)
            if self.dtype_of(out).name != "bfloat16":
                return out
            array = array_of(self, out).view(np.uint16) & np.uint16(0xFFE0)
            return payload_of(self, array.view(array_of(self, out).dtype), out.index)

        return run


@breaks_backend(caught_by="device/*/float64*")
class DoublesAreHeldAsSingles(Mirror):
    """float64 is declared as storage, but stored as float32."""

    def dtype_of(self, payload: Image) -> Any:
        """Return float64 for a float32 payload."""
        d = super().dtype_of(payload)
        return BY_NAME["float32"] if d.name == "float64" else d


@breaks("lt", "maximum", "sort", only="u", caught_by="*/special/uint64* */value/uint64*")
def long_unsigned_integers_are_claimed(right: Kernel, x: Any, *rest: Any) -> Any:
    """uint64 is declared, but its upper half is negative."""
    if getattr(x, "dtype", None) != np.uint64:
        return right(x, *rest)
    signed = right(x.view(np.int64), *(r.view(np.int64) if isinstance(r, np.ndarray) else r for r in rest))
    if isinstance(signed, tuple):
        return signed[0].view(np.uint64), *signed[1:]
    return signed if signed.dtype == bool else signed.view(np.uint64)
