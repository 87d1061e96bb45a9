"""Settings of PyTorch's tracer: some are those of ``candelabra.compiler.config``, others have no effect."""

from __future__ import annotations

import sys

from candelabra._compile.pytorch_settings import PyTorchSettings, SettingsModule

settings = PyTorchSettings(
    __name__,
    {
        "allow_unspec_int_on_nn_module": True, "assume_static_by_default": True, "automatic_dynamic_shapes": True,
        "cache_size_limit_accumulated": 256, "capture_dynamic_output_shape_ops": False,
        "capture_scalar_outputs": False, "compiled_autograd": False, "error_on_recompile": False,
        "inline_inbuilt_nn_modules": True, "optimize_ddp": True, "specialize_int": True, "verbose": False,
    },
    {"cache_size_limit": "recompile_limit", "recompile_limit": "recompile_limit", "suppress_errors": "suppress_errors"},
)  # fmt: skip
sys.modules[__name__].__class__ = SettingsModule
