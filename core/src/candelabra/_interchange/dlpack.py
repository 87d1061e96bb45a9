"""DLPack: share memory with arrays of other libraries.

Source: the DLPack specification and the Python Array API standard's ``__dlpack__``, ``__dlpack_device__`` and
``from_dlpack``.
"""

from __future__ import annotations

from candelabra._annotations import Any
from candelabra._device import Instance, open_device, open_instances
from candelabra._dispatch.deferring import shares_memory
from candelabra._dispatch.tracing import note_break
from candelabra._plugins import registry
from candelabra._tensor import Tensor, wrap
from candelabra._versions import expose
from candelabra.errors import BackendError


def export(tensor: Tensor, **options: Any) -> Any:
    """Return a capsule over a tensor's memory. Raise ``BufferError`` if it requires grad or has no DLPack."""
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    instance = tensor._instance
    note_break("the memory of a tensor is exported by DLPack")
    shares_memory()
    expose(tensor._counter)
    return instance.backend.to_dlpack(tensor._payload, instance.index, **options)


def device_of(tensor: Tensor) -> tuple[int, int]:
    """Return (DLPack device type, id)."""
    instance = tensor._instance
    kind = instance.capabilities.dlpack
    if kind is None:
        raise BufferError(f"device {str(instance.device)!r} does not export DLPack")
    return kind, instance.index


def imported(source: Any, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return a tensor over the memory of an object with ``__dlpack__``; see ``candelabra.from_dlpack``."""
    if not hasattr(source, "__dlpack__") or not hasattr(source, "__dlpack_device__"):
        raise TypeError(
            f"from_dlpack() takes an object with __dlpack__ and __dlpack_device__, not {type(source).__name__}"
        )
    wanted = None if device is None else open_device(device)
    for instance in _candidates(source):
        payload = instance.backend.from_dlpack(source, instance.index, copy)
        if payload is not None:
            made = wrap(payload, instance.keys_for(instance.backend.dtype_of(payload)))
            expose(made._counter)
            if wanted is None or wanted is instance:
                return made
            if copy is False:
                raise ValueError(f"from_dlpack(): moving from {instance.device} to {wanted.device} requires a copy")
            return made.to(wanted.device)

    kind, number = source.__dlpack_device__()
    broken = ", ".join(registry.failures())
    raise BufferError(
        f"no installed backend takes memory of DLPack device type {int(kind)}, id {number}"
        + (f"; failed to load: {broken} (see `candelabra doctor`)" if broken else "")
    )


def _candidates(source: Any) -> list[Instance]:
    """Return the devices that may own the memory: those in use first, then one of every other working backend."""
    number = int(source.__dlpack_device__()[1])
    found = open_instances()
    for name in registry.plugins():
        for index in (number, 0):
            try:
                instance = open_device(f"{name}:{index}")
            except (BackendError, RuntimeError):
                continue
            if instance not in found:
                found.append(instance)
            break
    return found
