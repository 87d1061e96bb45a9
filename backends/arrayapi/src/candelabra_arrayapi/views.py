"""Views as new arrays, for devices whose arrays have no strides.

The record of a view operator computes the strides and the offset of the result. The kernels here gather those elements
from the flattened array. Where the standard has a function for the view, the kernel calls that function instead. The
core propagates writes from such a view to its base.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from candelabra.backend import contiguous_strides, extent

from candelabra_arrayapi.placement import same_device

Kernel = Callable[..., Any]
Ints = tuple[int, ...]


def kernels(xp: Any, dtypes: Mapping[Any, Any]) -> dict[str, Kernel]:
    """Return a kernel for every view operator whose record has a geometry.

    ``dtypes`` maps the dtypes of candelabra to those of the namespace ``xp``.
    """
    from candelabra.library import OPERATORS  # all records are read: only devices without strides need them

    int64 = next(v for k, v in dtypes.items() if k.name == "int64")

    def as_strided(x: Any, shape: Ints, strides: Ints, offset: int) -> Any:
        """Gather the elements of ``x`` with this shape, these strides and this offset into a new array."""
        flat = xp.reshape(x, (-1,))
        if 0 in shape:
            return xp.zeros(shape, dtype=x.dtype, **same_device(x))
        end = offset + extent(shape, strides)
        if end > flat.shape[0]:
            raise IndexError(
                f"a view of shape {shape} with strides {strides} and offset {offset} needs {end} elements, "
                f"the array has {flat.shape[0]}"
            )
        indices = xp.full((1,) * len(shape), offset, dtype=int64, **same_device(x))
        for dim, (size, step) in enumerate(zip(shape, strides)):
            along = xp.arange(size, dtype=int64, **same_device(x)) * step
            indices = indices + xp.reshape(along, tuple(size if d == dim else 1 for d in range(len(shape))))
        return xp.reshape(xp.take(flat, xp.reshape(indices, (-1,))), shape)

    functions = _standard_functions(xp)

    def view_kernel(name: str, geometry: Callable[..., Any]) -> Kernel:
        function = functions.get(name)

        def kernel(x: Any, *arguments: Any) -> Any:
            # The geometry validates the arguments; the functions of the standard are not required to.
            layout = geometry(tuple(x.shape), contiguous_strides(x.shape), 0, *arguments)
            return as_strided(x, *layout) if function is None else function(x, *arguments)

        return kernel

    return {name: view_kernel(name, op.geometry) for name, op in OPERATORS.items() if op.geometry is not None}


def _standard_functions(xp: Any) -> dict[str, Kernel]:
    """Return the kernels of the views for which the standard has a function."""

    def identity(x: Any) -> Any:
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
        "detach": identity, "alias": identity, "transpose": transpose, "t": t, "permute": xp.permute_dims,
        "expand": xp.broadcast_to, "view": xp.reshape, "squeeze": squeeze, "unsqueeze": unsqueeze,
        "basic_index": basic_index,
    }  # fmt: skip
