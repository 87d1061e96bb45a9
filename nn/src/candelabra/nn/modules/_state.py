"""The state of modules: collected into a dictionary, checked against one, loaded from one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from candelabra import Tensor, no_grad
from candelabra.nn.modules._hooks import Hook
from candelabra.nn.modules._traversal import Traversable
from candelabra.nn.parameter import is_lazy

if TYPE_CHECKING:
    from candelabra.nn.modules.module import Module

EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """The keys that did not match when a state was loaded."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class Stateful(Traversable):
    """The methods of a Module that return and load its state."""

    _non_persistent_buffers_set: set[str]
    _state_dict_pre_hooks: dict[int, Hook]
    _state_dict_hooks: dict[int, Hook]
    _load_state_dict_pre_hooks: dict[int, Hook]
    _load_state_dict_post_hooks: dict[int, Hook]

    def get_extra_state(self) -> Any:
        """Return additional state for ``state_dict``. Subclasses that have some define this and set_extra_state."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. Define it with "
            "set_extra_state()."
        )

    def set_extra_state(self, state: Any) -> None:
        """Load the state that :meth:`get_extra_state` returned."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. Define it with "
            "get_extra_state()."
        )

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """Return parameters and persistent buffers by dotted path. The tensors are not copied, but detached unless
        ``keep_vars``.
        """
        found = {} if destination is None else destination
        return _collect(cast("Module", self), found, prefix, keep_vars)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        _save_own(cast("Module", self), destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy parameters and buffers from a state of :meth:`state_dict`. If anything is wrong, nothing is copied.

        ``strict``: keys that are missing or unexpected are an error. ``assign``: take the tensors themselves instead of
        copying their values. Returns the missing and the unexpected keys. Raises ``RuntimeError`` that lists
        all mismatches, and ``TypeError`` if ``state_dict`` is not a mapping.
        """
        return _load(cast("Module", self), state_dict, strict, assign)

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
        _load_own(
            cast("Module", self), state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


def _has_extra(module: Module) -> bool:
    return type(module).get_extra_state is not Stateful.get_extra_state


def _own_tensors(module: Module) -> dict[str, Tensor]:
    """Return the parameters and persistent buffers of this module alone."""
    kept = {n: b for n, b in module._buffers.items() if n not in module._non_persistent_buffers_set}
    return {name: tensor for name, tensor in (*module._parameters.items(), *kept.items()) if tensor is not None}


# -- collecting -------------------------------------------------------------------------------------------------------
def _collect(module: Module, destination: dict[str, Any], prefix: str, keep_vars: bool) -> dict[str, Any]:
    """Collect the state of a module and of its descendants in ``destination``."""
    for hook in list(module._state_dict_pre_hooks.values()):
        hook.function(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in list(module._state_dict_hooks.values()):
        hook.function(module, destination, prefix, {})
    return destination


def _save_own(module: Module, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Collect the state of this module alone."""
    for name, tensor in _own_tensors(module).items():
        destination[prefix + name] = tensor if keep_vars else tensor.detach()
    if _has_extra(module):
        destination[prefix + EXTRA] = module.get_extra_state()


# -- loading ----------------------------------------------------------------------------------------------------------
def _load(module: Module, state_dict: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """Check everything, then copy everything; see ``Module.load_state_dict``."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    found = IncompatibleKeys([], [])
    errors: list[str] = []
    pending: list[Callable[[], None]] = []
    _load_below(module, dict(state_dict), "", {"pending": pending, "assign": assign}, strict, found, errors)
    for owner in module.modules():
        for hook in list(owner._load_state_dict_post_hooks.values()):
            if hook.function(owner, found) is not None:
                raise RuntimeError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )
    if strict and found.unexpected_keys:
        errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(found.unexpected_keys)}. ")
    if strict and found.missing_keys:
        errors.insert(0, f"Missing key(s) in state_dict: {_quoted(found.missing_keys)}. ")
    if errors:
        listed = "\n\t".join(errors)
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{listed}")
    for copy in pending:
        copy()
    return found


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)


def _load_below(
    module: Module,
    state_dict: dict[str, Any],
    prefix: str,
    metadata: dict[str, Any],
    strict: bool,
    incompatible: IncompatibleKeys,
    errors: list[str],
) -> None:
    missing, unexpected = incompatible.missing_keys, incompatible.unexpected_keys
    module._load_from_state_dict(state_dict, prefix, metadata, True, missing, unexpected, errors)
    for name, child in module._modules.items():
        if child is not None:
            path = f"{prefix}{name}."
            part = {key: value for key, value in state_dict.items() if key.startswith(path)}
            _load_below(child, part, path, metadata, strict, incompatible, errors)


def _load_own(
    module: Module,
    state_dict: dict[str, Any],
    prefix: str,
    metadata: dict[str, Any],
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
) -> None:
    """Check this module's own tensors. ``metadata["pending"]`` collects the copies until all modules are checked."""
    for hook in list(module._load_state_dict_pre_hooks.values()):
        hook.function(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)
    own = _own_tensors(module)
    pending: list[Callable[[], None]] = []
    for name, tensor in own.items():
        key = prefix + name
        if key not in state_dict:
            missing.append(key)
            continue
        problem = _misfit(key, tensor, state_dict[key])
        if problem is not None:
            errors.append(problem)
        elif metadata.get("assign", False):
            pending.append(_assignment(module, name, tensor, state_dict[key]))
        else:
            pending.append(_copy(tensor, state_dict[key]))
    if _has_extra(module):
        if prefix + EXTRA in state_dict:
            pending.append(lambda: module.set_extra_state(state_dict[prefix + EXTRA]))
        else:
            missing.append(prefix + EXTRA)
    unexpected += [key for key in state_dict if key.startswith(prefix) and _unexpected(module, key[len(prefix) :], own)]
    if "pending" in metadata:
        metadata["pending"] += pending
    else:
        for copy in pending:
            copy()


def _unexpected(module: Module, key: str, own: dict[str, Tensor]) -> bool:
    if key == EXTRA:
        return not _has_extra(module)
    first, dot, _ = key.partition(".")
    return module._modules.get(first) is None if dot else first not in own


def _misfit(key: str, tensor: Tensor, value: Any) -> str | None:
    if is_lazy(tensor):
        return None  # the hook of lazy modules has materialized all tensors whose shape is known now
    if not isinstance(value, Tensor):
        return (
            f'While copying the parameter named "{key}", expected candelabra.Tensor or Tensor-like object from '
            f"checkpoint but received {type(value)}"
        )
    if value.shape != tensor.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in current "
            f"model is {tensor.shape}."
        )
    return None


def _copy(tensor: Any, value: Any) -> Callable[[], None]:
    def copy() -> None:
        with no_grad():
            tensor.copy_(value)

    return copy


def _assignment(module: Module, name: str, tensor: Tensor, value: Tensor) -> Callable[[], None]:
    from candelabra.nn.parameter import Parameter

    def assign() -> None:
        if isinstance(tensor, Parameter) and not isinstance(value, Parameter):
            setattr(module, name, Parameter(value, requires_grad=tensor.requires_grad))
        else:
            setattr(module, name, value)

    return assign
