"""Calling an operator on a sample: results as tensors, flat, whatever the record returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.library import OPERATORS, Instance, Operator

from candelabra_conformance.samples.sample import HERE, Sample
from candelabra_conformance.transport import Array, to_device, to_host


def record(name: str) -> Operator[..., Any]:
    """The record of an operator."""
    return OPERATORS[name]


def at(value: Any, device: Any) -> Any:
    """Arguments with :data:`HERE` replaced by the device."""
    if value is HERE:
        return device
    if isinstance(value, dict):
        return {name: at(v, device) for name, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(at(v, device) for v in value)
    return value


def called(op: Operator[..., Any], args: Any, kwargs: Any, instance: Instance, function: Any = None) -> Any:
    """The operator's public function on arguments that are on the device, with the device as the default one.

    Random operators start at the same place of the device's stream every time.
    """
    target = instance.device
    run: Callable[..., Any] = op.function if function is None else function
    with target:
        return run(*at(tuple(args), target), **at(dict(kwargs), target))


def tensors(result: Any) -> tuple[Tensor, ...]:
    """The tensors of a result: one, a NamedTuple's fields, or what a list holds."""
    if isinstance(result, Tensor):
        return (result,)
    if isinstance(result, (list, tuple)):
        return tuple(t for part in result for t in tensors(part))
    if isinstance(result, (bool, int, float, complex)):
        return (cd.tensor(result),)
    raise AssertionError(f"the operator returned {type(result).__name__}, not a Tensor")


def determined(found: Sample, result: Any, instance: Instance) -> tuple[Array, ...]:
    """The result's values on the host; of one that is determined up to a choice, what does not depend on it.

    ``instance`` is the reference device, where that is computed, in the widest precision.
    """
    values = [to_host(t) for t in tensors(result)]
    if found.of is None:
        return tuple(values)
    from candelabra_conformance.tolerance import wide

    moved = [to_device(wide(v), instance) for v in values]
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        rebuilt: Any = type(result)(*moved)
    else:
        rebuilt = moved[0] if isinstance(result, Tensor) else tuple(moved)
    return tuple(to_host(t) for t in tensors(found.of(rebuilt)))
