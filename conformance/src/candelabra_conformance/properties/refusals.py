"""Errors: what the reference refuses, the device refuses with the same class and words; what is not claimed, too.

The reference's words are those of an operator inside where it runs the outer one by its body. So the words of the
operator's own rule are as good: a device whose kernel refuses the call has these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from candelabra.dtypes import ALL, dtype
from candelabra.errors import UnsupportedDType, UnsupportedOperator
from candelabra.library import Operator, canonical

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


def outcome(op: Record, found: Sample, instance: Any, function: Any = None) -> tuple[type, str] | None:
    """Class and text of what a call raises, waiting for it; the device's name is written ``DEVICE``. None: nothing.

    ``function`` is another form of the operator. Raises :class:`Failure` where the refused call has changed a tensor;
    but what is written in place, by that form or by a public callable, is lost where a device finds the mistake too
    late to tell its caller.
    """
    args, kwargs = placed([found.args, dict(found.kwargs)], CONTIGUOUS, instance)
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
            raise Failure(f"refused ({error}), but a tensor was written to before{_note(found)}", found) from error
        return _raised(error, instance)
    return None


def ruling(op: Operator[..., Any], found: Sample, instance: Any) -> tuple[type, str] | None:
    """Class and text of what the operator's own rule raises for a mistake, as :func:`outcome` has them."""
    args, kwargs = placed([found.args, dict(found.kwargs)], CONTIGUOUS, instance)
    target = instance.device
    try:
        with target:
            op.rule(op, canonical(op.form("function"), at(tuple(args), target), at(kwargs, target)))
    except Exception as error:
        return _raised(error, instance)
    return None


def _raised(error: Exception, instance: Any) -> tuple[type, str]:
    text = str(error)
    for name in (str(instance.device), instance.device.type):
        text = text.replace(f"'{name}'", "'DEVICE'").replace(f" {name} ", " DEVICE ").replace(name, "DEVICE")
    return type(error), text


def _has_mistakes(op: Record) -> bool:
    return bool(generators_of(op.name, "mistakes"))


@operator_property("errors", each_category(3, (CONTIGUOUS,)), of_callable(3, (CONTIGUOUS,), when=_has_mistakes))
def errors(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """Every mistake raises what the reference raises, class and text, in place too; and the device works on.

    The text may be that of the operator's rule instead, if it raises the same class.
    """
    for found in context.each_of(op, d, "mistakes"):
        if not _refused_alike(context, op, found):
            raise Failure(f"the reference raises nothing for this mistake{_note(found)}", found, layout)
        if isinstance(op, Operator) and has_inplace(op) and found.args and isinstance(found.args[0], np.ndarray):
            _refused_alike(context, op, found, op.form("inplace"))
    good = context.laid_out(op, d, CONTIGUOUS)[0]
    agree(context, op, d, good, CONTIGUOUS, results(context, op, good, CONTIGUOUS))
    return None


def _refused_alike(context: Context, op: Record, found: Sample, function: Any = None) -> bool:
    """Hold that the device refuses what the reference refuses, in its words; False where the reference does not."""
    want = outcome(op, found, context.reference, function)
    if want is None:
        return False
    got = want if context.is_reference else outcome(op, found, context.instance, function)
    if got == want:
        return True
    rule = ruling(op, found, context.reference) if isinstance(op, Operator) else None
    allowed = [want] if rule is None or rule[0] is not want[0] or rule == want else [rule, want]
    form = "" if function is None else " in place"
    due = f"{want[0].__name__}: {' or '.join(repr(text) for _, text in allowed)} is due{form}{_note(found)}"
    if got is None:
        raise Failure(f"nothing is raised, {due}", found, CONTIGUOUS)
    if got not in allowed and not any(_is_late(context, got, error) for error in allowed):
        raise Failure(f"{got[0].__name__}: {got[1]!r} is raised, {due}", found, CONTIGUOUS)
    return True


def _is_late(context: Context, got: tuple[type, str], want: tuple[type, str]) -> bool:
    """Whether an asynchronous device raised it when it was waited for, with place and operator before the text."""
    late = context.instance.capabilities.asynchronous
    return late and got[0] is want[0] and got[1].endswith(f": {want[1]}")


def _note(found: Sample) -> str:
    return f" ({found.note})" if found.note else ""


def _unclaimed(context: Context, op: Operator[..., Any]) -> Iterator[Axis]:
    from candelabra_conformance.context import MAIN

    first = next((d for name in MAIN for d in ALL if d.name == name and context.computes(d)), None)
    for d in ALL:
        if (not context.computes(d) or refused(op, d) is not None) and d is not first:
            yield Axis(d, "", 3)


@operator_property("unclaimed", _unclaimed)
def unclaimed(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """A dtype that the record refuses or the backend does not claim is refused with the typed error, or right.

    Right means by a fallback or by promotion: never a wrong number.
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
            raise Failure(f"{d.name} is not among what the operator takes, but a result came", found, CONTIGUOUS)
    return None


def _samples_somehow(context: Context, op: Operator[..., Any], d: dtype) -> list[Sample]:
    """The samples in a dtype that the record refuses, as far as they can be made: as if it did not."""
    try:
        return context.samples(op, d) or list(gathered(op, d, "inputs"))
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        return []
