"""The module: a callable that owns parameters, buffers and other modules under names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Self, TypeVar, cast

from candelabra import Tensor
from candelabra.nn.modules import _global_hooks
from candelabra.nn.modules._conversion import Convertible
from candelabra.nn.modules._global_hooks import *  # noqa: F403 - its __all__ is the list
from candelabra.nn.modules._hooks import EVERYWHERE, KINDS, Hooked, Hooks
from candelabra.nn.modules._state import IncompatibleKeys, Stateful
from candelabra.nn.parameter import Buffer, Parameter

__all__ = ["Module", *_global_hooks.__all__]


_IncompatibleKeys = IncompatibleKeys
hooks_everywhere: Final = EVERYWHERE.at_calls


class Module(Hooked, Stateful, Convertible):
    """The base of all neural network modules, as ``torch.nn.Module``.

    The base classes are its subjects: :class:`Traversable` (members), :class:`Convertible` (devices, dtypes),
    :class:`Stateful` (``state_dict``) and :class:`Hooked`. This class has construction, attributes and printing.
    Assigning a :class:`Parameter`, a :class:`Buffer` or a Module to an attribute registers it. Subclasses call
    ``super().__init__()`` first and define :meth:`forward`.
    """

    T_destination = TypeVar("T_destination", bound=dict[str, Any])
    call_super_init = False
    """Whether ``Module.__init__`` passes its arguments on to the next base of a class with several bases."""
    dump_patches = False
    training: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        members = self.__dict__
        members["training"] = True
        members["_parameters"] = {}
        members["_buffers"] = {}
        members["_non_persistent_buffers_set"] = set()
        members["_modules"] = {}
        members["_is_full_backward_hook"] = None
        for name in KINDS:
            members[name] = OrderedDict()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output. Subclasses define this method; users call the module itself."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    _compiled_call: Any = None
    """The compiled form of a call, or None."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (
            self._forward_pre_hooks or self._forward_hooks or self._backward_hooks or self._backward_pre_hooks
            or hooks_everywhere or self._compiled_call is not None
        ):  # fmt: skip
            if self._compiled_call is not None:
                return self._compiled_call(*args, **kwargs)
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def _call_eagerly(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module without its compiled form."""
        return self._call_with_hooks(args, kwargs)

    _call_impl = __call__

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile this module in place, with the options of :func:`candelabra.compile`."""
        from candelabra.compiler import compile as compiled

        self.__dict__["_compiled_call"] = compiled(self._call_eagerly, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, members: dict[str, Any]) -> None:
        self.__dict__.update(members)
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)
        for name in KINDS:
            self.__dict__.setdefault(name, OrderedDict())

    def _replicate_for_data_parallel(self) -> Self:
        """Return a shallow copy whose tables of members are its own, without parameters."""
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica.__dict__["_parameters"] = {}
        replica.__dict__["_buffers"] = self._buffers.copy()
        replica.__dict__["_modules"] = self._modules.copy()
        replica.__dict__["_is_replica"] = True
        return replica

    # -- attributes ---------------------------------------------------------------------------------------------------
    def __getattr__(self, name: str) -> Any:
        for kind in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(kind)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        members = self.__dict__
        if isinstance(value, Parameter):
            self._check_ready("parameters")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif name in members.get("_parameters", ()):
            if value is not None:
                raise TypeError(_cannot_assign(value, f"parameter '{name}'", "candelabra.nn.Parameter"))
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            self._check_ready("module")
            self._forget(name, "_modules")
            members["_modules"][name] = _registered(EVERYWHERE.module_registration, self, name, value)
        elif name in members.get("_modules", ()):
            if value is not None:
                raise TypeError(_cannot_assign(value, f"child module '{name}'", "candelabra.nn.Module"))
            members["_modules"][name] = _registered(EVERYWHERE.module_registration, self, name, None)
        elif isinstance(value, Buffer):
            self._check_ready("buffer")
            self._forget(name, "_buffers")
            self._set_buffer(name, value, value.persistent)
        elif name in members.get("_buffers", ()):
            if value is not None and not _is_tensor_like(value):
                raise TypeError(_cannot_assign(value, f"buffer '{name}'", "candelabra.nn.Buffer, candelabra.Tensor"))
            self._set_buffer(name, value, name not in self._non_persistent_buffers_set)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(kind, ()):
                del self.__dict__[kind][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        own = [*object.__dir__(self), *self._parameters, *self._buffers, *self._modules]
        return sorted({name for name in own if not name[:1].isdigit()})

    def _set_buffer(self, name: str, value: Tensor | None, persistent: bool) -> None:
        """Call register_buffer(), which a subclass may define without ``persistent``."""
        if type(self).register_buffer is Module.register_buffer or _takes_persistent(self.register_buffer):
            self.register_buffer(name, value, persistent)
        elif persistent:
            self.register_buffer(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without "
                "the persistent argument is not allowed."
            )

    def _check_ready(self, target: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {target} before Module.__init__() call")

    def _forget(self, name: str, but: str) -> None:
        """Remove the member that has this name."""
        members = self.__dict__
        members.pop(name, None)
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind != but:
                members[kind].pop(name, None)
        members["_non_persistent_buffers_set"].discard(name)

    def _check_name(self, kind: str, name: Any, table: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(
                f'{kind} name can\'t contain ".", got: {name}'
                if kind == "module"
                else f'{kind} name can\'t contain "."'
            )
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in self.__dict__[table]:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under a name; None reserves the name."""
        self._check_ready("parameter")
        self._check_name("parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' "
                "(candelabra.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        if param is not None:
            param = _registered(EVERYWHERE.parameter_registration, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor of the module's state that is not trained; ``state_dict`` contains it if ``persistent``."""
        self._check_ready("buffer")
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not _is_tensor_like(tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (candelabra.Tensor or None required)"
            )
        self._buffers[name] = _registered(EVERYWHERE.buffer_registration, self, name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child module under a name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_ready("module")
        self._check_name("module", name, "_modules")
        self._modules[name] = _registered(EVERYWHERE.module_registration, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Another name of :meth:`add_module`."""
        self.add_module(name, module)

    # -- showing ------------------------------------------------------------------------------------------------------
    def extra_repr(self) -> str:
        """Return the text between the parentheses when the module is printed."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        first = extra.split("\n") if extra else []
        below = [f"({name}): " + _addindent(repr(module), 2) for name, module in self._modules.items()]
        if not below and len(first) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(first + below) + "\n)"


def _registered(hooks: Hooks, module: Module, name: str, value: Any) -> Any:
    """Return the value to register, which global hooks may replace."""
    for hook in hooks.values():
        new = hook(module, name, value)
        if new is not None:
            value = new
    return value


def _takes_persistent(register: Callable[..., None]) -> bool:
    from inspect import signature  # late: it takes as long to import as ten of these modules

    return "persistent" in signature(register).parameters


def _is_tensor_like(value: object) -> bool:
    return isinstance(value, Tensor) or hasattr(value, "__torch_function__")


def typename(value: object) -> str:
    """Return the name of a value's type with its module; for a tensor that of its dtype's class."""
    if isinstance(value, Tensor):
        return str(cast("Any", value).type())
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _cannot_assign(value: object, to: str, expected: str) -> str:
    return f"cannot assign '{typename(value)}' as {to} ({expected} or None expected)"


def _addindent(s_: str, numSpaces: int) -> str:
    """Return a text with all lines but the first indented. Programs import it from here, as from PyTorch."""
    return s_.replace("\n", "\n" + " " * numSpaces)


def __dir__() -> list[str]:
    return sorted(__all__)
