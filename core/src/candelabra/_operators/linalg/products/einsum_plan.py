"""The plan of the steps that compute an equation of ``einsum``, from labels and shapes only. It is cached.

Operands are contracted in pairs, each by one matrix product, in an order that keeps the products small.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from candelabra._annotations import Any, NamedTuple
from candelabra._operators.linalg.products.einsum_notation import Equation, Labels

Shape = tuple[int, ...]
Step = tuple[str, int, Any]
"""The operation, the number of its operand, and its argument: dims, a shape, or the other operand of a product."""


class EinsumTerm(NamedTuple):
    """An operand at some point of the plan: its number, and the label and the size of each dim."""

    number: int
    labels: Labels
    shape: Shape

    def size(self, label: int) -> int:
        """Return the size of the dim with this label, or 1 if no dim has it."""
        return self.shape[self.labels.index(label)] if label in self.labels else 1


@lru_cache(maxsize=512)
def plan(equation: Equation, shapes: tuple[Shape, ...]) -> tuple[Step, ...]:
    """Return the steps for operands of these shapes; the last operand that a step creates is the result.

    Raises ``RuntimeError`` if the shapes do not match the equation.
    """
    result = _Plan(len(shapes))
    terms = [
        result.diagonals(EinsumTerm(i, labels, shape), equation)
        for i, (labels, shape) in enumerate(zip(equation.inputs, shapes))
    ]
    _check_sizes(terms, equation)
    kept = set(equation.output)
    while len(terms) > 1:
        i, j = _cheapest(terms, kept) if len(terms) > 2 else (0, 1)
        rest = [t for k, t in enumerate(terms) if k not in (i, j)]
        needed = kept.union(*(t.labels for t in rest))
        terms = [*rest, result.contract(terms[i], terms[j], needed)]
    last = result.summed(terms[0], kept)
    result.permute(last, tuple(label for label in equation.output if label in last.labels))
    return tuple(result.steps)


class _Plan:
    """The list of steps. Each method appends a step, unless there is nothing to do, and returns the term after it."""

    def __init__(self, operands: int) -> None:
        self.steps: list[Step] = []
        self.operands = operands

    def diagonals(self, term: EinsumTerm, equation: Equation) -> EinsumTerm:
        """Take the diagonal of the dims with the same label."""
        for label in dict.fromkeys(term.labels):
            while term.labels.count(label) > 1:
                first = term.labels.index(label)
                second = term.labels.index(label, first + 1)
                a, b = term.shape[first], term.shape[second]
                if a != b:
                    raise RuntimeError(
                        f"einsum(): subscript {equation.name(label)} is repeated for operand {term.number} but the "
                        f"sizes don't match, {b} != {a}"
                    )
                self.steps.append(("diagonal", term.number, (first, second)))
                left = [(k, n) for d, (k, n) in enumerate(zip(term.labels, term.shape)) if d not in (first, second)]
                term = _term(term.number, [*left, (label, a)])
        return term

    def summed(self, term: EinsumTerm, kept: set[int]) -> EinsumTerm:
        """Sum over the dims whose label is not in ``kept``. Sums of integers are int64, as in :func:`sum`."""
        removed = tuple(d for d, label in enumerate(term.labels) if label not in kept)
        return self._without(term, removed, "sum")

    def squeezed(self, term: EinsumTerm, other: EinsumTerm) -> EinsumTerm:
        """Remove the dims of size 1 that are larger in the other operand, which broadcasts along them."""
        removed = tuple(d for d, label in enumerate(term.labels) if term.shape[d] == 1 and other.size(label) != 1)
        return self._without(term, removed, "squeeze")

    def _without(self, term: EinsumTerm, removed: tuple[int, ...], operation: str) -> EinsumTerm:
        if not removed:
            return term
        self.steps.append((operation, term.number, removed))
        return _term(term.number, [p for d, p in enumerate(zip(term.labels, term.shape)) if d not in removed])

    def permute(self, term: EinsumTerm, labels: Labels) -> EinsumTerm:
        """Permute the dims into the order of these labels."""
        order = tuple(term.labels.index(k) for k in labels)
        if order == tuple(range(len(order))):
            return term
        self.steps.append(("permute", term.number, order))
        return EinsumTerm(term.number, labels, tuple(term.shape[d] for d in order))

    def reshape(self, term: EinsumTerm, shape: Shape) -> None:
        """Merge dims, or split them."""
        if shape != term.shape:
            self.steps.append(("reshape", term.number, shape))

    def product(self, operation: str, one: EinsumTerm, other: EinsumTerm) -> int:
        """Append a product and return the number of the new operand."""
        self.steps.append((operation, one.number, other.number))
        self.operands += 1
        return self.operands - 1

    def contract(self, one: EinsumTerm, other: EinsumTerm, needed: set[int]) -> EinsumTerm:
        """Return the product of two operands, summed over the labels that are not in ``needed``."""
        one, other = self.squeezed(one, other), self.squeezed(other, one)
        one = self.summed(one, needed | set(other.labels))
        other = self.summed(other, needed | set(one.labels))
        inside = tuple(k for k in one.labels if k in other.labels and k not in needed)
        if not inside:
            return self.multiply(one, other)
        batch = tuple(k for k in one.labels if k in other.labels and k in needed)
        rows = tuple(k for k in one.labels if k not in other.labels)
        columns = tuple(k for k in other.labels if k not in one.labels)
        one, other = self.permute(one, batch + rows + inside), self.permute(other, batch + inside + columns)
        outer = [tuple(_joint(one, other, k) for k in labels) for labels in (batch, rows, columns)]
        depth, lead = prod([one.size(k) for k in inside]), (prod(outer[0]),) if batch else ()
        self.reshape(one, (*lead, prod(outer[1]), depth))
        self.reshape(other, (*lead, depth, prod(outer[2])))
        flat = (*lead, prod(outer[1]), prod(outer[2]))
        number = self.product("matmul", one, other)
        result = EinsumTerm(number, batch + rows + columns, outer[0] + outer[1] + outer[2])
        self.reshape(EinsumTerm(number, (), flat), result.shape)
        return result

    def multiply(self, one: EinsumTerm, other: EinsumTerm) -> EinsumTerm:
        """Return the elementwise product of two operands, without a sum."""
        labels = (*one.labels, *(k for k in other.labels if k not in one.labels))
        self.reshape(one, tuple(one.size(k) for k in labels))
        other = self.permute(other, tuple(k for k in labels if k in other.labels))
        self.reshape(other, tuple(other.size(k) for k in labels))
        shape = tuple(_joint(one, other, k) for k in labels)
        return EinsumTerm(self.product("mul", one, other), labels, shape)


def _joint(one: EinsumTerm, other: EinsumTerm, label: int) -> int:
    """Return the size of a dim of the product: 1 broadcasts, to 0 as well."""
    size = one.size(label)
    return size if size != 1 else other.size(label)


def _term(number: int, dims: Sequence[tuple[int, int]]) -> EinsumTerm:
    return EinsumTerm(number, tuple(label for label, _ in dims), tuple(size for _, size in dims))


def _check_sizes(terms: Sequence[EinsumTerm], equation: Equation) -> None:
    sizes: dict[int, int] = {}
    for term in terms:
        for label, size in zip(term.labels, term.shape):
            if sizes.setdefault(label, size) == 1:
                sizes[label] = size
            if size not in (1, sizes[label]):
                raise RuntimeError(
                    f"einsum(): subscript {equation.name(label)} has size {size} for operand {term.number} which does "
                    f"not broadcast with previously seen size {sizes[label]}"
                )


def _cheapest(terms: Sequence[EinsumTerm], kept: set[int]) -> tuple[int, int]:
    """Return the pair whose product is smallest compared with its operands: the greedy rule of opt_einsum."""

    def cost(i: int, j: int) -> tuple[bool, int, int, int]:
        one, other = terms[i], terms[j]
        needed = kept.union(*(t.labels for k, t in enumerate(terms) if k not in (i, j)))
        labels = {*one.labels, *other.labels}
        product_size = prod([_joint(one, other, k) for k in labels & needed])
        return not set(one.labels) & set(other.labels), product_size - prod(one.shape) - prod(other.shape), i, j

    return min(cost(i, j) for j in range(1, len(terms)) for i in range(j))[2:]
