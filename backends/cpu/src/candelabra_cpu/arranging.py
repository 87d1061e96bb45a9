"""Views and copies that NumPy makes by means of its own."""

from __future__ import annotations

from typing import Any

from candelabra_cpu.backend import TO_NUMPY, address, storage_of


def view_dtype(x: Any, dtype: Any) -> Any:
    """The bytes as another dtype; ValueError where PyTorch refuses, though NumPy would not."""
    wanted = TO_NUMPY[dtype]
    if wanted.itemsize == x.itemsize:
        return x.view(wanted)
    if wanted.itemsize > x.itemsize:
        start = address(x) - address(storage_of(x))
        if any(step % wanted.itemsize for step in (start, *x.strides[:-1])):
            raise ValueError("the elements are not aligned to the wider dtype")
    return x.view(wanted)


KERNELS: dict[str, Any] = {"view_dtype": view_dtype}
