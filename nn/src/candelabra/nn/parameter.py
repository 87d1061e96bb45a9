"""Tensors that a module owns: parameters, which are trained, and buffers, which are not."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor
from candelabra.library import AUTOGRAD, VIEW, disabled_torch_function, wrap

__all__ = ["Buffer", "Parameter"]


def _owned(cls: type, data: Tensor) -> Any:
    """Return a tensor over the memory of ``data`` without history, which is not a view of any base."""
    return wrap(data._fresh()._payload, data._keys & ~(AUTOGRAD | VIEW)).as_subclass(cls)


def _as_data(cls: type, data: Any) -> Tensor:
    if data is None:
        from candelabra import empty

        return empty(0)
    if not isinstance(data, Tensor):
        raise TypeError(
            f"{cls.__name__}() expects a Tensor or None, got {type(data).__name__}: make one with "
            "candelabra.tensor(...)"
        )
    return data


class _ParameterType(type):
    """The class of Parameter: parameters of a Tensor subclass are instances of both."""

    def __instancecheck__(cls, instance: object) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and instance._is_param


class Parameter(Tensor, metaclass=_ParameterType):
    """A tensor that becomes a parameter of the module that it is assigned to.

    Shares memory with ``data``; results of operations on it are plain Tensors. ``data``: default an empty tensor;
    ``requires_grad``: whether it is trained. Raises ``TypeError`` for anything but a Tensor, and ``RuntimeError`` for
    ``requires_grad`` with a dtype that cannot have a gradient. For an instance of a subclass of Tensor, the result is
    one too, and its operations give what those of the subclass give.
    """

    __slots__ = ()
    __torch_function__ = disabled_torch_function

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        given = _as_data(cls, data)
        if getattr(type(given), "__torch_function__", None) not in (disabled_torch_function, _plain):
            made: Parameter = _of_subclass(given, requires_grad)
            return made
        out: Parameter = _owned(cls, given)
        out.requires_grad_(requires_grad)
        return out

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        """Do nothing: ``__new__`` has initialized the tensor."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        made = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.data, self.requires_grad)

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that becomes a buffer of the module that it is assigned to: part of its state, but not trained.

    ``persistent``: whether the module's ``state_dict`` contains it.
    """

    __slots__ = ()
    __torch_function__ = disabled_torch_function
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        out: Buffer = _owned(cls, _as_data(cls, data))
        out.persistent = persistent
        return out

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        """Do nothing: ``__new__`` has initialized the tensor."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        made = type(self)(self.data.clone(), persistent=self.persistent)
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _buffer, (self.data, self.persistent)


_plain = Tensor.__torch_function__


def _of_subclass(data: Any, requires_grad: bool) -> Any:
    made = data.detach()
    if type(made) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
            f"instance of the same type, but return type {type(made).__name__} was found instead. To use the type as a "
            "Parameter, correct what its __torch_function__() returns for detach()."
        )
    made.requires_grad_(requires_grad)
    made._is_param = True
    return made


def _buffer(data: Tensor, persistent: bool) -> Buffer:
    return Buffer(data, persistent=persistent)


def unset(enabled: bool, *size: Any, device: Any, dtype: Any) -> Parameter | None:
    """Return an uninitialized parameter, or None for a layer without it."""
    if not enabled:
        return None
    from candelabra import empty

    return Parameter(empty(*size, device=device, dtype=dtype))


def forget_gradient(tensor: Any, set_to_none: bool) -> None:
    """Remove the gradient, or fill it with zeros and detach it."""
    gradient = tensor.grad
    if gradient is None:
        return
    if set_to_none:
        tensor.grad = None
        return
    if gradient.grad_fn is not None:
        gradient.detach_()
    else:
        gradient.requires_grad_(False)
    gradient.zero_()


def __dir__() -> list[str]:
    return sorted(__all__)
