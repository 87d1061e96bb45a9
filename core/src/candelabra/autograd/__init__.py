"""Automatic differentiation: a define-by-run graph of nodes and an iterative engine. PyTorch's ``torch.autograd``.

Each name is imported at its first use, so that ``import candelabra`` stays fast.
"""

from __future__ import annotations

import sys

from candelabra._annotations import Any, Final

_NAMES: Final[dict[str, str]] = {
    "backward": "candelabra._autograd.api:backward",
    "grad": "candelabra.autograd._gradients:grad",
    "no_grad": "candelabra._autograd.modes:no_grad",
    "enable_grad": "candelabra._autograd.modes:enable_grad",
    "set_grad_enabled": "candelabra._autograd.modes:set_grad_enabled",
    "inference_mode": "candelabra._autograd.modes:inference_mode",
    "detect_anomaly": "candelabra._autograd.anomaly:detect_anomaly",
    "set_detect_anomaly": "candelabra._autograd.anomaly:set_detect_anomaly",
    "checkpoint": "candelabra._autograd.checkpointing:checkpoint",
    "checkpoint_sequential": "candelabra._autograd.checkpointing:checkpoint_sequential",
    "make_dot": "candelabra._autograd.drawing:make_dot",
    "value_and_grad": "candelabra._autograd.transforms:value_and_grad",
    "elementwise_grad": "candelabra._autograd.transforms:elementwise_grad",
    "Function": "candelabra.autograd.function:Function",
    "Variable": "candelabra._tensor_types:Variable",
    "gradcheck": "candelabra.autograd.gradcheck:gradcheck",
    "gradgradcheck": "candelabra.autograd.gradcheck:gradgradcheck",
    "forward_ad": "candelabra.autograd.forward_ad",
    "functional": "candelabra.autograd.functional",
    "graph": "candelabra.autograd.graph",
    "profiler": "candelabra.autograd.profiler",
    "variable": "candelabra.autograd.variable",
    "function": "candelabra.autograd.function",
    "grad_mode": "candelabra.autograd.grad_mode",
    "anomaly_mode": "candelabra.autograd.anomaly_mode",
}
"""Public name → module and attribute; a value without a colon is the module itself."""


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _NAMES[name].partition(":")
    __import__(module)
    found = getattr(sys.modules[module], attribute) if attribute else sys.modules[module]
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(_NAMES)


class _Package(type(sys)):  # type: ignore[misc] # the class of modules, without importing types
    def __setattr__(self, name: str, value: Any) -> None:
        # An imported module becomes an attribute of its package, and one has the name of a public function.
        super().__setattr__(name, value.gradcheck if name == "gradcheck" and type(value) is type(sys) else value)


sys.modules[__name__].__class__ = _Package


__all__ = list(_NAMES)
