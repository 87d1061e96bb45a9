"""The kernels that are contributed: those of :mod:`candelabra_clike` over NumPy arrays.

Each is a generated function around a kernel on strided arrays and the kernel of the device's owner. The owner's serves
small calls, arrays that C does not address, and kernels that are not compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Final

from candelabra.dtypes import dtype
from candelabra.library import OPERATORS, Operator, Parameter, build
from candelabra_clike.kernels import table

from candelabra_native.arrays import Unsuitable, ndarray, payload, shared, strided
from candelabra_native.engine import NativeEngine
from candelabra_native.finding import Missing
from candelabra_native.small_calls import scope as scope_of_small_call
from candelabra_native.small_calls import small_call
from candelabra_native.thresholds import threshold

Kernel = Callable[..., Any]
ENGINE: Final = NativeEngine()
ARRAY: Final = ("tensor", "index", "mask", "optional")
"""The kinds of parameters that are arrays, or None where their annotation allows it."""


def contributed(own: Mapping[str, Kernel]) -> dict[str, Kernel]:
    """Return ``{operator: kernel}``. ``own`` are the kernels that serve small calls."""
    kernels: dict[str, Kernel] = {}
    for name, kernel in table(lambda index: ENGINE).items():
        record = OPERATORS.get(name) or OPERATORS.get(name.removesuffix("_"))
        if record is not None and not record.view and (threshold(name) is not None or name not in own):
            kernels[name] = Native(name, record, kernel, own.get(name))
    return kernels


class Native:
    """The kernel of an operator, with a function for each dtype."""

    def __init__(self, name: str, record: Operator[..., Any], kernel: Any, own: Any) -> None:
        self.name = name
        self.record = record
        self.kernel = kernel
        self.own = own
        self._functions: dict[dtype, Kernel | None] = {}

    def for_dtype(self, d: dtype) -> Kernel | None:
        """Return the function for a dtype: the owner's if C has none for it."""
        if d not in self._functions:
            kernel, own = _chosen(self.kernel, d), _chosen(self.own, d)
            self._functions[d] = own if kernel is None else wrapped(self.name, self.record, kernel, own, d)
        return self._functions[d]

    def __call__(self, *arguments: Any) -> Any:
        from candelabra_cpu.backend import FROM_NUMPY

        first = next(a for a in arguments if isinstance(a, ndarray))
        function = self.for_dtype(FROM_NUMPY[first.dtype])
        return NotImplemented if function is None else function(*arguments)


def _chosen(kernel: Any, d: dtype) -> Any:
    choose = getattr(kernel, "for_dtype", None)
    return kernel if choose is None else choose(d)


def declined(*arguments: Any) -> Any:
    """Stand in for a kernel that the owner does not have."""
    return NotImplemented


def wrapped(name: str, record: Operator[..., Any], kernel: Kernel, own: Kernel | None, d: dtype) -> Kernel:
    """Generate the function around ``kernel`` and ``own`` for one operator and dtype."""
    inplace = name != record.name
    parameters = record.schema.parameters
    names = ", ".join(p.name for p in parameters)
    take = "shared" if inplace else "strided"
    rows = inplace and not record.inplace
    arguments = ", ".join(_taken(p, take, rows) for p in parameters)
    scope = {
        "small": own or declined, "kernel": kernel, "engine": ENGINE, "shared": shared, "strided": strided,
        "payload": payload, "prod": prod, "ndarray": ndarray, "Missing": Missing, "Unsuitable": Unsuitable,
        **scope_of_small_call(own),
    }  # fmt: skip
    lines = [
        *small_call(record, 0 if own is None else threshold(name) or 0, own, inplace),
        "try:",
        f"    out = kernel({arguments})",
        "except (Missing, Unsuitable):",
        f"    return small({names})",
        "errors = engine.errors",
        "if errors.possible: errors.check()",
        f"if out is NotImplemented: return small({names})",
        f"return {'out' if rows else parameters[0].name if inplace else 'payload(out)'}",
    ]
    return build(record.name, names, lines, scope, f"native {name} {d.name}")


def _taken(p: Parameter, take: str, rows: bool) -> str:
    """Return the expression of an argument as the kernel takes it."""
    one = f"{take}({{0}}, engine)"
    if rows and p.kind in ARRAY:
        return f"[{one.format('_a')} for _a in {p.name}]"
    if p.kind in ARRAY:
        value = one.format(p.name)
        return f"None if {p.name} is None else {value}" if p.optional else value
    if p.kind in ("operand", "bound"):
        return f"{one.format(p.name)} if {p.name}.__class__ is ndarray else {p.name}"
    if p.kind == "list":
        return f"[{one.format('_a')} for _a in {p.name}]"
    if p.kind == "indices":
        return f"[None if _a is None else {one.format('_a')} for _a in {p.name}]"
    return p.name
