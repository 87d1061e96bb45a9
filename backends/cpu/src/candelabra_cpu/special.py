"""Special functions, mostly SciPy's. SciPy is imported when the first of them is called.

SciPy's functions know float32 and float64: half types are computed in float32. They are slow enough, tens of
nanoseconds an element, that large arrays are split over the cores.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np

from candelabra_cpu.parallel import LEAST, split
from candelabra_cpu.quiet import asarray, ndarray, run_in_copy

WEIGHT: Final = 8
"""What one element of a special function costs, in elements of an addition: how soon another thread pays."""
Kernel = Callable[..., Any]


def is_half(x: Any) -> bool:
    """Whether an array is float16 or bfloat16."""
    return bool(x.dtype.itemsize == 2 and x.dtype.kind not in "iu")


def split_over_cores(function: Kernel, arrays: tuple[Any, ...]) -> Any:
    """``function(*arrays)``, which gives one array of their dtype and takes ``out``; large arrays in parts."""
    x = arrays[0]
    alike = all(a.__class__ is ndarray and a.shape == x.shape and a.flags.c_contiguous for a in arrays)
    if not alike or x.size * WEIGHT < 2 * LEAST:
        return asarray(run_in_copy(function, *arrays))
    out = np.empty(x.shape, x.dtype)
    flat, result = [a.reshape(-1) for a in arrays], out.reshape(-1)
    split(x.size, x.size * WEIGHT, lambda start, stop: function(*[a[start:stop] for a in flat], result[start:stop]))
    return out


def elementwise(find: Callable[[], Kernel]) -> Kernel:
    """A kernel of arrays and numbers in one floating dtype; ``find`` gives the function when it is first needed."""
    found: list[Kernel] = []

    def kernel(*operands: Any) -> Any:
        if not found:
            found.append(find())
        d = next(o.dtype for o in operands if isinstance(o, ndarray))
        half = d.itemsize == 2
        wide = np.dtype(np.float32) if half else d
        arrays = tuple(asarray(o, wide) for o in operands)
        out = split_over_cores(found[0], arrays)
        return out.astype(d) if half else out

    return kernel


def scipys(name: str) -> Kernel:
    """The kernel that is ``scipy.special.<name>``."""
    return elementwise(lambda: getattr(import_module("scipy.special"), name))


# -- where SciPy's functions are not what is wanted -------------------------------------------------------------------
def _lgamma() -> Kernel:
    gammaln = import_module("scipy.special").gammaln

    def lgamma(x: Any, out: Any = None) -> Any:
        # C's lgamma is infinity at both infinities, SciPy's at one.
        out = asarray(gammaln(x, out))
        out[x == -np.inf] = np.inf
        return out

    return lgamma


def _zeta() -> Kernel:
    return import_module("scipy.special._ufuncs")._zeta  # type: ignore[no-any-return] # zeta(x, q) without its detour


def _airy(part: int) -> Callable[[], Kernel]:
    def find() -> Kernel:
        airy = import_module("scipy.special").airy

        def value(x: Any, out: Any = None) -> Any:
            found = airy(x)[part]
            # SciPy gives NaN for very large numbers; the function and its slope have fallen to 0 long before.
            found = np.where(x > 110, x.dtype.type(0), found)
            if out is None:
                return found
            out[...] = found
            return out

        return value

    return find


def _logit(x: Any, eps: float | None) -> Any:
    if eps is not None:
        x = asarray(np.minimum(np.maximum(x, x.dtype.type(eps)), x.dtype.type(1 - eps)))
    return _unlimited_logit(x)


_unlimited_logit: Final = scipys("logit")


KERNELS: dict[str, Any] = {
    **{name: scipys(name) for name in ("erf", "erfc", "erfinv", "i0", "xlogy")},
    **{f"special_{name}": scipys(name) for name in (
        "entr", "erfcx", "i0e", "i1", "i1e", "log_ndtr", "ndtr", "ndtri", "xlog1py",
    )},
    **{f"special_bessel_{name}": scipys(name) for name in ("j0", "j1", "y0", "y1")},
    **{f"special_modified_bessel_{name}": scipys(name) for name in ("k0", "k1")},
    **{f"special_scaled_modified_bessel_{name}": scipys(f"{name}e") for name in ("k0", "k1")},
    "digamma": scipys("psi"),
    "igamma": scipys("gammainc"),
    "igammac": scipys("gammaincc"),
    "lgamma": elementwise(_lgamma),
    "logit": _logit,
    "special_zeta": elementwise(_zeta),
    "special_airy_ai": elementwise(_airy(0)),
    "special_airy_ai_slope": elementwise(_airy(1)),
}  # fmt: skip
