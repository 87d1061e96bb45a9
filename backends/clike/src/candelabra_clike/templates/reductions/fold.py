"""Folds: reductions as expressions. Each element is mapped to a value, and two values are combined into one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from candelabra_clike.language import Value, Variable, constant, declared, is_vectorizable, text
from candelabra_clike.types import CType


def identity(value: Value) -> Value:
    """Return the element itself."""
    return value


def own_total(total: Value, count: Value) -> Value:
    """Return the total as the result."""
    return total


class TypedFold:
    """``result(operation(each(x0), operation(each(x1), …)))``.

    ``each`` maps an element of type ``element`` to a ``lane``, the type in which up to some hundred elements are
    combined. ``operation`` combines two lanes, or two values of the wider type ``total``, in which lanes are combined.
    ``first`` is the identity element of the operation. ``result`` maps the total and the number of elements to a value
    of type ``output``, by default the total's. Raises ``ExpressionError``.
    """

    def __init__(
        self,
        name: str,
        element: str,
        lane: str,
        operation: Callable[[Value, Value], Value],
        first: int | float = 0,
        *,
        total: str = "",
        each: Callable[[Value], Value] = identity,
        result: Callable[[Value, Value], Value] = own_total,
        output: str = "",
    ) -> None:
        self.name = name
        self.element = element
        self.lane = lane
        self.total = total or lane
        self.operation = operation
        self.first = first
        self.output = output or self.total
        self._result = result
        self._each = declared(repr(name), each, (Variable(element, "x"),), lane)
        self._finished = declared(
            repr(name), result, (Variable(self.total, "total"), Variable("u64", "count")), self.output
        )
        for type in (lane, self.total):
            declared(repr(name), operation, (Variable(type, "a"), Variable(type, "b")), type)

    @property
    def identity(self) -> str:
        """The text of the identity element, for lanes and totals."""
        return text(constant(self.total, self.first))

    def each(self, form: str = "") -> str:
        """Return the text of the lane of element ``x``; ``form`` is that of :func:`~candelabra_clike.language.text`."""
        return text(self._each, form)

    def combine(self, a: str, b: str) -> str:
        """Return the text that combines two values."""
        return f"({text(self.operation(Variable(self.lane, a), Variable(self.lane, b)))})"

    def finished(self, total: str) -> str:
        """Return the text of the result of a total, the name of a variable."""
        return text(self._result(Variable(self.total, total), Variable("u64", "count")))

    def of_totals(self) -> TypedFold:
        """Return the fold over the totals of this fold."""
        return TypedFold(
            self.name, self.total, self.total, self.operation, self.first, result=self._result, output=self.output
        )

    @cached_property
    def vectorizes(self) -> bool:
        """Whether lanes may be vectors of eight."""
        operands = (Variable(self.lane, "a"), Variable(self.lane, "b"))
        return is_vectorizable(self._each) and is_vectorizable(self.operation(*operands))


def is_vector_fold(fold: TypedFold, element: CType) -> bool:
    """Return whether elements of this type can be loaded and combined as vectors of eight."""
    return fold.vectorizes and element.converts in ("", "f16", "bf16")


def reduce_vector(fold: TypedFold, name: str, lane: str) -> str:
    """Return statements that combine the elements of a vector with ``lane``, always in the same order."""
    pairs = ", ".join(f"{name}_{k} = {fold.combine(f'{name}.s{k}', f'{name}.s{k + 4}')}" for k in range(4))
    statements = " ".join(
        f"{name}_{a} = {fold.combine(f'{name}_{a}', f'{name}_{b}')};" for a, b in ((0, 2), (1, 3), (0, 1))
    )
    return f"{fold.lane} {pairs};\n{statements}\n{lane} = {fold.combine(lane, f'{name}_0')};\n"
