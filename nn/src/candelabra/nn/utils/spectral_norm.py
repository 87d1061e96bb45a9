"""Spectral normalization (Miyato et al., 2018) by a hook.

:func:`candelabra.nn.utils.parametrizations.spectral_norm` does the same as a parametrization.
"""

from __future__ import annotations

from typing import Any

import candelabra as cd
from candelabra import no_grad
from candelabra.nn import functional as F
from candelabra.nn.modules.module import Module
from candelabra.nn.parameter import Parameter

__all__ = [
    "SpectralNorm", "SpectralNormLoadStateDictPreHook", "SpectralNormStateDictHook", "remove_spectral_norm",
    "spectral_norm",
]  # fmt: skip


def as_matrix(weight: Any, dim: int) -> Any:
    """Return a weight as a matrix whose rows are the indices of one dim."""
    if dim != 0:
        weight = weight.permute(dim, *(d for d in range(weight.dim()) if d != dim))
    return weight.reshape(weight.size(0), -1)


def default_dim(module: Module) -> int:
    """Return the dim of a weight that has the outputs: 1 for transposed convolutions."""
    return int(any(cls.__name__.startswith("ConvTranspose") for cls in type(module).__mro__))


class SpectralNorm:
    """The hook that computes a weight from ``<name>_orig`` and the singular vectors before each call."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Any) -> Any:
        """Return the weight as a matrix."""
        return as_matrix(weight, self.dim)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Any:
        """Return the weight divided by the estimate of its largest singular value, which is improved first."""
        weight, u, v = (getattr(module, self.name + suffix) for suffix in ("_orig", "_u", "_v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(cd.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(cd.mv(matrix, v), dim=0, eps=self.eps))
                u, v = u.clone(), v.clone()  # the next call writes into the buffers before this one's backward pass
        return weight / cd.dot(u, cd.mv(matrix, v))

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again, with its present value."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    def _solve_v_and_rescale(self, matrix: Any, u: Any, target_sigma: Any) -> Any:
        """Return v with ``u = normalize(W v)`` and ``dot(u, W v) = target_sigma``, by the pseudo-inverse."""
        gram = matrix.t().mm(matrix)
        v = cd.linalg.multi_dot([cd.linalg.pinv(gram), matrix.t(), u.unsqueeze(1)]).squeeze(1)
        return v.mul_(target_sigma / cd.dot(u, cd.mv(matrix, v)))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Replace a parameter by its original and the singular vectors, and return the hook."""
        if any(isinstance(hook, SpectralNorm) and hook.name == name for hook in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight: Any = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if hasattr(type(weight), "cls_to_become"):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying spectral normalization"
            )
        with no_grad():
            sizes = hook.reshape_weight_to_matrix(weight).size()
            u, v = (F.normalize(weight.new_empty(size).normal_(0, 1), dim=0, eps=eps) for size in sizes)
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormLoadStateDictPreHook:
    """Computes the vector v of states that were written before it was part of the state."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str], *_: Any
    ) -> None:
        name = self.fn.name
        version = local_metadata.get("spectral_norm", {}).get(f"{name}.version")
        if version is not None and version >= 1:
            return
        key = prefix + name
        if version is None and key not in state_dict and all(key + s in state_dict for s in ("_orig", "_u", "_v")):
            return  # a dictionary without metadata
        absent = [key + suffix for suffix in ("_orig", "", "_u") if key + suffix not in state_dict]
        if absent:
            missing_keys += absent if strict else []
            return
        with no_grad():
            original, u = state_dict[f"{key}_orig"], state_dict[f"{key}_u"]
            sigma = (original / state_dict.pop(key)).mean()
            matrix = self.fn.reshape_weight_to_matrix(original)
            state_dict[f"{key}_v"] = self.fn._solve_v_and_rescale(matrix, u, sigma)


class SpectralNormStateDictHook:
    """Adds the version of the hook to the metadata of states."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = f"{self.fn.name}.version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a parameter by its largest singular value before each call. Returns ``module``.

    In training mode each call improves the estimate by ``n_power_iterations`` power iterations. ``dim``: the dim of the
    outputs, 0 by default, and 1 for transposed convolutions.
    """
    SpectralNorm.apply(module, name, n_power_iterations, default_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make the weight a parameter again. Returns ``module``. Raises ``ValueError`` if it is not normalized."""
    hooks: Any = module._forward_pre_hooks
    found = next((n for n, hook in hooks.items() if isinstance(hook, SpectralNorm) and hook.name == name), None)
    if found is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    hooks[found].remove(module)
    del hooks[found]
    for others in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        entries: dict[int, Any] = others
        for number, hook in list(entries.items()):
            of_state = isinstance(hook, (SpectralNormStateDictHook, SpectralNormLoadStateDictPreHook))
            if of_state and hook.fn.name == name:
                del entries[number]
    return module


def __dir__() -> list[str]:
    return sorted(__all__)
