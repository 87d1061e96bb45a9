"""The suite: plan the cases for a device, and run a case."""

from __future__ import annotations

import fnmatch
import time
import traceback
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, Final

from candelabra import fallback_counts
from candelabra.dtypes import BY_NAME
from candelabra.errors import FallbackWarning, UnsupportedDType, UnsupportedOperator
from candelabra.library import Operator, OverloadSet, declined_kernels, explain_key

from candelabra_conformance.context import Context, Failure, NotApplicable
from candelabra_conformance.model import (
    DEVICE,
    FAILED,
    LEVELS,
    NO_SAMPLES,
    PASSED,
    SAMPLES,
    SKIPPED,
    UNSUPPORTED,
    Case,
    Result,
)
from candelabra_conformance.properties import registry as properties
from candelabra_conformance.recording import operators_called
from candelabra_conformance.records import CallableRecord, Record, everything_named, everything_tested, name_of
from candelabra_conformance.reporting_failure import reproduced
from candelabra_conformance.samples.gather import generators_of

DEPRECATED: Final = r"`nn\.functional\.\w+` is deprecated"
"""The warnings of deprecated functions, such as ``upsample``. They say nothing about the device."""

ROUTES: Final = {"strided": "native", "cross-device": "native", "layer": "native", "promotion": "native"}


def plan(
    context: Context,
    *,
    level: int = 3,
    operators: Iterable[str] | None = None,
    patterns: Iterable[str] = (),
    huge: bool = False,
    without: Callable[[Record | OverloadSet], Container[str]] = lambda tested: (),
) -> list[Case]:
    """Return the cases for a device, sorted by level and operator. ``patterns`` (``softmax/*``) select matching ids.

    ``operators`` are names of operators, overload sets, public callables, or of the device itself, by default all.
    Raises ``UnknownNameError`` for another name. ``huge`` adds the cases on more than 2**31 bytes. ``without`` returns
    the properties of a tested object that are left out.
    """
    properties.load()
    wanted = list(patterns)
    if operators is None:
        tested = everything_tested()
    else:
        names = list(dict.fromkeys(operators))
        tested = [each for name in names if name != DEVICE for each in everything_named(name)]
    if wanted and operators is None:
        heads = [p.split("/")[0] for p in wanted]
        tested = [each for each in tested if any(fnmatch.fnmatchcase(name_of(each), head) for head in heads)]
    cases = list(_of_device(context, huge)) if operators is None or DEVICE in names else []
    context.planning, context.highest = True, level
    try:
        cases += [case for each in sorted(tested, key=_order) for case in _of(context, each, without(each), wanted)]
    finally:
        context.planning, context.highest = False, max(LEVELS)
    cases = [c for c in cases if c.level <= level]
    if wanted:
        cases = [c for c in cases if any(fnmatch.fnmatchcase(c.id, pattern) for pattern in wanted)]
    return sorted(cases, key=lambda case: (case.level != 0, case.operator != DEVICE))


def _order(tested: Record | OverloadSet) -> tuple[int, str]:
    """Return the sort key: primitives, composites, overload sets, public callables."""
    if isinstance(tested, Operator):
        return int(tested.body is not None), tested.name
    return 2 + isinstance(tested, CallableRecord), name_of(tested)


def _of_device(context: Context, huge: bool) -> Iterator[Case]:
    for found in properties.OF_DEVICES.values():
        if found.name != "huge" or huge:
            for d, layout, level in found.axes(context):
                yield Case(DEVICE, found.name, d.name if d else "", layout, level)


def _may_match(pattern: str, name: str, tested_property: str) -> bool:
    """Return whether a pattern may match cases of a property; ``*`` matches slashes, too, but an id has three."""
    parts = pattern.split("/")
    if len(parts) == 4:
        return fnmatch.fnmatchcase(name, parts[0]) and fnmatch.fnmatchcase(tested_property, parts[1])
    for part, word in zip(parts, (name, tested_property)):
        if set("*?[") & set(part):
            return True
        if part != word:
            return False
    return True


def _of(
    context: Context, tested: Record | OverloadSet, without: Container[str], patterns: Sequence[str] = ()
) -> Iterator[Case]:
    """Yield the cases of a tested object, without properties that no pattern matches. If a sample generator raises,
    yield only the case that reports it.
    """
    name = name_of(tested)
    try:
        cases = [
            Case(name, found.name, d.name if d else "", layout, level)
            for found in properties.properties_of(tested).values()
            if found.name not in without
            and (not patterns or any(_may_match(pattern, name, found.name) for pattern in patterns))
            for d, layout, level in found.axes(context, tested)
        ]
    except Exception:
        cases = []
    if not isinstance(tested, OverloadSet):
        yield Case(name, SAMPLES, "", "", 1)
    yield from cases


# -- one case ---------------------------------------------------------------------------------------------------------
def run_case(context: Context, case: Case, *, forbid_fallback: bool = False, explained: bool = True) -> Result:
    """Run a case in this process. Any exception becomes a verdict.

    The context decides whether contributed kernels serve. Unless ``explained``, a failure has no reproducer and no
    list of called operators, which require further runs.
    """
    properties.load()
    with context.mode():
        return _run(context, case, forbid_fallback, explained)


def _run(context: Context, case: Case, forbid_fallback: bool, explained: bool) -> Result:
    """Run a case in the context's mode."""
    fell_back, declined = fallback_counts(), len(declined_kernels())
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        warnings.filterwarnings("ignore", DEPRECATED)
        verdict, message, ulp, failure = _outcome(context, case)
    seconds = time.perf_counter() - started
    missing = _missing(context, fell_back)
    if forbid_fallback and missing and verdict == PASSED:
        verdict, message = FAILED, f"a fallback is forbidden here, and {', '.join(missing)} fell back"
    uses: tuple[str, ...] = ()
    if explained and verdict in (FAILED, UNSUPPORTED):
        uses = _uses(context, case)
        missing = missing or _unserved(failure)
    return Result(
        case,
        verdict,
        route=_route(context, case, missing),
        message=message,
        reproducer=reproduced(context, case, failure) if explained and verdict == FAILED else "",
        ulp=ulp,
        seconds=seconds,
        uses=uses,
        missing=missing,
        declined=_declined(context, declined),
    )


def _outcome(context: Context, case: Case) -> tuple[str, str, float | None, BaseException | None]:
    try:
        return PASSED, "", _checked(context, case), None
    except NotApplicable as reason:
        return SKIPPED, str(reason), None, None
    except Failure as failure:
        return FAILED, _with_sample(failure), None, failure
    except (UnsupportedOperator, UnsupportedDType) as error:
        return UNSUPPORTED, str(error), None, error
    except Exception as error:
        raised = Failure(_with_cause(error), *context.current, raised=type(error))
        return FAILED, f"{_with_sample(raised)}\n{_frames(error)}", None, raised


def _with_cause(error: Exception) -> str:
    """Return an error as text, with the error of the array library for which it was raised."""
    text, cause = f"{type(error).__name__}: {error}", error.__cause__
    if cause is None or not str(cause) or str(cause) in text:
        return text
    return f"{text}, from {type(cause).__name__}: {str(cause).splitlines()[0]}"


def _checked(context: Context, case: Case) -> float | None:
    """Run the check of a case."""
    context.current = (None, "")
    d = BY_NAME[case.dtype] if case.dtype else None
    if case.operator == DEVICE:
        return properties.OF_DEVICES[case.property].check(context, d, case.layout)
    tested = subject_of(case)
    if case.property == SAMPLES:
        assert not isinstance(tested, OverloadSet)
        has_samples(context, tested)
        return None
    return properties.properties_of(tested)[case.property].check(context, tested, d, case.layout)


def subject_of(case: Case) -> Record | OverloadSet:
    """Return the tested object of a case. A record and an overload set of one name have different properties."""
    properties.load()
    under = everything_named(case.operator)
    return next((each for each in under if case.property in properties.properties_of(each)), under[0])


def has_samples(context: Context, op: Record) -> None:
    """Check that the operator has samples in every dtype that it accepts.

    A public callable is tested in the dtypes of its samples; one without samples is skipped and listed.
    """
    context.planning = True  # shapes and dtypes suffice, and take a fraction of the time of values
    try:
        taken = context.dtypes(op)
        empty = [d.name for d in taken if not context.samples(op, d)]
        if not empty:
            for found in properties.properties_of(op).values():
                list(found.axes(context, op))  # an exception of a generator or an axis is this case's failure
    finally:
        context.planning = False
    advice = "add a generator to candelabra_conformance/samples, or to what the plugin gives as candelabra_samples()"
    if empty:
        raise Failure(f"operator {op.name!r} {NO_SAMPLES} in {', '.join(empty)}: {advice}")
    if not taken and isinstance(op, CallableRecord):
        if generators_of(op.name, "inputs"):
            raise NotApplicable(f"public callable {op.name!r} has no results that the device stores")
        raise NotApplicable(f"public callable {op.name!r} {NO_SAMPLES}: {advice}")


def _with_sample(failure: Failure) -> str:
    from candelabra_conformance.reporting_failure import described_sample

    words = described_sample(failure.sample, failure.layout)
    return f"{failure}{f', for {words}' if words else ''}"


def _frames(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    notes = "".join(f"  {note}\n" for note in getattr(error, "__notes__", ()))
    return notes + "".join(f"  {f.filename.rpartition('/src/')[2]}:{f.lineno} in {f.name}\n" for f in frames)


# -- routes -----------------------------------------------------------------------------------------------------------
def _missing(context: Context, before: dict[tuple[str, str], int]) -> tuple[str, ...]:
    name = str(context.device)
    now = fallback_counts()
    return tuple(sorted(op for (device, op), n in now.items() if device == name and n != before.get((device, op), 0)))


def _declined(context: Context, before: int) -> tuple[str, ...]:
    """Return the kernels of the device that declined a call for the first time since that number of them had."""
    name = str(context.device)
    return tuple(str(each) for each in declined_kernels()[before:] if each.device == name)


def _unserved(failure: BaseException | None) -> tuple[str, ...]:
    """Return the operator without a kernel that an error names."""
    words = str(failure).split("'") if isinstance(failure, UnsupportedOperator) else []
    return (words[1],) if len(words) > 1 else ()


def _route(context: Context, case: Case, missing: tuple[str, ...]) -> str:
    if case.operator == DEVICE or case.property == SAMPLES or not case.dtype:
        return ""
    if case.operator in missing:
        return "fallback"
    op = subject_of(case)
    if not isinstance(op, Operator):
        return ""
    key = op, case.dtype, case.property.startswith(("gradient", "inplace-gradient"))
    if key not in context.routes:  # the cases of a dtype share it, and finding it takes a twentieth of a case's time
        context.routes[key] = _found_route(context, *key)
    return context.routes[key]


def _found_route(context: Context, op: Operator[..., Any], dtype: str, grad: bool) -> str:
    try:
        route = explain_key(op, context.instance, BY_NAME[dtype], grad).route
    except Exception:
        return "unsupported"
    return ROUTES.get(route, route)


def _uses(context: Context, case: Case) -> tuple[str, ...]:
    """Return the operators that are called before a failure. The case runs again."""
    return tuple(name for name in operators_called(lambda: _outcome(context, case)) if name != case.operator)
