"""Automatic differentiation: a define-by-run graph of nodes and an iterative engine. PyTorch's ``torch.autograd``.

Names are imported when they are first asked for, so that ``import candelabra`` pays for none of them.
"""

from __future__ import annotations

import sys

from candelabra._annotations import Any, Final

_NAMES: Final[dict[str, str]] = {
    "backward": "api:backward",
    "grad": "api:grad",
    "Function": "function:Function",
    "no_grad": "modes:no_grad",
    "enable_grad": "modes:enable_grad",
    "set_grad_enabled": "modes:set_grad_enabled",
    "inference_mode": "modes:inference_mode",
    "gradcheck": "gradcheck:gradcheck",
    "gradgradcheck": "gradcheck:gradgradcheck",
    "detect_anomaly": "anomaly:detect_anomaly",
    "set_detect_anomaly": "anomaly:set_detect_anomaly",
    "checkpoint": "checkpointing:checkpoint",
    "checkpoint_sequential": "checkpointing:checkpoint_sequential",
    "make_dot": "drawing:make_dot",
    "value_and_grad": "transforms:value_and_grad",
    "elementwise_grad": "transforms:elementwise_grad",
    "functional": "functional:",
    "graph": "graph:",
    "grad_mode": "modes:",
    "function": "function:",
    "anomaly_mode": "anomaly:",
}
"""Public name → module of this package and attribute; no attribute: the module itself."""


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _NAMES[name].partition(":")
    full = f"{__name__}.{module}"
    __import__(full)
    found = sys.modules[full] if not attribute else getattr(sys.modules[full], attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})


class _Package(type(sys)):  # type: ignore[misc] # the class of modules, without importing types
    def __setattr__(self, name: str, value: Any) -> None:
        # An imported module becomes an attribute of its package, and one has the name of a public function.
        super().__setattr__(name, value.gradcheck if name == "gradcheck" and type(value) is type(sys) else value)


sys.modules[__name__].__class__ = _Package


__all__ = list(_NAMES)
