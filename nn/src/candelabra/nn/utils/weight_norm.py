"""Weight normalization (Salimans and Kingma, 2016) by a hook; deprecated in PyTorch.

:func:`candelabra.nn.utils.parametrizations.weight_norm` does the same as a parametrization.
"""

from __future__ import annotations

import warnings
from typing import Any

import candelabra as cd
from candelabra.nn.modules.module import Module
from candelabra.nn.parameter import Parameter

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def norm_except_dim(v: Any, dim: int) -> Any:
    """Return the norms over all dims but one, with size 1 in the others; for dim -1, the norm of all elements."""
    if dim == -1:
        return cd.linalg.vector_norm(v)
    kept = dim % v.ndim
    others = [d for d in range(v.ndim) if d != kept]
    return cd.linalg.vector_norm(v, dim=others, keepdim=True) if others else v.abs()


def scaled_to_norm(v: Any, g: Any, dim: int) -> Any:
    """Return ``v`` with the norms ``g``."""
    return v * (g / norm_except_dim(v, dim))


class WeightNorm:
    """The hook that computes a weight from ``<name>_g`` and ``<name>_v`` before each call."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        """Return the weight."""
        return scaled_to_norm(getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g"), self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Replace a parameter by its norms and its direction, and return the hook."""
        warnings.warn(
            "`candelabra.nn.utils.weight_norm` is deprecated in favor of "
            "`candelabra.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
            stacklevel=3,
        )
        if any(isinstance(hook, WeightNorm) and hook.name == name for hook in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if hasattr(type(weight), "cls_to_become"):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(f"{name}_g", Parameter(norm_except_dim(weight, hook.dim).data))
        module.register_parameter(f"{name}_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again, with its present value."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_g"]
        del module._parameters[f"{self.name}_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train the norms (``<name>_g``) and the direction (``<name>_v``) of a weight separately. Returns ``module``.

    ``dim``: one norm per index of this dim; None: one norm of all elements.
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight a parameter again. Returns ``module``. Raises ``ValueError`` if it is not normalized."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")


def __dir__() -> list[str]:
    return sorted(__all__)
