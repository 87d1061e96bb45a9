"""Uninitialized tensors: empty, like another tensor, with given strides, with a given memory order of the dims."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_device, as_sizes
from candelabra._dispatch.tracing import tracer_here
from candelabra._geometry import extent
from candelabra._operators.creation.filled import check_sizes
from candelabra._operators.shapes.memory_formats import dense_strides
from candelabra._operators.shapes.strided import as_strided
from candelabra._records.callables import public
from candelabra._tensor import wrap
from candelabra.dtypes import get_default_dtype

if TYPE_CHECKING:
    from candelabra.typing import Device, DType, Shape, Tensor


def allocated(size: tuple[Any, ...], dtype: DType, device: Device) -> Tensor:
    """Return a tensor over new memory. Raise ``RuntimeError`` for a negative size."""
    if size and min(size) < 0:
        check_sizes(size)
    instance = as_device(device)
    keys = instance.keys_for(dtype)
    payload = instance.backend.empty(instance.index, size, dtype)
    tracer = tracer_here()
    if tracer is not None and not instance.depth:
        tracer.allocated(payload, tuple(size), dtype, instance)
    return wrap(payload, keys)


@public(method=False, factory=True)
def empty(*size: Shape, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return an uninitialized tensor of shape ``size``, by default in the default dtype."""
    return allocated(size, get_default_dtype() if dtype is None else dtype, device)


@public(method=False, factory=True, elementwise=True)
def empty_like(input: Tensor, *, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return an uninitialized tensor of the shape of ``input``, by default with its dtype and on its device."""
    return allocated(tuple(input._payload.shape), dtype or input.dtype, input._instance if device is None else device)


@public(is_function=False, factory=("layout", "pin_memory", "requires_grad"), uses="dtype")
def new_empty(input: Tensor, *size: Shape, dtype: DType | None = None, device: Device = None) -> Tensor:
    """Return an uninitialized tensor of shape ``size``, by default with the dtype and on the device of this tensor."""
    return allocated(size, dtype or input.dtype, input._instance if device is None else device)


# -- with a given memory order ----------------------------------------------------------------------------------------
def _allocated_strided(size: Sequence[int], stride: Sequence[int], dtype: DType, device: Device) -> Tensor:
    size, stride = as_sizes((size,)), as_sizes((stride,))
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    check_sizes(size)
    if any(step < 0 for step in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    flat = allocated((extent(size, stride),), dtype, device)
    return as_strided(flat, size, stride).detach()


@public(method=False, factory=True)
def empty_strided(
    size: Sequence[int], stride: Sequence[int], *, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """Return an uninitialized tensor with the given sizes and strides.

    Raises ``RuntimeError`` unless there are as many strides as sizes, and for negative sizes and strides.
    """
    return _allocated_strided(size, stride, dtype or get_default_dtype(), device)


@public(is_function=False, factory=("layout", "pin_memory", "requires_grad"), uses="dtype")
def new_empty_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], *, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """Return :func:`empty_strided`, by default with the dtype and on the device of this tensor."""
    return _allocated_strided(size, stride, dtype or input.dtype, input._instance if device is None else device)


@public(method=False, factory=True)
def empty_permuted(
    size: Sequence[int], physical_layout: Sequence[int], *, dtype: DType | None = None, device: Device = None
) -> Tensor:
    """Return an uninitialized dense tensor whose dims have the memory order ``physical_layout``, the outermost first.

    Raises ``RuntimeError`` if that is not a permutation of the dims; negative dims are not allowed.
    """
    size, order = as_sizes((size,)), list(physical_layout)
    if len(order) != len(size):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    for position, d in enumerate(order):
        if not 0 <= d < len(size):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {d} at index "
                f"{position})"
            )
    if len(set(order)) != len(order):
        raise RuntimeError("Duplicate dim not allowed")
    return _allocated_strided(size, dense_strides(size, order), dtype or get_default_dtype(), device)
