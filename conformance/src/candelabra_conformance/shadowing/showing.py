"""The program that shows a divergence, on arrays that are as small as it stays visible on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from candelabra.library import Instance, Operator

from candelabra_conformance.calling import called, tensors
from candelabra_conformance.layouts import CONTIGUOUS, OFFSET, STEP, TRANSPOSED, placed
from candelabra_conformance.program_trial import best
from candelabra_conformance.records import Record
from candelabra_conformance.reproducer import reproducer
from candelabra_conformance.samples.sample import HERE, arrays
from candelabra_conformance.shadowing.answer import answer
from candelabra_conformance.shadowing.judging import Finding
from candelabra_conformance.shadowing.snapshot import Snapshot
from candelabra_conformance.shrinking import shrunk
from candelabra_conformance.transport import to_host

TRIED: Final = (CONTIGUOUS, TRANSPOSED, OFFSET, STEP)
"""Layouts in which a fault is looked for before the memory is laid out exactly as it was."""
VALUES: Final = frozenset({"value", "inplace"})


def shown(before: Snapshot, finding: Finding, written: bool, reference: str) -> str:
    """The reproducer of a finding; a comment that says why there is none where an argument has no literal."""
    instance = before.instance()
    assert instance is not None
    given = _here(before.split())
    layout: Any = before.layouts()
    try:
        whole = partial(_written, before.record, given, layout, instance, finding, written, reference)
        if finding.property not in VALUES:
            return best(whole(), whole)
        small = smallest(before.record, given, layout, instance, written, reference)
        return best(_written(before.record, *small, instance, finding, written, reference), whole)
    except Exception as error:
        return f"# no reproducer: {type(error).__name__}: {error}"


def _written(
    record: Operator[..., Any], given: Any, layout: Any, instance: Instance, finding: Finding, written: bool,
    reference: str,
) -> str:  # fmt: skip
    expected: Any = None
    allowed: Any = None
    check = None
    property = finding.property
    if property in VALUES or property in ("random", "result"):
        found = answer(record, given[0], given[1], reference)
        if property == "result":
            expected = [(d, own.shape) for d, own in zip(found.dtypes, found.own, strict=True)]
        else:
            several = record.schema.result is not None
            own, limits = (found.own, found.allowed()) if record.random else (found.rounded(), found.allowed())
            expected, allowed = (own, limits) if several else (own[0], limits[0])
            if written:
                d = next(arrays(given)).dtype
                expected = expected.astype(d)
    elif property == "errors":
        expected = finding.due
        check = None if finding.due is not None else ["print(got)  # the reference computes it"]
    return reproducer(
        record, given[0], given[1], device=instance.device, property=property, layout=layout, expected=expected,
        allowed=allowed, check=check, note=finding.message,
    )  # fmt: skip


def smallest(
    record: Record, given: Any, layout: Any, instance: Instance, written: bool, reference: str,
    tried: Sequence[str] = TRIED,
) -> tuple[Any, Any]:  # fmt: skip
    """Smaller arguments, and a plain layout, that still give a wrong value; what was given where there are none."""

    def failing(args: Any, name: str) -> bool:
        return fails(record, args, name, instance, written, reference)

    name = next((name for name in tried if failing(given, name)), None)
    return (given, layout) if name is None else (shrunk(given, lambda args: failing(args, name)), name)


def fails(record: Record, given: Any, layout: str, instance: Instance, written: bool, reference: str) -> bool:
    """Whether the operator's values are wrong on the device for these arrays in this layout."""
    try:
        expected = answer(record, given[0], given[1], reference)
        args, kwargs = placed(given[0], layout, instance), placed(given[1], layout, instance)
        function = record.form("inplace") if written else None
        results = tensors(called(record, args, kwargs, instance, function))
    except Exception:
        return False
    for place, result in enumerate(results):
        got = to_host(result)
        if got.shape != expected.own[place].shape or np.any(expected.wrong(place, got, result.dtype)):
            return True
    return False


def _here(value: Any) -> Any:
    if isinstance(value, Instance):
        return HERE
    if isinstance(value, dict):
        return {name: _here(v) for name, v in value.items()}
    return tuple(_here(v) for v in value) if isinstance(value, tuple) and not hasattr(value, "_fields") else value
