"""Index arrays in kernels: an element's offset along several dims is read from index arrays and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from candelabra_clike.array import Shape
from candelabra_clike.source import KernelParameter, number, reads, writes


class IndexedDim(NamedTuple):
    """The dim that an index array (int64) indexes: its number ``dim``, and ``size`` elements at a distance of ``step``.

    ``strides`` are those of the index array along the dims of the loop nest.
    """

    strides: Shape
    dim: int
    size: int
    step: int


def names(count: int) -> tuple[str, ...]:
    """Return the names of the index arrays in a kernel."""
    return tuple(f"i{j}" for j in range(count))


def buffers(count: int) -> list[KernelParameter]:
    """Return the parameters for the index arrays and for errors."""
    return [*[reads(name, "i64") for name in names(count)], writes("errors", "i64"), number("ticket", "u32")]


def extent_parameters(count: int) -> list[KernelParameter]:
    """Return the parameters of the dim that each index array indexes: its number, its size and its stride."""
    return [number(f"{part}_{name}") for name in names(count) for part in ("dim", "size", "step")]


def extent_arguments(indexed: Sequence[IndexedDim]) -> list[int]:
    """Return the arguments of :func:`extent_parameters`. Raises ``IndexError`` for an empty dim: no index is valid."""
    if not all(each.size for each in indexed):
        raise IndexError("index out of bounds: an indexed dim is empty")
    return [n for each in indexed for n in (each.dim, each.size, each.step)]


def declare_error() -> str:
    """Return the declarations of an invalid index: the number of its array, counted from 1, and its value."""
    return "u32 wrong = 0;\ni64 value = 0;\n"


def lookup(count: int, elements: Sequence[str], wraps: bool) -> str:
    """Return statements that compute ``good``, whether all indices are valid, and ``to``, their offset, or 0 if one is
    not.

    ``elements`` are the expressions of the indices. There is no branch, so that the surrounding loop can be vectorised.
    """
    lines = ["INDEX to = 0; u32 good = 1;"]
    for j, (name, element) in enumerate(zip(names(count), elements, strict=True), 1):
        lines += [
            f"const i64 w{j} = {element}, v{j} = {_wrapped(j, name, wraps)};",
            f"const u32 ok{j} = (u64)v{j} < (u64)size_{name};",
            f"wrong = ok{j} ? wrong : {j}u; value = ok{j} ? value : w{j}; good &= ok{j};",
            f"to += (INDEX)v{j} * step_{name};",
        ]
    return "\n".join(lines) + "\nto = good ? to : 0;\n"


def checked_lookup(count: int, elements: Sequence[str], wraps: bool) -> str:
    """Return statements that compute ``to`` as those of :func:`lookup`, for indices that are known to be valid."""
    lines = ["INDEX to = 0;"]
    for j, (name, element) in enumerate(zip(names(count), elements, strict=True), 1):
        lines.append(f"const i64 w{j} = {element}, v{j} = {_wrapped(j, name, wraps)};")
        lines.append(f"to += (INDEX)v{j} * step_{name};")
    return "\n".join(lines) + "\n"


def _wrapped(j: int, name: str, wraps: bool) -> str:
    """Return the expression of index ``j`` counted from the front."""
    return f"w{j} < 0 ? w{j} + (i64)size_{name} : w{j}" if wraps else f"w{j}"


def report(count: int) -> str:
    """Return the statement that reports an invalid index, after all indices have been checked."""
    choices = {
        part: "".join(f"wrong == {j}u ? {part}_i{j - 1} : " for j in range(1, count)) for part in ("dim", "size")
    }
    dim, size = (f"(i64)({choices[part]}{part}_i{count - 1})" for part in ("dim", "size"))
    return f"if (wrong) report_error(errors, ticket, value, {dim}, {size});\n"
