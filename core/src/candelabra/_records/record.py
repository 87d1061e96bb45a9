"""One operator, one record.

``@operator(rule, …)`` turns a typed function into an :class:`Operator`: signature = schema, docstring = documentation,
body = decomposition into other operators (``...`` for a primitive). Everything else — the function and the method that
users call, in-place and ``out=`` forms, dispatch tables, graph nodes — is computed from the record, at first use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from candelabra import _journal as journal
from candelabra._annotations import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar
from candelabra._invalidation import KEEPERS
from candelabra._namespace.index import OPERATORS_IN, Declared
from candelabra._records.derivative import Rule, checked_rules
from candelabra._records.promotion import Promotion, common, same
from candelabra._records.registry import Signature, add, dotted, method_names
from candelabra._records.schema import Schema, read_schema
from candelabra.dtypes import dtype

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")

OPERATORS: Final[Declared[Operator[..., Any]]] = Declared()
"""Every operator by name. Filled by the declarations, when a name of theirs is asked for, and by plugins."""

ShapeRule = Callable[..., Any]
"""Called with the operator and its canonical arguments; returns the shape of the result (a tuple of shapes for several
outputs), or raises what is wrong in the user's words. A rule looks at shapes, dtypes and plain arguments only, never at
values: it runs when a kernel has failed, and for tensors without data."""


class DispatchTable(dict[int, Callable[..., Any]]):
    """``{key: bound function}``. A miss asks the resolver once; the whole key is the cache key."""

    __slots__ = ("operator", "inplace")

    def __init__(self, operator: Operator[..., Any], inplace: bool) -> None:
        self.operator = operator
        self.inplace = inplace

    def __missing__(self, key: int) -> Callable[..., Any]:
        from candelabra._dispatch.resolve import resolve

        generation = self.operator.generation
        found = self[key] = resolve(self.operator, key, self.inplace)
        if self.operator.generation != generation:  # a kernel came meanwhile: what was found may be the old one
            self.pop(key, None)
        return found


class Operator(Generic[P, R]):
    """The record. Callable, though what users call is :attr:`function`, compiled at first use."""

    def __init__(
        self,
        function: Callable[..., Any],
        rule: ShapeRule,
        *,
        name: str | None = None,
        check: Callable[..., None] | None = None,
        promote: Promotion = common,
        result: Callable[[dtype], dtype] | tuple[Callable[[dtype], dtype], ...] = same,
        accepts: str | None = None,
        view: bool | Callable[..., Any] = False,
        inplace: bool | str | None = None,
        out: bool | str | None = None,
        is_function: bool = True,
        method: bool | str = True,
        is_property: bool = False,
        random: bool = False,
        data_dependent: bool = False,
        public: bool = True,
        namespace: str = "",
        aliases: tuple[str, ...] = (),
    ) -> None:
        self.name: Final = function.__name__.rstrip("_") if name is None else name
        self.title = self.name
        """What errors call the operator: its name, or the public name of the overload set that it is a member of."""
        self.doc: Final = function.__doc__ or ""
        self.schema: Final[Schema] = read_schema(function)
        self.declared: Final = function
        self.declared_in: Final = function.__module__
        self.body: Final = None if _is_primitive(function) else function
        self.rule: Final = rule
        self.check: Final = check
        """Called with the operator's arguments when a kernel, or the body of a composite, has failed and the rule found
        nothing: looks at values, which the rule may not, and raises what is wrong with them."""
        self.promote: Final = promote
        self.results: Final = result if isinstance(result, tuple) else (result,) * len(self.schema.outputs)
        self.accepts: Final = accepts
        self.view: Final = bool(view)
        """Whether the result always shows the memory of the first tensor. Its in-place form, if there is one, changes
        the tensor's shape and strides over the same memory."""
        self.geometry: Final = view if callable(view) else None
        """Of a view: ``(shape, strides, offset, *arguments) -> (shape, strides, offset)`` on strided memory."""
        pointwise = getattr(rule, "pointwise", False)
        self.inplace: Final = pointwise if inplace is None else bool(inplace)
        self.inplace_argument: Final = inplace == "argument"
        """Whether the function has an argument ``inplace``, as PyTorch's activations have, and no in-place method."""
        has_out = self.schema.named("out") is None and self.schema.result is None and not view
        self.out: Final = has_out if out is None else out
        self.is_function = is_function
        self.method: Final = method if not namespace or isinstance(method, str) else False
        self.is_property = is_property
        self.random: Final = random
        self.data_dependent: Final = data_dependent
        self.public: Final = public
        self.namespace: Final = namespace
        self.public_name: Final = dotted(self.name, namespace)
        self.aliases: Final = aliases
        """Further public names, ``"arccos"`` or ``"special.expit"``; one without a dot is a method's name too."""
        self.rules: dict[tuple[str, ...], Rule] = {}
        self.not_differentiable: str | None = None
        self.scatter: Callable[..., Any] | None = None
        self.gather: Callable[..., Any] | None = None
        self.inplace_body: Callable[..., Any] | None = None
        self.generation = 0
        self.table: Final = DispatchTable(self, False)
        self.inplace_table: Final = DispatchTable(self, True)
        self.layers: Final[dict[int, Callable[..., Any]]] = {}
        self._functions: dict[str, Callable[..., Any]] = {}
        self.node_classes: Final[dict[Any, type]] = {}
        if not self.doc:
            raise TypeError(f"operator {self.name}: the docstring is its documentation and may not be missing")

    def vjp(self, *joint: Any, **rules: Callable[..., Any]) -> Operator[P, R]:
        """Declare derivatives: ``op.vjp(input=rule, other=rule)``, or jointly ``op.vjp(("x", "weight"), rule)``.

        A rule maps ``g``, the gradient of the output, to the gradient of an input. Its parameters are names of inputs,
        of outputs (``out``, or the fields of the NamedTuple), ``g`` or ``g_<field>``, ``<input>_spec``, and ``needs``
        in a joint rule. What it names is what is saved. Broadcasting is undone by the engine.
        """
        added = checked_rules(self, joint, rules)
        self.rules.update(added)
        self.node_classes.clear()
        self.not_differentiable = None
        return self

    def no_gradient(self, reason: str) -> Operator[P, R]:
        """Say aloud that the result does not carry a gradient, and why."""
        self.not_differentiable = reason
        return self

    def scattered(self, scatter: Callable[..., Any]) -> Operator[P, R]:
        """For a view: ``scatter(base, source, *arguments)`` is ``base`` with the viewed part replaced by ``source``."""
        self.scatter = scatter
        return self

    def gathered(self, gather: Callable[..., Any]) -> Operator[P, R]:
        """For a view that looks at strides: ``gather(g, *arguments)`` is what it shows of a gradient, which need not
        lie in memory as the tensor that was viewed did.
        """
        self.gather = gather
        return self

    def in_place(self, body: Callable[..., Tensor]) -> Operator[P, R]:
        """Give a composite an in-place form that is made of in-place operators.

        The form that the core makes of the functional one computes its result in new memory and copies it. ``body``
        takes the operator's parameters and returns the first; it writes nothing when it raises.
        """
        self.inplace_body = body
        return self

    def methods(self) -> dict[str, str]:
        """``{method of Tensor: form}``."""
        if not self.public:
            return {}
        functions = method_names(self.name, self.method, self.namespace, self.aliases)
        inplace = [*([] if self.namespace else [self.name]), *(alias for alias in self.aliases if "." not in alias)]
        has_methods = self.inplace and not self.inplace_argument
        return dict.fromkeys(functions, "function") | {f"{name}_": "inplace" for name in inplace if has_methods}

    def signatures(self) -> tuple[Signature, ...]:
        """The one signature."""
        result = self.schema.result
        return (Signature(self.schema.parameters, "Tensor" if result is None else result.__name__, self),)

    @property
    def differentiable(self) -> bool:
        return bool(self.rules)

    def form(self, kind: str) -> Callable[..., R]:
        """The compiled ``"function"``, ``"inplace"`` form, or an operator of the data model (``"__add__"``)."""
        try:
            return self._functions[kind]
        except KeyError:
            from candelabra._codegen.entry import compile_entry

            compiled = self._functions[kind] = compile_entry(self, kind)
            return compiled

    @cached_property
    def function(self) -> Callable[..., R]:
        """What users call."""
        return self.form("function")

    @cached_property
    def canonical(self) -> Callable[..., R]:
        """The same for arguments by position that are canonical already, as other operators' bodies have them."""
        return self.form("canonical")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    def clear(self) -> None:
        """Forget what was resolved: a kernel, a layer or a policy has changed."""
        self.generation += 1
        self.table.clear()
        self.inplace_table.clear()


def _nothing() -> None:
    """What the body of a primitive compiles to."""
    ...


def _is_primitive(function: Callable[..., Any]) -> bool:
    # By the instructions without their arguments: a docstring moves constants, and ``return input`` is as short.
    return function.__code__.co_code[::2] == _nothing.__code__.co_code[::2]


def operator(rule: ShapeRule, **options: Any) -> Callable[[Callable[P, R]], Operator[P, R]]:
    """Declare an operator; see :class:`Operator` for the options and the module's docstring for the idea.

    Raises ``ValueError`` when the name is taken: an operator has one record.
    """

    def declare(function: Callable[P, R]) -> Operator[P, R]:
        record: Operator[P, R] = Operator(function, rule, **options)
        if dict.__contains__(OPERATORS, record.name) or elsewhere(record.name, function.__module__):
            first = OPERATORS[record.name].declared.__module__
            raise ValueError(
                f"operator {record.name!r} is declared twice: first in {first}, now in {function.__module__}"
            )
        OPERATORS[record.name] = record
        journal.note(lambda: OPERATORS.pop(record.name, None))
        try:
            add(record)
        except ValueError:
            del OPERATORS[record.name]
            raise
        return record

    return declare


def elsewhere(name: str, module: str) -> bool:
    """Whether the index has the operator, not imported yet maybe, and a stranger's module wants its name."""
    return name in OPERATORS_IN and not module.startswith("candelabra.")


def forget_resolved() -> None:
    """Forget the resolved calls of every operator."""
    for record in list(OPERATORS.present().values()):
        record.clear()


KEEPERS.append(forget_resolved)
