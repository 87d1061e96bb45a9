"""Folds: the expressions of a reduction. Each element is mapped to a value, and two values are combined into one."""

from __future__ import annotations

from dataclasses import dataclass

from candelabra_clike.types import CType

VECTOR_TYPES = frozenset({"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64"})
"""The types for which there are vectors of eight."""


@dataclass(frozen=True)
class Fold:
    """``result(operation(each(x0), operation(each(x1), …)))``, as expressions of C.

    ``each`` maps a value ``{x}`` of the input to a ``lane``, the type in which up to some hundred elements are
    combined. ``operation`` combines ``{a}`` and ``{b}``, which are both lanes or both of the wider type ``total``, in
    which lanes are combined. ``identity`` is the identity element of the operation. ``result`` is an expression of the
    total ``{t}`` and of ``count``, the number of elements. ``vectorizes`` is true if ``each`` and ``operation`` are
    valid for vectors of eight.
    """

    each: str
    operation: str
    identity: str
    lane: str
    total: str
    result: str = "{t}"
    vectorizes: bool = True

    def accumulate(self, lane: str, value: str) -> str:
        """Return the statement that combines a value of the input (the name of a variable) with a lane."""
        return f"{lane} = {self.combine(lane, self.each.format(x=value))};\n"

    def combine(self, a: str, b: str) -> str:
        """Return the expression that combines two values."""
        return "(" + self.operation.format(a=a, b=b) + ")"

    def of_totals(self) -> Fold:
        """Return the fold over the totals of this fold."""
        return Fold("{x}", self.operation, self.identity, self.total, self.total, self.result, self.vectorizes)


def is_vectorizable(fold: Fold, element: CType) -> bool:
    """Return whether elements of this type can be loaded and combined as vectors of eight."""
    known = element.converts in ("f16", "bf16") if element.converts else element.memory in VECTOR_TYPES
    return (
        fold.vectorizes and known and fold.lane in VECTOR_TYPES and (element.value == fold.lane or fold.each == "{x}")
    )


def load_vector(fold: Fold, element: CType, address: str) -> str:
    """Return the expression that loads eight lanes from ``address``."""
    loaded = f"LOAD_X8({element.memory}, {address})"
    if element.converts:
        loaded = f"load_{element.converts}_x8({loaded})"
    if element.value != fold.lane:
        return f"AS_{fold.lane.upper()}X8({loaded})"
    return loaded


def reduce_vector(fold: Fold, name: str, lane: str) -> str:
    """Return statements that combine the elements of a vector with ``lane``, always in the same order."""
    pairs = ", ".join(f"{name}_{k} = {fold.combine(f'{name}.s{k}', f'{name}.s{k + 4}')}" for k in range(4))
    statements = " ".join(
        f"{name}_{a} = {fold.combine(f'{name}_{a}', f'{name}_{b}')};" for a, b in ((0, 2), (1, 3), (0, 1))
    )
    return f"{fold.lane} {pairs};\n{statements}\n{lane} = {fold.combine(lane, f'{name}_0')};\n"
