"""Transforms of functions: ``vmap``, and derivatives of functions of nested containers of tensors. As ``torch.func``.

``functional_call`` and the other functions that take modules come with ``candelabra.nn``.
"""

from __future__ import annotations

from importlib import import_module

from candelabra._absent import missing
from candelabra._annotations import Any, Final
from candelabra._tensor import Tensor
from candelabra._transforms.forward import hessian, jacfwd, jvp, linearize
from candelabra._transforms.reverse import grad, grad_and_value, jacrev, vjp
from candelabra._transforms.vmap import vmap

_OF_MODULES: Final = ("functional_call", "replace_all_batch_norm_modules_", "stack_module_state")
_ABSENT: Final = ("functionalize",)

__all__ = [
    "debug_unwrap", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp", "vmap",
    *_OF_MODULES, *_ABSENT,
]  # fmt: skip


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Return the tensor inside a tensor of a transform, for a debugger; with ``recurse`` that of the device.

    Operators must not use it: a transform would not see them. As ``torch.func.debug_unwrap``.
    """
    while tensor._instance.depth:
        tensor = tensor._fresh()._payload.tensor
        if not recurse:
            break
    return tensor


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        found = missing(
            "func", name, "graphs keep in-place writes, as nodes of the form 'inplace'; graph.trace(function, *args) "
            "returns the graph of a function, and transforms accept in-place operators as they are"
        )  # fmt: skip
    elif name in _OF_MODULES:
        import candelabra

        _ = candelabra.nn  # raises ModuleNotFoundError with the extra to install
        found = getattr(import_module("candelabra.nn.utils.functional_calls"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
