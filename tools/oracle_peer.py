"""From PyTorch to candelabra: values, and the functions that an OpInfo names.

An OpInfo's ``op`` is a public function, a method, or a lambda over them. The first two are looked up by their public
name; a lambda is copied, with PyTorch's modules and functions in its globals and cells replaced by candelabra's.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import candelabra as cd
import numpy as np
import torch

NAMESPACES = ("", "linalg", "fft", "special", "signal.windows", "masked", "nn.functional", "Tensor")
"""The namespaces of public functions in both libraries; the first one that has a function determines its name."""
UNTOUCHED = frozenset({"wrapper_set_seed", "freeze_rng_state"})
"""Helpers of tests that affect only PyTorch's random state."""
UNSUPPORTED = ("sparse.", "torch.ops.aten.", "torch._scaled_mm", "jiterator_", "to_sparse", "chalf",
               "_native_batch_norm_legit", "max_pool2d_with_indices_backward")  # fmt: skip
"""Names, or their prefixes, that are deliberately not supported: see docs/not-supported.md."""


CALLS: dict[int, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {}
"""By ``id``: PyTorch's modules that are arguments, and the arguments of their own construction."""


class Missing(Exception):
    """The error for a name that candelabra does not have."""


def lookup(root: Any, path: str) -> Any:
    """Return the object of a dotted path, as in ``lookup(torch, "linalg.det")``, or None if it does not exist."""
    for part in path.split("."):
        if root is None:
            return None
        root = getattr(root, part, None) if part else root
    return root


@functools.cache
def public_names() -> dict[int, str]:
    """Return the dotted path of each of PyTorch's public functions, methods, modules and dtypes, by its ``id``."""
    names: dict[int, str] = {}
    for namespace in NAMESPACES:
        home = lookup(torch, namespace)
        names.setdefault(id(home), namespace)
        for name in dir(home):
            if name == "_C":
                continue
            value = getattr(home, name, None)
            if callable(value) or isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
                names.setdefault(id(value), f"{namespace}.{name}" if namespace else name)
    names[id(torch)] = ""
    return names


def counterpart(value: Any, name: str = "") -> Any:
    """Return candelabra's counterpart of a function, method, module or lambda of PyTorch. Raise :class:`Missing`."""
    if isinstance(value, functools.partial):
        return functools.partial(counterpart(value.func), *translate(value.args), **translate(value.keywords))
    if isinstance(value, types.FunctionType) and value.__module__.startswith("torch.testing."):
        return value if value.__name__ in UNTOUCHED else rebound(value)
    path = name if name and lookup(torch, name) is value else public_names().get(id(value), name)
    found = lookup(cd, path) if path or value is torch else None
    if found is None:
        raise Missing(path or repr(value))
    return found


@functools.cache
def rebound(function: types.FunctionType) -> types.FunctionType:
    """Return a copy of a test's function that calls candelabra where the original calls PyTorch."""
    scope = dict(function.__globals__)
    for name in _global_names(function.__code__):
        if name in scope:
            scope[name] = _replaced(scope[name])
    cells = tuple(types.CellType(_replaced(cell.cell_contents)) for cell in function.__closure__ or ())
    copy = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _replaced(value: Any) -> Any:
    known = value is torch or isinstance(value, types.ModuleType) or callable(value)
    if isinstance(value, torch.dtype):
        return translate(value)
    if not known or (isinstance(value, type) and not value.__module__.startswith("torch")):
        return value
    try:
        return counterpart(value)
    except Missing:
        return value


def _global_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


def record_modules() -> None:
    """Let PyTorch's modules remember their arguments, for :func:`module_like`."""
    torch.nn.Module.__new__ = _recorded  # type: ignore[method-assign, assignment]


def _recorded(cls: type, *args: Any, **kwargs: Any) -> Any:
    made = object.__new__(cls)
    CALLS[id(made)] = (made, args, kwargs)
    return made


def module_like(module: torch.nn.Module, convert: Callable[[Any], Any]) -> Any:
    """Return candelabra's module made from the same arguments, with the same state and mode."""
    _, args, kwargs = CALLS[id(module)]
    made = namesake(type(module))(*convert(args), **convert(kwargs))
    made.load_state_dict({name: to_candelabra(t) for name, t in module.state_dict().items()})
    return made.train(module.training)


def namesake(cls: type) -> Any:
    """Return candelabra's class of the same path."""
    path = f"{cls.__module__}.{cls.__qualname__}"
    public = path.removeprefix("torch.") if lookup(cd.nn, cls.__name__) is None else f"nn.{cls.__name__}"
    found = lookup(cd, public)
    if found is None:
        raise Missing(f"nn.{cls.__name__}")
    return found


def each(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """Return a nest of lists, tuples and dicts with every tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, torch.Size):
        return value
    if isinstance(value, (list, tuple)):
        parts = [each(v, change) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {k: each(v, change) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(each(v, change) for v in (value.start, value.stop, value.step)))
    return value


def translate(value: Any) -> Any:
    """Return arguments for candelabra: tensors as new leaves, modules, dtypes, devices, layouts; others unchanged."""
    if isinstance(value, torch.Tensor):
        return to_candelabra(value)
    if isinstance(value, torch.nn.Module):
        return module_like(value, translate)
    if isinstance(value, torch.Size):
        return cd.Size(value) if hasattr(cd, "Size") else tuple(value)
    if isinstance(value, (list, tuple)):
        return type(value)(translate(v) for v in value)
    if isinstance(value, dict):
        return {k: translate(v) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(translate(v) for v in (value.start, value.stop, value.step)))
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        name = str(value).removeprefix("torch.")
        found = getattr(cd, name, None)
        if found is None:
            raise Missing(name)
        return found
    if callable(value) and id(value) in public_names():
        return counterpart(value)
    return value


_memories: dict[int, cd.Tensor] | None = None


def sharing(value: Any) -> Any:
    """Return the result of :func:`translate`, with tensors that share memory if PyTorch's do."""
    global _memories
    _memories = {}
    try:
        return translate(value)
    finally:
        _memories = None


def to_candelabra(t: torch.Tensor) -> cd.Tensor:
    """Return a new tensor with the same values, strides and ``requires_grad``."""
    plain = t.detach().resolve_conj().resolve_neg()
    whole = plain.untyped_storage().nbytes() == plain.numel() * plain.element_size()
    if _memories is not None or (plain.numel() and not (whole and plain.is_contiguous())):
        memory = torch.tensor([], dtype=plain.dtype).set_(plain.untyped_storage())
        made = from_array(as_array(memory.clone()))
        if _memories is not None and plain.numel():
            made = _memories.setdefault(plain.untyped_storage().data_ptr(), made)
        made = made.as_strided(tuple(plain.shape), plain.stride(), plain.storage_offset())
    else:
        made = from_array(
            as_array(plain.clone())
        )  # a tensor that exported an array cannot be resized, so a clone is exported
    return made.requires_grad_() if t.requires_grad else made


def as_array(t: torch.Tensor) -> np.ndarray:
    """Return a contiguous tensor as an array; bfloat16, for which PyTorch exports no array, by its bits."""
    t = t.detach()
    if t.dtype is not torch.bfloat16:
        return np.asarray(t.numpy())
    return np.asarray(t.contiguous().view(torch.int16).numpy()).view(_bfloat16())


@functools.cache
def _bfloat16() -> Any:
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def from_array(array: np.ndarray) -> cd.Tensor:
    """Return an array as candelabra's tensor."""
    return cd.from_numpy(np.ascontiguousarray(array).reshape(array.shape))


def to_torch(value: Any) -> Any:
    """Return candelabra's result, with tensors as PyTorch's. Named tuples become plain ones."""
    if isinstance(value, cd.Tensor):
        plain = value.detach()
        if plain.dtype is cd.bfloat16:
            return torch.from_numpy(np.array(plain.float().numpy())).bfloat16()
        return torch.from_numpy(np.array(plain.numpy()))
    if isinstance(value, cd.Size):
        return torch.Size(value)
    if isinstance(value, cd.dtype):
        return getattr(torch, str(value).rpartition(".")[2])
    if isinstance(value, (list, tuple)):
        return tuple(to_torch(v) for v in value)
    if isinstance(value, dict):
        return {k: to_torch(v) for k, v in value.items()}
    return value


def leaves(value: Any, kind: type) -> list[Any]:
    """Return all tensors of a nest, in order."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in leaves(v, kind)]
    if isinstance(value, dict):
        return [leaf for v in value.values() for leaf in leaves(v, kind)]
    return []
