"""What is checked: a function of tensors, and the call that it is checked on, to be made anew as often as needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from candelabra import Tensor
from candelabra.autograd import Function
from candelabra.library import OPERATORS, Instance, Operator, open_device, plugins

from candelabra_conformance.calling import at, tensors
from candelabra_conformance.layouts import CONTIGUOUS, placed
from candelabra_conformance.samples.sample import Sample, arrays, mapped
from candelabra_conformance.transport import Array, to_host


@dataclass(frozen=True)
class Subject:
    """A function, its record where it has one, and one call of it with arrays for tensors."""

    name: str
    function: Callable[..., Any]
    record: Operator[..., Any] | None
    call: Sample
    instance: Instance
    wanted: frozenset[int]
    """Identities of the arrays whose tensors required grad; empty: all that can."""

    def built(self, instance: Instance | None = None, layout: str = CONTIGUOUS, call: Sample | None = None) -> Any:
        """``(args, kwargs)`` with new tensors on a device, the subject's own unless given."""
        where = self.instance if instance is None else instance
        given = self.call if call is None else call
        args, kwargs = placed((given.args, dict(given.kwargs)), layout, where)
        return at(args, where.device), at(kwargs, where.device)

    def run(self, args: Any, kwargs: Any, instance: Instance | None = None) -> tuple[Tensor, ...]:
        """Call the function, with the device as the default one; its tensors, flat."""
        with (self.instance if instance is None else instance).device:
            return outputs(self.function(*args, **kwargs))

    def values(self, instance: Instance | None = None, layout: str = CONTIGUOUS) -> tuple[Array, ...]:
        """The results on the host."""
        args, kwargs = self.built(instance, layout)
        return tuple(to_host(t) for t in self.run(args, kwargs, instance))

    @property
    def reference(self) -> Instance:
        """The installation's reference device."""
        return open_device(plugins.reference_device())

    @property
    def random(self) -> bool:
        """Whether the record says that results differ from call to call by nature."""
        return self.record is not None and self.record.random


def outputs(result: Any) -> tuple[Tensor, ...]:
    """The tensors of a result, which may hold numbers and None beside them."""
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return tuple(t for part in result for t in outputs(part))
    return () if result is None else tensors(result)


def given_tensors(value: Any) -> list[Tensor]:
    """The tensors among arguments, each once."""
    found: list[Tensor] = []
    if isinstance(value, Tensor):
        return [value]
    parts = list(value.values()) if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    for part in parts:
        found += [t for t in given_tensors(part) if not any(t is f for f in found)]
    return found


def subject_of(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None, device: Any) -> Subject:
    """The subject of ``opcheck``'s arguments. TypeError for what is no operator, Function or function.

    ValueError for a name that no operator has.
    """
    if isinstance(operator, str) and operator not in OPERATORS:
        raise ValueError(f"opcheck(): there is no operator {operator!r}; a function can be given itself")
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
    wanted: set[int] = set()
    given = given_tensors([list(args), dict(kwargs or {})])

    def host(value: Any) -> Any:
        if isinstance(value, Tensor):
            if id(value) not in held:
                held[id(value)] = to_host(value)
            if value.requires_grad:
                wanted.add(id(held[id(value)]))
            return held[id(value)]
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(host(v) for v in value)
        return value

    if device is None:
        device = given[0].device if given else plugins.reference_device()
    call = Sample(tuple(host(a) for a in args), {k: host(v) for k, v in (kwargs or {}).items()})
    return Subject(name, function, known, call, open_device(device), frozenset(wanted))


def floating(call: Sample) -> list[Array]:
    """The arrays of a call that can carry a gradient, each once."""
    found: dict[int, Array] = {}
    for array in arrays((call.args, dict(call.kwargs))):
        if array.dtype.kind not in "biu":
            found.setdefault(id(array), array)
    return list(found.values())


def replaced(call: Sample, new: Mapping[int, Any]) -> tuple[Any, Any]:
    """``(args, kwargs)`` with values by identity of the arrays whose place they take."""
    return mapped((call.args, dict(call.kwargs)), lambda a: new.get(id(a), a))  # type: ignore[no-any-return]
