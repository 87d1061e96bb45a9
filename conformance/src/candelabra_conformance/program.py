"""The components of a program that shows a failure: its tensors, and the source of the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import candelabra as cd
import numpy as np

from candelabra_conformance import literals
from candelabra_conformance.layouts import CONTIGUOUS, PLACEMENTS, layout_of
from candelabra_conformance.records import CallableRecord, Record, parameter_names, set_of
from candelabra_conformance.transport import Array

Strides = tuple[tuple[int, ...], int]
Layout = str | Mapping[int, Strides]
"""The name of a layout, for every array; or (strides, offset) in elements by the identity of an array."""
LETTERS: Final = {"input": "x", "other": "y", "self": "x"}
"""Shorter names for parameters; others keep theirs."""


@dataclass
class ReproducerProgram:
    """The parts of a program under construction."""

    device: str
    layout: Layout
    setup: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    """Variables by the identity of their array. An array that occurs twice becomes one tensor."""
    first: int = 0
    """The number of the first variable of these arguments: keywords count from 0 too."""

    def tensor(self, array: Array, name: str) -> str:
        """Return the name of a variable that contains the array on the device, in the requested layout."""
        if id(array) not in self.names:
            taken, position = set(self.names.values()), len(self.names) - self.first
            self.names[id(array)] = name if name not in taken else f"{name}{len(taken)}"
            layout = self.layout if isinstance(self.layout, str) else self.layout.get(id(array), CONTIGUOUS)
            self.setup.append(f"{self.names[id(array)]} = {placed(array, layout, position)}")
        return self.names[id(array)]

    def argument(self, value: Any, name: str) -> str:
        """Return the source of one argument."""
        if isinstance(value, np.ndarray):
            return self.tensor(value, name)
        if isinstance(value, (list, tuple)) and any(isinstance(v, np.ndarray) for v in value):
            parts = ", ".join([self.argument(v, f"{name}{i}") for i, v in enumerate(value)])
            return f"[{parts}]" if isinstance(value, list) else f"({parts}{',' * (len(value) == 1)})"
        return literals.plain(value)


def argument_texts(
    program: ReproducerProgram, record: Record, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[str]:
    """Return the sources of the call's arguments, and add a variable to the program for each tensor."""
    names = parameter_names(record, len(args))
    names += [f"argument{i}" for i in range(len(names), len(args))]
    texts = [program.argument(value, LETTERS.get(name, name)) for name, value in zip(names, args, strict=False)]
    program.first = len(program.names)
    return texts + [f"{name}={program.argument(value, LETTERS.get(name, name))}" for name, value in kwargs.items()]


def spelled(record: Record, arguments: Sequence[str]) -> str:
    """Return the source of a call: of the public function if it is the operator itself, or of a method.

    A member of an overload set that is not a record is called by the set.
    """
    if isinstance(record, CallableRecord):
        if record.assigns:
            (name,) = record.entry.methods()
            return f"({method_text(name, False, arguments)}, {arguments[0]})[1]"
        entry = set_of(record) or record.entry
        if not entry.is_function:
            return method_text(next(iter(entry.methods())), entry.is_property, arguments)
        return f"cd.{entry.public_name}({', '.join(arguments)})"
    found: Any = cd
    for part in record.public_name.split("."):
        found = getattr(found, part, None)
    if found is record.function:
        return f"cd.{record.public_name}({', '.join(arguments)})"
    return f"OPERATORS[{record.name!r}]({', '.join(arguments)})"


def method_text(name: str, is_property: bool, arguments: Sequence[str]) -> str:
    """Return the source that calls a method of the first argument, or reads its property."""
    first, *rest = arguments
    return f"{first}.{name}" if is_property else f"{first}.{name}({', '.join(rest)})"


def placed(array: Array, layout: str | Strides, position: int = 0) -> str:
    """Return the source of a tensor with the layout that :func:`candelabra_conformance.layouts.to_layout` gives it."""
    if not isinstance(layout, str):
        return _strided(array, *layout)
    found = PLACEMENTS.get(layout_of(array, layout, position))
    if found is None:
        return literals.tensor(array)
    view: TensorSource = found.view(TensorSource(literals.tensor(np.ascontiguousarray(found.base(array)))), array.shape)
    return view.text


@dataclass(frozen=True)
class TensorSource:
    """The source of a tensor, whose methods return the sources of its views."""

    text: str

    def __getitem__(self, key: Any) -> TensorSource:
        parts = key if isinstance(key, tuple) else (key,)
        return TensorSource(f"{self.text}[{', '.join(_subscript(part) for part in parts)}]")

    def swapaxes(self, first: int, second: int) -> TensorSource:
        """Return the source of the view with two dims exchanged."""
        return TensorSource(f"{self.text}.transpose({first}, {second})")

    def expand(self, shape: tuple[int, ...]) -> TensorSource:
        """Return the source of the view that is repeated to a shape."""
        return TensorSource(f"{self.text}.expand({tuple(shape)})")


def _subscript(part: Any) -> str:
    if part is Ellipsis:
        return "..."
    bounds = ["" if bound is None else str(bound) for bound in (part.start, part.stop)]
    return ":".join([*bounds, *([str(part.step)] if part.step is not None else [])])


def _strided(array: Array, strides: tuple[int, ...], offset: int) -> str:
    """Return the source of a strided view of memory whose other elements are 1."""
    reach = sum((size - 1) * step for size, step in zip(array.shape, strides, strict=True)) if array.size else 0
    base = np.ones(offset + reach + 1, array.dtype)
    steps = [step * array.itemsize for step in strides]
    np.lib.stride_tricks.as_strided(base[offset:], array.shape, steps)[...] = array
    return f"{literals.tensor(base)}.as_strided({tuple(array.shape)}, {tuple(strides)}, {offset})"
