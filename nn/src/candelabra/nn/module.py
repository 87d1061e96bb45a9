"""The module: a callable that owns parameters, buffers and other modules, and finds them by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

from candelabra.autograd.modes import no_grad
from candelabra.dtypes import bfloat16, dtype, float16, float32, float64
from candelabra.nn import hooks, state
from candelabra.nn.hooks import Hook, RemovableHandle
from candelabra.nn.parameter import Buffer, Parameter
from candelabra.tensor import Tensor

__all__ = ["Module"]

_HOOKS = (
    "_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks", "_state_dict_pre_hooks",
    "_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip


class Module:
    """The base of all neural network modules, as ``torch.nn.Module``.

    Assigning a :class:`Parameter`, a :class:`Buffer` or a Module to an attribute registers it. Subclasses call
    ``super().__init__()`` first and define :meth:`forward`.
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Module | None]

    def __init__(self) -> None:
        members = self.__dict__
        members["training"] = True
        members["_parameters"] = {}
        members["_buffers"] = {}
        members["_non_persistent_buffers_set"] = set()
        members["_modules"] = {}
        for name in _HOOKS:
            members[name] = {}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; subclasses define it, callers call the module."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (self._forward_pre_hooks or self._forward_hooks or self._backward_hooks or self._backward_pre_hooks):
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def __setstate__(self, members: dict[str, Any]) -> None:
        self.__dict__.update(members)
        for name in _HOOKS:
            self.__dict__.setdefault(name, {})

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
            members["_modules"][name] = value
        elif name in members.get("_modules", ()):
            if value is not None:
                raise TypeError(_cannot_assign(value, f"child module '{name}'", "candelabra.nn.Module"))
            members["_modules"][name] = None
        elif isinstance(value, Buffer):
            self._check_ready("buffer")
            self._forget(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif name in members.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(_cannot_assign(value, f"buffer '{name}'", "candelabra.Tensor"))
            members["_buffers"][name] = value
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

    def _check_ready(self, what: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")

    def _forget(self, name: str, but: str) -> None:
        """Take the name away from whatever it named before."""
        members = self.__dict__
        members.pop(name, None)
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind != but:
                members[kind].pop(name, None)
        members["_non_persistent_buffers_set"].discard(name)

    def _check_name(self, what: str, name: Any, kind: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {_typename(name)}")
        if "." in name:
            raise KeyError(
                f'{what} name can\'t contain ".", got: {name}'
                if what == "module"
                else f'{what} name can\'t contain "."'
            )
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if hasattr(self, name) and name not in self.__dict__[kind]:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under a name; None reserves the name for one that the module has not."""
        self._check_ready("parameter")
        self._check_name("parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_typename(param)}' object to parameter '{name}' "
                "(candelabra.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that belongs to the module's state and is not trained; in ``state_dict`` if ``persistent``."""
        self._check_ready("buffer")
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' (candelabra.Tensor or None required)"
            )
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child module under a name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._check_ready("module")
        self._check_name("module", name, "_modules")
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """Another name of :meth:`add_module`."""
        self.add_module(name, module)

    # -- looking for members ------------------------------------------------------------------------------------------
    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path such as ``"net.0"``; the empty path is this module."""
        found: Module = self
        for name in target.split(".") if target else ():
            if not hasattr(found, name):
                raise AttributeError(f"{type(found).__name__} has no attribute `{name}`")
            child = getattr(found, name)
            if not isinstance(child, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
            found = child
        return found

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        owner, name = self._owner_of(target)
        found = getattr(owner, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        owner, name = self._owner_of(target)
        found = owner._buffers.get(name)
        if found is None:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    def _owner_of(self, target: str) -> tuple[Module, str]:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        return owner, name

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, each with its dotted path; each object once unless told otherwise."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules right below this one, each once, with their names."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules right below this one."""
        return (module for _, module in self.named_children())

    def _named_members(self, kind: str, prefix: str, recurse: bool, once: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        found = self.named_modules(prefix=prefix, remove_duplicate=once) if recurse else [(prefix, self)]
        for path, module in found:
            for name, member in module.__dict__[kind].items():
                if member is None or id(member) in seen:
                    continue
                if once:
                    seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their dotted paths; each object once unless told otherwise."""
        return self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, for an optimiser."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their dotted paths; each object once unless told otherwise."""
        return self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    # -- modes, devices and dtypes ------------------------------------------------------------------------------------
    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call ``fn`` with every module below this one, then with this one; to initialise, for instance."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode, which Dropout and its like depend on, here and below."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Set evaluation mode, here and below."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Say whether the parameters are trained, in place."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for parameter in self.parameters():
            state.forget_gradient(parameter, set_to_none)

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Replace the memory of every parameter, gradient and buffer by what ``fn`` makes of it.

        The tensor objects stay, so optimisers that hold parameters keep holding the right ones.
        """
        for module in self.modules() if recurse else (self,):
            for tensor in (*module._parameters.values(), *module._buffers.values()):
                if tensor is None:
                    continue
                with no_grad():
                    _replace_data(tensor, fn)
                    if tensor.grad is not None:
                        gradient = tensor.grad
                        _replace_data(gradient, fn)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device, cast floating parameters and buffers to a dtype, or do both as a tensor has it.

        ``to(device=None, dtype=None, non_blocking=False)``, ``to(dtype)``, ``to(tensor)``. In place. Raises
        ``TypeError`` for integer dtypes.
        """
        device, wanted = state.parse_to(args, kwargs)
        if wanted is not None and not (wanted.is_floating_point or wanted.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={wanted}"
            )

        def convert(tensor: Any) -> Any:
            floating = tensor.is_floating_point() or tensor.is_complex()
            return tensor.to(device=device, dtype=wanted if floating else None)

        return self._apply(convert)

    def _cast(self, wanted: dtype) -> Self:
        return self._apply(lambda t: t.to(wanted) if t.is_floating_point() else t)

    def float(self) -> Self:
        """Cast floating parameters and buffers to float32."""
        return self._cast(float32)

    def double(self) -> Self:
        """Cast floating parameters and buffers to float64."""
        return self._cast(float64)

    def half(self) -> Self:
        """Cast floating parameters and buffers to float16."""
        return self._cast(float16)

    def bfloat16(self) -> Self:
        """Cast floating parameters and buffers to bfloat16."""
        return self._cast(bfloat16)

    def type(self, dst_type: dtype) -> Self:
        """Cast all parameters and buffers, whatever they are."""
        return self._apply(lambda t: t.to(dst_type))

    def cpu(self) -> Self:
        """Move to the host's device."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move to a CUDA device, where such a backend is installed."""
        return self._apply(lambda t: t.cuda() if device is None else t.cuda(device))

    # -- state --------------------------------------------------------------------------------------------------------
    def get_extra_state(self) -> Any:
        """What else belongs into ``state_dict``; subclasses that have something define it and set_extra_state."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. Define it with "
            "set_extra_state()."
        )

    def set_extra_state(self, state: Any) -> None:
        """Take back what :meth:`get_extra_state` gave."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. Define it with "
            "get_extra_state()."
        )

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """Parameters and persistent buffers by dotted path: the tensors themselves, detached unless ``keep_vars``."""
        found = {} if destination is None else destination
        return state.collect(self, found, prefix, keep_vars)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        state.save_own(self, destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> state.IncompatibleKeys:
        """Copy parameters and buffers from what :meth:`state_dict` gave; nothing is copied when anything is wrong.

        ``strict``: keys that are missing or unexpected are an error. ``assign``: take the tensors themselves instead of
        copying their values. Returns the missing and the unexpected keys. Raises ``RuntimeError`` that lists
        everything that does not fit, ``TypeError`` for what is no mapping.
        """
        return state.load(self, state_dict, strict, assign)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own tensors; subclasses override it to read older files."""
        state.load_own(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    # -- hooks --------------------------------------------------------------------------------------------------------
    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before ``forward``; it may return other arguments. ``with_kwargs``:
        ``hook(module, args, kwargs)``, which returns None or both."""
        return hooks.add(self._forward_pre_hooks, Hook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after ``forward``; it may return another output. ``with_kwargs``:
        ``hook(module, args, kwargs, output)``. ``always_call``: also when ``forward`` raised."""
        return hooks.add(self._forward_hooks, Hook(hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the module's backward pass; it may return another grad_output."""
        return hooks.add(self._backward_pre_hooks, Hook(hook), prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` after the module's backward pass; it may return another
        grad_input. Gradients are those of positional arguments."""
        return hooks.add(self._backward_hooks, Hook(hook), prepend)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict`` collects."""
        return hooks.add(self._state_dict_pre_hooks, Hook(hook))

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict`` has collected; in place."""
        return hooks.add(self._state_dict_hooks, Hook(hook))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``
        before this module's tensors are loaded."""
        return hooks.add(self._load_state_dict_pre_hooks, Hook(hook))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may change the lists of keys."""
        return hooks.add(self._load_state_dict_post_hooks, Hook(hook))

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        called: set[int] = set()
        try:
            args, kwargs = self._run_pre_hooks(args, kwargs)
            watch = None
            if self._backward_hooks or self._backward_pre_hooks:
                before, after = list(self._backward_pre_hooks.values()), list(self._backward_hooks.values())
                watch = hooks.BackwardHooks(self, before, after)
                args = watch.watch_inputs(args)
            result = self.forward(*args, **kwargs)
            for number, hook in list(self._forward_hooks.items()):
                called.add(number)
                result = _run_forward_hook(hook, self, args, kwargs, result)
            return result if watch is None else watch.watch_outputs(result)
        except Exception:
            for number, hook in list(self._forward_hooks.items()):
                if hook.always_call and number not in called:
                    _run_forward_hook(hook, self, args, kwargs, None)
            raise

    def _run_pre_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        for hook in list(self._forward_pre_hooks.values()):
            if not hook.with_kwargs:
                new = hook.function(self, args)
                if new is not None:
                    args = new if isinstance(new, tuple) else (new,)
                continue
            new = hook.function(self, args, kwargs)
            if new is None:
                continue
            if not (isinstance(new, tuple) and len(new) == 2):
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {new}."
                )
            args, kwargs = new
        return args, kwargs

    # -- showing ------------------------------------------------------------------------------------------------------
    def extra_repr(self) -> str:
        """What stands between the parentheses when the module is printed."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        first = extra.split("\n") if extra else []
        below = [f"({name}): " + _indented(repr(module)) for name, module in self._modules.items()]
        if not below and len(first) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(first + below) + "\n)"


def _run_forward_hook(hook: Hook, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    more = (args, kwargs) if hook.with_kwargs else (args,)
    new = hook.function(module, *more, result)
    return result if new is None else new


def _replace_data(tensor: Tensor, fn: Callable[[Any], Any]) -> None:
    made = fn(tensor.data)
    if made._payload is not tensor._payload or made._keys != tensor.data._keys:
        tensor.data = made


def _typename(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _cannot_assign(value: object, to: str, expected: str) -> str:
    return f"cannot assign '{_typename(value)}' as {to} ({expected} or None expected)"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
