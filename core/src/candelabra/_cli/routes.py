"""Tables of routes: the step of dispatch that serves each operator on a device."""

from __future__ import annotations

from candelabra._annotations import Any
from candelabra._device import Instance, open_device
from candelabra._dispatch.explain import Explanation, explain_key
from candelabra._plugins import registry
from candelabra._records.accepts import refusal
from candelabra._records.record import Operator
from candelabra._records.registry import OPERATORS
from candelabra.dtypes import BY_NAME, dtype


def instances(name: str | None) -> list[Instance]:
    """Return the device of that name, or by default the first one of every working type. Raise BackendError if none."""
    if name is not None:
        return [open_device(name)]
    return [open_device(made.name) for _, made in registry.working() if registry.device_count(made)]


def typical_dtype(record: Operator[..., Any], instance: Instance, requested: str | None = None) -> dtype:
    """Return the requested dtype, or the first one that both the operator and the device support."""
    if requested is not None:
        return BY_NAME[requested]
    for name in ("float32", "int64", "bool", "complex64"):
        if refusal(record, BY_NAME[name]) is None and BY_NAME[name] in instance.keys:
            return BY_NAME[name]
    return BY_NAME["float32"]


def table(instance: Instance) -> dict[str, Explanation]:
    """Return how a device serves every operator, without a gradient."""
    return {
        name: explain_key(record, instance, typical_dtype(record, instance), False)
        for name, record in sorted(OPERATORS.items())
    }
