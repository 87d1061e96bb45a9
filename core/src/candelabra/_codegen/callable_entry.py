"""The function of a public callable that users call: its declaration with the keywords that the grammar adds.

A handler describes errors by the arguments, and classes that handle public callables get the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen import arguments
from candelabra._codegen.entry import guarded_lines, named
from candelabra._codegen.fitting import check_types
from candelabra._codegen.parameters import (
    canonical_lines,
    flattened,
    keyword_lines,
    passed_on,
    plain_lines,
    signature_of,
)
from candelabra._codegen.source import build
from candelabra._dispatch.factories import factory_lines
from candelabra._dispatch.out import store
from candelabra._dispatch.refusing import passed_arguments, refuse
from candelabra._keys import NO_OVERRIDE, OVERRIDE, state
from candelabra._overrides import call_override, callables_in_use, takes_callables
from candelabra._records.registry import factory_keywords
from candelabra._records.schema import DTYPE, REQUIRED, SHAPE, Parameter
from candelabra._tensor import Tensor

if TYPE_CHECKING:
    from candelabra._records.callables import PublicCallable


def compile_callable(entry: PublicCallable) -> Callable[..., Any]:
    """Return the function of a public callable: the declared one, or a wrapper that serves the grammar's keywords."""
    parameters = list(entry.parameters)
    scope: dict[str, Any] = {
        "body": entry.declared, **{name: getattr(arguments, name) for name in arguments.__all__}
    }  # fmt: skip
    extra, lines = keyword_lines(parameters, scope, bool(entry.out), entry.title)
    if not (extra or entry.factory):
        return guarded(entry) if entry.guarded or (entry.is_function and entry.methods()) else entry.declared
    call = f"body({', '.join(passed_on(p) for p in parameters)})"
    lines += [f"{p.name} = as_sizes({p.name})" for p in parameters if flattened(p)] + plain_lines(parameters, scope)
    if entry.factory:
        extra += factory_keywords(entry)
        call = in_class_of(parameters[:1], call, scope)
        lines += canonical_lines([p for p in parameters if p.kind in (SHAPE, DTYPE) and not p.variadic])
        served = {p.name for p in parameters} | {keyword.partition("=")[0] for keyword in extra}
        lines += factory_lines(entry.title, call, served, scope)
    elif entry.out:
        scope["store"] = store
        inputs = ", ".join(p.name for p in parameters)
        lines += [
            f"if out is None: return {call}",
            f"return store({entry.title!r}, {call}, out, {entry.out == 'exact'}, ({inputs},))",
        ]
    else:
        lines.append(f"return {call}")
    lines = overriding_line(parameters, extra, entry, scope) + lines
    lines = guarded_lines(lines, entry, "", parameters, scope)
    function = build(entry.title, ", ".join(signature_of(parameters, scope, extra)), lines, scope, entry.title)
    return named(function, entry.title, entry.doc, entry.namespace)


def guarded(entry: PublicCallable) -> Callable[..., Any]:
    """Return the declared function with the handler of :func:`guarded_lines`, and a check of the arguments' types.

    The types of a call are checked once, as in the entry of an overload set; the values after a failure.
    """
    declared, parameters = entry.declared, entry.parameters
    checked: set[tuple[Any, ...]] = set()
    first = int(entry.is_function)  # a method's own tensor is not counted

    def call(*args: Any, **kwargs: Any) -> Any:
        types = (*map(type, args), *kwargs, *map(type, kwargs.values())) if kwargs else tuple(map(type, args))
        if types not in checked:
            if takes_callables((*args, *kwargs.values())):
                return call_override(call, (*args, *kwargs.values()), args, kwargs, Tensor)
            check_types(entry.title, parameters, passed_arguments(parameters, args, kwargs), first)
            if not state.bits & NO_OVERRIDE:
                checked.add(types)
        try:
            return declared(*args, **kwargs)
        except Exception as error:
            trace = error.__traceback__
            if trace is not None and trace.tb_next is not None:  # otherwise the arguments do not fit the signature
                refuse(entry.title, parameters, error, passed_arguments(parameters, args, kwargs), first)
            raise

    call.__wrapped__ = declared  # type: ignore[attr-defined]
    call.__annotations__ = declared.__annotations__
    return named(call, declared.__name__, entry.doc, entry.namespace)


def in_class_of(first: Sequence[Parameter], call: str, scope: dict[str, Any]) -> str:
    """Return the call of a factory such as ``zeros_like``, whose result gets the subclass of the first argument."""
    if not first or first[0].annotation != "Tensor":
        return call
    scope |= {"OVERRIDE": OVERRIDE, "as_class_of": arguments.as_class_of}
    n = first[0].name
    return f"({call} if not {n}._keys & OVERRIDE else as_class_of({n}, {call}))"


def overriding_line(
    parameters: Sequence[Parameter], extra: Sequence[str], entry: PublicCallable, scope: dict[str, Any]
) -> list[str]:
    """Return the line that passes a call to a class that handles public callables; see ``takes_callables``."""
    tensors = [p.name for p in parameters if "Tensor" in p.annotation and not p.variadic and not p.keyword_only]
    if not tensors:
        return []
    scope |= {"callables_in_use": callables_in_use, "takes_callables": takes_callables, "call_override": call_override}
    scope |= {"callable_entry": entry, "plain_class": Tensor}
    required = [p.name for p in parameters if p.default is REQUIRED and not p.keyword_only and not p.variadic]
    sizes = [f"*_{p.name}" for p in parameters if flattened(p)]
    given_first = "".join(f"{each}, " for each in [*required, *sizes])
    names = [p.name for p in parameters if p.name not in required and not flattened(p)]
    names += [text.partition("=")[0] for text in extra if f"*_{text.partition('=')[0]}" not in sizes]
    given = ", ".join(f"{name!r}: {name}" for name in names)
    values = f"({', '.join(tensors)},)"
    others = " or ".join(f"{name}.__class__ is not plain_class" for name in tensors)
    return [
        f"if callables_in_use and ({others}) and takes_callables({values}): "
        f"return call_override(callable_entry.compiled, {values}, ({given_first}), "
        f"{{name: value for name, value in {{{given}}}.items() if value is not None}}, plain_class)"
    ]
