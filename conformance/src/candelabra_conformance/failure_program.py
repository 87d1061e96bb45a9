"""The reproducer of a case of the suite that failed: its sample made smaller, its layout, what was due."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from candelabra.operator.record import OPERATORS

from candelabra_conformance.context import Context, Failure
from candelabra_conformance.layouts import CONTIGUOUS, MEMORY
from candelabra_conformance.model import Case
from candelabra_conformance.reproducer import reproducer
from candelabra_conformance.shadowing.showing import fails, smallest
from candelabra_conformance.tolerance import rounded

COMPARED: Final = frozenset({"value", "special", "inplace"})
"""Properties whose failure a wrong value shows, so that smaller arrays can be tried."""
WRITTEN: Final = COMPARED | {"random", "inputs", "determinism"}
"""Properties that have a check of their own in a program, without more being known."""


def of_failure(context: Context, case: Case, failure: Failure) -> str:
    """The program for a failed case; a plain call where the property has no check that literals can make.

    Never raises: where no program can be written, the text is a comment that says why.
    """
    try:
        return _program(context, case, failure)
    except Exception as error:
        return f"# no reproducer: {type(error).__name__}: {error}\n"


def _program(context: Context, case: Case, failure: Failure) -> str:
    found = failure.sample
    if found is None:
        raise ValueError("the failure is about no sample")
    record = OPERATORS[case.operator]
    layout: Any = failure.layout if failure.layout in MEMORY else CONTIGUOUS
    given: Any = (found.args, dict(found.kwargs))
    where = context.instance, case.property == "inplace", str(context.reference.device)
    expected, check = None, None
    if case.property not in WRITTEN or found.of is not None:
        check = _shown(failure)
    elif case.property in COMPARED:
        if fails(record, given, layout, *where):
            given, layout = smallest(record, given, layout, *where, tried=(layout,))
        elif "expected" in failure.details:
            expected = rounded(failure.details["expected"], failure.details["dtype"])
        else:
            check = _shown(failure)
    return reproducer(
        record, given[0], given[1], device=context.device, property=case.property, layout=layout, expected=expected,
        check=check, note=str(failure),
    )  # fmt: skip


def _shown(failure: Failure) -> list[str]:
    """What stands after a call that only a reader can judge."""
    expected = failure.details.get("expected")
    known = isinstance(expected, np.ndarray) and expected.size <= 64
    return ["print(got)", *([f"# expected: {expected.tolist()}"] if known and expected is not None else [])]
