"""Einstein's summation: a sum of products, written with one letter per dim.

Two steps: the equation is read into labels (:mod:`candelabra.families.einsum_notation`), then the operands are
contracted two at a time, each pair by one matrix product, in the order that keeps what lies between small.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra.families.einsum_notation import Equation, read_equation, read_sublists
from candelabra.families.products import alike
from candelabra.fronts.registry import front
from candelabra.ops.reductions import matmul

if TYPE_CHECKING:
    from candelabra.tensor import Tensor

Labels = tuple[int, ...]
Labelled = tuple["Tensor", Labels]
"""A tensor and the label of each of its dims."""


@front(method=False)
def einsum(*args: Any) -> Tensor:
    """Sums of products in Einstein's notation: ``einsum("ij,jk->ik", a, b)`` is ``a @ b``.

    Letters a-z and A-Z name dims; one that occurs in several operands is multiplied along, one that is not in the
    output is summed over; a letter twice in one operand takes the diagonal. ``...`` stands for dims without a letter,
    which broadcast. Without ``->`` the output has the dims of ``...``, then the letters that occur once, in order of
    the alphabet. Operands may come as one list; ``einsum(a, [0, 1], b, [1, 2], [0, 2])`` writes labels as integers
    below 52. Of three operands and more, the pair whose product is smallest is contracted first. ``RuntimeError`` for
    an equation that cannot be read or does not fit the operands.
    """
    if not args:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand "
                         "and its subscripts list")  # fmt: skip
    if isinstance(args[0], str):
        operands = tuple(args[1:])
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = tuple(operands[0])
        if not operands:
            raise ValueError("einsum(): must specify the equation string and at least one operand")
        equation = read_equation(args[0], [_rank(t) for t in operands])
    else:
        if hasattr(args[0], "_payload") and len(args) == 1:
            raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one "
                             "operand and its subscripts list")  # fmt: skip
        operands = tuple(args[0 : len(args) - len(args) % 2 : 2])
        equation = read_sublists(args, [_rank(t) for t in operands])
    return _evaluated(operands, equation)


def _rank(operand: Any) -> int:
    if not hasattr(operand, "_payload"):
        raise TypeError(f"einsum(): expected Tensor operands, but got {type(operand).__name__}")
    return len(operand._payload.shape)


def _evaluated(operands: Sequence[Tensor], equation: Equation) -> Tensor:
    terms = [_diagonals(t, labels, i, equation) for i, (t, labels) in enumerate(zip(operands, equation.inputs))]
    _check_sizes(terms, equation)
    for other in operands[1:]:
        alike(operands[0], other)
    kept = set(equation.output)
    while len(terms) > 1:
        i, j = _cheapest(terms, kept) if len(terms) > 2 else (0, 1)
        rest = [t for k, t in enumerate(terms) if k not in (i, j)]
        needed = kept.union(*(labels for _, labels in rest))
        terms = [*rest, _contract(terms[i], terms[j], needed)]
    tensor, labels = _summed(terms[0], kept)
    order = [labels.index(label) for label in equation.output if label in labels]
    if order != list(range(len(order))):
        tensor = tensor.permute(order)
    return tensor if tensor is not operands[0] else tensor.view_as(tensor)


# -- operands ---------------------------------------------------------------------------------------------------------
def _diagonals(tensor: Tensor, labels: Labels, operand: int, equation: Equation) -> Labelled:
    """A label that occurs twice takes the diagonal."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            a, b = tensor.shape[first], tensor.shape[second]
            if a != b:
                raise RuntimeError(
                    f"einsum(): subscript {equation.name(label)} is repeated for operand {operand} but the sizes don't "
                    f"match, {b} != {a}"
                )
            tensor = tensor.diagonal(0, first, second)
            labels = (*(k for d, k in enumerate(labels) if d not in (first, second)), label)
    return tensor, labels


def _check_sizes(terms: list[Labelled], equation: Equation) -> None:
    sizes: dict[int, int] = {}
    for operand, (tensor, labels) in enumerate(terms):
        for label, size in zip(labels, tensor.shape):
            if sizes.setdefault(label, size) == 1:
                sizes[label] = size
            if size not in (1, sizes[label]):
                raise RuntimeError(
                    f"einsum(): subscript {equation.name(label)} has size {size} for operand {operand} which does not "
                    f"broadcast with previously seen size {sizes[label]}"
                )


def _summed(term: Labelled, kept: set[int]) -> Labelled:
    """Sum over the dims whose label nobody needs any more; integers sum to int64, as they do anywhere."""
    tensor, labels = term
    gone = tuple(d for d, label in enumerate(labels) if label not in kept)
    if not gone:
        return term
    return tensor.sum(gone), tuple(label for label in labels if label in kept)


# -- pairs ------------------------------------------------------------------------------------------------------------
def _sizes(*terms: Labelled) -> dict[int, int]:
    found: dict[int, int] = {}
    for tensor, labels in terms:
        for label, size in zip(labels, tensor.shape):
            found[label] = max(found.get(label, 1), size) if size != 0 else 0
    return found


def _cheapest(terms: list[Labelled], kept: set[int]) -> tuple[int, int]:
    """The pair whose product is smallest, counted beside what it replaces: opt_einsum's greedy rule."""
    best: tuple[Any, ...] | None = None
    for j in range(1, len(terms)):
        for i in range(j):
            others = (labels for k, (_, labels) in enumerate(terms) if k not in (i, j))
            needed = kept.union(*others)
            sizes = _sizes(terms[i], terms[j])
            made = prod([size for label, size in sizes.items() if label in needed])
            replaced = terms[i][0].numel() + terms[j][0].numel()
            common = bool(set(terms[i][1]) & set(terms[j][1]))
            rank = (not common, made - replaced, i, j)
            if best is None or rank < best:
                best = rank
    assert best is not None
    return best[2], best[3]


def _contract(one: Labelled, other: Labelled, needed: set[int]) -> Labelled:
    """The product of two operands, summed over what is not needed any more."""
    one, other = _without_ones(one, other), _without_ones(other, one)
    one = _summed(one, needed | set(other[1]))
    other = _summed(other, needed | set(one[1]))
    (a, la), (b, lb) = one, other
    inside = [label for label in la if label in lb and label not in needed]
    if not inside:
        return _multiply(one, other)
    batch = [label for label in la if label in lb and label in needed]
    rows, columns = [k for k in la if k not in lb], [k for k in lb if k not in la]
    sizes = _sizes(one, other)
    batch_sizes, row_sizes = [sizes[k] for k in batch], [sizes[k] for k in rows]
    column_sizes, depth = [sizes[k] for k in columns], prod([sizes[k] for k in inside])
    left = a.permute([la.index(k) for k in (*batch, *rows, *inside)])
    right = b.permute([lb.index(k) for k in (*batch, *inside, *columns)])
    lead = [prod(batch_sizes)] if batch else []
    left = left.reshape([*lead, prod(row_sizes), depth])
    right = right.reshape([*lead, depth, prod(column_sizes)])
    product = matmul(left, right).reshape(batch_sizes + row_sizes + column_sizes)
    return product, (*batch, *rows, *columns)


def _without_ones(term: Labelled, other: Labelled) -> Labelled:
    """Drop dims of size 1 that the other operand has, larger: it broadcasts along them."""
    tensor, labels = term
    sizes = dict(zip(other[1], other[0].shape))
    gone = [d for d, label in enumerate(labels) if tensor.shape[d] == 1 and sizes.get(label, 1) != 1]
    if not gone:
        return term
    return tensor.squeeze(tuple(gone)), tuple(label for d, label in enumerate(labels) if d not in gone)


def _multiply(one: Labelled, other: Labelled) -> Labelled:
    (a, la), (b, lb) = one, other
    labels = (*la, *(k for k in lb if k not in la))
    if len(la) < len(labels):
        a = a.reshape([*a.shape, *[1] * (len(labels) - len(la))])
    b = b.permute([lb.index(k) for k in labels if k in lb])
    b = b.reshape([b.shape[[k for k in labels if k in lb].index(k)] if k in lb else 1 for k in labels])
    return a * b, labels
