"""What the suite tests: operators' records, overload sets and public callables, each under one name.

A record is tested under its own name. An overload set and a public callable are tested under their public name, ``max``
or ``linalg.svd``, and what is a method only under ``Tensor.to``.
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

from candelabra_conformance.samples.registry import DRAWS
from candelabra_conformance.samples.sample import Sample

ASSIGNING: Final = ("Tensor.__setitem__",)
"""Public callables that write into their first argument and return None."""


def returning_its_target(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that writes into its first argument, so that it returns this argument."""

    def assign(target: Any, *args: Any, **kwargs: Any) -> Any:
        function(target, *args, **kwargs)
        return target

    return assign


class CallableRecord:
    """A public callable in the form of a record: a name, a schema and a function, which the properties look at."""

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
        """Whether it writes into its first argument, and what that holds is the result: ``Tensor.uniform_``."""
        return self.assigns or (self.name.endswith("_") and not self.name.endswith("__"))

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers. Its calls are seeded."""
        return self.schema.named("generator") is not None or self.name in DRAWS

    def form(self, kind: str) -> Callable[..., Any]:
        """The function: a public callable has no other form."""
        return self.function


Record = Operator[..., Any] | CallableRecord
"""What has samples of its own."""


class UnknownNameError(ValueError):
    """A name that is neither an operator's nor a public one."""


def everything_named(name: str) -> list[Record | OverloadSet]:
    """What is tested under a name, an alias, or an operator's public name.

    A record and the overload set that it is a member of may have the same name. ``UnknownNameError`` where there is
    nothing of that name.
    """
    found: list[Record | OverloadSet] = [OPERATORS[name]] if name in OPERATORS else []
    entry: Any = entry_named(name)
    if isinstance(entry, (Operator, OverloadSet)):
        found += [entry] if entry not in found else []
    elif isinstance(entry, PublicCallable) and title_of(entry) not in OPERATORS:
        found.append(CallableRecord(entry))
    if not found:
        found += [each for each in callable_members() if each.name == name]
    if not found:
        raise UnknownNameError(f"there is no operator and no public name {name!r}")
    return found


def everything_tested() -> list[Record | OverloadSet]:
    """Every record, overload set and public callable."""
    found: list[Record | OverloadSet] = [OPERATORS[name] for name in sorted(OPERATORS)]
    public = sorted(entries(), key=title_of)
    found += [entry for entry in public if isinstance(entry, OverloadSet)]
    callables = [CallableRecord(entry) for entry in public if isinstance(entry, PublicCallable)]
    return [*found, *(each for each in callables if each.name not in OPERATORS), *callable_members()]


def callable_members() -> Iterator[CallableRecord]:
    """The members of overload sets that are no records. They have no public name of their own."""
    for member, _ in members_and_sets():
        yield CallableRecord(member)


def members_and_sets() -> Iterator[tuple[PublicCallable, OverloadSet]]:
    """Each of these members with its set."""
    for entry in entries():
        if isinstance(entry, OverloadSet):
            for member, _ in entry.members:
                if isinstance(member, PublicCallable) and entry_named(member.public_name) is not member:
                    yield member, entry


def set_of(record: CallableRecord) -> OverloadSet | None:
    """The overload set by which users call something that has no public name; None where there is no such set."""
    return next((found for member, found in members_and_sets() if member is record.entry), None)


def name_of(tested: Record | OverloadSet) -> str:
    """The name under which something is tested."""
    return title_of(tested) if isinstance(tested, OverloadSet) else tested.name


# -- arguments --------------------------------------------------------------------------------------------------------
def parameter_names(op: Record, count: int) -> list[str]:
    """The parameter that each of ``count`` positional arguments belongs to; several may belong to a variadic one."""
    names = [p.name for p in op.schema.parameters]
    variadic = next((i for i, p in enumerate(op.schema.parameters) if p.variadic), None)
    if variadic is not None:
        names[variadic + 1 :] = [names[variadic]] * (count - variadic - 1)
    return names[:count]


def arguments_of(op: Record, found: Sample) -> dict[str, Any]:
    """A sample's arguments by parameter; a tuple for a variadic one."""
    given: dict[str, Any] = {}
    variadic = {p.name for p in op.schema.parameters if p.variadic}
    for name, value in zip(parameter_names(op, len(found.args)), found.args):
        given[name] = (*given.get(name, ()), value) if name in variadic else value
    return {**given, **dict(found.kwargs)}


def takes_tensors(op: Record, p: Parameter) -> bool:
    """Whether a parameter's tensors are computed with, and are no indices or masks: by its kind, or, where the
    annotation of a public callable says no more than that it is a plain value, always."""
    return p.kind in DIFFERENTIABLE or (p.kind == PLAIN and isinstance(op, CallableRecord))
