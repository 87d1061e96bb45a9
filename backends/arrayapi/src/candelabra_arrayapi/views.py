"""Views as arrays of their own, for devices whose arrays have no strides and never change.

The record of a view says where its elements lie in memory. On the memory of an array in C order that makes every view,
by taking elements; those that the standard has a function for are made by that. A write to such a view reaches its base
by the core's doing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from candelabra.backend import contiguous_strides, extent
from candelabra.library import OPERATORS

Kernel = Callable[..., Any]
Ints = tuple[int, ...]


def kernels(xp: Any, dtypes: Mapping[Any, Any]) -> dict[str, Kernel]:
    """Every view of which the record says the geometry; ``dtypes`` maps the core's dtypes to the namespace's."""
    int64 = next(v for k, v in dtypes.items() if k.name == "int64")

    def taken(x: Any, shape: Ints, strides: Ints, offset: int) -> Any:
        """What lies at these places of the array's memory."""
        flat = xp.reshape(x, (-1,))
        if 0 in shape:
            return xp.zeros(shape, dtype=x.dtype)
        reach = offset + extent(shape, strides)
        if reach > flat.shape[0]:
            raise IndexError(f"the view reaches over {reach} elements, of which there are {flat.shape[0]}")
        places = xp.full((1,) * len(shape), offset, dtype=int64)
        for dim, (size, step) in enumerate(zip(shape, strides)):
            along = xp.arange(size, dtype=int64) * step
            places = places + xp.reshape(along, tuple(size if d == dim else 1 for d in range(len(shape))))
        return xp.reshape(xp.take(flat, xp.reshape(places, (-1,))), shape)

    direct = _direct(xp)

    def viewing(name: str, geometry: Callable[..., Any]) -> Kernel:
        function = direct.get(name)

        def kernel(x: Any, *arguments: Any) -> Any:
            # The geometry checks the arguments, which functions of the standard need not do.
            found = geometry(tuple(x.shape), contiguous_strides(x.shape), 0, *arguments)
            return taken(x, *found) if function is None else function(x, *arguments)

        return kernel

    return {name: viewing(name, op.geometry) for name, op in OPERATORS.items() if op.geometry is not None}


def _direct(xp: Any) -> dict[str, Kernel]:
    """The views that the standard has a function for."""

    def same(x: Any) -> Any:
        return x

    def transpose(x: Any, dim0: int, dim1: int) -> Any:
        order = list(range(x.ndim))
        if order:
            order[dim0], order[dim1] = order[dim1], order[dim0]
        return xp.permute_dims(x, tuple(order))

    def t(x: Any) -> Any:
        return xp.permute_dims(x, tuple(range(x.ndim))[::-1])

    def basic_index(x: Any, index: tuple[Any, ...]) -> Any:
        return x[(*index, ...)]

    def squeeze(x: Any, dims: Ints) -> Any:
        return xp.squeeze(x, axis=dims)

    def unsqueeze(x: Any, dim: int) -> Any:
        return xp.expand_dims(x, axis=dim)

    return {
        "detach": same, "alias": same, "transpose": transpose, "t": t, "permute": xp.permute_dims,
        "expand": xp.broadcast_to, "view": xp.reshape, "squeeze": squeeze, "unsqueeze": unsqueeze,
        "basic_index": basic_index,
    }  # fmt: skip
