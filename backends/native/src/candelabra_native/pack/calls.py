"""Calls of kernels as text: a line of a list is one call, in the syntax of Python.

``softmax.f32(f32[64, 1000], -1)`` is a call of the kernel ``softmax`` for float32 with a contiguous array and a
number. ``3 * f32[8]`` is a sequence of three arrays. ``f32[3, 4][1, 3]`` has strides. ``f32[3][1][8, 0]`` begins at the
element 8 of the buffer 0 of the call: arrays that may share memory name their buffer. ``add.T(T[4], T[4]) for f32,
i64`` is a call for each of these dtypes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, nan, prod
from typing import Any, Final, NamedTuple

from candelabra.backend import is_contiguous_layout
from candelabra.dtypes import ALL, dtype
from candelabra_clike import Engine, StridedArray

_LETTERS: Final = {"bool": "b", "int": "i", "uint": "u", "float": "f", "bfloat": "bf", "complex": "c"}
DTYPES: Final[Mapping[str, dtype]] = {
    _LETTERS[d.name.rstrip("0123456789")] + d.name.lstrip("abcdefghijklmnopqrstuvwxyz"): d for d in ALL
}
"""Each dtype by its short name."""
SHORT: Final = {d: name for name, d in DTYPES.items()}
NUMBERS: Final = {"inf": inf, "nan": nan}
ANY: Final = "T"
"""Stands for the dtype in a line for several dtypes."""


class RecordedArray(NamedTuple):
    """An array of a call, without its memory."""

    dtype: dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    """None if the array is contiguous."""
    offset: int = 0
    buffer: int | None = None
    """The number of its buffer in the call, if other arrays have the same."""


@dataclass(frozen=True)
class RecordedCall:
    """A call of the kernel of an operator for a dtype."""

    operator: str
    dtype: dtype
    arguments: tuple[Any, ...]
    """Arrays, dtypes, numbers, strings, None, and tuples of them."""

    def __str__(self) -> str:
        return f"{self.operator}.{SHORT[self.dtype]}({', '.join(map(_shown, self.arguments))})"


class CallError(ValueError):
    """A line that is no call, or an argument that has no notation."""


# -- calls as text ----------------------------------------------------------------------------------------------------
def _shown(value: Any) -> str:
    if isinstance(value, RecordedArray):
        tail = "" if value.strides is None else f"[{_sizes(value.strides)}]"
        if value.buffer is not None:
            tail = f"[{_sizes(value.strides or ())}][{value.offset}, {value.buffer}]"
        return f"{SHORT[value.dtype]}[{_sizes(value.shape)}]{tail}"
    if isinstance(value, dtype):
        return SHORT[value]
    if isinstance(value, slice):
        return f"slice({value.start}, {value.stop}, {value.step})"
    if isinstance(value, tuple) and len(value) > 1 and isinstance(value[0], RecordedArray) and len(set(value)) == 1:
        return f"{len(value)} * {_shown(value[0])}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))}{',' * (len(value) == 1)})"
    return repr(value)


def _sizes(sizes: tuple[int, ...]) -> str:
    return ", ".join(map(str, sizes)) or "()"


def recorded(operator: str, d: dtype, arguments: Iterable[Any]) -> RecordedCall:
    """Return a call with these arguments. Raises :class:`CallError` for one that has no notation."""
    made = tuple(arguments)
    counts: dict[int, int] = {}
    for array in _arrays(made):
        counts[id(array.buffer)] = counts.get(id(array.buffer), 0) + 1
    shared = {key: i for i, key in enumerate(key for key, count in counts.items() if count > 1)}

    def abstract(value: Any) -> Any:
        if isinstance(value, StridedArray):
            number = shared.get(id(value.buffer))
            if number is not None:
                return RecordedArray(value.dtype, value.shape, value.strides, value.offset, number)
            return RecordedArray(value.dtype, value.shape, None if value.contiguous else value.strides)
        if isinstance(value, list | tuple):
            return tuple(map(abstract, value))
        if value is None or isinstance(value, bool | int | float | complex | str | dtype | slice):
            return value
        raise CallError(f"{operator}: an argument of type {type(value).__name__} has no notation: {value!r}")

    return RecordedCall(operator, d, tuple(map(abstract, made)))


def _arrays(value: Any) -> Iterator[StridedArray]:
    if isinstance(value, StridedArray):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _arrays(each)


# -- text as calls ----------------------------------------------------------------------------------------------------
def parse(text: str) -> list[RecordedCall]:
    """Return the calls of a list. Empty lines and those that begin with ``#`` are comments. Raises ``CallError``."""
    calls = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        call, _, several = line.partition(" for ")
        for name in several.split(",") if several else [""]:
            d = DTYPES.get(name.strip())
            if several and d is None:
                raise CallError(f"unknown dtype {name.strip()!r} in {line!r}")
            calls.append(_parse_line(call, {**DTYPES, ANY: d} if d else DTYPES))
    return calls


def _parse_line(line: str, names: Mapping[str, dtype]) -> RecordedCall:
    try:
        node = ast.parse(line, mode="eval").body
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            raise CallError("expected operator.dtype(arguments)")
        if not isinstance(node.func.value, ast.Name) or node.keywords:
            raise CallError("expected operator.dtype(arguments)")
        return RecordedCall(node.func.value.id, names[node.func.attr], tuple(_value(each, names) for each in node.args))
    except (CallError, KeyError, SyntaxError, ValueError) as error:
        raise CallError(f"{line!r} is no call: {error}") from error


def _value(node: ast.expr, names: Mapping[str, dtype]) -> Any:
    if isinstance(node, ast.Subscript):
        return _array(node, names)
    if isinstance(node, ast.Name):
        return NUMBERS[node.id] if node.id in NUMBERS else names[node.id]
    if isinstance(node, ast.Tuple):
        return tuple(_value(each, names) for each in node.elts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return (_value(node.right, names),) * ast.literal_eval(node.left)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "slice":
        return slice(*[_value(each, names) for each in node.args])
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Name):
        return -NUMBERS[node.operand.id]
    return ast.literal_eval(node)


def _array(node: ast.Subscript, names: Mapping[str, dtype]) -> RecordedArray:
    parts: list[tuple[int, ...]] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Subscript):
        part = ast.literal_eval(inner.slice)
        parts.insert(0, part if isinstance(part, tuple) else (part,))
        inner = inner.value
    if not isinstance(inner, ast.Name):
        raise CallError("expected dtype[shape]")
    shape, *rest = parts
    strides = rest[0] if rest else None
    offset, buffer = rest[1] if len(rest) > 1 else (0, None)
    return RecordedArray(names[inner.id], shape, strides, offset, buffer)


def combined(calls: Iterable[RecordedCall]) -> str:
    """Return a list as text: calls that differ in the dtype alone are one line."""
    lines: dict[str, list[str]] = {}
    for call in calls:
        name = SHORT[call.dtype]
        general = _generalised(str(call), name)
        lines.setdefault(general, []).append(name)
    shown = []
    for line, names in lines.items():
        shown.append(_specialised(line, names[0]) if len(names) == 1 else f"{line} for {', '.join(names)}")
    return "".join(f"{line}\n" for line in sorted(shown))


def _generalised(text: str, name: str) -> str:
    return text.replace(f".{name}(", f".{ANY}(", 1).replace(f" {name}[", f" {ANY}[").replace(f"({name}[", f"({ANY}[")


def _specialised(text: str, name: str) -> str:
    return text.replace(f".{ANY}(", f".{name}(", 1).replace(f" {ANY}[", f" {name}[").replace(f"({ANY}[", f"({name}[")


# -- arrays for a call ------------------------------------------------------------------------------------------------
def arguments(call: RecordedCall, engine: Engine) -> list[Any]:
    """Return the arguments of a call, with arrays in memory that the engine allocates."""
    buffers: dict[int, Any] = {}

    def concrete(value: Any) -> Any:
        if isinstance(value, RecordedArray):
            return placed(value)
        if isinstance(value, tuple) and any(isinstance(each, RecordedArray) for each in value):
            return [concrete(each) for each in value]
        return value

    def placed(array: RecordedArray) -> StridedArray:
        shape, strides = array.shape, array.strides
        if strides is None:
            return engine.empty(shape, array.dtype)
        span = 1 + sum(max(n - 1, 0) * step for n, step in zip(shape, strides))
        buffer = buffers.get(array.buffer) if array.buffer is not None else None
        if buffer is None:
            buffer = engine.allocate((array.offset + span) * array.dtype.itemsize)
            if array.buffer is not None:
                buffers[array.buffer] = buffer
        contiguous = is_contiguous_layout(shape, strides)
        return StridedArray(engine, buffer, shape, strides, array.offset, array.dtype, prod(shape), contiguous)

    return [concrete(value) for value in call.arguments]
