"""Tangent rules: the derivative of an operator's results along the tangents of its inputs.

Nearly all follow from the record:

- in real dtypes the Jacobian of a pointwise operator is diagonal, so its vector-Jacobian products are the tangent rule;
- an operator whose derivative with respect to an input reads neither that input nor a result is linear in it, so it is
  its own tangent rule. The derivative with respect to a matrix product's first operand reads only the second one;
- each element of a reduction's input affects one element of the result, so the gradient for a cotangent of ones has
  the derivatives themselves: the tangent is their sum with the input's tangent as weights;
- a composite runs its body, unless a backend would lose by that: ``Operator.jvp`` declares its rule;
- the rest transposes the vector-Jacobian product ("double backward trick"): one run of the rule and its derivative.

Attribution: the transposition is Jamie Townsend's ("A new trick for calculating Jacobian vector products", 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._autograd.api import gradients_of
from candelabra._autograd.engine import restored
from candelabra._autograd.filling import filled_like, zeros_like
from candelabra._autograd.node import TensorSpec
from candelabra._keys import AUTOGRAD, NO_GRAD, VIEW, mode, state
from candelabra._records.derivative import Applied
from candelabra._records.registry import OPERATORS
from candelabra._records.rules import reduction
from candelabra._records.schema import LIST, OPTIONAL, parameter_names
from candelabra._tensor import wrap
from candelabra.dtypes import COMPLEX_BITS, FLOATING

if TYPE_CHECKING:
    from candelabra._records.derivative import Rule
    from candelabra._records.record import Operator
    from candelabra._tensor import Tensor

TangentRule = Callable[[Any, Sequence[Any], Sequence[Any]], Any]
"""``rule(out, primals, tangents)``: both by position, None for an absent tangent; at least one is present. Returns the
tangent of ``out``, a sequence for several outputs."""

KINDS = ("declared", "view", "pointwise", "linear", "reduction", "body", "constant", "transposed")


def kind_of(op: Operator[..., Any]) -> str:
    """Return how forward mode serves an operator, one of :data:`KINDS`."""
    if op.tangent is not None:
        return "declared"
    if op.not_differentiable is not None or (not op.rules and op.body is None):
        return "constant"
    if not op.rules:
        return "body"
    if op.view:
        return "view"
    if getattr(op.rule, "pointwise", False) and op.schema.result is None:
        return "pointwise"
    if all(not rule.joint and _is_linear(op, rule) for rule in op.rules.values()):
        return "linear"
    if op.rule is reduction and op.schema.result is None and len(op.rules) == len(op.schema.tensors) == 1:
        return "reduction"
    return "body" if op.body is not None else "transposed"


def rule_of(op: Operator[..., Any]) -> TangentRule | None:
    """Return the tangent rule of an operator. None: its body serves it, or its results are constant."""
    make = {
        "declared": declared, "view": viewed, "pointwise": pointwise, "linear": linear, "reduction": reduced,
        "transposed": transposed,
    }.get(kind_of(op))  # fmt: skip
    return None if make is None else make(op)


# -- from the record --------------------------------------------------------------------------------------------------
def viewed(op: Operator[..., Any]) -> TangentRule:
    """Return the rule of a view: the same view of the tangent, which may have another layout."""
    if op.name == "view":
        return lambda out, primals, tangents: tangents[0].reshape(primals[1])
    view = op.gather or op.canonical
    return lambda out, primals, tangents: view(tangents[0], *primals[1:])


def pointwise(op: Operator[..., Any]) -> TangentRule:
    """Return the rule of a pointwise operator: the sum of its vector-Jacobian products, at the tangents."""
    positions = {p.name: i for i, p in enumerate(op.schema.parameters)}
    rules = [
        (positions[name], product_of(op, each), k if each.joint else None, tuple([n == name for n in each.targets]))
        for each in op.rules.values()
        for k, name in enumerate(each.targets)
    ]
    tensors = [positions[p.name] for p in op.schema.tensors]
    in_complex = transposed(op)

    def rule(out: Tensor, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        keys = out._keys
        for i in tensors:
            keys |= getattr(primals[i], "_keys", 0)
        if keys & COMPLEX_BITS:
            return in_complex(out, primals, tangents)
        total: Any = None
        for i, product, k, needs in rules:
            t = tangents[i]
            if t is not None:
                term = product(t, (out,), primals, needs)
                if k is not None:  # of a rule for several inputs
                    term = term[k]
                total = term if total is None else total + term
        if total is not None and total._payload.shape != out._payload.shape:
            total = OPERATORS["expand"].canonical(total, tuple(out._payload.shape))
        return total

    return rule


def reduced(op: Operator[..., Any]) -> TangentRule:
    """Return the rule of a reduction: the sum of the derivatives with respect to each element, times its tangent."""
    names = [p.name for p in op.schema.parameters]
    product = product_of(op, next(iter(op.rules.values())))
    in_complex = transposed(op)

    def rule(out: Tensor, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        if (out._keys | primals[0]._keys) & COMPLEX_BITS:
            return in_complex(out, primals, tangents)
        given = dict(zip(names, primals, strict=True))
        dim = given.get("dim")
        weighted = product(filled_like(out, 1, tuple(out._payload.shape)), (out,), primals) * tangents[0]
        total = weighted.sum(None if dim == () else dim, given.get("keepdim", False))
        return total if total.dtype is out.dtype else total.to(out.dtype)

    return rule


class Term(NamedTuple):
    """One call of a multilinear operator: the inputs at their tangents, and those that do not affect them: zeros."""

    targets: tuple[int, ...]
    zeros: tuple[int, ...]


def linear(op: Operator[..., Any]) -> TangentRule:
    """Return the rule of an operator that is linear in each input: the operator itself, on tangents.

    It is called once for each group of inputs in which it is jointly linear, with the primals of the others.
    """
    run = op.canonical
    terms = terms_of(op)
    kinds = [p.kind for p in op.schema.parameters]
    reached = {name[2:] for rule in op.rules.values() for name in rule.names if name.startswith("g_")}

    def at_tangents(term: Term, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        args = list(primals)
        for i in (*term.targets, *term.zeros):
            t = tangents[i] if i in term.targets else None
            if kinds[i] == LIST:
                args[i] = [zeros_like(p) if part is None else part for p, part in zip(primals[i], t or (), strict=True)]
            elif t is not None:
                args[i] = t
            elif kinds[i] == OPTIONAL:
                args[i] = None
            else:
                args[i] = _zeros(primals[i]) if hasattr(primals[i], "_keys") else 0
        return run(*args)

    def rule(out: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        total: Any = None
        for term in terms:
            if any(_is_present(tangents[i]) for i in term.targets):
                part = at_tangents(term, primals, tangents)
                if total is None:
                    total = part
                elif op.schema.result is None:
                    total = total + part
                else:
                    total = [a + b for a, b in zip(total, part, strict=True)]
        if op.schema.result is None:
            return total
        return [t if name in reached else None for name, t in zip(op.schema.outputs, total, strict=True)]

    return rule


def _zeros(primal: Tensor) -> Tensor:
    """Return zeros in the shape of a tensor, as one zero that is broadcast: there is no memory to fill or to read."""
    zero = filled_like(primal, 0, ())
    expanded: Tensor = OPERATORS["expand"].canonical(zero, tuple(primal._payload.shape))
    return expanded


def terms_of(op: Operator[..., Any]) -> list[Term]:
    """Return the calls whose sum is the derivative of an operator that is linear in each input."""
    names = [p.name for p in op.schema.parameters]
    inputs = [name for name in names if (name,) in op.rules]
    reads = {name: {n for n in op.rules[(name,)].names if n in inputs} for name in inputs}
    terms: list[Term] = []
    left = sorted(inputs, key=lambda name: -len(reads[name]))
    while left:
        targets = [left.pop(0)]
        kept = reads[targets[0]]
        for name in list(left):
            if name not in kept and reads[name] <= kept:
                targets.append(name)
                left.remove(name)
        zeros = [name for name in inputs if name not in kept and name not in targets]
        terms.append(Term(tuple(map(names.index, targets)), tuple(map(names.index, zeros))))
    return terms


def _is_linear(op: Operator[..., Any], rule: Rule) -> bool:
    """Return whether a derivative reads neither the input that it belongs to nor a result."""
    return rule.targets[0] not in rule.names and not set(rule.names) & set(op.schema.outputs)


def _is_present(tangent: Any) -> bool:
    if isinstance(tangent, list):
        return any(part is not None for part in tangent)
    return tangent is not None


# -- declared ---------------------------------------------------------------------------------------------------------
def declared(op: Operator[..., Any]) -> TangentRule:
    """Return the rule that ``Operator.jvp`` has declared, as a function of positions."""
    function: Any = op.tangent
    positions = {p.name: i for i, p in enumerate(op.schema.parameters)}
    outputs = op.schema.outputs
    several = op.schema.result is not None
    names = parameter_names(function)
    optional = function.__code__.co_argcount - len(function.__defaults__ or ())

    def rule(out: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        args = []
        for number, name in enumerate(names):
            if name in positions:
                args.append(primals[positions[name]])
            elif name in outputs:
                args.append(out[outputs.index(name)] if several else out)
            else:
                place = positions[name[2:]]
                t = tangents[place]
                args.append(zeros_like(primals[place]) if t is None and number < optional else t)
        return function(*args)

    return rule


# -- transposed -------------------------------------------------------------------------------------------------------
def transposed(op: Operator[..., Any]) -> TangentRule:
    """Return the rule that transposes the vector-Jacobian product.

    ``vjp(u)`` is linear in ``u``, so its derivative along the tangents does not depend on ``u``: it is ``J t``. The
    probes ``u`` are the results themselves: rules of eigenvectors refuse most others.
    """
    parameters = op.schema.parameters
    positions = {p.name: i for i, p in enumerate(parameters)}
    several = op.schema.result is not None
    rules = [(rule, product_of(op, rule)) for rule in op.rules.values()]

    def rule(out: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        outs = tuple(out) if several else (out,)
        recording = not state.bits & NO_GRAD
        with mode(exclude=NO_GRAD):
            probes = [leaf_of(o) if o.dtype.category >= FLOATING else None for o in outs]
            products: list[Any] = []
            along: list[Any] = []
            for each, product_at in rules:
                present = [_is_present(tangents[positions[name]]) for name in each.targets]
                if not any(present):
                    continue
                needs = tuple([_needs(tangents[positions[name]]) for name in each.targets])
                found = product_at(probes if several else probes[0], outs, primals, needs)
                for name, g in zip(each.targets, found if each.joint else (found,), strict=True):
                    place = positions[name]
                    pairs = (
                        zip(primals[place], tangents[place], g or (), strict=True)
                        if (parameters[place].kind == LIST)
                        else ((primals[place], tangents[place], g),)
                    )
                    for primal, t, product in pairs:
                        if t is not None and product is not None and product._node is not None:
                            products.append(_fitted(product, primal))
                            along.append(t)
            inputs = [probe for probe in probes if probe is not None]
            found = gradients_of(products, inputs, along, create_graph=recording, allow_unused=True) if products else ()
        results = iter(found or [None] * len(inputs))
        given = [None if probe is None else next(results) for probe in probes]
        return given if several else given[0]

    return rule


def leaf_of(tensor: Tensor) -> Tensor:
    """Return a leaf of the graph with the content of a tensor."""
    tensor._fresh()
    return wrap(tensor._payload, tensor._keys & ~(AUTOGRAD | VIEW)).requires_grad_()


def _needs(tangent: Any) -> Any:
    if isinstance(tangent, list):
        return [part is not None for part in tangent]
    return tangent is not None


def _fitted(product: Tensor, primal: Tensor) -> Tensor:
    """Return a vector-Jacobian product in the shape of its input: sum over the dims that were broadcast."""
    if product._payload.shape == primal._payload.shape:
        return product
    spec: Any = TensorSpec(tuple(primal._payload.shape), primal._keys)
    return restored(product, spec, spec)


def product_of(op: Operator[..., Any], rule: Rule) -> Callable[..., Any]:
    """Return a derivative rule as a function of (gradients, outputs, primals, needs)."""
    positions = {p.name: i for i, p in enumerate(op.schema.parameters)}
    outputs = op.schema.outputs
    function = rule.function
    applied = function if isinstance(function, Applied) else None
    names = rule.names
    count = len(names) if isinstance(function, Applied) else function.__code__.co_argcount

    def one(name: str, g: Any, outs: Sequence[Any], primals: Sequence[Any], needs: Any) -> Any:
        if name == "g":
            return g
        if name in positions:
            return primals[positions[name]]
        if name in outputs:
            return outs[outputs.index(name)]
        if name == "needs":
            return needs
        if name.startswith("g_"):
            return g[outputs.index(name[2:])]
        value = primals[positions[name.removesuffix("_spec")]]
        return [_spec(v) for v in value] if isinstance(value, (list, tuple)) else _spec(value)

    # The values of most rules are the gradient, results and inputs: one selection from all of these, without a frame.
    places = {"g": 0, **{n: 1 + i for i, n in enumerate(outputs)}}
    places |= {n: 1 + len(outputs) + i for n, i in positions.items()}
    selected = itemgetter(*[places[n] for n in names]) if len(names) > 1 and set(names) <= set(places) else None

    def product(g: Any, outs: Sequence[Any], primals: Sequence[Any], needs: Any = None) -> Any:
        if selected is not None and count == len(names) and (applied is None or not outs[0]._keys & COMPLEX_BITS):
            return function(*selected((g, *outs, *primals)))
        args = [one(name, g, outs, primals, needs) for name in names]
        if applied is not None and outs[0]._keys & COMPLEX_BITS:
            args = [_conjugate(a) if marked else a for a, marked in zip(args, applied.conjugated, strict=True)]
        return function(*args[:count], **dict(zip(names[count:], args[count:], strict=True)))

    return product


def _spec(value: Any) -> TensorSpec | None:
    return TensorSpec(tuple(value._payload.shape), value._keys) if hasattr(value, "_payload") else None


def _conjugate(value: Any) -> Any:
    return value.conj() if hasattr(value, "_keys") else value.conjugate()
