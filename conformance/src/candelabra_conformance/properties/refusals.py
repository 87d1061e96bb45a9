"""Errors: the device raises errors of the same class and text as the reference, and for dtypes that it does not
support.

If the reference runs the body of an operator, its error is that of an inner operator. So the text of the operator's own
rule is accepted too: it is raised by a device whose kernel fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from candelabra import device as Device
from candelabra.dtypes import ALL, dtype
from candelabra.errors import UnsupportedDType, UnsupportedOperator
from candelabra.library import Operator, canonical, own_kernels

from candelabra_conformance.calling import at, called, tensors_in
from candelabra_conformance.context import Context, Failure
from candelabra_conformance.layouts import CONTIGUOUS, placed
from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.properties.axes import each_category, of_callable
from candelabra_conformance.properties.effects import given_tensors, same, storage
from candelabra_conformance.properties.forms import has_inplace
from candelabra_conformance.properties.registry import Axis, operator_property
from candelabra_conformance.properties.value import agree, results
from candelabra_conformance.records import CallableRecord, Record
from candelabra_conformance.samples.gather import gathered, generators_of
from candelabra_conformance.samples.sample import Sample, arrays
from candelabra_conformance.taking import refused
from candelabra_conformance.transport import to_host


def outcome(op: Record, sample: Sample, instance: Any, function: Any = None) -> tuple[type, str] | None:
    """Return class and text of the error of a call and of the wait for it, or None.

    ``function`` is another form of the operator. Raises :class:`Failure` if the call has changed a tensor, except the
    target of an in-place form or of a public callable on a device that detects the error late.
    """
    args, kwargs = placed([sample.args, dict(sample.kwargs)], CONTIGUOUS, instance)
    given = given_tensors([args, kwargs])
    before = [storage(t) for t in given]
    try:
        for tensor in tensors_in(called(op, args, kwargs, instance, function)):
            to_host(tensor)
        instance.backend.synchronize(instance.index)
    except Exception as error:
        writes = function is not None or (isinstance(op, CallableRecord) and op.writes)
        late = writes and instance.capabilities.asynchronous
        if not late and not all(same(storage(t), values) for t, values in zip(given, before, strict=True)):
            raise Failure(f"refused ({error}), but a tensor was written to before{_note(sample)}", sample) from error
        return type(error), str(error)
    return None


def ruling(op: Operator[..., Any], sample: Sample, instance: Any) -> tuple[type, str] | None:
    """Return class and text of the error of the operator's own rule, as :func:`outcome` does."""
    args, kwargs = placed([sample.args, dict(sample.kwargs)], CONTIGUOUS, instance)
    target = instance.device
    try:
        with target:
            op.rule(op, canonical(op.form("function"), at(tuple(args), target), at(kwargs, target)))
    except Exception as error:
        return type(error), str(error)
    return None


def same_text(text: str, due: str, device: Device, reference: Device) -> bool:
    """Return whether a device's error has the reference's text: where that names the reference, either name may stand.

    The device's name is never looked for in its own text, where it may be an ordinary word: a device may be called
    ``one``, and an error may expect "one of" several values.
    """
    names = [re.escape(str(name)) for name in (device, device.type, reference, reference.type)]
    itself = rf"(?<!\w)(?:{re.escape(str(reference))}|{re.escape(reference.type)})(?!\w)"
    between = map(re.escape, re.split(itself, due))
    return re.fullmatch(f"(?:{'|'.join(names)})".join(between), text) is not None


def _has_mistakes(op: Record) -> bool:
    return bool(generators_of(op.name, "mistakes"))


def _refused(context: Context, op: Operator[..., Any]) -> Iterator[Axis]:
    """Yield the first dtype of each kind of number. The first of all belongs to level 2 if the device has a kernel.

    A kernel that takes an index beyond the end, or shapes that do not fit, gives wrong results without an error.
    """
    served = not context.instance.kernels.keys().isdisjoint((op.name, f"{op.name}_"))
    first = [d for d in context.main_dtypes(op) if served and context.laid_out(op, d, CONTIGUOUS)]
    yield from (Axis(d, CONTIGUOUS, 2) for d in first)
    yield from (axis for axis in each_category(3, (CONTIGUOUS,))(context, op) if axis.dtype not in first)


@operator_property("errors", _refused, of_callable(3, (CONTIGUOUS,), when=_has_mistakes))
def errors(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """Every invalid call raises the reference's class and text, in place too, and the device remains usable.

    The text may be that of the operator's rule instead, if it raises the same class.
    """
    for sample in context.each_of(op, d, "mistakes"):
        if not refused_equally(context, op, sample):
            raise Failure(f"the reference raises nothing for this mistake{_note(sample)}", sample, layout)
        if isinstance(op, Operator) and has_inplace(op) and sample.args and isinstance(sample.args[0], np.ndarray):
            refused_equally(context, op, sample, op.form("inplace"))
    good = context.laid_out(op, d, CONTIGUOUS)[0]
    agree(context, op, d, good, CONTIGUOUS, results(context, op, good, CONTIGUOUS))
    return None


def refused_equally(context: Context, op: Record, sample: Sample, function: Any = None) -> bool:
    """Check that the device raises the reference's error. Return False if the reference raises none."""
    with own_kernels():
        want = outcome(op, sample, context.reference, function)
    if want is None:
        return False
    got = want if context.oracle.itself else outcome(op, sample, context.instance, function)
    if got is not None and _is(context, got, want):
        return True
    with own_kernels():
        rule = ruling(op, sample, context.reference) if isinstance(op, Operator) else None
    allowed = [want] if rule is None or rule[0] is not want[0] or rule == want else [rule, want]
    form = "" if function is None else " in place"
    due = f"{want[0].__name__}: {' or '.join(repr(text) for _, text in allowed)} is due{form}{_note(sample)}"
    if got is None:
        raise Failure(f"nothing is raised, {due}", sample, CONTIGUOUS)
    if not any(_is(context, got, error) for error in allowed):
        raise Failure(f"{got[0].__name__}: {got[1]!r} is raised, {due}", sample, CONTIGUOUS)
    return True


def _is(context: Context, got: tuple[type, str], want: tuple[type, str]) -> bool:
    """Return whether a device raised the error that is due.

    An asynchronous device may raise it at a wait, with its own name and the operator's before the text.
    """
    if got[0] is not want[0]:
        return False
    texts = [got[1]]
    if context.instance.capabilities.asynchronous:
        parts = got[1].split(": ")
        texts += [": ".join(parts[start:]) for start in range(1, len(parts))]
    return any(same_text(text, want[1], context.device, context.reference.device) for text in texts)


def _note(sample: Sample) -> str:
    return f" ({sample.note})" if sample.note else ""


def _unclaimed(context: Context, op: Operator[..., Any]) -> Iterator[Axis]:
    from candelabra_conformance.context import MAIN

    first = next((d for name in MAIN for d in ALL if d.name == name and context.computes(d)), None)
    for d in ALL:
        if (not context.computes(d) or refused(op, d) is not None) and d is not first:
            yield Axis(d, "", 3)


@operator_property("unclaimed", _unclaimed)
def unclaimed(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """A dtype that the record or the backend does not support raises the typed error, or has right values.

    A fallback or promotion may compute the values.
    """
    samples = _samples_somehow(context, op, d)
    for found in samples[:2]:
        try:
            got = results(context, op, found, CONTIGUOUS)
        except (UnsupportedDType, UnsupportedOperator):
            continue
        except (NotImplementedError, RuntimeError, TypeError, ValueError):
            if refused(op, d) is None:
                raise
            continue
        if refused(op, d) is None:
            agree(context, op, d, found, CONTIGUOUS, got)
        elif op.schema.named("dtype") is None and any(
            device_dtype(a.dtype) is d for a in arrays([found.args, found.kwargs])
        ):
            raise Failure(f"the operator does not accept {d.name}, but returned a result", found, CONTIGUOUS)
    return None


def _samples_somehow(context: Context, op: Operator[..., Any], d: dtype) -> list[Sample]:
    """Return the samples in a dtype that the record refuses, as far as they can be created."""
    try:
        return context.samples(op, d) or list(gathered(op, d, "inputs"))
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        return []
