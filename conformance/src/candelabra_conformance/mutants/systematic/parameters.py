"""Faults of parameters that are not tensors: each is ignored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from candelabra.backend import Kernel
from candelabra.library import DEVICE, DIM, DIMS, DTYPE, OPTIONAL, PLAIN, REQUIRED, SHAPE, Operator, Parameter

from candelabra_conformance.mutants.mirror import Mirror
from candelabra_conformance.mutants.storage import each_image
from candelabra_conformance.mutants.systematic.switch import Fault, Switch, Wrong, instead

FIXED: Final = (PLAIN, DIM, DIMS, SHAPE, DTYPE, OPTIONAL)
"""Kinds of parameters that can be ignored: all those that are not tensors."""


def operands_of(record: Operator[..., Any]) -> list[int]:
    """Return the positions of the parameters that are tensors."""
    return [i for i, p in enumerate(record.schema.parameters) if p.kind not in (*FIXED, DEVICE)]


def of_parameters(name: str, record: Operator[..., Any], switch: Switch) -> Iterator[Fault]:
    """Yield a fault for each parameter that is not a tensor."""
    for position, p in enumerate(record.schema.parameters):
        if p.kind in FIXED:
            yield Fault(name, f"{p.name} ignored", _ignored(switch, position, p), parameter=position)


def _ignored(switch: Switch, position: int, p: Parameter) -> Wrong:
    """Return a fault that replaces the parameter's value by the default, by that of the first call, or by that of the
    first call with tensors of these shapes (as a cache of compiled kernels does whose key lacks the parameter)."""
    pinned: dict[Any, Any] = {} if p.default is REQUIRED else {None: p.default}
    if p.kind == OPTIONAL:
        pinned = {None: None}

    def wrong(mirror: Mirror, right: Kernel, args: tuple[Any, ...]) -> Any:
        shapes: list[Any] = []
        each_image(args, lambda image: shapes.append((image.shape, mirror.dtype_of(image))))
        due = right(*args)
        for key in (None, tuple(shapes)):
            value = pinned.setdefault(key, args[position])
            out = instead(switch, mirror, right, due, (*args[:position], value, *args[position + 1 :]))
            if out is not due:
                return out
        return due

    return wrong
