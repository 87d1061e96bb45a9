"""A failure as a program: ten-odd lines of Python that need only the core and the backend.

``reproducer`` writes the program: the tensors from literals that are exact to the bit, the views that give them their
layout, the call, the value that is due, and an assertion with the largest error that is allowed. ``shrunk`` makes the
arrays of a failing call smaller first, as long as it keeps failing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import candelabra as cd
import numpy as np
from candelabra.operator.record import OPERATORS, Operator
from candelabra.tensor import Tensor

from candelabra_conformance import literals
from candelabra_conformance.layouts import BROADCAST, CONTIGUOUS, GUARD, OFFSET, STEP, TRANSPOSED
from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.tolerance import eps, tiny, wide

Array = np.ndarray[Any, Any]
LETTERS: Final = {"input": "x", "other": "y", "self": "x"}
"""Shorter names for parameters; others keep theirs."""
FLAT: Final = (
    "def flat(v):",
    "    return [e for part in v for e in flat(part)] if isinstance(v, list) else [v]",
)


@dataclass
class Program:
    """The parts of a program under construction."""

    device: str
    layout: str
    setup: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    """Variables by the identity of the array that they hold: an array that comes twice is one tensor twice."""

    def tensor(self, array: Array, name: str) -> str:
        """The name of a variable that holds the array on the device, laid out as asked for."""
        if id(array) not in self.names:
            taken = set(self.names.values())
            self.names[id(array)] = name if name not in taken else f"{name}{len(taken)}"
            self.setup.append(f"{self.names[id(array)]} = {placed(array, self.layout)}")
        return self.names[id(array)]

    def argument(self, value: Any, name: str) -> str:
        """The text of one argument."""
        if isinstance(value, np.ndarray):
            return self.tensor(value, name)
        if isinstance(value, (list, tuple)) and any(isinstance(v, np.ndarray) for v in value):
            parts = [self.argument(v, f"{name}{i}") for i, v in enumerate(value)]
            return f"[{', '.join(parts)}]"
        return literals.plain(value)


def reproducer(
    operator: str | Operator[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    device: Any,
    property: str = "value",
    layout: str = CONTIGUOUS,
    expected: Any = None,
    allowed: Any = None,
    seed: int | None = None,
    check: Sequence[str] | None = None,
    note: str = "",
) -> str:
    """The text of a program that shows what ``operator(*args, **kwargs)`` gets wrong on a device.

    Arguments are a sample's: NumPy arrays stand for tensors, which lie in memory as ``layout`` says; ``HERE`` stands for
    the device. ``expected`` is what ``property`` expects: for ``"value"``, ``"inplace"``, ``"out"`` and ``"random"`` the
    values (an array, or a tuple of them for several outputs; None: computed now, on the reference device), for
    ``"gradient"`` those of the gradients of the sum of the outputs, one per floating array, for ``"errors"`` and
    ``"unclaimed"`` the exception that is due (or its class), for ``"result"`` (dtype, shape) pairs. ``"inputs"``, and
    ``"determinism"`` need none. ``allowed`` is the largest permitted error, a number or an array per output; a few
    units in the last place unless given. ``seed`` is set first. With ``check``, these lines stand after the call, whose
    result is ``got``, in place of the property's own.

    The program ends with AssertionError while the fault is there, and prints what differs. ``ValueError`` for a
    property that is not known, unless ``check`` is given; ``TypeError`` for arguments that have no literal.
    """
    record = OPERATORS[operator] if isinstance(operator, str) else operator
    program = Program(str(device), layout)
    arguments = _arguments(program, record, args, kwargs or {})
    call = f"{spelled(record)}({', '.join(arguments)})"
    writer = WRITERS.get(property)
    if check is not None:
        lines = [f"got = {call}", *check]
    elif writer is None:
        raise ValueError(f"reproducer(): property must be one of {', '.join(WRITERS)}, or check be given: {property!r}")
    else:
        if expected is None and property in VALUES:
            expected, allowed = answered(record, args, kwargs or {}, device, allowed)
        lines = writer(Written(record, call, arguments, program, expected, allowed))
    first = [f"cd.manual_seed({seed})"] if seed is not None else []
    body = [f"device = {program.device!r}", *program.setup, *first, *lines]
    text = "\n".join(body)
    title = f"# {record.name}: {property}" + (f", {layout}" if layout != CONTIGUOUS else "") + f", on {device}"
    head = [title, *([f"# {line}" for line in note.splitlines()]), *literals.imports(text), "", "import candelabra as cd"]
    return "\n".join([*head, "", text, ""])


# -- the call ---------------------------------------------------------------------------------------------------------
def _arguments(program: Program, record: Operator[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    names = [p.name for p in record.schema.parameters]
    names += [f"argument{i}" for i in range(len(names), len(args))]
    texts = [program.argument(value, LETTERS.get(name, name)) for name, value in zip(names, args, strict=False)]
    return texts + [f"{name}={program.argument(value, LETTERS.get(name, name))}" for name, value in kwargs.items()]


def spelled(record: Operator[..., Any]) -> str:
    """How a program names the operator's function: as the public one where that is the operator itself."""
    found: Any = cd
    for part in record.public_name.split("."):
        found = getattr(found, part, None)
    return f"cd.{record.public_name}" if found is record.function else f"OPERATORS[{record.name!r}]"


def placed(array: Array, layout: str) -> str:
    """The text of a tensor that lies in memory as :func:`candelabra_conformance.layouts.place` lays it."""
    if layout == TRANSPOSED and array.ndim > 1:
        return f"{literals.tensor(np.ascontiguousarray(array.swapaxes(0, -1)))}.transpose(0, -1)"
    if layout == OFFSET and array.ndim:
        base = np.ones((array.shape[0] + 2 * GUARD, *array.shape[1:]), array.dtype)
        base[GUARD:-GUARD] = array
        return f"{literals.tensor(base)}[{GUARD}:-{GUARD}]"
    if layout == STEP and array.ndim:
        base = np.ones((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        base[..., 1::2] = array
        return f"{literals.tensor(base)}[..., 1::2]"
    if layout == BROADCAST and array.ndim and array.shape[0] and _repeats(array):
        return f"{literals.tensor(array[:1])}.expand({tuple(array.shape)})"
    return literals.tensor(array)


def _repeats(array: Array) -> bool:
    with np.errstate(invalid="ignore"):
        return bool(((array == array[:1]) | ((array != array) & (array[:1] != array[:1]))).all())


# -- the checks -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Written:
    """What the writer of a property is given."""

    record: Operator[..., Any]
    call: str
    arguments: list[str]
    program: Program
    expected: Any
    allowed: Any


def _value(w: Written) -> list[str]:
    return [f"got = {w.call}", *compared(w)]


def compared(w: Written, got: str = "got") -> list[str]:
    """Compare what the call returned with literals, in plain Python: no operator of the device is used."""
    wants = w.expected if isinstance(w.expected, (tuple, list)) else (w.expected,)
    alloweds = w.allowed if isinstance(w.allowed, (tuple, list)) else (w.allowed,) * len(wants)
    lines = list(FLAT)
    for i, (want, allowed) in enumerate(zip(wants, alloweds, strict=True)):
        array = np.asarray(want)
        limit = _limit(array, allowed)
        lines += [
            f"result = {got}[{i}]" if len(wants) > 1 else f"result = {got}",
            f"want = {literals.flat_list(array)}",
            f"allowed = {limit}",
            f"assert tuple(result.shape) == {tuple(array.shape)}, tuple(result.shape)",
            "for i, (g, w, a) in enumerate(zip(flat(result.tolist()), want, allowed)):",
            "    if not (g == w or (g != g and w != w) or abs(g - w) <= a):",
            '        print(f"element {i}: got {g}, expected {w}, difference {abs(g - w)}, allowed {a}")',
            '        raise AssertionError("wrong value")',
        ]
    return lines


def _limit(want: Array, allowed: Any) -> str:
    if allowed is None:
        allowed = allowance(want)
    limits = np.broadcast_to(np.asarray(allowed, np.float64), want.shape).astype(np.float64)
    return literals.flat_list(limits) if limits.size else "[]"


def allowance(want: Array) -> Array:
    """The error that a few roundings explain, where nobody says what is allowed: 8 units in the last place."""
    d = device_dtype(want.dtype)
    with np.errstate(all="ignore"):
        size: Array = np.nan_to_num(np.abs(wide(want)).astype(np.float64), nan=0.0, posinf=0.0)
    return 8 * (eps(d) * size + tiny(d))


def _bitwise(w: Written) -> list[str]:
    wants = w.expected if isinstance(w.expected, (tuple, list)) else (w.expected,)
    return _value(Written(w.record, w.call, w.arguments, w.program, tuple(wants), 0.0))


def _result(w: Written) -> list[str]:
    pairs = w.expected if isinstance(w.expected, list) else [w.expected]
    lines = [f"got = {w.call}"]
    for i, (d, shape) in enumerate(pairs):
        lines += [
            f"result = got[{i}]" if len(pairs) > 1 else "result = got",
            f"assert result.dtype is cd.{d.name}, result.dtype",
            f"assert tuple(result.shape) == {tuple(shape)}, tuple(result.shape)",
            "assert result.device == cd.device(device), result.device",
        ]
    return lines


def _inputs(w: Written) -> list[str]:
    names = ", ".join(w.program.names.values())
    return [
        f"inputs = [{names}]",
        "before = [str(x.tolist()) for x in inputs]",
        f"got = {w.call}",
        "after = [str(x.tolist()) for x in inputs]",
        'assert before == after, f"an input was changed: {before} became {after}"',
    ]


def _determinism(w: Written) -> list[str]:
    return [
        "def run():",
        f"    got = {w.call}",
        "    return str([g.tolist() for g in (got if isinstance(got, tuple) else (got,))])",
        "results = {run() for _ in range(20)}",
        'assert len(results) == 1, f"{len(results)} different results of one call: {sorted(results)[:2]}"',
    ]


def _raises(w: Written) -> list[str]:
    due = w.expected
    name = due.__name__ if isinstance(due, type) else type(due).__name__
    lines = [
        "try:", f"    got = {w.call}", "    found = None", "except Exception as error:", "    found = error",
        f'assert type(found).__name__ == {name!r}, f"expected {name}, got {{found!r}}"',
    ]  # fmt: skip
    return lines if isinstance(due, type) else [*lines, f"assert str(found) == {str(due)!r}, str(found)"]


def _inplace(w: Written) -> list[str]:
    method = f"{w.record.name}_"
    if getattr(Tensor, method, None) is w.record.form("inplace"):
        text = f"{w.arguments[0]}.{method}({', '.join(w.arguments[1:])})"
    else:
        text = f"OPERATORS[{w.record.name!r}].form('inplace')({', '.join(w.arguments)})"
    return [f"got = {text}", f"assert got is {w.arguments[0]}", *compared(w)]


def _out(w: Written) -> list[str]:
    filler = np.ones_like(np.asarray(w.expected))
    return [f"got = {literals.tensor(filler)}", f"{w.call[:-1]}, out=got)", *compared(w)]


def _gradient(w: Written) -> list[str]:
    leaves = [n for i, n in w.program.names.items() if _is_leaf(w, n)]
    return [
        f"leaves = [{', '.join(leaves)}]",
        "for leaf in leaves: leaf.requires_grad_()",
        f"out = {w.call}",
        "outs = [o for o in (out if isinstance(out, tuple) else (out,)) if o.requires_grad]",
        "got = cd.autograd.grad([o.sum() for o in outs], leaves)" + ("[0]" if len(leaves) == 1 else ""),
        *compared(w),
    ]


def _is_leaf(w: Written, name: str) -> bool:
    text = next(line for line in w.program.setup if line.startswith(f"{name} = "))
    return any(f"dtype=cd.{kind}" in text for kind in ("float", "bfloat", "complex"))


WRITERS: Final[dict[str, Callable[[Written], list[str]]]] = {
    "value": _value, "special": _value, "random": _bitwise, "result": _result, "inputs": _inputs,
    "determinism": _determinism, "errors": _raises, "unclaimed": _raises, "inplace": _inplace, "out": _out,
    "gradient": _gradient,
}  # fmt: skip
"""How each property's call and check are written."""
VALUES: Final = ("value", "special", "random", "inplace", "out")


def answered(
    record: Operator[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], device: Any, allowed: Any
) -> tuple[tuple[Array, ...], Any]:
    """What the reference device answers in the widest precision, in the dtype that is due, and the error allowed."""
    from candelabra_conformance.shadowing.answer import answer

    found = answer(record, args, kwargs)
    return found.rounded(), found.allowed() if allowed is None else allowed
