"""Side effects: inputs do not change, and results share memory if and only if the record is a view."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra import Tensor
from candelabra.dtypes import dtype
from candelabra.library import Operator

from candelabra_conformance.calling import called, tensors, tensors_in
from candelabra_conformance.context import Context, Failure
from candelabra_conformance.layouts import CONTIGUOUS, OFFSET, STEP, TRANSPOSED, placed
from candelabra_conformance.properties.axes import each_category, main_on_all_layouts, of_callable
from candelabra_conformance.properties.registry import operator_property
from candelabra_conformance.records import CallableRecord, Record
from candelabra_conformance.samples.sample import LENGTH_ONE, ZERO_DIM, Sample
from candelabra_conformance.transport import Array, to_device, to_host


def given_tensors(value: Any) -> list[Tensor]:
    """Return the distinct tensors among the arguments."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        found: list[Tensor] = []
        for part in value:
            found += [t for t in given_tensors(part) if not any(t is f for f in found)]
        return found
    return []


def storage(tensor: Tensor) -> Array:
    """Return the content of the whole memory that a tensor is a view of, or of the tensor itself."""
    while hasattr(tensor, "_base"):
        tensor = tensor._base
    return to_host(tensor)


def same(a: Array, b: Array) -> bool:
    """Return whether all bits are equal."""
    return a.shape == b.shape and a.tobytes() == b.tobytes()


@operator_property("inputs", main_on_all_layouts(1), of_callable(1, (CONTIGUOUS, TRANSPOSED, STEP)))
def inputs(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """No input changes, neither its values nor its version nor the memory around it.

    An exception is the argument that a public callable modifies by its name, such as ``Tensor.uniform_``.
    """
    for sample in context.each(op, d, layout):
        args, kwargs = _arguments(context, sample, layout)
        written = isinstance(op, CallableRecord) and op.writes
        given = given_tensors([args[written:], kwargs])
        before = [storage(t) for t in given]
        versions = [t._version for t in given]
        for tensor in tensors_in(called(op, args, kwargs, context.instance)):
            to_host(tensor)  # wait for asynchronous work
        for tensor, values, version in zip(given, before, versions, strict=True):
            if not same(storage(tensor), values):
                raise Failure("an input was written to", sample, layout)
            if tensor._version != version:
                raise Failure("an input's version counter moved", sample, layout)
    return None


@operator_property("aliasing", each_category(1, (CONTIGUOUS, TRANSPOSED, OFFSET, STEP, LENGTH_ONE, ZERO_DIM)))
def aliasing(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """A write into a result changes an input, and its version, if and only if the record is a view.

    It never changes the result of another call.
    """
    for sample in context.each(op, d, layout):
        args, kwargs = _arguments(context, sample, layout)
        given = given_tensors([args, kwargs])
        made = tensors(called(op, args, kwargs, context.instance))
        beside = () if op.view else tensors(called(op, *_arguments(context, sample, layout), context.instance))
        values = [to_host(t) for t in beside]
        for tensor in made:
            itself = any(tensor is t for t in given)  # which the caller can see: +x may be x
            if tensor.numel() and not itself and not _overlapping(tensor):
                _write_into(context, op, sample, layout, tensor, given, made)
        if not all(same(to_host(t), v) for t, v in zip(beside, values, strict=True)):
            raise Failure("the results of two calls share memory", sample, layout)
    return None


def _write_into(
    context: Context,
    op: Operator[..., Any],
    sample: Sample,
    layout: str,
    tensor: Tensor,
    arguments: list[Tensor],
    results: tuple[Tensor, ...],
) -> None:
    before = [storage(t) for t in arguments]
    others = [to_host(t) for t in results if t is not tensor]
    version = tensor._version
    marked = differing(to_host(tensor))
    tensor.copy_(to_device(marked, context.instance))
    if not same(to_host(tensor), marked):
        raise Failure("writing into the result does not change it", sample, layout)
    changed = [not same(storage(t), values) for t, values in zip(arguments, before, strict=True)]
    bumped = [t._version != version for t in arguments if t._counter is tensor._counter]
    if op.view and arguments and not any(changed):
        raise Failure("a view: writing into it does not write into its source", sample, layout)
    if op.view and not all(bumped):
        raise Failure("a view: writing into it leaves its source's version where it was", sample, layout)
    if op.view and arguments and not any(t._counter is tensor._counter for t in arguments):
        raise Failure("a view: it has a version counter of its own", sample, layout)
    if not op.view and any(changed):
        raise Failure("the result shares memory with an input", sample, layout)
    kept = [to_host(t) for t in results if t is not tensor]
    if not op.view and not all(same(a, b) for a, b in zip(others, kept, strict=True)):
        raise Failure("two results share memory", sample, layout)


def _arguments(context: Context, sample: Sample, layout: str) -> tuple[Any, Any]:
    return placed(sample.args, layout, context.instance), placed(dict(sample.kwargs), layout, context.instance)


def differing(values: Array) -> Array:
    """Return an array whose elements all differ."""
    if values.dtype.kind == "b":
        return ~values
    if values.dtype.kind in "iu":
        return np.asarray(values ^ values.dtype.type(1))
    flipped = np.where(np.asarray(values == values.dtype.type(3)), values.dtype.type(5), values.dtype.type(3))
    return np.asarray(flipped, dtype=values.dtype)


def _overlapping(tensor: Tensor) -> bool:
    """Return whether elements share memory (stride 0, windows): such a view cannot be written to."""
    if not tensor._instance.capabilities.strided:
        return getattr(tensor, "_replay", None) is not None and _expanded(tensor)
    strides = tensor.stride()
    steps = sorted((s, n) for s, n in zip(strides, tensor.shape, strict=True) if n > 1)
    reach = 0
    for step, size in steps:
        if step <= reach:
            return True
        reach += step * (size - 1)
    return False


def _expanded(tensor: Tensor) -> bool:
    replay = tensor._replay
    return replay is not None and replay[0].name in ("expand", "as_strided", "unfold")
