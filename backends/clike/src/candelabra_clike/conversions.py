"""What a value of one dtype becomes in another: an expression for each pair."""

from __future__ import annotations

from candelabra.dtypes import BOOL, COMPLEX, FLOATING, dtype, float16, float64, uint32

from candelabra_clike.types import CTYPES


def conversion(source: dtype, target: dtype) -> str:
    """The expression of a value ``{a}`` of one dtype as a value of another.

    Floats are cut towards 0 and what does not fit becomes what it does in the reference, complex numbers lose their
    imaginary part (but a bool tells whether the number is 0).
    """
    value, wanted = CTYPES[source].value, CTYPES[target].value
    if source.category == COMPLEX:
        if target.category == COMPLEX:
            return f"{wanted.upper()}({{a}}.x, {{a}}.y)"
        if target.category == BOOL:
            return "({a}.x != 0) | ({a}.y != 0)"
        return conversion(source.to_real(), target).replace("{a}", "{a}.x")
    if target.category == COMPLEX:
        return f"{wanted.upper()}({conversion(source, target.to_real())}, 0)"
    if target.category == BOOL:
        return "{a} != 0"
    if source.category != FLOATING:
        return f"({wanted}){{a}}"
    if target.category == FLOATING:
        return "odd_f32({a})" if (source, target) == (float64, float16) else f"({wanted}){{a}}"
    if source is float16 and target is uint32:  # the reference takes 64 bits on the way, of which the lower are left
        return f"(u32)i64_of_{value}({{a}})"
    through = wanted if target.itemsize >= 4 else "i32"
    return f"({wanted}){through}_of_{value}({{a}})"
