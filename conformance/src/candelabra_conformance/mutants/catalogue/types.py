"""Faults of results: dtype, device, bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.backend import Kernel

from candelabra_conformance.mutants.mirror import Image, Mirror
from candelabra_conformance.mutants.mutant import breaks, breaks_kernel


@breaks("add", "neg", only="f", caught_by="*/result/*")
def results_are_float64(right: Kernel, *args: Any) -> Any:
    """A kernel computes in float64 and returns float64."""
    return right(*args).astype(np.float64)


@breaks("sum", only="iu", caught_by="sum/result/* sum/value/*")
def sums_of_integers_keep_their_dtype(right: Kernel, x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The sum of int32 is int32."""
    out = right(x, dim, keepdim, dtype)
    return out.astype(x.dtype) if dtype is None else out


@breaks("eq", "lt", "isnan", caught_by="*/result/*")
def comparisons_are_numbers(right: Kernel, *args: Any) -> Any:
    """A comparison returns uint8."""
    return right(*args).astype(np.uint8)


@breaks("argmax", "argsort", caught_by="*/result/*")
def indices_are_int32(right: Kernel, *args: Any) -> Any:
    """Indices have 32 bits."""
    return right(*args).astype(np.int32)


@breaks("gt", "logical_and", caught_by="*/value/* */result/*")
def true_is_255(right: Kernel, *args: Any) -> Any:
    """All bits of a true byte are set, so that sums and reads of it are wrong."""
    return (right(*args).astype(np.uint8) * np.uint8(255)).view(np.bool_)


@breaks("cast", caught_by="cast/*")
def casting_keeps_the_dtype(right: Kernel, x: Any, dtype: Any) -> Any:
    """A cast between dtypes of one size does nothing."""
    out = right(x, dtype)
    return x if out.dtype.itemsize == x.dtype.itemsize else out


@breaks("cast", only="c", caught_by="cast/*/complex*")
def casting_drops_the_imaginary_part(right: Kernel, x: Any, dtype: Any) -> Any:
    """A cast between complex dtypes passes through real ones."""
    return right(x.real.astype(x.dtype), dtype)


@breaks_kernel("mul", "matmul", caught_by="*/result/* device/*")
def results_are_on_the_other_device(mirror: Mirror, right: Kernel, *args: Any) -> Any:
    """The result's memory is that of the type's second device."""
    out = right(*args)
    return Image(out.inner, 1 - out.index, out.memory)


@breaks_kernel("exp", "softmax", caught_by="*/result/*")
def shapes_are_lists(mirror: Mirror, right: Kernel, *args: Any) -> Any:
    """A payload's shape is not a tuple of ints."""
    out = right(*args)
    out.shape = list(out.shape)
    return out
