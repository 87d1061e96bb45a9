"""Samples changed in their arrays alone: widened, moved by an eps, with other operands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from candelabra.dtypes import dtype

from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.records import Record, arguments_of, parameter_names, takes_tensors
from candelabra_conformance.samples.sample import Sample, arrays, mapped
from candelabra_conformance.transport import Array


def terms(op: Record, found: Sample, want: tuple[Array, ...]) -> int:
    """Into one element of the result go so many of the inputs: of a pointwise operator's one each, of all others maybe
    the largest input whole (the last of its running sums, say)."""
    sizes = [a.size for a in arrays((found.args, dict(found.kwargs)))]
    if getattr(op.rule, "pointwise", False):
        return max(1, sum(sizes) // max(1, max((w.size for w in want), default=1)))
    return max(1, *sizes, 1)


def with_arrays(found: Sample, function: Any) -> Sample:
    """The sample with ``function`` applied to each array."""
    return replace(found, args=mapped(found.args, function), kwargs=mapped(dict(found.kwargs), function))


def with_operands(op: Record, found: Sample, function: Any) -> Sample:
    """The sample with ``function`` applied to the arrays of its operands: not to indices and masks."""
    operands = {p.name for p in op.schema.parameters if takes_tensors(op, p)}
    names = parameter_names(op, len(found.args))
    args = tuple(mapped(a, function) if n in operands else a for n, a in zip(names, found.args, strict=True))
    kwargs = {n: mapped(a, function) if n in operands else a for n, a in found.kwargs.items()}
    return replace(found, args=args, kwargs=kwargs)


def floating_of(found: Sample) -> dtype | None:
    """The dtype of the sample's first floating or complex array."""
    for array in arrays((found.args, dict(found.kwargs))):
        if array.dtype.kind not in "biu":
            return device_dtype(array.dtype)
    return None


def narrowed(d: dtype, inner: dtype | None) -> dtype:
    """A wide dtype in the precision of another."""
    if inner is None or not (d.is_floating_point or d.is_complex):
        return d
    real = inner.to_real() if inner.is_complex else inner
    return real.to_complex() if d.is_complex else real


def perturbed(op: Record, found: Sample, step: float, seed: int) -> Sample:
    """Every floating value moved by one step, up or down at random; equal arrays move alike.

    Whole numbers by which nobody derives (the degree of a polynomial) stay: the answer jumps there.
    """
    random = np.random.Generator(np.random.Philox(seed))
    made: dict[int, Array] = {}
    fixed = _whole_constants(op, found)

    def move(array: Array) -> Array:
        if array.dtype.kind in "biu" or any(array is one for one in fixed):
            return array
        if id(array) not in made:
            signs = random.choice((-1.0, 1.0), array.shape)
            with np.errstate(all="ignore"):
                moved: Array = np.asarray(array * (1 + step * signs))
            # The largest number is not moved to infinity: that would say that anything may come out there.
            made[id(array)] = np.where(np.isfinite(moved), moved, array)
        return made[id(array)]

    return with_arrays(found, move)


def _whole_constants(op: Record, found: Sample) -> list[Array]:
    given = arguments_of(op, found)
    constants = (array for name in found.constant for array in arrays(given.get(name)))
    return [array for array in constants if array.dtype.kind == "f" and np.array_equal(array, np.rint(array))]
