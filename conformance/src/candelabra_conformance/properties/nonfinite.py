"""NaN, infinities and signed zeros at the level of training: a maximum that loses a NaN hides a divergence."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from candelabra.dtypes import dtype
from candelabra.library import Operator

from candelabra_conformance.context import Context
from candelabra_conformance.layouts import CONTIGUOUS
from candelabra_conformance.perturbation import with_arrays
from candelabra_conformance.properties.axes import some
from candelabra_conformance.properties.registry import operator_property
from candelabra_conformance.properties.value import agree, results
from candelabra_conformance.samples.gather import generators_of
from candelabra_conformance.samples.pointwise import follows_from_record
from candelabra_conformance.transport import Array


def _has_special(op: Operator[..., Any]) -> bool:
    return follows_from_record(op) or bool(generators_of(op.name, "special"))


@operator_property("nonfinite", some(2, floating=True, when=_has_special))
def nonfinite(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """Results for NaN, infinities and numbers of moderate size agree with the oracle.

    The samples are those of ``special``. Subnormals, which many devices flush to 0, become 0, and numbers near the
    largest one become smaller.
    """
    worst = None
    for sample in context.each_of(op, d, "special"):
        moderate = with_arrays(sample, moderated)
        got = results(context, op, moderate, CONTIGUOUS)
        worst = max(worst or 0.0, agree(context, op, d, moderate, CONTIGUOUS, got))
    return worst


def moderated(array: Array) -> Array:
    """Return the array with finite floating values between the fourth root of the largest number and its reciprocal,
    or 0. The order of the values stays the same."""
    if array.dtype.kind in "biu":
        return array
    if array.dtype.kind == "c":
        out = np.empty_like(array)
        out.real, out.imag = moderated(array.real), moderated(array.imag)
        return out
    finfo: Any = ml_dtypes.finfo  # NumPy's does not support bfloat16
    largest = 2.0 ** (finfo(array.dtype).maxexp // 4)
    wide = array.astype(np.float64)
    kept = np.where(np.isfinite(wide), np.clip(wide, -largest, largest), wide)
    return np.where(np.abs(kept) < 1 / largest, np.copysign(0.0, kept), kept).astype(array.dtype)
