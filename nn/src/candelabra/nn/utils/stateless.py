"""Calls of a module with other parameters and buffers than its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from candelabra.nn.modules.module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with the tensors of a dictionary, by dotted path, in place of its own ones.

    ``args``: a tuple of arguments, or the only one. ``tie_weights``: a tensor that the module has under several names
    is replaced under all of them. ``strict``: the dictionary must have all names. What the module assigns to these
    names is written into the dictionary. Deprecated in PyTorch, in favor of ``torch.func.functional_call``.
    """
    warnings.warn(
        "`candelabra.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0, in favor of "
        "`func.functional_call`.",
        FutureWarning,
        stacklevel=2,
    )
    return call_with(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def call_with(
    module: Module,
    tensors: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """See :func:`functional_call`."""
    from candelabra.nn.parallel import DataParallel

    if isinstance(module, DataParallel):
        raise RuntimeError("The stateless API can't be used with nn.DataParallel module")
    given = () if args is None else args if isinstance(args, tuple) else (args,)
    with reparametrized(module, tensors, tie_weights=tie_weights, strict=strict):
        return module(*given, **(kwargs or {}))


@contextmanager
def reparametrized(
    module: Module, tensors: dict[str, Any], *, tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    """Replace the tensors of a module inside the block."""
    replacements = _untied(module, tensors) if tie_weights else dict(tensors)
    if strict:
        _check_names(module, replacements)
    before: dict[str, Any] = {}
    try:
        for name, tensor in replacements.items():
            before[name] = _swap(module, name, tensor)
        yield
    finally:
        for name, tensor in before.items():
            now = _swap(module, name, tensor)
            if name in tensors:
                tensors[name] = now


_ABSENT = object()
"""The former value of a name that the module does not have."""


def _swap(module: Module, path: str, tensor: Any) -> Any:
    """Set a tensor of a module without the checks of assignment, and return the former value."""
    owner_path, _, name = path.rpartition(".")
    owner = module.get_submodule(owner_path)
    if isinstance(getattr(type(owner), name, None), property):  # a parametrization: the class is the module's own
        former: Any = type(owner).__dict__[name]
        setattr(type(owner), name, tensor)
        return former
    tables: tuple[dict[str, Any], ...] = (owner._parameters, owner._buffers, owner.__dict__)
    table = next((found for found in tables if name in found), None)
    if table is None and isinstance(tensor, property):
        former = type(owner).__dict__[name]
        setattr(type(owner), name, tensor)
        return former
    if table is None:
        owner.__dict__[name] = tensor
        return _ABSENT
    former = table[name]
    if tensor is _ABSENT:
        del table[name]
    else:
        table[name] = tensor
    return former


def _untied(module: Module, tensors: dict[str, Any]) -> dict[str, Any]:
    """Return the replacements for all names of the tensors that are named."""
    names: dict[int, list[str]] = {}
    members = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    for name, member in members:
        names.setdefault(id(member), []).append(name)
    out = dict(tensors)
    for tied in names.values():
        given = [name for name in tied if name in tensors]
        if not given:
            continue
        if any(tensors[name] is not tensors[given[0]] for name in given):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(tied)}, which are tied. Consider using "
                "tie_weights=False"
            )
        out.update(dict.fromkeys(tied, tensors[given[0]]))
    return out


def _check_names(module: Module, tensors: dict[str, Any]) -> None:
    """Raise ``RuntimeError`` that lists the names that are missing and unexpected."""
    own = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    own |= {name for name, _ in module.named_buffers(remove_duplicate=False)}
    lists = (("Unexpected", [n for n in tensors if n not in own]), ("Missing", sorted(own - set(tensors))))
    wrong = [f"{kind} key(s): {', '.join(map(repr, names))}." for kind, names in lists if names]
    if wrong:
        listed = "\n\t".join(wrong)
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{listed}")


def __dir__() -> list[str]:
    return sorted(__all__)
