"""Every pointwise operator for which there is an expression: functional and in-place, in each dtype that it has one for."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from candelabra.dtypes import BOOL, COMPLEX, FLOATING, bool_, dtype, int64
from candelabra.operator.record import OPERATORS, Operator
from candelabra.operator.schema import INDEX, MASK, OPERAND, TENSOR

from candelabra_clike.array import StridedArray
from candelabra_clike.expressions import EXPRESSIONS, Entry, expression_for
from candelabra_clike.templates.elementwise import NAMES, Elementwise
from candelabra_clike.types import CTYPES

FIXED = {MASK: bool_, INDEX: int64}
"""The dtype of parameters that do not take part in promotion."""


class Pointwise:
    """The kernel of an operator; :meth:`for_dtype` gives the function that serves one dtype."""

    def __init__(self, record: Operator[..., Any], entry: Entry, inplace: bool) -> None:
        self.record = record
        self.entry = entry
        self.inplace = inplace
        self.for_dtype = lru_cache(None)(self._for_dtype)

    def _for_dtype(self, d: dtype) -> Callable[..., Any] | None:
        expression = expression_for(self.entry, d)
        if expression is None:
            return None
        output = d if self.inplace else self.record.results[0](d)
        return sorting_kernel(self.record, expression, d, output, self.inplace)

    def __call__(self, *args: Any) -> Any:
        d = next(a.dtype for a, p in zip(args, self.record.schema.parameters) if p.kind not in FIXED and is_array(a))
        kernel = self.for_dtype(d)
        if kernel is None:
            raise TypeError(f"{self.record.name}: no expression for {d}")
        return kernel(*args)


def is_array(value: object) -> bool:
    """Whether an argument is an array, not a number."""
    return type(value) is StridedArray


def sorting_kernel(
    record: Operator[..., Any], expression: str, d: dtype, output: dtype, inplace: bool
) -> Callable[..., Any]:
    """The function of an expression: it sorts arrays from numbers, and has one loop nest for each way they can mix."""
    kinds = [FIXED.get(p.kind, d) for p in record.schema.parameters if p.kind in (TENSOR, OPERAND, *FIXED)]
    name = f"{record.name}_{d.name}"
    nests: dict[tuple[bool, ...], Elementwise] = {}

    def kernel(*args: Any) -> Any:
        mix = tuple([type(a) is StridedArray for a in args])
        nest = nests.get(mix)
        if nest is None:
            nest = nests[mix] = _nest(name, expression, kinds, mix, output)
        arrays = [a for a in args if type(a) is StridedArray]
        numbers = [n for a, k in zip(args, kinds) if type(a) is not StridedArray for n in as_numbers(a, k)]
        return nest(*arrays, numbers=numbers, out=args[0] if inplace else None)

    return kernel


def _nest(name: str, expression: str, kinds: list[dtype], mix: tuple[bool, ...], output: dtype) -> Elementwise:
    inputs: list[dtype] = []
    numbers: list[str] = []
    words: dict[str, str] = {}
    for letter, array, d in zip(NAMES, mix, kinds, strict=False):
        if array:
            words[letter] = "{%s}" % NAMES[len(inputs)]
            inputs.append(d)
        else:
            words[letter] = number_word(d, len(numbers))
            numbers.extend(number_types(d))
    mark = "" if all(mix) else "_" + "".join("an"[not array] for array in mix)
    return Elementwise(name + mark, expression.format(**words), inputs, output, numbers)


def number_types(d: dtype) -> tuple[str, ...]:
    """The types of the kernel arguments in which a Python number arrives beside arrays of a dtype."""
    value = CTYPES[d].value
    if d.category == COMPLEX:
        part = "f32" if value == "c64" else "f64"
        return (part, part)
    if d.category == FLOATING:
        return (value,)
    return (("i" if d.is_signed else "u") + ("64" if d.itemsize == 8 else "32"),)


def number_word(d: dtype, first: int) -> str:
    """The expression of that number as a value; ``first`` is the place of its first part among the numbers."""
    value = CTYPES[d].value
    if d.category == COMPLEX:
        return f"{value.upper()}(s{first}, s{first + 1})"
    return f"(({value})s{first})"


def as_numbers(value: Any, d: dtype) -> tuple[Any, ...]:
    """A Python number as the arguments that :func:`number_types` names. Integers wrap, as in the reference."""
    if d.category == COMPLEX:
        value = complex(value)
        return (value.real, value.imag)
    if d.category == FLOATING:
        return (float(value),)
    if d.category == BOOL:
        return (int(bool(value)),)
    bits = 8 * d.itemsize
    wrapped = int(value) & ((1 << bits) - 1)
    return (wrapped - (1 << bits) if d.is_signed and wrapped >> (bits - 1) else wrapped,)


def _table() -> dict[str, Pointwise]:
    kernels: dict[str, Pointwise] = {}
    for name, entry in EXPRESSIONS.items():
        if name in OPERATORS:  # candelabra-operators may not be installed
            kernels[name] = Pointwise(OPERATORS[name], entry, inplace=False)
            if OPERATORS[name].inplace:
                kernels[name + "_"] = Pointwise(OPERATORS[name], entry, inplace=True)
    return kernels


KERNELS = _table()
