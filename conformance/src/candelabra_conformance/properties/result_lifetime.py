"""The time of a result: it does not depend on what is written, freed or computed after the call."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import candelabra as cd
import numpy as np
from candelabra.dtypes import dtype
from candelabra.library import Instance, Operator, open_device

from candelabra_conformance.calling import called, determined, tensors
from candelabra_conformance.context import Context, Failure, NotApplicable
from candelabra_conformance.layouts import placed
from candelabra_conformance.numpy_dtypes import host_dtype
from candelabra_conformance.properties.axes import some
from candelabra_conformance.properties.effects import differing, given_tensors, same
from candelabra_conformance.properties.registry import Axis, operator_property
from candelabra_conformance.properties.value import agree
from candelabra_conformance.samples.sample import Sample, arrays
from candelabra_conformance.transport import Array, to_device, to_host

ALIVE: Final = 1000
"""The number of results of one operator that exist at once."""
FEW: Final = 2
"""The number of samples on each other device of the type."""


def _reads(op: Operator[..., Any]) -> bool:
    """Return whether an operator computes a result from tensors."""
    return not op.view and bool(op.schema.tensors)


@operator_property("overwritten", some(1, when=_reads))
def overwritten(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """A result that is read after its inputs were overwritten is that of their values at the time of the call."""
    if op.name in context.instance.capabilities.nondeterministic:
        raise NotApplicable("the backend declares the operator non-deterministic")
    for sample in context.each(op, d, layout):
        first = tensors(called(op, *_arguments(sample, layout, context.instance), context.instance))
        want = [to_host(t) for t in first]
        for change in (differing, reversed_order):
            args, kwargs = _arguments(sample, layout, context.instance)
            given = given_tensors([args, kwargs])
            others = [to_device(change(to_host(t)), context.instance) for t in given]
            made = tensors(called(op, args, kwargs, context.instance))
            for tensor, other in zip(given, others, strict=True):
                if tensor.numel():
                    tensor.copy_(other)
            for result, values in zip(made, want, strict=True):
                if not any(result._counter is t._counter for t in given) and not same(to_host(result), values):
                    raise Failure("the result is other once an input is overwritten after the call", sample, layout)
    return None


def reversed_order(values: Array) -> Array:
    """Return the same values in reverse order, which are valid where others are not: as indices, as probabilities, as
    masks that select that number of elements."""
    return np.ascontiguousarray(values.reshape(-1)[::-1]).reshape(values.shape)


def _arguments(sample: Sample, layout: str, instance: Instance) -> tuple[Any, Any]:
    return placed(sample.args, layout, instance), placed(dict(sample.kwargs), layout, instance)


@operator_property("alive", some(3, when=lambda op: not op.view))
def alive(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """A thousand results exist at once, in memory of their own: a write into the last one changes no other."""
    if not context.instance.capabilities.mutable:
        raise NotApplicable("a write replaces the array of an immutable tensor")
    samples = context.laid_out(op, d, layout)
    sizes = [sum(a.size for a in arrays((s.args, dict(s.kwargs)))) for s in samples]
    sample = samples[sizes.index(min(sizes))]
    context.current = (sample, layout)
    args, kwargs = _arguments(sample, layout, context.instance)
    given = given_tensors([args, kwargs])
    every = [tensors(called(op, args, kwargs, context.instance)) for _ in range(ALIVE)]
    want = [to_host(t) for t in every[0]]
    own = [t for t in every[-1] if t.numel() and not any(t is g for g in given)]
    for tensor in own:
        tensor.copy_(to_device(differing(to_host(tensor)), context.instance))
    for number, results in enumerate(every[:-1] if own else every):
        if not all(same(to_host(t), v) for t, v in zip(results, want, strict=True)):
            raise Failure(f"result {number + 1} of {ALIVE} is other after a write into the last one", sample, layout)
    return None


# -- every device of the type -----------------------------------------------------------------------------------------
def other_devices(context: Context) -> Iterator[Instance]:
    """Yield the other devices of the type."""
    for index in range(len(context.instance.backend.devices())):
        if index != context.instance.index:
            yield open_device(cd.device(context.device.type, index))


def _elsewhere(context: Context, op: Operator[..., Any]) -> Iterator[Axis]:
    if len(context.instance.backend.devices()) > 1:
        yield from some(2)(context, op)


@operator_property("indices", _elsewhere)
def indices(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """The first samples have the same values on every other device of the type, and results are on that device."""
    worst = None
    for instance in other_devices(context):
        for sample in context.laid_out(op, d, layout)[:FEW]:
            context.current = (sample, layout)
            args, kwargs = _arguments(sample, layout, instance)
            with _named(instance, sample, layout):
                made = called(op, args, kwargs, instance)
                for tensor in tensors(made):
                    if tensor.device != instance.device:
                        raise Failure(f"the result is on {tensor.device}")
                    there = to_device(np.zeros(tuple(tensor.shape), host_dtype(tensor.dtype)), instance)
                    if not same(to_host(there.copy_(tensor)), to_host(tensor)):
                        raise Failure("a copy of the result has other values")
                got = determined(sample, made, context.reference)
                worst = max(worst or 0.0, agree(context, op, d, sample, layout, got))
    return worst


@contextlib.contextmanager
def _named(instance: Instance, sample: Sample, layout: str) -> Iterator[None]:
    """Add the device's name to a failure inside the block."""
    try:
        yield
    except Failure as failure:
        raise Failure(f"on {instance.device}: {failure}", sample, layout, **failure.details) from None
    except Exception as error:
        raise Failure(f"on {instance.device}: {type(error).__name__}: {error}", sample, layout) from error
