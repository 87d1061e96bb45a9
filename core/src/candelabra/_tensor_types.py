"""PyTorch's tensor types: ``FloatTensor``, ``LongTensor``, ``<device type>.FloatTensor`` and the others.

A type is a dtype and a kind of device. It constructs tensors as ``Tensor(...)`` does, serves as a type hint and in
``isinstance``, and converts: ``x.type(candelabra.LongTensor)``. The types without a device in their name are those of
the host's memory. Programs from before PyTorch 0.4 use them; new programs use dtypes.
"""

from __future__ import annotations

import warnings
from functools import cache

from candelabra._annotations import Any, Final
from candelabra._device import device, get_default_device, set_default_device
from candelabra._plugins import registry
from candelabra._tensor import Tensor
from candelabra.dtypes import ALL, COMPLEX, dtype, set_default_dtype

DTYPES: Final[dict[str, dtype]] = {
    f"{d.title}Tensor": d for d in ALL if d.category < COMPLEX and not d.title.startswith("UInt")
}
"""The dtypes that have a tensor type, by its name."""


class TensorType(type):
    """The class of the types. ``device_type`` is None for the types of the host's memory."""

    dtype: dtype
    device_type: str | None

    def __call__(cls, *data: Any, device: Any = None) -> Tensor:
        """Return an uninitialized tensor for sizes, a tensor of the values for a sequence or array, and the same tensor
        for a tensor of this type.

        Raises ``TypeError`` for a tensor of another type.
        """
        if data and isinstance(data[0], Tensor) and not isinstance(data[0], cls):
            raise TypeError(f"{cls.__qualname__}(): expected a tensor of this type, got {data[0].type()}; use .type()")
        return Tensor._constructed(data, cls.dtype, cls.location() if device is None else device)

    def location(cls) -> device:
        """Return the device of new tensors: the current one of the type's kind, or the host's."""
        return registry.reference_device() if cls.device_type is None else device(cls.device_type)

    def holds(cls, tensor: Tensor) -> bool:
        """Return whether a tensor, of any dtype, is on a device of the type's kind."""
        if cls.device_type is None:
            return tensor._instance.capabilities.host
        return tensor.device.type == cls.device_type

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor) and value.dtype is cls.dtype and cls.holds(value)

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


@cache
def tensor_type(name: str, device_type: str | None = None) -> TensorType:
    """Return a type, such as ``FloatTensor``, one object per name and device type. Raise KeyError for other names."""
    module = "candelabra" if device_type is None else f"candelabra.{device_type}"
    made = TensorType(name, (), {"__module__": module, "__doc__": f"Tensors of {DTYPES[name]}; see Tensor.type()."})
    made.dtype, made.device_type = DTYPES[name], device_type
    return made


def type_name(tensor: Tensor) -> str:
    """Return the name of a tensor's type: ``"candelabra.FloatTensor"``."""
    prefix = "" if tensor._instance.capabilities.host else f"{tensor.device.type}."
    return f"candelabra.{prefix}{tensor.dtype.title}Tensor"


def type_named(text: str) -> TensorType:
    """Return the type of a name: ``"candelabra.FloatTensor"``, or with PyTorch's package in front.

    Raises ``ValueError`` for any other string.
    """
    *package, name = text.split(".")
    places = package[1:] if package[:1] in (["candelabra"], ["torch"]) else package
    if name not in DTYPES or len(places) > 1:
        raise ValueError(f"invalid type: {text!r}")
    return tensor_type(name, places[0] if places else None)


def set_default_tensor_type(t: TensorType | str) -> None:
    """Set the default dtype and the default device by a type of tensors. Deprecated, as in PyTorch: use
    :func:`set_default_dtype` and :func:`set_default_device`.

    Raises ``TypeError`` if ``t`` is not a floating-point type.
    """
    warnings.warn(
        "candelabra.set_default_tensor_type() is deprecated: use set_default_dtype() and set_default_device()",
        UserWarning,
        stacklevel=2,
    )
    try:
        chosen: Any = type_named(t) if isinstance(t, str) else t
    except ValueError:
        chosen = t
    if not isinstance(chosen, TensorType) or not chosen.dtype.is_floating_point:
        raise TypeError(f"invalid type {t!r}: only floating-point types are supported as the default type")
    host = chosen.device_type is None or chosen.device_type == registry.reference_device().type
    if not host or get_default_device() != registry.reference_device():
        set_default_device(None if host else chosen.device_type)
    set_default_dtype(chosen.dtype)


class _VariableType(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor)

    def __call__(cls, data: Any = None, requires_grad: bool = False, volatile: bool | None = None) -> Tensor:
        """Return a tensor over the memory of ``data`` and without its history."""
        if volatile is not None:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with candelabra.no_grad():` instead.",
                UserWarning,
                stacklevel=2,
            )
        if data is None:
            return Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        out = data.detach()
        return out.requires_grad_() if requires_grad else out


class Variable(metaclass=_VariableType):
    """PyTorch's name of a tensor from before 0.4: ``Variable(x)`` is a tensor over the memory of ``x``."""


def __getattr__(name: str) -> TensorType:
    if name not in DTYPES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return tensor_type(name)
