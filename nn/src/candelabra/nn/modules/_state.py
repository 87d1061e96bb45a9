"""The state of modules: collected into a dictionary, checked against one, loaded from one."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from candelabra import Tensor, no_grad
from candelabra.nn.modules._hooks import Hooks
from candelabra.nn.modules._traversal import Traversable
from candelabra.nn.parameter import Parameter, is_lazy

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
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class Stateful(Traversable):
    """The methods of a Module that return and load its state."""

    _version = 1
    """The version of the state of this class, for ``_load_from_state_dict`` of later versions."""
    _non_persistent_buffers_set: set[str]
    _state_dict_pre_hooks: Hooks
    _state_dict_hooks: Hooks
    _state_dict_post_hooks: dict[int, bool]
    _load_state_dict_pre_hooks: Hooks
    _load_state_dict_pre_hooks_with_module: dict[int, bool]
    _load_state_dict_post_hooks: Hooks

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

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return parameters and persistent buffers by dotted path, as an OrderedDict.

        The tensors are not copied, but detached unless ``keep_vars``. The attribute ``_metadata`` of the result has the
        version of each module. ``destination``: a dictionary to fill and return.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead: state_dict(destination=, prefix=, "
                "keep_vars=)",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = cast("Any", OrderedDict())
            destination._metadata = OrderedDict()
        return _collect(cast("Module", self), destination, prefix, keep_vars)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        _save_own(cast("Module", self), destination, prefix, keep_vars)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy parameters and buffers from a state of :meth:`state_dict`.

        ``strict``: keys that are missing or unexpected are an error. ``assign``: take the tensors themselves instead of
        copying their values. Returns the missing and the unexpected keys. Raises ``RuntimeError`` that lists
        all mismatches, and ``TypeError`` if ``state_dict`` is not a mapping. After an error nothing has been copied,
        except by hooks and by modules that define ``_load_from_state_dict``.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        return _Loading(cast("Module", self), state_dict, strict, assign).run()

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
        """Load this module's own tensors; subclasses override it to read older files.

        ``local_metadata`` has the ``"version"`` of the class that wrote the state, if the state has metadata.
        """
        own = _OwnState(cast("Module", self), state_dict, prefix, local_metadata, error_msgs)
        own.check(strict, missing_keys, unexpected_keys)
        if isinstance(state_dict, _Deferring):
            state_dict.pending.append(own.load)
        else:
            own.load()


def _has_extra(module: Module, method: str) -> bool:
    return getattr(type(module), method) is not getattr(Stateful, method)


def _own_tensors(module: Module) -> dict[str, Tensor]:
    """Return the parameters and persistent buffers of this module alone."""
    kept = {n: b for n, b in module._buffers.items() if n not in module._non_persistent_buffers_set}
    return {name: tensor for name, tensor in (*module._parameters.items(), *kept.items()) if tensor is not None}


# -- collecting -------------------------------------------------------------------------------------------------------
def _collect(module: Module, destination: Any, prefix: str, keep_vars: bool) -> dict[str, Any]:
    """Collect the state of a module and of its descendants in ``destination``."""
    local_metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = local_metadata
    for hook in list(module._state_dict_pre_hooks.values()):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for number, hook in list(module._state_dict_hooks.items()):
        new = hook(module, destination, prefix, local_metadata)
        if new is None:
            continue
        if number in module._state_dict_post_hooks:
            raise RuntimeError("state_dict post-hook must return None")
        destination = new
    found: dict[str, Any] = destination
    return found


def _save_own(module: Module, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Collect the state of this module alone."""
    for name, tensor in _own_tensors(module).items():
        destination[prefix + name] = tensor if keep_vars else tensor.detach()
    if _has_extra(module, "get_extra_state"):
        destination[prefix + EXTRA] = module.get_extra_state()


# -- loading ----------------------------------------------------------------------------------------------------------
class _Deferring(OrderedDict[str, Any]):
    """A state of which modules collect what to load in ``pending`` instead of loading it."""

    pending: list[Callable[[], None]]
    _metadata: Any


class _Loading:
    """One call of ``load_state_dict``: everything is checked before the first tensor changes.

    A subclass's ``_load_from_state_dict`` may rely on the tensors that the inherited one has loaded, so modules of
    users load their tensors at once, as in PyTorch.
    """

    def __init__(self, module: Module, state_dict: Mapping[str, Any], strict: bool, assign: bool) -> None:
        self.module = module
        self.state_dict = state_dict
        self.strict = strict
        self.assign = assign
        self.metadata = getattr(state_dict, "_metadata", None)
        self.keys = IncompatibleKeys([], [])
        self.errors: list[str] = []
        self.pending: list[Callable[[], None]] = []
        self.post_hooks: list[tuple[Module, Callable[..., Any]]] = []

    def run(self) -> IncompatibleKeys:
        """Load the state, or raise RuntimeError."""
        self._check(self.module, OrderedDict(self.state_dict), "")
        hooks_may_forgive = bool(self.post_hooks) and not self.errors
        if not hooks_may_forgive:
            self._raise_errors()
        for load in self.pending:
            load()
        for module, hook in self.post_hooks:
            if hook(module, self.keys) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )
        self._raise_errors()
        return self.keys

    def _check(self, module: Module, state_dict: dict[str, Any], prefix: str) -> None:
        """Check the state of a module and of its descendants."""
        local_metadata = {} if self.metadata is None else dict(self.metadata.get(prefix[:-1], {}))
        if self.assign:
            local_metadata["assign_to_params_buffers"] = True
        given = _Deferring(state_dict) if _defers(module) else OrderedDict(state_dict)
        if isinstance(given, _Deferring):
            given.pending = self.pending
        if self.metadata is not None:
            given._metadata = self.metadata  # type: ignore[attr-defined]
        missing, unexpected = self.keys
        module._load_from_state_dict(given, prefix, local_metadata, True, missing, unexpected, self.errors)
        for name, child in module._modules.items():
            if child is not None:
                path = f"{prefix}{name}."
                self._check(child, {key: value for key, value in given.items() if key.startswith(path)}, path)
        self.post_hooks += [(module, hook) for hook in module._load_state_dict_post_hooks.values()]

    def _raise_errors(self) -> None:
        kinds = (("Missing", self.keys.missing_keys), ("Unexpected", self.keys.unexpected_keys))
        wrong = [f"{kind} key(s) in state_dict: {_quoted(keys)}. " for kind, keys in kinds if keys and self.strict]
        if wrong or self.errors:
            listed = "\n\t".join([*wrong, *self.errors])
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self.module).__name__}:\n\t{listed}")


def _defers(module: Module) -> bool:
    return type(module)._load_from_state_dict.__module__.startswith("candelabra.nn.")


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)


class _OwnState:
    """The tensors of one module alone, and their values in a state."""

    def __init__(
        self, module: Module, state_dict: dict[str, Any], prefix: str, metadata: dict[str, Any], errors: list[str]
    ) -> None:
        self.module = module
        self.state_dict = state_dict
        self.prefix = prefix
        self.metadata = metadata
        self.errors = errors
        self.assign = metadata.get("assign_to_params_buffers", False)
        self.found: list[tuple[str, Any, Any]] = []

    def check(self, strict: bool, missing: list[str], unexpected: list[str]) -> None:
        """Run the pre-hooks, and list the keys and values that do not match."""
        module, state_dict, prefix = self.module, self.state_dict, self.prefix
        for number, hook in list(module._load_state_dict_pre_hooks.items()):
            first = (module,) if number in module._load_state_dict_pre_hooks_with_module else ()
            hook(*first, state_dict, prefix, self.metadata, strict, missing, unexpected, self.errors)
        own = _own_tensors(module)
        for name, tensor in own.items():
            key = prefix + name
            if key in state_dict:
                self._check_value(name, tensor, state_dict[key])
            elif strict:
                missing.append(key)
        has_extra = _has_extra(module, "set_extra_state")
        if strict and has_extra and prefix + EXTRA not in state_dict:
            missing.append(prefix + EXTRA)
        if strict:
            below = [key for key in state_dict if key.startswith(prefix)]
            unexpected += [key for key in below if _unexpected(module, key[len(prefix) :], own, has_extra)]

    def _check_value(self, name: str, tensor: Any, value: Any) -> None:
        key = self.prefix + name
        if not isinstance(value, Tensor):
            self.errors.append(
                f'While copying the parameter named "{key}", expected candelabra.Tensor or Tensor-like object from '
                f"checkpoint but received {type(value)}"
            )
            return
        lazy = is_lazy(tensor)
        if not lazy and tensor.shape == () and value.shape == (1,):  # a scalar of PyTorch before 0.4
            value = cast("Any", value)[0]
        if not lazy and value.shape != tensor.shape:
            self.errors.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in "
                f"current model is {tensor.shape}."
            )
            return
        if not self.assign and tensor.device.type == "meta" != value.device.type:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
                "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary "
                "to their corresponding key in the module instead of copying them in place?)",
                stacklevel=2,
            )
        self.found.append((name, tensor, value))

    def load(self) -> None:
        """Load the values that passed the check."""
        for name, tensor, value in self.found:
            try:
                with no_grad():
                    if self.assign:
                        _assign(self.module, name, tensor, value)
                    else:
                        tensor.copy_(value)
            except Exception as error:
                self.errors.append(
                    f'While copying the parameter named "{self.prefix}{name}", whose dimensions in the model are '
                    f"{tensor.size()} and whose dimensions in the checkpoint are {value.size()}, an exception "
                    f"occurred : {error.args}."
                )
        if _has_extra(self.module, "set_extra_state") and self.prefix + EXTRA in self.state_dict:
            self.module.set_extra_state(self.state_dict[self.prefix + EXTRA])


def _unexpected(module: Module, key: str, own: dict[str, Tensor], has_extra: bool) -> bool:
    if key == EXTRA:
        return not has_extra
    first, dot, _ = key.partition(".")
    return first not in module._modules if dot else first not in own


def _assign(module: Module, name: str, tensor: Tensor, value: Any) -> None:
    if isinstance(tensor, Parameter):
        if isinstance(value, Parameter):
            value.requires_grad_(tensor.requires_grad)
        else:
            value = Parameter(value, requires_grad=tensor.requires_grad)
    setattr(module, name, value)
