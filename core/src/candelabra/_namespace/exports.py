"""The public names that are neither operators nor fronts: ``{name: "module:attribute"}``.

``candelabra.__getattr__`` looks here when a name is first asked for, imports the module, and stores what it found. So
a name costs nothing at import. A value without a colon is a submodule.
"""

from __future__ import annotations

import sys

from candelabra._annotations import Any, Final

EXPORTS: Final[dict[str, str]] = {
    # dtypes
    **{name: f"candelabra.dtypes:{name}" for name in (
        "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
        "float64", "complex64", "complex128", "dtype", "finfo", "iinfo", "promote_types", "can_cast",
        "get_default_dtype", "set_default_dtype",
    )},
    "bool": "candelabra.dtypes:bool_",
    "half": "candelabra.dtypes:float16",
    "float": "candelabra.dtypes:float32",
    "double": "candelabra.dtypes:float64",
    "short": "candelabra.dtypes:int16",
    "int": "candelabra.dtypes:int32",
    "long": "candelabra.dtypes:int64",
    "cfloat": "candelabra.dtypes:complex64",
    "cdouble": "candelabra.dtypes:complex128",
    # constants
    "inf": "math:inf",
    "nan": "math:nan",
    "pi": "math:pi",
    "e": "math:e",
    "newaxis": "candelabra._size:newaxis",
    # shapes, devices
    "Size": "candelabra._size:Size",
    **{name: f"candelabra._layout:{name}" for name in (
        "channels_last", "channels_last_3d", "contiguous_format", "memory_format", "preserve_format", "sparse_coo",
        "strided",
    )},
    "get_default_device": "candelabra._device:get_default_device",
    "set_default_device": "candelabra._device:set_default_device",
    "transfers": "candelabra._dispatch.crossing:transfers",
    "fallback": "candelabra._dispatch.fallback:fallback",
    "fallback_counts": "candelabra._dispatch.fallback:fallback_counts",
    "explain": "candelabra._dispatch.explain:explain",
    "Layer": "candelabra._dispatch.layers:Layer",
    "register_kernel": "candelabra._plugins.kernels:register_kernel",
    "get_kernel": "candelabra._plugins.kernels:get_kernel",
    "devices": "candelabra._device_modules:devices",
    "accelerator": "candelabra.accelerator",
    "OutOfMemoryError": "candelabra.errors:OutOfMemoryError",
    # autograd
    "autograd": "candelabra.autograd",
    "grad": "candelabra._autograd.transforms:grad",
    "value_and_grad": "candelabra._autograd.transforms:value_and_grad",
    "is_anomaly_enabled": "candelabra._autograd.anomaly:is_anomaly_enabled",
    **{name: f"candelabra._autograd.modes:{name}" for name in (
        "no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled",
    )},
    # random numbers
    **{name: f"candelabra._random.generator:{name}" for name in (
        "Generator", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state",
    )},
    "random": "candelabra.random",
    # namespaces
    **{name: f"candelabra.{name}" for name in (
        "array_api", "fft", "linalg", "masked", "serialization", "signal", "special",
    )},
    # printing
    "set_printoptions": "candelabra._printing:set_printoptions",
    "get_printoptions": "candelabra._printing:get_printoptions",
    "printoptions": "candelabra._printing:printoptions",
    # files
    "save": "candelabra._serialization.api:save",
    "load": "candelabra._serialization.api:load",
}  # fmt: skip


def exported(name: str) -> Any:
    """What ``candelabra.<name>`` is by the table; KeyError where the table has no such name."""
    module, colon, attribute = EXPORTS[name].partition(":")
    __import__(module)
    found = sys.modules[module]
    return getattr(found, attribute) if colon else found
