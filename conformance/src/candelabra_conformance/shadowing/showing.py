"""The program that shows a divergence, on arrays that are as small as possible."""

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
"""The layouts that are tried before the exact memory layout of the call."""
VALUES: Final = frozenset({"value", "inplace"})


def shown(before: Snapshot, finding: Finding, written: bool, reference: str) -> str:
    """Return the reproducer of a finding, or a comment with the reason if an argument has no literal."""
    instance = before.instance()
    assert instance is not None
    arguments = _with_device(before.split())
    layout: Any = before.layouts()
    try:
        whole = partial(_written, before.record, arguments, layout, instance, finding, written, reference)
        if finding.property not in VALUES:
            return best(whole(), whole)
        small = smallest(before.record, arguments, layout, instance, written, reference)
        return best(_written(before.record, *small, instance, finding, written, reference), whole)
    except Exception as error:
        return f"# no reproducer: {type(error).__name__}: {error}"


def _written(
    record: Operator[..., Any], arguments: Any, layout: Any, instance: Instance, finding: Finding, written: bool,
    reference: str,
) -> str:  # fmt: skip
    expected: Any = None
    allowed: Any = None
    check = None
    property = finding.property
    if property in VALUES or property in ("random", "result"):
        found = answer(record, arguments[0], arguments[1], reference)
        if property == "result":
            expected = [(d, own.shape) for d, own in zip(found.dtypes, found.own, strict=True)]
        else:
            several = record.schema.result is not None
            own, limits = (found.own, found.allowed()) if record.random else (found.rounded(), found.allowed())
            expected, allowed = (own, limits) if several else (own[0], limits[0])
            if written:
                d = next(arrays(arguments)).dtype
                expected = expected.astype(d)
    elif property == "errors":
        expected = finding.due
        check = None if finding.due is not None else ["print(got)  # the reference computes it"]
    return reproducer(
        record, arguments[0], arguments[1], device=instance.device, property=property, layout=layout, expected=expected,
        allowed=allowed, check=check, note=finding.message,
    )  # fmt: skip


def smallest(
    record: Record, arguments: Any, layout: Any, instance: Instance, written: bool, reference: str,
    tried: Sequence[str] = TRIED,
) -> tuple[Any, Any]:  # fmt: skip
    """Return smaller arguments and a plain layout that still give a wrong value, or the arguments unchanged."""

    def failing(args: Any, name: str) -> bool:
        return fails(record, args, name, instance, written, reference)

    name = next((name for name in tried if failing(arguments, name)), None)
    return (arguments, layout) if name is None else (shrunk(arguments, lambda args: failing(args, name)), name)


def fails(record: Record, arguments: Any, layout: str, instance: Instance, written: bool, reference: str) -> bool:
    """Return whether the operator's values are wrong on the device for these arrays in this layout."""
    try:
        expected = answer(record, arguments[0], arguments[1], reference)
        args, kwargs = placed(arguments[0], layout, instance), placed(arguments[1], layout, instance)
        function = record.form("inplace") if written else None
        results = tensors(called(record, args, kwargs, instance, function))
    except Exception:
        return False
    for output, result in enumerate(results):
        got = to_host(result)
        if got.shape != expected.own[output].shape or np.any(expected.wrong(output, got, result.dtype)):
            return True
    return False


def _with_device(value: Any) -> Any:
    if isinstance(value, Instance):
        return HERE
    if isinstance(value, dict):
        return {name: _with_device(v) for name, v in value.items()}
    return (
        tuple(_with_device(v) for v in value) if isinstance(value, tuple) and not hasattr(value, "_fields") else value
    )
