"""The dtype rules of records: the promotion of the operands, and the dtype of the result.

The core casts operands before it calls a kernel, so a kernel always gets one dtype.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra.dtypes import (
    BOOL,
    INTEGER,
    bool_,
    complex128,
    default_for_category,
    dtype,
    float64,
    get_default_dtype,
    int64,
)  # fmt: skip

Promotion = Callable[[dtype], dtype]
"""From the common dtype of the operands to the dtype that the operator computes in."""


def common(d: dtype) -> dtype:
    """Compute in the operands' common dtype."""
    return d


def to_float(d: dtype) -> dtype:
    """Promote integers and bools to the default floating dtype (``exp``, ``sqrt``, true division)."""
    return get_default_dtype() if d.category <= INTEGER else d


def to_double(d: dtype) -> dtype:
    """Promote to float64, or to complex128 for complex operands (``float_power``)."""
    return complex128 if d.is_complex else float64


def to_integer(d: dtype) -> dtype:
    """Promote bools to int64 (``sum``, ``cumsum``)."""
    return default_for_category(INTEGER) if d.category == BOOL else d


def highest(d: dtype) -> dtype:
    """Each operand keeps its dtype, and the result has the highest one: that of the scores of a loss, whose targets are
    integers."""
    return d


def unpromoted(d: dtype) -> dtype:
    """Do not promote: the operator takes one tensor, or tensors whose dtypes may differ."""
    return d


def identical(d: dtype) -> dtype:
    """The operands must have the same dtype. Nothing is cast: ``RuntimeError`` for operands of several dtypes."""
    return d


def same(d: dtype) -> dtype:
    """Return the dtype of the computation."""
    return d


def boolean(d: dtype) -> dtype:
    """Return bool, for comparisons, ``isnan``, ``any``."""
    return bool_


def index(d: dtype) -> dtype:
    """Return int64, for ``argmax``, ``nonzero``, the indices of ``sort``."""
    return int64


def real_part(d: dtype) -> dtype:
    """Return the corresponding real dtype, for ``abs``, ``angle``."""
    return d.to_real()


def to_complex(d: dtype) -> dtype:
    """Return the complex dtype with real and imaginary part of that dtype, for ``view_as_complex``."""
    return d.to_complex()


def by_arguments(d: dtype) -> dtype:
    """Another argument decides the dtype of a composite's result: one of two tensors (``fill``) or a flag."""
    return d


def accumulated(d: dtype) -> dtype:
    """Return int64 for integers and bools, as PyTorch does for sums and products, and the dtype itself for others."""
    return int64 if d.category <= INTEGER else d
