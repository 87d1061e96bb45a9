"""Vectors of a processor's registers in typed kernels: the same expressions, for some adjacent elements at once.

In a loop of :meth:`~candelabra_clike.language.kernels.KernelBuilder.vectors`, an element that is indexed by the loop's
counter is a vector, and so is what is computed from it. Other values are the same for all lanes. An expression has the
type of one lane, and is an error if C has no such operation of vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from candelabra_clike.language.printing import FORMS, is_vectorizable, text
from candelabra_clike.language.values import (
    Constant,
    Element,
    FunctionCall,
    Operation,
    Select,
    Value,
    Variable,
    VectorElement,
    replaced,
)

if TYPE_CHECKING:
    from candelabra_clike.language.kernels import KernelBuilder


@dataclass(frozen=True, eq=False)
class VectorVariable(Variable):
    """A variable with a number of lanes."""

    lanes: int


@dataclass(frozen=True, eq=False)
class VectorCounter(Variable):
    """The counter of a loop over vectors: the index of the first lane."""

    lanes: int


VECTORS: Final = (VectorVariable, VectorElement)


def lanes_of(value: Value) -> int:
    """Return the lanes of a value: 1 if it is the same for all. Raises ``TypeError`` for two numbers of them."""
    found = {node.lanes for node in value.walk() if isinstance(node, VECTORS)}
    if len(found) > 1:
        raise TypeError(f"vectors of {' and of '.join(map(str, sorted(found)))} lanes")
    return found.pop() if found else 1


def counter_of(index: Value) -> VectorCounter | None:
    """Return the counter of vectors in the index of an element, if there is one. Raises ``TypeError`` if adjacent lanes
    would not be adjacent elements.
    """
    if isinstance(index, VectorCounter):
        return index
    if not any(isinstance(node, VectorCounter) for node in index.walk()):
        return None
    found = [counter_of(each) for each in index.operands] if isinstance(index, Operation) and index.sign == "+" else []
    counters = [each for each in found if each is not None]
    if len(counters) != 1:
        raise TypeError("the index of a vector: expected a sum with the counter of the loop")
    return counters[0]


def lane_of(vector: Variable, lane: int) -> Variable:
    """Return a lane of a variable."""
    return Variable(vector.type, f"{vector.name}.s{lane}")


def vector_type(type: str, lanes: int) -> str:
    """Return the type of a variable with lanes."""
    return f"{type}x{lanes}"


def vector_text(value: Value, lanes: int) -> str:
    """Return the text of a value as a vector. Raises ``TypeError`` if C has no such expression."""
    if lanes_of(value) == 1:
        return f"({vector_type(value.type, lanes)})({text(value)})"
    names: dict[Value, Value] = {}

    def is_vector(node: Value) -> bool:
        """Return whether a node is a vector. Its operands that are not get their scalar text as a name."""
        if isinstance(node, VECTORS):
            return True
        scalars = [each for each in node.operands if not is_vector(each)]
        if len(scalars) == len(node.operands):
            return False
        for each in scalars:
            if not isinstance(each, Variable | Constant):
                printed = text(each)
                whole = isinstance(each, Element | FunctionCall)
                names[each] = Variable(each.type, printed if whole else f"({printed})")
        return True

    is_vector(value)
    value = replaced(value, names) if names else value
    for node in value.walk():
        if isinstance(node, Select) and 1 in (lanes_of(node.condition), max(map(lanes_of, (node.chosen, node.other)))):
            raise TypeError("a choice by a vector between two numbers, or the reverse, is no expression of vectors")
    if not is_vectorizable(value) or (lanes < 8 and any(isinstance(node, FunctionCall) for node in value.walk())):
        raise TypeError("an expression that has no form for vectors")
    return text(value, FORMS[lanes])


def declare_combined(k: KernelBuilder, name: str, vector: Variable, combine: Callable[[Value, Value], Value]) -> Value:
    """Declare the combination of all lanes of a vector: halves are combined until one number is left."""
    assert isinstance(vector, VectorVariable)
    while vector.lanes > 8:
        halves = [VectorVariable(vector.type, f"{vector.name}.{half}", vector.lanes // 2) for half in ("lo", "hi")]
        combined = k.let(f"{name}_{vector.lanes // 2}", combine(*halves))
        assert isinstance(combined, VectorVariable)
        vector = combined
    values: list[Value] = [lane_of(vector, lane) for lane in range(vector.lanes)]
    while len(values) > 1:
        half = len(values) // 2
        made = [combine(a, b) for a, b in zip(values[:half], values[half:], strict=True)]
        values = [k.let(f"{name}_{half}_{i}", each) for i, each in enumerate(made)] if half > 1 else made
    return k.let(name, values[0])
