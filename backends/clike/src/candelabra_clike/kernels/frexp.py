"""``frexp``: the mantissa and the exponent of floating-point numbers."""

from __future__ import annotations

from functools import lru_cache

from candelabra.dtypes import dtype, int32

from candelabra_clike.array import StridedArray
from candelabra_clike.language import call
from candelabra_clike.templates.elementwise.elementwise import Elementwise


@lru_cache(None)
def _kernels(d: dtype) -> tuple[Elementwise, Elementwise]:
    return (
        Elementwise.of(f"frexp_mantissa_{d.name}", lambda a: call("frexp_mantissa", a), (d,), d),
        Elementwise.of(f"frexp_exponent_{d.name}", lambda a: call("frexp_exponent", a), (d,), int32),
    )


def frexp(x: StridedArray) -> tuple[StridedArray, StridedArray]:
    """Mantissa and exponent. The magnitude of the mantissa is in [0.5, 1); 0, infinities and NaN have exponent 0."""
    mantissa, exponent = _kernels(x.dtype)
    return mantissa(x), exponent(x)


KERNELS = {"frexp": frexp}
