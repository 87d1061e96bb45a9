"""The backend contract: the page that a vendor reads.

A backend is a subclass of :class:`Backend` with a few methods and a table of kernels. It is published under the entry
point group ``candelabra.backends``; the entry's name is the device type and its value an object (module or instance)
with the hook ``candelabra_backend() -> Backend``. Nothing in the core changes for it.

What passes between core and backend is the backend's own array, called *payload* here, never a Tensor. A payload has
``.shape``, a tuple of ints; everything else about it is the backend's business.

What a kernel may rely on: one dtype among its tensor arguments (indices are int64, masks bool), canonical dims
(non-negative ints, tuples), Python scalars that the dtype can represent in kind (never a float beside an int tensor).
What it owes: a payload of the dtype that the operator's record says, even with no dimensions; an exception when shapes
do not fit (any exception: the core then works out the words); no change to its inputs, except where the name ends in
``_``: such a kernel writes its result into the first argument's memory. It may return an argument or share memory only
where the record says *view*.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from candelabra._annotations import Any
from candelabra._geometry import extent as extent
from candelabra._geometry import indexed_geometry as indexed_geometry
from candelabra._layout import (
    broadcast_shapes as broadcast_shapes,
)
from candelabra._layout import (
    contiguous_strides as contiguous_strides,
)
from candelabra._layout import (
    is_contiguous_layout as is_contiguous_layout,
)
from candelabra._layout import (
    reduced_shape as reduced_shape,
)
from candelabra._plugins.hooks import hookimpl as hookimpl
from candelabra._records.record import OPERATORS
from candelabra.dtypes import dtype

API_VERSION = (1, 1)
"""Of the contract on this page: a major step breaks backends, a minor step only adds. 1.1 added capabilities of each
device
(:meth:`Backend.capabilities_of`), kernels that decline a call, and typed facts about devices."""

Payload = Any
"""A backend's own array. The core asks it for ``.shape`` and nothing else."""

Kernel = Callable[..., Any]

Fact = str | bool | int | float | tuple[int, ...]
"""A fact about a device."""


def declared(kernels: Mapping[str, Kernel]) -> dict[str, Kernel]:
    """Those of the kernels whose operator is installed, for a backend that serves more than every installation has.

    (A name that no operator has is refused when the backend is loaded: it is nearly always a typing error.)
    """
    return {name: k for name, k in kernels.items() if name in OPERATORS or name.removesuffix("_") in OPERATORS}


@dataclass(frozen=True)
class DeviceInfo:
    """One device that a backend offers: its name for people, and facts about it.

    Facts are shown by ``candelabra devices`` and are attributes of what ``get_device_properties`` returns. Keys are
    identifiers; sizes of memory are ints in bytes, and their keys end in ``memory``.
    """

    name: str
    facts: Mapping[str, Fact] = field(default_factory=dict)


@dataclass(frozen=True)
class Capabilities:
    """What a backend's devices can do.

    ``storage`` and ``arithmetic`` are the dtypes that it can hold and compute in. ``strided``: the backend implements
    ``layout`` and ``restride``, so the core makes every view itself. ``mutable``: payloads can be written in place;
    without it an in-place operator rebinds the tensor's payload. ``asynchronous``: kernels return before they are
    done. ``host``: the memory is the host's, so the device may serve as the reference that others fall back to.
    ``nondeterministic`` names operators whose result may differ from run to run. ``dlpack`` is the DLPack device type
    (its id is the device's index), None without. ``virtual``: payloads hold tensors of other devices and kernels call
    operators on them; such kernels run under the modes (``no_grad`` …) of the level below, and nothing falls back.
    ``data``: the payloads have elements that can be read.
    """

    storage: frozenset[dtype]
    arithmetic: frozenset[dtype]
    strided: bool = True
    mutable: bool = True
    asynchronous: bool = False
    host: bool = False
    nondeterministic: frozenset[str] = frozenset()
    dlpack: int | None = None
    virtual: bool = False
    data: bool = True


class Backend(ABC):
    """A device type. ``index`` below counts that type's devices from 0."""

    name: str
    """The device type, as in ``device("name:0")``; equals the entry point's name."""
    api: tuple[tuple[int, int], tuple[int, int]] = ((1, 0), (1, 0))
    """The first and the last :data:`API_VERSION` that the backend was built for."""
    capabilities: Capabilities

    # -- required -----------------------------------------------------------------------------------------------------
    @abstractmethod
    def devices(self) -> Sequence[DeviceInfo]:
        """The devices, found without opening more than needed. None: raise ``DeviceUnavailable(reason)``."""

    @abstractmethod
    def kernels(self) -> Mapping[str, Kernel]:
        """``{operator name: function on payloads}``. Asked for once; a name with ``_`` at its end is in-place.

        A kernel may have an attribute ``for_dtype``: it is called with a dtype when a call is resolved, and the
        function that it returns serves the calls in that dtype. What depends on the dtype is then decided once. None
        declines the dtype.

        A kernel that returns ``NotImplemented`` declines this one call, having changed nothing. The operator's body
        serves a call or dtype that was declined, or the fallback where it has none.
        """

    @abstractmethod
    def empty(self, index: int, shape: tuple[int, ...], dtype: dtype) -> Payload:
        """A payload of unspecified content. Raises ``OutOfMemoryError`` when the device has no room."""

    @abstractmethod
    def from_host(self, index: int, data: memoryview, shape: tuple[int, ...], dtype: dtype) -> Payload:
        """A new payload holding ``data``: bytes in C order, native endianness. ``data`` may change after the call."""

    @abstractmethod
    def to_host(self, payload: Payload) -> memoryview:
        """The content as bytes in C order, synchronised."""

    @abstractmethod
    def dtype_of(self, payload: Payload) -> dtype:
        """The dtype of a payload."""

    @abstractmethod
    def copy_(self, destination: Payload, source: Payload) -> Payload:
        """Write ``source`` (same dtype, same shape) into ``destination``, which may overlap it, and return it."""

    # -- optional -----------------------------------------------------------------------------------------------------
    def capabilities_of(self, index: int) -> Capabilities:
        """What one device can do, where the type's devices differ: by default what :attr:`capabilities` says of all.

        A dtype that the device lacks is then refused when a call is dispatched, and not by its compiler.
        """
        return self.capabilities

    def transfer(self, payload: Payload, source: int, destination: int) -> Payload:
        """Copy between two devices of this type. By default through the host."""
        return self.from_host(destination, self.to_host(payload), tuple(payload.shape), self.dtype_of(payload))

    def layout(self, payload: Payload) -> tuple[tuple[int, ...], int]:
        """(strides, offset) in elements, the offset counted from the start of the storage. With ``strided`` only."""
        raise NotImplementedError(f"backend {self.name!r} has no layout(), which strided=True takes")

    def restride(self, payload: Payload, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Payload:
        """A view of the same storage, absolute: the payload's own strides and offset don't count."""
        raise NotImplementedError(f"backend {self.name!r} has no restride(), which strided=True takes")

    def synchronize(self, index: int) -> None:
        """Wait until all work given to the device is done; raise what went wrong in it."""

    def stream(self, index: int) -> Any:
        """A new stream: an object with ``synchronize()``, ``record()`` and use as a context manager."""
        raise NotImplementedError(f"backend {self.name!r} has no streams: its devices run one call after another")

    def current_stream(self, index: int) -> Any:
        """The stream that the calling thread's work goes to."""
        raise NotImplementedError(f"backend {self.name!r} does not tell its current stream")

    def memory(self, index: int, release: bool = False) -> Mapping[str, int]:
        """``allocated``, ``reserved``, ``peak`` … in bytes, as far as the backend counts them.

        With ``release``, unused pooled memory is given back first.
        """
        return {}

    def to_dlpack(self, payload: Payload, index: int, **options: Any) -> Any:
        """A DLPack capsule over the payload's memory. Options are those of ``__dlpack__``."""
        raise BufferError(f"device {self.name!r} does not export DLPack")

    def from_dlpack(self, source: Any, index: int, copy: bool | None) -> Payload | None:
        """A payload over the memory of an object with ``__dlpack__``; None where that device type is not ours."""
        return None


__all__ = [
    "API_VERSION", "Backend", "broadcast_shapes", "Capabilities", "Fact", "contiguous_strides", "declared",
    "DeviceInfo", "extent", "hookimpl", "indexed_geometry", "is_contiguous_layout", "Kernel", "Payload",
    "reduced_shape",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
