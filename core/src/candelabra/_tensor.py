"""The Tensor: a payload, its dispatch keys, its version and its graph node.

Functions and methods that compute are generated from the operators' records and attached as lazy attributes
(``candelabra._namespace.publishing``). This module defines the attributes that inspect a tensor, and those that change
its state (``requires_grad_``, ``backward``, ``data``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._autograd.api import backward
from candelabra._autograd.node import Leaf, Node
from candelabra._device import Instance, device, instance_of_key
from candelabra._dispatch.tracing import tracer_here
from candelabra._keys import (
    AUTOGRAD,
    DEFERRED,
    INFERENCE,
    INFERENCE_MODE,
    NO_OVERRIDE,
    OVERRIDE,
    UNCERTAIN,
    VIEW,
    active,
    state,
)
from candelabra._layout import (
    contiguous_format,
    contiguous_strides,
    is_contiguous_layout,
    physical_order,
    strided,
    wrap_dim,
)
from candelabra._layout import layout as layout_type
from candelabra._overrides import DisableTorchFunctionSubclass, bit_of, converted
from candelabra._size import Size
from candelabra._versions import cell_of_data, join_versions
from candelabra.dtypes import BY_BIT, DTYPE_MASK, dtype

if TYPE_CHECKING:
    from typing import ClassVar

    from candelabra._methods import OperatorMethods
    from candelabra._methods_nn import NnMethods

    class Methods(OperatorMethods, NnMethods):
        """The methods that are generated from records and public callables."""
else:
    Methods = object

new = object.__new__


class Tensor(Methods):
    """A multi-dimensional array on one device, with one dtype, that records its computation for derivatives.

    Create tensors with :func:`candelabra.tensor`, :func:`candelabra.zeros` and similar functions. Only views (bit
    ``VIEW`` of ``_keys``) have ``_base``, ``_parent``, ``_replay`` and ``_seen``.
    """

    __slots__ = (
        "_payload", "_keys", "_node", "_counter", "_base", "_parent", "_replay", "_seen", "_grad", "__dict__",
        "__weakref__",
    )  # fmt: skip
    _payload: Any
    _keys: int
    _node: Node | None
    _counter: list[int]
    """The count of in-place writes, in a list that views share."""
    _base: Tensor
    _parent: Tensor
    _replay: tuple[Any, tuple[Any, ...]] | None
    _seen: int
    _grad: Tensor | None
    _inplace_refused: str | None = None
    _is_param = False
    """Whether an instance of a subclass is a Parameter: ``Parameter(MyTensor(…))`` has the class MyTensor."""
    _constructed: ClassVar[Callable[..., Tensor]]
    """The function behind ``Tensor(*data)`` and the types of tensors, of ``(data, dtype=None, device=None)``. The
    namespace attaches it, as the methods that operators implement."""
    __array_priority__ = 1000  # NumPy's binary operators then defer to this class

    def __new__(cls, *data: Any) -> Tensor:
        made = Tensor._constructed(data)
        if cls is Tensor:
            return made
        out: Tensor = made.as_subclass(cls)
        return out

    def __init__(self, *_: Any, **__: Any) -> None:
        """Do nothing: ``__new__`` has initialised the tensor."""

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Handle a call of an operator with instances of a subclass: tensors in the result get the subclass.

        Subclasses override it, and usually call it by ``super()``.
        """
        if not all(issubclass(cls, other) for other in types):
            return NotImplemented
        with DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        return result if cls is Tensor else converted(result, Tensor, cls)

    # -- attributes ---------------------------------------------------------------------------------------------------
    @property
    def _version(self) -> int:
        """The number of in-place writes to the memory, which views share. As PyTorch's."""
        return self._counter[0]

    @property
    def shape(self) -> Size:
        """The sizes of all dims, a tuple."""
        return Size(self._payload.shape)

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of one dim."""
        if dim is None:
            return Size(self._payload.shape)
        shape = self._payload.shape
        if not shape:
            raise IndexError("Dimension specified as " + str(dim) + " but tensor has no dimensions")
        return shape[wrap_dim(dim, len(shape))]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._payload.shape)

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._payload.shape)

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        count = 1
        for size in self._payload.shape:
            count *= size
        return count

    nelement = numel

    @property
    def dtype(self) -> dtype:
        """The data type of the elements."""
        return BY_BIT[self._keys & DTYPE_MASK]

    @property
    def device(self) -> device:
        """The device of the elements. Inside a function transform it is the real device, not the level."""
        instance = instance_of_key(self._keys)
        if instance.depth:
            found: device = instance.backend.device_of(self._fresh()._payload)  # type: ignore[attr-defined]
            return found
        return instance.device

    @property
    def _instance(self) -> Instance:
        return instance_of_key(self._keys)

    def get_device(self) -> int:
        """Return the index of the device among those of its type; -1 if its name has no index, as on the host."""
        index = instance_of_key(self._keys).device.index
        return -1 if index is None else index

    @property
    def layout(self) -> layout_type:
        """The layout of the elements: ``candelabra.strided``, or ``sparse_coo`` for sparse tensors."""
        return strided

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    def element_size(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.numel() * self.dtype.itemsize

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        return self.dtype.is_signed

    # -- layout -------------------------------------------------------------------------------------------------------
    def _layout(self) -> tuple[tuple[int, ...], int]:
        instance = instance_of_key(self._keys)
        shape = self._payload.shape
        if self._keys & DEFERRED:
            deferred: tuple[tuple[int, ...], int] = self._payload.layout(self)
            return deferred
        if not instance.capabilities.strided:
            if instance.depth:
                found: tuple[tuple[int, ...], int] = instance.backend.layout(self._payload)
                return found
            return contiguous_strides(shape), 0
        return instance.backend.layout(self._payload)

    def stride(self, dim: int | None = None) -> Any:
        """Return the strides of all dims, or of one dim, in elements."""
        strides = self._layout()[0]
        if dim is None:
            return strides
        return strides[wrap_dim(dim, len(strides))]

    def storage_offset(self) -> int:
        """Return the offset of the first element in the storage, in elements."""
        return self._layout()[1]

    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        """Return whether the elements are contiguous in C order, or in the order of a channels-last format."""
        shape, strides = self._payload.shape, self._layout()[0]
        order = None if memory_format is contiguous_format else physical_order(len(shape), memory_format)
        if order is not None:
            shape, strides = [shape[d] for d in order], tuple([strides[d] for d in order])
        return is_contiguous_layout(shape, strides)

    # -- autograd -----------------------------------------------------------------------------------------------------
    def _fresh(self) -> Tensor:
        """Compute the tensor if it is deferred, refresh it if it is a stale view, and return it."""
        if self._keys & UNCERTAIN:
            if self._keys & DEFERRED:
                self._payload.settle(self)
            elif self._seen != self._counter[0]:
                from candelabra._autograd.views import refresh

                refresh(self)
        return self

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded. It can be set on leaves."""
        return self._fresh()._node is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set in place whether this leaf requires grad, and return it.

        Raises ``RuntimeError`` for integer dtypes, and if a non-leaf is set to False.
        """
        node = self._fresh()._node
        if requires_grad:
            if node is None:
                if not (self.dtype.is_floating_point or self.dtype.is_complex):
                    raise RuntimeError(
                        "only Tensors of floating point and complex dtype can require gradients, this one has "
                        f"{self.dtype}"
                    )
                if self._keys & INFERENCE and not state.bits & INFERENCE_MODE:
                    raise RuntimeError(
                        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
                    )
                self._node = Leaf(self)
                if active and (tracer := tracer_here()) is not None:
                    tracer.makes_leaf(self._node)
                self._keys |= AUTOGRAD
                self._grad = self.grad  # set now, so that accumulation need not check it
        elif node is not None:
            if not node.is_leaf:
                raise RuntimeError(
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
                    "in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
                )
            self._node = None
            self._keys &= ~AUTOGRAD
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether this tensor was created by the user and not by a recorded operator."""
        node = self._fresh()._node
        if active and (tracer := tracer_here()) is not None:
            tracer.observe(self, "is_leaf")
        return node is None or node.is_leaf

    @property
    def grad_fn(self) -> Node | None:
        """The node of the operator that computed this tensor; None for leaves."""
        node = self._fresh()._node
        if active and (tracer := tracer_here()) is not None:
            tracer.observe(self, "is_leaf")
        return None if node is None or node.is_leaf else node.e0 if node.is_port else node

    @property
    def output_nr(self) -> int:
        """The index of this tensor among the outputs of its node."""
        node = self._node
        return node.index if node is not None and node.is_port else 0  # type: ignore[attr-defined]

    @property
    def grad(self) -> Tensor | None:
        """The gradient that ``backward`` has accumulated, or None."""
        if active and (tracer := tracer_here()) is not None:
            tracer.observe(self, "grad")
        try:
            return self._grad
        except AttributeError:
            return None

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
                )
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if value.shape != self.shape:
                raise RuntimeError(
                    f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size "
                    f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the same size"
                )
            if value.dtype is not self.dtype:
                raise RuntimeError(
                    f"assigned grad has data of a different type: expected {self.dtype}, got {value.dtype}"
                )
            if value.device != self.device:
                raise RuntimeError(
                    f"assigned grad has data located on a different device: expected {self.device}, got {value.device}"
                )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Sequence[Tensor] | Tensor | None = None,
    ) -> None:
        """Accumulate the gradient of this tensor into the leaves that it depends on; see ``autograd.backward``."""
        backward(self, gradient, retain_graph, create_graph, None, inputs)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Call ``hook(grad)`` when the gradient of this tensor has been computed. It may return a replacement."""
        from candelabra._autograd.hooks import hooks_of

        node = self._fresh()._node
        if node is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        return hooks_of(node).add("tensor", hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        """Call ``hook(tensor)`` after a gradient has been accumulated into this leaf."""
        from candelabra._autograd.hooks import hooks_of

        node = self._node
        if node is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not node.is_leaf:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return hooks_of(node).add("post_accumulate", hook)

    def retain_grad(self) -> None:
        """Keep ``.grad`` of this non-leaf after ``backward``."""
        from candelabra._autograd.hooks import retain_gradient

        retain_gradient(self)

    @property
    def retains_grad(self) -> bool:
        node = self._node
        return node is not None and not node.is_leaf and node.hooks is not None and node.hooks.retain is not None

    def detach(self) -> Tensor:
        """Return a tensor with the same memory and version counter that does not require grad."""
        from candelabra._autograd.views import detached

        return detached(self)

    def detach_(self) -> Tensor:
        """Detach this tensor from its graph in place. Raise RuntimeError for a view."""
        from candelabra._autograd.views import detach_in_place

        return detach_in_place(self)

    @property
    def data(self) -> Tensor:
        """The same memory without history and with a separate version counter: autograd does not detect writes."""
        instance = instance_of_key(self._fresh()._keys)
        if instance.immutable or instance.depth:
            return self.detach()
        out = wrap(self._payload, self._keys & ~(AUTOGRAD | VIEW))
        out._counter = cell_of_data(self._counter)
        return out.as_subclass(type(self)) if self._keys & OVERRIDE and not state.bits & NO_OVERRIDE else out

    @data.setter
    def data(self, value: Tensor) -> None:
        from candelabra._autograd.views import set_data

        set_data(self, value)

    def is_inference(self) -> bool:
        """Return whether the tensor was created in inference mode."""
        return bool(self._keys & INFERENCE)

    def _is_view(self) -> bool:
        return bool(self._fresh()._keys & VIEW)

    # -- Python's data model ------------------------------------------------------------------------------------------
    def __len__(self) -> int:
        shape = self._payload.shape
        if not shape:
            raise TypeError("len() of a 0-d tensor")
        return int(shape[0])

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError(
                "Boolean value of Tensor with no values is ambiguous" if self.numel() == 0
                else "Boolean value of Tensor with more than one value is ambiguous"
            )  # fmt: skip
        return bool(self.item())

    def __iter__(self) -> Iterator[Tensor]:
        if not self._payload.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self) -> Tensor:
        """Return the tensor with its first dim in reverse order."""
        return self.flip(0) if self._payload.shape else self

    __hash__ = object.__hash__  # by identity, without a frame: optimizers look up the state of each parameter

    def __contains__(self, element: object) -> bool:
        if isinstance(element, (Tensor, int, float, complex)):
            return bool((self == element).any().item())
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")

    def __format__(self, spec: str) -> str:
        return self.item().__format__(spec) if self.ndim == 0 else object.__format__(self, spec)

    if not TYPE_CHECKING:  # for a type checker, an attribute that does not exist stays an error

        def __getattr__(self, name: str) -> Any:
            # The last lookup: `x.<device type>()`. Names with an underscore are slots that are not set.
            if name[0] != "_":
                from candelabra._device_attributes import tensor_attribute

                found = tensor_attribute(self, name)
                if found is not None:
                    return found
            return object.__getattribute__(self, name)  # raise the original error, also that of a property

    def __dir__(self) -> list[str]:
        return sorted(set(object.__dir__(self)))

    @staticmethod
    def _make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
        """Return a leaf over the memory of ``data`` as an instance of a subclass; programs call it in ``__new__``."""
        out = wrap(data._fresh()._payload, data._keys & ~(AUTOGRAD | VIEW)).as_subclass(cls)
        join_versions(out._counter, data._counter)
        return out.requires_grad_(require_grad)

    def as_subclass(self, cls: type) -> Any:
        """Return the same tensor (payload, version, node) as an instance of a subclass.

        For a leaf that requires grad, the result is a view of it, so that gradients arrive in the leaf.
        """
        if isinstance(self._fresh()._node, Leaf):
            with DisableTorchFunctionSubclass():
                return self.view_as(self).as_subclass(cls)
        out: Any = new(cls)
        for slot in ("_payload", "_keys", "_node", "_counter", "_base", "_parent", "_replay", "_seen"):
            if hasattr(self, slot):
                setattr(out, slot, getattr(self, slot))
        out._keys = (out._keys & ~OVERRIDE) | (bit_of(cls) if cls is not Tensor else 0)
        return out


def wrap(payload: Any, keys: int) -> Tensor:
    """Return a new plain tensor over a payload, without history and with version 0."""
    out = new(Tensor)
    out._payload = payload
    out._keys = keys & ~OVERRIDE
    out._node = None
    out._counter = [0]
    return out
