"""Conversion of a value of one dtype to another: an expression for each pair of dtypes."""

from __future__ import annotations

from candelabra.dtypes import BOOL, COMPLEX, FLOATING, dtype, float16, float64, uint32

from candelabra_clike.types import CTYPES


def conversion(source: dtype, target: dtype) -> str:
    """Return the expression that converts a value ``{a}`` of dtype ``source`` to ``target``.

    Floats are truncated towards 0. Values out of range give the same result as on the reference device. Complex numbers
    lose their imaginary part, except when converted to bool.
    """
    value, result = CTYPES[source].value, CTYPES[target].value
    if source.category == COMPLEX:
        if target.category == COMPLEX:
            return f"{result.upper()}({{a}}.x, {{a}}.y)"
        if target.category == BOOL:
            return "({a}.x != 0) | ({a}.y != 0)"
        return conversion(source.to_real(), target).replace("{a}", "{a}.x")
    if target.category == COMPLEX:
        return f"{result.upper()}({conversion(source, target.to_real())}, 0)"
    if target.category == BOOL:
        return "{a} != 0"
    if source.category != FLOATING:
        return f"({result}){{a}}"
    if target.category == FLOATING:
        return "round_to_odd_f32({a})" if (source, target) == (float64, float16) else f"({result}){{a}}"
    if source is float16 and target is uint32:  # the reference converts to 64 bits and keeps the lower half
        return f"(u32)i64_of_{value}({{a}})"
    through = result if target.itemsize >= 4 else "i32"
    return f"({result}){through}_of_{value}({{a}})"
