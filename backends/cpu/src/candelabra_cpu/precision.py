"""Computation in a wider dtype, with one rounding at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

SINGLE: Final = {"e": np.dtype("f"), "E": np.dtype("f")}
"""float32 for half types, by the character of the narrow dtype: for products, of which BLAS has none of half types."""
DOUBLE: Final = {"e": np.dtype("d"), "E": np.dtype("d"), "f": np.dtype("d"), "F": np.dtype("D")}
"""For formulas of several steps: the error of a step in float64 is far below the last digit of a float32."""


def in_float32(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a kernel so that it computes half types in float32."""
    return _in_wider(kernel, SINGLE)


def in_float64(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a kernel so that it computes half types and float32 in float64, and complex64 in complex128."""
    return _in_wider(kernel, DOUBLE)


BUFFER: Final = 1 << 13
"""Elements of a large array that an elementwise function gets at a time: its temporaries stay in the cache."""


def elementwise_in_float64(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an elementwise function like :func:`in_float64`. The result has the dtype of the first array."""
    at_once = in_float64(function)

    def wide(*operands: Any) -> Any:
        arrays = [o for o in operands if isinstance(o, np.ndarray)]
        dtype = arrays[0].dtype
        if dtype.char not in DOUBLE or arrays[0].size < BUFFER:
            return at_once(*operands)
        out = np.empty_like(arrays[0], shape=np.broadcast_shapes(*[a.shape for a in arrays]))
        flags: Any = [*[["readonly"]] * len(arrays), ["writeonly"]]
        dtypes = [DOUBLE[dtype.char]] * len(flags)
        with np.nditer(
            [*arrays, out], ["external_loop", "buffered"], flags, dtypes, casting="unsafe", buffersize=BUFFER
        ) as blocks:
            for *inputs, result in blocks:
                given = iter(inputs)
                result[...] = function(*[next(given) if isinstance(o, np.ndarray) else o for o in operands])
        return out

    return wide


def _in_wider(kernel: Callable[..., Any], wider: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the wrapped kernel. Its results in the wider dtype are rounded to the dtype of the first array."""

    def wide(*operands: Any) -> Any:
        x = operands[0]
        dtype = x.dtype if isinstance(x, np.ndarray) else next(o.dtype for o in operands if isinstance(o, np.ndarray))
        if dtype.char not in wider:
            return kernel(*operands)
        out = kernel(*[_widened(o, wider) if isinstance(o, np.ndarray) else o for o in operands])
        return (
            tuple([_rounded(o, dtype, wider) for o in out]) if isinstance(out, tuple) else _rounded(out, dtype, wider)
        )

    return wide


def _widened(x: Any, wider: Mapping[str, Any]) -> Any:
    return x.astype(wider[x.dtype.char]) if x.dtype.char in wider else x


def _rounded(x: Any, dtype: Any, wider: Mapping[str, Any]) -> Any:
    if x.dtype == wider[dtype.char]:
        return x.astype(dtype)
    return x.astype(np.float32) if dtype.char == "F" and x.dtype == np.float64 else x  # the modulus, for example


def is_half(x: Any) -> bool:
    """Return whether the dtype of an array is float16 or bfloat16."""
    return x.dtype.char in SINGLE
