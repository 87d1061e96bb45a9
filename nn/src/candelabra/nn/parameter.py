"""Tensors that a module owns: parameters, which are trained, and buffers, which are not."""

from __future__ import annotations

from functools import cache
from typing import Any

from candelabra import Tensor
from candelabra.library import AUTOGRAD, VIEW, Layer, Operator, disabled_torch_function, join_versions, wrap

__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin", "is_lazy",
]  # fmt: skip


def _owned(cls: type, data: Tensor) -> Any:
    """Return a tensor over the memory of ``data`` without history, which is not a view of any base."""
    out = wrap(data._fresh()._payload, data._keys & ~(AUTOGRAD | VIEW)).as_subclass(cls)
    join_versions(out._counter, data._counter)
    return out


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


# -- tensors whose shape is not known yet -----------------------------------------------------------------------------
def _refused(name: str, cls: type) -> ValueError:
    return ValueError(
        f"Attempted to use an uninitialized parameter in {name}. This error happens when you are using a `LazyModule` "
        f"or explicitly manipulating `candelabra.nn.parameter.{cls.__name__}` objects. When using LazyModules Call "
        "`forward` with a dummy batch to initialize the parameters before calling candelabra functions"
    )


def _refuse(op: Operator[..., Any], _: Any, *args: Any) -> Any:
    """Refuse every operator. It is the handler of :func:`_guard`."""
    flat = [value for argument in args for value in (argument if isinstance(argument, (list, tuple)) else (argument,))]
    raise _refused(op.name, next(type(value) for value in flat if is_lazy(value)))


@cache
def _guard() -> Layer:
    """Return the layer whose bit every uninitialized tensor has, so that dispatch itself refuses them."""
    return Layer("uninitialized parameters", _refuse)


def _uninitialized(cls: type, requires_grad: bool, device: Any, dtype: Any) -> Any:
    from candelabra import empty

    out = _owned(cls, empty(0, device=device, dtype=dtype))
    out._keys |= _guard().bit
    out.requires_grad_(requires_grad)
    return out


def _refused_method(name: str) -> Any:
    def method(self: Any, *_: Any, **__: Any) -> Any:
        raise _refused(f"Tensor.{name}", type(self))

    method.__name__ = name
    return method


def _converted_method(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.data, name)(*args, **kwargs)

    method.__name__ = name
    return method


class UninitializedTensorMixin(Tensor):
    """What the tensors without a shape have in common: they can be moved, cast and materialized, and nothing else."""

    __slots__ = ()
    cls_to_become: type[Tensor] = Tensor

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary tensor of this shape with arbitrary values, by default with the same device and dtype."""
        from candelabra import empty

        here = self.data
        made = empty(shape, device=device or here.device, dtype=dtype or here.dtype)
        self.__class__ = self.cls_to_become  # type: ignore[assignment]
        self.data = made

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    @property
    def data(self) -> Tensor:
        """An empty tensor of the device and the dtype."""
        return wrap(self._payload, self._keys & ~(AUTOGRAD | VIEW | _guard().bit))

    @data.setter
    def data(self, value: Tensor) -> None:
        Tensor.data.__set__(self, value)  # type: ignore[attr-defined]
        self._keys |= _guard().bit

    def copy_(self, other: Any, non_blocking: bool = False) -> Any:
        """Do nothing for another uninitialized tensor. Any other has a shape that does not fit."""
        if not is_lazy(other):
            raise _refused("Tensor.copy_", type(self))
        return self

    def cpu(self, *args: Any, **kwargs: Any) -> Any:
        """Return an empty tensor on the host's device."""
        here: Any = self.data
        return here.cpu(*args, **kwargs)

    def cuda(self, *args: Any, **kwargs: Any) -> Any:
        """Return an empty tensor on a CUDA device."""
        here: Any = self.data
        return here.cuda(*args, **kwargs)

    to, half, float, double, bfloat16 = map(_converted_method, ("to", "half", "float", "double", "bfloat16"))
    char, short, int, long = map(_converted_method, ("char", "short", "int", "long"))
    dim, ndimension, numel, nelement, stride, detach, __len__, __iter__, item, tolist, numpy = map(
        _refused_method,
        (
            "dim", "ndimension", "numel", "nelement", "stride", "detach", "__len__", "__iter__", "item", "tolist",
            "numpy",
        ),
    )  # fmt: skip

    def share_memory_(self) -> Any:
        """Raise ``RuntimeError``."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad,)

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        here = self.data
        made = type(self)(self.requires_grad, here.device, here.dtype)
        memo[id(self)] = made
        return made


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; see :class:`candelabra.nn.modules.lazy.LazyModuleMixin`.

    It has a device and a dtype, and can be moved, cast and materialized. Everything else raises ``ValueError`` that
    names the operator, or ``RuntimeError`` for the shape.
    """

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        out: UninitializedParameter = _uninitialized(cls, requires_grad, device, dtype)
        return out

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        """Do nothing: ``__new__`` has initialized the tensor."""


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet; see :class:`UninitializedParameter`. It becomes a Tensor."""

    __slots__ = ()

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        out: UninitializedBuffer = _uninitialized(cls, requires_grad, device, dtype)
        out.persistent = persistent
        return out

    def __init__(
        self, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> None:
        """Do nothing: ``__new__`` has initialized the tensor."""


def is_lazy(param: Any) -> bool:
    """Return whether this is a parameter or a buffer whose shape is not known yet."""
    return isinstance(param, UninitializedTensorMixin)


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
