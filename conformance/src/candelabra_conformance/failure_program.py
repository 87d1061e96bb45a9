"""Write the reproducer of a failed case of the suite: a smaller sample, its layout, and the expected result.

The table :data:`DUE` maps each property to the function that determines what the program expects. Each program is run
before it is shown. If it does not fail, or if literals cannot express the check (the result is unique only up to a
choice, or the check needs several devices), the reproducer runs the suite's case instead. If that passes too, a comment
says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
from candelabra import autograd
from candelabra.library import OverloadSet, own_kernels, plugins

from candelabra_conformance import literals
from candelabra_conformance.calling import called, tensors_in
from candelabra_conformance.context import OFF, Context, Failure
from candelabra_conformance.layouts import CONTIGUOUS, MEMORY, placed
from candelabra_conformance.model import DEVICE, SAMPLES, Case
from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.program import ReproducerProgram, argument_texts, spelled
from candelabra_conformance.program_checks import FLAT, Written, allowance, raising
from candelabra_conformance.program_trial import PASSES, error_of, shows
from candelabra_conformance.records import CallableRecord, Record, set_of
from candelabra_conformance.reproducer import composed, reproducer
from candelabra_conformance.samples.sample import SEED, Sample, arrays, mapped
from candelabra_conformance.shadowing.showing import fails, smallest
from candelabra_conformance.shrinking import shrunk
from candelabra_conformance.tolerance import eps, rounded, wide
from candelabra_conformance.transport import Array, to_device, to_host


@dataclass(frozen=True)
class FailedCall:
    """A failed call for which a program is written, and the result that is expected of it."""

    context: Context
    record: Record
    failure: Failure
    found: Sample
    given: Any
    layout: Any
    property: str
    shrinks: bool = True
    """Whether the arrays may be made smaller."""
    due: dict[str, Any] = field(default_factory=dict)
    """Arguments of :func:`reproducer`: ``expected``, ``allowed``, ``check``."""


def of_failure(context: Context, case: Case, failure: Failure) -> str:
    """Return the program for a failed case, which ends with AssertionError or with the error that a kernel raised.

    This function never raises. If no program fails, the text ends with a comment that says so.
    """
    raised = failure.details.get("raised", AssertionError)
    why = f"Plain calls cannot express the check of {case.property!r}, or show nothing."
    if case.operator != DEVICE and case.property != SAMPLES:
        try:
            for text in _programs(context, case, failure):
                if shows(text, raised):
                    return text
        except Exception as error:
            why = f"No program of plain calls: {type(error).__name__}: {error}"
    text = rerun(context, case, f"{failure}\n{why}")
    return text if shows(text) else text + PASSES


def call_program(context: Context, case: Case, sample: Sample, layout: str) -> str:
    """Return the program of a call in which the process dies, or an empty text if literals cannot express it."""
    try:
        place = layout if layout in MEMORY else CONTIGUOUS
        failure = Failure("the process dies in this call", sample, place)
        given = (sample.args, dict(sample.kwargs))
        call = FailedCall(context, _record(case, failure), failure, sample, given, place, case.property)
        return _raising_text(call, str(context.device))
    except (TypeError, ValueError):
        return ""


def rerun(context: Context, case: Case, note: str, *, forbid_fallback: bool = False) -> str:
    """Return the program that runs a case of the suite again."""
    option = ", forbid_fallback=True" if forbid_fallback else ""
    if context.contributions == OFF and plugins.contributing(context.device.type):
        option += f", contributions={OFF!r}"
    about = [f"# {case.id}, on {context.device}", *(f"# {line}" for line in note.splitlines())]
    lines = [
        "from candelabra_conformance.rerun import check",
        "",
        f"check({str(context.device)!r}, {case.id!r}{option})",
    ]
    return "\n".join([*about, *lines, ""])


def _programs(context: Context, case: Case, failure: Failure) -> Iterator[str]:
    """Yield programs of plain calls that may show a failure, the best first."""
    found = failure.sample
    if found is None:
        raise ValueError("the failure has no sample")
    layout = failure.layout if failure.layout in MEMORY else CONTIGUOUS
    given = (found.args, dict(found.kwargs))
    call = FailedCall(context, _record(case, failure), failure, found, given, layout, case.property)
    if "form" in failure.details:
        yield two_forms(call)
    elif "raised" in failure.details:
        yield from _raising(call)
    elif found.of is None and case.property in DUE:
        due = DUE[case.property]
        yield _written(due(call))
        yield _written(due(replace(call, shrinks=False)))


def _raising(call: FailedCall) -> Iterator[str]:
    """Yield the programs of a call that raises an error: with smaller arrays, and with those of the sample.

    The call with smaller arrays is valid: the reference device accepts it.
    """
    raised = call.failure.details["raised"]
    here, reference = str(call.context.device), str(call.context.reference.device)

    def is_wrong(args: Any) -> bool:
        smaller = replace(call, given=args)
        if not shows(_raising_text(smaller, here), raised):
            return False
        return call.context.is_reference or error_of(_raising_text(smaller, reference)) is None

    whole = _raising_text(call, here)
    if shows(whole, raised):
        yield _raising_text(replace(call, given=shrunk(call.given, is_wrong, tries=40)), here)
    yield whole


def _raising_text(call: FailedCall, device: str) -> str:
    program = ReproducerProgram(device, call.layout)
    arguments = argument_texts(program, call.record, *call.given)
    written = Written(call.record, spelled(call.record, arguments), arguments, program, None, None)
    lines = raising(call.property, written)
    return composed(program, f"{call.record.name}: {call.property}", lines, _seed(call), str(call.failure))


def _record(case: Case, failure: Failure) -> Record:
    """Return the tested object of a failure; for an overload set, the member that failed."""
    from candelabra_conformance.suite import subject_of

    record = failure.details.get("member") or subject_of(case)
    if isinstance(record, OverloadSet):
        raise ValueError("no member of the overload set is at fault")
    return record


def _written(call: FailedCall) -> str:
    args, kwargs = call.given
    return reproducer(
        call.record, args, kwargs, device=call.context.device, property=call.property, layout=call.layout,
        note=str(call.failure), seed=_seed(call), **call.due,
    )  # fmt: skip


def _seed(call: FailedCall) -> int | None:
    """Return the seed of the default generators for the call, or None if it draws no random numbers."""
    return SEED if isinstance(call.record, CallableRecord) and call.record.draws else None


AS_LISTS: Final = (
    "def as_lists(v):",
    "    if isinstance(v, (list, tuple)):",
    "        return [as_lists(p) for p in v]",
    "    return v.tolist() if hasattr(v, 'tolist') else v",
)
"""The function of a program that makes results comparable: tensors as lists, all other objects as they are."""


def two_forms(call: FailedCall) -> str:
    """Return the program that makes the same call in two forms, whose results differ.

    Raises ``ValueError`` for a member of an overload set that is not a record, since a program can only call the set.
    """
    if call.property == "overloads" and isinstance(call.record, CallableRecord):
        raise ValueError(f"{call.record.name} has no public name: only an overload set calls it")
    program = ReproducerProgram(str(call.context.device), call.layout)
    args, kwargs = call.given
    arguments = argument_texts(program, call.record, args, kwargs)
    seed = [f"cd.manual_seed({_seed(call)})"] if _seed(call) is not None else []
    form: Callable[[ReproducerProgram, list[str]], str] = call.failure.details["form"]
    writes = form(program, arguments).partition("(")[0].endswith("_")
    if writes and arguments:  # each call writes into its own tensor
        arguments = [f"{arguments[0]}.clone()", *arguments[1:]]
    own = spelled(call.record, arguments) if not writes else f"{spelled_inplace(call.record)}({', '.join(arguments)})"
    lines = [*AS_LISTS, *seed, f"want = {own}", *seed, f"got = {form(program, arguments)}"]
    lines.append("assert str(as_lists(got)) == str(as_lists(want)), (got, want)")
    return composed(program, f"{call.record.name}: {call.property}", lines, None, str(call.failure))


def spelled_inplace(record: Record) -> str:
    """Return the source of the in-place form of an operator, or of the public callable that writes."""
    if isinstance(record, CallableRecord):
        return f"cd.Tensor.{next(iter((set_of(record) or record.entry).methods()))}"
    return f"OPERATORS[{record.name!r}].form('inplace')"


# -- expected results -------------------------------------------------------------------------------------------------
def _plain(call: FailedCall) -> FailedCall:
    """Return the call unchanged, since the check of the property needs no expected result."""
    return call


def _value(call: FailedCall) -> FailedCall:
    """Expect the correct values, with smaller arrays if the shadow's comparison also detects the fault."""
    where = call.context.instance, call.property == "inplace", str(call.context.reference.device)
    if "plain" in call.failure.details:
        return _equal(call)
    if fails(call.record, call.given, call.layout, *where):
        if call.shrinks:
            given, layout = smallest(call.record, call.given, call.layout, *where, tried=(call.layout,))
            call = replace(call, given=given, layout=layout)
        return call
    details = call.failure.details
    if "expected" not in details:
        if "has the other sign" not in str(call.failure):
            raise ValueError("the failure has no expected value")
        return _zeros(call)
    return _expected(call)


def _expected(call: FailedCall) -> FailedCall:
    """Expect the values of the failure, on the arrays of the sample."""
    details = call.failure.details
    if "expected" not in details:
        raise ValueError("the failure has no expected value")
    want = rounded(details["expected"], details["dtype"])
    if want.dtype.kind in "biu":
        return replace(call, due={"expected": want, "allowed": 0.0})
    limit = allowance(want)
    with np.errstate(all="ignore"):
        near = np.abs(wide(details["got"]) - wide(want)) <= limit
    exact = bool(np.all(near))  # the size of the error is not the fault: exactly these numbers are due
    return replace(call, due={"expected": want, "allowed": 0.0 if exact else limit})


def _equal(call: FailedCall) -> FailedCall:
    """Expect a result that is not a tensor, if it is the only result."""
    due = call.failure.details["plain"]
    if due is None:
        raise ValueError("the wrong result is one of several")
    return replace(call, due={"check": [f"assert got == {literals.plain(due)}, got"]})


def _zeros(call: FailedCall) -> FailedCall:
    """Expect zeros with the correct signs."""
    want = call.context.oracle.answer(call.record, call.found).want[0]
    lines = [
        *FLAT, f"want = {literals.flat_list(want)}", "for i, (g, w) in enumerate(zip(flat(got.tolist()), want)):",
        "    assert not g == w == 0 or str(g) == str(w), f\"element {i}: got {g}, expected {w}\"",
    ]  # fmt: skip
    return replace(call, due={"check": lines})


def _result(call: FailedCall) -> FailedCall:
    """Expect the dtypes and shapes of the reference."""
    answer = call.context.oracle.answer(call.record, call.found)
    return replace(call, due={"expected": [(d, w.shape) for d, w in zip(answer.dtypes, answer.want, strict=True)]})


def _error(call: FailedCall) -> FailedCall:
    """Expect the error of the reference: its class, and its text unless the text names a device."""
    reference = call.context.reference
    args, kwargs = placed(call.given, CONTIGUOUS, reference)
    try:
        with own_kernels():
            called(call.record, args, kwargs, reference)
    except Exception as error:
        named = re.search(rf"\b{reference.device.type}\b", str(error)) is not None
        asynchronous = call.context.instance.capabilities.asynchronous
        return replace(call, due={"expected": type(error) if named or asynchronous else error})
    raise ValueError("the reference raises nothing")


def _unclaimed(call: FailedCall) -> FailedCall:
    """Expect the correct values where the failure has them, and the reference's error elsewhere."""
    if "expected" in call.failure.details:
        return replace(_expected(call), property="value")
    return _error(call)


def _gradient(call: FailedCall, twice: bool = False) -> FailedCall:
    """Expect the gradients of the sum of the outputs, if they differ from those of the reference.

    ``twice``: the gradients of the sum of these gradients.
    """
    leaves = list({id(a): a for a in arrays(call.given) if a.dtype.kind not in "biu"}.values())
    with own_kernels():
        want = [rounded(g, d) for g, d in _gradients(call, leaves, True, twice)]
    got = _gradients(call, leaves, False, twice)
    limits = [
        64 * eps(d) * np.full(w.shape, np.max(np.abs(wide(w)), initial=0.0))
        for w, (_, d) in zip(want, got, strict=True)
    ]
    with np.errstate(all="ignore"):
        differs = [not np.all(np.abs(wide(g) - wide(w)) <= a) for (g, _), w, a in zip(got, want, limits, strict=True)]
    if not any(differs):
        raise ValueError("the gradients of the sums of the outputs are right")
    property = "gradient2" if twice else "gradient"
    return replace(call, property=property, due={"expected": tuple(want), "allowed": tuple(limits)})


def _gradients(call: FailedCall, leaves: list[Array], on_reference: bool, twice: bool) -> list[tuple[Array, Any]]:
    """Return each gradient with the dtype of its leaf, without those that are None."""
    instance = call.context.reference if on_reference else call.context.instance
    made = {id(a): to_device(wide(a) if on_reference else a, instance).requires_grad_() for a in leaves}
    args, kwargs = _with_leaves(call.given, made, instance)
    by = [made[id(a)] for a in leaves]
    found = _of_sums(
        tensors_in(called(call.record, args, kwargs, instance)), by, create_graph=twice, allow_unused=twice
    )
    if twice:
        found = _of_sums([g for g in found if g is not None], by, allow_unused=True)
    return [(to_host(g), device_dtype(a.dtype)) for g, a in zip(found, leaves, strict=True) if g is not None]


def _of_sums(outputs: Iterable[Any], by: list[Any], **options: bool) -> tuple[Any, ...]:
    """Return the gradients of the sums of those outputs that require grad."""
    sums = [(o.real if o.is_complex() else o).sum() for o in outputs if o.requires_grad]
    return tuple(autograd.grad(sums, by, **options))


def _with_leaves(arguments: Any, leaves: dict[int, Any], instance: Any) -> Any:
    """Return the arguments with tensors: those in ``leaves``, by the identity of their array, and new ones."""
    return mapped(arguments, lambda a: leaves[id(a)] if id(a) in leaves else to_device(a, instance))


DUE: Final[dict[str, Callable[[FailedCall], FailedCall]]] = {
    "value": _value, "special": _value, "inplace": _value, "random": _plain, "inputs": _plain, "determinism": _plain,
    "threads": _plain, "result": _result, "errors": _error, "aliasing": _plain, "gradient": _gradient,
    "gradient2": partial(_gradient, twice=True), "out": _expected, "unclaimed": _unclaimed,
}  # fmt: skip
"""The function that determines the expected result, by property."""
