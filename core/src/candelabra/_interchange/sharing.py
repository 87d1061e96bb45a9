"""Host memory that processes share: ``Tensor.share_memory_`` and ``is_shared``.

A shared tensor lies in a mapping of an anonymous file, so forked processes see the same memory. ``multiprocessing``
passes the file's descriptor to other processes instead of the elements. The memory is freed with its last mapping.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
import weakref

from candelabra._annotations import Any, Final
from candelabra._interchange.host import host_view
from candelabra._keys import VIEW
from candelabra._records.lookup import public_function
from candelabra._tensor import Tensor
from candelabra._versions import expose
from candelabra.dtypes import BY_NAME


class SharedMapping(mmap.mmap):
    """A mapping of an anonymous file, with the descriptor of the file and the address of the memory."""

    fd: int
    start: int
    length: int


_mappings: Final[weakref.WeakValueDictionary[int, SharedMapping]] = weakref.WeakValueDictionary()
"""The mappings of this process, by address."""
_registered: Final[list[None]] = []
"""Not empty if multiprocessing knows how to pass shared tensors."""


def mapped(fd: int, size: int) -> SharedMapping:
    """Map a file, whose descriptor then belongs to the mapping."""
    made = SharedMapping(fd, size)
    made.fd, made.length = fd, size
    made.start = ctypes.addressof(ctypes.c_char.from_buffer(made))
    weakref.finalize(made, os.close, fd)
    _mappings[made.start] = made
    if not _registered:
        from multiprocessing.reduction import ForkingPickler

        ForkingPickler.register(Tensor, reduced_for_processes)
        _registered.append(None)
    return made


def _anonymous_file(size: int) -> int:
    """Return the descriptor of a new file without a name."""
    if hasattr(os, "memfd_create"):
        fd: int = os.memfd_create("candelabra")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd


def share_memory(tensor: Tensor) -> Tensor:
    """Implement ``Tensor.share_memory_``."""
    if not tensor._instance.capabilities.host:
        raise RuntimeError(
            f"share_memory_(): the memory of {tensor.device} cannot be shared with other processes; move the tensor to "
            "a device of the host first"
        )
    if mapping_of(tensor) is not None or not tensor.numel():
        return tensor
    if tensor._keys & VIEW:
        raise RuntimeError("share_memory_(): the tensor is a view; share its base, or a clone()")
    data = host_view(tensor).cast("B")
    mapping = mapped(_anonymous_file(len(data)), len(data))
    mapping[:] = bytes(data) if not data.contiguous else data
    tensor._payload = _tensor_over(mapping, 0, tensor.dtype.name, tuple(tensor._payload.shape), None)._payload
    expose(tensor._counter)
    return tensor


def mapping_of(tensor: Tensor) -> SharedMapping | None:
    """Return the mapping that contains the elements of a tensor, or None."""
    if not _mappings or not tensor._instance.capabilities.host or not tensor.numel():
        return None
    address = tensor.data_ptr()
    return next((m for m in list(_mappings.values()) if m.start <= address < m.start + m.length), None)


def _tensor_over(mapping: SharedMapping, offset: int, dtype: str, shape: tuple[int, ...], strides: Any) -> Any:
    flat = public_function("frombuffer")(mapping, dtype=BY_NAME[dtype], offset=offset)
    if strides is None:
        return flat.reshape(shape)
    return flat.as_strided(shape, strides)


def reduced_for_processes(tensor: Tensor) -> Any:
    """Return the content of a pickle for another process: for a shared tensor, where its memory is."""
    mapping = mapping_of(tensor)
    if mapping is None or not tensor.is_leaf:
        return tensor.__reduce_ex__(5)
    from multiprocessing.reduction import DupFd

    offset = tensor.data_ptr() - mapping.start
    place = (mapping.length, offset, tensor.dtype.name, tuple(tensor._payload.shape), tuple(tensor.stride()))
    return received, (DupFd(mapping.fd), *place, tensor.requires_grad, dict(tensor.__dict__))


def received(
    descriptor: Any,
    size: int,
    offset: int,
    dtype: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    requires_grad: bool,
    attributes: dict[str, Any],
) -> Any:
    """Return the shared tensor that another process has sent."""
    over = _tensor_over(mapped(descriptor.detach(), size), offset, dtype, shape, strides)
    out = over.data  # not a view of the flat memory
    if requires_grad:
        out.requires_grad_()
    out.__dict__.update(attributes)
    return out
