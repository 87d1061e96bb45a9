"""The reproducer of a case of the suite that failed: its sample made smaller, its layout, what was due.

Each property has a way of its own to say what was due (:data:`DUE`). Where literals cannot say it, because the result
is determined up to a choice only, or the check needs more than one device, the program ends with what came out. Each is
tried before it is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from candelabra import autograd
from candelabra.library import OverloadSet

from candelabra_conformance import literals
from candelabra_conformance.calling import called, tensors_in
from candelabra_conformance.context import Context, Failure
from candelabra_conformance.layouts import CONTIGUOUS, MEMORY, placed
from candelabra_conformance.model import Case
from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.program import Program, argument_texts, spelled
from candelabra_conformance.program_checks import FLAT, allowance
from candelabra_conformance.program_trial import best
from candelabra_conformance.records import CallableRecord, Record, set_of
from candelabra_conformance.reproducer import composed, reproducer
from candelabra_conformance.samples.sample import SEED, Sample, arrays, mapped
from candelabra_conformance.shadowing.showing import fails, smallest
from candelabra_conformance.tolerance import eps, rounded, wide
from candelabra_conformance.transport import Array, to_device, to_host


@dataclass(frozen=True)
class Told:
    """A failure on its way to a program: the call, and what is due."""

    context: Context
    record: Record
    failure: Failure
    found: Sample
    given: Any
    layout: Any
    property: str
    shrinks: bool = True
    """Whether smaller arrays may be tried."""
    due: dict[str, Any] = field(default_factory=dict)
    """Arguments of :func:`reproducer`: ``expected``, ``allowed``, ``check``."""


def of_failure(context: Context, case: Case, failure: Failure) -> str:
    """The program for a failed case; a plain call where the property has no check that literals can make.

    Never raises: where no program can be written, the text is a comment that says why.
    """
    try:
        found = failure.sample
        if found is None:
            raise ValueError("the failure is about no sample")
        layout = failure.layout if failure.layout in MEMORY else CONTIGUOUS
        given = (found.args, dict(found.kwargs))
        told = Told(context, _record(case, failure), failure, found, given, layout, case.property)
        if "form" in failure.details:
            return two_forms(told)
        due = _shown if found.of is not None else DUE.get(case.property, _shown)
        return best(_written(due(told)), lambda: _written(due(replace(told, shrinks=False))))
    except Exception as error:
        return f"# no reproducer: {type(error).__name__}: {error}\n"


def _record(case: Case, failure: Failure) -> Record:
    """What a failure is about: of an overload set the member."""
    from candelabra_conformance.suite import subject_of

    record = failure.details.get("member") or subject_of(case)
    if isinstance(record, OverloadSet):
        raise ValueError("no member of the overload set is at fault")
    return record


def _written(told: Told) -> str:
    args, kwargs = told.given
    return reproducer(
        told.record, args, kwargs, device=told.context.device, property=told.property, layout=told.layout,
        note=str(told.failure), seed=_seed(told), **told.due,
    )  # fmt: skip


def _seed(told: Told) -> int | None:
    """What the default generators are seeded with before the call."""
    return SEED if isinstance(told.record, CallableRecord) and told.record.draws else None


TOLD: Final = (
    "def told(v):",
    "    return [told(p) for p in v] if isinstance(v, (list, tuple)) else v.tolist() if hasattr(v, 'tolist') else v",
)
"""The part of a program that makes results comparable: tensors as lists, everything else as it is."""


def two_forms(told: Told) -> str:
    """The program that calls something in two ways, which give different results.

    ``ValueError`` for a member of an overload set that is no record: a program calls it by the set only.
    """
    if told.property == "overloads" and isinstance(told.record, CallableRecord):
        raise ValueError(f"{told.record.name} is called by an overload set only")
    program = Program(str(told.context.device), told.layout)
    args, kwargs = told.given
    arguments = argument_texts(program, told.record, args, kwargs)
    seed = [f"cd.manual_seed({_seed(told)})"] if _seed(told) is not None else []
    form: Callable[[Program, list[str]], str] = told.failure.details["form"]
    writes = form(program, arguments).partition("(")[0].endswith("_")
    if writes and arguments:  # each call writes into a tensor of its own
        arguments = [f"{arguments[0]}.clone()", *arguments[1:]]
    own = spelled(told.record, arguments) if not writes else f"{spelled_inplace(told.record)}({', '.join(arguments)})"
    lines = [*TOLD, *seed, f"want = {own}", *seed, f"got = {form(program, arguments)}"]
    lines.append("assert str(told(got)) == str(told(want)), (got, want)")
    return composed(program, f"{told.record.name}: {told.property}", lines, None, str(told.failure))


def spelled_inplace(record: Record) -> str:
    """How a program names the in-place form of an operator, or the public callable that writes."""
    if isinstance(record, CallableRecord):
        return f"cd.Tensor.{next(iter((set_of(record) or record.entry).methods()))}"
    return f"OPERATORS[{record.name!r}].form('inplace')"


# -- what is due ------------------------------------------------------------------------------------------------------
def _shown(told: Told) -> Told:
    """What only a reader can judge."""
    expected = told.failure.details.get("expected")
    lines = ["print(got)"]
    if isinstance(expected, np.ndarray) and expected.size <= literals.LIMIT:
        lines.append(f"# expected: {expected.tolist()}")
    return replace(told, due={"check": lines})


def _plain(told: Told) -> Told:
    """Nothing but the call: the property's own check says it all."""
    return told


def _value(told: Told) -> Told:
    """A wrong value, on smaller arrays where the reference shows it."""
    where = told.context.instance, told.property == "inplace", str(told.context.reference.device)
    if "plain" in told.failure.details:
        return _equal(told)
    if fails(told.record, told.given, told.layout, *where):
        if told.shrinks:
            given, layout = smallest(told.record, told.given, told.layout, *where, tried=(told.layout,))
            told = replace(told, given=given, layout=layout)
        return told
    details = told.failure.details
    if "expected" not in details:
        return _zeros(told) if "has the other sign" in str(told.failure) else _shown(told)
    want = rounded(details["expected"], details["dtype"])
    limit = allowance(want)
    with np.errstate(all="ignore"):
        near = np.abs(wide(details["got"]) - wide(want)) <= limit
    exact = bool(np.all(near))  # then it is not the size of the error: the operator owes these very numbers
    return replace(told, due={"expected": want, "allowed": 0.0 if exact else limit})


def _equal(told: Told) -> Told:
    """A result that is no tensor, where it is the only one."""
    due = told.failure.details["plain"]
    return (
        replace(told, due={"check": [f"assert got == {literals.plain(due)}, got"]}) if due is not None else _shown(told)
    )


def _zeros(told: Told) -> Told:
    """Zeros with their signs."""
    want = told.context.oracle.answer(told.record, told.found).want[0]
    lines = [
        *FLAT, f"want = {literals.flat_list(want)}", "for i, (g, w) in enumerate(zip(flat(got.tolist()), want)):",
        "    assert not g == w == 0 or str(g) == str(w), f\"element {i}: got {g}, expected {w}\"",
    ]  # fmt: skip
    return replace(told, due={"check": lines})


def _result(told: Told) -> Told:
    """Dtypes and shapes."""
    answer = told.context.oracle.answer(told.record, told.found)
    return replace(told, due={"expected": [(d, w.shape) for d, w in zip(answer.dtypes, answer.want, strict=True)]})


def _error(told: Told) -> Told:
    """The error of the reference: its class, and its text where that names no device."""
    reference = told.context.reference
    args, kwargs = placed(told.given, CONTIGUOUS, reference)
    try:
        called(told.record, args, kwargs, reference)
    except Exception as error:
        named = reference.device.type in str(error) or told.context.instance.capabilities.asynchronous
        return replace(told, due={"expected": type(error) if named else error})
    return _shown(told)


def _gradient(told: Told) -> Told:
    """The gradients of the sum of the outputs, where these show the fault."""
    leaves = list({id(a): a for a in arrays(told.given) if a.dtype.kind not in "biu"}.values())
    want = [rounded(g, d) for g, d in _gradients(told, leaves, True)]
    got = [g for g, _ in _gradients(told, leaves, False)]
    limits = [
        64 * eps(d) * np.full(w.shape, np.max(np.abs(wide(w)), initial=0.0)) for w, d in zip(want, _dtypes(leaves))
    ]
    with np.errstate(all="ignore"):
        differs = [not np.all(np.abs(wide(g) - wide(w)) <= a) for g, w, a in zip(got, want, limits, strict=True)]
    if not any(differs):
        return _shown(told)
    return replace(told, property="gradient", due={"expected": tuple(want), "allowed": tuple(limits)})


def _gradients(told: Told, leaves: list[Array], on_reference: bool) -> list[tuple[Array, Any]]:
    instance = told.context.reference if on_reference else told.context.instance
    made = {id(a): to_device(wide(a) if on_reference else a, instance).requires_grad_() for a in leaves}
    args, kwargs = _with_leaves(told.given, made, instance)
    outs = [o for o in tensors_in(called(told.record, args, kwargs, instance)) if o.requires_grad]
    found = autograd.grad([(o.real if o.is_complex() else o).sum() for o in outs], [made[id(a)] for a in leaves])
    return [(to_host(g), d) for g, d in zip(found, _dtypes(leaves), strict=True)]


def _with_leaves(given: Any, made: dict[int, Any], instance: Any) -> Any:
    """The arguments with tensors: those that are made already, by identity of their array, and new ones."""
    return mapped(given, lambda a: made[id(a)] if id(a) in made else to_device(a, instance))


def _dtypes(leaves: list[Array]) -> list[Any]:
    return [device_dtype(a.dtype) for a in leaves]


DUE: Final[dict[str, Callable[[Told], Told]]] = {
    "value": _value, "special": _value, "inplace": _value, "random": _plain, "inputs": _plain, "determinism": _plain,
    "result": _result, "errors": _error, "aliasing": _plain, "gradient": _gradient,
}  # fmt: skip
"""By property."""
