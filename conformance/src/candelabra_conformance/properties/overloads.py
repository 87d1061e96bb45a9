"""Overload sets: a call of the public name returns the result of the member that serves it.

A set has no samples of its own. Each sample of a member is a call of the set too, if the overload for that member
accepts its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from candelabra.dtypes import dtype
from candelabra.library import Operator, OverloadSet, Parameter, bind, entry_named, member_for

from candelabra_conformance.calling import at, called, split
from candelabra_conformance.context import Context, Failure
from candelabra_conformance.layouts import CONTIGUOUS, placed
from candelabra_conformance.properties.axes import each_category
from candelabra_conformance.properties.public_forms import CallForm, Results, equal_results, function_form, method_form
from candelabra_conformance.properties.refusals import outcome
from candelabra_conformance.properties.registry import Axis, overload_property
from candelabra_conformance.properties.value import agree
from candelabra_conformance.records import CallableRecord, Record
from candelabra_conformance.samples.sample import LARGE, Sample


def records_of(overloads: OverloadSet) -> Iterator[tuple[Record, tuple[Parameter, ...]]]:
    """Return the members of a set, with the parameters that their overloads accept."""
    for member, parameters in overloads.members:
        yield member if isinstance(member, Operator) else CallableRecord(member), parameters


def entry_of(member: Record) -> Any:
    """What the set holds for a member."""
    return member.entry if isinstance(member, CallableRecord) else member


def _in_each_category(level: int) -> Callable[[Context, OverloadSet], Iterator[Axis]]:
    """Yield a dtype of each category that a member accepts."""
    categories = each_category(level, (CONTIGUOUS,))

    def axes(context: Context, overloads: OverloadSet) -> Iterator[Axis]:
        found: dict[str, Axis] = {}
        for member, _ in records_of(overloads):
            for axis in categories(context, member):
                if axis.dtype is not None:
                    found.setdefault(axis.dtype.name, axis)
        yield from found.values()

    return axes


def _once(context: Context, overloads: OverloadSet) -> Iterator[Axis]:
    """Yield the main dtype of the first member that has samples."""
    for member, _ in records_of(overloads):
        for d in context.main_dtypes(member):
            yield Axis(d, CONTIGUOUS, 3)
            return


@overload_property("overloads", _in_each_category(1))
def overloads(context: Context, overload_set: OverloadSet, d: dtype, layout: str) -> float | None:
    """Each sample of a member, called by the public name as function, method and in place, has the same bits."""
    for member, parameters in records_of(overload_set):
        if d not in context.dtypes(member):
            continue
        samples = [s for s in context.samples(member, d) if s.kind != LARGE]
        for found in samples:
            if accepts(overload_set, member, parameters, context, found):
                context.current = (found, layout)
                for form, member_form in forms_of(overload_set, member, found):
                    _same(context, overload_set, member, d, form, member_form)
    return None


def accepts(
    overload_set: OverloadSet, member: Record, parameters: tuple[Parameter, ...], context: Context,
    sample: Sample,
) -> bool:  # fmt: skip
    """Return whether a member's overload, which may have fewer parameters, accepts a sample's arguments."""
    names = [p.name for p in member.schema.parameters]
    if any(name not in {p.name for p in parameters} for name in names[: len(sample.args)]):
        return False
    return bind(parameters, *_arguments(context, sample), False) is not None


def _arguments(context: Context, sample: Sample) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args, kwargs = placed([sample.args, dict(sample.kwargs)], CONTIGUOUS, context.instance)
    return at(tuple(args), context.device), at(kwargs, context.device)


def forms_of(
    overload_set: OverloadSet, member: Record, sample: Sample
) -> Iterator[tuple[CallForm, Callable[..., Any]]]:
    """Yield the forms of a set, each with the corresponding form of the member."""
    for name in (overload_set.public_name, *overload_set.aliases) if overload_set.is_function else ():
        yield function_form(name, sample), member.function
    if not (sample.args and isinstance(sample.args[0], np.ndarray)):
        return
    for name, form in overload_set.methods().items():
        held: Any = entry_named(f"Tensor.{name}")
        if held is overload_set and (form == "function" or member.inplace):
            yield method_form(name, False, sample), member.form(form)


def _same(
    context: Context, overload_set: OverloadSet, member: Record, d: dtype, form: CallForm,
    member_form: Callable[..., Any],
) -> None:  # fmt: skip
    """Check that the set's form and the member's form have the same result, or raise the same error."""
    found = form.call
    want = _outcome(context, member, found, member_form)
    got = _outcome(context, member, found, form.function)
    if isinstance(want, tuple) and isinstance(got, tuple):
        if equal_results(got, want):
            return
        if member.name in context.instance.capabilities.nondeterministic:
            agree(context, member, d, found, CONTIGUOUS, got[0])
            return
    elif type(got) is type(want) and str(got) == str(want):
        return
    said = f": {type(got).__name__}: {got}" if isinstance(got, Exception) else ""
    picked = _picked(context, overload_set, member, found)
    words = f"{form.words} does not give what {member.name} gives{picked}{said}"
    raise Failure(words, found, CONTIGUOUS, member=member, form=form.text)


def _outcome(context: Context, member: Record, sample: Sample, form: Callable[..., Any]) -> Results | Exception:
    """Return the result of a call with copies of the arguments, or the exception that it raises."""
    args, kwargs = placed([sample.args, dict(sample.kwargs)], CONTIGUOUS, context.instance)
    try:
        return split(sample, called(member, args, kwargs, context.instance, form), context.reference)
    except Exception as error:
        return error


def _picked(context: Context, overload_set: OverloadSet, member: Record, sample: Sample) -> str:
    """Return a text with the member that the set selects for a call, or an empty text if it is this one."""
    args, kwargs = _arguments(context, sample)
    try:
        picked = member_for(overload_set, args, kwargs)
    except TypeError:
        return ", no overload fits"
    return "" if picked is entry_of(member) else f", the set selects {picked.name}"


@overload_property("overload-errors", _once)
def overload_errors(context: Context, overload_set: OverloadSet, d: dtype, layout: str) -> float | None:
    """An invalid call that fits only one member raises that member's error."""
    for member, _ in records_of(overload_set):
        if d not in context.dtypes(member):
            continue
        for sample in context.each_of(member, d, "mistakes"):
            if fitting(overload_set, context, sample) != [entry_of(member)]:
                continue
            want = outcome(member, sample, context.instance)
            got = outcome(member, sample, context.instance, overload_set.function)
            if got != want:
                note = f" ({sample.note})" if sample.note else ""
                raise Failure(
                    f"{_raised_text(got)} is raised, {member.name} raises {_raised_text(want)}{note}", sample, layout
                )
    return None


def fitting(overload_set: OverloadSet, context: Context, sample: Sample) -> list[Any]:
    """Return the members whose overloads take this number of arguments with these names."""
    args, kwargs = _arguments(context, sample)
    return [
        member for member, parameters in overload_set.members
        if bind(parameters, args, kwargs, bool(getattr(member, "out", False))) is not None
    ]  # fmt: skip


def _raised_text(raised: tuple[type, str] | None) -> str:
    return f"{raised[0].__name__}: {raised[1]!r}" if raised is not None else "nothing"
