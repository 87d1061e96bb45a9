"""The grammar of derivatives, checked when a rule is declared.

Source of the form: HIPS/autograd's table of one-line vector-Jacobian products.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._records.schema import DIFFERENTIABLE, REQUIRED, default_of, parameter_names

if TYPE_CHECKING:
    from candelabra._records.record import Operator


class Rule(NamedTuple):
    """One rule: the inputs whose gradients it computes, the function, and the names of its parameters."""

    targets: tuple[str, ...]
    function: Callable[..., Any]
    names: tuple[str, ...]
    joint: bool

    def optional(self, name: str) -> bool:
        """Return whether the parameter has the default None: an absent gradient is then None instead of zeros."""
        return not isinstance(self.function, Applied) and default_of(self.function, name) is None


class Conjugate(NamedTuple):
    """An argument of :func:`applied`: the conjugate of the tensor of that name, which is itself in a real dtype."""

    name: str


def conjugate(name: str) -> Conjugate:
    """Return a :class:`Conjugate`, as in ``mul.vjp(input=applied(mul, "g", conjugate("other")))``."""
    return Conjugate(name)


class Applied:
    """A rule that applies one operator to named values: ``tanh.vjp(input=applied(tanh_backward, "g", "out"))``.

    The node refers to the operator's dispatch table, which saves two calls in each backward pass. In real dtypes a
    conjugate has no cost.
    """

    def __init__(self, operator: Operator[..., Any], arguments: tuple[str | Conjugate, ...]) -> None:
        self.operator = operator
        self.names = tuple([a.name if isinstance(a, Conjugate) else a for a in arguments])
        self.conjugated = tuple([isinstance(a, Conjugate) for a in arguments])

    def __call__(self, *args: Any) -> Any:
        return self.operator.function(*args)


def applied(operator: Operator[..., Any], *arguments: str | Conjugate) -> Applied:
    """See :class:`Applied`."""
    return Applied(operator, arguments)


def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    return function.names if isinstance(function, Applied) else parameter_names(function)


def checked_rules(
    operator: Operator[..., Any], joint: tuple[Any, ...], single: dict[str, Callable[..., Any]]
) -> dict[tuple[str, ...], Rule]:
    """Check the rules against the schema, and return ``{targets: rule}``."""
    if joint and (len(joint) != 2 or not isinstance(joint[0], tuple)):
        raise TypeError(f"{operator.name}.vjp: a joint rule has the form vjp((names…), function), got {joint!r}")
    rules = {}
    if joint:
        targets, function = joint
        rules[targets] = Rule(targets, function, _names(function), True)
    for name, function in single.items():
        rules[(name,)] = Rule((name,), function, _names(function), False)
    for rule in rules.values():
        _check(operator, rule)
    return rules


def _check(operator: Operator[..., Any], rule: Rule) -> None:
    schema = operator.schema
    inputs = {p.name: p for p in schema.parameters}
    signature = f"{operator.name}({', '.join(inputs)}) -> {', '.join(schema.outputs)}"
    asks = f"rule for {', '.join(rule.targets)}: ({', '.join(rule.names)})"
    twice = [name for name in rule.names if name in inputs and name in schema.outputs]
    if twice:
        raise TypeError(f"{twice[0]!r} is both an input and an output of {signature}: rename the input; {asks}")
    for target in rule.targets:
        if target not in inputs or inputs[target].kind not in DIFFERENTIABLE:
            raise TypeError(f"{target!r} is not a differentiable input of {signature}; {asks}")
    gradients = {"g"} if schema.result is None else {f"g_{field}" for field in schema.outputs}
    specs = {f"{p.name}_spec" for p in schema.tensors}
    legal = gradients | specs | set(inputs) | set(schema.outputs) | ({"needs"} if rule.joint else set())
    unknown = [name for name in rule.names if name not in legal]
    if unknown:
        raise TypeError(
            f"{unknown[0]!r} is neither an input, an output, a gradient ({', '.join(sorted(gradients))}) nor an "
            f"input's spec of {signature}; {asks}"
        )
    if not gradients.intersection(rule.names):
        raise TypeError(f"a derivative must be linear in the gradient and use one of {sorted(gradients)}; {asks}")
    for name in () if isinstance(rule.function, Applied) else rule.names:
        if name not in gradients and default_of(rule.function, name) is not REQUIRED:
            raise TypeError(f"only a gradient may have a default (None: may be absent), but {name!r} has one; {asks}")


def checked_tangent(operator: Operator[..., Any], rule: Callable[..., Any], joint: bool) -> Callable[..., Any]:
    """Check the parameters of a tangent rule against the schema, and return the rule."""
    schema = operator.schema
    outputs = set() if joint else set(schema.outputs)  # a joint rule computes the outputs
    inputs = {p.name for p in schema.parameters}
    tangents = {f"t_{p.name}" for p in schema.differentiable}
    names = parameter_names(rule)
    asks = f"tangent rule of {operator.name}: ({', '.join(names)})"
    unknown = [name for name in names if name not in inputs | tangents | outputs]
    if unknown:
        raise TypeError(
            f"{unknown[0]!r} is neither an input, an output nor a tangent ({', '.join(sorted(tangents))}); {asks}"
        )
    if not tangents.intersection(names):
        raise TypeError(f"a tangent rule must be linear in tangents and use one of {sorted(tangents)}; {asks}")
    return rule
