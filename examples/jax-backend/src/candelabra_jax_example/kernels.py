"""The kernels: those of candelabra-arrayapi over ``jax.numpy``, and the few that JAX does in ways of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from typing import Any

import candelabra_arrayapi
import jax
from candelabra.backend import Kernel
from candelabra.dtypes import ALL
from jax import lax
from jax import numpy as jnp

MOVES = ("basic_index_adjoint", "basic_index_scatter", "cat", "clone", "flip", "gather", "index", "index_select")
"""The operators that only move numbers, in addition to the views."""

LONG = 1024
TO_JAX = {d: jnp.dtype(d.name) for d in ALL}
"""The core's dtypes as JAX's."""
FROM_JAX = {held: d for d, held in TO_JAX.items()}


def wide(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with 64-bit dtypes switched on: for its own calls only, whatever the program uses JAX for."""

    @wraps(function)
    def run(*arguments: Any) -> Any:
        with jax.enable_x64(True):
            return function(*arguments)

    return run


@wide
def table(device: Callable[[int], Any]) -> dict[str, Kernel]:
    """``{operator: kernel}``; ``device`` maps indices to JAX's devices."""
    general = candelabra_arrayapi.kernels(jnp, TO_JAX, device, strided=False, assign=assign, accumulate=accumulate)
    moves = (*candelabra_arrayapi.views.kernels(jnp, TO_JAX), *MOVES)
    kernels = {
        **general,
        **{name: by_bits(general[name]) for name in moves if name in general},
        "div": div,
        "matmul": matmul,
        "view_as_real": view_as_real,
        "view_as_complex": view_as_complex,
        "view_dtype": lambda x, dtype: x.view(TO_JAX[dtype]),
    }
    return {name: wide(kernel) for name, kernel in kernels.items()}


def assign(x: Any, index: Any, values: Any) -> Any:
    """Return a copy of ``x`` with ``values`` at ``[index]``: JAX's form of ``x[index] = values``."""
    return by_bits(lambda x, values: x.at[index].set(values))(x, values)


def accumulate(x: Any, index: Any, values: Any) -> Any:
    """``x`` with ``values`` added at ``[index]``, one after the other where a place is named twice."""
    return x.at[index].add(values)


def by_bits(kernel: Kernel) -> Kernel:
    """The kernel on bfloat16 as integers: XLA moves such numbers by way of float32, which changes some NaNs' bits."""

    def half(v: Any) -> bool:
        return getattr(v, "dtype", None) == jnp.bfloat16

    def moved(*arguments: Any) -> Any:
        if not any(half(v) for v in jax.tree.leaves(arguments)):
            return kernel(*arguments)
        bits = jax.tree.map(lambda v: lax.bitcast_convert_type(v, jnp.uint16) if half(v) else v, arguments)
        return lax.bitcast_convert_type(kernel(*bits), jnp.bfloat16)

    return moved


def div(x: Any, y: Any) -> Any:
    """The quotient, rounded once: where JAX broadcasts a divisor itself, it multiplies by the inverse."""
    dtype = next(v.dtype for v in (x, y) if hasattr(v, "dtype"))
    return jnp.divide(*jnp.broadcast_arrays(jnp.asarray(x, dtype), jnp.asarray(y, dtype)))


def matmul(x: Any, y: Any) -> Any:
    """Return the product. Long sums are divided, since XLA adds all terms to one number, whose error grows."""
    indices = list(range(LONG, x.shape[-1], LONG))
    parts = zip(jnp.split(x, indices, axis=-1), jnp.split(y, indices, axis=max(y.ndim - 2, 0)), strict=True)
    return reduce(jnp.add, (jnp.matmul(a, b) for a, b in parts))


def view_as_real(x: Any) -> Any:
    """Pairs (real, imaginary) along a last axis."""
    return jnp.stack([jnp.real(x), jnp.imag(x)], axis=-1)


def view_as_complex(x: Any) -> Any:
    """Pairs along the last axis as complex numbers."""
    if x.shape[-1:] != (2,) or x.dtype.itemsize < 4:
        raise ValueError("view_as_complex takes pairs of float32 or float64")
    return lax.complex(x[..., 0], x[..., 1])
