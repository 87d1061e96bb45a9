"""Calling an operator or a public callable on a sample: results flat, whatever their structure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import candelabra as cd
import numpy as np
from candelabra import Tensor
from candelabra.library import OPERATORS, Instance, Operator
from candelabra.random import fork_rng

from candelabra_conformance.records import CallableRecord, Record
from candelabra_conformance.samples.sample import HERE, SEED, Fresh, HostArray, Sample
from candelabra_conformance.tolerance import wide
from candelabra_conformance.transport import Array, to_device, to_host


def record(name: str) -> Operator[..., Any]:
    """The record of an operator."""
    return OPERATORS[name]


def at(value: Any, device: Any) -> Any:
    """Arguments with the device in the place of :data:`HERE`, and what is made anew for each call made."""
    if value is HERE:
        return device
    if isinstance(value, Fresh):
        # The source is a sample's, written in this package or by a plugin.
        return eval(value.source, {"cd": cd, "np": np, "device": device})
    if isinstance(value, HostArray):
        return value.array.copy()
    if isinstance(value, dict):
        return {name: at(v, device) for name, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(at(v, device) for v in value)
    return value


def called(op: Record, args: Any, kwargs: Any, instance: Instance, function: Any = None) -> Any:
    """The public function on arguments that are on the device, with the device as the default one.

    A random operator is given its place in the stream of random numbers; a public callable that draws finds the default
    generators at the start of :data:`~candelabra_conformance.samples.sample.SEED` every time. ``function`` is another
    form of the operator.
    """
    target = instance.device
    run: Callable[..., Any] = op.function if function is None else function
    with target:
        if isinstance(op, CallableRecord) and op.draws:
            with fork_rng():
                cd.manual_seed(SEED)
                return run(*at(tuple(args), target), **at(dict(kwargs), target))
        return run(*at(tuple(args), target), **at(dict(kwargs), target))


# -- results ----------------------------------------------------------------------------------------------------------
def tensors(result: Any) -> tuple[Tensor, ...]:
    """The tensors of a result: one, a NamedTuple's fields, or what a list holds. A number is a tensor without dims."""
    if isinstance(result, Tensor):
        return (result,)
    if isinstance(result, (list, tuple)):
        return tuple(t for part in result for t in tensors(part))
    if isinstance(result, (bool, int, float, complex)):
        return (cd.tensor(result),)
    raise AssertionError(f"the operator returned {type(result).__name__}, not a Tensor")


def leaves(result: Any) -> Iterator[Any]:
    """What a result is made of: what is no sequence and no mapping, in order."""
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        for part in result:
            yield from leaves(part)
    else:
        yield result


def tensors_in(result: Any) -> tuple[Tensor, ...]:
    """The tensors of a result, which may hold something else beside them."""
    return tuple(leaf for leaf in leaves(result) if isinstance(leaf, Tensor))


def split(found: Sample, result: Any, instance: Instance) -> tuple[tuple[Array, ...], tuple[Any, ...]]:
    """The values of a result's tensors and arrays, on the host, and everything else in it.

    Of a result that is determined up to a choice, what does not depend on the choice: ``instance`` is the reference
    device, where that is computed in the widest precision.
    """
    if found.of is not None:
        result = found.of(moved(result, instance))
    every = list(leaves(result))
    arrays = tuple(to_host(v) if isinstance(v, Tensor) else v for v in every if isinstance(v, (Tensor, np.ndarray)))
    return arrays, tuple(v for v in every if not isinstance(v, (Tensor, np.ndarray)))


def determined(found: Sample, result: Any, instance: Instance) -> tuple[Array, ...]:
    """The values of a result, as :func:`split` gives them."""
    return split(found, result, instance)[0]


def moved(result: Any, instance: Instance) -> Any:
    """A result with its tensors on another device and in the widest precision."""
    if isinstance(result, Tensor):
        return to_device(wide(to_host(result)), instance)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[moved(part, instance) for part in result])
    if isinstance(result, (list, tuple)):
        return type(result)([moved(part, instance) for part in result])
    return result
