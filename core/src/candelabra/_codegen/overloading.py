"""The entry of an overload set, which selects a member by the arguments of a call.

If the presence of arguments decides (``add`` with and without ``alpha``), the entry is the first member's own, with a
comparison for each of the others' keywords. Otherwise the types of the arguments decide. The decision is cached by the
types, so a call costs one tuple and one dict lookup. The first call with new types tries the overloads in order, as
PyTorch's argument parser does.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import kind_of
from candelabra._codegen.entry import compile_entry, named
from candelabra._codegen.fitting import fits
from candelabra._codegen.parameters import ALIASES, flattened
from candelabra._overrides import call_override, participates
from candelabra._records.record import Operator
from candelabra._records.registry import factory_keywords
from candelabra._records.schema import PLAIN, REQUIRED, Parameter
from candelabra._tensor import Tensor

if TYPE_CHECKING:
    from candelabra._records.overloads import OverloadSet

Choice = Callable[..., Any]


def compile_overloads(overload_set: OverloadSet, kind: str) -> Choice:
    """Compile one form of an overload set."""
    if len(overload_set.members) == 1:
        only, parameters = overload_set.members[0]
        if not isinstance(only, Operator) and parameters == only.parameters:  # no choice is necessary
            return only.form(kind)  # type: ignore[no-any-return]
    entry = choosing_entry(overload_set, kind)
    (plain, accepted), *others = overload_set.members
    if not isinstance(plain, Operator) or accepted != plain.schema.parameters:
        return entry
    if flattened(accepted[-1]):
        return compile_entry(plain, kind, (overload_set, entry)) if kind == "function" else entry
    if not all(is_distinguished_by_presence(plain, member, parameters, kind) for member, parameters in others):
        return entry
    return compile_entry(plain, kind, (overload_set, entry))


def is_distinguished_by_presence(
    plain: Operator[..., Any], member: Any, parameters: tuple[Parameter, ...], kind: str
) -> bool:
    """Return whether the presence of arguments distinguishes a member from the first one.

    That holds if the member accepts fewer of the first one's positional parameters, all of them required, or all of
    them and some of its own, which are None if omitted.
    """
    shared = plain.schema.parameters
    if any(p.keyword_only or p.variadic for p in shared):
        return False
    same = [p for p, q in zip(parameters, shared, strict=False) if p.name == q.name and not p.keyword_only]
    if [p.name for p in same] != [p.name for p in shared[: len(same)]]:
        return False
    own = parameters[len(same) :]
    if len(same) < len(shared):
        return not own and kind == "function" and all(p.default is REQUIRED for p in shared[len(same) :])
    return all(
        p.name not in ALIASES
        and not p.variadic
        and p.default in (None, REQUIRED)
        and plain.schema.named(p.name) is None
        for p in own
    ) and (kind == "inplace" or has_out(member) == has_out(plain))


def choosing_entry(overload_set: OverloadSet, kind: str) -> Choice:
    """Return the entry that decides by the types of the arguments."""
    choices: dict[tuple[Any, ...], Choice] = {}

    def entry(*args: Any, **kwargs: Any) -> Any:
        types = (*map(type, args), *kwargs, *map(type, kwargs.values())) if kwargs else tuple(map(type, args))
        choice = choices.get(types)
        if choice is None:
            choice = choices[types] = choose(overload_set, kind, args, kwargs)
        return choice(*args, **kwargs)

    doc = overload_set.doc if kind != "inplace" else f"In-place form of :func:`candelabra.{overload_set.name}`."
    return named(entry, overload_set.name + "_" * (kind == "inplace"), doc, overload_set.namespace)


def choose(overload_set: OverloadSet, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Choice:
    """Return the form of the member that serves a call.

    If none fits, but exactly one member takes this number of arguments with these names, that member raises its own
    error. Otherwise ``TypeError`` lists the overloads.
    """
    try:
        chosen: Choice = member_for(overload_set, args, kwargs).form(kind)
    except TypeError:
        if not any(participates(type(value)) and not isinstance(value, Tensor) for value in (*args, *kwargs.values())):
            raise
        function = overload_set.form(kind)
        return lambda *args, **kwargs: call_override(function, (*args, *kwargs.values()), args, kwargs, Tensor)
    return chosen


def member_for(overload_set: OverloadSet, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the member that serves a call; see :func:`choose`."""
    bound = [
        (member, found)
        for member, parameters in overload_set.members
        if (found := bind(accepted(member, parameters), args, kwargs, has_out(member))) is not None
    ]
    for member, found in bound:
        if all(p.name == "out" or fits(p, value) for p, value in found):
            return member
    if len(bound) == 1:
        return bound[0][0]
    given = ", ".join([kind_of(a) for a in args] + [f"{name}={kind_of(v)}" for name, v in kwargs.items()])
    expected = "".join(f"\n * {signature}" for signature in overload_set.signatures())
    raise TypeError(
        f"{overload_set.name}() received an invalid combination of arguments - got ({given}), but expected one of:"
        + expected
    )


OUT = Parameter("out", "optional", "Tensor | None", None, True)


def has_out(member: Any) -> bool:
    """Return whether a member has an ``out=`` form."""
    return bool(getattr(member, "out", False)) or "out=None" in added_keywords(member)


def added_keywords(member: Any) -> list[str]:
    """Return the keywords that the grammar adds to a member that is a factory."""
    return factory_keywords(member) if getattr(member, "factory", False) else []


def accepted(member: Any, parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """Return the parameters of an overload, with the keywords that the grammar adds to those of a factory."""
    names = [keyword.partition("=")[0] for keyword in added_keywords(member)]
    return (*parameters, *[Parameter(name, PLAIN, "Any", None, True) for name in names if name != "out"])


def bind(
    parameters: tuple[Parameter, ...], args: tuple[Any, ...], kwargs: dict[str, Any], out: bool
) -> list[tuple[Parameter, Any]] | None:
    """Return (parameter, argument) for each argument of a call, or None if the call does not fit the overload."""
    positional = [p for p in parameters if not p.keyword_only]
    found: list[tuple[Parameter, Any]] = []
    if positional and positional[-1].variadic:
        rest = args[len(positional) - 1 :]
        found += zip(positional[:-1], args, strict=False)
        if rest:
            found.append((positional[-1], rest[0] if len(rest) == 1 else rest))
    elif len(args) > len(positional):
        return None
    else:
        found += zip(positional, args, strict=False)
    named = {p.name: p for p in parameters} | ({"out": OUT} if out else {})
    named |= {alias: named[name] for name, alias in ALIASES.items() if name in named and alias not in named}
    taken = {p.name for p, _ in found}
    for name, value in kwargs.items():
        p = named.get(name)
        if p is None or p.name in taken:
            return None
        found.append((p, value))
        taken.add(p.name)
    missing = [p for p in parameters if p.default is REQUIRED and not p.variadic and p.name not in taken]
    return None if missing else found
