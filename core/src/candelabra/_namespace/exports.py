"""The public names without a declaration: dtypes, constants, classes, submodules.

At the first use of a name, ``candelabra.__getattr__`` imports its module and stores the attribute. So the names do not
slow down the import.
"""

from __future__ import annotations

import sys

from candelabra._annotations import Any, Final

EXPORTED: Final[dict[str, str]] = {
    "candelabra.dtypes": (
        "uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128 "
        "bool=bool_ half=float16 float=float32 double=float64 short=int16 int=int32 long=int64 cfloat=complex64 "
        "cdouble=complex128 dtype finfo iinfo promote_types can_cast get_default_dtype set_default_dtype"
    ),
    "math": "inf nan pi e",
    "candelabra._size": "Size newaxis",
    "candelabra._layout": (
        "channels_last channels_last_3d contiguous_format layout legacy_contiguous_format=contiguous_format "
        "memory_format preserve_format sparse_coo strided"
    ),
    "candelabra.sparse": "dsmm=mm sparse_coo_tensor spmm=mm",
    "candelabra._device": "device get_default_device set_default_device",
    "candelabra._device_modules": "devices get_device_module",
    "candelabra._tensor": "Tensor",
    "candelabra.amp.autocast_mode": (
        "autocast autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_dtype "
        "is_autocast_cache_enabled is_autocast_enabled set_autocast_cache_enabled set_autocast_dtype "
        "set_autocast_enabled"
    ),
    "candelabra.amp.grad_scaler": "GradScaler",
    "candelabra.compiler": "compile",
    "candelabra._compile.conditional": "cond",
    "candelabra._switches": (
        "are_deterministic_algorithms_enabled get_deterministic_debug_mode get_float32_matmul_precision "
        "get_num_interop_threads get_num_threads is_deterministic_algorithms_warn_only_enabled "
        "set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal set_num_interop_threads "
        "set_num_threads use_deterministic_algorithms"
    ),
    "candelabra._tensor_types": (
        "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor "
        "ShortTensor set_default_tensor_type"
    ),
    "candelabra._dispatch.crossing": "transfers",
    "candelabra._dispatch.fallback": "fallback fallback_counts",
    "candelabra._dispatch.explain": "explain",
    "candelabra._dispatch.layers": "Layer",
    "candelabra._plugins.kernels": "register_kernel get_kernel",
    "candelabra.errors": "OutOfMemoryError",
    "candelabra._autograd.transforms": "grad value_and_grad",
    "candelabra._transforms.collecting": "batching",
    "candelabra._transforms.vmap": "vmap",
    "candelabra._autograd.anomaly": "is_anomaly_check_nan_enabled is_anomaly_enabled set_anomaly_enabled",
    "candelabra._autograd.modes": (
        "no_grad enable_grad set_grad_enabled inference_mode is_grad_enabled is_inference_mode_enabled"
    ),
    "candelabra._random.generator": (
        "Generator default_generator=host_generator get_rng_state initial_seed manual_seed seed set_rng_state"
    ),
    "candelabra._printing": "set_printoptions get_printoptions printoptions",
    "candelabra._serialization.api": "save load",
    "candelabra._C": "_assert",
    "": (
        "_C _VF __config__ _dynamo _higher_order_ops _inductor _logging accelerator amp array_api autograd backend "
        "backends compiler distributed dtypes errors fft func functional futures fx graph hub jit library linalg "
        "masked multiprocessing onnx ops overrides profiler random serialization signal sparse special types typing "
        "utils version"
    ),
}
"""Module → the names that it exports, ``name=attribute`` if they differ. The empty module name means submodules."""
EXPORTS: Final[dict[str, tuple[str, str]]] = {
    word.partition("=")[0]: (home, word.partition("=")[2] or word) for home, words in EXPORTED.items()
    for word in words.split()
}  # fmt: skip
"""Public name → module and attribute."""


def exported(name: str) -> Any:
    """Return ``candelabra.<name>`` by the table. Raise KeyError if the table does not contain the name."""
    module, attribute = EXPORTS[name]
    whole = module or f"candelabra.{attribute}"
    __import__(whole)
    return getattr(sys.modules[whole], attribute) if module else sys.modules[whole]
