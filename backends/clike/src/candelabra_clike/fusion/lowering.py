"""From a group of nodes to a loop nest: every node becomes a variable of the kernel.

The variables hold what eager kernels would have stored: the result of a half type is rounded to it before the next
operator reads it. So a fused kernel gives the results of the single ones, except that CUDA's compiler may contract a
product and a sum of two operators to one fused multiply-add, if one of the operators is a polynomial.

Numbers are arguments of the kernel, also those that are constants of the graph, so that another learning rate or
another constant does not need another kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from candelabra.dtypes import FLOATING, INTEGER, dtype
from candelabra.graph import FUNCTION, Graph, Node
from candelabra.graph import Value as Tensor
from candelabra.library import OPERAND, OPERATORS, PLAIN, Operator, boolean

from candelabra_clike.conversions import converted, scalar, scalar_converter, scalar_types
from candelabra_clike.expressions import EXPRESSIONS, expression_for, is_contracted
from candelabra_clike.fusion.anchors import ReductionNode, RowNode, phases, reduction_node, row_node
from candelabra_clike.fusion.products import ProductNode, convolution_node, product_node
from candelabra_clike.kernels.pointwise import FIXED, NUMBERS, number_converter
from candelabra_clike.kernels.random import uniform_values
from candelabra_clike.language import ExpressionError, Value, Variable, declared, reasons_in, round_to, value_type
from candelabra_clike.templates.elementwise.loops import LoopNest, operands
from candelabra_clike.templates.matmul.epilogue import OUT, Epilogue
from candelabra_clike.templates.random_numbers import Draw
from candelabra_clike.templates.rows.fused import FusedRow, RowLoop
from candelabra_clike.types import CTYPES, CType

LETTERS = "abcdefgh"
"""The names of operands in the functions of :data:`~candelabra_clike.expressions.EXPRESSIONS`."""
IDENTITIES = ("clone", "expand")
"""Operators whose elements are those of their operand."""


class Scalar(NamedTuple):
    """A number that the kernel takes. ``source`` is the number, or an input of the graph."""

    source: Any
    convert: Callable[[Any], tuple[Any, ...]]


Anchor = ReductionNode | RowNode | ProductNode


class Lowered(NamedTuple):
    """A group as a loop nest over ``shape``, or as the body that its anchor takes: for a reduction the loop nest whose
    first output are its elements.
    """

    name: str
    body: Any
    shape: tuple[int, ...]
    inputs: tuple[Tensor, ...]
    scalars: tuple[Scalar, ...]
    anchor: Anchor | None


class NotFusible(Exception):
    """A node that no fused kernel computes."""


def anchors_in(nodes: Sequence[Node]) -> list[Anchor]:
    """Return the reductions, row programs, products and convolutions among nodes."""
    kinds = (reduction_node, row_node, product_node, convolution_node)
    return [found for node in nodes for kind in kinds if (found := kind(node)) is not None]


def is_fusible(node: Node) -> bool:
    """Return whether a fused kernel can compute a node: a pointwise one that refuses no value, a reduction, a row
    program, a product, or a convolution.
    """
    if anchors_in([node]):
        return True
    if isinstance(node.op, Graph) or node.form != FUNCTION or len(node.results) != 1:
        return False
    if node.results[0].spec is None or (node.is_view and node.op.name not in IDENTITIES):
        return False
    try:
        inputs = [v for v in dict.fromkeys(node.operands) if v.spec is not None]
        lowering = Lowering(inputs)
        return not reasons_in(lowering.expression(node))
    except (NotFusible, ExpressionError):  # such as decimals of integers, for which the kernel raises an error
        return False


def lowered(group: Graph) -> Lowered:
    """Return the loops of a group of fusible nodes, with one anchor at most."""
    inputs = tuple(v for v in group.inputs if v.spec is not None)
    anchor = next(iter(anchors_in(group.nodes)), None)
    name = "_".join(["fused", *dict.fromkeys(node.name for node in group.nodes)])[:80]
    if isinstance(anchor, RowNode):
        row, scalars = _lowered_row(name, group, anchor, inputs)
        return Lowered(name, row, anchor.spec.shape, inputs, tuple(scalars), anchor)
    if isinstance(anchor, ProductNode):
        epilogue, scalars = _lowered_product(name, group, anchor, inputs)
        return Lowered(name, epilogue, anchor.spec.shape, inputs, tuple(scalars), anchor)
    outputs = list(group.outputs)
    if anchor is not None:
        outputs = [anchor.element, *[v for v in outputs if v is not anchor.result]]
    lowering = Lowering(inputs)
    nest = lowering.nest(name, group, [n for n in group.nodes if anchor is None or n is not anchor.node], outputs)
    return Lowered(name, nest, _spec(outputs[0]).shape, inputs, tuple(lowering.scalars), anchor)


def _lowered_row(
    name: str, group: Graph, anchor: RowNode, inputs: Sequence[Tensor]
) -> tuple[FusedRow, Sequence[Scalar]]:
    """Return the row program of a group, and the loops around it."""
    divided = phases(anchor, group.nodes)
    strips = {v: f"strip{i}" for i, v in enumerate(divided.strips)}
    arrays = _named(group, inputs)
    names = arrays | strips
    scalars = [Scalar(number, lambda value: (value,)) for number in anchor.numbers]
    types = [CTYPES[anchor.spec.dtype].value] * len(anchor.numbers)
    before = [(v, strips[v]) for v in divided.strips if v is not anchor.out]
    computed = {v for node in divided.before for v in node.results}
    before += [(v, arrays[v]) for v in group.outputs if v in computed]
    later = {anchor.out, *(v for node in divided.after for v in node.results)}
    after = [(v, arrays[v]) for v in group.outputs if v in later]
    loops = [
        _row_loop(group, nodes, outputs, names, scalars, types) if nodes else None
        for nodes, outputs in ((divided.before, before), (divided.after, after))
    ]
    stored = [i for i, p in enumerate(anchor.program.passes) if p.stored_result]
    unused = anchor.out not in names  # such as the result of a forward pass whose gradient alone is wanted
    row = FusedRow(
        name,
        replace(anchor.program, last=None) if unused else anchor.program,
        _types(arrays),
        len(group.outputs),
        _types(strips),
        names.get(anchor.out, ""),
        tuple(names[v] for v in anchor.operands),
        {i: arrays[v] for i, v in zip(stored, anchor.node.results[1:], strict=True) if v in arrays},
        loops[0],
        loops[1],
        tuple(types),
    )
    return row, scalars


def _named(group: Graph, inputs: Sequence[Tensor]) -> dict[Tensor, str]:
    """Return the names of the arrays of a group."""
    return {v: f"y{i}" for i, v in enumerate(group.outputs)} | {v: f"x{i}" for i, v in enumerate(inputs)}


def _types(names: Mapping[Tensor, str]) -> dict[str, CType]:
    """Return the types of the elements of named arrays."""
    return {name: CTYPES[_spec(v).dtype] for v, name in names.items()}


def _row_loop(
    group: Graph,
    nodes: list[Node],
    outputs: list[tuple[Tensor, str]],
    names: dict[Tensor, str],
    scalars: list[Scalar],
    types: list[str],
) -> RowLoop:
    """Return the loop of nodes before or after a row program. Its numbers are added to ``scalars`` and ``types``."""
    own = {v for node in nodes for v in node.results}
    reads = list(dict.fromkeys(v for node in nodes for v in node.operands if v in names and v not in own))
    nest = Lowering(reads, scalars, types).nest("", group, nodes, [v for v, _ in outputs])
    nest = replace(nest, numbers=())  # those of the whole row
    return RowLoop(nest, (*[place for _, place in outputs], *[names[v] for v in reads]))


def _lowered_product(
    name: str, group: Graph, anchor: ProductNode, inputs: Sequence[Tensor]
) -> tuple[Epilogue, Sequence[Scalar]]:
    """Return the pointwise nodes after the product of a group as its epilogue."""
    arrays, into = _named(group, inputs), anchor.target(group.outputs)
    assert into is not None
    nodes = [node for node in group.nodes if node is not anchor.node]
    reads = [anchor.result, *dict.fromkeys(v for node in nodes for v in node.operands if v in inputs)]
    lowering, outputs = Lowering(reads), [v for v in group.outputs if v is not anchor.result]
    places = {**arrays, anchor.result: arrays.get(anchor.result, OUT), into: OUT}
    epilogue = Epilogue(
        lowering.nest(name, group, nodes, outputs),
        _types(arrays),
        len(group.outputs),
        {OUT: arrays[into], **{role: arrays[v] for role, v in anchor.roles.items()}},
        tuple(places[v] for v in (*outputs, *reads)),
    )
    return epilogue, lowering.scalars


class Lowering:
    """The values of a graph as values of a kernel. Its numbers are added to ``scalars`` and ``types``."""

    def __init__(
        self, reads: Sequence[Tensor], scalars: list[Scalar] | None = None, types: list[str] | None = None
    ) -> None:
        self.reads = tuple(_spec(v).dtype for v in reads)
        self.values: dict[Tensor, Value] = dict(zip(reads, operands(self.reads), strict=True))
        self.steps: list[tuple[Variable, Value]] = []
        self.scalars: list[Scalar] = [] if scalars is None else scalars
        self.types: list[str] = [] if types is None else types
        self.draws: list[Draw] = []

    def nest(self, name: str, group: Graph, nodes: Sequence[Node], outputs: Sequence[Tensor]) -> LoopNest:
        """Return the loop nest of some nodes of a group."""
        for node in nodes:
            self.add(node, group)
        return LoopNest(
            name,
            tuple(self.values[v] for v in outputs),
            self.reads,
            tuple(_spec(v).dtype for v in outputs),
            tuple(self.types),
            any(is_contracted(node.op.name) for node in nodes if not isinstance(node.op, Graph)),
            tuple(self.steps),
            tuple(self.draws),
        )

    def add(self, node: Node, group: Graph) -> None:
        """Define the variable of a node's result."""
        [result] = node.results
        d = _spec(result).dtype
        op: Any = node.op
        value = self.expression(node)
        if isinstance(value, Variable) and not (d.is_half and op.name == "cast"):
            self.values[result] = value
            return
        if any(result in other.operands for other in group.nodes):  # otherwise the store rounds it
            value = round_to(d, value)
        variable = Variable(value_type(d), f"t{len(self.steps)}")
        self.steps.append((variable, value))
        self.values[result] = variable

    def expression(self, node: Node) -> Value:
        """Return the expression of a node's result. Raises :class:`NotFusible`."""
        op: Any = node.op
        special = SPECIAL.get(op.name)
        if special is not None:
            return special(self, node)
        return self.pointwise(op, node.args, self._dtype_of(node), _spec(node.results[0]).dtype)

    def pointwise(self, op: Operator[..., Any], args: tuple[Any, ...], d: dtype, result: dtype) -> Value:
        """Return the expression of a pointwise operator for operands of dtype ``d``."""
        expression = expression_for(EXPRESSIONS.get(op.name, {}), d)
        if expression is None:
            raise NotFusible(op.name)
        values: dict[str, Any] = {}
        letters = iter(LETTERS)
        for p, argument in zip(op.schema.parameters, args, strict=True):
            name = p.name if p.kind == PLAIN else next(letters)
            own = FIXED.get(p.kind, d)
            if isinstance(argument, Tensor) and argument.spec is not None:
                values[name] = self.values[argument]
            elif p.kind == OPERAND or (p.annotation in NUMBERS and argument is not None):
                convert = number_converter(op, p, own)
                values[name] = self.number(argument, own, convert, rounded=op.results[0] is boolean)
            elif isinstance(argument, Tensor):
                raise NotFusible(op.name)
            else:
                values[name] = argument
        return declared(f"{op.name!r} in {d.name}", expression, values, value_type(result))

    def number(self, source: Any, d: dtype, convert: Callable[[Any], tuple[Any, ...]], rounded: bool = False) -> Value:
        """Return a number that the kernel takes."""
        if not isinstance(source, Tensor | bool | int | float | complex):
            raise NotFusible(repr(source))
        value = scalar(d, len(self.types), rounded)
        self.scalars.append(Scalar(source, convert))
        self.types += scalar_types(d)
        return value

    def argument(self, type: str, source: Any) -> str:
        """Return the name of a number that the kernel takes as it is."""
        self.scalars.append(Scalar(source, lambda value: (value,)))
        self.types.append(type)
        return f"s{len(self.types) - 1}"

    def operand(self, argument: Any) -> Value:
        """Return the value of an argument that is a tensor."""
        if not isinstance(argument, Tensor) or argument.spec is None:
            raise NotFusible(repr(argument))
        return self.values[argument]

    def _dtype_of(self, node: Node) -> dtype:
        """Return the dtype in which a node computes: that of the first operand which is promoted."""
        op: Any = node.op
        for p, argument in zip(op.schema.parameters, node.args, strict=True):
            if p.kind not in FIXED and isinstance(argument, Tensor) and argument.spec is not None:
                return argument.spec.dtype
        result: dtype = _spec(node.results[0]).dtype
        return result


def _spec(value: Tensor) -> Any:
    assert value.spec is not None
    return value.spec


# -- operators that have no expression of their own -------------------------------------------------------------------
def _cast(lowering: Lowering, node: Node) -> Value:
    source, target = _spec(node.args[0]).dtype, _spec(node.results[0]).dtype
    value = lowering.operand(node.args[0])
    return value if source is target else converted(value, source, target)


def _identity(lowering: Lowering, node: Node) -> Value:
    return lowering.operand(node.args[0])


def _full(lowering: Lowering, node: Node) -> Value:
    d = _spec(node.results[0]).dtype
    if d.category == INTEGER and isinstance(node.args[1], float):
        raise NotFusible("full")  # its conversion is that of a cast
    return lowering.number(node.args[1], d, scalar_converter(d))


def _clamp(lowering: Lowering, node: Node) -> Value:
    low, high = node.args[1:]
    numbers = all(isinstance(x, int | float) for x in (low, high))
    if not numbers or not low <= high or "hardtanh" not in OPERATORS:
        raise NotFusible("clamp")
    d = _spec(node.results[0]).dtype
    return lowering.pointwise(OPERATORS["hardtanh"], (node.args[0], float(low), float(high)), d, d)


def _pow(lowering: Lowering, node: Node) -> Value:
    """Squares are products, as in the kernel of ``pow``, and first powers, as in the gradient of a square, the number
    itself. Integers may refuse an exponent.
    """
    d, (base, exponent) = _spec(node.results[0]).dtype, node.args
    if d.category == INTEGER or not isinstance(base, Tensor):
        raise NotFusible("pow")
    if isinstance(exponent, int | float) and exponent == 2:
        return lowering.pointwise(OPERATORS["square"], (base,), d, d)
    if isinstance(exponent, int | float) and exponent == 1 and base.spec is not None and base.spec.dtype is d:
        return lowering.operand(base)
    return lowering.pointwise(OPERATORS["pow"], node.args, d, d)


def _uniform(lowering: Lowering, node: Node) -> Value:
    """A random number per element. Those of one kernel come of counters of one number of values."""
    d = _spec(node.results[0]).dtype
    values = tuple(uniform_values(d)) if d.category == FLOATING else ()
    if not values or any(len(draw.values) != len(values) for draw in lowering.draws):
        raise NotFusible("random_uniform")
    seed, offset = (lowering.argument("u64", source) for source in node.args[1:3])
    variable = Variable(value_type(d), f"r{len(lowering.draws)}")
    lowering.draws.append(Draw(variable, values, seed, offset))
    return variable


SPECIAL: dict[str, Callable[[Lowering, Node], Value]] = {
    "cast": _cast, "full": _full, "random_uniform": _uniform, "clamp": _clamp, "pow": _pow,
    **dict.fromkeys(IDENTITIES, _identity),
}  # fmt: skip
