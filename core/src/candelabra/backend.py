"""The backend contract, which a vendor implements.

A backend is a subclass of :class:`Backend` with a few methods and a table of kernels. It is registered in the entry
point group ``candelabra.backends``. The entry's name is the device type, and its value is an object (module or
instance) with the hook ``candelabra_backend() -> Backend``. The core does not change for a new backend. Another
distribution may contribute kernels to the device type: its object in the group ``candelabra.kernels`` has the hook
``candelabra_kernels(device_type, kernels, every_size)``.

Core and backend exchange the backend's own arrays, which are called *payloads* here, and never a Tensor. The core only
requires that a payload has ``.shape``, a tuple of ints.

A kernel can rely on the following: its tensor arguments have one dtype (indices are int64, masks bool), dims are
canonical (non-negative ints, tuples), and the category of a Python scalar is not above that of the dtype (never a float
with an int tensor). A kernel must return a payload of the dtype in the operator's record, also without dims. It must
raise an exception of any type if the shapes do not match; the core then raises a descriptive error. It must not modify
its inputs, unless its name ends in ``_``: such a kernel writes its result into the memory of the first argument. Only
the kernel of a *view* may return an argument or share memory with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._dispatch.declining import decline as decline
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
from candelabra._records.registry import OPERATORS
from candelabra._records.registry import outline as outline
from candelabra._serving import of_dtype as of_dtype
from candelabra._switches import follow_num_threads as follow_num_threads
from candelabra.dtypes import dtype

if TYPE_CHECKING:
    from candelabra._graph.structure import Graph

API_VERSION = (1, 1)
"""The version of this contract. A new major version breaks backends, a new minor version only adds to the contract. 1.1
added capabilities per device (:meth:`Backend.capabilities_of`), kernels that decline a call, typed facts, and the
evaluation of lazy payloads (:meth:`Backend.evaluate`), compiled graphs (:meth:`Backend.compile`), and payloads in the
host's memory (:meth:`Backend.map_host`)."""

Payload = Any
"""A backend's own array. The core reads only its ``.shape``."""

Kernel = Callable[..., Any]

Fact = str | bool | int | float | tuple[int, ...]
"""A fact about a device."""


def declared(kernels: Mapping[str, Kernel]) -> dict[str, Kernel]:
    """Return the kernels whose operator is installed, for a backend that also serves operators of other distributions.

    (The core refuses a kernel for an unknown operator when it loads the backend, since that is usually a typing error.)
    """
    return {name: kernel for name, kernel in kernels.items() if operator_of(name) in OPERATORS}


def operator_of(kernel: str) -> str:
    """Return the operator that a kernel's name means: the name without the ``_`` of kernels that write in place."""
    return kernel if kernel in OPERATORS else kernel.removesuffix("_")


@dataclass(frozen=True)
class DeviceInfo:
    """One device of a backend: its descriptive name, and facts about it.

    ``candelabra devices`` shows the facts, and the result of ``get_device_properties`` has them as attributes. Keys are
    identifiers. Sizes of memory are ints in bytes, and their keys end in ``memory``.
    """

    name: str
    facts: Mapping[str, Fact] = field(default_factory=dict)

    @property
    def texts(self) -> dict[str, str]:
        """Return the facts as text: sizes of memory in GiB, versions with dots, booleans as yes and no."""
        return {key: _text(key, fact) for key, fact in self.facts.items()}

    @property
    def line(self) -> str:
        """Return name and facts in one line, for ``candelabra devices``."""
        return ", ".join([self.name, *(f"{key.replace('_', ' ')} {text}" for key, text in self.texts.items())])


def _text(key: str, fact: Fact) -> str:
    if key.endswith("memory") and isinstance(fact, int):
        return f"{fact / 2**30:.1f} GiB"
    if isinstance(fact, tuple):
        return ".".join(map(str, fact))
    return ("no", "yes")[fact] if isinstance(fact, bool) else str(fact)


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of a backend's devices.

    ``storage`` and ``arithmetic`` are the dtypes that it can store and compute in. ``strided``: the backend implements
    ``layout`` and ``restride``, so the core creates every view. ``mutable``: payloads can be written in place;
    otherwise an in-place operator replaces the tensor's payload. ``asynchronous``: kernels return before they have
    finished. ``host``: the memory is the host's, so the device can be the reference device, to which others fall back.
    ``nondeterministic``: the operators whose results may differ between runs. ``dlpack``: the DLPack device type (its
    id is the device's index), or None. ``virtual``: payloads contain tensors of other devices and kernels call
    operators on them; such kernels run under the modes (``no_grad`` …) of the level below, and never fall back.
    ``data``: the payloads have elements that can be read. ``subnormals``: numbers below the smallest normal one are
    computed with; otherwise the device takes and returns zeros for them.
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
    subnormals: bool = True


class HostMapping(ABC):
    """The content of a payload in the host's memory, for those who move bytes there. Nothing else uses the payload
    meanwhile. A mapping that is dropped without :meth:`unmap` may or may not have written the memory's content.
    """

    @abstractmethod
    def wait(self) -> memoryview:
        """Return the memory as bytes, once the content is there. Any thread may call it."""

    @abstractmethod
    def unmap(self) -> None:
        """End the mapping. Work that is submitted later finds what was written, if the mapping was made to write."""


class Backend(ABC):
    """A device type. ``index`` below counts that type's devices from 0."""

    name: str
    """The device type, as in ``device("name:0")``. It must be equal to the name of the entry point."""
    api: tuple[tuple[int, int], tuple[int, int]] = ((1, 0), (1, 0))
    """The first and the last :data:`API_VERSION` that the backend was built for."""
    capabilities: Capabilities

    # -- required -----------------------------------------------------------------------------------------------------
    @abstractmethod
    def devices(self) -> Sequence[DeviceInfo]:
        """Return the devices, without opening more than necessary. Raise ``DeviceUnavailable(reason)`` if none exists.

        The hook ``candelabra_backend`` and :meth:`kernels` may raise it too, for example if a library is missing.
        """

    @abstractmethod
    def kernels(self) -> Mapping[str, Kernel]:
        """Return ``{operator name: function of payloads}``. Called once. A name that ends in ``_`` is an in-place
        kernel.

        A kernel may have an attribute ``for_dtype``, a function of a dtype. It is called when a call is resolved, and
        the function that it returns serves all calls in that dtype, so that decisions that depend on the dtype are made
        once. It returns None to decline the dtype. If it has not imported what it needs to know that, it may return a
        function that declines all calls; ``settle``, also a function of a dtype, is called before an explanation names
        the kernel, and finds it out.

        The function for pointwise calls may have an attribute ``into``, called with a payload before the arguments. It
        writes the result there for ``out=``, and declines a payload of another shape than the result's. It may fail
        only before it writes, and reads operands that share memory with the payload first.

        The function may also have an attribute ``packing``, by which compiled functions copy an operand into the
        kernel's layout once for several calls, see :class:`candelabra.graph.Packing`.

        A kernel returns ``NotImplemented`` to decline one call; it must not have changed anything. The operator's body
        serves a declined call or dtype, or the fallback if the operator has no body. ``return decline(error)`` is the
        same, and keeps the error for the suite's reports: use it wherever a kernel catches exceptions.
        """

    @abstractmethod
    def empty(self, index: int, shape: tuple[int, ...], dtype: dtype) -> Payload:
        """Return a payload with unspecified content. Raise ``OutOfMemoryError`` if the device has not enough memory."""

    @abstractmethod
    def from_host(self, index: int, data: memoryview, shape: tuple[int, ...], dtype: dtype) -> Payload:
        """Return a new payload with a copy of ``data``, bytes in C order and native endianness.

        Work that is queued later sees the copy, on any stream of the device.
        """

    @abstractmethod
    def to_host(self, payload: Payload) -> memoryview:
        """Return the content as bytes in C order, after synchronisation."""

    @abstractmethod
    def dtype_of(self, payload: Payload) -> dtype:
        """Return the dtype of a payload."""

    @abstractmethod
    def copy_(self, destination: Payload, source: Payload) -> Payload:
        """Copy ``source`` (same dtype and shape) to ``destination``, which may overlap it, and return the latter."""

    # -- optional -----------------------------------------------------------------------------------------------------
    def capabilities_of(self, index: int) -> Capabilities:
        """Return the capabilities of one device, by default :attr:`capabilities`. Override it if the devices differ.

        Dispatch then refuses a dtype that the device lacks, before the device's compiler would.
        """
        return self.capabilities

    def transfer(self, payload: Payload, source: int, destination: int) -> Payload:
        """Copy between two devices of this type, by default through the host."""
        return self.from_host(destination, self.to_host(payload), tuple(payload.shape), self.dtype_of(payload))

    def layout(self, payload: Payload) -> tuple[tuple[int, ...], int]:
        """Return (strides, offset from the start of the storage) in elements. Required if ``strided``."""
        raise NotImplementedError(f"backend {self.name!r} has no layout(), which strided=True requires")

    def restride(self, payload: Payload, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Payload:
        """Return a view of the same storage, independent of the payload's own strides and offset."""
        raise NotImplementedError(f"backend {self.name!r} has no restride(), which strided=True requires")

    def synchronize(self, index: int) -> None:
        """Wait for all submitted work of the device, and raise its errors."""

    def evaluate(self, payloads: Sequence[Payload]) -> None:
        """Compute payloads of one device. A lazy backend, which records work until a payload is read, overrides this.

        The core calls it with the gradients at the end of each backward pass, and with the payloads that replaced those
        of tensors written in place since the last call, so that a loop that reads nothing does not record without end.
        It need not wait for the results.
        """

    def compile(self, graph: Graph) -> Callable[..., tuple[Payload, ...]] | None:
        """Return a function that runs a graph of this device, or None, by default, to let the core run it.

        The function takes the payloads of ``graph.inputs`` (Python numbers for inputs that are numbers), in order, and
        returns the tuple of the payloads of ``graph.outputs``. What nodes write in place it writes in place. The core
        calls :meth:`compile` once for each graph that ``candelabra.compile`` traces, and keeps the function. A device
        that fuses some nodes replaces them by groups and leaves the rest to the core::

            def compile(self, graph):
                return runner(fuse(graph, admits), kernel_of)

        See :mod:`candelabra.graph`.
        """
        return None

    def stream(self, index: int) -> Any:
        """Return a new stream: a context manager with ``synchronize()`` and ``record()``."""
        raise NotImplementedError(f"backend {self.name!r} has no streams: its devices run one call after another")

    def current_stream(self, index: int) -> Any:
        """Return the stream to which the calling thread submits its work."""
        raise NotImplementedError(f"backend {self.name!r} does not report its current stream")

    def memory(self, index: int, release: bool = False) -> Mapping[str, int]:
        """Return ``allocated``, ``reserved``, ``peak`` … in bytes, as far as the backend counts them.

        With ``release``, release unused pooled memory first.
        """
        return {}

    def reset_peak(self, index: int) -> bool:
        """Let ``peak`` in :meth:`memory` be what is allocated now. Return whether it is, by default False: the backend
        does not count a peak, or counts it since the start of the process.
        """
        return False

    def map_host(self, payload: Payload, index: int, read: bool, write: bool) -> HostMapping | None:
        """Return a payload's content in the host's memory, or None, by default, if only copies are possible.

        ``read``: the memory has the content as of the work that has been submitted to the current stream, in C order.
        ``write``: the payload gets the memory's content at the end; return None if arrays never change. It is the
        payload's own memory, or page-locked memory of the driver: a collective over the host copies less, and in
        parallel with the device's work. Several payloads are mapped at a time, and work may use other parts of a
        payload's memory meanwhile.
        """
        return None

    def to_dlpack(self, payload: Payload, index: int, **options: Any) -> Any:
        """Return a DLPack capsule over the payload's memory. The options are those of ``__dlpack__``."""
        raise BufferError(f"device {self.name!r} does not export DLPack")

    def from_dlpack(self, source: Any, index: int, copy: bool | None) -> Payload | None:
        """Return a payload over the memory of an object with ``__dlpack__``, or None if its device type is another."""
        return None


__all__ = [
    "API_VERSION", "Backend", "broadcast_shapes", "Capabilities", "Fact", "contiguous_strides", "declared", "decline",
    "DeviceInfo", "extent", "follow_num_threads", "hookimpl", "HostMapping", "indexed_geometry",
    "is_contiguous_layout", "Kernel", "of_dtype", "operator_of", "outline", "Payload", "reduced_shape",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
