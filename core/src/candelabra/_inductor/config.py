"""Settings of PyTorch's compiler of kernels. Passes over graphs work; the rest has no effect, and says so."""

from __future__ import annotations

import sys

from candelabra._annotations import Any
from candelabra._compile.config import config
from candelabra._compile.pytorch_options import WITHOUT_EFFECT
from candelabra._compile.pytorch_settings import PyTorchSettings, SettingsModule


class _InductorSettings(PyTorchSettings):
    """``post_grad_custom_post_pass`` and the like are the last entry of ``compiler.config.passes``."""

    def _read(self, name: str) -> Any:
        return self._passes.get(name)

    def _write(self, name: str, value: Any) -> None:
        before = self._passes.pop(name, None)
        kept = [each for each in config.passes if each is not before]
        if value is not None:
            self._passes[name] = value
        config.passes = (*kept, *([] if value is None else [value]))


_ON = {
    "cpp.simdlen": None,
    "epilogue_fusion": True,
    "pattern_matcher": True,
    "fx_graph_cache": True,
    "size_asserts": True,
}
settings = _InductorSettings(
    __name__,
    dict.fromkeys(WITHOUT_EFFECT, False) | _ON,
    dict.fromkeys(("post_grad_custom_pre_pass", "post_grad_custom_post_pass"), "passes"),
)
vars(settings)["_passes"] = {}
sys.modules[__name__].__class__ = SettingsModule
