"""Generated functions that kernels of operators end in: the fast path for contiguous arrays.

:meth:`Elementwise.general` handles broadcasting, strides and overlapping memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from candelabra.backend import contiguous_strides
from candelabra.library import build, indent

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.conversions import LIMIT
from candelabra_clike.layouts import broadcast
from candelabra_clike.templates.elementwise.elementwise import Elementwise


class ScalarParameter(NamedTuple):
    """A parameter that is a Python number, and its conversion to arguments of the kernel."""

    name: str
    convert: Callable[[Any], tuple[Any, ...]]
    types: tuple[str, ...]


class ContiguousStrides(dict[Shape, Shape]):
    """The strides of contiguous arrays by shape."""

    def __missing__(self, shape: Shape) -> Shape:
        if len(self) > 4096:
            self.clear()
        strides = self[shape] = contiguous_strides(shape)
        return strides


STRIDES = ContiguousStrides()


def build_call(
    nest: Elementwise,
    parameters: Sequence[str],
    arrays: Sequence[str],
    numbers: Sequence[ScalarParameter],
    inplace: bool,
) -> Callable[..., Any]:
    """Generate the function that calls a kernel for fixed kinds of arguments: which are arrays and which are numbers.

    With ``inplace`` the result is written into the first array. Otherwise the function has an attribute ``into``:
    None, or a function that writes the result into the array before the arguments, or declines one of another shape.
    """
    scope: dict[str, Any] = {
        "general": nest.general, "flat": nest.flat, "past_caches": nest.nontemporal, "new": object.__new__,
        "Array": StridedArray, "STRIDES": STRIDES, "DTYPE": nest.output, "LIMIT": LIMIT,
        **{f"convert_{n.name}": n.convert for n in numbers},
    }  # fmt: skip
    values, lines = scalar_lines(numbers)
    first = arrays[0] if arrays else ""
    if arrays and not nest.nest.reasons:
        scope["plans"] = nest.plans
        lines += launching_lines(nest, arrays, values, inplace)
    array_arguments = f"({', '.join(arrays)},)" if arrays else "()"
    number_arguments = f"({', '.join(values)},)" if values else "()"
    lines.append(f"return general({array_arguments}, {number_arguments}, {first if inplace else None})")
    call: Any = build(nest.nest.name, ", ".join(parameters), lines, scope, f"kernel {nest.nest.name}")
    call.into = None
    if arrays and not inplace and not nest.nest.reasons:  # a kernel that refuses a value has written others
        shapes = ", ".join(f"{n}.shape" for n in arrays)
        into = [
            f"if broadcast(({shapes},)) != out.shape: return NotImplemented",
            *scalar_lines(numbers)[1],
            f"return general({array_arguments}, {number_arguments}, out)",
        ]
        scope["broadcast"] = broadcast
        call.into = build("into", ", ".join(["out", *parameters]), into, scope, f"kernel {nest.nest.name} into out")
    return call  # type: ignore[no-any-return]


def scalar_lines(numbers: Sequence[ScalarParameter]) -> tuple[list[str], list[str]]:
    """Return the names of the kernel's number arguments, and the lines that compute them."""
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


def launching_lines(nest: Elementwise, arrays: Sequence[str], values: Sequence[str], inplace: bool) -> list[str]:
    """Return the lines for contiguous arrays of one shape, which queue the kernel directly, and those for arrays of
    shapes and strides that :meth:`Elementwise.general` has planned.

    The latter are broadcast or permuted, as the gradient of a sum is, which is one element in the shape of the input.
    """
    first, others = arrays[0], arrays[1:]
    apart = [f"{n}.buffer is not {first}.buffer" for n in others] if inplace else []
    out = first if inplace else "out"
    placed = [f"{n}.buffer" for n in (out, *arrays)]
    placed += [f"{first}.offset" if inplace else "0", *[f"{n}.offset" for n in arrays]]
    flat = [
        f"engine = {first}.engine",
        f"size = {first}.size",
        "launch, chunk, most = flat[engine]",
        *([] if inplace else ["if size > most:", "    launch = past_caches[engine]", f"shape = {first}.shape"]),
        *([] if inplace else created(nest, "STRIDES[shape]", "True")),
        f"launch(-(-size // chunk), {', '.join([*placed, 'size', *values])})",
        f"return {out}",
    ]
    result = [f"{first}.shape", f"{first}.strides"] if inplace else []
    layouts = [f"({n}.shape, {n}.strides)" for n in arrays]
    planned = [
        *([] if inplace else [f"engine = {first}.engine", *created(nest, "strides", "contiguous")]),
        f"run(items, {', '.join([*placed, '*numbers', *values])})",
        f"return {out}",
    ]
    same = [f"{n}.contiguous and {n}.shape == {first}.shape" for n in others]
    near = [f"{n}.offset <= max_offset" for n in arrays]
    return [
        f"if {' and '.join([f'{first}.contiguous', *same, *apart])}:",
        *indent(flat),
        f"plan = plans.get(({', '.join([f'{first}.engine', *result, *layouts])}))",
        "if plan is not None:",
        "    run, items, numbers, shape, strides, size, contiguous, max_offset = plan",
        f"    if {' and '.join(['run is not None', *near, *apart])}:",
        *indent(indent(planned)),
    ]


def created(nest: Elementwise, strides: str, contiguous: str) -> list[str]:
    """Return the lines that create the result of ``size`` elements in the variable ``out``."""
    return [
        "out = new(Array)",
        "out.engine = engine",
        f"out.buffer = engine.allocate(size * {nest.output.itemsize} or 1)",
        "out.shape = shape",
        f"out.strides = {strides}",
        "out.offset = 0",
        "out.dtype = DTYPE",
        "out.size = size",
        f"out.contiguous = {contiguous}",
    ]


def specialize(
    name: str, parameters: Sequence[str], tokens: Sequence[str], make: Callable[[tuple[Any, ...]], Callable[..., Any]]
) -> Callable[..., Any]:
    """Generate a function that selects a form of the kernel by ``tokens`` of the arguments, and creates it at the first
    call.

    Its attribute ``into(out, *arguments)`` writes the result into ``out``, or declines.
    """
    key = f"({', '.join(tokens)},)"
    lines = [
        "try:",
        f"    form = forms[{key}]",
        "except KeyError:",
        f"    form = forms[{key}] = make({key})",
    ]
    passed = ", ".join(parameters)
    scope = {"forms": {}, "make": make, "Array": StridedArray}
    call: Any = build(name, passed, [*lines, f"return form({passed})"], scope, f"forms of {name}")
    written = f"return form.into(out, {passed}) if form.into else NotImplemented"
    call.into = build("into", f"out, {passed}", [*lines, written], scope, f"forms of {name} into out")
    return call  # type: ignore[no-any-return]
