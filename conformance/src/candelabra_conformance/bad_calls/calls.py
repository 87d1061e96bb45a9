"""The bad calls: for each public function, a sample that works, with one argument spoilt."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

import candelabra as cd
from candelabra.dtypes import BY_NAME
from candelabra.library import Operator, OverloadSet, Parameter, PublicCallable, entries, title_of

from candelabra_conformance.bad_calls.spoiling import spoilt
from candelabra_conformance.records import CallableRecord, Record, arguments_of
from candelabra_conformance.samples.gather import gathered
from candelabra_conformance.samples.registry import defined
from candelabra_conformance.samples.sample import ORDINARY, Sample
from candelabra_conformance.taking import refused

DTYPES: Final = ("float32", "int64", "bool", "complex64")
"""The samples are those of the first of these dtypes that has any."""
SAMPLES: Final = 8
"""The number of samples of a member among which one that passes a parameter is searched."""
WRITING_FILES: Final = ("save", "load", "from_file")
"""Functions that are not called: a spoilt argument could name a file."""


class BadCall(NamedTuple):
    """``function(*args, **kwargs)`` of which one argument is spoilt, in the form of a sample (arrays for tensors)."""

    name: str
    """The public name: ``linalg.inv``, ``Tensor.add_``."""
    parameter: str
    code: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    base: tuple[tuple[Any, ...], dict[str, Any]]
    """The arguments of the call that works."""

    @property
    def id(self) -> str:
        return f"{self.name}/{self.parameter}/{self.code}"


class Target(NamedTuple):
    """A public function with the objects that have samples and parameters for it."""

    name: str
    members: tuple[tuple[Record, tuple[Parameter, ...]], ...]


@cache
def targets() -> dict[str, Target]:
    """Return every public function, and every in-place method, by name."""
    found: dict[str, Target] = {}
    for entry in sorted(entries(), key=title_of):
        if entry.is_property or not entry.public or entry.public_name in WRITING_FILES:
            continue
        members = members_of(entry)
        title = title_of(entry)
        found[title] = Target(title, members)
        for method, form in entry.methods().items():
            if form == "inplace" and method.removesuffix("_") == entry.name:
                found[f"Tensor.{method}"] = Target(f"Tensor.{method}", members)
    return found


def members_of(entry: Any) -> tuple[tuple[Record, tuple[Parameter, ...]], ...]:
    """Return (record, parameters) of an entry or, for an overload set, of each of its members."""
    if isinstance(entry, OverloadSet):
        return tuple((_record(member), parameters) for member, parameters in entry.members)
    parameters = entry.schema.parameters if isinstance(entry, Operator) else entry.parameters
    return ((_record(entry), parameters),)


def _record(entry: Any) -> Record:
    return CallableRecord(entry) if isinstance(entry, PublicCallable) else entry


def names_called() -> list[str]:
    """Return the names of all functions, in order."""
    return sorted(targets())


def function_named(name: str, library: Any = cd) -> Any:
    """Return the function of a dotted name in candelabra, or in a library with the same names; None without one."""
    found = library
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def bad_calls(name: str) -> Iterator[BadCall]:
    """Yield the bad calls of a public function. An id occurs once, with the first member that has the parameter."""
    seen: set[tuple[str, str]] = set()
    for record, parameters in targets()[name].members:
        samples = samples_of(record)
        for p in parameters[name.startswith("Tensor.") :]:  # the tensor of a method is one
            base = next((s for s in samples if p.name in arguments_of(record, s)), samples[0] if samples else None)
            if base is None:
                continue
            for call in _spoilt_calls(name, record, p, base):
                if (p.name, call.code) not in seen:
                    seen.add((p.name, call.code))
                    yield call


def samples_of(record: Record) -> list[Sample]:
    """Return a few ordinary samples of a record."""
    for d in DTYPES:
        if refused(record, BY_NAME[d]) is None and defined(record.name, BY_NAME[d]):
            found = []
            for each in gathered(record, BY_NAME[d], "inputs"):
                if each.kind == ORDINARY:
                    found.append(each)
                if len(found) == SAMPLES:
                    break
            if found:
                return found
    return []


def _spoilt_calls(name: str, record: Record, p: Parameter, base: Sample) -> Iterator[BadCall]:
    names = [q.name for q in record.schema.parameters]
    given = arguments_of(record, base)
    original = given.get(p.name, ...)
    whole = (base.args, dict(base.kwargs))
    for code, value in spoilt(p, original):
        args, kwargs = list(base.args), dict(base.kwargs)
        position = names.index(p.name)
        if p.variadic and p.name not in kwargs:
            args[position:] = [value]
        elif position < len(args):
            args[position] = value
        elif p.variadic:
            continue
        else:
            kwargs[p.name] = value
        yield BadCall(name, p.name, code, tuple(args), kwargs, whole)
