"""The base of optimizers: groups of parameters with options, state per parameter, and the dictionary of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, Final

from candelabra import Tensor, enable_grad, no_grad
from candelabra.library import RemovableHandle, add_hook

__all__ = ["Optimizer", "required"]


class _Required:
    """The type of the marker for an option without a default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required: Final = _Required()
Closure = Callable[[], Any]


class Optimizer:
    """The base of all optimizers. ``params``: tensors, dicts with "params" and options of their own, or (name, tensor)
    pairs. Subclasses define :meth:`update`, which is called once per group, without recording.

    Raises ``TypeError`` and ``ValueError`` with PyTorch's messages for parameters that cannot be optimized.
    """

    defaults: dict[str, Any]
    state: dict[Tensor, dict[str, Any]]
    param_groups: list[dict[str, Any]]

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state = {}
        self.param_groups = []
        self._hooks: dict[str, dict[int, Callable[..., Any]]] = {
            kind: {} for kind in ("step_pre", "step_post", "state_pre", "state_post", "load_pre", "load_post")
        }
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

    # -- groups -------------------------------------------------------------------------------------------------------
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with its own options, for instance those of layers that are no longer frozen."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        given = group["params"]
        if isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        listed = [given] if isinstance(given, Tensor) else list(given)
        if listed and all(isinstance(item, tuple) for item in listed):
            group["param_names"] = [name for name, _ in listed]
            listed = [parameter for _, parameter in listed]
        for parameter in listed:
            _check_parameter(parameter)
        if len({id(parameter) for parameter in listed}) != len(listed):
            raise ValueError("some parameters appear more than once in one parameter group")
        present = {id(parameter) for other in self.param_groups for parameter in other["params"]}
        if any(id(parameter) in present for parameter in listed):
            raise ValueError("some parameters appear in more than one parameter group")
        group["params"] = listed
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients of all parameters, or set them to zero."""
        from candelabra.nn.parameter import forget_gradient

        for group in self.param_groups:
            for parameter in group["params"]:
                forget_gradient(parameter, set_to_none)

    # -- a step -------------------------------------------------------------------------------------------------------
    def step(self, closure: Closure | None = None) -> Any:
        """Update every parameter that has a gradient. ``closure`` computes the loss, which is returned."""
        for hook in list(self._hooks["step_pre"].values()):
            hook(self, (closure,) if closure is not None else (), {})
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                self.update(group, [p for p in group["params"] if p.grad is not None])
        for hook in list(self._hooks["step_post"].values()):
            hook(self, (closure,) if closure is not None else (), {})
        return loss

    def update(self, group: dict[str, Any], parameters: list[Any]) -> None:
        """Update the parameters of one group, all of which have gradients. Subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} must define update()")

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step."""
        return add_hook(self._hooks["step_pre"], hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return add_hook(self._hooks["step_post"], hook)

    # -- state --------------------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Return ``{"state": …, "param_groups": …}`` with parameters as numbers, for :meth:`load_state_dict`."""
        for hook in list(self._hooks["state_pre"].values()):
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {name: value for name, value in group.items() if name != "params"}
            for parameter in group["params"]:
                numbers.setdefault(id(parameter), len(numbers))
            packed["params"] = [numbers[id(parameter)] for parameter in group["params"]]
            groups.append(packed)
        found = {"state": {numbers[id(p)]: s for p, s in self.state.items()}, "param_groups": groups}
        for hook in list(self._hooks["state_post"].values()):
            found = hook(self, found) or found
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the options and the state of an optimizer whose groups have the same sizes.

        State moves to the device of its parameter, and floating state to its dtype. Raises ``ValueError``, without
        changing anything, if the groups do not match.
        """
        given: Any = dict(state_dict)
        for hook in list(self._hooks["load_pre"].values()):
            given = hook(self, given) or given
        saved, groups = given["param_groups"], self.param_groups
        if len(saved) != len(groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(saved, groups)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        # JSON turns the numbers that are keys into strings.
        by_number = {str(number): values for number, values in given["state"].items()}
        pairs = zip(chain.from_iterable(g["params"] for g in saved), chain.from_iterable(g["params"] for g in groups))
        state = {p: _fitted(p, by_number[str(number)]) for number, p in pairs if str(number) in by_number}
        self.param_groups = [
            {**deepcopy({k: v for k, v in a.items() if k != "params"}), "params": b["params"]}
            for a, b in zip(saved, groups)
        ]
        for group in self.param_groups:
            for name, default in self.defaults.items():
                group.setdefault(name, default)
            if isinstance(group.get("betas"), list):
                group["betas"] = tuple(group["betas"])
        self.state = state
        for hook in list(self._hooks["load_post"].values()):
            hook(self)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer)`` before ``state_dict``."""
        return add_hook(self._hooks["state_pre"], hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after ``state_dict``; it may return another."""
        return add_hook(self._hooks["state_post"], hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading; it may return another."""
        return add_hook(self._hooks["load_pre"], hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading."""
        return add_hook(self._hooks["load_post"], hook)

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for number, group in enumerate(self.param_groups):
            text += f"\nParameter Group {number}\n"
            text += "".join(f"    {name}: {group[name]}\n" for name in sorted(group) if name != "params")
        return text + ")"


def _check_parameter(parameter: Any) -> None:
    if not isinstance(parameter, Tensor):
        raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(parameter).__name__}")
    if not parameter.is_leaf:
        raise ValueError("can't optimize a non-leaf Tensor")


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


def check_options(**options: tuple[bool, str, Any]) -> None:
    """Raise ``ValueError("Invalid …: value")`` for the first option that is out of range."""
    for fine, title, value in options.values():
        if not fine:
            raise ValueError(f"Invalid {title}: {value}")


def __dir__() -> list[str]:
    return sorted(__all__)
