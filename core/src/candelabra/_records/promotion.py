"""What a record says about dtypes: how its operands are made alike, and what the result's dtype is.

The core casts before a kernel is called, so a kernel only ever sees one dtype.
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
    """Integers and bools become the default floating dtype first (``exp``, ``sqrt``, true division)."""
    return get_default_dtype() if d.category <= INTEGER else d


def to_double(d: dtype) -> dtype:
    """Everything becomes float64, or complex128 where it is complex (``float_power``)."""
    return complex128 if d.is_complex else float64


def to_integer(d: dtype) -> dtype:
    """Bools become int64 first (``sum``, ``cumsum``)."""
    return default_for_category(INTEGER) if d.category == BOOL else d


def unpromoted(d: dtype) -> dtype:
    """The operands are not made alike: the operator takes one tensor, or tensors that need not agree."""
    return d


def identical(d: dtype) -> dtype:
    """The operands must have the same dtype. Nothing is cast: ``RuntimeError`` for operands of several dtypes."""
    return d


def same(d: dtype) -> dtype:
    """The result has the dtype that was computed in."""
    return d


def boolean(d: dtype) -> dtype:
    """The result is bool (comparisons, ``isnan``, ``any``)."""
    return bool_


def index(d: dtype) -> dtype:
    """The result is int64 (``argmax``, ``nonzero``, the indices of ``sort``)."""
    return int64


def real_part(d: dtype) -> dtype:
    """The result is real (``abs``, ``angle``)."""
    return d.to_real()


def to_complex(d: dtype) -> dtype:
    """The result is complex, with parts of that dtype (``view_as_complex``)."""
    return d.to_complex()


def by_arguments(d: dtype) -> dtype:
    """Another argument decides the dtype of a composite's result: one of two tensors (``fill``) or a flag."""
    return d


def accumulated(d: dtype) -> dtype:
    """Sums and products of integers and bools are int64, as in PyTorch."""
    return int64 if d.category <= INTEGER else d
