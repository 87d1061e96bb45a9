"""Conversion of a value of one dtype to another."""

from __future__ import annotations

from candelabra.dtypes import BOOL, COMPLEX, FLOATING, dtype, float16, float64, uint32

from candelabra_clike.language import Value, call, cast, pair, value_type


def converted(x: Value, source: dtype, target: dtype) -> Value:
    """Convert a value of dtype ``source`` to a value of dtype ``target``.

    Floats are truncated towards 0. Values out of range give the same result as on the reference device. Complex numbers
    lose their imaginary part, except when converted to bool.
    """
    result = value_type(target)
    if source.category == COMPLEX:
        if target.category == COMPLEX:
            part = value_type(target.to_real())
            return pair(cast(part, x.real), cast(part, x.imag))
        if target.category == BOOL:
            return (x.real != 0) | (x.imag != 0)
        return converted(x.real, source.to_real(), target)
    if target.category == COMPLEX:
        return pair(converted(x, source, target.to_real()), 0)
    if target.category == BOOL:
        return x != 0
    if source.category != FLOATING:
        return cast(result, x)
    if target.category == FLOATING:
        return call("round_to_odd_f32", x) if (source, target) == (float64, float16) else cast(result, x)
    if source is float16 and target is uint32:  # the reference converts to 64 bits and keeps the lower half
        return cast(result, call("i64_of", x))
    through = result if target.itemsize >= 4 else "i32"
    return cast(result, call(f"{through}_of", x))
