"""Entries: the functions, methods and data-model operators that users call, generated from the schema.

An entry binds arguments (CPython does that in C), converts dims to their canonical form, ORs the tensors' keys with the
thread's mode bits, if any thread has one, and calls the function in the dispatch table. It avoids ``*args``, except for
variadic parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen import arguments
from candelabra._codegen.fitting import KINDS, check_types
from candelabra._codegen.source import build, indent
from candelabra._dispatch.factories import factory_lines
from candelabra._dispatch.out import store
from candelabra._dispatch.refusing import passed_arguments, passed_sizes, refuse
from candelabra._keys import NO_OVERRIDE, OVERRIDE, SCALAR_BITS, SCALAR_FIRST, active, state
from candelabra._overrides import call_override, callables_in_use, takes_callables
from candelabra._records.registry import factory_keywords
from candelabra._records.schema import (
    BOUND,
    CONVERTERS,
    DEVICE,
    DIM,
    DIMS,
    DTYPE,
    INDEX,
    INDICES,
    INT,
    LIST,
    MASK,
    OPERAND,
    OPTIONAL,
    PLAIN,
    REQUIRED,
    SHAPE,
    TENSOR,
    Parameter,
)  # fmt: skip
from candelabra._size import Size
from candelabra._tensor import Tensor
from candelabra.dtypes import DTYPE_MASK, bool_, int64

if TYPE_CHECKING:
    from candelabra._records.callables import PublicCallable
    from candelabra._records.overloads import OverloadSet
    from candelabra._records.record import Operator

KEY_MASK = ~DTYPE_MASK
ALIASES = {"dim": "axis", "keepdim": "keepdims"}
"""NumPy's names, which are accepted by keyword in addition to PyTorch's."""


def compile_entry(
    operator: Operator[..., Any], kind: str, choosing: tuple[OverloadSet, Callable[..., Any]] | None = None
) -> Callable[..., Any]:
    """Compile one form of an operator.

    The forms are ``"function"``, ``"inplace"``, ``"canonical"`` (all arguments by position and in canonical form), and
    those of Python's operators: ``"binary"`` (``__add__``), ``"reflected"`` (``__radd__``) and ``"assigned"``
    (``__iadd__``), which return NotImplemented for unknown types.

    ``choosing``: the overload set whose first member the operator is, and the entry that chooses among all members.
    """
    inplace = kind in ("inplace", "assigned")
    infix = kind in ("binary", "reflected", "assigned")
    canonical = kind == "canonical"
    parameters = list(operator.schema.parameters[:2] if infix else operator.schema.parameters)
    scope: dict[str, Any] = {
        "table": operator.inplace_table if inplace else operator.table, "state": state, "active": active,
        "Tensor": Tensor, "SCALAR_BITS": SCALAR_BITS, "SCALAR_FIRST": SCALAR_FIRST, "_op": operator,
        "KEY_MASK": KEY_MASK, **{name: getattr(arguments, name) for name in arguments.__all__},
    }  # fmt: skip
    names = [p.name for p in parameters]
    body: list[str] = []
    if infix or canonical:
        signature = names[::-1] if kind == "reflected" else names
    else:
        signature, body = head_lines(operator, parameters, kind, choosing, scope)
    itself = {"reflected": names[-1]}.get(kind, names[0]) if infix else None
    body += key_lines(parameters, operator, infix, itself, canonical, inplace)
    body += [] if canonical else plain_lines(parameters, scope) + canonical_lines(parameters)
    body.append(f"return table[key]({', '.join(names)})")
    entry = operator if choosing is None else choosing[0]
    title = entry.name + ("_" if inplace else "")
    if not canonical:
        body = guarded_lines(body, entry, "_" if inplace else "", parameters, scope, choosing is not None)
    function = build(title, ", ".join(signature), body, scope, title)
    doc = entry.doc if not inplace else f"In-place form of :func:`candelabra.{entry.name}`."
    return named(function, title, doc, entry.namespace)


def guarded_lines(
    body: list[str],
    entry: Any,
    suffix: str,
    parameters: Sequence[Parameter],
    scope: dict[str, Any],
    choosing: bool = False,
) -> list[str]:
    """Return the lines of an entry with a handler that describes errors by the arguments; see ``refuse``.

    ``choosing``: the entry chooses among overloads; a variadic parameter has its own name there (``sizes_lines``).
    """
    scope |= {"refuse": refuse, "passed_sizes": passed_sizes, "PARAMETERS": tuple(parameters), "guarded": entry}
    values = [
        p.name if not flattened(p) else f"passed_sizes({p.name}, {'None' if choosing else '_' + p.name})"
        for p in parameters
    ]
    title = f"guarded.title + {suffix!r}" if suffix else "guarded.title"
    given = "".join(f"{value}, " for value in values)
    return [
        "try:", *indent(body), "except Exception as _error:",
        f"    refuse({title}, PARAMETERS, _error, ({given}){', chosen=True' if choosing else ''})", "    raise",
    ]  # fmt: skip


def head_lines(
    operator: Operator[..., Any],
    parameters: Sequence[Parameter],
    kind: str,
    choosing: tuple[OverloadSet, Callable[..., Any]] | None,
    scope: dict[str, Any],
) -> tuple[list[str], list[str]]:
    """Return the parameter list of a function or in-place form, and the lines for arguments outside the schema."""
    names = [p.name for p in parameters]
    added: list[Parameter] = []
    optional: set[str] = set()
    if choosing is not None:
        scope["choosing"] = choosing[1]
        if flattened(parameters[-1]):
            return sizes_lines(names, scope)
    out = bool(operator.out and kind != "inplace")
    extra, lines = keyword_lines(parameters, scope, out, operator.name)
    if choosing is not None:
        added, others, optional = other_lines(choosing[0], parameters, kind, out, scope)
        lines += others
    if out:
        lines.append(f"if out is not None: return write_out(_op, out, ({', '.join(names)},))")
    shown = sorted([*parameters, *added], key=lambda p: p.keyword_only)
    signature = signature_of(shown, scope, extra, optional)
    factors = factors_of(shown)
    if factors:
        # PyTorch's arguments of before 1.5, `add_(2, x)`: the factors of a sum come before the tensors.
        scope |= {"number_first": arguments.number_first, "entry": operator if choosing is None else choosing[0]}
        signature[signature.index("*")] = "*_more"
        passed = [p.name for p in shown if not p.keyword_only]
        values = f"({', '.join(passed)}, *_more)"
        lines.insert(0, f"if _more: return number_first(entry, {kind!r}, {factors!r}, {len(passed)}, {values})")
    if operator.inplace_argument and kind == "function":
        scope["form"] = operator.form
        signature.insert(signature.index("*") if "*" in signature else len(signature), "inplace=False")
        lines.insert(0, f"if inplace: return form('inplace')({', '.join(passed_by_name(p) for p in parameters)})")
    return signature, lines


def factors_of(parameters: Sequence[Parameter]) -> tuple[str, ...]:
    """Return the names of the factors of a sum, ``alpha``, ``beta`` or ``value``, if all else is tensors."""
    factors = tuple([p.name for p in parameters if p.keyword_only])
    tensors = all(p.kind in (TENSOR, OPERAND) for p in parameters if not p.keyword_only)
    return factors if tensors and factors and set(factors) <= {"alpha", "beta", "value"} else ()


def sizes_lines(names: list[str], scope: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the same as :func:`head_lines` for a first member whose last parameter is a variadic size.

    The set's own entry serves calls with keywords and with other values than sizes (``x.view(dtype)``).
    """
    *first, last = names
    scope["SIZES"] = (int, tuple, list, Size)
    other = f"_named or ({last} and type({last}[0]) not in SIZES)"
    lines = [f"if {other}: return choosing({', '.join(first)}, *{last}, **_named)"]
    return [*first, f"*{last}", "**_named"], lines


def other_lines(
    overload_set: OverloadSet, parameters: Sequence[Parameter], kind: str, out: bool, scope: dict[str, Any]
) -> tuple[list[Parameter], list[str], set[str]]:
    """Return what the other overloads add to an entry: parameters, lines at its head, and optional parameters.

    None for a parameter that only one overload has means that it is omitted.
    """
    shared = [p.name for p in parameters if not p.keyword_only]
    added: dict[str, Parameter] = {}
    lines: list[str] = []
    shortest = len(shared)
    for number, (member, accepted) in enumerate(overload_set.members[1:]):
        own = accepted[len(shared) :]
        if own:
            scope[f"other_{number}"] = member.form(kind)
            added |= {p.name: p._replace(default=None) for p in own}
            passed = [*shared, *(f"{p.name}={p.name}" for p in own), *(["out=out"] if out else [])]
            present = " or ".join(f"{p.name} is not None" for p in own)
            lines.append(f"if {present}: return other_{number}({', '.join(passed)})")
        else:
            shortest = min(shortest, len(accepted))
    optional = shared[shortest:]
    if optional:
        scope |= {"present_arguments": arguments.present_arguments, "REQUIRED": REQUIRED}
        absent = " or ".join(f"{name} is REQUIRED" for name in optional)
        passed = [f"{name}={name}" for name in [*shared, *(["out"] if out else [])]]
        lines.append(f"if {absent}: return choosing(**present_arguments({', '.join(passed)}))")
    return list(added.values()), lines, set(optional)


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


def flattened(p: Parameter) -> bool:
    """Return whether a variadic parameter accepts one sequence: sizes and dims do, other values do not."""
    return p.variadic and (p.kind in (SHAPE, DIMS) or p.annotation in CONVERTERS)


def passed_by_name(p: Parameter) -> str:
    """The text that passes a parameter on to another form of the same operator."""
    return f"{p.name}={p.name}" if p.keyword_only else p.name


def passed_on(p: Parameter) -> str:
    """Return the expression that passes a parameter to the declared function."""
    return f"*{p.name}" if p.variadic else f"{p.name}={p.name}" if p.keyword_only else p.name


def named(function: Callable[..., Any], title: str, doc: str, namespace: str = "") -> Callable[..., Any]:
    """Set the name, documentation and public module of a generated function, by which pickle finds it; return it."""
    function.__doc__ = doc
    function.__name__ = function.__qualname__ = title
    function.__module__ = f"candelabra.{namespace}" if namespace else "candelabra"
    return function


def aliased(parameters: Sequence[Parameter]) -> list[str]:
    """Return the required parameters that may be passed by an alias: no other required one follows them."""
    found: list[str] = []
    for p in reversed([p for p in parameters if not p.keyword_only and not p.variadic]):
        if p.default is REQUIRED and p.name not in ALIASES:
            break
        if p.default is REQUIRED:
            found.append(p.name)
    return found


UNLESS_CANONICAL = {
    "ExpandedShape": "if {0} and min({0}) < 0: ",
    "InferredShape": "if {0} and min({0}) < 0: ",
}
"""The conditions under which an argument may not be canonical and its converter must be called."""


def keyword_lines(
    parameters: Sequence[Parameter], scope: dict[str, Any], out: bool, title: str
) -> tuple[list[str], list[str]]:
    """Return the keywords that the grammar adds, and the lines that serve all of them except ``out``.

    They are ``out``, ``axis``, ``keepdims`` and the name of a variadic parameter.
    """
    names = [p.name for p in parameters]
    extra = ["out=None"] if out else []
    lines = []
    for name, alias in ALIASES.items():
        if name in names and alias not in names:
            extra.append(f"{alias}=None")
            lines.append(f"if {alias} is not None: {name} = {alias}")
            if name in aliased(parameters):
                scope["REQUIRED"], scope["missing"] = REQUIRED, arguments.missing
                lines.append(f"elif {name} is REQUIRED: raise missing({title!r}, {name!r})")
    for p in parameters:
        if flattened(p):
            extra.append(f"{p.name}=None")
            lines.append(f"{p.name} = _{p.name} if {p.name} is None else ({p.name},)")
    return extra, lines


def signature_of(
    parameters: Sequence[Parameter], scope: dict[str, Any], extra: list[str], optional: Collection[str] = ()
) -> list[str]:
    """Return the parameter list as text. Defaults are bound in ``scope``; those in ``optional`` get one too."""
    signature: list[str] = []
    starred = False
    for p in parameters:
        if p.variadic:
            signature.append(f"*_{p.name}" if flattened(p) else f"*{p.name}")
            starred = True
            continue
        if p.keyword_only and not starred:
            signature.append("*")
            starred = True
        if p.default is REQUIRED and p.name not in aliased(parameters) and p.name not in optional:
            signature.append(p.name)
        else:
            scope[f"default_{p.name}"] = p.default
            signature.append(f"{p.name}=default_{p.name}")
    return signature + ([] if starred or not extra else ["*"]) + extra


def key_lines(
    parameters: list[Parameter],
    operator: Operator[..., Any],
    infix: bool = False,
    itself: str | None = None,
    canonical: bool = False,
    inplace: bool = False,
) -> list[str]:
    """Return the lines that compute ``key``. An invalid argument raises an error that names operator and argument.

    ``itself`` is the ``self`` of Python's operators, always a tensor. ``canonical``: lists contain only tensors.
    """
    terms: list[str] = []
    lines: list[str] = []
    first_operand = next((p.name for p in parameters if p.kind == OPERAND), None)
    late: list[str] = []
    for p in parameters:
        n = p.name
        if p.kind == TENSOR or n == itself:
            terms.append(f"{n}._keys")
        elif p.kind == OPERAND:
            lines += operand_lines(n, n == first_operand, infix)
            terms.append(f"_k_{n}")
        elif p.kind == BOUND:
            late += [
                f"_t = type({n})",
                f"if _t is Tensor: key |= {n}._keys",
                f"elif {n} is not None and _t not in SCALAR_BITS: {n}, _k = as_bound(_op, {n!r}, {n}); key |= _k",
            ]
        elif p.kind == OPTIONAL:
            late += [f"if {n} is not None: key |= {n}._keys"]
        elif p.kind == LIST:
            convert = "as_joined_tensors" if p.annotation == "JoinedTensors" else "as_tensors"
            lines += [] if canonical else [f"{n} = {convert}(_op, {n!r}, {n})"]
            late += [f"for _t in {n}: key |= _t._keys"]
        elif p.kind in (INDEX, MASK):
            bit = (int64 if p.kind == INDEX else bool_).bit
            converter = "as_bool_mask" if p.annotation == "BoolMask" else f"as_{p.kind}"
            convert = f"if type({n}) is not Tensor or not {n}._keys & {bit}: {n} = {converter}(_op, {n!r}, {n})"
            if p.optional:
                late += [f"if {n} is not None:", f"    {convert}", f"    key |= {n}._keys & KEY_MASK"]
            else:
                lines.append(convert)
                terms.append(f"{n}._keys & KEY_MASK")
        elif p.kind == INDICES:
            lines += [f"{n} = as_indices(_op, {n!r}, {n})"]
            late += [f"for _t in {n}:", "    if _t is not None: key |= _t._keys & KEY_MASK"]
        elif p.kind == DEVICE and p.name == "device":
            late += ["device = as_device(device)", "key |= device.bit"]
    tensors = [p.name for p in parameters if p.kind in (TENSOR, OPTIONAL, LIST, INDEX, MASK)]
    mode = ["if active: key |= state.bits"] if terms else []
    lookup = [f"key = {' | '.join(terms) or 'state.bits'}", *mode, *late]
    if tensors:
        rest = ", ".join(f"{p.name}={p.name}" for p in parameters)
        kind = "inplace" if inplace else "function"
        lookup = [
            "try:",
            *("    " + line for line in lookup),
            "except AttributeError:",
            f"    return handle_arguments(_op, {kind!r}, dict({rest}))"
            if infix
            else f"    return not_tensors(_op, {kind!r}, {rest})",
        ]
    return lines + lookup


def operand_lines(n: str, first: bool, infix: bool) -> list[str]:
    """Return the lines that compute the key bits of an operand, a tensor or number. ``first``: it is the first one."""
    convert = "maybe_operand" if infix else "as_operand"
    return [
        f"_t = type({n})",
        f"if _t is Tensor: _k_{n} = {n}._keys",
        f"elif (_k_{n} := SCALAR_BITS.get(_t)) is not None: {f'_k_{n} |= SCALAR_FIRST' if first else 'pass'}",
        f"elif (_k_{n} := getattr({n}, '_keys', None)) is None:",  # otherwise a subclass of Tensor, as parameters are
        f"    {n}, _k_{n} = {convert}(_op, {n!r}, {n}, {first})",
        *([f"    if _k_{n} is None: return NotImplemented"] if infix else []),
    ]


def plain_lines(parameters: Sequence[Parameter], scope: dict[str, Any]) -> list[str]:
    """Return the lines that refuse plain values of another type, such as ``keepdim="False"``.

    Most arguments are the default itself or exactly of the type, which costs a comparison.
    """
    lines = []
    for p in parameters:
        words = p.annotation.removesuffix(" | None").split(" | ") if p.kind == PLAIN and not p.variadic else [""]
        if not all(word in KINDS and KINDS[word].plain for word in words):
            continue
        types = tuple([t for word in words for t in KINDS[word].plain])
        n = p.name
        if types == (bool,):
            test = f"{n} is not False and {n} is not True"
        else:
            scope[f"types_of_{n}"] = frozenset(types)
            test = f"type({n}) not in types_of_{n}"
            if p.default is not REQUIRED:
                scope[f"plain_{n}"] = p.default
                test = f"{n} is not plain_{n} and {test}"
        if p.optional and (p.default is not None or types == (bool,)):
            test = f"{n} is not None and {test}"
        scope |= {"check_types": check_types, f"parameter_{n}": (p,)}
        position = [q.name for q in parameters].index(n) + 1
        lines.append(f"if {test}: check_types(guarded.title, parameter_{n}, ({n},), {position})")
    return lines


def canonical_lines(parameters: Sequence[Parameter]) -> list[str]:
    """Return the lines that convert dims, shapes, dtypes and similar arguments to their canonical form."""
    lines = []
    first = next((p.name for p in parameters if p.kind in (TENSOR, OPERAND, LIST)), "None")
    source = f"{first}[0]" if any(p.kind == LIST and p.name == first for p in parameters) else first
    if any(p.kind == DIM for p in parameters):
        lines.append(f"_rank = len({source}._payload.shape)" if source != "None" else "_rank = 0")
    for p in parameters:
        n = p.name
        if flattened(p) or p.annotation in ("ExpandedShape", "InferredShape"):
            lines.append(f"{n} = as_sizes({n})" if p.variadic else f"{n} = as_sizes(({n},))")
        if p.kind == DIM:
            # Most dims are canonical already, and two comparisons are faster than two calls.
            absent = f"{n} is not None and " if p.optional else ""
            lines.append(f"if {absent}(type({n}) is not int or not 0 <= {n} < _rank): {n} = as_dim({n}, {source})")
        elif p.kind == DIMS:
            lines.append(f"if {n} is not None: {n} = as_dims({n}, {source})")
        elif p.kind == SHAPE and not p.variadic:
            lines.append(f"{n} = as_shape({n})")
        elif p.kind == INT:
            lines.append(f"if type({n}) is not int: {n} = as_integer({n}, {n!r})")
        elif p.kind == DTYPE:
            lines.append(f"if {n} is not None: {n} = as_dtype({n})")
        elif p.annotation.removesuffix(" | None") in CONVERTERS:
            unless = f"if {n} is not None: " if p.optional else UNLESS_CANONICAL.get(p.annotation, "").format(n)
            lines.append(f"{unless}{n} = {CONVERTERS[p.annotation.removesuffix(' | None')]}({n}, {source})")
    return lines
