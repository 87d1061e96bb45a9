"""Run one case of the suite again. Reproducers of faults that literals cannot express call :func:`check`."""

from __future__ import annotations

from candelabra.dtypes import BY_NAME

from candelabra_conformance.context import Context
from candelabra_conformance.model import BAD, DEVICE, Case
from candelabra_conformance.properties import registry
from candelabra_conformance.records import everything_named
from candelabra_conformance.running.setup import prepared
from candelabra_conformance.suite import run_case


def check(device: str, case: str, *, forbid_fallback: bool = False, contributions: str | None = None) -> None:
    """Run a case of the suite by its id, such as ``"exp/threads/float32/contiguous"``.

    ``contributions`` is that of :class:`~candelabra_conformance.context.Context`.

    Raises ``AssertionError`` with the failure's message if the case fails, ``ValueError`` for an id that cannot exist,
    ``UnknownNameError`` for an unknown operator, and ``BackendError`` if the device cannot be opened.
    """
    found = case_named(case)
    context = Context(prepared(device), contributions)
    result = run_case(context, found, forbid_fallback=forbid_fallback, explained=False)
    if result.verdict in BAD:
        raise AssertionError(result.message)


def case_named(case: str) -> Case:
    """Return the case with an id. Raises as :func:`check` does."""
    registry.load()
    operator, _, rest = case.partition("/")
    name, *axes = rest.split("/")
    if operator == DEVICE:
        properties = set(registry.OF_DEVICES)
    else:
        properties = {"samples"}.union(*(registry.properties_of(each) for each in everything_named(operator)))
    dtype = axes.pop(0) if axes and axes[0] in BY_NAME else ""
    if name not in properties or len(axes) > 1:
        raise ValueError(f"check(): expected OPERATOR/PROPERTY/DTYPE/LAYOUT, such as exp/value/float32, got {case!r}")
    return Case(operator, name, dtype, axes[0] if axes else "")
