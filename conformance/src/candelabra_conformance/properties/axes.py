"""The axes of properties: the dtypes and layouts of an operator, each with a level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any, Final

from candelabra.dtypes import ALL, BY_NAME, dtype, float16
from candelabra.library import OPERATORS, Operator

from candelabra_conformance.context import MAIN, Context
from candelabra_conformance.layouts import ALIASED, BASIC, CONTIGUOUS, MEMORY, MIXED, REPEATING
from candelabra_conformance.oracle import as_given
from candelabra_conformance.properties.registry import Axes, Axis
from candelabra_conformance.records import CallableRecord, Record
from candelabra_conformance.samples.sample import KINDS, LARGE

USUAL: Final = frozenset({"float32", "int64", "bool"})
"""The dtypes of inference. The others belong to level 3."""


WIDE: Final = frozenset({"float64", "complex128", "int32"})
"""The dtypes that a kernel may compute in a narrower one unnoticed: each kernel's values in them belong to level 2."""


def usual(context: Context, d: dtype, op: Record | None = None) -> bool:
    """Return whether a dtype belongs to the lower levels: in :data:`USUAL`, or the device's first floating dtype.

    For an operator that takes none of these, such as one of complex numbers only, its first dtype does.
    """
    first = next((n for n in MAIN[:4] if context.computes(BY_NAME[n])), "")
    if d.name in USUAL or d.name == first:
        return True
    if not isinstance(op, Operator) or any(other.name in USUAL or other.name == first for other in context.dtypes(op)):
        return False
    return context.main_dtypes(op) == [d]


def _is_basic(layout: str) -> bool:
    """Return whether a layout, or a kind of samples, belongs to all levels."""
    return layout not in MEMORY[len(BASIC) :]


def has_kernel(context: Context, op: Operator[..., Any]) -> bool:
    """Return whether an operator is a primitive, or the device has a kernel for it."""
    return op.body is None or not context.instance.kernels.keys().isdisjoint((op.name, f"{op.name}_"))


def represents(context: Context, op: Record, d: dtype) -> bool:
    """Return whether an unusual dtype of an operator belongs to level 2 on contiguous memory.

    Every operator that has a kernel does in the dtypes of :data:`WIDE`, and in any other dtype one primitive of each
    family. A family is a module that declares operators.
    """
    if not isinstance(op, Operator):
        return False
    if d.name in WIDE:
        return has_kernel(context, op)
    if op.body is not None:
        return False
    able = [other for other in _family(op.declared_in) if d in context.dtypes(other)]
    return bool(able) and able[ALL.index(d) % len(able)] is op


@cache
def _family(module: str) -> tuple[Operator[..., Any], ...]:
    """Return the primitives that a module declares."""
    return tuple(op for _, op in sorted(OPERATORS.items()) if op.declared_in == module and op.body is None)


def everywhere(level: int) -> Axes:
    """Yield every dtype with every layout, and four dtypes with large inputs.

    Unusual dtypes belong to level 2 for the representatives of a family, on contiguous memory, and to level 3
    otherwise. Of the layouts of level 3, some belong to ``level`` in the first dtype: operands with different layouts,
    and for pointwise operators of several operands one that is repeated.
    """

    def axes(context: Context, op: Record) -> Iterator[Axis]:
        combines = getattr(op.rule, "pointwise", False) and len(op.schema.differentiable) > 1
        further = (MIXED, *REPEATING) if combines else (MIXED,)
        for d in context.dtypes(op):
            lower = level if usual(context, d, op) else 3
            plain = max(level, 2) if lower == 3 and represents(context, op, d) else lower
            for layout in (*MEMORY, *KINDS[1:]):
                low = _is_basic(layout) or (layout in further and d in context.main_dtypes(op))
                found = Axis(d, layout, plain if layout == CONTIGUOUS else lower if low else 3)
                if found.level > context.highest or not context.laid_out(op, d, layout):
                    continue
                if layout != LARGE or d in context.main_dtypes(op, count=4):
                    yield found

    return axes


def extremes(level: int) -> Axes:
    """Yield every dtype on contiguous memory, with levels as in :func:`everywhere`.

    Kernels are also tried in float16, in which sums and squares overflow and lose their small terms unless they are
    computed in a wider dtype.
    """

    def axes(context: Context, op: Record) -> Iterator[Axis]:
        for d in context.dtypes(op):
            lower = usual(context, d, op) or represents(context, op, d)
            lower |= d is float16 and isinstance(op, Operator) and has_kernel(context, op)
            found = Axis(d, CONTIGUOUS, level if lower else 3)
            if found.level <= context.highest and context.laid_out(op, d, CONTIGUOUS):
                yield found

    return axes


def some(
    level: int,
    *,
    dtypes: int = 1,
    layouts: tuple[str, ...] = (CONTIGUOUS,),
    floating: bool = False,
    when: Callable[[Any], bool] = lambda op: True,
) -> Axes:
    """Return the first ``dtypes`` dtypes (0: all) with the given layouts for which the operator has samples."""

    def axes(context: Context, op: Record) -> Iterator[Axis]:
        if level > context.highest or not when(op):
            return
        able: Iterable[dtype] = context.each_main_dtype(op) if dtypes else context.dtypes(op)
        if floating:
            able = (d for d in able if d.is_floating_point or d.is_complex)
        for d in islice(able, dtypes or None):
            found = level if usual(context, d, op) else 3
            for layout in layouts if found <= context.highest else ():
                if context.laid_out(op, d, layout):
                    yield Axis(d, layout, found)

    return axes


def each_category(level: int, layouts: tuple[str, ...]) -> Axes:
    """The first dtypes of each kind of number: the main one on all of the layouts, the others on the first."""

    def axes(context: Context, op: Record) -> Iterator[Axis]:
        if level > context.highest:
            return
        kinds: dict[tuple[bool, bool, bool], dtype] = {}
        for d in context.each_main_dtype(op):
            kinds.setdefault((d.is_floating_point, d.is_complex, d.name == "bool"), d)
        for place, d in enumerate(kinds.values()):
            for layout in layouts if place == 0 else layouts[:1]:
                found = Axis(d, layout, level if _is_basic(layout) and usual(context, d, op) else 3)
                if found.level <= context.highest and context.laid_out(op, d, layout):
                    yield found

    return axes


def main_on_all_layouts(
    level: int,
    when: Callable[[Any], bool] = lambda op: True,
    floating: bool = False,
    layouts: tuple[str, ...] = MEMORY,
    more: tuple[str, ...] = (),
) -> Axes:
    """The first dtype on each of ``layouts``, by default all of memory; every other dtype on contiguous memory.

    The layouts that are neither in :data:`~candelabra_conformance.layouts.BASIC` nor in ``more`` belong to level 3.
    """

    def axes(context: Context, op: Record) -> Iterator[Axis]:
        if level > context.highest or not when(op):
            return
        able = [d for d in context.dtypes(op) if not floating or d.is_floating_point or d.is_complex]
        main = next((d for d in context.each_main_dtype(op) if d in able), None)
        for d in able:
            lower = level if usual(context, d, op) else 3
            for layout in layouts if d is main else (CONTIGUOUS,):
                found = Axis(d, layout, lower if _is_basic(layout) or layout in more else 3)
                if found.level <= context.highest and context.laid_out(op, d, layout):
                    yield found

    return axes


def of_callable(
    level: int,
    layouts: tuple[str, ...],
    *,
    when: Callable[[CallableRecord], bool] = lambda op: True,
    floating: bool = False,
) -> Axes:
    """The first dtypes of each kind of number: the main one on all of the layouts, the others on the first.

    Every dtype if the result of the public callable depends on it. An argument that is modified does not have a
    layout in which several elements share memory.
    """
    categories = each_category(level, layouts)

    def axes(context: Context, op: CallableRecord) -> Iterator[Axis]:
        if level > context.highest or not when(op):
            return
        found = list(categories(context, op))
        tried = [d for d, layout, _ in found if layout == layouts[0]]
        if as_given(op) and context.highest == 3:
            more = [d for d in context.dtypes(op) if d not in tried and context.laid_out(op, d, layouts[0])]
            found += [Axis(d, layouts[0], 3) for d in more]
        for axis in found:
            if axis.dtype is None or (floating and not (axis.dtype.is_floating_point or axis.dtype.is_complex)):
                continue
            if not op.writes or axis.layout not in (*REPEATING, ALIASED):
                yield axis

    return axes
