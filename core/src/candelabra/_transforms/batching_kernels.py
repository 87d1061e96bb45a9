"""The kernels of ``vmap``: batching rules over payloads with a batch dim in front.

The rule of most operators follows from the family of its record:

- pointwise operators broadcast, so the batch dim only has to be aligned;
- operators of one tensor with named dims (reductions, softmax, sort, …) act on the dims behind the batch dim;
- a composite without a rule runs its body, whose operators are batched in turn.

``candelabra._transforms.batching_rules`` has the others, a few lines each; ``Operator.batched`` declares one for an
operator of another distribution. A primitive without a rule is called for each example in a loop, with one warning.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import Any, Final, NoReturn
from candelabra._dispatch.key import redispatch
from candelabra._records.batching import Rule, aligned
from candelabra._records.record import Operator
from candelabra._records.registry import OPERATORS
from candelabra._records.schema import DIM, DIMS, OPERAND, TENSOR, TENSOR_KINDS
from candelabra._tensor import Tensor
from candelabra._transforms.level import Payload, outlived
from candelabra._transforms.looping import looped

SHIFTED_DIMS: Final = frozenset(("DistinctDims", "DistinctDims | None", "UnitDims", "InsertedDim", "Permutation"))
"""The annotations of dims besides the kinds DIM and DIMS."""


class Batched(Payload):
    """A tensor of the level below: one tensor per example along its first dim, or one for all if not ``batched``.

    ``shape`` is that of one example. ``own``: the level has created the memory, so an unbatched tensor that is written
    with different values per example can become batched.
    """

    __slots__ = ("batched", "own")

    def __init__(self, tensor: Tensor, frame: Any, batched: bool, own: bool = True) -> None:
        shape = tuple(tensor._payload.shape)
        self.tensor = tensor
        self.frame = frame
        self.batched = batched
        self.shape = shape[1:] if batched else shape
        self.own = own


# -- rules ------------------------------------------------------------------------------------------------------------
def pointwise_rule(op: Operator[..., Any]) -> Rule:
    """Return the rule of a pointwise operator without a list of tensors."""
    run = op.canonical

    def rule(size: int, batched: list[Any], *args: Any) -> Any:
        ranks = [len(a._payload.shape) - m for a, m in zip(args, batched, strict=True) if hasattr(a, "_keys")]
        rank = max(ranks)
        if min(ranks) == rank:
            return run(*args)
        return run(*[
            aligned(a, rank + 1 - len(a._payload.shape)) if m else a for a, m in zip(args, batched, strict=True)
        ])  # fmt: skip

    return rule


def pointwise_list_rule(op: Operator[..., Any]) -> Rule:
    """Return the rule of a pointwise operator with a list of tensors."""
    run = op.canonical

    def rule(size: int, batched: list[Any], *args: Any) -> Any:
        flat = [(t, m) for a, m in zip(args, batched) for t, m in (zip(a, m) if isinstance(m, list) else ((a, m),))]
        rank = max(len(t._payload.shape) - m for t, m in flat if isinstance(t, Tensor))

        def one(t: Any, marked: bool) -> Any:
            return aligned(t, rank + 1 - len(t._payload.shape)) if marked else t

        return run(*[
            [one(t, m) for t, m in zip(a, marks)] if isinstance(marks, list) else one(a, marks)
            for a, marks in zip(args, batched)
        ])  # fmt: skip

    return rule


def declare(*names: str) -> Callable[[Rule], Rule]:
    """Declare the rule of one or several operators of the core."""

    def keep(rule: Rule) -> Rule:
        for name in names:
            RULES[name] = rule
        return rule

    return keep


RULES: Final[dict[str, Rule]] = {}
"""The rules that no record implies. ``candelabra._transforms.batching_rules`` fills it."""
FACTORIES: Final[dict[str, Callable[[Operator[..., Any]], Any]]] = {}
"""Operators without tensors, or with a size of their own: functions that make the kernel from the record."""


# -- kernels ----------------------------------------------------------------------------------------------------------
def kernel_of(op: Operator[..., Any]) -> Rule | None:
    """Return the kernel of an operator, or None if its body serves it."""
    kind = family_of(op)
    if kind == "factory":
        made: Rule = FACTORIES[op.name](op)
        return made
    if kind == "declared":
        return with_frame(op, op.batching or RULES[op.name])
    if kind == "pointwise":
        return pointwise_kernel(op)
    if kind == "dims":
        return shifting_kernel(op)
    return with_frame(op, looped(op)) if kind == "loop" else None


def family_of(op: Operator[..., Any]) -> str:
    """Return how ``vmap`` serves an operator.

    ``"factory"``, ``"declared"``, ``"pointwise"`` or ``"dims"`` name the kind of its rule. ``"body"``: the operators of
    its body are batched; ``"draws"``: the layer of random numbers serves it; ``"loop"``: it has no rule.
    """
    if op.name in FACTORIES:
        return "factory"
    if op.batching is not None or op.name in RULES:
        return "declared"
    if getattr(op.rule, "pointwise", False):
        return "pointwise"
    tensors = op.schema.tensors
    function = (op.body is None or op.differentiable) and not (op.random or op.view)
    if function and len(tensors) == 1 and tensors[0] is op.schema.parameters[0] and dims_of(op):
        return "dims"
    if op.body is not None:
        return "body"
    return "draws" if op.random else "loop"


def pointwise_kernel(op: Operator[..., Any]) -> Rule:
    """Return the kernel of a pointwise operator: align the batch dims, and broadcast."""
    if any(p.kind == "list" for p in op.schema.parameters):
        return with_frame(op, pointwise_list_rule(op))
    run = op.canonical
    several = op.schema.result is not None
    kinds = [p.kind for p in op.schema.parameters]
    if not several and kinds[0] == TENSOR and not any(kind in TENSOR_KINDS for kind in kinds[1:]):
        return unary_kernel(run)
    if not several and len(kinds) == 2 and all(kind in (TENSOR, OPERAND) for kind in kinds):
        return binary_kernel(run)

    def kernel(*args: Any) -> Any:
        rank, frame, mixed, batched = -1, None, False, False
        for a in args:
            if type(a) is Batched:
                if frame is None:
                    frame = a.frame
                elif a.frame is not frame:
                    other_frame(a.frame, frame)
                if a.batched:
                    batched = True
                n = len(a.shape)
                if n != rank:
                    mixed = rank >= 0
                    rank = max(n, rank)
        if not frame.alive:  # type: ignore[union-attr]
            outlived(frame)  # type: ignore[arg-type]
        if mixed:
            values = [
                a if type(a) is not Batched else aligned(a.tensor, rank - len(a.shape)) if a.batched else a.tensor
                for a in args
            ]
        else:
            values = [a.tensor if type(a) is Batched else a for a in args]
        out = run(*values)
        if several:
            return tuple([Batched(o, frame, batched) for o in out])
        return Batched(out, frame, batched)

    return kernel


def inplace_kernel(op: Operator[..., Any]) -> Rule:
    """Return the kernel of a pointwise operator that writes to its first operand.

    It declines results that do not fit there: those per example for a target without a batch dim, and larger ones.
    """

    def kernel(target: Batched, *rest: Any) -> Any:
        frame, rank = target.frame, len(target.shape)
        values: list[Any] = [target.tensor]
        for a in rest:
            if type(a) is not Batched:
                if type(a) is list:
                    return NotImplemented
                values.append(a)
                continue
            if a.frame is not frame:
                other_frame(a.frame, frame)
            if len(a.shape) > rank or (a.batched and not target.batched):
                return NotImplemented
            values.append(aligned(a.tensor, rank - len(a.shape)) if a.batched else a.tensor)
        if not frame.alive:
            outlived(frame)
        redispatch(op, tuple(values), inplace=True)
        return target

    return kernel


def unary_kernel(run: Rule) -> Rule:
    """Return the kernel of a pointwise operator of one tensor."""

    def kernel(a: Batched, *rest: Any) -> Batched:
        if not a.frame.alive:
            outlived(a.frame)
        return Batched(run(a.tensor, *rest), a.frame, a.batched)

    return kernel


def binary_kernel(run: Rule) -> Rule:
    """Return the kernel of a pointwise operator of two operands, of which one may be a number."""

    def kernel(a: Any, b: Any) -> Batched:
        if type(b) is not Batched:
            frame, batched = a.frame, a.batched
            left, right = a.tensor, b
        elif type(a) is not Batched:
            frame, batched = b.frame, b.batched
            left, right = a, b.tensor
        else:
            frame, batched = a.frame, a.batched or b.batched
            left, right = a.tensor, b.tensor
            if b.frame is not frame:
                other_frame(b.frame, frame)
            missing = len(b.shape) - len(a.shape)
            if missing > 0:
                left = aligned(left, missing) if a.batched else left
            elif missing:
                right = aligned(right, -missing) if b.batched else right
        if not frame.alive:
            outlived(frame)
        return Batched(run(left, right), frame, batched)

    return kernel


def dims_of(op: Operator[..., Any]) -> list[int]:
    """Return the positions of the arguments that name dims of the first tensor."""
    return [i for i, p in enumerate(op.schema.parameters) if p.kind in (DIM, DIMS) or p.annotation in SHIFTED_DIMS]


def shifting_kernel(op: Operator[..., Any]) -> Rule:
    """Return the kernel of an operator of one tensor that acts on named dims: those behind the batch dim."""
    run = op.canonical
    several = op.schema.result is not None
    parameters = op.schema.parameters[1:]
    places = [(i - 1, parameters[i - 1].kind != DIM) for i in dims_of(op)]

    def kernel(a: Batched, *rest: Any) -> Any:
        frame = a.frame
        if not frame.alive:
            outlived(frame)
        x = a.tensor
        if a.batched:
            rank = len(a.shape)
            args = list(rest)
            for i, absent_is_all in places:
                args[i] = shifted(args[i], rank or 1, absent_is_all)
            if rank:
                out = run(x, *args)
            else:  # an operator on a number may name dim 0
                out = squeezed(run(aligned(x, 1), *args))
        else:
            out = run(x, *rest)
        if several:
            return tuple([Batched(o, frame, a.batched) for o in out])
        return Batched(out, frame, a.batched)

    return kernel


def shifted(dim: Any, rank: int, absent_is_all: bool) -> Any:
    """Return dims of an example as dims of the batch."""
    if dim is None:
        return tuple(range(1, rank + 1)) if absent_is_all else None
    return dim + 1 if isinstance(dim, int) else tuple([d + 1 for d in dim])


def squeezed(out: Any) -> Any:
    """Return results without the dim that was inserted for a number, where an operator has kept it."""
    if isinstance(out, tuple):
        return tuple([squeezed(o) for o in out])
    return out if len(out._payload.shape) == 1 else OPERATORS["squeeze"].canonical(out, (1,))


def with_frame(op: Operator[..., Any], rule: Rule) -> Rule:
    """Return a rule as a kernel over payloads. A call without a batched argument runs the operator once."""
    run = op.canonical
    several = op.schema.result is not None

    def kernel(*args: Any) -> Any:
        values: list[Any] = []
        marks: list[Any] = []
        frame: Any = None
        some = False
        for a in args:
            if type(a) is Batched:
                if frame is None:
                    frame = a.frame
                elif a.frame is not frame:
                    other_frame(a.frame, frame)
                values.append(a.tensor)
                marks.append(a.batched)
                some = some or a.batched
            elif type(a) is list:
                frame, found = _listed(a, values, marks, frame)
                some = some or found
            else:
                values.append(a)
                marks.append(False)
        if not frame.alive:
            outlived(frame)
        out = rule(frame.size, marks, *values) if some else run(*values)
        if out is NotImplemented:
            return out
        if several:
            return tuple([Batched(o, frame, some) for o in out])
        return Batched(out, frame, some)

    return kernel


def _listed(items: list[Any], values: list[Any], marks: list[Any], frame: Any) -> tuple[Any, bool]:
    """Add the tensors of a list to ``values`` and ``marks``; return the frame, and whether one of them is batched."""
    found = False
    tensors: list[Any] = []
    flags: list[bool] = []
    for item in items:
        if type(item) is Batched:
            if frame is None:
                frame = item.frame
            elif item.frame is not frame:
                other_frame(item.frame, frame)
            tensors.append(item.tensor)
            flags.append(item.batched)
            found = found or item.batched
        else:
            tensors.append(item)
            flags.append(False)
    values.append(tensors)
    marks.append(flags)
    return frame, found


def other_frame(first: Any, second: Any) -> NoReturn:
    """Raise the error for tensors of two uses of a level."""
    for frame in (first, second):
        if not frame.alive:
            outlived(frame)
    raise RuntimeError("tensors of two calls of vmap were combined: vmap runs in two threads, and they share a tensor")
