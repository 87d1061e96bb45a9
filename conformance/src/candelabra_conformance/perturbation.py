"""Change only the arrays of samples: convert them to a wider dtype, perturb them by an eps, replace operands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from candelabra.dtypes import dtype

from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.records import Record, arguments_of, parameter_names, takes_tensors
from candelabra_conformance.samples.sample import Sample, arrays, mapped
from candelabra_conformance.tolerance import smallest_normal
from candelabra_conformance.transport import Array


def terms(op: Record, sample: Sample, want: tuple[Array, ...]) -> int:
    """Return the maximum number of inputs that affect one element of the result.

    For a pointwise operator this is one per operand; for any other it may be all elements of the largest input, as in
    the last of its cumulative sums.
    """
    sizes = [a.size for a in arrays((sample.args, dict(sample.kwargs)))]
    if getattr(op.rule, "pointwise", False):
        return max(1, sum(sizes) // max(1, max((w.size for w in want), default=1)))
    return max(1, *sizes, 1)


def with_arrays(sample: Sample, function: Any) -> Sample:
    """Return the sample with ``function`` applied to each array."""
    return replace(sample, args=mapped(sample.args, function), kwargs=mapped(dict(sample.kwargs), function))


def without_subnormals(array: Array, zeros: bool = False) -> Array:
    """Return the values with the smallest normal number, of the same sign, for each subnormal one.

    Zeros in their place would be new cases for functions such as ``maximum``, of two zeros of different signs. With
    ``zeros`` they are, as on a device that flushes its operands.
    """
    limit = smallest_normal(device_dtype(array.dtype))
    if not limit:
        return array
    if array.dtype.kind == "c":
        parts = array.reshape(-1).view(array.real.dtype)
        return without_subnormals(parts, zeros).view(array.dtype).reshape(array.shape)
    least = array.dtype.type(limit)
    with np.errstate(invalid="ignore"):
        below = (array != 0) & (np.abs(array) < least)
    return np.where(below, np.copysign(0 * least if zeros else least, array), array) if below.any() else array


def with_operands(op: Record, sample: Sample, function: Any) -> Sample:
    """Return the sample with ``function`` applied to the arrays of its operands, but not of its constants."""
    operands = {p.name for p in op.schema.parameters if takes_tensors(op, p)} - set(sample.constant)
    names = parameter_names(op, len(sample.args))
    args = tuple(mapped(a, function) if n in operands else a for n, a in zip(names, sample.args, strict=True))
    kwargs = {n: mapped(a, function) if n in operands else a for n, a in sample.kwargs.items()}
    return replace(sample, args=args, kwargs=kwargs)


def floating_of(sample: Sample) -> dtype | None:
    """Return the dtype of the sample's first floating or complex array."""
    for array in arrays((sample.args, dict(sample.kwargs))):
        if array.dtype.kind not in "biu":
            return device_dtype(array.dtype)
    return None


def narrowed(d: dtype, inner: dtype | None) -> dtype:
    """Return a dtype of the category of a wide one, in the precision of another."""
    if inner is None or not (d.is_floating_point or d.is_complex):
        return d
    real = inner.to_real() if inner.is_complex else inner
    return real.to_complex() if d.is_complex else real


def perturbed(op: Record, sample: Sample, step: float, seed: int) -> Sample:
    """Change every floating value by one step, up or down at random; equal arrays change equally.

    Integers with respect to which the operator has no derivative (the degree of a polynomial) do not change, since the
    answer would jump.
    """
    random = np.random.Generator(np.random.Philox(seed))
    made: dict[int, Array] = {}
    fixed = _whole_constants(op, sample)

    def move(array: Array) -> Array:
        if array.dtype.kind in "biu" or any(array is one for one in fixed):
            return array
        if id(array) not in made:
            signs = random.choice((-1.0, 1.0), array.shape)
            with np.errstate(all="ignore"):
                moved: Array = np.asarray(array * (1 + step * signs))
            # The largest number does not become infinite, since any result would then be within the bound.
            made[id(array)] = np.where(np.isfinite(moved), moved, array)
        return made[id(array)]

    return with_arrays(sample, move)


def _whole_constants(op: Record, sample: Sample) -> list[Array]:
    given = arguments_of(op, sample)
    constants = (array for name in sample.constant for array in arrays(given.get(name)))
    return [array for array in constants if array.dtype.kind == "f" and np.array_equal(array, np.rint(array))]
