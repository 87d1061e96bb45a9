"""The functions that users' calls end in: generated, so that a call of contiguous arrays does nothing twice.

What is general (broadcasting, strides, overlaps) is left to :meth:`Elementwise.general`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from candelabra.backend import contiguous_strides
from candelabra.library import build, indent

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.numbers import LIMIT
from candelabra_clike.templates.elementwise.elementwise import Elementwise


class Number(NamedTuple):
    """A parameter that is a Python number, and how it becomes arguments of the kernel."""

    name: str
    convert: Callable[[Any], tuple[Any, ...]]
    types: tuple[str, ...]


class Strides(dict[Shape, Shape]):
    """The strides of contiguous arrays by their shapes."""

    def __missing__(self, shape: Shape) -> Shape:
        if len(self) > 4096:
            self.clear()
        found = self[shape] = contiguous_strides(shape)
        return found


STRIDES = Strides()


def call(
    nest: Elementwise, parameters: Sequence[str], arrays: Sequence[str], numbers: Sequence[Number], inplace: bool
) -> Callable[..., Any]:
    """The function of an operator's arguments: which of them are arrays and which are numbers is settled.

    ``inplace``: the result goes into the first array.
    """
    scope: dict[str, Any] = {
        "general": nest.general, "flat": nest.flat, "past_caches": nest.past_caches, "new": object.__new__,
        "Array": StridedArray, "STRIDES": STRIDES, "DTYPE": nest.output, "LIMIT": LIMIT,
        **{f"convert_{n.name}": n.convert for n in numbers},
    }  # fmt: skip
    values, lines = number_lines(numbers)
    first = arrays[0] if arrays else ""
    if arrays and not nest.nest.refuses:
        lines += flat_lines(nest, arrays, values, inplace)
    given = f"({', '.join(arrays)},)" if arrays else "()"
    taken = f"({', '.join(values)},)" if values else "()"
    lines.append(f"return general({given}, {taken}, {first if inplace else None})")
    return build(nest.nest.name, ", ".join(parameters), lines, scope, f"kernel {nest.nest.name}")


def number_lines(numbers: Sequence[Number]) -> tuple[list[str], list[str]]:
    """The names of the kernel's number arguments, and the lines that make them."""
    values: list[str] = []
    lines: list[str] = []
    for n in numbers:
        names = [f"s{len(values) + i}" for i in range(len(n.types))]
        values += names
        if n.types in (("f32",), ("f64",)):
            fits = f" and -LIMIT < {n.name} < LIMIT" if n.types == ("f32",) else ""
            lines.append(
                f"{names[0]} = {n.name} if {n.name}.__class__ is float{fits} else convert_{n.name}({n.name})[0]"
            )
        else:
            lines.append(f"{', '.join(names)}, = convert_{n.name}({n.name})")
    return values, lines


def flat_lines(nest: Elementwise, arrays: Sequence[str], values: Sequence[str], inplace: bool) -> list[str]:
    """All arrays contiguous, of one shape: queue the kernel at once."""
    first, others = arrays[0], arrays[1:]
    alike = [f"{n}.contiguous and {n}.shape == {first}.shape" for n in others]
    if inplace:
        alike += [f"{n}.buffer is not {first}.buffer" for n in others]
    out = first if inplace else "out"
    made = [
        "out = new(Array)",
        "out.engine = engine",
        f"out.buffer = engine.allocate(size * {nest.output.itemsize} or 1)",
        f"out.shape = shape = {first}.shape",
        "out.strides = STRIDES[shape]",
        "out.offset = 0",
        "out.dtype = DTYPE",
        "out.size = size",
        "out.contiguous = True",
    ]
    buffers = ", ".join(f"{n}.buffer" for n in (out, *arrays))
    offsets = ", ".join([f"{first}.offset" if inplace else "0", *[f"{n}.offset" for n in arrays]])
    launch = f"launch(-(-size // chunk), {', '.join([buffers, offsets, 'size', *values])})"
    body = [
        f"engine = {first}.engine",
        f"size = {first}.size",
        "launch, chunk, most = flat[engine]",
        *([] if inplace else ["if size > most:", "    launch = past_caches[engine]", *made]),
        launch,
        f"return {out}",
    ]
    return [f"if {' and '.join([f'{first}.contiguous', *alike])}:", *indent(body)]


def choosing(
    name: str, parameters: Sequence[str], tokens: Sequence[str], make: Callable[[tuple[Any, ...]], Callable[..., Any]]
) -> Callable[..., Any]:
    """A function that finds the form of a call by the tokens of its arguments, and makes it at its first call."""
    key = f"({', '.join(tokens)},)"
    lines = [
        "try:",
        f"    form = forms[{key}]",
        "except KeyError:",
        f"    form = forms[{key}] = make({key})",
        f"return form({', '.join(parameters)})",
    ]
    scope = {"forms": {}, "make": make, "Array": StridedArray}
    return build(name, ", ".join(parameters), lines, scope, f"forms of {name}")
