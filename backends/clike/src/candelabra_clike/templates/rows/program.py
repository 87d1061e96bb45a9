"""Row programs: reductions of a row, one after another, then an expression for every element of the output.

The functions of a program are called with variables for elements, results and numbers, and return expressions
of :mod:`candelabra_clike.language`. They ask for what they need by the names of their parameters:

- ``a``, ``b`` …: the elements of the operands; ``o``: the element that a reduction has written to the output;
- ``r0``, ``r1`` …: the results of earlier reductions; ``s0``, ``s1`` …: the numbers of the program;
- in a ``result``: the ``total``, the ``count`` of elements, and ``type``, the name of the type of values.

A program is declared once for all dtypes, so its expressions are built for every type of values and of totals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, Final, NamedTuple

from candelabra_clike.language import (
    Value,
    Variable,
    cast,
    constant,
    declared,
    is_vectorizable,
    select,
    selected_by_lanes,
    text,
)

NAMES: Final = "abcdef"
"""The names of operands in expressions."""
RowExpression = Callable[..., Any]
"""A function that returns a :class:`~candelabra_clike.language.Value`."""


class RowTypes(NamedTuple):
    """The type of values, and that of totals: ``f64`` on devices that have it."""

    value: str
    total: str


ALL_TYPES: Final = (RowTypes("f32", "f32"), RowTypes("f32", "f64"), RowTypes("f64", "f64"))


class RowOperation(NamedTuple):
    """An associative operation with its identity element. With ``widens``, totals have the type of totals.

    With ``reads_next``, the function gets the two values of the next reduction of the program after its own two, as
    they are before that one combines them. Only serial devices have this.
    """

    function: Callable[..., Value]
    first: float
    widens: bool
    reads_next: bool = False

    def total(self, types: RowTypes) -> str:
        """Return the type of totals."""
        return types.total if self.widens else types.value

    def combine(self, type: str, *values: str) -> str:
        """Return the text that combines two values, which are followed by those of the next reduction if it reads
        them.
        """
        return f"({text(self.function(*[Variable(type, value) for value in values]))})"

    def identity(self, type: str) -> str:
        """Return the text of the identity element."""
        return text(constant(type, self.first))


SUM: Final = RowOperation(lambda a, b: a + b, 0, True)
MAX: Final = RowOperation(lambda a, b: select(a > b, a, b), -inf, False)
"""The maximum. It ignores NaN in ``a`` and returns it from ``b``."""


class RowReduction(NamedTuple):
    """A reduction over a row: the ``operation`` of the values of ``each``, and its ``result``, by default the total.

    With ``store_elements``, the values are written to the output, and later expressions refer to them as ``o``. With
    ``stored_result``, the result is an output.
    """

    operation: RowOperation
    each: RowExpression
    result: RowExpression = lambda total: total
    store_elements: bool = False
    stored_result: bool = False


@dataclass(frozen=True, eq=False)
class RowProgram:
    """Reductions of a row, and the ``last`` expression for the elements of the output. Without it, only the reductions
    store. ``second`` is the expression of another output of the same shape; only serial devices have this.

    With ``contract``, ``a * b + c`` may be fused; a difference of equal products is then the rounding error of one of
    them, and not 0. Raises ``ExpressionError`` for a wrong expression.
    """

    name: str
    operands: int
    passes: tuple[RowReduction, ...]
    last: RowExpression | None = None
    numbers: int = 0
    contract: bool = True
    second: RowExpression | None = None

    def __post_init__(self) -> None:
        for types in ALL_TYPES:
            for position in range(self.expressions):
                self.element(position, types.value)
            for position in range(len(self.passes)):
                self.result(position, types)

    @property
    def expressions(self) -> int:
        """The number of expressions for elements: those of the reductions, and of the outputs."""
        return len(self.passes) + len(self.outputs)

    @property
    def outputs(self) -> tuple[RowExpression, ...]:
        """The expressions for the elements of the outputs."""
        return tuple([each for each in (self.last, self.second) if each is not None])

    def element(self, position: int, type: str, results: str = "r{}") -> Value:
        """Return the expression of an element, of values ``va``, ``vb`` … in memory. ``results`` are the names of
        earlier results.
        """
        count = len(self.passes)
        function = self.passes[position].each if position < count else self.outputs[position - count]
        names = [*NAMES[: self.operands], *"o" * any(p.store_elements for p in self.passes[:position])]
        elements = {n: Variable(type, f"v{n}") for n in names}
        return declared(
            f"{self.name!r} in {type}", function, {**elements, **self._known(position, type, results)}, type
        )

    def result(self, position: int, types: RowTypes, total: str = "total", results: str = "r{}") -> Value:
        """Return the result of a reduction, as a value, from the name of its total."""
        p, type = self.passes[position], types.value
        wide = p.operation.total(types)
        names = {"total": Variable(wide, total), "count": Variable("u64", "count"), "type": type}
        known = self._known(position, type, results)
        return cast(type, declared(f"{self.name!r} in {type}", p.result, {**names, **known}, type, wide))

    def _known(self, position: int, type: str, results: str) -> dict[str, Value]:
        """Return the results of the reductions before ``position``, and the numbers."""
        earlier = {f"r{i}": Variable(type, results.format(i)) for i in range(min(position, len(self.passes)))}
        return {**earlier, **{f"s{i}": Variable(type, f"s{i}") for i in range(self.numbers)}}

    @cached_property
    def vectorizes(self) -> bool:
        """Whether the texts for elements are valid if operands are vectors; results and numbers never are."""
        lanes = {f"v{n}" for n in (*NAMES, "o")}
        every = [self.element(position, "f32") for position in range(self.expressions)]
        return all(is_vectorizable(value) and selected_by_lanes(value, lanes) for value in every)
