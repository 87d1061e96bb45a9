"""The subject of ``opcheck``: a function of tensors, and a call of it that can be repeated with new tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from candelabra import Tensor
from candelabra.autograd import Function
from candelabra.library import OPERATORS, Instance, Operator, open_device, own_kernels, plugins

from candelabra_conformance.calling import at, tensors
from candelabra_conformance.layouts import CONTIGUOUS, placed
from candelabra_conformance.samples.sample import Sample, arrays, mapped
from candelabra_conformance.transport import Array, to_host


@dataclass(frozen=True)
class CheckedCall:
    """A function, its record if it has one, and one call of it with arrays in place of tensors."""

    name: str
    function: Callable[..., Any]
    record: Operator[..., Any] | None
    call: Sample
    instance: Instance
    requiring_grad: frozenset[int]
    """The identities of the arrays whose tensors required grad. If it is empty, all that can require it."""

    def built(self, instance: Instance | None = None, layout: str = CONTIGUOUS, call: Sample | None = None) -> Any:
        """Return ``(args, kwargs)`` with new tensors on a device, by default the subject's own."""
        where = self.instance if instance is None else instance
        given = self.call if call is None else call
        args, kwargs = placed((given.args, dict(given.kwargs)), layout, where)
        return at(args, where.device), at(kwargs, where.device)

    def run(self, args: Any, kwargs: Any, instance: Instance | None = None) -> tuple[Tensor, ...]:
        """Call the function with the device as the default device, and return the tensors of the result in a flat
        tuple."""
        with (self.instance if instance is None else instance).device:
            return outputs(self.function(*args, **kwargs))

    def values(self, instance: Instance | None = None, layout: str = CONTIGUOUS) -> tuple[Array, ...]:
        """Return the results on the host."""
        args, kwargs = self.built(instance, layout)
        return tuple(to_host(t) for t in self.run(args, kwargs, instance))

    @own_kernels()
    def reference_values(self) -> tuple[Array, ...]:
        """Return the results of the reference device, by the kernels of its owner."""
        return self.values(self.reference)

    @property
    def reference(self) -> Instance:
        """Return the installation's reference device."""
        return open_device(plugins.reference_device())

    @property
    def random(self) -> bool:
        """Return whether the record declares that results differ from call to call."""
        return self.record is not None and self.record.random


def outputs(result: Any) -> tuple[Tensor, ...]:
    """Return the tensors of a result, which may also contain numbers and None."""
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return tuple(t for part in result for t in outputs(part))
    return () if result is None else tensors(result)


def given_tensors(value: Any) -> list[Tensor]:
    """Return the tensors in the arguments, each once."""
    found: list[Tensor] = []
    if isinstance(value, Tensor):
        return [value]
    parts = list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    for part in parts:
        found += [t for t in given_tensors(part) if not any(t is f for f in found)]
    return found


def subject_of(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None, device: Any) -> CheckedCall:
    """Return the subject for the arguments of ``opcheck``.

    Raises TypeError for an object that is neither an operator, a Function nor a function, and ValueError for an unknown
    name.
    """
    if isinstance(operator, str) and operator not in OPERATORS:
        raise ValueError(f"opcheck(): there is no operator {operator!r}; pass a function itself, not its name")
    record = OPERATORS[operator] if isinstance(operator, str) else operator
    if isinstance(record, Operator):
        name, function, known = record.name, record.function, record
    elif isinstance(record, type) and issubclass(record, Function):
        applied: Any = record
        name, function, known = record.__name__, applied.apply, None
    elif callable(record):
        name, function, known = getattr(record, "__name__", type(record).__name__), record, None
    else:
        raise TypeError(
            f"opcheck() expects an operator, its name, an autograd Function or a function, got {operator!r}"
        )
    held: dict[int, Array] = {}
    requiring_grad: set[int] = set()
    given = given_tensors([list(args), dict(kwargs or {})])

    def host(value: Any) -> Any:
        if isinstance(value, Tensor):
            if id(value) not in held:
                held[id(value)] = to_host(value)
            if value.requires_grad:
                requiring_grad.add(id(held[id(value)]))
            return held[id(value)]
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(host(v) for v in value)
        return value

    if device is None:
        device = given[0].device if given else plugins.reference_device()
    call = Sample(tuple(host(a) for a in args), {k: host(v) for k, v in (kwargs or {}).items()})
    return CheckedCall(name, function, known, call, open_device(device), frozenset(requiring_grad))


def floating(call: Sample) -> list[Array]:
    """Return the arrays of a call that can require grad, each once."""
    found: dict[int, Array] = {}
    for array in arrays((call.args, dict(call.kwargs))):
        if array.dtype.kind not in "biu":
            found.setdefault(id(array), array)
    return list(found.values())


def replaced(call: Sample, new: Mapping[int, Any]) -> tuple[Any, Any]:
    """Return ``(args, kwargs)`` with arrays replaced by the values of ``new``, by identity."""
    return mapped((call.args, dict(call.kwargs)), lambda a: new.get(id(a), a))  # type: ignore[no-any-return]
