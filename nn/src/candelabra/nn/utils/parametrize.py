"""Parametrizations: a parameter that is computed from other parameters by modules.

After ``register_parametrization(layer, "weight", module)``, ``layer.weight`` is ``module(original)``, and the optimizer
trains ``layer.parametrizations.weight.original``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, Never, cast

from candelabra import Tensor, no_grad
from candelabra.nn.modules.container import ModuleDict, ModuleList
from candelabra.nn.modules.module import Module
from candelabra.nn.parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip


class _Cache:
    """The values that were computed inside :func:`cached`, by module and name, and the depth of its blocks."""

    def __init__(self) -> None:
        self.depth = 0
        self.values: dict[tuple[int, str], Tensor] = {}


_cache = _Cache()


@contextmanager
def cached() -> Iterator[None]:
    """Inside the block, compute each parametrized tensor once, at its first use.

    For a module that uses a parametrized tensor several times, such as a recurrent cell.
    """
    _cache.depth += 1
    try:
        yield
    finally:
        _cache.depth -= 1
        if not _cache.depth:
            _cache.values.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order, and its original tensor or tensors.

    The tensor is named ``original``, or ``original0``, ``original1``, … if the first parametrization's
    ``right_inverse`` returns several. ``unsafe``: the dtype and the shape of the result are not checked.
    """

    original: Any
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            new = _inverse(list(self), original)
        self.is_tensor = isinstance(new, Tensor)
        if isinstance(new, Tensor):
            self.ntensors = 1
            self._set_only(original, new)
        elif isinstance(new, Sequence):
            self.ntensors = len(new)
            self._set_several(original, new)
        else:
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        if not unsafe:
            _check_result(self(), shape, dtype)

    def _set_only(self, original: Any, new: Any) -> None:
        """Register the original tensor, which keeps its identity for optimizers, with the value of the inverse."""
        for name in ("dtype", "device"):
            if getattr(original, name) != getattr(new, name):
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {name}.\n"
                    f"original.{name}: {getattr(original, name)}\n"
                    f"right_inverse(original).{name}: {getattr(new, name)}"
                )
        _set_data(original, new)
        _register(self, "original", original)

    def _set_several(self, original: Any, new: Sequence[Any]) -> None:
        for number, tensor in enumerate(new):
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                    f"Got element {number} of the sequence with type {type(tensor).__name__}."
                )
            if isinstance(original, Parameter):
                tensor = Parameter(tensor, original.requires_grad)
            tensor.requires_grad_(original.requires_grad)
            _register(self, f"original{number}", tensor)

    def right_inverse(self, value: Any) -> None:
        """Set the originals so that the result is ``value``, with the parametrizations' ``right_inverse``."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                self._assign_only(value)
            else:
                self._assign_several(value)

    def _assign_only(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
        if value.dtype != self.original.dtype:
            raise ValueError(
                f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype "
                f"{self.original.dtype}"
            )
        _set_data(self.original, value)

    def _assign_several(self, values: Any) -> None:
        if not isinstance(values, Sequence):
            raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(values).__name__}.")
        if len(values) != self.ntensors:
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                f"length {len(values)}."
            )
        for number, tensor in enumerate(values):
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors. Got element {number} of type "
                    f"{type(tensor).__name__}."
                )
            original = getattr(self, f"original{number}")
            if original.dtype != tensor.dtype:
                raise ValueError(
                    f"Tensor {number} returned by `right_inverse` has dtype {tensor.dtype} while `original{number}` "
                    f"has dtype {original.dtype}"
                )
            _set_data(original, tensor)

    def forward(self) -> Any:
        first, *others = self
        names = ("original",) if self.is_tensor else tuple(f"original{number}" for number in range(self.ntensors))
        out = first(*(getattr(self, name) for name in names))
        for module in others:
            out = module(out)
        return out

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the parametrizations: an original may be a module too, with another name."""
        return (module for name, module in self._modules.items() if name.isdigit())


def _inverse(modules: list[Any], value: Any) -> Any:
    """Apply the right inverses in reverse order. A parametrization without one is taken as the identity."""
    for module in reversed(modules):
        if hasattr(module, "right_inverse"):
            try:
                value = module.right_inverse(value)
            except NotImplementedError:
                pass
    return value


def _set_data(tensor: Any, value: Any) -> None:
    if tensor is not value:
        tensor.data = value.detach()


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check_result(result: Any, shape: Any, dtype: Any) -> None:
    """Raise ``ValueError`` unless a first parametrization keeps the dtype and the shape of the tensor."""
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    for what, before, now in (("dtype", dtype, result.dtype), ("shape", shape, result.shape)):
        if now != before:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                f"enabled.\nunparametrized {what}: {before}\nparametrized {what}: {now}"
            )


# -- the class of a parametrized module -------------------------------------------------------------------------------
def _getstate(self: Module) -> Never:
    raise RuntimeError("Serialization of parametrized modules is only supported through state_dict().")


def _deep_copy(self: Module, memo: dict[int, Any]) -> Any:
    if id(self) in memo:
        return memo[id(self)]
    replica = type(self).__new__(type(self))
    memo[id(self)] = replica
    replica.__dict__ = deepcopy(self.__dict__, memo)
    return replica


def _inject_new_class(module: Module) -> None:
    """Give a module a class of its own, in which tensors can be properties."""
    cls = type(module)
    members: dict[str, Any] = {"__getstate__": _getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = _deep_copy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module: Module, name: str) -> None:
    def computed(self: Any) -> Any:
        parametrization = self.parametrizations[name]
        if not _cache.depth:
            return parametrization()
        key = (id(self), name)
        if key not in _cache.values:
            _cache.values[key] = parametrization()
        return _cache.values[key]

    def assign(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(computed, assign))


# -- functions --------------------------------------------------------------------------------------------------------
def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of a module by another module, ``parametrization(original)``. Returns ``module``.

    If ``parametrization`` has a method ``right_inverse``, the original is set to ``right_inverse(tensor)``, and the
    tensor can be assigned to. It may return several tensors, which are then the arguments of the parametrization.
    Several parametrizations of one tensor are applied in the order of their registration. ``unsafe``: the shape and the
    dtype may change, and nothing is checked. Raises ``ValueError`` for an unknown name, and if the result or the
    inverse does not fit.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_another(module, tensor_name, parametrization)
        found = cast("Any", module).parametrizations[tensor_name]
        found.append(parametrization)
        found.unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _inject_new_class(module)
        module.parametrizations = ModuleDict()
    _inject_property(module, tensor_name)
    cast("Any", module).parametrizations[tensor_name] = made
    return module


def _check_another(module: Module, name: str, parametrization: Any) -> None:
    """Raise ``ValueError`` if a further parametrization or its inverse changes the dtype or the shape."""
    before = getattr(module, name)
    result = parametrization(before)
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    for what in ("dtype", "shape"):
        if getattr(result, what) != getattr(before, what):
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is "
                f"enabled.\nmodule.{name}.{what}: {getattr(before, what)}\n"
                f"parametrization(module.{name}).{what}: {getattr(result, what)}"
            )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        inverse = parametrization.right_inverse(result)
    except NotImplementedError:
        return
    if not isinstance(inverse, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}")
    for what in ("dtype", "shape"):
        if getattr(inverse, what) != getattr(before, what):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, "
                f"unless the `unsafe` flag is enabled.\nmodule.{name}.{what}: {getattr(before, what)}\n"
                f"returned {what}: {getattr(inverse, what)}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a tensor of a module is parametrized, or without a name, whether any is."""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Remove all parametrizations of a tensor. Returns ``module``.

    The tensor keeps its present value, or with ``leave_parametrized=False`` gets that of the original, which requires
    a single original. Raises ``ValueError`` if the tensor is not parametrized.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    tables = cast("Any", module).parametrizations
    found = tables[tensor_name]
    if found.is_tensor:
        original = found.original
        if leave_parametrized:
            with no_grad():
                _set_data(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del tables[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class of a module, without the one that parametrizations added."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Register the parametrizations of one module with another, which then shares the originals. Returns the latter.

    ``tensor_name``: only those of this tensor. A tensor that ``to_module`` lacks is created.
    """
    if not is_parametrized(from_module):
        return to_module
    source, target = cast("Any", from_module), cast("Any", to_module)
    for name in list(source.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        found = source.parametrizations[name]
        for parametrization in found:
            register_parametrization(to_module, name, parametrization)
        for original in ["original"] if found.is_tensor else [f"original{i}" for i in range(found.ntensors)]:
            setattr(target.parametrizations[name], original, getattr(found, original))
    return to_module


def __dir__() -> list[str]:
    return sorted(__all__)
