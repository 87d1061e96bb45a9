"""Functions over all gradients or all parameters of a network, parametrizations of weights, and pruning."""

from __future__ import annotations

from candelabra.nn.utils import parametrizations as parametrizations
from candelabra.nn.utils import parametrize as parametrize
from candelabra.nn.utils import prune as prune
from candelabra.nn.utils import stateless as stateless
from candelabra.nn.utils.clip_grad import clip_grad_norm as clip_grad_norm
from candelabra.nn.utils.clip_grad import clip_grad_norm_ as clip_grad_norm_
from candelabra.nn.utils.clip_grad import clip_grad_value_ as clip_grad_value_
from candelabra.nn.utils.clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from candelabra.nn.utils.clip_grad import get_total_norm as get_total_norm
from candelabra.nn.utils.convert_parameters import parameters_to_vector as parameters_to_vector
from candelabra.nn.utils.convert_parameters import vector_to_parameters as vector_to_parameters
from candelabra.nn.utils.init import skip_init as skip_init
from candelabra.nn.utils.memory_format import (
    convert_conv2d_weight_memory_format as convert_conv2d_weight_memory_format,
)
from candelabra.nn.utils.memory_format import (
    convert_conv3d_weight_memory_format as convert_conv3d_weight_memory_format,
)
from candelabra.nn.utils.spectral_norm import remove_spectral_norm as remove_spectral_norm
from candelabra.nn.utils.spectral_norm import spectral_norm as spectral_norm
from candelabra.nn.utils.weight_norm import remove_weight_norm as remove_weight_norm
from candelabra.nn.utils.weight_norm import weight_norm as weight_norm

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format", "get_total_norm",
    "parameters_to_vector", "parametrizations", "parametrize", "prune", "remove_spectral_norm", "remove_weight_norm",
    "skip_init", "spectral_norm", "stateless", "vector_to_parameters", "weight_norm",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
