"""Small calls, which stay with the kernel of the device's owner: their condition, and the code that serves them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from candelabra.dtypes import dtype
from candelabra.library import OPERATORS, Operator, Parameter, build
from candelabra_cpu.numpy_kernels import UFUNCS, asarray, run

from candelabra_native.thresholds import WORK

Kernel = Callable[..., Any]


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
    names_in_lines = {"small": own, "prod": prod, "ndarray": np.ndarray, "loaded": loaded, **scope(own)}
    function: Kernel = build(record.name, names, lines, names_in_lines, f"native {name} {d.name}, small calls")
    condition = is_small(record.name, record.schema.parameters, least, inplace and not record.inplace)
    function.__dict__.update(is_small=condition, load=loaded)
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
    condition = is_small(record.name, parameters, least, rows=inplace and not record.inplace)
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


def is_small(name: str, parameters: tuple[Parameter, ...], least: int, rows: bool) -> str:
    """Return the condition of a small call: every array has fewer elements than ``least``, or the call less work.

    The arrays of a parameter over rows, and of a list, are counted together.
    """
    if name in WORK:
        return f"{WORK[name]} < {least}"
    conditions = []
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
