"""Call an operator or a public callable on a sample, and flatten its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import candelabra as cd
import numpy as np
from candelabra import Tensor
from candelabra.library import OPERATORS, Instance, Operator, own_kernels
from candelabra.random import fork_rng

from candelabra_conformance.records import CallableRecord, Record
from candelabra_conformance.samples.sample import HERE, SEED, Fresh, HostArray, Sample
from candelabra_conformance.tolerance import wide
from candelabra_conformance.transport import Array, to_device, to_host


def record(name: str) -> Operator[..., Any]:
    """Return the record of an operator."""
    return OPERATORS[name]


def at(value: Any, device: Any) -> Any:
    """Return arguments with :data:`HERE` replaced by the device, and with new objects for each call."""
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
    """Call the public function on arguments that are on the device, which is the default device for the call.

    A random operator gets a fixed position in the stream of random numbers. Before a public callable that draws, the
    default generators are seeded with :data:`~candelabra_conformance.samples.sample.SEED`. ``function`` is another form
    of the operator.
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
    """Return the tensors of a result: one, a NamedTuple's fields, or a list's items. A number is a 0-d tensor."""
    if isinstance(result, Tensor):
        return (result,)
    if isinstance(result, (list, tuple)):
        return tuple(t for part in result for t in tensors(part))
    if isinstance(result, (bool, int, float, complex)):
        return (cd.tensor(result),)
    raise AssertionError(f"the operator returned {type(result).__name__}, not a Tensor")


def leaves(result: Any) -> Iterator[Any]:
    """Yield the leaves of a nested result, in order: all objects other than sequences and mappings."""
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        for part in result:
            yield from leaves(part)
    else:
        yield result


def tensors_in(result: Any) -> tuple[Tensor, ...]:
    """Return the tensors of a result, which may also contain other objects."""
    return tuple(leaf for leaf in leaves(result) if isinstance(leaf, Tensor))


def split(sample: Sample, result: Any, instance: Instance) -> tuple[tuple[Array, ...], tuple[Any, ...]]:
    """Return the values of a result's tensors and arrays, on the host, and its other objects.

    If a result is unique only up to a choice (such as the signs of eigenvectors), return values that do not depend on
    the choice. They are computed in the widest precision on ``instance``, the reference device.
    """
    if sample.of is not None:
        with own_kernels():
            result = sample.of(moved(result, instance))
    every = list(leaves(result))
    arrays = tuple(to_host(v) if isinstance(v, Tensor) else v for v in every if isinstance(v, (Tensor, np.ndarray)))
    return arrays, tuple(v for v in every if not isinstance(v, (Tensor, np.ndarray)))


def determined(sample: Sample, result: Any, instance: Instance) -> tuple[Array, ...]:
    """Return the values of a result, as :func:`split` does."""
    return split(sample, result, instance)[0]


def moved(result: Any, instance: Instance) -> Any:
    """Return a result with its tensors on another device and in the widest precision."""
    if isinstance(result, Tensor):
        return to_device(wide(to_host(result)), instance)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[moved(part, instance) for part in result])
    if isinstance(result, (list, tuple)):
        return type(result)([moved(part, instance) for part in result])
    return result
