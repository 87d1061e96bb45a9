"""Faults of kernels over composites, and of kernels that decline calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.dtypes import float32
from candelabra.library import OPERATORS

from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.mutants.mutant import HostKernel, breaks_backend, breaks_kernel, on_host


class _Overriding(Mirror):
    """A mirror with one more kernel, a function of host arrays."""

    def override(self, name: str, function: HostKernel) -> None:
        """Serve an operator by a function of arrays."""
        self.table[name] = on_host(self, OPERATORS[name], lambda *args: None, function)


@breaks_backend("dropout", caught_by="dropout/value/*")
class DropoutScalesByTheWrongProbability(_Overriding):
    """The kernel of dropout divides by ``p`` instead of ``1 - p``."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        draw = self.reflected["random_uniform"]

        def kernel(right: Any, x: Any, p: float, seed: int, offset: int) -> Any:
            kept = np.asarray(draw(x.shape, seed, offset, float32, 0)) >= p
            factors = (kept / (p or 1.0)).astype(x.dtype)
            return x * factors, factors

        self.override("dropout", kernel)


@breaks_backend("layer_norm", caught_by="layer_norm/value/*")
class LayerNormIgnoresTheBias(_Overriding):
    """The kernel of layer_norm serves calls with a bias and does not add it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)

        def kernel(right: Any, x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
            wide = x.astype(np.float64)
            axes = tuple(range(x.ndim - len(shape), x.ndim))
            out = (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + eps)
            return (out if weight is None else out * weight).astype(x.dtype)

        self.override("layer_norm", kernel)


@breaks_backend("rms_norm", caught_by="rms_norm/value/*")
class RmsNormAddsNoEpsilon(_Overriding):
    """The kernel of rms_norm ignores ``eps``."""

    def __init__(self, name: str) -> None:
        super().__init__(name)

        def kernel(right: Any, x: Any, shape: Any, weight: Any, eps: float | None) -> Any:
            wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
            axes = tuple(range(x.ndim - len(shape), x.ndim))
            out = wide / np.sqrt((wide * wide).mean(axes, keepdims=True))
            return (out if weight is None else out * weight).astype(x.dtype)

        self.override("rms_norm", kernel)


@breaks_kernel("add_", caught_by="add/inplace/*")
def addition_writes_and_declines(mirror: Mirror, right: Any, *args: Any) -> Any:
    """The in-place kernel has written its result when it declines, so that the operand is added twice."""
    right(*args)
    return NotImplemented
