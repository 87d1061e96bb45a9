"""The base of optimizers: groups of parameters with options, state per parameter, and the dictionary of both."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import wraps
from itertools import chain
from typing import Any, Final, TypeAlias

from candelabra import Tensor, enable_grad, no_grad
from candelabra.library import RemovableHandle, add_hook, is_compiling, outside_graph
from candelabra.optim._internal_names import _capturable_doc as _capturable_doc
from candelabra.optim._internal_names import _default_to_fused_or_foreach as _default_to_fused_or_foreach
from candelabra.optim._internal_names import _differentiable_doc as _differentiable_doc
from candelabra.optim._internal_names import _foreach_doc as _foreach_doc
from candelabra.optim._internal_names import _fused_doc as _fused_doc
from candelabra.optim._internal_names import _get_scalar_dtype as _get_scalar_dtype
from candelabra.optim._internal_names import _get_value as _get_value
from candelabra.optim._internal_names import _maximize_doc as _maximize_doc
from candelabra.optim._internal_names import _params_doc as _params_doc
from candelabra.optim._internal_names import _stack_if_compiling as _stack_if_compiling
from candelabra.optim._internal_names import _to_scalar as _to_scalar
from candelabra.optim._internal_names import _use_grad_for_differentiable as _use_grad_for_differentiable
from candelabra.optim._internal_names import _view_as_real as _view_as_real

__all__ = [
    "Optimizer", "ParamsT", "StateDict", "check_fused", "check_one_element", "check_options", "check_rate",
    "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required",
]  # fmt: skip


class _Required:
    """The type of the marker for an option without a default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required: Final = _Required()
Closure = Callable[[], Any]
ParamsT: TypeAlias = Iterable[Any]
"""The first argument of an optimizer: tensors, groups of them as dicts, or (name, tensor) pairs."""
StateDict: TypeAlias = dict[str, Any]

_pre_hooks_of_all: dict[int, Callable[..., Any]] = {}
_post_hooks_of_all: dict[int, Callable[..., Any]] = {}


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer."""
    return add_hook(_pre_hooks_of_all, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer."""
    return add_hook(_post_hooks_of_all, hook)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``step`` with the hooks around it. A step that is called by another, by super(), runs without them.

    Compiled functions record its kernels with learning rates and counts as inputs, or else call it as Python.
    """

    @wraps(step)
    def run(*args: Any, **kwargs: Any) -> Any:
        optimizer = args[0]
        if optimizer._is_stepping:
            return step(*args, **kwargs)
        optimizer._is_stepping = True
        hooked = optimizer.has_hooks()
        try:
            for hook in [*_pre_hooks_of_all.values(), *optimizer._hooks_of("step_pre")] if hooked else ():
                replaced = hook(optimizer, args, kwargs)
                if replaced is not None:
                    if not isinstance(replaced, tuple) or len(replaced) != 2:
                        raise RuntimeError(
                            f"a hook of {type(optimizer).__name__}.step must return None or a tuple of (new_args, "
                            f"new_kwargs), but got {replaced}."
                        )
                    args, kwargs = replaced
            result = step(*args, **kwargs)
            for hook in [*optimizer._hooks_of("step_post"), *_post_hooks_of_all.values()] if hooked else ():
                hook(optimizer, args, kwargs)
        finally:
            optimizer._is_stepping = False
        if optimizer._opt_called is False:
            optimizer._opt_called = True
        return result

    return outside_graph(run, _record_step if step.__qualname__ == "Optimizer.step" else None)


def _record_step(recorder: Any, optimizer: Any, *args: Any, **kwargs: Any) -> bool:
    from candelabra.optim.recorded import record_step

    return record_step(recorder, optimizer, *args, **kwargs)


class Optimizer:
    """The base of all optimizers. ``params``: tensors, dicts with "params" and options of their own, or (name, tensor)
    pairs; ``defaults``: the options of groups that do not give them.

    A subclass defines ``step(closure=None)``, as in PyTorch, or :meth:`update`, which is called once per group, without
    recording. ``state[parameter]`` is a dict, which is made at its first use. Raises ``TypeError`` and ``ValueError``
    with PyTorch's messages for parameters that cannot be optimized.
    """

    OptimizerPreHook: TypeAlias = Callable[..., Any]
    OptimizerPostHook: TypeAlias = Callable[..., Any]

    defaults: dict[str, Any]
    state: defaultdict[Any, dict[str, Any]]
    param_groups: list[dict[str, Any]]

    _opaque_to_compile = True

    # Of the class, so that optimizers which wrap another one and do not call __init__ have them, too.
    _is_stepping = False
    _opt_called: bool | None = None
    """For the schedulers' warning: None without schedulers, or whether there was a step since the first one."""

    profile_hook_step = staticmethod(_with_hooks)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in vars(cls):
            cls.step = _with_hooks(vars(cls)["step"])  # type: ignore[method-assign]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{type(params).__name__}"
            )
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over attributes. Subclasses add options that states of older versions lack."""
        self.__dict__.update(state)

    # -- groups -------------------------------------------------------------------------------------------------------
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with its own options, for instance those of layers that are no longer frozen.

        The dict itself becomes the group, as in PyTorch, and gets the defaults that it lacks.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        names, parameters = _named(param_group["params"])
        for parameter in parameters:
            _check_parameter(parameter, self.defaults.get("differentiable", False))
        present = {id(parameter) for other in self.param_groups for parameter in other["params"]}
        if any(id(parameter) in present for parameter in parameters):
            raise ValueError("some parameters appear in more than one parameter group")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
        if self.param_groups and ("param_names" in self.param_groups[0]) != (names is not None):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'without' if names is None else 'with'} names to the optimizer"
            )
        if len({id(parameter) for parameter in parameters}) != len(parameters):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; each is updated once per occurrence",
                stacklevel=3,
            )
        param_group["params"] = parameters
        if names is not None:
            param_group["param_names"] = names
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients of all parameters, or set them to zero."""
        from candelabra.nn.parameter import forget_gradient

        directly = set_to_none and not is_compiling()
        for group in self.param_groups:
            for parameter in group["params"]:
                if directly:
                    parameter._grad = (
                        None  # not the property, which is a frame for each parameter, and which traces see
                    )
                else:
                    forget_gradient(parameter, set_to_none)

    # -- a step -------------------------------------------------------------------------------------------------------
    @_with_hooks
    def step(self, closure: Closure | None = None) -> Any:
        """Update every parameter that has a gradient. ``closure`` computes the loss, which is returned.

        With the option ``differentiable``, the step is recorded for autograd.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        recorded = bool(self.defaults.get("differentiable"))
        with enable_grad() if recorded else no_grad():
            if recorded:
                self._detach_history()
            for group in self.param_groups:
                self.update(group, [p for p in group["params"] if getattr(p, "_grad", None) is not None])
        return loss

    def update(self, group: dict[str, Any], parameters: list[Any]) -> None:
        """Update the parameters of one group, all of which have gradients. Subclasses define it, or :meth:`step`."""
        raise NotImplementedError(f"{type(self).__name__} must define update() or step()")

    def _detach_history(self) -> None:
        """Replace state by copies, so that a recorded step does not overwrite what the graph of the last one saved."""
        for kept in self.state.values():
            kept.update((name, value.clone()) for name, value in kept.items() if isinstance(value, Tensor))

    # -- hooks --------------------------------------------------------------------------------------------------------
    def has_hooks(self) -> bool:
        """Return whether hooks run before or after a step, or with its state."""
        return bool(_pre_hooks_of_all or _post_hooks_of_all or "_hooks" in self.__dict__)

    def _hooks_of(self, kind: str) -> list[Callable[..., Any]]:
        """Return the hooks in the order of their calls: the prepended ones, the last of them first, then the others."""
        registered = self.__dict__.get("_hooks")
        if not registered:
            return []
        return [*reversed(registered.get((kind, True), {}).values()), *registered.get((kind, False), {}).values()]

    def _add_hook(self, kind: str, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        hooks: dict[tuple[str, bool], dict[int, Callable[..., Any]]] = self.__dict__.setdefault("_hooks", {})
        return add_hook(hooks.setdefault((kind, prepend), {}), hook)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step. ``args`` begins with the optimizer.

        The hook may return ``(args, kwargs)`` to replace them. Anything else but None is a ``RuntimeError``.
        """
        return self._add_hook("step_pre", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return self._add_hook("step_post", hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before ``state_dict``."""
        return self._add_hook("state_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after ``state_dict``; it may return another."""
        return self._add_hook("state_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading; it may return another."""
        return self._add_hook("load_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading."""
        return self._add_hook("load_post", hook, prepend)

    # -- state --------------------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Return ``{"state": …, "param_groups": …}`` with parameters as numbers, for :meth:`load_state_dict`.

        The tensors are those of the state. Of one that several parameters share, such as the number of their steps,
        each but the first has a copy: PyTorch's optimizers, which may load them, count in place.
        """
        for hook in self._hooks_of("state_pre"):
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {name: value for name, value in group.items() if name != "params"}
            for parameter in group["params"]:
                numbers.setdefault(id(parameter), len(numbers))
            packed["params"] = [numbers[id(parameter)] for parameter in group["params"]]
            groups.append(packed)
        seen: set[int] = set()
        state = {
            numbers[id(key)] if isinstance(key, Tensor) else key: _unshared(kept, seen)
            for key, kept in self.state.items()
        }
        found = {"state": state, "param_groups": groups}
        for hook in self._hooks_of("state_post"):
            found = hook(self, found) or found
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the options and the state of an optimizer whose groups have the same sizes.

        State moves to the device of its parameter, and floating state to its dtype. Raises ``ValueError``, without
        changing anything, if the groups do not match.
        """
        loaded: Any = dict(state_dict)
        for hook in self._hooks_of("load_pre"):
            loaded = hook(self, loaded) or loaded
        saved, groups = loaded["param_groups"], self.param_groups
        if len(saved) != len(groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(saved, groups)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        # JSON turns the numbers that are keys into strings.
        by_number = {str(number): values for number, values in loaded["state"].items()}
        pairs = zip(chain.from_iterable(g["params"] for g in saved), chain.from_iterable(g["params"] for g in groups))
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for number, parameter in pairs:
            if str(number) in by_number:
                state[parameter] = _fitted(parameter, by_number.pop(str(number)))
        state.update((key, deepcopy(values)) for key, values in loaded["state"].items() if str(key) in by_number)
        new_groups = [_loaded_group(a, b, self.defaults) for a, b in zip(saved, groups)]
        self.__setstate__({"state": state, "param_groups": new_groups})
        for hook in self._hooks_of("load_post"):
            hook(self)

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for number, group in enumerate(self.param_groups):
            text += f"\nParameter Group {number}\n"
            text += "".join(f"    {name}: {group[name]}\n" for name in sorted(group) if name != "params")
        return text + ")"


def _named(params: Any) -> tuple[list[str] | None, list[Any]]:
    """Return the names and the tensors of "params": a tensor, tensors, or (name, tensor) pairs."""
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    listed = [params] if isinstance(params, Tensor) else list(params)
    pairs = [item for item in listed if isinstance(item, tuple)]
    if not pairs:
        return None, listed
    if len(pairs) != len(listed):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return [name for name, _ in pairs], [parameter for _, parameter in pairs]


def _check_parameter(parameter: Any, differentiable: bool) -> None:
    if not isinstance(parameter, Tensor):
        raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(parameter).__name__}")
    if not differentiable and not (parameter.is_leaf or parameter.retains_grad):
        raise ValueError("can't optimize a non-leaf Tensor")


def _loaded_group(saved: dict[str, Any], present: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Return a saved group with the parameters, and the options it lacks, of the present one."""
    group = {**deepcopy({name: value for name, value in saved.items() if name != "params"})}
    if "param_names" in present:
        group.setdefault("param_names", present["param_names"])
    group["params"] = present["params"]
    for name, default in defaults.items():
        group.setdefault(name, default)
        if isinstance(default, tuple) and isinstance(group[name], list):  # a file has lists only
            group[name] = tuple(group[name])
    return group


def _unshared(kept: dict[str, Any], seen: set[int]) -> dict[str, Any]:
    """Return the state of a parameter, with copies of the tensors that other parameters have too."""
    shared = [name for name, value in kept.items() if isinstance(value, Tensor) and id(value) in seen]
    seen.update(id(value) for value in kept.values() if isinstance(value, Tensor))
    return {**kept, **{name: kept[name].clone() for name in shared}} if shared else kept


def _fitted(parameter: Any, value: Any, name: str = "") -> Any:
    """Return a copy of state on the device of its parameter and, unless it is a step count, in its dtype."""
    if isinstance(value, Tensor):
        found: Any = value.detach()
        if name == "step":
            return found.clone()
        d = parameter.dtype if parameter.is_floating_point() else None
        moved = found.to(device=parameter.device, dtype=d)
        return moved.clone() if moved is found or moved._payload is found._payload else moved
    if isinstance(value, dict):
        return {key: _fitted(parameter, part, key) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fitted(parameter, part) for part in value)
    return deepcopy(value)


def check_options(**options: tuple[Any, str, Any]) -> None:
    """Raise ``ValueError("Invalid …: value")`` for the first option that is out of range."""
    for fine, title, value in options.values():
        if not fine:
            raise ValueError(f"Invalid {title}: {value}")


def check_one_element(lr: Any) -> None:
    """Raise ``ValueError`` if the learning rate is a tensor of several elements."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def check_rate(lr: Any) -> None:
    """Raise ``ValueError`` if the learning rate is negative, or a tensor of several elements."""
    check_one_element(lr)
    check_options(lr=(lr >= 0, "learning rate", lr))


def check_fused(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """Raise ``RuntimeError`` if ``fused=True`` is given with an option that excludes it."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def __dir__() -> list[str]:
    return sorted(__all__)
