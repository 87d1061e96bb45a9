"""Levels: a function transform is a device whose payloads hold tensors of the level below.

While a transformed function runs, its level is active: it has a depth, 1 for the outermost, and one permanent device
instance per transform and depth, so that compiled adapters are reused. What belongs to one use of the level (the size
of a batch, the kind of randomness) is in its :class:`Frame`, to which every payload refers.

A call with tensors of several levels runs on the innermost one, which takes in the others as constants: ``adopt``. Its
kernels call operators on the tensors inside the payloads, under the mode bits that were active when the level was
entered (``candelabra._dispatch.levels``). So the graphs of outer levels continue, and levels compose in any order.

Attribution: functorch's stack of interpreters, and the ``Trace`` and ``MainTrace`` of JAX's autodidax.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from candelabra._annotations import TYPE_CHECKING, Any, NoReturn
from candelabra._device import Instance, instance_of_key, new_level
from candelabra._dispatch.levels import active_frames, bits_below, enter, leave, modes_below
from candelabra._keys import AUTOGRAD, VIEW, mode
from candelabra._records.registry import OPERATORS
from candelabra._tensor import Tensor, wrap
from candelabra.backend import Backend, Capabilities, DeviceInfo
from candelabra.dtypes import ALL, DTYPE_MASK

if TYPE_CHECKING:
    from candelabra._device import device
    from candelabra._records.record import Operator
    from candelabra.dtypes import dtype


class Payload:
    """What a tensor of a level holds: ``tensor``, of the level below, and the frame. Subclasses add to it."""

    __slots__ = ("frame", "shape", "tensor")
    frame: Any

    def __init__(self, tensor: Tensor, frame: Frame, shape: tuple[int, ...]) -> None:
        self.tensor = tensor
        self.frame = frame
        self.shape = shape


class Frame:
    """One use of a level, from its entry to its exit. Its payloads are valid only in between.

    As a context manager it is the innermost level of this thread. ``modes``: the mode bits that it sets.
    """

    modes = 0

    def __init__(self, transform: Transform) -> None:
        self.transform = transform
        self.alive = False
        self.like: Any = None
        """The first tensor that entered the level: new tensors are created on its device."""

    def __enter__(self) -> Any:
        self.instance = self.transform.at(len(active_frames()) + 1)
        self.entered = enter(self.instance, self, self.modes)
        self.alive = True
        return self

    def __exit__(self, *error: Any) -> None:
        self.alive = False
        leave(self.instance, self.entered)

    @property
    def depth(self) -> int:
        return self.instance.depth

    def wrap(self, payload: Payload) -> Tensor:
        """Return a tensor of this level, a constant for its graph."""
        return wrap(payload, self.instance.bit | payload.tensor._keys & DTYPE_MASK)

    def adopt(self, tensor: Tensor) -> Tensor:
        """Return a tensor of an outer level, or of a device, as a constant of this level.

        The two share the version counter, so that a write to one is noticed in the graph of the other.
        """
        if instance_of_key(tensor._keys).depth:
            tensor = without_ended_levels(tensor)
            if tensor._instance.depth >= self.instance.depth:
                self.transform.refuse(tensor, self)
        out = wrap(self.transform.adopted(self, tensor), self.instance.bit | tensor._keys & DTYPE_MASK)
        out._counter = tensor._counter
        return out


def frame_at(depth: int) -> Any:
    """Return the frame of this thread's level at a depth, for kernels that get no payload."""
    stack = active_frames()
    if depth > len(stack):
        raise RuntimeError(
            f"a tensor of a function transform (level {depth}) was used in another thread, or after its block"
        )
    return stack[depth - 1]


class Kernels(dict[str, Any]):
    """``{operator: kernel}`` of a transform: one that is set, or created on demand.

    Dispatch keeps a kernel until a rule is declared.
    """

    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self.transform = transform

    def get(self, name: str, default: Any = None) -> Any:
        found = dict.get(self, name)
        if found is None and name in OPERATORS:
            found = self.transform.kernel_of(OPERATORS[name])
        elif found is None and name[-1] == "_" and name[:-1] in OPERATORS:
            found = self.transform.inplace_kernel_of(OPERATORS[name[:-1]])
        return default if found is None else found

    def __contains__(self, name: object) -> bool:
        return self.get(str(name)) is not None


class Transform(Backend):
    """A function transform as a device type: kernels over payloads that hold tensors of the level below.

    A subclass has a ``name`` and defines :meth:`kernel_of`, :meth:`adopted` and :meth:`copy_`. Its payloads are
    instances of a subclass of :class:`Payload`.
    """

    api = ((1, 1), (1, 1))
    capabilities = Capabilities(frozenset(ALL), frozenset(ALL), strided=False, virtual=True)

    transparent = False
    """Whether tensors may be used after the block of their level: they then act as the tensors inside them."""

    def __init__(self) -> None:
        self._instances: list[Instance] = []
        self._table: Mapping[str, Any] | None = None
        self._lock = threading.Lock()

    def at(self, depth: int) -> Instance:
        """Return the permanent device instance at a depth."""
        while len(self._instances) < depth:
            with self._lock:
                if self._table is None:
                    self._table = self.kernels()
                if len(self._instances) < depth:
                    self._instances.append(new_level(self, len(self._instances) + 1, self._table))
        return self._instances[depth - 1]

    # -- what a transform defines -------------------------------------------------------------------------------------
    def kernel_of(self, op: Operator[..., Any]) -> Callable[..., Any] | None:
        """Return the kernel of an operator, or None if its body is to serve it. Called once per operator.

        A kernel takes payloads, lists of payloads, and plain arguments, by position and in canonical form, and returns
        a payload, or a tuple of payloads. It calls operators on the tensors inside, under the modes of the level below.
        For the argument ``device`` of a factory it gets the depth of its level; see :meth:`instance_at`.
        """
        return None

    def inplace_kernel_of(self, op: Operator[..., Any]) -> Callable[..., Any] | None:
        """Return the kernel of an operator that writes its result to the first payload, and returns that.

        None: the result is computed in new memory, and :meth:`copy_` writes it.
        """
        return None

    def adopted(self, frame: Any, tensor: Tensor) -> Payload:
        """Return the payload of a constant: a tensor of an outer level, or of a device."""
        return Payload(tensor, frame, tuple(tensor._payload.shape))

    def writable(self, frame: Any, target: Tensor) -> Tensor:
        """Return a tensor of this level through which an in-place operator writes to one of an outer level."""
        return frame.adopt(target)  # type: ignore[no-any-return]

    # -- the rest of a device -----------------------------------------------------------------------------------------
    def kernels(self) -> Kernels:
        return Kernels(self)

    def instance_at(self, depth: int) -> Instance:
        """Return the instance of the level below that of a depth, or the device, on which factories create tensors."""
        found: Instance = frame_at(depth).like._instance
        return found

    def devices(self) -> Sequence[DeviceInfo]:
        return [DeviceInfo("a function transform")]

    def frame_of(self, tensor: Tensor) -> Any:
        """Return the frame of a tensor of this transform. Raise RuntimeError if its block has ended."""
        frame = tensor._fresh()._payload.frame
        if not frame.alive and not self.transparent:
            outlived(frame)
        return frame

    def refuse(self, tensor: Tensor, frame: Any) -> NoReturn:
        """Raise the error for a tensor of a level that is not outside ``frame``."""
        other = tensor._fresh()._payload.frame
        if not other.alive:
            outlived(other)
        raise RuntimeError(
            f"a tensor of {other.transform.name} (level {other.depth}) was used in a function that "
            f"{frame.transform.name} transforms in another thread"
        )

    def device_of(self, payload: Payload) -> device:
        """Return the device of the elements, which ``x.device`` names."""
        return payload.tensor.device

    def instance_below(self, instance: Instance) -> Instance:
        """Return the instance of the level below, or the device, of the first tensor that entered the level."""
        return self.instance_at(instance.depth)

    def layout(self, payload: Payload) -> tuple[tuple[int, ...], int]:
        """Return strides and offset of the tensor of the level below."""
        return payload.tensor._fresh()._layout()

    def dtype_of(self, payload: Payload) -> dtype:
        return payload.tensor.dtype

    def empty(self, index: int, shape: tuple[int, ...], dtype: dtype) -> Payload:
        """Return a constant without content: ``new_empty`` of the first tensor that entered the level."""
        frame = frame_at(index)
        with below(frame.instance):
            return self.adopted(frame, frame.like.new_empty(shape, dtype=dtype))

    def from_host(self, index: int, data: memoryview, shape: tuple[int, ...], dtype: dtype) -> Payload:
        """Return a constant with the given elements, on the device of the first tensor that entered the level."""
        from candelabra._interchange.host import tensor_from_bytes

        frame = frame_at(index)
        return self.adopted(frame, tensor_from_bytes(bytes(data), dtype.name, shape, str(frame.like.device)))

    def to_host(self, payload: Payload) -> memoryview:
        """Return the elements of the tensor of the level below."""
        from candelabra._interchange.host import host_view

        return host_view(payload.tensor)

    def describe(self, tensor: Tensor) -> str:
        """Return the text of ``repr(tensor)``."""
        payload = tensor._payload
        inner = repr(payload.tensor).replace("\n", "\n    ")
        return f"{type(payload).__name__}(lvl={payload.frame.depth}, value=\n    {inner}\n)"


def below(instance: Instance) -> Any:
    """Return a context manager: the mode bits of the level below that of ``instance``."""
    bits = bits_below(instance.bit)
    return mode(include=bits, exclude=~bits)


def modes_of_level(depth: int, include: int = 0, exclude: int = 0) -> Any:
    """Return a context manager that sets and clears mode bits of one of this thread's levels, 0 for the devices."""
    stack = active_frames()
    if depth >= len(stack):
        return mode(include, exclude)
    return modes_below(stack[depth].instance.bit, include, exclude)


def outlived(frame: Frame) -> NoReturn:
    """Raise the error for a tensor that is used after the block of its level."""
    name = frame.transform.name
    raise RuntimeError(
        f"a tensor of {name} was used after the function that {name} transforms had returned. Return it from the "
        f"function instead of storing it elsewhere"
    )


def without_ended_levels(tensor: Tensor) -> Tensor:
    """Return the tensor inside the payloads of transparent levels whose blocks have ended, or the tensor itself."""
    while True:
        instance = instance_of_key(tensor._keys)
        if not instance.depth or not instance.backend.transparent or tensor._fresh()._payload.frame.alive:  # type: ignore[attr-defined]
            return tensor
        tensor = tensor._payload.tensor


def levelled(tensor: Tensor) -> Tensor:
    """Return a tensor without its node: a constant for the graph of its own level. Graphs of outer levels go on."""
    if tensor._fresh()._node is None and not tensor._keys & VIEW:
        return tensor
    out = wrap(tensor._payload, tensor._keys & ~(AUTOGRAD | VIEW))
    out._counter = tensor._counter
    return out
