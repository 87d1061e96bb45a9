"""Floating-point numbers taken apart: two results of one operand."""

from __future__ import annotations

from functools import lru_cache

from candelabra.dtypes import dtype, int32

from candelabra_clike.array import StridedArray
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.types import CTYPES


@lru_cache(None)
def _halves(d: dtype) -> tuple[Elementwise, Elementwise]:
    value = CTYPES[d].value
    return (
        Elementwise(f"frexp_mantissa_{d.name}", f"fraction_part_{value}({{a}})", (d,), d),
        Elementwise(f"frexp_exponent_{d.name}", f"exponent_part_{value}({{a}})", (d,), int32),
    )


def frexp(x: StridedArray) -> tuple[StridedArray, StridedArray]:
    """The mantissa, in [0.5, 1) but for its sign, and the exponent; 0, infinities and NaN are their own, with 0."""
    mantissa, exponent = _halves(x.dtype)
    return mantissa(x), exponent(x)


KERNELS = {"frexp": frexp}
