"""The text of an entry's parameters: the signature, and the lines that compute the key and the canonical arguments."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen import arguments
from candelabra._codegen.fitting import KINDS, check_types
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
from candelabra.dtypes import bool_, int64

if TYPE_CHECKING:
    from candelabra._records.record import Operator

ALIASES = {"dim": "axis", "keepdim": "keepdims"}
"""NumPy's names, which are accepted by keyword in addition to PyTorch's."""


def flattened(p: Parameter) -> bool:
    """Return whether a variadic parameter accepts one sequence: sizes and dims do, other values do not."""
    return p.variadic and (p.kind in (SHAPE, DIMS) or p.annotation in CONVERTERS)


def passed_by_name(p: Parameter) -> str:
    """The text that passes a parameter on to another form of the same operator."""
    return f"{p.name}={p.name}" if p.keyword_only else p.name


def passed_on(p: Parameter) -> str:
    """Return the expression that passes a parameter to the declared function."""
    return f"*{p.name}" if p.variadic else f"{p.name}={p.name}" if p.keyword_only else p.name


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
