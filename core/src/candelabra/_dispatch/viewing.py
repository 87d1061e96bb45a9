"""View operators on strided backends: the core computes shape, strides and offset; the backend only re-strides."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._device import Instance

if TYPE_CHECKING:
    from candelabra._records.record import Operator


def strided_view_kernel(op: Operator[..., Any], instance: Instance) -> Callable[..., Any] | None:
    """A kernel from the record's geometry, or None where it has none (its body serves it then)."""
    geometry = op.geometry
    if geometry is None:
        return None
    layout, restride = instance.backend.layout, instance.backend.restride

    def kernel(payload: Any, *args: Any) -> Any:
        strides, offset = layout(payload)
        return restride(payload, *geometry(tuple(payload.shape), strides, offset, *args))

    return kernel
