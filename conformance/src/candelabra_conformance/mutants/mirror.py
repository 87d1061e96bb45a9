"""A correct backend of a second device type, to be broken: it mirrors the reference device's own kernels.

Its payloads are a class of their own (:class:`Image`) over the reference's, so that no payload can pass from one device
to the other unnoticed. It names no backend: it mirrors the reference of the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final

from candelabra.backend import Backend, DeviceInfo, HostMapping, Kernel, contiguous_strides
from candelabra.dtypes import dtype
from candelabra.library import OPERATORS, Operator, plugins

EXTENSION: Final = 12
"""DLPack's ``kDLExtDev``: memory of a device without a DLPack number."""
DEVICES: Final = 2


class MirrorMemory:
    """One allocation, shared by all payloads over it, and counted until the last of them is deleted."""

    __slots__ = ("counted", "size")

    def __init__(self, counted: dict[int, int], size: int) -> None:
        self.counted = counted
        self.size = size
        counted[id(self)] = size

    def __del__(self) -> None:
        self.counted.pop(id(self), None)


class Image:
    """A payload: the reference's, wrapped in another class. Only its ``shape`` is public."""

    __slots__ = ("inner", "index", "memory", "shape")

    def __init__(self, inner: Any, index: int, memory: MirrorMemory) -> None:
        self.inner = inner
        self.index = index
        self.memory = memory
        self.shape: tuple[int, ...] = tuple(inner.shape)

    def __bool__(self) -> bool:
        raise TypeError("an Image has no truth value")

    def __eq__(self, other: object) -> bool:
        raise TypeError("an Image cannot be compared")

    __hash__ = None  # type: ignore[assignment]


class MirrorMapping(HostMapping):
    """A payload's content in memory of the host, which is copied back at the end."""

    def __init__(self, mirror: Mirror, image: Image, read: bool, write: bool) -> None:
        size = prod(image.shape) * mirror.dtype_of(image).itemsize
        self.mirror, self.image, self.write = mirror, image, write
        self.memory = bytearray(mirror.to_host(image)) if read else bytearray(size)

    def wait(self) -> memoryview:
        """Return the memory."""
        return memoryview(self.memory)

    def unmap(self) -> None:
        """Copy the memory back, if the mapping was made to write."""
        if self.write:
            mirror, image = self.mirror, self.image
            dtype = mirror.dtype_of(image)
            mirror.copy_(image, mirror.from_host(image.index, memoryview(self.memory), image.shape, dtype))


class Mirror(Backend):
    """Two devices with the reference's behaviour.

    ``mutable=False`` creates arrays without strides that never change. With ``views=True`` the reference's kernels
    create views, which the core would otherwise compute from strides. ``overrides=False`` omits the kernels of
    operators that have a body, so that the bodies serve them, as on a device with the fewest kernels.
    """

    def __init__(
        self, name: str = "mirror", *, mutable: bool = True, views: bool = False, overrides: bool = True
    ) -> None:
        self.name = name
        host = plugins.reference_device().type
        self.reference, self.reflected = plugins.backend(host)[0], plugins.owner_kernels(host)
        self.capabilities = replace(
            self.reference.capabilities, host=False, mutable=mutable, strided=mutable, dlpack=EXTENSION
        )
        self.counted: list[dict[int, int]] = [{} for _ in range(DEVICES)]
        self.table: dict[str, Kernel] = self._kernels(mutable, views, overrides)
        """The result of :meth:`kernels`. A mutant replaces entries."""

    def _kernels(self, mutable: bool, views: bool, overrides: bool) -> dict[str, Kernel]:
        table: dict[str, Kernel] = {}
        for name, kernel in self.reflected.items():
            inplace = name not in OPERATORS
            record = OPERATORS[name[:-1] if inplace else name]
            if (inplace and not mutable) or (record.geometry is not None and not views):
                continue
            if record.body is not None and not overrides:
                continue
            table[name] = self.image_of(record, kernel)
        if not mutable:
            geometric = {n: op for n, op in OPERATORS.items() if op.geometry is not None}
            table.update({n: self.image_of(op, self._view_by_copy(op)) for n, op in geometric.items()})
        return table

    def image_of(self, record: Operator[..., Any], kernel: Kernel) -> Kernel:
        """Return a kernel on images. A kernel that is selected by dtype stays so."""
        choose = getattr(kernel, "for_dtype", None)
        if choose is not None:
            return ByDtype(lambda d: self.image_of(record, choose(d)), self.image_of(record, lambda *a: kernel(*a)))
        place = next((i for i, p in enumerate(record.schema.parameters) if p.kind == "device"), None)
        shares = record.view

        def run(*args: Any) -> Any:
            first = None if place is not None else first_image(args)
            index = args[place] if place is not None else _of(first).index
            inner = [unwrapped(a, index) for a in args]
            if place is not None:
                inner[place] = 0
            result = kernel(*inner)
            if result is NotImplemented:  # the kernel declines the call
                return result
            if shares and self.capabilities.strided:
                return Image(result, index, _of(first).memory)
            if isinstance(result, tuple):
                return tuple(self.wrapped(r, index) for r in result)
            return self.wrapped(result, index)

        run.__name__ = record.name
        return run

    def _view_by_copy(self, record: Operator[..., Any]) -> Kernel:
        geometry, clone = record.geometry, self.reflected["clone"]
        assert geometry is not None
        whole, restride = self.reference, self.reference.restride

        def kernel(x: Any, *args: Any) -> Any:
            flat = whole.from_host(0, whole.to_host(x), tuple(x.shape), whole.dtype_of(x))
            return clone(restride(flat, *geometry(tuple(x.shape), contiguous_strides(tuple(x.shape)), 0, *args)))

        return kernel

    def wrapped(self, inner: Any, index: int) -> Image:
        """Wrap a payload of the reference in memory of device ``index``."""
        size = prod(inner.shape) * self.reference.dtype_of(inner).itemsize
        return Image(inner, index, MirrorMemory(self.counted[index], size))

    # -- the contract -------------------------------------------------------------------------------------------------
    def devices(self) -> Sequence[DeviceInfo]:
        """Return the number :data:`DEVICES`."""
        return [DeviceInfo(f"mirror number {i}", {"reflects": self.reference.name}) for i in range(DEVICES)]

    def kernels(self) -> Mapping[str, Kernel]:
        """Return the kernel table."""
        return self.table

    def empty(self, index: int, shape: tuple[int, ...], dtype: dtype) -> Any:
        """Allocate as the reference does."""
        return self.wrapped(self.reference.empty(0, shape, dtype), index)

    def from_host(self, index: int, data: memoryview, shape: tuple[int, ...], dtype: dtype) -> Any:
        """Copy from the host as the reference does."""
        return self.wrapped(self.reference.from_host(0, data, shape, dtype), index)

    def to_host(self, payload: Any) -> memoryview:
        """Return a copy of the bytes."""
        return memoryview(bytes(self.reference.to_host(payload.inner)))

    def dtype_of(self, payload: Any) -> dtype:
        """Return the dtype of the reference's payload."""
        return self.reference.dtype_of(payload.inner)

    def copy_(self, destination: Any, source: Any) -> Any:
        """Copy as the reference does, or raise an error if arrays never change."""
        if not self.capabilities.mutable:
            raise TypeError("the core wrote to an array that never changes")
        self.reference.copy_(destination.inner, unwrapped(source, destination.index))
        return destination

    def layout(self, payload: Any) -> tuple[tuple[int, ...], int]:
        """Return the layout of the reference's payload."""
        return self.reference.layout(payload.inner)

    def restride(self, payload: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
        """Return the reference's view of the same memory. Raises ValueError beyond its end, so that no mutant ends the
        process."""
        last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        if offset < 0 or (0 not in shape and last >= payload.memory.size // self.dtype_of(payload).itemsize):
            raise ValueError(f"a view of {shape} with strides {strides} and offset {offset} reaches beyond its memory")
        return Image(self.reference.restride(payload.inner, shape, strides, offset), payload.index, payload.memory)

    def memory(self, index: int, release: bool = False) -> Mapping[str, int]:
        """Return the bytes of the memory that payloads still use."""
        return {"allocated": sum(list(self.counted[index].values()))}

    def map_host(self, payload: Any, index: int, read: bool, write: bool) -> HostMapping | None:
        """Copy to memory of the host, and back if arrays can be written."""
        return MirrorMapping(self, payload, read, write) if self.capabilities.mutable or not write else None

    def to_dlpack(self, payload: Any, index: int, **options: Any) -> Any:
        """Return the reference's capsule. The device has no streams, so the option has no effect."""
        return self.reference.to_dlpack(payload.inner, 0, **{k: v for k, v in options.items() if k != "stream"})

    def from_dlpack(self, source: Any, index: int, copy: bool | None) -> Any:
        """Import memory of this device type only; another mirror has the same number, but another owner."""
        if getattr(getattr(source, "device", None), "type", self.name) != self.name:
            return None
        kind, number = source.__dlpack_device__()
        if (int(kind), int(number)) != (EXTENSION, index):
            return None
        inner = self.reference.from_dlpack(_Unmasked(source, self.reference), 0, copy)
        return None if inner is None else self.wrapped(inner, index)


class ByDtype:
    """A kernel that is selected by dtype when a call is resolved."""

    def __init__(self, for_dtype: Callable[[dtype], Kernel], kernel: Kernel) -> None:
        self.for_dtype = for_dtype
        self.kernel = kernel

    def __call__(self, *args: Any) -> Any:
        return self.kernel(*args)


class _Unmasked:
    """An exporter of this device's memory that appears as one of the reference's."""

    def __init__(self, source: Any, reference: Backend) -> None:
        self.source = source
        self.kind = reference.capabilities.dlpack

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind or 0, 0

    def __dlpack__(self, **options: Any) -> Any:
        return self.source.__dlpack__(**{k: v for k, v in options.items() if k != "dl_device"})


def first_image(args: Sequence[Any]) -> Image | None:
    """Return the first payload in a kernel's arguments, also inside a list."""
    for value in args:
        if isinstance(value, Image):
            return value
        if isinstance(value, (list, tuple)):
            found = first_image(value)
            if found is not None:
                return found
    return None


def unwrapped(value: Any, index: int) -> Any:
    """Return the reference's payload of an argument. Raises RuntimeError if it is memory of another device."""
    if isinstance(value, Image):
        if value.index != index:
            raise RuntimeError(f"memory of mirror number {value.index} cannot be read from number {index}")
        return value.inner
    if isinstance(value, (list, tuple)):
        return type(value)(unwrapped(v, index) for v in value)
    return value


def _of(image: Image | None) -> Image:
    if image is None:
        raise TypeError("a kernel was called without a payload")
    return image
