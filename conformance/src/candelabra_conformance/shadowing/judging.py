"""Compare one call's results with the expected results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from candelabra import Tensor
from candelabra.dtypes import dtype
from candelabra.library import Instance

from candelabra_conformance.comparing import described
from candelabra_conformance.shadowing.answer import RANDOM_ULP, WITHOUT_FLOAT64, Expected
from candelabra_conformance.shadowing.snapshot import Snapshot
from candelabra_conformance.tolerance import rounded, wide
from candelabra_conformance.transport import Array, to_host
from candelabra_conformance.ulp import ulp_error

MOVES: Final = frozenset({"moved"})
"""The operators whose result is on another device than their input."""


@dataclass(frozen=True)
class Finding:
    """An error of a call: the property that is violated, a description, and the largest error in ULP."""

    property: str
    message: str
    ulp: float | None = None
    due: BaseException | None = None
    """The error that should have been raised."""


def judged(before: Snapshot, expected: Expected, results: tuple[Tensor, ...], written: bool) -> Finding | None:
    """Return the first error in the results of a call, or None.

    ``written``: the call was the in-output form, whose result is its first argument.
    """
    if len(results) != len(expected.own):
        return Finding("result", f"{len(results)} results, expected {len(expected.own)}")
    target = results[0] if written else None
    changed = before.changed(but=target)
    if changed:
        tensor, old, new = changed[0]
        position = next(i for i, t in enumerate(before.tensors) if t is tensor)
        return Finding("inputs", f"tensor {position} of the arguments was written to: {_first_change(old, new)}")
    for output, tensor in enumerate(results):
        finding = (
            _form(before, expected, output, tensor, written)
            or _aliasing(before, tensor)
            or _values(before, expected, output, tensor, written)
        )
        if finding is not None:
            return finding
    return None


def _first_change(old: Array, new: Array) -> str:
    index = tuple(int(i) for i in np.argwhere(_bits(old) != _bits(new))[0][: old.ndim])
    return f"at {list(index)} from {old[index]!s} to {new[index]!s}"


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(array.shape).view(f"V{array.itemsize}")


def _form(before: Snapshot, expected: Expected, output: int, tensor: Tensor, written: bool) -> Finding | None:
    """Check dtype, shape and device, and the payload's dtype."""
    held = tensor._instance.backend.dtype_of(tensor._payload)
    if held is not tensor.dtype:
        return Finding("result", f"the payload's dtype is {held.name}, the tensor's {tensor.dtype.name}")
    if not written and tensor.dtype is not expected.dtypes[output]:
        return Finding("result", f"the result is {tensor.dtype.name}, expected {expected.dtypes[output].name}")
    shape, due = tuple(tensor._payload.shape), expected.own[output].shape
    if shape != due:
        return Finding("result", f"the result has shape {list(shape)}, expected {list(due)}")
    instance = before.instance()
    if instance is not None and tensor._instance is not instance and before.record.name not in MOVES:
        return Finding("result", f"the result is on {tensor.device}, expected {instance.device}")
    return None


def _aliasing(before: Snapshot, tensor: Tensor) -> Finding | None:
    """Check that only a view shares its input's memory. A composite may return its argument itself."""
    if before.record.view or tensor._instance.immutable or not tensor.numel():
        return None
    for position, argument in enumerate(before.tensors):
        if argument is not tensor and argument._payload is tensor._payload and argument._counter is not tensor._counter:
            return Finding(
                "aliasing",
                f"the result shares the memory of tensor {position} of the arguments, but is not a view of it",
            )
    return None


def _values(before: Snapshot, expected: Expected, output: int, tensor: Tensor, written: bool) -> Finding | None:
    got, d = to_host(tensor), tensor.dtype
    if before.record.random:
        return _random(before, expected.own[output], got, tensor._instance, d)
    if written and d is not expected.dtypes[output]:
        cast = expected.own[output].astype(got.dtype)
        if not d.is_floating_point and not d.is_complex:
            return None if (cast == got).all() else Finding("inplace", _words(got, wide(cast), got != cast, d, 0.0, 1))
    bad = expected.wrong(output, got, d)
    if not bad.any():
        return None
    want = expected.want[output] if expected.want[output].shape == got.shape else wide(expected.own[output])
    words = _words(got, want, bad, d, expected.sensitivity[output], expected.length)
    outputs = before.record.schema.outputs
    name = f"{outputs[output]}: " if len(outputs) > 1 else ""
    return Finding("inplace" if written else "value", name + words, _largest(got, want, bad, d))


def _words(got: Array, want: Array, bad: Array, d: dtype, sensitivity: Any, length: int) -> str:
    return described(got, want, np.asarray(bad), d, np.broadcast_to(np.asarray(sensitivity), want.shape), length)


def _largest(got: Array, want: Array, bad: Array, d: dtype) -> float:
    errors = ulp_error(wide(got), want, d)
    return float(np.max(errors, where=bad, initial=0.0))


def _random(before: Snapshot, want: Array, got: Array, instance: Instance, d: dtype) -> Finding | None:
    """Check that random numbers are equal to the bit, except for the rounding that the specification allows."""
    allowed = RANDOM_ULP.get(before.record.name, 0.0)
    if allowed and not any(k.name == "float64" for k in instance.capabilities.arithmetic):
        allowed = WITHOUT_FLOAT64
    errors = ulp_error(got, wide(rounded(want, d)) if allowed else want, d)
    bad = errors > allowed
    if not bad.any():
        return None
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(errors)), errors.shape)) if errors.ndim else ()
    words = (
        f"{int(bad.sum())} of {bad.size} random numbers differ; first at {list(index)}: got {got[index]!s}, expected "
    )
    return Finding("random", words + str(want[index]), float(errors.max()))
