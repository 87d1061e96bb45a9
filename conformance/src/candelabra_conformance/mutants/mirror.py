"""A correct backend of a second device type, to be broken: the reference device's own kernels, seen in a mirror.

Its payloads are a class of its own (:class:`Image`) over the reference's, so that nothing can pass from one device to
the other unnoticed. It names no backend: which one is reflected is what the registry calls the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final

from candelabra.backend import Backend, DeviceInfo, Kernel, contiguous_strides
from candelabra.dtypes import dtype
from candelabra.library import OPERATORS, Operator, plugins

EXTENSION: Final = 12
"""DLPack's ``kDLExtDev``: memory of a device that DLPack has no number for."""
DEVICES: Final = 2


class Memory:
    """One allocation, shared by all payloads over it; counted until the last of them is gone."""

    __slots__ = ("counted", "size")

    def __init__(self, counted: dict[int, int], size: int) -> None:
        self.counted = counted
        self.size = size
        counted[id(self)] = size

    def __del__(self) -> None:
        self.counted.pop(id(self), None)


class Image:
    """A payload: the reference's, behind a name of its own. It offers ``shape`` and nothing else."""

    __slots__ = ("inner", "index", "memory", "shape")

    def __init__(self, inner: Any, index: int, memory: Memory) -> None:
        self.inner = inner
        self.index = index
        self.memory = memory
        self.shape: tuple[int, ...] = tuple(inner.shape)

    def __bool__(self) -> bool:
        raise TypeError("an Image has no truth value")

    def __eq__(self, other: object) -> bool:
        raise TypeError("an Image cannot be compared")

    __hash__ = None  # type: ignore[assignment]


class Mirror(Backend):
    """Two devices that do what the reference does.

    ``mutable=False`` makes one of arrays without strides that never change. ``views=True`` serves views by the
    reference's kernels, where the core would otherwise compute them from strides.
    """

    def __init__(self, name: str = "mirror", *, mutable: bool = True, views: bool = False) -> None:
        self.name = name
        self.reference, self.reflected = plugins.backend(plugins.reference_device().type)
        self.capabilities = replace(
            self.reference.capabilities, host=False, mutable=mutable, strided=mutable, dlpack=EXTENSION
        )
        self.counted: list[dict[int, int]] = [{} for _ in range(DEVICES)]
        self.table: dict[str, Kernel] = self._kernels(mutable, views)
        """What :meth:`kernels` gives. A mutant replaces entries."""

    def _kernels(self, mutable: bool, views: bool) -> dict[str, Kernel]:
        table: dict[str, Kernel] = {}
        for name, kernel in self.reflected.items():
            inplace = name not in OPERATORS
            record = OPERATORS[name[:-1] if inplace else name]
            if (inplace and not mutable) or (record.geometry is not None and not views):
                continue
            table[name] = self.image_of(record, kernel)
        if not mutable:
            geometric = {n: op for n, op in OPERATORS.items() if op.geometry is not None}
            table.update({n: self.image_of(op, self._view_by_copy(op)) for n, op in geometric.items()})
        return table

    def image_of(self, record: Operator[..., Any], kernel: Kernel) -> Kernel:
        """A kernel on images. One that is chosen by dtype stays so."""
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
        """A payload of the reference as one of device ``index``: memory of its own."""
        size = prod(inner.shape) * self.reference.dtype_of(inner).itemsize
        return Image(inner, index, Memory(self.counted[index], size))

    # -- the contract -------------------------------------------------------------------------------------------------
    def devices(self) -> Sequence[DeviceInfo]:
        """As many as :data:`DEVICES`."""
        return [DeviceInfo(f"mirror number {i}", {"reflects": self.reference.name}) for i in range(DEVICES)]

    def kernels(self) -> Mapping[str, Kernel]:
        """The table."""
        return self.table

    def empty(self, index: int, shape: tuple[int, ...], dtype: dtype) -> Any:
        """The reference's."""
        return self.wrapped(self.reference.empty(0, shape, dtype), index)

    def from_host(self, index: int, data: memoryview, shape: tuple[int, ...], dtype: dtype) -> Any:
        """The reference's."""
        return self.wrapped(self.reference.from_host(0, data, shape, dtype), index)

    def to_host(self, payload: Any) -> memoryview:
        """A copy of the bytes."""
        return memoryview(bytes(self.reference.to_host(payload.inner)))

    def dtype_of(self, payload: Any) -> dtype:
        """The reference's."""
        return self.reference.dtype_of(payload.inner)

    def copy_(self, destination: Any, source: Any) -> Any:
        """The reference's; refused where arrays never change."""
        if not self.capabilities.mutable:
            raise TypeError("the core wrote to an array that never changes")
        self.reference.copy_(destination.inner, unwrapped(source, destination.index))
        return destination

    def layout(self, payload: Any) -> tuple[tuple[int, ...], int]:
        """The reference's."""
        return self.reference.layout(payload.inner)

    def restride(self, payload: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Any:
        """The reference's, over the same memory. ValueError beyond its end: a mutant may not end the process."""
        last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        if offset < 0 or (0 not in shape and last >= payload.memory.size // self.dtype_of(payload).itemsize):
            raise ValueError(f"a view of {shape} with strides {strides} and offset {offset} reaches beyond its memory")
        return Image(self.reference.restride(payload.inner, shape, strides, offset), payload.index, payload.memory)

    def memory(self, index: int, release: bool = False) -> Mapping[str, int]:
        """Bytes in memory that some payload still holds."""
        return {"allocated": sum(list(self.counted[index].values()))}

    def to_dlpack(self, payload: Any, index: int, **options: Any) -> Any:
        """The reference's capsule; this device has no streams, so the option says nothing."""
        return self.reference.to_dlpack(payload.inner, 0, **{k: v for k, v in options.items() if k != "stream"})

    def from_dlpack(self, source: Any, index: int, copy: bool | None) -> Any:
        """Memory of this device type, and that only; another mirror's has the same number, but another owner."""
        if getattr(getattr(source, "device", None), "type", self.name) != self.name:
            return None
        kind, number = source.__dlpack_device__()
        if (int(kind), int(number)) != (EXTENSION, index):
            return None
        inner = self.reference.from_dlpack(_Unmasked(source, self.reference), 0, copy)
        return None if inner is None else self.wrapped(inner, index)


class ByDtype:
    """A kernel that is chosen by dtype when a call is resolved."""

    def __init__(self, for_dtype: Callable[[dtype], Kernel], kernel: Kernel) -> None:
        self.for_dtype = for_dtype
        self.kernel = kernel

    def __call__(self, *args: Any) -> Any:
        return self.kernel(*args)


class _Unmasked:
    """An exporter of this device's memory, as one of the reference's, which is what lies behind."""

    def __init__(self, source: Any, reference: Backend) -> None:
        self.source = source
        self.kind = reference.capabilities.dlpack

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind or 0, 0

    def __dlpack__(self, **options: Any) -> Any:
        return self.source.__dlpack__(**{k: v for k, v in options.items() if k != "dl_device"})


def first_image(args: Sequence[Any]) -> Image | None:
    """The first payload among a kernel's arguments, also inside a list."""
    for value in args:
        if isinstance(value, Image):
            return value
        if isinstance(value, (list, tuple)):
            found = first_image(value)
            if found is not None:
                return found
    return None


def unwrapped(value: Any, index: int) -> Any:
    """The reference's payload inside an argument. RuntimeError where it is memory of another device."""
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
