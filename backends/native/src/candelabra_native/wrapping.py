"""The functions around kernels in C: they take and return NumPy arrays, and leave some calls to the device's owner.

The owner's kernel serves small calls, arrays that C does not address, and calls whose kernels are not compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from candelabra.dtypes import dtype
from candelabra.library import OPERATORS, Operator, Parameter, build, indent
from candelabra_clike import StridedArray
from candelabra_clike.kernels.pointwise import POINTWISE
from candelabra_clike.kernels.reductions import KERNELS as REDUCTIONS
from candelabra_clike.language import reasons_in
from candelabra_clike.templates.elementwise.calls import STRIDES
from candelabra_cpu.backend import FROM_NUMPY, TO_NUMPY

from candelabra_native.arrays import Unsuitable, dense, ndarray, payload, shared, strided
from candelabra_native.engine import ENGINE, NativeEngine
from candelabra_native.finding import Missing
from candelabra_native.launch._launch import dense_rows
from candelabra_native.missing import MissingCalls
from candelabra_native.small_calls import IN_CONDITIONS, is_small, small_call
from candelabra_native.small_calls import scope as scope_of_small_call

Kernel = Callable[..., Any]
ALL: Final = REDUCTIONS["all"]
ARRAY: Final = ("tensor", "index", "mask", "optional")
"""The kinds of parameters that are arrays, or None where their annotation allows it."""
NUMBER: Final = ("operand", "bound")
"""The kinds of parameters that are arrays or numbers."""


def divides_in_place(name: str, record: Operator[..., Any], d: dtype) -> bool:
    """Return whether a kernel writes in place and refuses a divisor of 0.

    C would report it after it has written other elements, so divisors are checked first.
    """
    pointwise = POINTWISE.get(name)
    value = None if name == record.name or pointwise is None else pointwise.value(d)
    return value is not None and "DIVISION_BY_ZERO" in reasons_in(value)


def has_zero(divisor: Any, engine: NativeEngine) -> bool:
    """Return whether a divisor, an array or a number, is 0 anywhere."""
    if divisor.__class__ is not ndarray:
        return not divisor
    return not payload(ALL(strided(divisor, engine), None, False))


def declined(*arguments: Any) -> Any:
    """Decline a call. Used for operators without a kernel of the owner."""
    return NotImplemented


def wrapped(name: str, operator: str, kernel: Kernel, own: Kernel | None, d: dtype, least: int) -> Kernel:
    """Generate the function around ``kernel`` and ``own`` for one operator and dtype.

    ``name`` is the operator's, or with ``_`` that of its in-place form. ``least`` is the number of elements from which
    ``kernel`` serves.
    """
    record, inplace = OPERATORS[operator], name != operator
    parameters = record.schema.parameters
    names = ", ".join(p.name for p in parameters)
    rows = inplace and not record.inplace
    take = "dense" if rows else "shared" if inplace else "strided"
    arguments = ", ".join(_argument(p, take, rows) for p in parameters)
    scope = {
        "small": own or declined, "kernel": kernel, "engine": ENGINE, "thread": ENGINE.thread, "dense": dense,
        "shared": shared, "strided": strided, "payload": payload,
        "Missing": Missing, "Unsuitable": Unsuitable, "missing": MissingCalls(), "has_zero": has_zero,
        "dense_rows": dense_rows, "over_buffers": getattr(kernel, "over_buffers", None),
        **INLINED, **IN_CONDITIONS, **scope_of_small_call(own),
    }  # fmt: skip
    lines = [
        *small_call(record, 0 if own is None else least, own, inplace),
        f"if missing and missing.has({names}): return small({names})",
        "try:",
        *([line for p in parameters if p.kind in ARRAY + NUMBER for line in _strided(p)] if take == "strided" else ()),
        *(["    if has_zero(other, engine): raise Unsuitable"] if divides_in_place(name, record, d) else []),
        *(_dense_rows(parameters) if hasattr(kernel, "over_buffers") else ()),
        f"    out = kernel({arguments})",
        "except Missing:",
        f"    missing.note({names})",
        f"    return small({names})",
        "except Unsuitable:",
        f"    return small({names})",
        "errors = thread.errors",
        "if errors and errors.possible:",
        "    try: errors.check()",
        f"    except Exception: return small({names})",  # which raises the owner's error
        f"if out is NotImplemented: return small({names})",
        f"return {'out' if rows else parameters[0].name if inplace else PAYLOAD}",
    ]
    function: Any = build(record.name, names, lines, scope, f"native {name} {d.name}")
    function.in_c = kernel  # prepared launches are recorded from it, for calls that are not small
    function.is_small = "False" if own is None or not least else is_small(record, least, inplace)
    packing = getattr(kernel, "packing", None)
    if packing is not None:
        from candelabra_native.packing import packing_of_arrays

        function.packing = packing_of_arrays(packing, function)
    if not inplace and getattr(kernel, "into", None) is not None:
        function.into = written_by(kernel, record, function.is_small, scope)
    return function  # type: ignore[no-any-return]


def written_by(kernel: Any, record: Operator[..., Any], small: str, scope: dict[str, Any]) -> Kernel:
    """Generate the function that lets ``kernel`` write its result into an array, which is passed first.

    It declines calls for which the condition ``small`` holds, and those that the owner's kernel serves otherwise.
    """
    parameters = record.schema.parameters
    names = ", ".join(p.name for p in parameters)
    arguments = ", ".join(_argument(p, "shared", False) for p in parameters)
    lines = [
        f"if {small}: return NotImplemented",
        f"if missing and missing.has({names}): return NotImplemented",
        "try:",
        f"    written = in_c(shared(out, engine), {arguments})",
        "except Missing:",
        f"    missing.note({names})",
        "    return NotImplemented",
        "except Unsuitable:",
        "    return NotImplemented",
        "return NotImplemented if written is NotImplemented else out",
    ]
    scope = {**scope, "in_c": kernel.into}
    into: Kernel = build("into", f"out, {names}", lines, scope, f"native {record.name} into out")
    return into


def _dense_rows(parameters: tuple[Parameter, ...]) -> list[str]:
    """Return the lines that serve a step over many rows of plain arrays, as almost all are, without a frame for each.

    A step over one row has a kernel of its own.
    """
    columns = ", ".join(p.name for p in parameters if p.kind in ARRAY)
    options = ", ".join(p.name for p in parameters if p.kind not in ARRAY)
    return [
        f"    sizes = dense_rows(({columns}))",
        "    if sizes and len(sizes) > 1:",
        f"        over_buffers(engine, ({columns}), sizes, {options})",
        "        return None",
    ]


INLINED: Final = {
    "new": object.__new__, "StridedArray": StridedArray, "STRIDES": STRIDES, "FROM_NUMPY": FROM_NUMPY,
    "TO_NUMPY": TO_NUMPY,
}  # fmt: skip
"""What the inlined forms of :func:`strided` and :func:`payload` use. Each of their frames takes as long as a small
kernel."""
PAYLOAD: Final = (
    "ndarray(out.shape, TO_NUMPY[out.dtype], out.buffer, out.offset * out.dtype.itemsize) "
    "if out.__class__ is StridedArray and out.contiguous else payload(out)"
)


def _strided(p: Parameter) -> list[str]:
    """Return the lines of :func:`strided` for a parameter, which define ``_name``."""
    x, a = p.name, f"_{p.name}"
    lines = [
        f"    _flags = {x}.flags",
        "    if _flags.c_contiguous and _flags.aligned:",
        f"        {a} = new(StridedArray)",
        f"        {a}.engine = engine",
        f"        {a}.buffer = {x}",
        f"        {a}.shape = _shape = {x}.shape",
        f"        {a}.strides = STRIDES[_shape]",
        f"        {a}.offset = 0",
        f"        {a}.dtype = FROM_NUMPY[{x}.dtype]",
        f"        {a}.size = {x}.size",
        f"        {a}.contiguous = True",
        f"    else: {a} = strided({x}, engine)",
    ]
    if p.kind in NUMBER:
        return [f"    if {x}.__class__ is not ndarray: {a} = {x}", "    else:", *indent(lines)]
    return [f"    if {x} is None: {a} = None", "    else:", *indent(lines)] if p.optional else lines


def _argument(p: Parameter, take: str, rows: bool) -> str:
    """Return the expression of an argument as the kernel takes it."""
    if p.kind in ARRAY + NUMBER and take == "strided":
        return f"_{p.name}"
    one = f"{take}({{0}}, engine)"
    if rows and p.kind in ARRAY:
        return f"[{one.format('_a')} for _a in {p.name}]"
    if p.kind in ARRAY:
        value = one.format(p.name)
        return f"None if {p.name} is None else {value}" if p.optional else value
    if p.kind in NUMBER:
        return f"{one.format(p.name)} if {p.name}.__class__ is ndarray else {p.name}"
    if p.kind == "list":
        return f"[{one.format('_a')} for _a in {p.name}]"
    if p.kind == "indices":
        return f"[None if _a is None else {one.format('_a')} for _a in {p.name}]"
    return p.name
