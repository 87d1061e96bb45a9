"""Functions of modules: :func:`functional_call`. The transforms of ``torch.func`` do not exist yet, and raise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from candelabra import Tensor
from candelabra.nn import Module
from candelabra.nn.utils.stateless import call_with

TRANSFORMS: Final = (
    "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "stack_module_state", "vjp", "vmap",
)  # fmt: skip


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with the tensors of one or several dictionaries in place of its own parameters and buffers.

    ``args``: a tuple of arguments, or the only one. ``tie_weights``: a tensor that the module has under several names
    is replaced under all of them. ``strict``: the dictionaries must have all names. What the module assigns to these
    names is not kept. As ``torch.func.functional_call``.
    Raises ``ValueError`` if two dictionaries have the same name.
    """
    tensors: dict[str, Tensor] = {}
    given = parameter_and_buffer_dicts
    for one in [given] if isinstance(given, dict) else given:
        repeated = sorted(tensors.keys() & one.keys())
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        tensors.update(one)
    return call_with(module, tensors, args, kwargs, tie_weights=tie_weights, strict=strict)


def __getattr__(name: str) -> Any:
    if name not in TRANSFORMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = _missing(name)
    return found


def _missing(name: str) -> Callable[..., Any]:
    def transform(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"candelabra.func.{name}(): candelabra has no function transforms yet; candelabra.autograd.functional has "
            "jacobian, hessian, vjp and jvp"
        )

    transform.__name__ = transform.__qualname__ = name
    return transform


__all__ = ["functional_call", *TRANSFORMS]


def __dir__() -> list[str]:
    return sorted(__all__)
