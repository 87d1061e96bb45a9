"""The parser of ``einsum`` equations, which assigns a label to every dim of every operand and of the output.

Labels are 0 to 25 for A to Z and 26 to 51 for a to z. The dims of an ellipsis have labels from 52, aligned at the
right.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from candelabra._annotations import Any, Final, NamedTuple

LETTERS: Final = 52
ELLIPSIS: Final = -1
Labels = tuple[int, ...]


class Equation(NamedTuple):
    """The labels of each operand's dims, and of the output's."""

    inputs: tuple[Labels, ...]
    output: Labels
    numbered: bool
    """Whether labels were written as integers."""

    def name(self, label: int) -> str:
        """Return a label as the user wrote it."""
        return label_name(label, self.numbered)


def label_name(label: int, numbered: bool) -> str:
    """Return a label as it is written in an equation, or in a sublist."""
    if label >= LETTERS or label == ELLIPSIS:
        return "..."
    return str(label) if numbered else chr(label + ord("A") if label < 26 else label - 26 + ord("a"))


@lru_cache(maxsize=512)
def read_equation(equation: str, ranks: tuple[int, ...]) -> Equation:
    """Parse an equation of letters for operands of these ranks."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    subscripts = [_read_letters(part, f"operand {i}") for i, part in enumerate(left.split(","))]
    if len(subscripts) != len(ranks):
        more = "more" if len(ranks) > len(subscripts) else "fewer"
        raise RuntimeError(f"einsum(): {more} operands were provided than specified in the equation")
    return _resolved(subscripts, _read_letters(right, "the output") if arrow else None, ranks, False)


def _read_letters(text: str, where: str) -> list[int]:
    result: list[int] = []
    i = 0
    while i < len(text):
        letter = text[i]
        if letter == ".":
            if text[i : i + 3] != "...":
                raise RuntimeError(
                    f"einsum(): found '.' for {where} that is not part of any ellipsis: an ellipsis has three dots"
                )
            if ELLIPSIS in result:
                raise RuntimeError(f"einsum(): found '.' for {where} for which an ellipsis was already found")
            result.append(ELLIPSIS)
            i += 3
            continue
        if not (letter.isascii() and letter.isalpha()):
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {i} of {where} in the equation string, subscripts must be "
                f"in [a-zA-Z], but found {letter!r}"
            )
        result.append(ord(letter) - ord("A") if letter <= "Z" else ord(letter) - ord("a") + 26)
        i += 1
    return result


def read_sublists(args: Sequence[Any], ranks: Sequence[int]) -> Equation:
    """Parse ``operand, labels, operand, labels, …[, output labels]`` with labels as integers and ``Ellipsis``."""
    count = len(args) // 2
    subscripts = [_read_numbers(args[2 * i + 1], f"operand {i}") for i in range(count)]
    output = _read_numbers(args[-1], "the output") if len(args) % 2 else None
    return _resolved(subscripts, output, ranks, True)


def _read_numbers(labels: Any, where: str) -> list[int]:
    if not isinstance(labels, (list, tuple)):
        raise TypeError(f"einsum(): expected a list of integers and Ellipsis for {where}, got {type(labels).__name__}")
    result = []
    for label in labels:
        if label is not Ellipsis and not 0 <= int(label) < LETTERS:
            raise RuntimeError(
                f"einsum(): invalid subscript {label} for {where} in the sublist format, subscripts must be in the "
                f"range [0, {LETTERS})"
            )
        result.append(ELLIPSIS if label is Ellipsis else int(label))
    if result.count(ELLIPSIS) > 1:
        raise RuntimeError(f"einsum(): found more than one ellipsis for {where}")
    return result


def _resolved(subscripts: list[list[int]], output: list[int] | None, ranks: Sequence[int], numbered: bool) -> Equation:
    """Return the equation with labels for the dims of ellipses, and with an output if the user wrote none."""
    widths = []
    for i, (labels, rank) in enumerate(zip(subscripts, ranks)):
        named = len(labels) - labels.count(ELLIPSIS)
        if named > rank or (named < rank and ELLIPSIS not in labels):
            hint = ", and no ellipsis was given" if ELLIPSIS not in labels else ""
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions "
                f"({rank}) for operand {i}{hint}"
            )
        widths.append(rank - named if ELLIPSIS in labels else 0)
    widest = max(widths)
    dots = list(range(LETTERS, LETTERS + widest))
    inputs = tuple(tuple(_spelled(labels, dots[widest - width :])) for labels, width in zip(subscripts, widths))
    if output is None:
        letters = [k for labels in subscripts for k in labels if k != ELLIPSIS]
        return Equation(inputs, (*dots, *sorted(k for k in set(letters) if letters.count(k) == 1)), numbered)
    _check_output(output, subscripts, numbered)
    return Equation(inputs, tuple(_spelled(output, dots)), numbered)


def _spelled(labels: list[int], dots: list[int]) -> list[int]:
    return [k for label in labels for k in (dots if label == ELLIPSIS else [label])]


def _check_output(output: list[int], subscripts: list[list[int]], numbered: bool) -> None:
    known = {k for labels in subscripts for k in labels}
    for label in output:
        if label == ELLIPSIS:
            continue
        name = label_name(label, numbered)
        if output.count(label) > 1:
            raise RuntimeError(f"einsum(): output subscript {name} appears more than once in the output")
        if label not in known:
            raise RuntimeError(
                f"einsum(): output subscript {name} does not appear in the equation for any input operand"
            )
