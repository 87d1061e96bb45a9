"""One operator, one record.

``@operator(rule, …)`` turns a typed function into an :class:`Operator`: signature = schema, docstring = documentation,
body = decomposition into other operators (``...`` for a primitive). Everything else is computed from the record at the
first use: the function and the method that users call, in-place and ``out=`` forms, dispatch tables, graph nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from candelabra._annotations import Any, Final, Generic, ParamSpec, TypeVar
from candelabra._invalidation import KEEPERS
from candelabra._keys import TRACING
from candelabra._namespace.index import OPERATORS_IN, await_import, note
from candelabra._records.autocasting import Autocast, lists_of
from candelabra._records.derivative import Rule, checked_rules, checked_tangent
from candelabra._records.promotion import Promotion, common, same
from candelabra._records.registry import OPERATORS, Entry, Signature, add
from candelabra._records.schema import Schema, read_schema
from candelabra.dtypes import dtype

P = ParamSpec("P")
R = TypeVar("R")

ShapeRule = Callable[..., Any]
"""A function of the operator and its canonical arguments that returns the shape of the result (a tuple of shapes for
several outputs), or raises an error that describes invalid arguments in the user's terms. A rule reads shapes, dtypes
and plain arguments only, never values: it runs when a kernel has failed, and for tensors without data."""


class DispatchTable(dict[int, Callable[..., Any]]):
    """``{key: function}``, the cache of dispatch by the whole key. A miss calls the resolver once."""

    __slots__ = ("operator",)

    def __init__(self, operator: Operator[..., Any]) -> None:
        self.operator = operator

    def __missing__(self, key: int) -> Callable[..., Any]:
        generation = self.operator.generation
        found = self.resolve(key)
        if key & TRACING:
            from candelabra._dispatch.tracing import introducing

            found = introducing(found)
        self[key] = found
        if self.operator.generation != generation:  # a kernel was registered meanwhile, so the result may be outdated
            self.pop(key, None)
        return found

    def resolve(self, key: int) -> Callable[..., Any]:
        """Return the function that serves a key."""
        from candelabra._dispatch.resolve import resolution

        return resolution(self.operator, key).function


class InplaceTable(DispatchTable):
    """The table of the in-place form."""

    __slots__ = ()

    def resolve(self, key: int) -> Callable[..., Any]:
        from candelabra._dispatch.resolve import resolution

        return resolution(self.operator, key, inplace=True).function


class RowsTable(DispatchTable):
    """The table of the in-place form over rows of tensors."""

    __slots__ = ()

    def resolve(self, key: int) -> Callable[..., Any]:
        from candelabra._dispatch.rows import resolution

        return resolution(self.operator, key).function


class OutTable(DispatchTable):
    """The table of the form with ``out=``: the kernels that may write into it."""

    __slots__ = ()

    def resolve(self, key: int) -> Any:
        from candelabra._dispatch.resolve import writing_kernel

        return writing_kernel(self.operator, key)


class Operator(Entry, Generic[P, R]):
    """The record of an operator. It can be called; users call :attr:`function`, which is compiled at the first use."""

    # What the methods below declare, if anything:
    not_differentiable: str | None = None
    scatter: Callable[..., Any] | None = None
    gather: Callable[..., Any] | None = None
    add_to: Callable[..., Any] | None = None
    inplace_body: Callable[..., Any] | None = None
    batching: Callable[..., Any] | None = None
    tangent: Callable[..., Any] | None = None
    tangent_is_joint = False
    generation = 0

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
        elementwise: bool | None = None,
        inplace: bool | str | None = None,
        out: bool | str | None = None,
        random: bool = False,
        data_dependent: bool = False,
        ordered: bool = False,
        autocast: Autocast | str | None = None,
        **names: Any,
    ) -> None:
        own_name = function.__name__.rstrip("_") if name is None else name
        super().__init__(own_name, function.__doc__ or "", function.__module__, **names)
        self.schema: Final[Schema] = read_schema(function)
        self.declared: Final = function
        self.body: Final = None if _is_primitive(function) else function
        self.rule: Final = rule
        self.check: Final = check
        """A function of the operator's arguments that raises for invalid values, which the rule does not read. It runs
        if a kernel, or the body of a composite, has failed and the rule has not raised."""
        self.promote: Final = promote
        self.results: Final = result if isinstance(result, tuple) else (result,) * len(self.schema.outputs)
        self.accepts: Final = accepts
        self.view: Final = bool(view)
        """Whether the result is always a view of the first tensor. The in-place form, if it exists, changes the
        tensor's shape and strides over the same memory."""
        self.geometry: Final = view if callable(view) else None
        """For a view: ``(shape, strides, offset, *arguments) -> (shape, strides, offset)`` on strided memory."""
        pointwise = getattr(rule, "pointwise", False)
        self.elementwise: Final[bool] = pointwise if elementwise is None else elementwise
        """Whether each element of a result depends only on the elements of the tensors at its position: by default for
        the rule ``pointwise``."""
        self.inplace: Final = pointwise if inplace is None else bool(inplace)
        self.inplace_argument: Final = inplace == "argument"
        """Whether the function has an argument ``inplace``, as PyTorch's activations have, and no in-place method."""
        has_out = self.schema.named("out") is None and self.schema.result is None and not view
        self.out: Final = has_out if out is None else out
        self.random: Final = random
        self.data_dependent: Final = data_dependent
        self.ordered: Final = ordered
        """Whether a call has an effect outside of this process, whose order matters, as collectives have. A graph has
        the call as one node, which it neither removes, nor merges with another, nor moves past another such node."""
        self.autocast: Final = lists_of(self.name, autocast)
        """The operator's lists of ``autocast``, or None; see ``candelabra._records.autocasting``."""
        self.rules: dict[tuple[str, ...], Rule] = {}
        self.table: Final = DispatchTable(self)
        self.inplace_table: Final = InplaceTable(self)
        self.out_table: Final = OutTable(self)
        self.rows_table: Final = RowsTable(self)
        self.layers: Final[dict[int, Callable[..., Any]]] = {}
        self._functions: dict[str, Callable[..., Any]] = {}
        self.node_classes: Final[dict[Any, type]] = {}
        if not self.doc:
            raise TypeError(f"operator {self.name}: a docstring is required, as it is the documentation")

    def vjp(self, *joint: Any, **rules: Callable[..., Any]) -> Operator[P, R]:
        """Declare derivatives: ``op.vjp(input=rule, other=rule)``, or jointly ``op.vjp(("x", "weight"), rule)``.

        A rule maps ``g``, the gradient of the output, to the gradient of an input. Its parameters are names of inputs,
        of outputs (``out``, or the fields of the NamedTuple), ``g`` or ``g_<field>``, ``<input>_spec``, and ``needs``
        in a joint rule. The node saves exactly the values that a rule names. The engine undoes broadcasting.
        """
        added = checked_rules(self, joint, rules)
        self.rules.update(added)
        self.node_classes.clear()
        self.not_differentiable = None
        return self

    def no_gradient(self, reason: str) -> Operator[P, R]:
        """Declare that the result has no gradient, and the reason."""
        self.not_differentiable = reason
        return self

    def scattered(self, scatter: Callable[..., Any]) -> Operator[P, R]:
        """For a view: ``scatter(base, source, *arguments)`` returns ``base`` with its viewed part replaced."""
        self.scatter = scatter
        return self

    def gathered(self, gather: Callable[..., Any]) -> Operator[P, R]:
        """For a view that depends on strides: ``gather(g, *arguments)`` returns the viewed part of a gradient.

        The gradient may have other strides than the tensor.
        """
        self.gather = gather
        return self

    def batched(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Declare how ``vmap`` serves the operator, where its record does not imply it; return the rule.

        ``rule(size, batched, *arguments)`` gets the tensors of ``size`` examples: those marked in ``batched``, by
        position, have a batch dim in front, the others are the same for all examples. At least one is marked. The
        result has the batch dim in front.
        """
        self.batching = rule
        return rule

    def summed(self, add_to: Callable[..., Any]) -> Operator[P, R]:
        """For an operator that selects elements: ``add_to(total, g, node)`` adds its input's gradient to ``total``.

        It writes to ``total`` in place, and saves a gradient that consists mostly of zeros.
        """
        self.add_to = add_to
        return self

    def jvp(self, rule: Callable[..., Any], *, joint: bool = False) -> Operator[P, R]:
        """Declare the derivative along tangents, where the record does not imply it, or its body costs more.

        A rule's parameters are names of inputs, of outputs (``out``, or the fields of the NamedTuple), and
        ``t_<input>``, the tangent of an input: zeros if it is absent, or None if the parameter has the default None. It
        returns the tangent of the output, or for several outputs a sequence. In it None is zero, and a function without
        arguments computes a tangent that most callers do not use.

        ``joint``: the rule returns the pair (output, tangent), or (outputs, tangents), and the operator itself is not
        called. So a reduction reads its input once for both.
        """
        self.tangent = checked_tangent(self, rule, joint)
        self.tangent_is_joint = joint
        self.clear()
        return self

    def in_place(self, body: Callable[..., Any]) -> Operator[P, R]:
        """Give a composite an in-place form that consists of in-place operators.

        The default form computes the result in new memory and copies it. ``body`` takes the operator's parameters and
        returns the first; if it raises, it must not have written anything.
        """
        self.inplace_body = body
        return self

    def methods(self) -> dict[str, str]:
        """Return ``{method of Tensor: form}``."""
        if not self.public:
            return {}
        functions = self.method_names()
        inplace = [*([] if self.namespace else [self.name]), *(alias for alias in self.aliases if "." not in alias)]
        has_methods = self.inplace and not self.inplace_argument
        return dict.fromkeys(functions, "function") | {f"{name}_": "inplace" for name in inplace if has_methods}

    def signatures(self) -> tuple[Signature, ...]:
        """Return the signature, in a tuple."""
        result = self.schema.result
        return (Signature(self.schema.parameters, "Tensor" if result is None else result.__name__, self),)

    @property
    def differentiable(self) -> bool:
        return bool(self.rules)

    def form(self, kind: str) -> Callable[..., R]:
        """Return a compiled form: ``"function"``, ``"inplace"``, or an operator of the data model (``"__add__"``)."""
        try:
            return self._functions[kind]
        except KeyError:
            from candelabra._codegen.entry import compile_entry

            await_import(self.declared_in)
            compiled = self._functions[kind] = compile_entry(self, kind)
            return compiled

    @cached_property
    def function(self) -> Callable[..., R]:
        """Return the function that users call."""
        return self.form("function")

    @cached_property
    def over_rows(self) -> Callable[..., None]:
        """Return the in-place form over rows, ``over_rows(rows, *options)``: one call changes many tensors.

        A row is a tuple of tensors, one for each tensor of the schema. See :mod:`candelabra._dispatch.rows`.
        """
        from candelabra._dispatch.rows import over_rows

        await_import(self.declared_in)
        return over_rows(self)

    @cached_property
    def canonical(self) -> Callable[..., R]:
        """Return the function for positional, canonical arguments, which other operators' bodies call."""
        return self.form("canonical")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    def clear(self) -> None:
        """Discard the resolved calls, since a kernel, a layer or a policy has changed."""
        self.generation += 1
        for table in (self.table, self.inplace_table, self.out_table, self.rows_table):
            table.clear()


def _nothing() -> None:
    """Have the same instructions as the body of a primitive."""
    ...


def _is_primitive(function: Callable[..., Any]) -> bool:
    # Compare the instructions without their arguments: a docstring shifts constants, and ``return input`` is as short.
    return function.__code__.co_code[::2] == _nothing.__code__.co_code[::2]


def operator(rule: ShapeRule, **options: Any) -> Callable[[Callable[P, R]], Operator[P, R]]:
    """Declare an operator. :class:`Operator` describes the options.

    Raises ``ValueError`` if an operator of that name exists already.
    """

    def declare(function: Callable[P, R]) -> Operator[P, R]:
        record: Operator[P, R] = Operator(function, rule, **options)
        if dict.__contains__(OPERATORS, record.name) or elsewhere(record.name, function.__module__):
            first = OPERATORS[record.name].declared.__module__
            raise ValueError(
                f"operator {record.name!r} is declared twice: first in {first}, now in {function.__module__}"
            )
        OPERATORS[record.name] = record
        note(function.__module__, lambda: OPERATORS.pop(record.name, None))
        try:
            add(record)
        except ValueError:
            del OPERATORS[record.name]
            raise
        return record

    return declare


def elsewhere(name: str, module: str) -> bool:
    """Return whether the index lists the operator for another module, which may not be imported yet."""
    return name in OPERATORS_IN and not module.startswith("candelabra.")


def forget_resolved() -> None:
    """Discard the resolved calls of every operator."""
    for record in list(OPERATORS.present().values()):
        record.clear()


KEEPERS.append(forget_resolved)
