"""Small calls, which stay with the kernel of the device's owner: their condition, and the code that serves them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np
from candelabra.dtypes import dtype
from candelabra.library import OPERATORS, Operator, Parameter, build
from candelabra_cpu.numpy_kernels import UFUNCS, asarray, run

from candelabra_native.thresholds import WORK

Kernel = Callable[..., Any]
IN_CONDITIONS: Final = {"prod": prod, "ndarray": np.ndarray, "broadcast": np.broadcast}
"""The names in the conditions of small calls, besides the parameters."""


def small_calls_first(
    operator: str, name: str, d: dtype, least: int, own: Kernel, load: Callable[[], Kernel]
) -> Kernel:
    """Generate a kernel that serves small calls, and becomes ``load()`` at the first call of another size.

    So a program of small tensors imports no kernel in C. The function takes over the code of the loaded one, since
    dispatch, graphs and adapters keep the function: later calls have as many frames as if it had been loaded first.
    Compiled graphs, which record calls before any is made, load it by its attribute ``load``.
    """
    record, inplace = OPERATORS[operator], name != operator
    names = ", ".join(p.name for p in record.schema.parameters)

    def loaded() -> Kernel:
        generated: Any = function
        take_over(generated, load())
        generated.load = None
        return function

    lines = [*small_call(record, least, own, inplace), f"return loaded()({names})"]
    names_in_lines = {"small": own, "loaded": loaded, **IN_CONDITIONS, **scope(own)}
    function: Kernel = build(record.name, names, lines, names_in_lines, f"native {name} {d.name}, small calls")
    function.__dict__.update(is_small=is_small(record, least, inplace), load=loaded)
    return function


def take_over(function: Any, other: Any) -> None:
    """Let a generated function run the code of another one that has the same parameters."""
    function.__globals__.update(other.__globals__)
    function.__code__ = other.__code__
    function.__dict__.update(other.__dict__)


def always_small(operator: str, own: Kernel) -> Kernel:
    """Generate a function that calls the owner's kernel, for a dtype that has no kernel in C."""
    names = ", ".join(p.name for p in OPERATORS[operator].schema.parameters)
    return build(operator, names, [f"return small({names})"], {"small": own}, "native, the owner's kernel")


def small_call(record: Operator[..., Any], least: int, own: Callable[..., Any] | None, inplace: bool) -> list[str]:
    """Return the first lines of a generated kernel: the owner's kernel ``small`` serves calls below ``least``.

    A kernel that is a ufunc is called without the frame around it, which serves what the ufunc raises. So a small call
    costs as much as without contributions, and a comparison of sizes.
    """
    if not least:
        return []
    parameters = record.schema.parameters
    names = ", ".join(p.name for p in parameters)
    condition = is_small(record, least, inplace)
    if own not in UFUNCS:
        return [f"if {condition}: return small({names})"]
    into = f", {parameters[0].name}" if inplace else ""
    return [
        f"if {condition}:",
        f"    try: out = run(ufunc, {names}{into})",
        f"    except Exception: return small({names})",
        "    return out if out.__class__ is ndarray else asarray(out)",
    ]


def scope(own: Callable[..., Any] | None) -> dict[str, Any]:
    """Return the names that the lines of :func:`small_call` use, besides ``small`` and ``ndarray``."""
    return {"run": run, "asarray": asarray, "ufunc": None if own is None else UFUNCS.get(own)}


def is_small(record: Operator[..., Any], least: int, inplace: bool) -> str:
    """Return the condition of a small call: every array has fewer elements than ``least``, or the call less work.

    So has the result of two arrays, which is larger than both if each is broadcast. The arrays of a parameter over
    rows, and of a list, are counted together.
    """
    if record.name in WORK:
        return f"{WORK[record.name]} < {least}"
    conditions, rows = [], inplace and not record.inplace
    parameters = record.schema.parameters
    arrays = [p for p in parameters if p.kind in ("tensor", "operand", "mask", "optional", "bound")]
    if record.elementwise and not inplace and [p.kind in ("tensor", "operand") for p in arrays] == [True, True]:
        return _is_small_pair(arrays[0], arrays[1], least)
    for p in parameters:
        if p.kind == "list" or (p.kind == "tensor" and rows):
            conditions.append(f"sum([_a.size for _a in {p.name}]) < {least}")
        elif p.kind == "tensor":
            conditions.append(f"{p.name}.size < {least}")
        elif p.kind == "operand":
            conditions.append(f"({p.name}.__class__ is not ndarray or {p.name}.size < {least})")
        elif p.kind == "shape":
            conditions.append(f"prod({p.name}) < {least}")
    return " and ".join(conditions) or "True"


def _is_small_pair(first: Parameter, second: Parameter, least: int) -> str:
    """Return the condition for two arrays that broadcast. For the smallest ones it is the product of their sizes."""
    a, b = first.name, second.name
    both = (
        f"({a}.size * {b}.size < {least} or ({a}.size < {least} > {b}.size"
        f" and ({a}.shape == {b}.shape or broadcast({a}, {b}).size < {least})))"
    )
    for p, other in ((second, a), (first, b)):  # either may be a number, but not both
        if p.kind == "operand":
            both = f"({other}.size < {least} if {p.name}.__class__ is not ndarray else {both})"
    return both
