"""The objects that the suite tests: operators' records, overload sets and public callables, each under one name.

A record is tested under its own name. An overload set and a public callable are tested under their public name, ``max``
or ``linalg.svd``, or if they are only methods, under a name such as ``Tensor.to``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from candelabra.library import (
    DIFFERENTIABLE,
    OPERATORS,
    PLAIN,
    Operator,
    OverloadSet,
    Parameter,
    PublicCallable,
    Schema,
    entries,
    entry_named,
    title_of,
)

from candelabra_conformance.model import DEVICE
from candelabra_conformance.samples.registry import DRAWS
from candelabra_conformance.samples.sample import Sample

ASSIGNING: Final = ("Tensor.__setitem__",)
"""Public callables that write into their first argument and return None."""


def returning_its_target(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ``function`` and returns the first argument, into which it writes."""

    def assign(target: Any, *args: Any, **kwargs: Any) -> Any:
        function(target, *args, **kwargs)
        return target

    return assign


class CallableRecord:
    """A public callable in the form of a record: with a name, a schema and a function, which the properties use."""

    view: Final = False
    inplace: Final = False
    random: Final = False
    rule: Final = None

    def __init__(self, entry: PublicCallable) -> None:
        self.entry: Final = entry
        self.name: Final = title_of(entry)
        self.schema: Final = Schema(entry.parameters, ("out",), None)
        self.out: Final = bool(entry.out)
        function = entry.form("function")
        self.function: Final = returning_its_target(function) if self.assigns else function

    @property
    def assigns(self) -> bool:
        """Whether it writes into its first argument and returns nothing: ``Tensor.__setitem__``."""
        return self.name in ASSIGNING

    @property
    def writes(self) -> bool:
        """Whether it modifies its first argument, whose content is the result, such as ``Tensor.uniform_``."""
        return self.assigns or (self.name.endswith("_") and not self.name.endswith("__"))

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers, so that its calls are seeded."""
        return self.schema.named("generator") is not None or self.name in DRAWS

    def form(self, kind: str) -> Callable[..., Any]:
        """Return the function, which is the only form of a public callable."""
        return self.function


Record = Operator[..., Any] | CallableRecord
"""The objects that have samples."""


class UnknownNameError(ValueError):
    """A name that is neither an operator's nor a public one."""


def everything_named(name: str) -> list[Record | OverloadSet]:
    """Return the objects that are tested under a name, an alias, or an operator's public name.

    A record and the overload set that contains it may have the same name. Raises ``UnknownNameError`` for an unknown
    name.
    """
    record = OPERATORS.get(name)  # asks plugins too, as `in` does not
    found: list[Record | OverloadSet] = [] if record is None else [record]
    entry: Any = entry_named(name)
    if isinstance(entry, (Operator, OverloadSet)):
        found += [entry] if entry not in found else []
    elif isinstance(entry, PublicCallable) and title_of(entry) not in OPERATORS:
        found.append(CallableRecord(entry))
    if not found:
        found += [each for each in callable_members() if each.name == name]
    if not found:
        raise UnknownNameError(f"there is no operator and no public name {name!r}{suggested(name)}")
    return found


def suggested(name: str) -> str:
    """Return the names most similar to an unknown one, as the end of a message: ``; did you mean 'tan'?``"""
    from difflib import get_close_matches

    known = {DEVICE, *OPERATORS, *map(title_of, entries())}
    similar = get_close_matches(name, sorted(known), n=3)
    return f"; did you mean {' or '.join(map(repr, similar))}?" if similar else ""


def everything_tested() -> list[Record | OverloadSet]:
    """Return every record, overload set and public callable."""
    found: list[Record | OverloadSet] = [OPERATORS[name] for name in sorted(OPERATORS)]
    public = sorted(entries(), key=title_of)
    found += [entry for entry in public if isinstance(entry, OverloadSet)]
    callables = [CallableRecord(entry) for entry in public if isinstance(entry, PublicCallable)]
    return [*found, *(each for each in callables if each.name not in OPERATORS), *callable_members()]


def callable_members() -> Iterator[CallableRecord]:
    """Yield the members of overload sets that are not records. They have no public name of their own."""
    for member, _ in members_and_sets():
        yield CallableRecord(member)


def members_and_sets() -> Iterator[tuple[PublicCallable, OverloadSet]]:
    """Yield each of these members with its set."""
    for entry in entries():
        if isinstance(entry, OverloadSet):
            for member, _ in entry.members:
                if isinstance(member, PublicCallable) and entry_named(member.public_name) is not member:
                    yield member, entry


def set_of(record: CallableRecord) -> OverloadSet | None:
    """Return the overload set with which users call a callable that has no public name, or None if there is none."""
    return next((found for member, found in members_and_sets() if member is record.entry), None)


def name_of(tested: Record | OverloadSet) -> str:
    """Return the name under which an object is tested."""
    return title_of(tested) if isinstance(tested, OverloadSet) else tested.name


# -- arguments --------------------------------------------------------------------------------------------------------
def parameter_names(op: Record, count: int) -> list[str]:
    """Return the parameter of each of ``count`` positional arguments; a variadic one can have several."""
    names = [p.name for p in op.schema.parameters]
    variadic = next((i for i, p in enumerate(op.schema.parameters) if p.variadic), None)
    if variadic is not None:
        names[variadic + 1 :] = [names[variadic]] * (count - variadic - 1)
    return names[:count]


def arguments_of(op: Record, sample: Sample) -> dict[str, Any]:
    """Return a sample's arguments by parameter, with a tuple for a variadic one."""
    given: dict[str, Any] = {}
    variadic = {p.name for p in op.schema.parameters if p.variadic}
    for name, value in zip(parameter_names(op, len(sample.args)), sample.args):
        given[name] = (*given.get(name, ()), value) if name in variadic else value
    return {**given, **dict(sample.kwargs)}


def takes_tensors(op: Record, p: Parameter) -> bool:
    """Return whether a parameter's tensors are operands, and not indices or masks.

    The kind of the parameter decides. If the annotation of a public callable only says that it is a plain value, they
    are operands.
    """
    return p.kind in DIFFERENTIABLE or (p.kind == PLAIN and isinstance(op, CallableRecord))
